# SPDX-License-Identifier: GPL-2.0
"""Scenario files: reading, checking, and the points that a run consists of."""

import dataclasses
import itertools
import pathlib
import tomllib

from . import schema, transports
from .errors import LabError

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "scenarios"
MAX_SEED = (1 << 31) - 1
MAX_RUNS = 10_000

_KEYS = ("title", "transports", "seeds", "report", "sweep", "quick", *schema.TABLES)


@dataclasses.dataclass
class Scenario:
    """What a file says, checked."""

    name: str
    title: str
    settings: dict  # all of them, defaults included
    transports: list
    seeds: list
    report: list  # settings that stand in each point
    sweep: dict  # setting -> list of values
    quick: dict  # the same with --quick


@dataclasses.dataclass(frozen=True)
class Point:
    """One combination of swept settings."""

    settings: dict
    shown: dict  # swept and reported ones


def names():
    """All scenarios there are."""
    return sorted(p.stem for p in FOLDER.glob("*.toml"))


def _values(name, value):
    """The values of a swept setting."""
    if not isinstance(value, list) or not value:
        raise LabError(f"sweep of {name}: not a list of values")
    return [schema.check(name, v) for v in value]


def check_seeds(seeds):
    """Seeds as a list of small whole numbers without repetition."""
    if not isinstance(seeds, list) or not seeds:
        raise LabError("seeds: not a list of numbers")
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
            raise LabError(f"seed {seed} is not a whole number from 0 to {MAX_SEED}")
    if len(set(seeds)) != len(seeds):
        raise LabError("a seed is named twice")
    return seeds


def load(name):
    """The scenario of that name, or a LabError that names what is wrong."""
    if name not in names():
        raise schema.unknown("scenario", name, names())
    path = FOLDER / f"{name}.toml"
    try:
        with path.open("rb") as file:
            raw = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{path.name}: {error}") from None
    try:
        return _check(name, raw)
    except LabError as error:
        raise LabError(f"{path.name}: {error}") from None


def _check(name, raw):
    for key in raw:
        if key not in _KEYS:
            raise schema.unknown("key", key, _KEYS)
    settings = schema.defaults()
    for table in schema.TABLES:
        known = [n for n, s in schema.SETTINGS.items() if s.table == table]
        for key, value in raw.get(table, {}).items():
            if key not in known:
                raise schema.unknown(f"key in [{table}]", key, known)
            settings[key] = schema.check(key, value)
    sweep = {k: _values(k, v) for k, v in raw.get("sweep", {}).items()}
    quick = {k: _values(k, v) for k, v in raw.get("quick", {}).items()}
    report = raw.get("report", [])
    for key in report:
        if key not in schema.SETTINGS:
            raise schema.unknown("setting in report", key, schema.SETTINGS)
    return Scenario(
        name=name,
        title=raw.get("title", ""),
        settings=settings,
        transports=transports.parse(",".join(raw.get("transports", ["tcp-cubic"]))),
        seeds=check_seeds(raw.get("seeds", [1])),
        report=report,
        sweep=sweep,
        quick=quick,
    )


def parse_sets(words):
    """--set key=value[,value...] as setting -> list of values."""
    result = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not text:
            raise LabError(f"--set {word}: not of the form key=value")
        if key in result:
            raise LabError(f"--set {key}: given twice")
        result[key] = [schema.parse(key, t) for t in text.split(",")]
    return result


def points(scenario, sets, quick):
    """The points of a run, each with checked and consistent settings."""
    sweep = dict(scenario.sweep)
    if quick:
        sweep.update(scenario.quick)
    sweep.update(sets)
    result = []
    for values in itertools.product(*sweep.values()):
        settings = dict(scenario.settings)
        settings.update(zip(sweep.keys(), values))
        _consistent(settings)
        # What has one value all over is of interest only if the scenario says so.
        shown = sorted(set(scenario.report) | {k for k in sweep if len(sweep[k]) > 1} | set(sets))
        result.append(Point(settings, {k: settings[k] for k in shown}))
    if len(result) > MAX_RUNS:
        raise LabError(f"{len(result)} points are more than {MAX_RUNS}")
    return result


def needed_hosts(s):
    """Hosts that the workload occupies; 0: it takes as many as there are."""
    if s["test"] in ("stream", "maerts", "rr", "message"):
        return 2 * (s["flows"] + s["background_flows"])
    if s["test"] == "incast" and s["senders"]:
        return 1 + s["senders"] + 2 * s["background_flows"]
    return 0


def _require(condition, text):
    if not condition:
        raise LabError(text)


def _consistent(s):
    """Refuses what each setting allows alone but not together."""
    needed = needed_hosts(s)
    if not s["hosts"]:
        _require(needed, f"test {s['test']}: says nothing about the number of hosts: set hosts or senders")
        s["hosts"] = needed
    _require(s["hosts"] >= 2, "hosts: at least 2")
    _require(s["hosts"] <= 64, f"{s['hosts']} hosts are needed, and 64 are possible")
    _require(s["hosts"] >= needed, f"test {s['test']} needs {needed} hosts, and there are {s['hosts']}")
    if s["test"] == "incast" and not s["senders"]:
        s["senders"] = s["hosts"] - 1 - 2 * s["background_flows"]
        _require(s["senders"] > 0, "incast: no host is left to send")
    if s["test"] not in ("stream", "maerts", "rr", "message"):
        _require(s["flows"] == 1, f"test {s['test']} has no flows to count")
    _require(s["topology"] == "racks" or not (s["uplink_mbps"] or s["uplink_queue_packets"]),
             "uplink_*: topology star has no uplink")
    _require(s["topology"] != "racks" or s["hosts"] % 2 == 0, "racks: an even number of hosts is needed")
    limits = [k for k in ("queue_packets", "queue_bytes", "queue_bdp") if s[k]]
    _require(len(limits) <= 1, f"{' and '.join(limits)} are both set")
    if not limits:
        s["queue_packets"] = 1000
    if s["queue_bytes"]:
        _require(s["queue_bytes"] >= s["mtu"] + 14, "queue_bytes: not even one packet fits")
    _require(bool(s["burst_pct"]) == bool(s["burst_at_ms"]), "burst_pct and burst_at_ms: one says nothing without the other")
    _require(bool(s["blackhole_ms"]) == bool(s["blackhole_at_ms"]), "blackhole_ms and blackhole_at_ms: one says nothing without the other")
    _require(not s["reorder_pct"] or s["reorder_us"], "reorder_pct: reorder_us is 0")
    _require(not s["ge_bad_pct"] or s["ge_enter_pct"] or s["ge_good_pct"], "ge_bad_pct: the bad state is never entered (ge_enter_pct is 0)")
    for key in ("slow_host", "pause_host"):
        _require(s[key] <= s["hosts"], f"{key}: there is no host {s[key]}")
    _require(not s["pause_ms"] or s["pause_host"], "pause_ms: pause_host is 0")
    _require(s["rtt_us"] / 2 + s["reorder_us"] < 4e6, "rtt_us and reorder_us: more than 4 s together")
