# SPDX-License-Identifier: GPL-2.0
"""The limit against sums that can be done by hand."""

import unittest

from lablib import oracle, scenario, topology

WIRE = 1538 * 8  # bits of a full frame, with preamble, check sum, gap
PAYLOAD = 1472


def limit(*sets, name="loss"):
    [point] = scenario.points(scenario.load(name), scenario.parse_sets(list(sets)), False)
    plan = topology.plan(point.settings)
    return oracle.limit(plan, point.settings, topology.pairs(point.settings)[0])


class Message(unittest.TestCase):
    def close(self, got, want):
        self.assertAlmostEqual(got, want, delta=want * 1e-9 + 1e-12)

    def test_one_packet(self):
        # Both wires, and half a round trip.
        self.close(limit("bytes=1472", "loss_pct=0"), WIRE / 1e9 + WIRE / 1e10 + 1e-3)

    def test_full_packets(self):
        self.close(limit(f"bytes={1000 * PAYLOAD}", "loss_pct=0"), 1000 * WIRE / 1e9 + WIRE / 1e10 + 1e-3)

    def test_lost_packets_take_link_time(self):
        self.close(limit(f"bytes={1000 * PAYLOAD}", "loss_pct=50"), 2000 * WIRE / 1e9 + WIRE / 1e10 + 1e-3)

    def test_tolerance(self):
        self.close(limit(f"bytes={1000 * PAYLOAD}", "loss_pct=0", "tolerance_ppm=400000"),
                   600 * WIRE / 1e9 + WIRE / 1e10 + 1e-3)

    def test_a_burst_inside(self):
        # 1 ms clean, then half of everything for 2 ms, then clean.
        sent = 1e-3 + 2e-3 / 2
        rest = 1000 * WIRE / 1e9 - sent
        self.close(limit(f"bytes={1000 * PAYLOAD}", "loss_pct=0", "burst_pct=50", "burst_at_ms=1", "burst_ms=2"),
                   3e-3 + rest + WIRE / 1e10 + 1e-3)

    def test_a_black_hole_is_waited_for(self):
        clean = limit(f"bytes={1000 * PAYLOAD}", "loss_pct=0")
        self.close(limit(f"bytes={1000 * PAYLOAD}", "loss_pct=0", "blackhole_at_ms=1", "blackhole_ms=50"), clean + 50e-3)

    def test_rate_steps(self):
        self.close(limit(f"bytes={1000 * PAYLOAD}", "loss_pct=0", "step_mbps=1000+100", "step_ms=1"),
                   1e-3 + (1000 * WIRE - 1e6) / 1e8 + WIRE / 1e10 + 1e-3)

    def test_gilbert_elliott(self):
        # A quarter of the time in the bad state, where everything is lost.
        self.close(limit(f"bytes={1000 * PAYLOAD}", "loss_pct=0", "ge_enter_pct=1", "ge_leave_pct=3", "ge_bad_pct=100"),
                   1000 * WIRE / 0.75 / 1e9 + WIRE / 1e10 + 1e-3)

    def test_rounds_add_up(self):
        one = limit(f"bytes={10 * PAYLOAD}", "loss_pct=0")
        self.close(limit(f"bytes={10 * PAYLOAD}", "loss_pct=0", "rounds=7", "warm_rounds=2", "compute_us=500"), 7 * one)

    def test_what_is_over_costs_later_rounds_nothing(self):
        size = f"bytes={1000 * PAYLOAD}"
        clean = limit(size, "loss_pct=0")
        burst = ("loss_pct=0", "burst_pct=60", "burst_at_ms=1", "burst_ms=5")
        first = limit(size, *burst)
        self.assertGreater(first, clean)
        self.close(limit(size, *burst, "rounds=4"), first + 3 * clean)

    def test_phases_have_their_own_tolerance(self):
        size = f"bytes={1000 * PAYLOAD}"
        strict, loose = limit(size, "loss_pct=0"), limit(size, "loss_pct=0", "tolerance_ppm=500000")
        self.close(limit(size, "loss_pct=0", "phase_ppm=0+500000+500000", "rounds=7"), 3 * strict + 4 * loose)


class Groups(unittest.TestCase):
    def test_incast_fills_the_receivers_port(self):
        got = limit("senders=8", "rounds=1", "warm_rounds=0", "bytes=1472000", name="incast")
        self.assertAlmostEqual(got, 8 * 1000 * WIRE / 1e9 + 50e-6, delta=2 * WIRE / 1e9)

    def test_ring_moves_each_part_around_twice(self):
        got = limit("test=ring", "loss_pct=0", "rounds=1", "warm_rounds=0", "bytes=1177600", "hosts=8", name="allreduce")
        steps = 14
        self.assertAlmostEqual(got, steps * (100 * WIRE / 1e9 + WIRE / 1e9 + 50e-6), delta=1e-9)

    def test_transpose_is_bound_by_the_busiest_port(self):
        got = limit("test=transpose", "loss_pct=0", "rounds=1", "warm_rounds=0", "bytes=1177600", "hosts=8", name="allreduce")
        self.assertAlmostEqual(got, 2 * (7 * 100 * WIRE / 1e9 + WIRE / 1e9 + 50e-6), delta=1e-9)


if __name__ == "__main__":
    unittest.main()
