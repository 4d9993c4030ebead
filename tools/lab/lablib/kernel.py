# SPDX-License-Identifier: GPL-2.0
"""Builds the guest's kernel, once, and the modules for it.

Debian's source package is in CACHE/source, where tools/setup may have left it.
Everything else is in CACHE/lab/VERSION-HASH, where HASH covers our options and
edits:
    source/     unpacked, without what User-Mode Linux cannot use, and edited
    build/      object files; build/linux is the kernel
    complete    present when all is there
Whatever was interrupted goes on where it was.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from .errors import LabError

LAB = pathlib.Path(__file__).resolve().parent.parent
TREE = LAB.parent.parent
CONFIG = LAB / "kernel.config"
PACKAGE = "linux-source-6.1"
TOOLS = ("gcc", "make", "flex", "bison", "bc", "xz", "apt-get", "dpkg-deb")
# Files that a complete build compiles, for the progress line.
OBJECTS = 900

_UNUSED_ARCHES = """alpha arc arm arm64 csky hexagon ia64 loongarch m68k microblaze mips nios2 openrisc parisc
powerpc riscv s390 sh sparc xtensa""".split()
_UNUSED_DRIVERS = """drivers/gpu drivers/net/ethernet drivers/net/wireless drivers/media drivers/staging
drivers/infiniband drivers/scsi drivers/usb drivers/iio sound""".split()

# Modules of the lab itself, and where they are.
_OWN = {"sch_lablink": "link", "lab_count": "count"}

# What is edited in the source: (file, old, new), each exactly once.
_RANDOM_OLD = "\treturn getrandom(buf, len, flags);\n"
_RANDOM_NEW = """\tstatic unsigned long long state;
\tstatic int seeded;
\tunsigned char *p = buf;
\tsize_t i;

