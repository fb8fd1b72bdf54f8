#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/processes.py without its runs: steps out of a log, ratios of rounds, the table."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import processes


def write_log(folder, images, seconds):
    """log.jsonl as a training writes it: a running mean of the steps' seconds, as images a second."""
    (folder / "run").mkdir()
    mean, lines = seconds[0], []
    for step, one in enumerate(seconds):
        mean += 0.1 * (one - mean)
        lines.append({"step": step + 1, "epoch": 0, "loss": 1, "lr": 0.1, "images_per_second": images / mean})
    lines.insert(2, {"eval": True, "step": 2, "top1": 1, "top5": 2, "loss": 3})
    (folder / "run/log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


class Logs(unittest.TestCase):
    def test_give_back_the_seconds_of_each_step(self):
        seconds = [3.0, 1.0, 1.5, 0.5, 2.0]
        with tempfile.TemporaryDirectory() as temporary:
            write_log(pathlib.Path(temporary), 64, seconds)
            found = processes.seconds_of_steps(pathlib.Path(temporary), 64)
        self.assertEqual([round(one, 9) for one in found], seconds)

    def test_count_without_their_first_steps(self):
        self.assertEqual(processes.images_per_second([9, 9, 1, 2, 3], 10), 5)
        self.assertEqual(processes.images_per_second([4], 10), 2.5)


class Tables(unittest.TestCase):
    CELL = {"network": "resnet50", "batch": 16, "steps": 8,
            "images_per_second": {"one": [4.0, 5.0, 4.0], "two": [8.0, 8.0, 7.0], "pair": [8.0, 8.0, 8.0],
                                  "torch": [5.0, 4.0, 7.0]}}

    def test_compare_round_by_round(self):
        self.assertEqual(processes.ratio(self.CELL, "two", "one"), (1.75, 1.6, 2.0))

    def test_have_a_row_for_each_comparison(self):
        lines = list(processes.table({"scaling": [self.CELL], "busy": [self.CELL]}))
        self.assertEqual(lines[2], "| ResNet-50, 16 | one process | 8.00 | 4.00 | 1.75 (1.60 to 2.00) | 1.7 |")
        self.assertEqual(len(lines), 5)


class Data(unittest.TestCase):
    def test_of_noise_has_cifars_size(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "noise"
            processes.noise_for_cifar(folder)
            sizes = {path.stat().st_size for path in folder.iterdir()}
        self.assertEqual(sizes, {400 * 3073})


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(bad > 0)
