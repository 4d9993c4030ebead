# SPDX-License-Identifier: GPL-2.0
"""Runs inside the guest: builds the network, proves it, runs the workload in it,
and leaves what happened in the folder of the run. Takes orders from job.json
there; writes result.json, and last of all verdict: "ok", or what went wrong.
"""

import contextlib
import ctypes
import gzip
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback

from . import lablink, netlink
from .errors import LabError

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
POWER_OFF = 0x4321FEDC
SO_TIMESTAMPNS = 35
PROBE_PORT = 9
COMPLAINTS = re.compile(
    r"WARNING:|\bBUG\b|\bOops\b|INFO: .*(lock|task|detected|trying)|unreferenced object|KASAN|UBSAN|ODEBUG"
    r"|refcount_t|general protection fault|Kernel panic|[a-z_]+ corruption|unregister_netdevice: waiting for"
    r"|Objects remaining|Call Trace")


def now_ns():
    """Virtual time."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def run(*argv, stdin=None):
    """Runs a command that must succeed."""
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{' '.join(argv[:4])}: {(done.stderr or done.stdout).strip()[:300]}")
    return done.stdout


class Namespaces:
    """Network namespaces by name; "" is the one the guest started in."""

    def __init__(self):
        self._files = {"": os.open("/proc/self/ns/net", os.O_RDONLY)}

    def add(self, name):
        """Creates one."""
        run("ip", "netns", "add", name)
        self._files[name] = os.open(f"/run/netns/{name}", os.O_RDONLY)

    def enter(self, name):
        """Moves this process there."""
        if LIBC.setns(self._files[name], CLONE_NEWNET):
            raise LabError(f"setns: {os.strerror(ctypes.get_errno())}")

    @contextlib.contextmanager
    def inside(self, name):
        """Moves this process there for a while."""
        self.enter(name)
        try:
            yield
        finally:
            self.enter("")


def sysctl(name, value):
    """Sets one, in the present namespace."""
    path = pathlib.Path("/proc/sys") / name.replace(".", "/")
    try:
        path.write_text(str(value))
    except OSError as error:
        raise LabError(f"sysctl {name}={value}: {error.strerror}") from None


def assert_clock():
    """The clock must be virtual, exact, and stand still while the CPU works."""
    source = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    if source != "time-travel-clock":
        raise LabError(f"the clock is {source}: the guest is not in virtual time")
    # A short while of work may not show that time passes meanwhile.
    if "time-travel=inf-cpu" not in pathlib.Path("/proc/cmdline").read_text().split():
        raise LabError("the guest's clock counts the CPU's work")
    config = gzip.decompress(pathlib.Path("/proc/config.gz").read_bytes()).decode()
    if "\nCONFIG_HZ=250\n" not in config:
        raise LabError("the kernel has not HZ=250")
    if os.cpu_count() != 1:
        raise LabError(f"the guest has {os.cpu_count()} CPUs, not 1")
    start = now_ns()
    sum(range(100_000))
    if now_ns() - start > 1000:
        raise LabError("time passes while the CPU works")
    start = now_ns()
    time.sleep(0.25)
    slept = now_ns() - start
    if abs(slept - 250_000_000) > 100_000:
        raise LabError(f"a sleep of 250 ms took {slept} ns")


class Network:
    """The hosts and switches of a job."""

    def __init__(self, job):
        self.job = job
        self.spaces = Namespaces()
        self.netlinks = {}

    def build(self):
        """Namespaces, links, addresses; no qdiscs yet."""
        job, hosts = self.job, range(1, self.job["hosts"] + 1)
        for name in ["ctl", "sw", *(f"h{h}" for h in hosts)]:
            self.spaces.add(name)
        lines = []
        for h in hosts:
            lines += [f"link add p{h} netns sw mtu {job['mtu']} type veth peer name data netns h{h} mtu {job['mtu']}",
                      f"link add c{h} netns ctl mtu 65000 type veth peer name ctl netns h{h} mtu 65000"]
        run("ip", "-batch", "-", stdin="\n".join(lines))
        self._bridge("ctl", ["br1"], {f"c{h}": "br1" for h in hosts})
        racks = sorted(set(job["racks"]))
        ports = {f"p{h}": f"br{job['racks'][h - 1]}" for h in hosts}
        if len(racks) == 2:
            run("ip", "-n", "sw", "link", "add", "up1", "mtu", str(job["mtu"]), "type", "veth",
                "peer", "name", "up2", "mtu", str(job["mtu"]))
            ports |= {"up1": "br1", "up2": "br2"}
        self._bridge("sw", [f"br{r}" for r in racks], ports)
        for h in hosts:
            self._host(h)
        self._forwarding(ports)
        for name, value in job["global_sysctls"].items():
            sysctl(name, value)

    def _bridge(self, ns, bridges, ports):
        lines = []
        with self.spaces.inside(ns):
            sysctl("net.ipv6.conf.all.disable_ipv6", 1)
            sysctl("net.ipv6.conf.default.disable_ipv6", 1)
        for bridge in bridges:
            lines += [f"link add {bridge} mtu {self.job['mtu'] if ns == 'sw' else 65000} type bridge"
                      " stp_state 0 mcast_snooping 0 forward_delay 0",
                      f"link set {bridge} up"]
        for port, bridge in ports.items():
            lines += [f"link set {port} master {bridge}", f"link set {port} up"]
        run("ip", "-n", ns, "-batch", "-", stdin="\n".join(lines))

    @staticmethod
    def _mac(h):
        return f"02:00:00:00:00:{h:02x}"

    def _host(self, h):
        """Addresses, and the neighbours, so that no ARP is among what is counted."""
        with self.spaces.inside(f"h{h}"):
            sysctl("net.ipv6.conf.all.disable_ipv6", 1)
            sysctl("net.ipv6.conf.default.disable_ipv6", 1)
            for name, value in self.job["sysctls"].items():
                sysctl(name, value)
        lines = [f"link set data address {self._mac(h)}", "link set lo up", "link set data up", "link set ctl up",
                 f"addr add 10.1.0.{h}/24 dev data", f"addr add 10.0.0.{h}/24 dev ctl"]
        lines += [f"neigh add 10.1.0.{o} lladdr {self._mac(o)} dev data nud permanent"
                  for o in range(1, self.job["hosts"] + 1) if o != h]
        run("ip", "-n", f"h{h}", "-batch", "-", stdin="\n".join(lines))

    def _forwarding(self, ports):
        """What the switches would learn, so that nothing is flooded."""
        lines = []
        for h in range(1, self.job["hosts"] + 1):
            lines.append(f"fdb add {self._mac(h)} dev p{h} master static")
            if "up1" in ports:
                lines.append(f"fdb add {self._mac(h)} dev up{3 - self.job['racks'][h - 1]} master static")
        run("bridge", "-n", "sw", "-batch", "-", stdin="\n".join(lines))

    def _netlink(self, ns):
        if ns not in self.netlinks:
            with self.spaces.inside(ns):
                self.netlinks[ns] = netlink.Netlink()
        return self.netlinks[ns]

    def shape(self, epoch):
        """Gives each port its rate and what will happen to it, and reads it back."""
        wanted = {}
        for port in self.job["ports"]:
            params = bytearray.fromhex(port["params"])
            struct.pack_into("=Q", params, 8, epoch)
            wanted[port["ns"], port["dev"]] = bytes(params), bytes.fromhex(port["steps"])
        for (ns, dev), (params, steps) in wanted.items():
            nl = self._netlink(ns)
            with self.spaces.inside(ns):
                nl.set_qdisc(dev, "lablink",
                             netlink.attr(lablink.ATTR_PARAMS, params) + netlink.attr(lablink.ATTR_STEPS, steps))
        for where, (options, _) in self._read_ports().items():
            if (options.get(lablink.ATTR_PARAMS), options.get(lablink.ATTR_STEPS)) != wanted[where]:
                raise LabError(f"port {where[1]} of {where[0]} is not shaped as asked")

    def _read_ports(self):
        """(namespace, device) -> (options, statistics) of all ports."""
        result = {}
        for ns in dict.fromkeys(port["ns"] for port in self.job["ports"]):
            found = self._netlink(ns).get_qdiscs("lablink")
            with self.spaces.inside(ns):
                result |= {(ns, socket.if_indextoname(index)): what for index, what in found.items()}
        missing = [p["dev"] for p in self.job["ports"] if (p["ns"], p["dev"]) not in result]
        if missing:
            raise LabError(f"port {missing[0]} has lost its qdisc")
        return result

    def statistics(self):
        """What each port counted."""
        found = self._read_ports()
        return [lablink.unpack_stats(found[p["ns"], p["dev"]][1]) for p in self.job["ports"]]

    def probe(self):
        """Sends a few packets from each host to another and compares with the plan
        when they arrive. Returns what was measured."""
        return [self._probe_one(p) for p in self.job["probes"]]

    def _probe_one(self, probe):
        with self.spaces.inside(f"h{probe['to']}"):
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sink.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            sink.bind((f"10.1.0.{probe['to']}", PROBE_PORT))
            sink.settimeout(30)
        with self.spaces.inside(f"h{probe['from']}"):
            source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            source.connect((f"10.1.0.{probe['to']}", PROBE_PORT))
        with sink, source:
            payload = bytes(probe["payload"])
            start = time.clock_gettime_ns(time.CLOCK_REALTIME)
            for _ in probe["arrivals"]:
                source.send(payload)
            times = []
            for expected in probe["arrivals"]:
                try:
                    _, extra, _, _ = sink.recvmsg(0, 64)
                except TimeoutError:
                    raise LabError(f"probe from host {probe['from']} to {probe['to']}: a packet got lost") from None
                seconds, ns = struct.unpack_from("=qq", extra[0][2])
                times.append(seconds * 1_000_000_000 + ns - start)
                # Sending and reading the clock take some ns of virtual time.
                if abs(times[-1] - expected) > 2000 + expected // 1000:
                    raise LabError(f"probe from host {probe['from']} to {probe['to']}: packet {len(times)} "
                                   f"arrives after {times[-1]} ns, not {expected}")
        return times


class Workload:
    """The processes of a job."""

    def __init__(self, job, network, folder):
        self.job = job
        self.network = network
        self.folder = folder
        self.started = []

    def start(self, what, kind, number):
        """Starts one process in the namespace of its host."""
        spaces, name = self.network.spaces, f"{kind}{number}"
        out = (self.folder / f"{name}.out").open("wb")
        err = (self.folder / f"{name}.err").open("wb")
        with out, err:
            process = subprocess.Popen(what["argv"], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       preexec_fn=lambda: spaces.enter(f"h{what['host']}"))
        self.started.append((name, what, process))
        return process

    def _last_words(self, name):
        text = (self.folder / f"{name}.err").read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "it said nothing"

    def wait_ready(self):
        """Until all servers listen."""
        deadline = now_ns() + 5_000_000_000
        for name, what, process in self.started:
            while not self._listens(process.pid, *what["ready"]):
                if process.poll() is not None:
                    raise LabError(f"{name} on host {what['host']} ended: {self._last_words(name)}")
                if now_ns() > deadline:
                    raise LabError(f"{name} on host {what['host']} does not listen on {what['ready']}")
                time.sleep(0.001)

    @staticmethod
    def _listens(pid, address, port):
        wanted = f"{struct.unpack('=I', socket.inet_aton(address))[0]:08X}:{port:04X}"
        try:
            lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        except OSError:
            return False
        return any(f[1] == wanted and f[3] == "0A" for f in (line.split() for line in lines))

    def wait_clients(self, clients, epoch):
        """Until all of them have ended well, stopping and continuing hosts on the way."""
        limit = now_ns() + round(self.job["limit_s"] * 1e9)
        events = [(epoch + at, sig) for at, sig in self.job["signals"]]
        poll = select.poll()
        waiting = {}
        for name, what, process in clients:
            fd = os.pidfd_open(process.pid)
            poll.register(fd, select.POLLIN)
            waiting[fd] = (name, what, process)
        while waiting:
            until = min([limit, *(at for at, _ in events[:1])])
            for fd, _ in poll.poll(max(0, (until - now_ns()) / 1e6)):
                name, what, process = waiting.pop(fd)
                poll.unregister(fd)
                os.close(fd)
                if process.wait():
                    raise LabError(f"{name} on host {what['host']} failed: {self._last_words(name)}")
            while events and events[0][0] <= now_ns():
                _, sig = events.pop(0)
                self._signal(sig)
            if waiting and now_ns() >= limit:
                raise LabError(f"the workload did not end within limit_s = {self.job['limit_s']:g} s of virtual time")

    def _signal(self, sig):
        for _, what, process in self.started:
            if what["host"] == self.job["signal_host"] and process.poll() is None:
                process.send_signal(getattr(signal, sig))

    def stop(self):
        """Ends what still runs."""
        for _, _, process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for name, what, process in self.started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise LabError(f"{name} on host {what['host']} did not end on SIGTERM") from None


def _counters(path):
    """/proc/net/snmp and netstat as one dict."""
    result = {}
    lines = pathlib.Path(path).read_text().splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        group = names.split(":")[0]
        result |= {f"{group}.{n}": int(v) for n, v in zip(names.split()[1:], values.split()[1:]) if v != "0"}
    return result


def host_counters(network, host):
    """What the network stack of a host counted."""
    with network.spaces.inside(f"h{host}"):
        result = _counters("/proc/net/snmp") | _counters("/proc/net/netstat")
        for name in ("sctp/snmp", "dblp/snmp"):
            path = pathlib.Path("/proc/net") / name
            if path.exists():
                words = (line.split() for line in path.read_text().splitlines())
                result |= {f"{name.partition('/')[0]}.{w[0]}": int(w[1]) for w in words if len(w) == 2 and w[1] != "0"}
        return result


def assert_no_silent_loss():
    """Packets that the guest's own CPU queue lost would count nowhere."""
    for line in pathlib.Path("/proc/net/softnet_stat").read_text().splitlines():
        if int(line.split()[1], 16):
            raise LabError("packets were lost between the links (softnet_stat)")


