#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Breaks one rule of the protocol core, for a test that must notice.

usage: mutate.py list MUTANTS
       mutate.py apply MUTANTS NAME CORE OUT

"list" prints "name;file;invariant;model;seed" for each mutant: model is 1 if the model
check must notice too, seed is where the simulator begins to look.  "apply" writes the file of one,
with the rule broken, to OUT.  Text that is not found exactly once is an error: then the
core has changed and the mutant must be looked at.
"""

import pathlib
import sys
import tomllib


def load(path):
    with open(path, "rb") as f:
        return tomllib.load(f)["mutant"]


def apply(mutant, core):
    text = (core / mutant["file"]).read_text()
    for find, replace in mutant["edits"]:
        if text.count(find) != 1:
            raise SystemExit(
                f'{mutant["name"]}: found {text.count(find)} times in {mutant["file"]}: {find!r}'
            )
        text = text.replace(find, replace)
    return text


def main(argv):
    if len(argv) == 3 and argv[1] == "list":
        for m in load(argv[2]):
            model, seed = int(m.get("model", False)), m.get("first_seed", 1)
            print(f'{m["name"]};{m["file"]};{m["expect"]};{model};{seed}')
        return 0
    if len(argv) == 6 and argv[1] == "apply":
        named = [m for m in load(argv[2]) if m["name"] == argv[3]]
        if len(named) != 1:
            raise SystemExit(f"{len(named)} mutants are named {argv[3]}")
        pathlib.Path(argv[5]).write_text(apply(named[0], pathlib.Path(argv[4])))
        return 0
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
