# SPDX-License-Identifier: GPL-2.0
"""Are two runs different? Only as far as their seeds can tell."""

import itertools
import math
import statistics

from . import runs
from .errors import LabError

# Chance of calling two equal runs different, all cells together.
ALPHA = 0.05
EXACT = 20_000


def permutation_p(a, b):
    """Chance that a random split of all values has means as far apart as these.

    Exact while there are few values, by a fixed sample of splits beyond.
    """
    values = [*a, *b]
    observed = abs(statistics.fmean(a) - statistics.fmean(b))
    splits = math.comb(len(values), len(a))
    stride = max(1, splits // EXACT)
    total = sum(values)
    hits = count = 0
    for chosen in itertools.islice(itertools.combinations(range(len(values)), len(a)), 0, None, stride):
        part = sum(values[i] for i in chosen)
        difference = abs(part / len(a) - (total - part) / len(b))
        hits += difference >= observed * (1 - 1e-12)
        count += 1
    return hits / count


def _label(transport):
    return transport.partition("@")[0]


def run(a_name, b_name, metric):
    """Prints a line per cell; returns how many differ.

    A label of a transport does not tell cells apart, so a control can be compared.
    """
    a, b = ({(point, _label(t)): g for (point, t), g in runs.cells(runs.read(n)).items()} for n in (a_name, b_name))
    common = [k for k in a if k in b]
    if not common:
        raise LabError("the two have no point and transport in common")
    different = 0
    level = ALPHA / len(common)
    print(f"{'point':<34} {'transport':<12} {'A':>10} {'B':>10} {'B/A':>7} {'p':>7}")
    for cell in common:
        if any(r.get(metric) is None for r in [*a[cell], *b[cell]]):
            raise LabError(f"{metric}: not a field of these results")
        left, right = ([r[metric] for r in side[cell]] for side in (a, b))
        p = permutation_p(left, right)
        middle = statistics.median(left), statistics.median(right)
        ratio = middle[1] / middle[0] if middle[0] else math.nan
        differs = p <= level
        different += differs
        # With few seeds no difference can ever be seen; that is not the same as none.
        blind = 2 / math.comb(len(left) + len(right), len(left)) > level
        verdict = "different" if differs else ("too few seeds to tell" if blind else "no difference")
        point = " ".join(f"{k}={v}" for k, v in cell[0])
        print(f"{point:<34} {cell[1]:<12} {middle[0]:10.4f} {middle[1]:10.4f} {ratio:7.3f} {p:7.4f} {verdict}")
    only = len(a) + len(b) - 2 * len(common)
    if only:
        print(f"{only} cells are in one of the two only")
    return different
