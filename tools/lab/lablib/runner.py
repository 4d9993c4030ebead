# SPDX-License-Identifier: GPL-2.0
"""Runs one experiment in a guest, and makes its record out of what comes back."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from . import lablink, oracle, perf, record, topology, transports
from .errors import LabError

LAB = pathlib.Path(__file__).resolve().parent.parent
WALL_LIMIT_S = 900
PROBES = 12
# The module's own buffer sizes: smallest, usual, largest (kernel/sysctl.c).
DBLP_BUFFER = (1 << 16, 1 << 27, (1 << 30) - (1 << 20))
# Time stands still while the CPU works.
CLOCK = "time-travel=inf-cpu"


@dataclasses.dataclass(frozen=True)
class Machine:
    """What the guest runs."""

    linux: pathlib.Path
    lablink: pathlib.Path
    dblp: pathlib.Path | None
    family: int = 18


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One guest's worth: a point, a transport, a seed."""

    scenario: str
    point: dict
    settings: dict
    transport: str
    seed: int

    def chance(self):
        """The seed of all that is random here; a label makes it another one."""
        _, at, label = self.transport.partition("@")
        value = lablink.mix(self.seed)
        for byte in label.encode() if at else b"":
            value = lablink.mix(value ^ byte)
        return value >> 1


