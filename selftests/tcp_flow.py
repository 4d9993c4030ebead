#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""TCP for the scripts: tcp_flow.py recv ADDRESS | send ADDRESS PORT CONGESTION |
many ADDRESS PORT COUNT

"recv" prints its port and takes what comes from any number of connections, "send" sends
until it is killed, "many" opens connections one after the other, sends a little on each,
and closes it.
"""
import selectors
import socket
import sys


def recv(address):
    listener = socket.create_server((address, 0), backlog=128)
    print(f"ready port={listener.getsockname()[1]}", flush=True)
    events = selectors.DefaultSelector()
    events.register(listener, selectors.EVENT_READ)
    buffer = bytearray(1 << 18)
    while True:
        for key, _ in events.select():
            if key.fileobj is listener:
                events.register(listener.accept()[0], selectors.EVENT_READ)
            elif not key.fileobj.recv_into(buffer):
                events.unregister(key.fileobj)
                key.fileobj.close()


def send(address, port, congestion):
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    s.connect((address, int(port)))
    print("connected", flush=True)
    data = bytes(1 << 17)
    while True:
        s.sendall(data)


def many(address, port, count):
    for _ in range(int(count)):
        with socket.create_connection((address, int(port))) as s:
            s.sendall(bytes(3000))
    print(f"done count={count}", flush=True)


if __name__ == "__main__":
    {"recv": recv, "send": send, "many": many}[sys.argv[1]](*sys.argv[2:])
