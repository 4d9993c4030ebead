# SPDX-License-Identifier: GPL-2.0
"""A run: all experiments of one scenario, in one folder.

manifest.json  what was run, by what, on what
raw/           what each guest brought back
summary.json   the results: the same for the same manifest
"""

import concurrent.futures
import dataclasses
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import threading
import time

from . import kernel, perf, runner, scenario as scenarios, topology, transports
from .errors import LabError

SCHEMA = 1
RUNS = kernel.TREE / "build/lab/runs"


@dataclasses.dataclass
class Request:
    """What the user asked for; None: as the scenario says."""

    scenario: str
    transports: list = None
    seeds: list = None
    sets: dict = dataclasses.field(default_factory=dict)
    quick: bool = False
    wall_limit: float = runner.WALL_LIMIT_S
    module: str = None  # another dblp.ko than that of this tree


def _git(*words):
    done = subprocess.run(["git", "-C", str(kernel.TREE), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _revision():
    """The commit, and a hash of what differs from it."""
    changes = subprocess.run(["git", "-C", str(kernel.TREE), "diff", "HEAD"], capture_output=True, check=False).stdout
    return {"commit": _git("rev-parse", "HEAD"),
            "changes": hashlib.sha256(changes).hexdigest()[:16] if changes else None}


def _machine(words, jobs, module):
    """The kernel and the modules that these transports need."""
    folder = kernel.require()
    link = kernel.module(folder, "sch_lablink", jobs)
    needs_module = any(transports.of(w).module for w in words)
    dblp = None
    if needs_module and module:
        dblp = pathlib.Path(module).resolve()
        if not dblp.is_file():
            raise LabError(f"--module {module}: no such file")
    elif needs_module:
        dblp = kernel.module(folder, "dblp", jobs)
    return runner.Machine(linux=folder / "build/linux", lablink=link, dblp=dblp), folder


def _manifest(request, experiments, machine, folder, wall):
    program = perf.binary()
    return {
        "schema": SCHEMA, "scenario": request.scenario, "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "wall_s": round(wall, 1), "revision": _revision(), "quick": request.quick,
        "kernel": {"version": folder.name, "hz": 250, "clock": runner.CLOCK,
                   "config_sha256": hashlib.sha256((folder / "build/.config").read_bytes()).hexdigest()},
        "modules": {name: kernel.srcversion(ko)
                    for name, ko in (("sch_lablink", machine.lablink), ("dblp", machine.dblp)) if ko},
        "dblp_perf_sha256": hashlib.sha256(program.read_bytes()).hexdigest(),
        "host": {"machine": platform.machine(), "cpus": os.cpu_count(), "python": platform.python_version()},
        "experiments": [{"file": _file(i), "point": e.point, "transport": e.transport, "seed": e.seed,
                         "settings": e.settings} for i, e in enumerate(experiments)],
    }


def _file(i):
    return f"raw/{i:04}.json.gz"


def _new_folder(name):
    RUNS.mkdir(parents=True, exist_ok=True)
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    for i in range(100):
        folder = RUNS / (f"{name}-{stamp}" + (f"-{i}" if i else ""))
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            continue
    raise LabError(f"{RUNS}: no name is free for a run folder")


def experiments_of(request):
    """All experiments of a request, in the order of their results."""
    scene = scenarios.load(request.scenario)
    result = []
    for point in scenarios.points(scene, request.sets, request.quick):
        topology.plan(point.settings)
        for transport in request.transports or scene.transports:
            for seed in request.seeds or (scene.seeds[:1] if request.quick else scene.seeds):
                result.append(runner.Experiment(scene.name, point.shown, point.settings, transport, seed))
    return result


class _Progress:
    """One line that says how far a run is."""

    def __init__(self, total):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.tty = sys.stderr.isatty()
        self.lock = threading.Lock()

    def step(self):
        """One more experiment is over."""
        with self.lock:
            self.done += 1
            passed = time.monotonic() - self.start
            if self.tty:
                print(f"\rlab: {self.done} of {self.total}, {passed:.0f} s", end="", file=sys.stderr, flush=True)
                if self.done == self.total:
                    print(file=sys.stderr)


def run(request, jobs, out=None):
    """Runs all experiments; returns the folder and the records.

    All or nothing: one that fails is an error, and there is no result.
    """
    experiments = experiments_of(request)
    machine, kernel_folder = _machine({e.transport for e in experiments}, jobs, request.module)
    perf.binary()
    if out and pathlib.Path(out).exists():
        raise LabError(f"{out} exists already")
    start = time.monotonic()
    progress = _Progress(len(experiments))
    failed = RUNS.parent / "failed"
    stop = threading.Event()

    def one(experiment):
        if stop.is_set():
            return None
        try:
            result = runner.run(experiment, machine, request.wall_limit, keep=failed)
        except BaseException:
            stop.set()
            raise
        progress.step()
        return result

    with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
        futures = [pool.submit(one, e) for e in experiments]
        try:
            results = [f.result() for f in futures]
        except KeyboardInterrupt:
            stop.set()
            runner.stop_all()
            raise
        except BaseException:
            stop.set()
            # The first that failed, not the first that was told to stop.
            concurrent.futures.wait(futures)
            for future in futures:
                if isinstance(future.exception(), LabError):
                    raise LabError(f"{future.exception()} (its files: {failed})") from None
            raise
    records = [r for r, _ in results]
    folder = _write(request, experiments, machine, kernel_folder, results, time.monotonic() - start, out)
    return folder, records


def _write(request, experiments, machine, kernel_folder, results, wall, out):
    folder = pathlib.Path(out) if out else _new_folder(request.scenario)
    try:
        (folder / "raw").mkdir(parents=True)
        for i, (_, raw) in enumerate(results):
            text = json.dumps(raw, separators=(",", ":")) + "\n"
            (folder / _file(i)).write_bytes(gzip.compress(text.encode(), mtime=0))
        manifest = _manifest(request, experiments, machine, kernel_folder, wall)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        write_json(folder / "summary.json", [r for r, _ in results])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def write_json(path, records):
    """The results as a file."""
    try:
        path.write_text(json.dumps({"schema": SCHEMA, "results": records}, indent=1) + "\n")
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None


def read(name):
    """The results of a run folder or of a file of --json."""
    path = pathlib.Path(name)
    if path.is_dir():
        path = path / "summary.json"
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise LabError(f"{path}: not JSON") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise LabError(f"{path}: not results of schema {SCHEMA}")
    return data["results"]


def key(record):
    """What the seeds of one cell of a table have in common."""
    return tuple(sorted((k, str(v)) for k, v in record["point"].items())), record["transport"]


def cells(records):
    """(point, transport) -> records, in order."""
    result = {}
    for record in records:
        result.setdefault(key(record), []).append(record)
    return result


COLUMNS = ("point", "transport", "n", "time s", "min", "max", "limit s", "ratio", "drops", "lost")


def text_of(point):
    """A point as words."""
    def word(value):
        if isinstance(value, (list, tuple)):
            return "+".join(map(word, value)) or "none"
        return f"{value:g}" if isinstance(value, float) else str(value)
    return " ".join(f"{k}={word(v)}" for k, v in point.items())


def table(records):
    """Rows of text for COLUMNS: medians and spread over the seeds."""
    rows = []
    for (_, transport), group in cells(records).items():
        times = sorted(r["time_s"] for r in group)
        middle = sorted(group, key=lambda r: r["time_s"])[(len(group) - 1) // 2]
        rows.append((
            text_of(group[0]["point"]), transport, str(len(group)),
            f"{middle['time_s']:.4f}", f"{times[0]:.4f}", f"{times[-1]:.4f}",
            "-" if middle["limit_s"] is None else f"{middle['limit_s']:.4f}",
            "-" if middle["ratio"] is None else f"{middle['ratio']:.2f}",
            str(middle["queue_drops"]), str(middle["injected_losses"])))
    return rows


def print_table(records):
    """For people."""
    rows = [COLUMNS, *table(records)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    for row in rows:
        print("  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip())
