# SPDX-License-Identifier: GPL-2.0
"""The physical limit of a workload.

An ideal sender fills the link from the first instant, knows at once what was
lost, loses the link's time for it all the same, and stops when the receiver has
as much as the bound asks for. Its packets carry nothing but a UDP header. Losses
count with their expected share, so the limit of a point has no chance in it. No
transport can beat it but by luck.
"""

import math

ETHERNET = 14
UDP_IP = 28


def _packet(plan):
    """(payload, bytes on the wire) of a full packet."""
    overhead = plan.ports[0].overhead
    return plan.mtu - UDP_IP, plan.mtu + ETHERNET + overhead


def _stationary_loss(ge):
    enter, leave, bad, good = ge
    if enter + leave == 0:
        return good
    return good + (bad - good) * enter / (enter + leave)


def _survives(path, at_ns):
    """Share of packets that pass all ports of the path at an instant."""
    share = 1.0
    for port in path:
        step = [s for s in port.steps if s.at <= at_ns][-1]
        share *= (1 - step.lose) * (1 - _stationary_loss(port.ge))
    return share


def _rate(path, at_ns, shares):
    """Bits per second of the narrowest port, and what a flow gets of each."""
    return min([s for s in port.steps if s.at <= at_ns][-1].rate / shares.get(port.number, 1)
               for port in path)


def _first_hops(path, wire, at_ns):
    """A packet is on every wire but the narrowest once more than the stream is."""
    times = [wire * 8 / max([s for s in p.steps if s.at <= at_ns][-1].rate, 1) for p in path]
    return sum(times) - max(times)


def transfer(plan, path, size, start=0.0, shares=None):
    """Seconds from `start` until `size` bytes have got through a path."""
    payload, wire = _packet(plan)
    shares = shares or {}
    packets = size / payload
    # Every packet but the last is full; the last one is shorter.
    full = math.floor(packets)
    left = full * wire + (wire - payload + size - full * payload if packets > full else 0)
    first = min(left, wire)
    now = start * 1e9
    edges = sorted({s.at for port in path for s in port.steps if s.at > now})
    for edge in [*edges, math.inf]:
        speed = _rate(path, now, shares) / 8 * _survives(path, now)
        if speed > 0 and left / speed * 1e9 <= edge - now:
            now += left / speed * 1e9
            left = 0
            break
        if edge == math.inf:
            return math.inf
        left -= speed * (edge - now) / 1e9
        now = edge
    delay = sum([s for s in port.steps if s.at <= now][-1].delay for port in path) / 1e9
    return now / 1e9 - start + delay + _first_hops(path, first, now)


def _needed(s, size):
    """Bytes that must arrive: all but A."""
    return size - size * s["tolerance_ppm"] // 1_000_000


def _round(plan, s, flows, start):
    """Seconds of one round that starts at `start`."""
    size, n = s["bytes"], plan.hosts
    if s["test"] == "message":
        shares = _shares(plan, flows)
        return max(transfer(plan, plan.path(a, b), _needed(s, size), start, shares) for a, b in flows)
    if s["test"] == "incast":
        shares = _shares(plan, flows)
        return max(transfer(plan, plan.path(a, b), _needed(s, size), start, shares) for a, b in flows)
    n -= 2 * s["background_flows"]
    if s["test"] == "ps":
        up = [(i, 1) for i in range(2, n + 1)]
        down = [(1, i) for i in range(2, n + 1)]
        first = max(transfer(plan, plan.path(a, b), _needed(s, size), start, _shares(plan, up)) for a, b in up)
        return first + max(transfer(plan, plan.path(a, b), size, start + first, _shares(plan, down)) for a, b in down)
    part = size / n
    if s["test"] == "transpose":
        everyone = [(a, b) for a in range(1, n + 1) for b in range(1, n + 1) if a != b]
        shares = _shares(plan, everyone)
        first = max(transfer(plan, plan.path(a, b), _needed(s, part), start, shares) for a, b in everyone)
        return first + max(transfer(plan, plan.path(a, b), part, start + first, shares) for a, b in everyone)
    ring = [(i, i % n + 1) for i in range(1, n + 1)]
    shares = _shares(plan, ring)
    total = 0.0
    for _ in range(2 * (n - 1)):
        total += max(transfer(plan, plan.path(a, b), part, start + total, shares) for a, b in ring)
    return total


def _shares(plan, flows):
    """port number -> flows that pass it."""
    shares = {}
    for a, b in flows:
        for port in plan.path(a, b):
            shares[port.number] = shares.get(port.number, 0) + 1
    return shares


def streams(plan, flows, sizes):
    """Seconds in which that many bytes of each flow can get through: what the busiest
    port needs for its own."""
    totals = {}
    for (a, b), size in zip(flows, sizes):
        for port in plan.path(a, b):
            totals[port.number] = totals.get(port.number, 0) + size
    return max(transfer(plan, [port], totals[port.number]) for port in plan.ports if port.number in totals)


def limit(plan, s, flows):
    """Seconds that the rounds take at least, or None if there are none.

    They all cost the same once nothing changes any more.
    """
    if s["test"] in ("stream", "maerts", "rr"):
        return None
    last_change = max(step.at for port in plan.ports for step in port.steps) / 1e9
    pause = s["compute_us"] / 1e6
    phases = s["phase_ppm"] or (s["tolerance_ppm"],)
    steady = {}  # tolerance -> seconds of a round in which nothing changes
    now = total = 0.0
    for done in range(s["warm_rounds"] + s["rounds"]):
        # Warm rounds count from 0, and so do those after them.
        tolerance = phases[(done if done < s["warm_rounds"] else done - s["warm_rounds"]) % len(phases)]
        one = steady.get(tolerance)
        if one is None:
            one = _round(plan, s | {"tolerance_ppm": tolerance}, flows, now)
            if now > last_change:
                steady[tolerance] = one
        now += one + pause
        if done >= s["warm_rounds"]:
            total += one
    return total
