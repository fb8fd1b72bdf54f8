#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near predicted times are to measured ones: `lacuna check --target lacuna-cpu` and `lacuna bench`.

    bench/predicted.py --lacuna build/release/lacuna --threads 1 pruned.onnx ...

bench runs the plan alternately with that of dense kernels alone. The dense plan that is predicted may have native
kernels, too (Winograd's algorithm), so `dense` is measured on a file without zeros: DENSE=PRUNED names both.
"""
import argparse
import json
import subprocess


def run(args, *words):
    done = subprocess.run([args.lacuna, *words, "--threads", str(args.threads)], capture_output=True, text=True)
    start = done.stdout.find("{")
    if start < 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout[start:])


def measured(args, dense, pruned):
    """The least of several alternate runs, ms."""
    least = {dense: float("inf"), pruned: float("inf")}
    for _ in range(args.rounds):
        for model in least:
            found = run(args, "bench", model, "--json", "-", "--time", str(args.seconds))
            time = found["sparse_ms"] or found["dense_ms"]
            least[model] = min(least[model], time["min"])
    return least[dense], least[pruned]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", default="build/release/lacuna")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("models", nargs="+", metavar="DENSE=PRUNED")
    args = parser.parse_args()
    print("network  dense: predicted  measured ms  pruned: predicted  measured ms  ratio: predicted  measured")
    for pair in args.models:
        dense, pruned = pair.split("=")
        found = run(args, "check", pruned, "--target", "lacuna-cpu", "--json", "-")["prediction"]
        before, after = found["dense_seconds"] * 1e3, found["pruned_seconds"] * 1e3
        time_before, time_after = measured(args, dense, pruned)
        print(f"{dense}  {before:.2f}  {time_before:.2f}  {after:.2f}  {time_after:.2f}  "
              f"{before / after:.2f}  {time_before / time_after:.2f}", flush=True)


if __name__ == "__main__":
    main()
