#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy without any data: top-1 on CIFAR-10's whole test set after `prune --calibration synthetic`.

    bench/synthetic.py [--build build/release] [--networks 20,32,44,56] [--seeds 5] [--lite0] [OPTION OF prune ...]

One row a network, the mean of the seeds with the least and the most; --lite0 adds EfficientNet-Lite0 on the 100 photographs of
../shared. Networks and data are those of ../shared.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
SHARED = TOP.parent / "shared"
CIFAR = ["--data", SHARED / "data/cifar-10-batches-bin", "--mean", "123.675,116.28,103.53", "--std", "58.395,57.12,57.375"]
PHOTOGRAPHS = ["--data", SHARED / "data/imagenet-sample", "--mean", "127,127,127", "--std", "128,128,128"]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.args}: {done.stderr.strip()}")
    return done.stdout + done.stderr


def top1(lacuna, model, data):
    return float(re.search(r"top-1 ([0-9.]+)%", run(lacuna, "eval", model, *data)).group(1))


def row(lacuna, folder, name, model, data, args, options):
    dense, found, seconds = top1(lacuna, model, data), [], []
    for seed in range(args.seeds):
        out, begin = folder / "out.onnx", time.monotonic()
        run(lacuna, "prune", model, "-o", out, "--force", "--calibration", "synthetic", "--seed", seed, *options)
        seconds.append(time.monotonic() - begin)
        found.append(top1(lacuna, out, data))
    print(f"| {name} | {dense:.2f} | {statistics.mean(found):.2f} ({min(found):.2f}-{max(found):.2f}) | "
          f"{min(seconds):.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--networks", default="20,32,44,56")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--lite0", action="store_true")
    args, options = parser.parse_known_args()
    lacuna = args.build.resolve() / "lacuna"
    print("| network | dense | top-1, % | seconds, the least |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="synthetic-") as folder:
        folder = pathlib.Path(folder)
        for size in filter(None, args.networks.split(",")):
            row(lacuna, folder, f"ResNet-{size}", SHARED / f"models/resnet{size}_cifar10.onnx", CIFAR, args, options)
        if args.lite0:
            row(lacuna, folder, "EfficientNet-Lite0", SHARED / "models/efficientnet_lite0.onnx", PHOTOGRAPHS, args, options)


if __name__ == "__main__":
    main()
