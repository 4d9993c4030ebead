# SPDX-License-Identifier: GPL-2.0
"""From what a guest brought back to the record of an experiment, after proof that
the network was what it was to be."""

import math
import statistics

from . import lablink, oracle, perf, topology
from .errors import LabError


def percentile(values, share):
    """The smallest value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _where(port):
    return f"port {port.dev} of {port.ns}"


def prove_port(port, seed, stats):
    """Refuses a result whose link was not what was asked for."""
    wire = port.mtu + oracle.ETHERNET
    if stats["largest"] > wire:
        raise LabError(f"{_where(port)}: a frame of {stats['largest']} bytes: a burst was not cut into packets")
    if port.queue_packets and stats["peak_packets"] > port.queue_packets:
        raise LabError(f"{_where(port)}: the queue grew to {stats['peak_packets']} packets, not {port.queue_packets}")
    if port.queue_bytes and stats["peak_bytes"] > port.queue_bytes:
        raise LabError(f"{_where(port)}: the queue grew to {stats['peak_bytes']} bytes, not {port.queue_bytes}")
    full_packets = port.queue_packets and stats["peak_packets"] == port.queue_packets
    full_bytes = port.queue_bytes and stats["peak_bytes"] + wire > port.queue_bytes
    if stats["dropped"] and not (full_packets or full_bytes):
        raise LabError(f"{_where(port)}: {stats['dropped']} packets were dropped though the queue was not full")
    for i, (got, want) in enumerate(zip(stats["steps"], lablink.expected(port, seed, stats))):
        for key, value in want.items():
            if got[key] != value:
                raise LabError(f"{_where(port)}, step {i}: {got[key]} packets {key}, not {value}")
        _prove_rate(port, i, got)


def _prove_rate(port, i, got):
    """Time on the wire must be what bytes and rate say, and fit into the step."""
    step = port.steps[i]
    if not got["packets"] or not step.rate:
        return
    wire = (got["bytes"] + got["packets"] * port.overhead) * 8e9 / step.rate
    # A packet that straddles a change of rate was sent at the old one.
    slack = got["packets"]
    if len(port.steps) > 1:
        slack += (port.mtu + 100) * 8e9 / min(s.rate for s in port.steps if s.rate)
    if abs(got["busy"] - wire) > slack:
        raise LabError(f"{_where(port)}, step {i}: {got['packets']} packets took {got['busy']} ns, not {wire:.0f}")
    if i + 1 < len(port.steps) and got["busy"] > port.steps[i + 1].at - step.at + slack:
        raise LabError(f"{_where(port)}, step {i}: more was sent than the link carries")


def prove(experiment, plan, raw):
    """All ports, and that nothing was sent faster than the link since the epoch."""
    for port, stats in zip(plan.ports, raw["ports"]):
        prove_port(port, experiment.chance(), stats)
        busy = sum(c["busy"] for c in stats["steps"])
        if stats["last"] and busy > stats["last"] - raw["epoch_ns"] + (port.mtu + 100) * 8e9 / min(
                s.rate for s in port.steps if s.rate):
            raise LabError(f"{_where(port)}: more was sent than the link carries")


def _merge(clients):
    """Rounds of all clients together: round i is over when the last of them is."""
    merged = []
    for parts in zip(*clients):
        merged.append({
            "start_ns": min(p["start_ns"] for p in parts), "end_ns": max(p["end_ns"] for p in parts),
            **{k: sum(p.get(k) or 0 for p in parts)
               for k in ("bytes", "delivered_bytes", "missing_bytes", "retransmitted_bytes")},
        })
    return merged


def jain(values):
    """Jain's index of fairness: 1 if all are equal."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def _number(value):
    """Ten digits: more would be noise of the last bit, fewer would hide nanoseconds."""
    return None if value is None else float(f"{value:.10g}")


def _streams(plan, raw, base, flows):
    """Fields of a test that lasts a given time."""
    ends = [o["end"] for o in raw["outputs"]]
    if any("bytes" not in end or "seconds" not in end for end in ends):
        raise LabError("dblp-perf: its output has no end.bytes and end.seconds")
    total, seconds = sum(e["bytes"] for e in ends), max(e["seconds"] for e in ends)
    limit = oracle.streams(plan, flows, [e["bytes"] for e in ends])
    return base | {
        "time_s": seconds, "p50_s": None, "p99_s": None, "max_s": None, "limit_s": limit, "ratio": seconds / limit,
        "rounds": 1, "retransmitted_bytes": sum(e.get("retransmitted_bytes") or 0 for e in ends),
        "goodput_mbps": total * 8 / seconds / 1e6, "share": limit / seconds,
        "jain": jain([e["bytes"] / e["seconds"] for e in ends]),
    }


def make(experiment, plan, raw):
    """The record, with nothing in it that differs between two runs of one seed."""
    prove(experiment, plan, raw)
    s = experiment.settings
    clients = perf.rounds(raw["outputs"], s["test"])
    counts = [c for stats, port in zip(raw["ports"], plan.ports) for c in stats["steps"]]
    base = {
        "scenario": experiment.scenario, "point": experiment.point, "transport": experiment.transport,
        "seed": experiment.seed,
        # What hosts put on the wire: the cards' ports, not those of switches.
        "wire_bytes": sum(c["bytes"] + c["packets"] * port.overhead
                          for stats, port in zip(raw["ports"], plan.ports) if port.kind == "nic"
                          for c in stats["steps"]),
        "queue_drops": sum(stats["dropped"] for stats in raw["ports"]),
        "injected_losses": sum(c["lost"] for c in counts),
        "marked": sum(stats["marked"] for stats in raw["ports"]),
    }
    flows, _ = topology.pairs(s)
    if s["test"] in ("stream", "maerts"):
        return _finish(_streams(plan, raw, base, flows))
    merged = _merge(clients)
    times = [(r["end_ns"] - r["start_ns"]) / 1e9 for r in merged]
    if min(times) <= 0:
        raise LabError("dblp-perf: a round took no time")
    limit = oracle.limit(plan, s, flows)
    return _finish(base | {
        "time_s": sum(times), "p50_s": statistics.median_low(times), "p99_s": percentile(times, 0.99),
        "max_s": max(times), "limit_s": limit, "ratio": None if limit is None else sum(times) / limit,
        "rounds": len(times), "missing_bytes": sum(r["missing_bytes"] for r in merged),
        "retransmitted_bytes": sum(r["retransmitted_bytes"] for r in merged),
    })


def _finish(fields):
    order = ("scenario", "point", "transport", "seed", "time_s", "p50_s", "p99_s", "max_s", "limit_s", "ratio",
             "wire_bytes", "rounds", "retransmitted_bytes", "queue_drops", "injected_losses")
    result = {k: fields[k] for k in order} | {k: v for k, v in sorted(fields.items()) if k not in order}
    for key, value in result.items():
        if isinstance(value, float):
            if not math.isfinite(value):
                raise LabError(f"{key} is not a number")
            result[key] = _number(value)
    return result
