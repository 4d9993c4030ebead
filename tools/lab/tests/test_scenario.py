# SPDX-License-Identifier: GPL-2.0
"""What a user can get wrong is refused with one line that names it."""

import unittest

from lablib import scenario, schema, suite, topology, runs, transports
from lablib.errors import LabError


def points(sets=(), name="loss", quick=False):
    return scenario.points(scenario.load(name), scenario.parse_sets(list(sets)), quick)


class Refused(unittest.TestCase):
    CASES = (
        (["loss_pc=1"], "unknown setting 'loss_pc': did you mean 'loss_pct'?"),
        (["rate_mbps=0"], "rate_mbps: 0 is not between 0.1 and 100000"),
        (["rate_mbps=-5"], "rate_mbps: -5 is not between"),
        (["rate_mbps=nan"], "rate_mbps: nan is not between"),
        (["rate_mbps=fast"], "rate_mbps: 'fast' is not a number"),
        (["loss_pct=101"], "loss_pct: 101 is not between 0 and 100"),
        (["rounds=1.5"], "rounds: 1.5 is not a whole number"),
        (["mode=eagre"], "unknown mode 'eagre': did you mean 'eager'?"),
        (["loss_pct"], "not of the form key=value"),
        (["loss_pct="], "not of the form key=value"),
        (["loss_pct=1", "loss_pct=2"], "given twice"),
        (["hosts=65"], "hosts: 65 is not between 0 and 64"),
        (["flows=33"], "66 hosts are needed, and 64 are possible"),
        (["hosts=2", "flows=2"], "needs 4 hosts, and there are 2"),
        (["queue_bdp=1"], "queue_packets and queue_bdp are both set"),
        (["uplink_mbps=10"], "has no uplink"),
        (["burst_pct=60"], "burst_pct and burst_at_ms"),
        (["reorder_pct=1"], "reorder_us is 0"),
        (["test=ring"], "says nothing about the number of hosts"),
        (["slow_host=3"], "there is no host 3"),
    )

    def test_settings(self):
        for sets, text in self.CASES:
            with self.subTest(sets=sets), self.assertRaises(LabError) as caught:
                points(sets)
            self.assertIn(text, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def test_names(self):
        with self.assertRaisesRegex(LabError, "unknown scenario 'los'"):
            scenario.load("los")
        with self.assertRaisesRegex(LabError, "unknown transport 'tcp-reno'"):
            transports.parse("tcp-cubic,tcp-reno")
        with self.assertRaisesRegex(LabError, "named twice"):
            transports.parse("tcp-bbr,tcp-bbr")

    def test_too_many_changes(self):
        [point] = points(["step_mbps=" + "+".join(str(i) for i in range(1, 40)), "loss_pct=1"])
        with self.assertRaisesRegex(LabError, "more than 32"):
            topology.plan(point.settings)


class Accepted(unittest.TestCase):
    def test_sweep_replaces_the_scenarios_own(self):
        self.assertEqual([p.shown["loss_pct"] for p in points(["loss_pct=3,4"])], [3.0, 4.0])

    def test_sweeps_multiply(self):
        self.assertEqual(len(points(["loss_pct=3,4", "rtt_us=1,2,3"])), 6)

    def test_lists_are_joined_by_plus(self):
        [point] = points(["burst_at_ms=50+400", "burst_pct=60", "loss_pct=0"])
        self.assertEqual(point.settings["burst_at_ms"], (50.0, 400.0))

    def test_every_file_can_be_planned(self):
        for name in scenario.names():
            for quick in (False, True):
                with self.subTest(name=name, quick=quick):
                    for point in points(name=name, quick=quick):
                        topology.plan(point.settings)

    def test_every_suite_can_be_planned(self):
        for name in suite.names():
            with self.subTest(name=name):
                for table in suite._load(name)["run"].values():
                    self.assertTrue(runs.experiments_of(suite._request(table)))

    def test_defaults_pass_their_own_check(self):
        for name, value in schema.defaults().items():
            with self.subTest(name=name):
                self.assertEqual(schema.check(name, value), value)


if __name__ == "__main__":
    unittest.main()
