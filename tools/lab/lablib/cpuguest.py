# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest of "lab cpu": two hosts, one veth pair, one CPU on which time
is instructions. What counts is time that was not idle; a short and a long run of
the same are compared, so that starting and ending count nothing.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PORT = "12865"
REPEATS = 3
SECONDS = {"stream": (0.05, 0.2), "rr64": (0.03, 0.12)}
MESSAGE = {"stream": "1048576", "rr64": "64"}
TEST = {"stream": "STREAM", "rr64": "RR"}
COUNT = "/dev/shm/lab_count.ko"

def busy_ns():
    """Time that was not idle, on the one CPU there is."""
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    text = pathlib.Path("/proc/timer_list").read_text()
    return now - int(re.search(r"\.idle_sleeptime *: (\d+) nsecs", text).group(1))


def sh(*words):
    """A command that must succeed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:6])}: {done.stderr.strip()}")
    return done.stdout


def network(path):
    """Two namespaces; path nic is cut into packets by the sender, and put together
    again by the receiver, as with a card that can do neither."""
    for ns in "ab":
        subprocess.run(["ip", "netns", "del", ns], capture_output=True, check=False)
        sh("ip", "netns", "add", ns)
    for link, net in (("data", "10.1.0"), ("ctl", "10.0.0")):
        sh("ip", "link", "add", link, "netns", "a", "type", "veth", "peer", "name", link, "netns", "b")
        for number, ns in enumerate("ab", 1):
            sh("ip", "-n", ns, "link", "set", link, "up")
            sh("ip", "-n", ns, "addr", "add", f"{net}.{number}/24", "dev", link)
    for ns in "ab":
        sh("ip", "-n", ns, "link", "set", "lo", "up")
        if path == "nic":
            sh("ip", "netns", "exec", ns, "ethtool", "-K", "data", "tso", "off", "tx-udp-segmentation", "off",
               "tx-sctp-segmentation", "off", "gro", "on")
        sh("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 16777216",
           "net.ipv4.tcp_wmem=4096 65536 16777216")


def inside(ns):
    """For preexec_fn."""
    fd = os.open(f"/run/netns/{ns}", os.O_RDONLY)

    def enter():
        if LIBC.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    return enter


class Server:
    """dblp-perf that listens on host b."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "--server", "-B", "10.0.0.2", "-p", PORT, "--jitter-us", "0"],
                                        preexec_fn=inside("b"))
        deadline = time.monotonic() + 30
        while ":3241 " not in pathlib.Path(f"/proc/{self.process.pid}/net/tcp").read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("dblp-perf --server does not listen")
            time.sleep(0.01)

    def stop(self):
        """Ends it."""
        self.process.terminate()
        self.process.wait()


def measure(program, transport, workload, seconds):
    """(instructions, bytes or exchanges) of one run."""
    before = busy_ns()
    done = subprocess.run(
        ["timeout", "60", program, "-H", "10.0.0.2", "-p", PORT, "-B", "10.0.0.1", "-t", TEST[workload], "-T", transport, "-J",
         "--jitter-us", "0", "--seed", "1", "--", "-H", "10.1.0.2", "-L", "10.1.0.1", "-l", str(seconds),
         "-m", MESSAGE[workload], "--no-verify"], capture_output=True, text=True, preexec_fn=inside("a"), check=False)
    spent = busy_ns() - before
    if done.returncode:
        words = "no end within 60 s of virtual time" if done.returncode == 124 else done.stderr.strip().splitlines()[-1:]
        raise SystemExit(f"{transport} {workload}: {words}")
    output = json.loads(done.stdout)
    return spent, amount(output, workload)


def amount(output, workload):
    """What was done, as dblp-perf says."""
    return output["end"]["bytes"] if workload == "stream" else output["end"]["messages"]


KINDS = ("copied", "cleared", "summed")


def counted():
    """Bytes so far of each kind, as the module lab_count has seen them."""
    folder = pathlib.Path("/sys/module/lab_count/parameters")
    return {kind: int((folder / kind).read_text()) for kind in KINDS}


def cell(program, transport, workload, path):
    """The record of one combination."""
    print(f"{path} {workload} {transport}", flush=True)
    short, long = SECONDS[workload]
    unit = "byte" if workload == "stream" else "exchange"
    measure(program, transport, workload, short)  # loads modules, fills caches
    values = []
    for _ in range(REPEATS):
        (i1, n1), (i2, n2) = (measure(program, transport, workload, s) for s in (short, long))
        if n2 <= n1:
            raise SystemExit(f"{transport} {workload}: {n2} in {long} s and {n1} in {short} s")
        values.append((i2 - i1) / (n2 - n1))
    # Apart from the rest: to count takes time.
    sh("insmod", COUNT)
    sums, amounts = [counted()], []
    for seconds in SECONDS[workload]:
        amounts.append(measure(program, transport, workload, seconds)[1])
        sums.append(counted())
    sh("rmmod", "lab_count")
    each = {f"{k}_bytes_per_{unit}":
            round((sums[2][k] - 2 * sums[1][k] + sums[0][k]) / (amounts[1] - amounts[0]), 4) + 0.0 for k in KINDS}
    return {"path": path, "workload": workload, "transport": transport,
            f"instructions_per_{unit}": round(statistics.median(values), 4), "min": round(min(values), 4),
            "max": round(max(values), 4), "n": REPEATS} | each


def main(folder):
    """All of the job."""
    job = json.loads((folder / "job.json").read_text())
    # From memory: a file of the host's would be read in real time.
    program = shutil.copy(folder / "dblp-perf", "/dev/shm/dblp-perf")
    shutil.copy(folder / "lab_count.ko", COUNT)
    for name in ("tcp_bbr", "tcp_dctcp", "sctp"):
        subprocess.run(["modprobe", name], capture_output=True, check=False)
    result = []
    for path in job["paths"]:
        network(path)
        for transport in job["transports"]:
            server = Server(program)
            for workload in job["workloads"]:
                result.append(cell(program, transport, workload, path))
            server.stop()
    (folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
