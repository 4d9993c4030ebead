# SPDX-License-Identifier: GPL-2.0
"""Every setting that a scenario can have: its table, type, range and default.

A setting has one name everywhere: in the scenario's file, in --set, and in the
point of a result.
"""

import dataclasses
import difflib
import math

from .errors import LabError


@dataclasses.dataclass(frozen=True)
class Setting:
    """One setting; `lo` and `hi` bound numbers and the entries of lists."""

    table: str
    kind: str  # int, float, bool, word, ints, floats
    default: object
    lo: float = 0
    hi: float = math.inf
    words: tuple = ()
    text: str = ""


def _int(table, default, lo, hi, text):
    return Setting(table, "int", default, lo, hi, text=text)


def _float(table, default, lo, hi, text):
    return Setting(table, "float", default, lo, hi, text=text)


def _word(table, default, words, text):
    return Setting(table, "word", default, words=tuple(words), text=text)


_T, _D, _W = "topology", "disturb", "workload"
_SECOND_US = 1_000_000
_LARGEST = 1 << 40

SETTINGS = {
    # The network. Rates are those of the wire, preamble and gap included.
    "topology": _word(_T, "star", ("star", "racks"), "star: one switch; racks: two, half of the hosts on each, with an uplink between them"),
    "hosts": _int(_T, 0, 0, 64, "hosts, each in a network namespace; 0: as many as the workload needs"),
    "rate_mbps": _float(_T, 1000.0, 0.1, 100_000, "of the switch's ports"),
    "nic_mbps": _float(_T, 0.0, 0, 100_000, "of the hosts' cards; 0: as the ports"),
    "rtt_us": _float(_T, 100.0, 0, 4 * _SECOND_US, "there and back, propagation only"),
    "mtu": _int(_T, 1500, 576, 9000, "of all links"),
    "frame_overhead": _int(_T, 24, 0, 100, "bytes of the wire per Ethernet frame: preamble, check sum, gap"),
    "nic_queue_packets": _int(_T, 1000, 1, 1_000_000, "queue of the hosts' cards"),
    "queue_packets": _int(_T, 0, 0, 1_000_000, "queue of each port; 0: not limited in packets"),
    "queue_bytes": _int(_T, 0, 0, 1 << 32, "the same in bytes"),
    "queue_bdp": _float(_T, 0.0, 0, 1000, "the same in products of rate and round trip"),
    "ecn_packets": _int(_T, 0, 0, 1_000_000, "mark packets that find a queue this long; 0: never"),
    "uplink_mbps": _float(_T, 0.0, 0, 100_000, "racks: of the link between them; 0: as the ports"),
    "uplink_queue_packets": _int(_T, 0, 0, 1_000_000, "racks: its queue; 0: as the ports"),

    # What goes wrong. Times count from the epoch, at which the workload starts.
    "loss_pct": _float(_D, 0.0, 0, 100, "random loss"),
    "loss_where": _word(_D, "all", ("all", "forward", "back"), "loss and bursts hit all ports, those to receivers, or those to senders"),
    "ge_enter_pct": _float(_D, 0.0, 0, 100, "Gilbert-Elliott: chance per packet to get into the bad state"),
    "ge_leave_pct": _float(_D, 100.0, 0, 100, "to get out of it"),
    "ge_bad_pct": _float(_D, 0.0, 0, 100, "loss in the bad state"),
    "ge_good_pct": _float(_D, 0.0, 0, 100, "loss in the good state"),
    "burst_pct": _float(_D, 0.0, 0, 100, "loss while a burst lasts"),
    "burst_at_ms": Setting(_D, "floats", (), 0, 3.6e6, text="when bursts start"),
    "burst_ms": _float(_D, 200.0, 0, 3.6e6, "how long each lasts"),
    "step_mbps": Setting(_D, "floats", (), 0.1, 100_000, text="rates of the ports, one after the other"),
    "step_ms": _float(_D, 1000.0, 0.001, 3.6e6, "how long each lasts; the last one stays"),
    "reorder_pct": _float(_D, 0.0, 0, 100, "packets that are held back"),
    "reorder_us": _float(_D, 0.0, 0, _SECOND_US, "for how long"),
    "duplicate_pct": _float(_D, 0.0, 0, 100, "packets that come twice"),
    "corrupt_pct": _float(_D, 0.0, 0, 100, "packets with a wrong bit"),
    "blackhole_at_ms": Setting(_D, "floats", (), 0, 3.6e6, text="from when on nothing passes in direction loss_where"),
    "blackhole_ms": _float(_D, 0.0, 0, 3.6e6, "how long"),
    "slow_host": _int(_D, 0, 0, 64, "number of a host, from 1, with a slow card and port; 0: none"),
    "slow_mbps": _float(_D, 10.0, 0.1, 100_000, "their rate"),
    "pause_host": _int(_D, 0, 0, 64, "number of a host whose processes are stopped for a while; 0: none"),
    "pause_at_ms": _float(_D, 0.0, 0, 3.6e6, "from when on"),
    "pause_ms": _float(_D, 0.0, 0, 3.6e6, "how long"),
    "jitter_us": _float(_D, 0.0, 0, _SECOND_US, "hosts start up to this much later, by seed"),
    "settle_s": _float(_D, 0.0, 0, 100, "background flows start this long before the workload"),
    "background_flows": _int(_D, 0, 0, 16, "endless flows beside the workload, each between two hosts of its own"),
    "background_transport": _word(_D, "tcp-cubic", ("tcp-cubic", "tcp-bbr", "tcp-dctcp", "sctp"), "what they use"),

    # What runs.
    "test": _word(_W, "message", ("stream", "maerts", "rr", "message", "incast", "ps", "ring", "transpose"), "test of dblp-perf"),
    "bytes": _int(_W, 1_000_000, 1, _LARGEST, "of a message, or of a rank's vector"),
    "rounds": _int(_W, 1, 1, 1_000_000, "how many of them, one after the other"),
    "warm_rounds": _int(_W, 0, 0, 1000, "rounds before them that do not count"),
    "flows": _int(_W, 1, 1, 62, "stream: flows, each between two hosts of its own"),
    "senders": _int(_W, 0, 0, 63, "incast: hosts that send at once; 0: all but one"),
    "seconds": _float(_W, 10.0, 0.001, 3600, "stream, maerts, rr: how long"),
    "compute_us": _float(_W, 0.0, 0, 60 * _SECOND_US, "between two rounds"),
    "tolerance_ppm": _int(_W, 0, 0, 1_000_000, "part of a message that may be missing, where a transport can"),
    "mode": _word(_W, "pressure", ("pressure", "eager"), "dblp: see DBLP_MODE_*"),
    "phase_ppm": Setting(_W, "ints", (), 0, 1_000_000, text="dblp: tolerances of the rounds in turn, instead of tolerance_ppm"),
    "deadline_us": _int(_W, 0, 0, 1 << 32, "dblp, pr-sctp-ttl: of a message; 0: none"),
    "max_rtx": _int(_W, 0, 0, 65535, "pr-sctp-rtx: retransmissions at most"),
    "limit_s": _float(_W, 600.0, 0.001, 100_000, "virtual time that the workload may take"),
}

