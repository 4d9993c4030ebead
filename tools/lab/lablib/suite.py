# SPDX-License-Identifier: GPL-2.0
"""Suites: several runs and their figures, as a small file says."""

import datetime
import json
import pathlib
import shutil
import tomllib

from . import compare, kernel, plot, runs, scenario, schema, transports
from .errors import LabError

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "suites"
RESULTS = kernel.TREE / "Documentation/results"
_RUN_KEYS = ("scenario", "transports", "seeds", "quick", "set", "same")
_PLOT_KEYS = ("file", "runs", "x", "y", "log", "title")


def names():
    """All suites there are."""
    return sorted(p.stem for p in FOLDER.glob("*.toml"))


def _load(name):
    if name not in names():
        raise schema.unknown("suite", name, names())
    path = FOLDER / f"{name}.toml"
    try:
        data = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{path.name}: {error}") from None
    for key in data:
        if key not in ("title", "run", "plot"):
            raise schema.unknown(f"key in {path.name}", key, ("title", "run", "plot"))
    for kind, known in (("run", _RUN_KEYS), ("plot", _PLOT_KEYS)):
        for table in data.get(kind, {}).values():
            for key in table:
                if key not in known:
                    raise schema.unknown(f"key in [{kind}] of {path.name}", key, known)
    return data


def _request(table):
    sets = {}
    for key, values in table.get("set", {}).items():
        sets[key] = [schema.check(key, v) for v in (values if isinstance(values, list) else [values])]
    words = table.get("transports")
    return runs.Request(
        scenario=table["scenario"], transports=transports.parse(",".join(words)) if words else None,
        seeds=scenario.check_seeds(table["seeds"]) if "seeds" in table else None,
        sets=sets, quick=table.get("quick", False))


def run(name, jobs, publish, out=None, seeds=None):
    """Runs a suite. Its folder has one run folder per [run.X], and the figures."""
    data = _load(name)
    requests = {k: _request(t) for k, t in data["run"].items()}
    for request in requests.values():
        request.seeds = seeds or request.seeds
    for request in requests.values():
        runs.experiments_of(request)  # refuses what is wrong before the first hour is spent
    day = datetime.datetime.now(datetime.UTC)
    if out:
        folder = pathlib.Path(out)
    elif publish:
        folder = RESULTS / f"{day:%Y-%m-%d}-{name}"
    else:
        folder = runs.RUNS / f"suite-{name}-{day:%Y%m%d-%H%M%S}"
    if folder.exists():
        raise LabError(f"{folder} exists already: results are not changed")
    folder.mkdir(parents=True)
    try:
        for key, request in requests.items():
            print(f"== {name}/{key}", flush=True)
            _, records = runs.run(request, jobs, folder / key)
            runs.print_table(records)
            _control(data["run"][key].get("same"), folder / key, key)
        for key, table in data.get("plot", {}).items():
            records = [r for n in table["runs"] for r in runs.read(folder / n)]
            plot.draw(records, folder / f"{key}.svg", table.get("x"), table.get("y", "time_s"), table.get("log", False),
                      table.get("title"))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    (folder / "README.rst").write_text(_readme(name, data, folder, day, seeds))
    print(f"suite folder: {folder}")


def _readme(name, data, folder, day, seeds):
    """What was run and what came out, as a page beside the figures."""
    first = json.loads((folder / next(iter(data["run"])) / "manifest.json").read_text())
    title = f"{name}: {data.get('title', '')}"
    words = f" --seed {','.join(map(str, seeds))}" if seeds else ""
    lines = [".. SPDX-License-Identifier: GPL-2.0", "", "=" * len(title), title, "=" * len(title), "",
             f"``tools/lab/lab suite {name}{words} --publish`` on {day:%Y-%m-%d}; kernel {first['kernel']['version']}, "
             f"commit {first['revision']['commit']}" + (" with changes" if first["revision"]["changes"] else "") + ".",
             "Times are medians over the seeds; see ``Documentation/design/lab.rst``.", ""]
    for key, table in data.get("plot", {}).items():
        lines += [f".. figure:: {key}.svg", "", f"   {table.get('title', key)}", ""]
    for key in data["run"]:
        lines += [key, "-" * len(key), "", ".. csv-table::", "   :header-rows: 1", "", "   " + ",".join(runs.COLUMNS)]
        lines += ["   " + ",".join(row) for row in runs.table(runs.read(folder / key))]
        lines.append("")
    return "\n".join(lines)


def _control(same, folder, key):
    """Two labels of one transport: a difference between them is a fault of the lab."""
    if not same:
        return
    records = runs.read(folder)
    for number, word in enumerate(same):
        runs.write_json(folder / f"side{number}.json", [r for r in records if r["transport"] == word])
    if compare.run(folder / "side0.json", folder / "side1.json", "time_s"):
        raise LabError(f"{key}: a control against itself shows a difference")
