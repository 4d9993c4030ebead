# SPDX-License-Identifier: GPL-2.0
"""The transports a workload can run over."""

import dataclasses

from .errors import LabError
from .schema import unknown


@dataclasses.dataclass(frozen=True)
class Transport:
    """How dblp-perf is told, and what it can do."""

    name: str
    partial: bool = False  # may leave a part of a message out
    module: bool = False  # needs dblp.ko
    ecn: bool = False


TRANSPORTS = {
    t.name: t
    for t in (
        Transport("dblp", partial=True, module=True),
        Transport("tcp-cubic"),
        Transport("tcp-bbr"),
        Transport("tcp-dctcp", ecn=True),
        Transport("sctp"),
        Transport("pr-sctp-ttl", partial=True),
        Transport("pr-sctp-rtx", partial=True),
        Transport("udp", partial=True),
    )
}


def parse(text):
    """Transports from a list with commas. "NAME@LABEL" is NAME once more, with
    other chance: for a control, in which no difference may be seen."""
    result = []
    for word in text.split(","):
        name, _, label = word.partition("@")
        if name not in TRANSPORTS:
            raise unknown("transport", name, TRANSPORTS)
        if "@" in word and not (label.isascii() and label.isalnum()):
            raise LabError(f"transport '{word}': the label after @ is not a word")
        if word in result:
            raise LabError(f"transport '{word}' is named twice")
        result.append(word)
    return result


def of(word):
    """The transport of a word as parse() returns them."""
    return TRANSPORTS[word.partition("@")[0]]
