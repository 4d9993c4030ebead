# SPDX-License-Identifier: GPL-2.0
"""How the lab calls dblp-perf, and what it reads of its output: the one place
that knows. The interface is written down in Documentation/design/lab.rst."""

import os
import pathlib

from . import lablink, topology, transports
from .errors import LabError

PORT = 12865
TREE = pathlib.Path(__file__).resolve().parents[3]
BUILT = TREE / "build/cmake/tools/perf/dblp-perf"


def binary():
    """dblp-perf: that of DBLP_PERF, else the one that was built here."""
    path = pathlib.Path(os.environ.get("DBLP_PERF") or BUILT)
    if not os.access(path, os.X_OK):
        raise LabError(f"{path} is missing: run make core, or set DBLP_PERF")
    return path.resolve()


def control(host):
    """Address of a host for what is not measured."""
    return f"10.0.0.{host}"


def data(host):
    """Address of a host on the network that is measured."""
    return f"10.1.0.{host}"


def jitter_us(s, seed, host):
    """How much later than the others a host starts."""
    unit = lablink.mix(lablink.mix(seed) ^ (0x6A69 << 32 | host)) / (1 << 64)
    return round(s["jitter_us"] * unit)


def _server(program, s, seed, host):
    return {"host": host, "argv": [program, "--server", "-B", control(host), "-p", str(PORT),
                                   "--jitter-us", str(jitter_us(s, seed, host))],
            "ready": [control(host), PORT]}


def _client(program, s, seed, test, transport, host, peers, extra):
    options = ["-H", ",".join(data(p) for p in peers), "-L", data(host), *extra]
    return {"host": host, "argv": [
        program, "-H", ",".join(control(p) for p in peers), "-p", str(PORT), "-B", control(host),
        "-t", test.upper(), "-T", transport, "-J", "--jitter-us", str(jitter_us(s, seed, host)),
        "--seed", str(seed), "--", *options]}


def _sized(s):
    words = ["-m", str(s["bytes"]), "-r", str(s["rounds"]), "-w", str(s["warm_rounds"])]
    if s["compute_us"]:
        words += ["--compute-us", str(round(s["compute_us"]))]
    return words


def _partial(s, transport):
    words = []
    if transport == "dblp":
        words += ["--mode", s["mode"]]
        if s["phase_ppm"]:
            words += ["--phase-ppm", ",".join(map(str, s["phase_ppm"]))]
    if transport == "pr-sctp-rtx":
        words += ["--max-rtx", str(s["max_rtx"])]
    if transport in ("dblp", "pr-sctp-ttl") and s["deadline_us"]:
        words += ["--deadline-us", str(s["deadline_us"])]
    if transports.TRANSPORTS[transport].partial and s["tolerance_ppm"]:
        words += ["--tolerance-ppm", str(s["tolerance_ppm"])]
    return words


def processes(s, transport, seed):
    """(servers, background, clients) of a workload, each with host and argv."""
    program = str(binary())
    flows, background = topology.pairs(s)
    test, options = s["test"], _partial(s, transport)
    clients = []
    if test in ("stream", "maerts", "rr"):
        ends = [(b, a) for a, b in flows] if test == "maerts" else flows
        for client, server in ends:
            clients.append(_client(program, s, seed, test, transport, client, [server],
                                   ["-l", f"{s['seconds']:g}", "-m", str(s["bytes"]), *options]))
    elif test == "message":
        for client, server in flows:
            clients.append(_client(program, s, seed, test, transport, client, [server], [*_sized(s), *options]))
    else:
        others = [a for a, _ in flows] or list(range(2, s["hosts"] - 2 * s["background_flows"] + 1))
        clients.append(_client(program, s, seed, test, transport, 1, others, [*_sized(s), *options]))
    noise = [_client(program, s, seed, "stream", s["background_transport"], a, [b],
                     ["-l", f"{s['settle_s'] + s['limit_s']:g}"]) for a, b in background]
    busy = {c["host"] for c in clients} | {a for a, _ in background}
    servers = [_server(program, s, seed, h) for h in range(1, s["hosts"] + 1) if h not in busy]
    return servers, noise, clients


def _field(record, name, where):
    if name not in record:
        raise LabError(f"dblp-perf: {where} has no '{name}'")
    return record[name]


def rounds(outputs, test):
    """Rounds of all clients: dicts with start_ns, end_ns and bytes."""
    result = []
    for output in outputs:
        if "error" in output:
            raise LabError(f"dblp-perf: {output['error']}")
        result.append(_field(output, "rounds", "its output"))
    if test in ("stream", "maerts", "rr"):
        return result
    if any(not r for r in result):
        raise LabError("dblp-perf: there are no rounds")
    return result
