# SPDX-License-Identifier: GPL-2.0
"""A link that was not what it was to be gives no result."""

import copy
import unittest

from lablib import compare, lablink, record, scenario, topology
from lablib.errors import LabError

SEED = 7


def planned(*sets):
    [point] = scenario.points(scenario.load("loss"), scenario.parse_sets(list(sets)), False)
    return topology.plan(point.settings).port_to(2)


def honest(port, packets):
    """Statistics of a link that did what it was told."""
    size = 1514
    stats = {"before": 0, "dropped": 0, "marked": 0, "peak_packets": 5, "peak_bytes": 5 * size, "largest": size, "last": 0,
             "steps": [dict.fromkeys(("packets", "bytes", "busy", "lost", "duplicated", "corrupted", "reordered"), 0)
                       for _ in port.steps]}
    for count, step, n in zip(stats["steps"], port.steps, packets):
        wire = (size + port.overhead) * 8 * 10**9 // step.rate
        count |= {"packets": n, "bytes": n * size, "busy": n * wire}
    for count, want in zip(stats["steps"], lablink.expected(port, SEED, stats)):
        count |= want
    return stats


class Prove(unittest.TestCase):
    def setUp(self):
        self.port = planned("loss_pct=2", "burst_pct=60", "burst_at_ms=50", "duplicate_pct=1", "reorder_pct=3",
                            "reorder_us=100", "ge_enter_pct=1", "ge_leave_pct=20", "ge_bad_pct=50")
        self.stats = honest(self.port, (2000, 3000, 1000))

    def test_an_honest_link_passes(self):
        record.prove_port(self.port, SEED, self.stats)
        self.assertGreater(self.stats["steps"][1]["lost"], 1700)

    def test_anything_else_does_not(self):
        def lost(s): s["steps"][1]["lost"] -= 1
        def moved(s): s["steps"][0]["lost"] += 1; s["steps"][1]["lost"] -= 1
        def duplicated(s): s["steps"][2]["duplicated"] += 1
        def reordered(s): s["steps"][0]["reordered"] = 0
        def faster(s): s["steps"][0]["busy"] //= 2
        def burst(s): s["largest"] = 3000
        def longer(s): s["peak_packets"] = self.port.queue_packets + 1
        def dropped(s): s["dropped"] = 1
        def too_much(s): s["steps"][0] = honest(self.port, (5000, 0, 0))["steps"][0]
        for change in (lost, moved, duplicated, reordered, faster, burst, longer, dropped, too_much):
            stats = copy.deepcopy(self.stats)
            change(stats)
            with self.subTest(change=change.__name__), self.assertRaises(LabError):
                record.prove_port(self.port, SEED, stats)

    def test_another_seed_is_noticed(self):
        with self.assertRaises(LabError):
            record.prove_port(self.port, SEED + 1, self.stats)


class Chance(unittest.TestCase):
    def test_share(self):
        chance = lablink.Chance(SEED, 3)
        hits = sum(chance.happens(i, lablink.LOSE, lablink.fraction(0.1)) for i in range(20000))
        self.assertAlmostEqual(hits / 20000, 0.1, delta=0.01)

    def test_never_and_always(self):
        chance = lablink.Chance(SEED, 3)
        self.assertFalse(any(chance.happens(i, lablink.LOSE, lablink.fraction(0.0)) for i in range(1000)))
        self.assertTrue(all(chance.happens(i, lablink.LOSE, lablink.fraction(1.0)) for i in range(1000)))

    def test_ports_and_purposes_differ(self):
        def fates(port, purpose):
            chance = lablink.Chance(SEED, port)
            return [chance.happens(i, purpose, 1 << 31) for i in range(200)]
        self.assertNotEqual(fates(1, lablink.LOSE), fates(2, lablink.LOSE))
        self.assertNotEqual(fates(1, lablink.LOSE), fates(1, lablink.REORDER))


class Compare(unittest.TestCase):
    def test_permutation(self):
        self.assertAlmostEqual(compare.permutation_p([1, 2, 3, 4, 5], [11, 12, 13, 14, 15]), 2 / 252)
        self.assertEqual(compare.permutation_p([1, 1], [1, 1]), 1.0)
        self.assertGreater(compare.permutation_p([1, 3, 5, 7, 9], [2, 4, 6, 8, 10]), 0.5)

    def test_percentile(self):
        self.assertEqual(record.percentile(range(1, 1001), 0.99), 990)
        self.assertEqual(record.percentile([5], 0.99), 5)


if __name__ == "__main__":
    unittest.main()
