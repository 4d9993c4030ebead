# SPDX-License-Identifier: GPL-2.0
"""Hosts, switches and ports of an experiment, and what happens to each port in time.

Nothing here touches a network: the guest builds what is planned here.
"""

import dataclasses
import math

from . import lablink
from .errors import LabError

FORWARD, BACK, NEITHER = "forward", "back", "neither"


@dataclasses.dataclass
class Port:
    """An egress: the card of a host, or a port of a switch."""

    number: int
    host: int  # 0: none, an uplink
    kind: str  # nic, port, uplink
    ns: str
    dev: str
    queue_packets: int
    queue_bytes: int
    mark_packets: int
    mtu: int
    overhead: int
    direction: str
    steps: list = dataclasses.field(default_factory=list)
    ge: tuple = (0.0, 0.0, 0.0, 0.0)


@dataclasses.dataclass
class Plan:
    """All that the guest needs to build the network."""

    hosts: int
    mtu: int
    racks: list  # of each host, from host 1 on
    ports: list
    rates: dict  # host -> bits/s of its card

    def port_to(self, host):
        """The switch's port in front of a host."""
        return next(p for p in self.ports if p.kind == "port" and p.host == host)

    def nic_of(self, host):
        """The card of a host."""
        return next(p for p in self.ports if p.kind == "nic" and p.host == host)

    def uplink_from(self, rack):
        """The port towards the other rack."""
        return next(p for p in self.ports if p.kind == "uplink" and p.dev == f"up{rack}")

    def path(self, sender, receiver):
        """The ports that a packet passes, in order."""
        path = [self.nic_of(sender)]
        if self.racks[sender - 1] != self.racks[receiver - 1]:
            path.append(self.uplink_from(self.racks[sender - 1]))
        path.append(self.port_to(receiver))
        return path


def pairs(s):
    """(sender, receiver) of each flow of the workload, then of the background."""
    if s["test"] in ("stream", "maerts", "rr", "message"):
        half = s["hosts"] // 2
        flows = [(i, i + half) for i in range(1, s["flows"] + 1)]
        if s["test"] == "maerts":
            flows = [(b, a) for a, b in flows]
        first = s["flows"] + 1
        return flows, [(i, i + half) for i in range(first, first + s["background_flows"])]
    used = s["hosts"] - 2 * s["background_flows"]
    flows = []
    if s["test"] == "incast":
        flows = [(i, 1) for i in range(2, 2 + s["senders"])]
        used = 1 + s["senders"]
    return flows, [(used + 2 * i + 1, used + 2 * i + 2) for i in range(s["background_flows"])]


def queue_of(s, rate):
    """(packets, bytes) that the queue of a port holds."""
    if s["queue_bdp"]:
        # At least two packets: with one, nothing could wait behind the one in service.
        size = int(s["queue_bdp"] * rate / 8 * s["rtt_us"] / 1e6)
        return 0, max(size, 2 * (s["mtu"] + 14))
    return s["queue_packets"], s["queue_bytes"]


def _directions(s):
    """Hosts that receive data, and hosts that receive answers."""
    flows, _ = pairs(s)
    receivers = {b for _, b in flows}
    senders = {a for a, _ in flows}
    if not flows:
        everyone = set(range(1, s["hosts"] + 1))
        return everyone, everyone
    return receivers, senders


def _hit(s, direction):
    return s["loss_where"] == "all" or s["loss_where"] == direction or direction == "both"


def _steps(s, rate, disturbed, direction):
    """What a port is like, from each instant at which something changes."""
    one_way = round(s["rtt_us"] * 1000 / 2)
    hit = disturbed and _hit(s, direction)
    instants = {0.0}
    if disturbed:
        instants |= {i * s["step_ms"] for i in range(len(s["step_mbps"]))}
    if hit:
        for at in s["burst_at_ms"]:
            instants |= {at, at + s["burst_ms"]}
        for at in s["blackhole_at_ms"]:
            instants |= {at, at + s["blackhole_ms"]}
    steps = []
    for ms in sorted(instants):
        step = lablink.Step(at=round(ms * 1e6), rate=round(rate), delay=one_way)
        if disturbed and s["step_mbps"]:
            index = min(int(ms / s["step_ms"] + 1e-9), len(s["step_mbps"]) - 1)
            step.rate = round(s["step_mbps"][index] * 1e6)
        if disturbed:
            step.held = round(s["reorder_us"] * 1000)
            step.duplicate = s["duplicate_pct"] / 100
            step.corrupt = s["corrupt_pct"] / 100
            step.reorder = s["reorder_pct"] / 100
        if hit:
            step.lose = s["loss_pct"] / 100
            if any(at <= ms < at + s["burst_ms"] for at in s["burst_at_ms"]):
                step.lose = s["burst_pct"] / 100
            if any(at <= ms < at + s["blackhole_ms"] for at in s["blackhole_at_ms"]):
                step.lose = 1.0
        if not steps or dataclasses.replace(step, at=0) != dataclasses.replace(steps[-1], at=0):
            steps.append(step)
    if len(steps) > lablink.MAX_STEPS:
        raise LabError(f"{len(steps)} changes in time are more than {lablink.MAX_STEPS}")
    return steps


def plan(s):
    """The Plan for consistent settings."""
    hosts = s["hosts"]
    split = s["topology"] == "racks"
    racks = [(1 if i < hosts / 2 else 2) if split else 1 for i in range(hosts)]
    receivers, senders = _directions(s)
    rate = s["rate_mbps"] * 1e6
    nic = s["nic_mbps"] * 1e6 or rate
    ports, rates = [], {}

    def add(kind, host, ns, dev, port_rate, queue, direction, disturbed):
        steps = _steps(s, port_rate, disturbed, direction)
        if kind != "port":
            # Propagation is at the last hop, once.
            steps = [dataclasses.replace(step, delay=0) for step in steps]
        hit = disturbed and _hit(s, direction)
        ports.append(Port(
            number=len(ports) + 1, host=host, kind=kind, ns=ns, dev=dev,
            queue_packets=queue[0], queue_bytes=queue[1],
            mark_packets=0 if kind == "nic" else s["ecn_packets"],
            mtu=s["mtu"], overhead=s["frame_overhead"], direction=direction, steps=steps,
            ge=tuple(s[f"ge_{k}_pct"] / 100 for k in ("enter", "leave", "bad", "good")) if hit else (0.0,) * 4,
        ))

    for host in range(1, hosts + 1):
        slow = s["slow_mbps"] * 1e6 if host == s["slow_host"] else math.inf
        rates[host] = min(nic, slow)
        direction = NEITHER
        if host in receivers:
            direction = "both" if host in senders else FORWARD
        elif host in senders:
            direction = BACK
        add("nic", host, f"h{host}", "data", min(nic, slow), (s["nic_queue_packets"], 0), NEITHER, False)
        port_rate = min(rate, slow)
        add("port", host, "sw", f"p{host}", port_rate, queue_of(s, port_rate), direction, not split)
    if split:
        uplink = s["uplink_mbps"] * 1e6 or rate
        queue = (s["uplink_queue_packets"], 0) if s["uplink_queue_packets"] else queue_of(s, uplink)
        for rack in (1, 2):
            sides = {racks[h - 1] for h in receivers}
            direction = "both" if len(sides) == 2 else (FORWARD if sides != {rack} else BACK)
            add("uplink", 0, "sw", f"up{rack}", uplink, queue, direction, True)
    return Plan(hosts=hosts, mtu=s["mtu"], racks=racks, ports=ports, rates=rates)
