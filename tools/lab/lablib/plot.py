# SPDX-License-Identifier: GPL-2.0
"""Figures from run folders; they are only read."""

import itertools
import pathlib
import statistics

from . import runs
from .errors import LabError

LABELS = {
    "time_s": "time (s)", "p50_s": "median of a round (s)", "p99_s": "99th percentile of a round (s)",
    "max_s": "slowest round (s)", "ratio": "time / physical limit", "loss_pct": "random loss (%)",
    "burst_pct": "loss during the burst (%)", "senders": "senders", "rtt_us": "round trip (µs)",
    "rate_mbps": "rate (Mbit/s)", "tolerance_ppm": "tolerance (ppm)", "queue_bdp": "queue (BDP)",
    "flows": "flows", "jain": "Jain's index", "share": "share of the link", "goodput_mbps": "goodput (Mbit/s)",
    "queue_drops": "packets dropped by queues", "wire_bytes": "bytes on the wire", "bytes": "message (bytes)",
}
LIMITS = {"time_s": lambda r: r["limit_s"], "ratio": lambda r: 1.0,
          "p50_s": lambda r: r["limit_s"] and r["limit_s"] / r["rounds"]}
LIMITS |= {"p99_s": LIMITS["p50_s"], "max_s": LIMITS["p50_s"], "share": lambda r: 1.0, "jain": lambda r: 1.0}
IDEALS = {"share": "the whole link", "jain": "all equal"}
MARKERS = "osv^D<>p*X"


def _swept(records):
    keys = {k for r in records for k in r["point"]}
    varied = [k for k in sorted(keys) if len({str(r["point"].get(k)) for r in records}) > 1]
    if len(varied) != 1:
        raise LabError(f"--x: choose one of {', '.join(varied) or 'nothing: no setting was swept'}")
    return varied[0]


def _pyplot():
    try:
        import matplotlib
    except ImportError:
        raise LabError("python3-matplotlib is missing: run tools/setup lab") from None
    matplotlib.use("svg")
    # Nothing of the day and of chance in the file.
    matplotlib.rcParams.update({"svg.hashsalt": "lab", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
    from matplotlib import pyplot
    return pyplot


def _word(name, value):
    """A setting in a legend; a list says how often each entry comes."""
    if isinstance(value, (list, tuple)):
        runs_of = [(v, len(list(group))) for v, group in itertools.groupby(value)]
        value = "+".join(f"{v}" + (f" (x{n})" if n > 1 else "") for v, n in runs_of)
    return "" if value in (None, "", []) else f"{name} {value}"


def _lines(records, x):
    """line name -> x -> records; what is swept besides x makes lines of its own."""
    others = sorted({k for r in records for k in r["point"] if k != x})
    others = [k for k in others if len({str(r["point"].get(k)) for r in records}) > 1]
    lines = {}
    for record in records:
        extra = ", ".join(filter(None, (_word(k, record["point"].get(k)) for k in others)))
        name = record["transport"] + (f", {extra}" if extra else "")
        lines.setdefault(name, {}).setdefault(record["point"][x], []).append(record)
    return lines


def draw(records, out, x=None, y="time_s", log=False, title=None):
    """One figure: median of the seeds, their whole spread, and the limit."""
    x = x or _swept(records)
    if any(x not in r["point"] for r in records):
        raise LabError(f"--x {x}: not a setting of all points")
    if any(r.get(y) is None for r in records):
        raise LabError(f"--y {y}: not a field of all results")
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    numeric = all(isinstance(r["point"][x], (int, float)) for r in records)
    places = sorted({r["point"][x] for r in records}, key=lambda v: v if numeric else str(v))
    at = {v: i for i, v in enumerate(places)}
    lines = _lines(records, x)
    colours = []
    for i, (name, points) in enumerate(lines.items()):
        xs = sorted(points, key=at.get)
        values = [[r[y] for r in points[v]] for v in xs]
        middle = [statistics.median(v) for v in values]
        spread = [[m - min(v) for m, v in zip(middle, values)], [max(v) - m for m, v in zip(middle, values)]]
        drawn = axes.errorbar([at[v] for v in xs], middle, yerr=spread, marker=MARKERS[i % len(MARKERS)],
                              markersize=4, capsize=3, linewidth=1.2, label=name)
        colours.append(drawn[0].get_color())
    _draw_limits(axes, lines, colours, y, at)
    axes.set_xticks(range(len(places)), [f"{v:g}" if numeric else str(v) for v in places])
    axes.set_xlabel(LABELS.get(x, x))
    axes.set_ylabel(LABELS.get(y, y))
    if log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
    seeds = max(len(p) for line in lines.values() for p in line.values())
    axes.set_title(f"{title or records[0]['scenario']}: " + (
        f"median and range of {seeds} seeds" if seeds > 1 else "one seed"), fontsize=9)
    axes.legend(fontsize=8, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
    figure.savefig(out, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def _draw_limits(axes, lines, colours, y, at):
    """In black if it is the same for all lines, else one for each in its colour."""
    if y not in LIMITS:
        return
    limits = []
    for points in lines.values():
        values = ((v, LIMITS[y](records[0])) for v, records in points.items())
        limits.append({v: limit for v, limit in values if limit})
    joined = {}
    for own in limits:
        for v, limit in own.items():
            joined.setdefault(v, set()).add(round(limit, 9))
    if not joined:
        return
    if all(len(values) == 1 for values in joined.values()):
        limits, colours = [{v: min(values) for v, values in joined.items()}], ["black"]
    label = IDEALS.get(y, "physical limit") + (" (of the same colour)" if len(limits) > 1 else "")
    for i, (own, colour) in enumerate(zip(limits, colours)):
        xs = sorted(own, key=at.get)
        axes.plot([at[v] for v in xs], [own[v] for v in xs], color=colour, linestyle="--", linewidth=1,
                  label=label if i == 0 else None)


def run(names, out, x, y, log):
    """The command."""
    if out.suffix != ".svg":
        raise LabError(f"--out {out}: not an .svg")
    records = [r for n in names for r in runs.read(n)]
    if not records:
        raise LabError("there are no results")
    if not pathlib.Path(out).parent.is_dir():
        raise LabError(f"{out.parent}: no such folder")
    draw(records, out, x, y, log)
