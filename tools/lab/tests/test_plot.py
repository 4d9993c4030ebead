# SPDX-License-Identifier: GPL-2.0
"""A figure says what it shows, and is the same each time."""

import pathlib
import tempfile
import unittest

from lablib import plot
from lablib.errors import LabError


def record(transport, loss, seed, time, limit, tolerance=0):
    return {"scenario": "loss", "point": {"loss_pct": loss, "tolerance_ppm": tolerance}, "transport": transport,
            "seed": seed, "time_s": time, "limit_s": limit, "ratio": time / limit, "rounds": 1}


def some(tolerances=(0,)):
    return [record(t, loss, seed, 1.0 + loss / 10 + seed / 100, 0.9 - tolerance / 1e6, tolerance)
            for t in ("dblp", "tcp-bbr") for loss in (0, 1, 5) for seed in (1, 2) for tolerance in tolerances]


class Figure(unittest.TestCase):
    def draw(self, records, **options):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "figure.svg"
            plot.draw(records, path, **options)
            return path.read_text()

    def test_axes_legend_limit_and_spread(self):
        text = self.draw(some(), x="loss_pct")
        for words in ("random loss (%)", "time (s)", "dblp", "tcp-bbr", "physical limit", "range of 2 seeds"):
            self.assertIn(f"{words} ", text.replace("-->", " "))
        # The bars of the spread of each of two lines, and once more in the legend.
        self.assertEqual(text.count('id="LineCollection_'), 4)

    def test_a_limit_for_each_line_where_they_differ(self):
        self.assertIn("of the same colour", self.draw(some((0, 100_000)), x="loss_pct"))

    def test_the_same_each_time(self):
        self.assertEqual(self.draw(some(), x="loss_pct"), self.draw(some(), x="loss_pct"))

    def test_what_cannot_be_drawn(self):
        for options, text in (({"x": "rate_mbps"}, "not a setting of all points"), ({"y": "speed"}, "not a field")):
            with self.assertRaisesRegex(LabError, text):
                self.draw(some(), **({"x": "loss_pct"} | options))


if __name__ == "__main__":
    unittest.main()