def _arrivals(plan, path, payload):
    """When the packets of a burst arrive, ns after it was sent: the plan's view."""
    wire = (payload + oracle.UDP_IP + oracle.ETHERNET + plan.ports[0].overhead) * 8
    count = min([PROBES, *(p.queue_packets for p in path if p.queue_packets),
                 *(p.queue_bytes // (wire // 8) for p in path if p.queue_bytes)])
    at = [0.0] * max(count, 1)
    for port in path:
        free = 0.0
        for i, ready in enumerate(at):
            free = max(free, ready) + wire * 1e9 / port.steps[0].rate
            at[i] = free
        at = [t + port.steps[0].delay for t in at]
    return [round(t) for t in at]


def _probes(plan):
    """One burst from each host to the next: all cards and ports are on some path."""
    payload = plan.mtu - oracle.UDP_IP
    result = []
    for host in range(1, plan.hosts + 1):
        to = host % plan.hosts + 1
        result.append({"from": host, "to": to, "payload": payload,
                       "arrivals": _arrivals(plan, plan.path(host, to), payload)})
    return result


def _sysctls(plan, s, transport):
    """What the hosts' stacks are told; (per host, for all)."""
    rate = min(max(p.steps[0].rate for p in plan.ports if p.kind == kind) for kind in {p.kind for p in plan.ports})
    bdp = rate / 8 * 2 * max(p.steps[0].delay for p in plan.ports) / 1e9
    most = min(max(16 << 20, 4 * int(bdp)), (1 << 31) - 1)
    hosts = {
        "net.ipv4.tcp_rmem": f"4096 131072 {most}",
        "net.ipv4.tcp_wmem": f"4096 65536 {most}",
        "net.ipv4.tcp_no_metrics_save": 1,
        "net.ipv4.tcp_ecn": 1 if transport.ecn else 0,
    }
    everyone = {
        "net.core.rmem_max": most, "net.core.wmem_max": most,
        # The queue of the guest's CPU stands for nothing in the experiment.
        "net.core.netdev_max_backlog": 1_000_000,
    }
    if transport.module:
        # Whole messages must fit, and what keeping them costs.
        least, usual, largest = DBLP_BUFFER
        size = f"{least} {min(max(usual, 4 * s['bytes'], 4 * int(bdp)), largest)} {largest}"
        everyone |= {"net.dblp.rmem": size, "net.dblp.wmem": size}
    return hosts, everyone


def job(experiment, machine):
    """(plan, what the guest is told)."""
    s = experiment.settings
    transport = transports.of(experiment.transport)
    plan = topology.plan(s)
    chance = experiment.chance()
    servers, background, clients = perf.processes(s, transport.name, chance)
    modules = [[str(machine.lablink)]]
    if transport.module:
        modules.append([str(machine.dblp)])
    hosts, everyone = _sysctls(plan, s, transport)
    signals = []
    if s["pause_host"] and s["pause_ms"]:
        start = round(s["pause_at_ms"] * 1e6)
        signals = [(start, "SIGSTOP"), (start + round(s["pause_ms"] * 1e6), "SIGCONT")]
    return plan, {
        "hosts": plan.hosts, "mtu": plan.mtu, "racks": plan.racks, "modules": modules,
        "unload": ["dblp"] if transport.module else [],
        "ports": [{"ns": p.ns, "dev": p.dev, "params": lablink.pack_params(p, chance, 0).hex(),
                   "steps": lablink.pack_steps(p).hex()} for p in plan.ports],
        "sysctls": hosts, "global_sysctls": everyone, "probes": _probes(plan),
        "servers": servers, "background": background, "clients": clients,
        "signals": signals, "signal_host": s["pause_host"],
        "settle_s": s["settle_s"], "limit_s": s["limit_s"],
    }


def _memory(plan, s):
    """Bytes for the guest: itself, its hosts, their messages, and what can be on the
    way. What is not touched costs nothing, and a transport takes its share of it."""
    flight = sum(p.steps[0].rate / 8 * p.steps[0].delay / 1e9 + p.queue_packets * p.mtu + p.queue_bytes
                 for p in plan.ports)
    return (1 << 30) + plan.hosts * ((24 << 20) + 4 * s["bytes"]) + 8 * int(flight)


_running = set()


def stop_all():
    """Ends all guests: who runs them is told that they ended."""
    for process in list(_running):
        _kill(process)


def _kill(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _stop(process):
    """Ends a guest and all processes of its own session."""
    _kill(process)
    process.wait()
    _running.discard(process)


def boot(machine, folder, memory, chance, wall_limit):
    """Runs the job in a folder; returns its result or raises what went wrong."""
    argv = [str(machine.linux), f"mem={memory >> 20}M", "root=/dev/root", "rootfstype=hostfs", "ro", "quiet",
            f"init={LAB}/guest/init", "con=null", "con0=null,fd:1", CLOCK,
            "time-travel-start=1000000000000000000", f"uml_dir={folder}/", "umid=uml", "panic=-1",
            f"lab_out={folder}", f"lab_tool={LAB}"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LAB_SEED": str(chance)}
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                                   env=environment, start_new_session=True)
        _running.add(process)
        try:
            process.wait(wall_limit)
        except subprocess.TimeoutExpired:
            raise LabError(f"the guest did not end within {wall_limit} s (something spins, or the machine is slow)") from None
        finally:
            _stop(process)
    verdict = folder / "verdict"
    if not verdict.exists():
        words = (folder / "console").read_text(errors="replace").strip().splitlines()
        raise LabError(f"the guest ended without a verdict: {words[-1] if words else 'it said nothing'}")
    text = verdict.read_text().strip()
    if text != "ok":
        raise LabError(text)
    return json.loads((folder / "result.json").read_text())


def run(experiment, machine, wall_limit=WALL_LIMIT_S, keep=None):
    """(record, raw result) of an experiment. With `keep`, a failed guest's folder
    is copied there."""
    plan, order = job(experiment, machine)
    with tempfile.TemporaryDirectory(prefix="dblp-lab.") as name:
        folder = pathlib.Path(name)
        (folder / "job.json").write_text(json.dumps(order))
        try:
            raw = boot(machine, folder, _memory(plan, experiment.settings), experiment.chance(), wall_limit)
            return record.make(experiment, plan, raw), raw
        except LabError as error:
            if keep:
                shutil.rmtree(keep, ignore_errors=True)
                shutil.copytree(folder, keep, ignore=shutil.ignore_patterns("uml"))
            point = " ".join(f"{k}={v}" for k, v in experiment.point.items())
            raise LabError(f"{experiment.scenario} {point} {experiment.transport} seed {experiment.seed}: {error}") from None
