#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `lacuna prune --speed X` reaches: the wish, what the plan predicts, and what is measured.

    bench/speed.py --wish 1.1,1.2 model.onnx ...          (in a venv with the wheel that `make wheel` builds)

The dense and the pruned network run alternately in one process, a run each, so that slow seconds of the machine fall
on both. The measured ratio is that of the medians; next to it is the ratio of the fastest runs.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np

import lacuna


def prune(args, model, wish, folder):
    """Prunes for the wish. Returns the file and the report, or what prevented it."""
    out, report = os.path.join(folder, "pruned.onnx"), os.path.join(folder, "report.json")
    words = [args.lacuna, "prune", model, "-o", out, "--speed", wish, "--json", report, "--force",
             "--threads", str(args.threads), *args.option]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    with open(report, encoding="utf-8") as file:
        return out, json.load(file)


def measure(args, dense, pruned):
    """Times of alternate runs, ms: those of the dense network, those of the pruned one."""
    sessions = [lacuna.Session(path, threads=args.threads) for path in (dense, pruned)]
    feeds = [{i.name: np.random.default_rng(0).standard_normal([n if isinstance(n, int) and n > 0 else 1 for n in i.shape]).astype(np.float32)
              for i in session.get_inputs()} for session in sessions]
    for session, feed in zip(sessions, feeds):
        session.run(None, feed)
    times = ([], [])
    end = time.perf_counter() + args.seconds
    while time.perf_counter() < end:
        for session, feed, spent in zip(sessions, feeds, times):
            begin = time.perf_counter()
            session.run(None, feed)
            spent.append(1e3 * (time.perf_counter() - begin))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", default="build/release/lacuna")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--wish", default="1.1,1.2,1.3", help="speeds, as --speed takes them")
    parser.add_argument("--option", action="append", default=[], help="one more word for lacuna prune")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    print(f"{'model':24s} {'wish':>5s} {'layers':>8s} {'predicted':>9s} {'measured':>8s} {'fastest':>8s}")
    for model in args.models:
        for wish in args.wish.split(","):
            with tempfile.TemporaryDirectory() as folder:
                pruned, report = prune(args, model, wish, folder)
                name = os.path.basename(model)
                if not pruned:
                    print(f"{name:24s} {wish:>5s} {report}")
                    continue
                dense_ms, ms = measure(args, model, pruned)
            found = report["prediction"]
            median = statistics.median(dense_ms) / statistics.median(ms)
            predicted = found["dense_seconds"] / found["pruned_seconds"]
            print(f"{name:24s} {wish:>5s} {found['sparse']:8d} {predicted:9.2f} "
                  f"{median:8.2f} {min(dense_ms) / min(ms):8.2f}", flush=True)


if __name__ == "__main__":
    main()
