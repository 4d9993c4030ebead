# SPDX-License-Identifier: GPL-2.0
"""The command as users run it: what is wrong is one line, and leaves nothing."""

import os
import pathlib
import subprocess
import tempfile
import unittest

LAB = pathlib.Path(__file__).resolve().parent.parent / "lab"


class Refused(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def refused(self, text, *words):
        """Runs the lab, which must say `text` in its only line and write nothing."""
        out = self.folder / "run"
        done = subprocess.run([LAB, *words, "--out", out], capture_output=True, text=True, check=False, timeout=60,
                              env=os.environ | {"DBLP_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Alab: [^\n]+\n\Z")
        self.assertIn(text, done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def run_refused(self, text, *words):
        """The same for a run, with a file of results."""
        self.refused(text, "run", *words, "--json", str(self.folder / "results.json"))

    def test_misspelt_key(self):
        self.run_refused("unknown setting 'burst_pc': did you mean 'burst_pct'?", "burst", "--set", "burst_pc=60")

    def test_impossible_rate(self):
        for rate in ("0", "-1", "nan", "1e9", "fast"):
            with self.subTest(rate=rate):
                self.run_refused("rate_mbps: ", "burst", "--set", f"rate_mbps={rate}")

    def test_unknown_transport(self):
        self.run_refused("unknown transport 'tcp-renp'", "loss", "--transport", "tcp-renp")
        self.run_refused("unknown transport 'dblpp': did you mean 'dblp'?", "loss", "--transport", "tcp-bbr,dblpp")

    def test_seed(self):
        self.run_refused("--seed x: not whole numbers", "loss", "--seed", "x")
        self.run_refused("seed -1 is not a whole number", "loss", "--seed=-1")
        self.run_refused("a seed is named twice", "loss", "--seed", "1,1")

    def test_unknown_names(self):
        self.run_refused("unknown scenario 'los': did you mean 'loss'?", "los")
        self.refused("unknown suite 'quik': did you mean 'quick'?", "suite", "quik")
        self.run_refused("--set loss_pct: not of the form key=value", "loss", "--set", "loss_pct")

    def test_no_kernel(self):
        self.run_refused("there is no kernel for the lab yet: run tools/lab/lab kernel", "loss")

    def test_json_that_cannot_be_written(self):
        self.refused("no such folder", "run", "loss", "--json", str(self.folder / "none/results.json"))

    def test_compare_and_plot_refuse_what_is_no_run(self):
        other = self.folder.parent / "no-such-run"
        for words in (["compare", str(other), str(other)], ["plot", str(other), "--out", str(self.folder / "a.svg")]):
            done = subprocess.run([LAB, *words], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"\Alab: [^\n]+\n\Z")
            self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
