# SPDX-License-Identifier: GPL-2.0
"""Needs the lab's kernel and dblp-perf: a network that is not what was asked for is
an error, and one seed gives one result."""

import dataclasses
import pathlib
import struct
import subprocess
import tempfile
import unittest
from unittest import mock

from lablib import runner, runs, scenario, transports
from lablib.errors import LabError

LAB = pathlib.Path(__file__).resolve().parent.parent / "lab"
SMALL = ("bytes=400000", "loss_pct=2", "rtt_us=1000")


def experiment(transport="tcp-bbr", sets=SMALL):
    """One, and the machine for it."""
    request = runs.Request("loss", transports.parse(transport), [1], scenario.parse_sets(list(sets)))
    [result] = runs.experiments_of(request)
    machine, _ = runs._machine({transport}, 2, None)
    return result, machine


class Proof(unittest.TestCase):
    """The guest is told something else than the plan says."""

    def refused(self, text, change):
        """Runs with the orders changed by `change`, which must be noticed."""
        what, machine = experiment()
        honest = runner.job

        def lie(*arguments):
            plan, order = honest(*arguments)
            change(order)
            return plan, order
        with mock.patch.object(runner, "job", lie), self.assertRaisesRegex(LabError, text):
            runner.run(what, machine)

    @staticmethod
    def _step(order, offset, layout, change):
        for port in order["ports"]:
            data = bytearray.fromhex(port["steps"])
            (value,) = struct.unpack_from(layout, data, offset)
            struct.pack_into(layout, data, offset, change(value))
            port["steps"] = data.hex()

    def test_rate(self):
        self.refused("arrives after", lambda order: self._step(order, 8, "=Q", lambda rate: rate * 9 // 10))
        self.refused("packets took", lambda order: self._step(order, 8, "=Q", lambda rate: rate * 999 // 1000))

    def test_delay(self):
        self.refused("arrives after", lambda order: self._step(order, 16, "=I", lambda delay: delay * 102 // 100))

    def test_loss(self):
        self.refused("packets lost, not", lambda order: self._step(order, 24, "=I", lambda lose: lose // 2))

    def test_queue(self):
        def shorter(order):
            for port in order["ports"]:
                params = bytearray.fromhex(port["params"])
                struct.pack_into("=I", params, 24, 4)
                port["params"] = params.hex()
        self.refused("a packet got lost|though the queue was not full", shorter)

    def test_clock(self):
        what, machine = experiment()
        for clock, text in (("time-travel", "clock counts the CPU's work"), ("quiet", "the clock is")):
            with self.subTest(clock=clock), mock.patch.object(runner, "CLOCK", clock), \
                    self.assertRaisesRegex(LabError, text):
                runner.run(what, machine)

    def test_the_truth_passes(self):
        what, machine = experiment()
        record, _ = runner.run(what, machine)
        self.assertGreater(record["injected_losses"], 0)


class Module(unittest.TestCase):
    def test_one_that_does_not_load(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "dblp.ko").write_bytes(b"no module")
            done = subprocess.run(
                [LAB, "run", "loss", "--transport", "dblp", "--seed", "1", "--set", "loss_pct=0", "--module", folder / "dblp.ko",
                 "--out", folder / "run", "--json", folder / "results.json"], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"\Alab: [^\n]*insmod [^\n]*dblp\.ko[^\n]*\n\Z")
            self.assertEqual([p.name for p in folder.iterdir()], ["dblp.ko"])


class Repeated(unittest.TestCase):
    def test_one_seed_one_result(self):
        what, machine = experiment("dblp")
        (first, _), (second, _) = runner.run(what, machine), runner.run(what, machine)
        other, _ = runner.run(dataclasses.replace(what, seed=2), machine)
        self.assertEqual(first, second)
        self.assertNotEqual({k: v for k, v in first.items() if k != "seed"},
                            {k: v for k, v in other.items() if k != "seed"})


if __name__ == "__main__":
    unittest.main()
