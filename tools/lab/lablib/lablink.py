# SPDX-License-Identifier: GPL-2.0
"""The other end of tools/lab/link/lablink.h: what the qdisc is told and tells,
and what its chance must have been."""

import dataclasses
import struct

from .errors import LabError

MAX_STEPS = 32
ALWAYS = 0xFFFFFFFF

ATTR_PARAMS, ATTR_STEPS = 1, 2
LOSE, DUPLICATE, CORRUPT, WHICH_BIT, REORDER, GE_CHANGE, GE_LOSE = range(7)

_PARAMS = struct.Struct("=QQ10I")
_STEP = struct.Struct("=QQ6I")
_COUNT = struct.Struct("=7Q")
_STATS = struct.Struct("=QQQIIQQQ")

_MASK = (1 << 64) - 1


def fraction(probability):
    """A probability as the kernel has it."""
    if probability >= 1:
        return ALWAYS
    return min(round(probability * (1 << 32)), ALWAYS - 1)


@dataclasses.dataclass
class Step:
    """struct lablink_step, with probabilities as numbers from 0 to 1."""

    at: int
    rate: int
    delay: int
    held: int = 0
    lose: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    reorder: float = 0.0

    def pack(self):
        """As the kernel reads it."""
        return _STEP.pack(self.at, self.rate, self.delay, self.held, fraction(self.lose),
                          fraction(self.duplicate), fraction(self.corrupt), fraction(self.reorder))


def pack_params(port, seed, epoch):
    """struct lablink_params of a planned port."""
    return _PARAMS.pack(seed & _MASK, epoch, port.number, port.overhead, port.queue_packets,
                        port.queue_bytes, port.mark_packets, 0, *(fraction(p) for p in port.ge))


def pack_steps(port):
    """The steps of a planned port."""
    return b"".join(step.pack() for step in port.steps)


def unpack_stats(data):
    """struct lablink_stats as a dict."""
    if len(data) < _STATS.size:
        raise LabError("the link's statistics are too short")
    (before, dropped, marked, peak_packets, peak_bytes, largest, last, steps) = _STATS.unpack_from(data)
    if len(data) != _STATS.size + steps * _COUNT.size:
        raise LabError("the link's statistics have another length than they say")
    names = ("packets", "bytes", "busy", "lost", "duplicated", "corrupted", "reordered")
    counts = [dict(zip(names, _COUNT.unpack_from(data, _STATS.size + i * _COUNT.size))) for i in range(steps)]
    return {"before": before, "dropped": dropped, "marked": marked, "peak_packets": peak_packets,
            "peak_bytes": peak_bytes, "largest": largest, "last": last, "steps": counts}


def mix(z):
    """A 64-bit hash, the same as in the kernel."""
    z = (z + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class Chance:
    """The chance of one port, computed again."""

    def __init__(self, seed, port):
        self._key = mix(mix(seed & _MASK) ^ port)

    def happens(self, index, purpose, threshold):
        """Whether it hit packet number `index`."""
        if not threshold:
            return False
        if threshold == ALWAYS:
            return True
        return mix(mix(self._key ^ index) ^ purpose) >> 32 < threshold


def expected(port, seed, stats):
    """What lost, duplicated and reordered must be in each step, given its packets.

    Nothing is random any more once the packets of each step are counted: this is
    not a test of likelihood but an equation. (Wrong bits are not predicted: a
    frame can be too short for one.)
    """
    chance = Chance(seed, port.number)
    enter, leave, bad, good = (fraction(p) for p in port.ge)
    in_bad = False
    index = 0
    result = []
    for step, count in zip(port.steps, stats["steps"]):
        lose, duplicate, reorder = fraction(step.lose), fraction(step.duplicate), fraction(step.reorder)
        got = {"lost": 0, "duplicated": 0, "reordered": 0}
        plain = not (duplicate or reorder or enter or bad or good)
        if plain and lose in (0, ALWAYS):
            got["lost"] = count["packets"] if lose else 0
            index += count["packets"]
            result.append(got)
            continue
        for i in range(index, index + count["packets"]):
            lost = False
            if enter or bad or good:
                if chance.happens(i, GE_CHANGE, leave if in_bad else enter):
                    in_bad = not in_bad
                lost = chance.happens(i, GE_LOSE, bad if in_bad else good)
            if lost or chance.happens(i, LOSE, lose):
                got["lost"] += 1
                continue
            got["reordered"] += chance.happens(i, REORDER, reorder)
            got["duplicated"] += chance.happens(i, DUPLICATE, duplicate)
        index += count["packets"]
        result.append(got)
    return result