def unload(modules):
    """A module that stays has lost count of something."""
    for name in modules:
        deadline = now_ns() + 5_000_000_000
        while subprocess.run(["rmmod", name], capture_output=True, check=False).returncode:
            if now_ns() > deadline:
                raise LabError(f"module {name} cannot be unloaded")
            time.sleep(0.01)


def kernel_log():
    """All lines of the kernel's log."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    lines = []
    with contextlib.suppress(BlockingIOError):
        while True:
            lines.append(os.read(fd, 8192).decode(errors="replace").rstrip())
    os.close(fd)
    return lines


def experiment(job, folder):
    """All of it. Returns the raw record."""
    assert_clock()
    for module in job["modules"]:
        run("insmod", *module)
    network = Network(job)
    network.build()
    network.shape(now_ns())
    far = (1 << 63) - 1
    network.shape(far)
    probes = network.probe()
    workload = Workload(job, network, folder)
    try:
        for i, what in enumerate(job["servers"], 1):
            workload.start(what, "server", i)
        workload.wait_ready()
        epoch = now_ns() + 10_000_000 + round(job["settle_s"] * 1e9)
        network.shape(epoch)
        for i, what in enumerate(job["background"], 1):
            workload.start(what, "background", i)
        time.sleep((epoch - now_ns()) / 1e9)
        first = len(workload.started)
        for i, what in enumerate(job["clients"], 1):
            workload.start(what, "client", i)
        workload.wait_clients(workload.started[first:], epoch)
        end = now_ns()
        ports = network.statistics()
    finally:
        workload.stop()
    assert_no_silent_loss()
    unload(job["unload"])
    outputs = []
    for i in range(1, len(job["clients"]) + 1):
        text = (folder / f"client{i}.out").read_text()
        try:
            outputs.append(json.loads(text))
        except ValueError:
            raise LabError(f"client{i}: its output is not JSON: {text[:80]!r}") from None
    return {"epoch_ns": epoch, "end_ns": end, "probes": probes, "ports": ports, "outputs": outputs,
            "hosts": [host_counters(network, h) for h in range(1, job["hosts"] + 1)]}


def main(folder):
    """Exit status is of no use to the first process: the verdict is a file."""
    verdict = "ok"
    try:
        job = json.loads((folder / "job.json").read_text())
        result = experiment(job, folder)
        (folder / "result.json").write_text(json.dumps(result))
    except LabError as error:
        verdict = str(error)
    except Exception:  # pylint: disable=broad-except
        verdict = "the guest's part of the lab failed: " + traceback.format_exc().strip().replace("\n", " | ")
    log = kernel_log()
    (folder / "kernel.log").write_text("\n".join(log) + "\n")
    bad = [line for line in log if COMPLAINTS.search(line)]
    if bad and verdict == "ok":
        verdict = f"the kernel complains: {bad[0]}"
    (folder / "verdict").write_text(verdict + "\n")
    os.sync()
    LIBC.reboot(POWER_OFF)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
