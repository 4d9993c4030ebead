# SPDX-License-Identifier: GPL-2.0
"""Tests that last a given time are measured by what the busiest port carries."""

import unittest

from lablib import oracle, record, scenario, topology


class Streams(unittest.TestCase):
    def setUp(self):
        [point] = scenario.points(scenario.load("fair"), scenario.parse_sets(["flows=8"]), False)
        self.plan = topology.plan(point.settings)
        self.flows = topology.pairs(point.settings)[0]

    def test_flows_that_share_a_link_add_up(self):
        even = oracle.streams(self.plan, self.flows, [1_000_000] * 8)
        uneven = oracle.streams(self.plan, self.flows, [8_000_000] + [0] * 7)
        self.assertAlmostEqual(even, uneven, delta=1e-9)
        self.assertAlmostEqual(even, 8_000_000 * 8 * 1538 / 1472 / 100e6, delta=1e-3)

    def test_all_of_them_pass_the_uplink(self):
        for a, b in self.flows:
            self.assertEqual([p.kind for p in self.plan.path(a, b)], ["nic", "uplink", "port"])

    def test_jain(self):
        self.assertEqual(record.jain([5, 5, 5, 5]), 1)
        self.assertEqual(record.jain([1, 0, 0, 0]), 0.25)


if __name__ == "__main__":
    unittest.main()
