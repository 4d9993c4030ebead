# SPDX-License-Identifier: GPL-2.0
"""What a transport costs: instructions of a stock kernel on a virtual CPU that
does one in a nanosecond (tools/vm/run --icount).
"""

import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from . import kernel, perf, transports
from .errors import LabError

RUNNER = kernel.TREE / "tools/vm/run"
KERNELS = ("6.1", "6.12")
PATHS = ("gso", "nic")
WORKLOADS = ("stream", "rr64")
# Debian clears each page and each buffer when it is allocated; that is a cost of
# its own, the same for all, and many times that of a transport.
APPEND = "init_on_alloc=0"
WALL_LIMIT_S = 1800


def _check(words, known, what):
    for word in words:
        if word not in known:
            raise LabError(f"unknown {what} '{word}': known are {', '.join(known)}")
    return list(words)


def run(words, name, paths, workloads, module=None):
    """Measures all transports in one guest; returns the records."""
    _check([name], KERNELS, "kernel")
    _check(paths, PATHS, "path")
    _check(workloads, WORKLOADS, "workload")
    names = [transports.of(w).name for w in words]
    command = [str(RUNNER), "--icount", "--kernel", name, "--append", APPEND, "--timeout", str(WALL_LIMIT_S)]
    if any(transports.TRANSPORTS[n].module for n in names):
        ko = pathlib.Path(module) if module else kernel.TREE / f"build/module/{name}/dblp.ko"
        if not ko.exists():
            raise LabError(f"{ko} is missing: run make module-{name}")
        command.append(f"--module={ko}")
    program = perf.binary()
    folder, headers = kernel.stock_headers(name)
    count = kernel.module(folder, "lab_count", 2, headers)
    with tempfile.TemporaryDirectory(prefix="dblp-cpu.") as folder:
        # The guest's /tmp is its own.
        shutil.copy(program, f"{folder}/dblp-perf")
        shutil.copy(count, f"{folder}/lab_count.ko")
        order = {"transports": names, "paths": list(paths), "workloads": list(workloads)}
        (pathlib.Path(folder) / "job.json").write_text(json.dumps(order))
        command += ["--out", folder, "--cwd", str(kernel.LAB), "--", "/usr/bin/python3", "-B", "-s", "-m",
                    "lablib.cpuguest", folder]
        # What the guest prints is how far it is.
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=subprocess.PIPE,
                              text=True, check=False)
        result = pathlib.Path(folder) / "result.json"
        if done.returncode or not result.exists():
            lines = (done.stderr.strip() or "it said nothing").splitlines()
            print("\n".join(lines[:-1][-10:]), file=sys.stderr)
            raise LabError(f"the guest failed: {lines[-1]} (command: {shlex.join(command[:6])} ...)")
        return [{"kernel": name} | r for r in json.loads(result.read_text())]


COLUMNS = ("path", "workload", "transport", "instructions", "min", "max", "copied", "cleared", "summed")


def print_table(records):
    """For people."""
    rows = [COLUMNS]
    for r in records:
        unit = "exchange" if "instructions_per_exchange" in r else "byte"
        rows.append((r["path"], r["workload"], r["transport"], f"{r[f'instructions_per_{unit}']:.2f}/{unit}",
                     f"{r['min']:.2f}", f"{r['max']:.2f}",
                     *(f"{r[f'{k}_bytes_per_{unit}']:.2f}" for k in ("copied", "cleared", "summed"))))
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for row in rows:
        print("  ".join(cell.ljust(w) if i < 3 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))))
