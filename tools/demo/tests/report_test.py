#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Feeds tools/demo/report with folders of known numbers and reads what it makes."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

REPORT = pathlib.Path(__file__).parent.parent / "report"

SETUP = {
    "runs": ["dblp", "tcp:bbr", "tcp:cubic"],
    "rounds": 100,
    "workers": 2,
    "batch": 16,
    "seed": 1,
    "rate_mbit": 50,
    "delay_ms": 4,
    "queue_packets": 100,
    "loss_percent": 1,
    "burst_s": 0.5,
    "bursts": [
        {"after_round": 333, "loss_percent": 70},
        {"after_round": 666, "loss_percent": 80},
    ],
    "where": "kernel 6.12, virtual time (1 ns an instruction)",
}


def traffic(payload, lost):
    return {"payload": payload, "sent": payload, "lost": lost, "tolerated": 5, "retransmitted": 7}


def run_of(scale, lost):
    """Worker 0 needs 1, 2, ... 100 times scale milliseconds, worker 1 half of it."""
    worker = {"bytes": traffic(1000, lost), "ready_s": list(range(100))}
    return {
        "server.json": {
            "workers": 2,
            "total_s": 10 * scale,
            "bytes": traffic(2000, lost),
            "rounds": [{"loss": 1, "missing": 0}] * 100,
        },
        "worker-0.json": {**worker, "round_ms": [scale * i for i in range(1, 101)]},
        "worker-1.json": {**worker, "round_ms": [scale * i / 2 for i in range(1, 101)]},
        "evaluation.json": {"accuracy": 0.8 + scale / 100, "loss": 0.5},
        "qdisc.json": [
            {"kind": "noqueue", "dev": "lo"},
            {"kind": "netem", "dev": "p0", "packets": 90, "bytes": 90 * 1500, "drops": 10},
            {"kind": "netem", "dev": "link-far", "packets": 100, "bytes": 100 * 1500, "drops": 3},
        ],
    }


class Report(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.setup = copy.deepcopy(SETUP)
        self.runs = {"dblp": run_of(1, 11), "tcp-bbr": run_of(2, None), "tcp-cubic": run_of(3, None)}

    def report(self):
        (self.folder / "run.json").write_text(json.dumps(self.setup))
        for name, files in self.runs.items():
            (self.folder / "run" / name).mkdir(parents=True)
            for file, content in files.items():
                (self.folder / "run" / name / file).write_text(json.dumps(content))
        return subprocess.run(
            [sys.executable, REPORT, self.folder], capture_output=True, text=True, check=False
        )

    def result(self):
        done = self.report()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.table = done.stdout
        return json.loads((self.folder / "demo.json").read_text())

    def test_numbers(self):
        result = self.result()
        self.assertEqual(result["schema"], 1)
        dblp = result["transports"]["dblp"]
        # 200 samples: 1 to 100, and their halves.
        self.assertEqual(dblp["round_ms"], {"median": 33.75, "p99": 98, "max": 100})
        self.assertEqual(dblp["total_s"], 10)
        self.assertEqual(dblp["accuracy"], 0.81)
        self.assertEqual(dblp["network"], {"packets": 100, "lost": 10, "queue_overflows": 3})
        self.assertEqual(
            result["dblp_bytes"],
            {"payload": 4000, "lost": 33, "tolerated": 15, "retransmitted": 21},
        )

    def test_strongest_tcp_is_the_one_with_the_least_time(self):
        self.assertEqual(self.result()["transports"]["tcp"]["is"], "tcp:bbr")
        self.assertIn("2.00 times faster", self.table)

    def test_says_so_where_dblp_loses(self):
        self.runs["tcp-cubic"] = run_of(0.5, None)
        result = self.result()
        self.assertEqual(result["transports"]["tcp"]["is"], "tcp:cubic")
        self.assertIn("2.00 times slower", self.table)
        self.assertNotIn("faster", self.table)

    def test_table_fits_a_terminal(self):
        self.result()
        for line in self.table.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_picture_is_complete(self):
        self.result()
        root = xml.etree.ElementTree.parse(self.folder / "rounds.svg").getroot()
        svg = "{http://www.w3.org/2000/svg}"
        lines = root.findall(svg + "polyline")
        self.assertEqual([len(line.get("points").split()) for line in lines], [100] * 3)
        texts = " ".join(element.text for element in root.findall(svg + "text"))
        for wanted in ("ms", "round", "burst, 70 % lost", "DBLP", "TCP bbr", "TCP cubic"):
            self.assertIn(wanted, texts)

    def test_refuses_loss_of_bundles(self):
        self.runs["dblp"]["qdisc.json"][1]["bytes"] = 90 * 9000
        done = self.report()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("not per packet", done.stderr)

    def test_names_what_is_missing(self):
        del self.runs["tcp-bbr"]["worker-1.json"]
        done = self.report()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("1 of 2 workers", done.stderr)

        (self.folder / "run" / "dblp" / "evaluation.json").write_text("{")
        again = subprocess.run(
            [sys.executable, REPORT, self.folder], capture_output=True, text=True, check=False
        )
        self.assertIn("evaluation.json", again.stderr)
        self.assertNotIn("Traceback", again.stderr)


if __name__ == "__main__":
    unittest.main()
