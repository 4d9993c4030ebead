# SPDX-License-Identifier: GPL-2.0
"""The little of rtnetlink that tc cannot do: our own qdisc."""

import os
import socket
import struct

from .errors import LabError

NETLINK_ROUTE = 0
RTM_NEWQDISC, RTM_GETQDISC = 36, 38
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_REPLACE, NLM_F_CREATE = 0x100, 0x400
TCA_KIND, TCA_OPTIONS, TCA_XSTATS, TCA_STATS2 = 1, 2, 4, 7
TCA_STATS_APP = 4
TC_H_ROOT = 0xFFFFFFFF
NLA_F_NESTED = 0x8000
NLMSGERR_ATTR_MSG = 1
SOL_NETLINK, NETLINK_EXT_ACK = 270, 11

_HEADER = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BBHiIII")
_ATTR = struct.Struct("=HH")


def attr(kind, data):
    """One attribute, padded."""
    return _ATTR.pack(_ATTR.size + len(data), kind) + data + b"\0" * (-len(data) % 4)


def attrs(data):
    """type -> payload of the attributes in a buffer."""
    result, at = {}, 0
    while at + _ATTR.size <= len(data):
        size, kind = _ATTR.unpack_from(data, at)
        if size < _ATTR.size:
            break
        result[kind & 0x3FFF] = data[at + _ATTR.size:at + size]
        at += size + (-size % 4)
    return result


class Netlink:
    """A socket in the network namespace of whoever creates it."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self._socket.bind((0, 0))
        self._sequence = 0

    def _ask(self, kind, flags, body, what):
        """The messages of the answer, until it is acknowledged or done."""
        self._sequence += 1
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, NLM_F_REQUEST | flags, self._sequence, 0) + body)
        result = []
        while True:
            data = self._socket.recv(65536)
            at = 0
            while at + _HEADER.size <= len(data):
                size, answer, answer_flags, sequence, _ = _HEADER.unpack_from(data, at)
                payload = data[at + _HEADER.size:at + size]
                at += size + (-size % 4)
                if sequence != self._sequence:
                    continue
                if answer == NLMSG_ERROR:
                    self._judge(payload, answer_flags, what)
                if answer in (NLMSG_ERROR, NLMSG_DONE):
                    return result
                result.append(payload)

    @staticmethod
    def _judge(payload, flags, what):
        (error,) = struct.unpack_from("=i", payload)
        if not error:
            return
        text = ""
        if flags & 0x200:  # there are attributes
            (inner,) = struct.unpack_from("=I", payload, 4)
            skip = 4 + (_HEADER.size if flags & 0x100 else inner)
            text = attrs(payload[skip:]).get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode()
        raise LabError(f"{what}: {os.strerror(-error)}" + (f": {text}" if text else ""))

    def set_qdisc(self, dev, kind, options):
        """Makes a qdisc the root of a device, or changes the one there."""
        index = socket.if_nametoindex(dev)
        body = _TCMSG.pack(0, 0, 0, index, 0x10000, TC_H_ROOT, 0)
        body += attr(TCA_KIND, kind.encode() + b"\0") + attr(TCA_OPTIONS | NLA_F_NESTED, options)
        self._ask(RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, body, f"qdisc of {dev}")

    def get_qdiscs(self, kind):
        """index of device -> (options, statistics of its own) of all root qdiscs of a kind.

        As a dump: a single answer has no room for all that ours has to say.
        """
        body = _TCMSG.pack(0, 0, 0, 0, 0, 0, 0)
        result = {}
        for payload in self._ask(RTM_GETQDISC, NLM_F_DUMP, body, "qdiscs"):
            _, _, _, index, _, parent, _ = _TCMSG.unpack_from(payload)
            found = attrs(payload[_TCMSG.size:])
            if parent == TC_H_ROOT and found[TCA_KIND].rstrip(b"\0") == kind.encode():
                result[index] = attrs(found[TCA_OPTIONS]), attrs(found[TCA_STATS2])[TCA_STATS_APP]
        return result
