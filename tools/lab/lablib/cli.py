# SPDX-License-Identifier: GPL-2.0
"""The commands of the lab."""

import argparse
import os
import pathlib
import sys

from . import compare, cpu, kernel, plot, runner, runs, scenario, schema, suite, transports
from .errors import LabError

EPILOG = """examples:
  lab kernel
  lab run loss --transport tcp-cubic,tcp-bbr
  lab run burst --transport dblp,tcp-bbr --seed 1,2,3 --set burst_pct=60,90 --json burst.json
  lab plot build/lab/runs/loss-1 --x loss_pct --y ratio --out loss.svg
  lab suite quick

DBLP_PERF names another dblp-perf than that of build/cmake.
"""


def _list(args):
    if args.settings:
        for table in schema.TABLES:
            print(f"[{table}]")
            for name, s in schema.SETTINGS.items():
                if s.table == table:
                    kind = "|".join(s.words) if s.words else s.kind
                    default = "+".join(map(str, s.default)) if isinstance(s.default, tuple) else s.default
                    print(f"  {name:<21} {kind}, default {default or 0}: {s.text}")
        return
    for name in scenario.names():
        print(f"{name:<12} {scenario.load(name).title}")
    print(f"\ntransports:  {' '.join(transports.TRANSPORTS)}")
    print(f"suites:      {' '.join(suite.names())}")
    print("settings:    lab list --settings")


def _seeds(text):
    if text is None:
        return None
    try:
        return scenario.check_seeds([int(t) for t in text.split(",")])
    except ValueError:
        raise LabError(f"--seed {text}: not whole numbers with commas between them") from None


def _check_json(args):
    """Before hours are spent on what cannot be written."""
    if args.json and not pathlib.Path(args.json).parent.is_dir():
        raise LabError(f"--json {args.json}: no such folder")


def _run(args):
    _check_json(args)
    request = runs.Request(
        scenario=args.scenario, transports=transports.parse(args.transport) if args.transport else None,
        seeds=_seeds(args.seed), sets=scenario.parse_sets(args.set), quick=args.quick,
        wall_limit=args.wall, module=args.module)
    folder, records = runs.run(request, args.jobs, args.out)
    runs.print_table(records)
    print(f"run folder: {folder}")
    if args.json:
        runs.write_json(pathlib.Path(args.json), records)


def _kernel(args):
    folder = kernel.build(args.jobs)
    print(f"{folder}/build/linux")
    kernel.module(folder, "sch_lablink", args.jobs)


def _compare(args):
    return 1 if compare.run(args.a, args.b, args.metric) and args.expect_same else 0


def _plot(args):
    plot.run(args.run, pathlib.Path(args.out), args.x, args.y, args.log)


def _suite(args):
    suite.run(args.name, args.jobs, args.publish, args.out, _seeds(args.seed))


def _cpu(args):
    _check_json(args)
    words = transports.parse(args.transport)
    records = cpu.run(words, args.kernel, args.path.split(","), args.workload.split(","), args.module)
    cpu.print_table(records)
    if args.json:
        runs.write_json(pathlib.Path(args.json), records)


def _parser():
    parser = argparse.ArgumentParser(prog="lab", description=__doc__, epilog=EPILOG, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, function, text):
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(function=function)
        return sub

    def add_jobs(sub):
        sub.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), metavar="N", help="that many at once")

    sub = add("kernel", _kernel, "build the guest's kernel, once")
    add_jobs(sub)
    sub = add("list", _list, "show scenarios, transports, suites")
    sub.add_argument("--settings", action="store_true", help="show all settings of a scenario")
    sub = add("run", _run, "run a scenario")
    sub.add_argument("scenario")
    sub.add_argument("--transport", metavar="A,B", help="instead of those that the scenario names")
    sub.add_argument("--seed", metavar="N,N", help="instead of those that the scenario names")
    sub.add_argument("--set", action="append", default=[], metavar="KEY=VALUE[,VALUE]",
                     help="change a setting, or sweep it; entries of a list are joined by +")
    sub.add_argument("--quick", action="store_true", help="only the scenario's quick points")
    sub.add_argument("--module", metavar="FILE", help="instead of the dblp.ko of this tree, which is built if need be")
    sub.add_argument("--json", metavar="FILE", help="write the results there too")
    sub.add_argument("--wall", type=float, default=runner.WALL_LIMIT_S, metavar="S",
                     help="real seconds that one guest may take (default: %(default)s)")
    sub.add_argument("--out", metavar="FOLDER", help="run folder (default: a new one in build/lab/runs)")
    add_jobs(sub)
    sub = add("compare", _compare, "compare two runs: folders, or files of --json")
    sub.add_argument("a")
    sub.add_argument("b")
    sub.add_argument("--metric", default="time_s")
    sub.add_argument("--expect-same", action="store_true", help="exit with 1 if a difference is seen")
    sub = add("plot", _plot, "draw results; reads run folders only")
    sub.add_argument("run", nargs="+")
    sub.add_argument("--out", required=True, metavar="FILE.svg")
    sub.add_argument("--x", help="setting on the x axis (default: the one that was swept)")
    sub.add_argument("--y", default="time_s", help="field on the y axis")
    sub.add_argument("--log", action="store_true", help="y axis in powers of ten")
    sub = add("suite", _suite, "run several scenarios and draw their figures")
    sub.add_argument("name")
    sub.add_argument("--seed", metavar="N,N", help="instead of those that the suite and its scenarios name")
    sub.add_argument("--publish", action="store_true", help="into Documentation/results")
    sub.add_argument("--out", metavar="FOLDER", help="folder (default: a new one in build/lab/runs)")
    add_jobs(sub)
    sub = add("cpu", _cpu, "count the instructions that transports cost, on a stock kernel")
    sub.add_argument("--transport", metavar="A,B", default="dblp,tcp-cubic,tcp-bbr,sctp", help="default: %(default)s")
    sub.add_argument("--kernel", default="6.12", help="6.1 or 6.12 (default: %(default)s)")
    sub.add_argument("--path", metavar="P,P", default=",".join(cpu.PATHS),
                     help="gso: bursts stay whole; nic: they are cut and joined as by a card that cannot (default: both)")
    sub.add_argument("--workload", metavar="W,W", default=",".join(cpu.WORKLOADS),
                     help="stream, and rr64: 64 bytes there and back (default: both)")
    sub.add_argument("--module", metavar="FILE", help="instead of the dblp.ko that was built here")
    sub.add_argument("--json", metavar="FILE", help="write the results there too")
    return parser


def main(argv):
    """Runs a command; returns its exit status."""
    args = _parser().parse_args(argv)
    try:
        return args.function(args) or 0
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted", file=sys.stderr)
        return 130