\tif (!seeded) {
\t\tconst char *seed = getenv("LAB_SEED");

\t\tif (seed)
\t\t\tstate = strtoull(seed, NULL, 0);
\t\tseeded = 1;
\t}
\tfor (i = 0; i < len; i++) {
\t\tunsigned long long z = state += 0x9e3779b97f4a7c15ULL;

\t\tz = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
\t\tz = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
\t\tp[i] = z ^ (z >> 31);
\t}
\treturn len;
"""
_XSTATE = "arch/x86/um/os-Linux/registers.c"
_XSTATE_OLD = """\tif (have_xstate_support) {
\t\tiov.iov_base = fp_regs;
\t\tiov.iov_len = FP_SIZE * sizeof(unsigned long);
\t\tif (ptrace(PTRACE_SETREGSET"""
_XSTATE_NEW = """\tstatic char all[1 << 14];

\tif (have_xstate_support) {
\t\tmemcpy(all, fp_regs, FP_SIZE * sizeof(unsigned long));
\t\tiov.iov_base = all;
\t\tiov.iov_len = sizeof(all);
\t\tif (ptrace(PTRACE_SETREGSET"""
EDITS = (
    # arch/um fixes 100; Debian runs 250, and TCP's timers are in these ticks.
    ("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", "config HZ\n\tint\n\tdefault 250\n"),
    # The clock counts in steps of 256 ns, and timers are never closer than 500 ns.
    ("arch/um/include/linux/time-internal.h", "#define TIMER_MULTIPLIER 256\n", "#define TIMER_MULTIPLIER 1\n"),
    ("arch/um/include/linux/time-internal.h", "#define TIMER_MIN_DELTA  500\n", "#define TIMER_MIN_DELTA  1\n"),
    # Reading the clock must cost something, or who waits by reading it waits for ever.
    ("arch/um/kernel/time.c", "time_travel_update_time_rel(TIMER_MULTIPLIER);", "time_travel_update_time_rel(16);"),
    # The guest's randomness must come from the seed, not from the host.
    ("arch/um/os-Linux/util.c", _RANDOM_OLD, _RANDOM_NEW),
    # Nor from the command line, which names a folder of the host.
    ("drivers/char/random.c", "\t_mix_pool_bytes(command_line, strlen(command_line));\n", ""),
    # CPUs with AMX have more registers than there is room for, and the host takes
    # them back all or not at all; what is beyond is unused, which is all zeros.
    (_XSTATE, "#include <stdlib.h>\n", "#include <stdlib.h>\n#include <string.h>\n"),
    (_XSTATE, _XSTATE_OLD, _XSTATE_NEW),
)


def cache():
    """The folder of what is fetched and built once."""
    home = os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '')}/.cache"
    return pathlib.Path(os.environ.get("DBLP_CACHE") or f"{home}/dblp")


def fingerprint():
    """Hash of all that decides what the kernel is, but its version."""
    return hashlib.sha256(CONFIG.read_bytes() + repr(EDITS).encode()).hexdigest()[:8]


def current():
    """The folder of the newest complete kernel of our options, or None."""
    found = [p.parent for p in cache().glob(f"lab/*-{fingerprint()}/complete")]
    return max(found, key=lambda p: (p / "complete").stat().st_mtime, default=None)


def say(text):
    """One line of progress."""
    print(f"lab: {text}", flush=True)


def _run(argv, log, **options):
    """A command whose output is in a file, of which the end is shown if it fails."""
    with log.open("ab") as file:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode:
        tail = log.read_text(errors="replace").splitlines()[-15:]
        print("\n".join(tail), file=sys.stderr)
        raise LabError(f"{argv[0]} failed (above), log in {log}")


def _fetch(log):
    """The source package: the one at hand, or the newest of the archive."""
    store = cache() / "source"
    found = sorted(store.glob(f"{PACKAGE}_*.deb"), key=lambda p: p.stat().st_mtime)
    if found:
        return found[-1]
    say(f"fetching {PACKAGE} (130 MB)")
    part = cache() / "lab/download"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    _run(["apt-get", "-q", "-q", "-o", f"APT::Sandbox::User={user}", "download", PACKAGE], log, cwd=part)
    [deb] = part.glob("*.deb")
    store.mkdir(exist_ok=True)
    deb = deb.rename(store / deb.name)
    part.rmdir()
    return deb


def _unpack(folder, deb):
    source = folder / "source"
    if (source / ".unpacked").exists():
        return
    say("unpacking it (half a minute)")
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    # Kconfig files of all of them are read even so.
    unused = [f"--exclude={PACKAGE}/arch/{a}/*.{x}" for a in _UNUSED_ARCHES for x in ("[chS]", "dts*")]
    unused += [f"--exclude={PACKAGE}/{d}/*.[ch]" for d in _UNUSED_DRIVERS]
    unused += [f"--exclude={PACKAGE}/Documentation/*/*"]
    script = ('set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" | xz -dc | '
              'tar -x -C "$3" --strip-components=1 "${@:4}"')
    _run(["bash", "-c", script, "unpack", str(deb), PACKAGE, str(source), *unused], folder / "log")
    for name, old, new in EDITS:
        path = source / name
        text = path.read_text()
        if text.count(old) != 1:
            raise LabError(f"{name} is not what this lab was written for: {old.splitlines()[0]!r} "
                           f"is there {text.count(old)} times")
        path.write_text(text.replace(old, new))
    (source / ".unpacked").touch()


def _check_config(folder):
    """Kconfig drops silently what it does not know or cannot have."""
    have = set((folder / "build/.config").read_text().splitlines())
    for line in CONFIG.read_text().splitlines():
        if line.startswith("CONFIG_"):
            name, _, value = line.partition("=")
            if value == "n":
                ok = not any(h.startswith(f"{name}=") for h in have)
            else:
                ok = line in have
            if not ok:
                raise LabError(f"kernel.config: {line} cannot be had")


def _make(folder, *targets):
    return ["make", "-C", str(folder / "source"), f"O={folder}/build", "ARCH=um", "KBUILD_BUILD_TIMESTAMP=1",
            "KBUILD_BUILD_USER=lab", "KBUILD_BUILD_HOST=lab", *targets]


def _compile(folder, jobs):
    """Shows how far it is; what is done already counts."""
    total = OBJECTS
    done = sum(1 for _ in (folder / "build").rglob("*.o"))
    start = time.monotonic()
    tty = sys.stdout.isatty()
    last = -1
    with (folder / "log").open("a") as log, subprocess.Popen(
            _make(folder, f"-j{jobs}"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace") as process:
        for line in process.stdout:
            log.write(line)
            if not re.match(r"\s+(CC|AS|LD|AR)\s", line):
                continue
            done += 1
            percent = min(99, done * 100 // total)
            if percent != last and (tty or percent % 10 == 0):
                last = percent
                passed = int(time.monotonic() - start)
                print(f"\rlab: compiling the kernel: {percent} %, {passed // 60}:{passed % 60:02}",
                      end="" if tty else "\n", flush=True)
    if tty:
        print()
    if process.returncode:
        print("\n".join((folder / "log").read_text().splitlines()[-15:]), file=sys.stderr)
        raise LabError(f"the kernel does not compile (above), log in {folder}/log")


def build(jobs):
    """The folder of the kernel, built if need be."""
    done = current()
    if done:
        return done
    missing = [t for t in TOOLS if not shutil.which(t)]
    if missing:
        raise LabError(f"{', '.join(missing)} missing: run tools/setup lab")
    start = time.monotonic()
    store = cache() / "lab"
    store.mkdir(parents=True, exist_ok=True)
    with _lock(store / "lock"):
        if done := current():
            return done
        deb = _fetch(store / "log")
        folder = store / f"{deb.name.split('_')[1]}-{fingerprint()}"
        folder.mkdir(exist_ok=True)
        _unpack(folder, deb)
        (folder / "build").mkdir(exist_ok=True)
        if not (folder / "build/.config").exists():
            _run([*_make(folder, "allnoconfig"), f"KCONFIG_ALLCONFIG={CONFIG}"], folder / "log")
        _check_config(folder)
        _compile(folder, jobs)
        (folder / "complete").touch()
    say(f"kernel {folder.name} is ready after {time.monotonic() - start:.0f} s: {folder}/build/linux")
    return folder


@contextlib.contextmanager
def _lock(path):
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another lab to end its build")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def require():
    """The folder of the kernel; it is not built on the way to something else."""
    folder = current()
    if not folder:
        raise LabError("there is no kernel for the lab yet: run tools/lab/lab kernel")
    return folder


def _link(files, out):
    """The sources as a folder of links, so that objects stay out of the tree."""
    for path in [*out.rglob("*.[ch]"), *out.rglob("Kbuild")]:
        if path.is_symlink() and not path.exists():
            path.unlink()
    for file, target in files:
        link = out / file
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(target)


def _module_files(name):
    if name in _OWN:
        return [(p.name, p) for p in (LAB / _OWN[name]).iterdir() if p.name == "Kbuild" or p.suffix in (".c", ".h")]
    files = [TREE / "Kbuild"]
    for top in ("kernel", "include/uapi"):
        files += [p for p in (TREE / top).rglob("*") if p.suffix in (".c", ".h") or p.name == "Kbuild"]
    skipped = {"tests", "fuzz", "kunit"}
    return [(p.relative_to(TREE), p) for p in files if not skipped & set(p.relative_to(TREE).parts)]


def stock_headers(name):
    """(folder of one of Debian's kernels as tools/setup unpacked it, its headers)."""
    folder = cache() / "kernel" / name / "current"
    headers = list(folder.glob("usr/src/linux-headers-*-amd64"))
    if not headers:
        raise LabError(f"there is no kernel {name}: run tools/setup build vm")
    return folder.resolve(), headers[0]


def module(folder, name, jobs, build=None):
    """Builds one module for that kernel; returns the .ko."""
    out = TREE / "build/lab/module" / f"{folder.name}" / name
    where = [str(folder / "build"), "ARCH=um"] if build is None else [str(build)]
    out.mkdir(parents=True, exist_ok=True)
    log = out / "log"
    with _lock(out / "lock"):
        log.unlink(missing_ok=True)
        _link(_module_files(name), out)
        _run(["make", "-C", *where, f"M={out}", f"-j{jobs}", "modules"], log)
    return out / f"{name}.ko"


def srcversion(ko):
    """The hash of a module's source that modpost puts into it."""
    done = subprocess.run(["/sbin/modinfo", "-F", "srcversion", str(ko)], capture_output=True, text=True, check=False)
    return done.stdout.strip()