TABLES = (_T, _D, _W)


def unknown(what, name, known):
    """An error about a name that is not one of those known, with the nearest."""
    near = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f": did you mean '{near[0]}'?" if near else f": known are {', '.join(sorted(known))}"
    return LabError(f"unknown {what} '{name}'{hint}")


def _number(name, value, lo, hi, integer):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise LabError(f"{name}: '{value}' is not a number")
    if integer and value != int(value):
        raise LabError(f"{name}: {value} is not a whole number")
    if not math.isfinite(value) or not lo <= value <= hi:
        raise LabError(f"{name}: {value} is not between {lo:g} and {hi:g}")
    return int(value) if integer else float(value)


def check(name, value):
    """The value of a setting in its own type, or a LabError."""
    if name not in SETTINGS:
        raise unknown("setting", name, SETTINGS)
    setting = SETTINGS[name]
    integer = setting.kind in ("int", "ints")
    if setting.kind in ("ints", "floats"):
        if not isinstance(value, (list, tuple)):
            value = (value,)
        return tuple(_number(name, v, setting.lo, setting.hi, integer) for v in value)
    if setting.kind == "word":
        if value not in setting.words:
            raise unknown(name, str(value), setting.words)
        return value
    return _number(name, value, setting.lo, setting.hi, integer)


def _parse_number(name, text):
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise LabError(f"{name}: '{text}' is not a number") from None


def parse(name, text):
    """The value that a user wrote in --set; entries of a list are joined by '+'."""
    if name not in SETTINGS:
        raise unknown("setting", name, SETTINGS)
    kind = SETTINGS[name].kind
    if kind == "word":
        return check(name, text)
    if kind in ("ints", "floats"):
        return check(name, [_parse_number(name, t) for t in text.split("+") if t])
    return check(name, _parse_number(name, text))


def defaults():
    """All settings at their defaults."""
    return {name: setting.default for name, setting in SETTINGS.items()}
