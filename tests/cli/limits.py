#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every verb under limits of address space, from what the program hardly starts with to plenty, and where no thread can
start: it is done, or it fails with one line; no signal, no file left.

    limits.py --lacuna build/release/lacuna [--step 25] [--verbose]
"""
import argparse
import collections
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent.parent / "examples" / "digits"
MODEL = str(DATA / "digits.onnx")
MIB = 1 << 20
INFER = ["infer", MODEL, "--input", "image=x.npy", "--input-shape", "image=2x1x8x8"]
VERBS = {
    "inspect": ["inspect", MODEL],
    "prune": ["prune", "--no-calibration", MODEL, "-o", "pruned.onnx", "--effort", "fast"],
    "check": ["check", MODEL, "--against", MODEL],
    "plain": INFER + ["--engine", "plain", "-o", "plain"],
    "infer": INFER + ["-o", "fast"],
    "eval": ["eval", MODEL, "--data", str(DATA)],
    "bench": ["bench", MODEL, "--runs", "1"],
    "train": ["train", "--arch", "digits", "--data", str(DATA), "-o", "trained.onnx", "--steps", "1", "--no-eval"],
    "finetune": ["finetune", MODEL, "--data", str(DATA), "-o", "tuned.onnx", "--steps", "1", "--no-eval"],
}


def run(lacuna, arguments, folder, address_space, stack=None):
    """Under these limits, in bytes; the stack's is what the threads' stacks take."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
        if stack:
            resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))
    return subprocess.run([lacuna] + arguments, cwd=folder, preexec_fn=limit, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=300)


def judge(done, left):
    """What is wrong with how it ended; nothing where all is well."""
    lines = done.stderr.strip().split("\n")
    if done.returncode == 0:
        return None
    if done.returncode != 1:
        return f"status {done.returncode}"
    if left:
        return f"leaves {sorted(left)}"
    return None if len(lines) == 1 and lines[0].startswith("lacuna: ") else "says more, or less, than one line"


def tidy(folder, keep):
    """Removes what a run wrote, and returns its names."""
    left = set(os.listdir(folder)) - keep
    for name in left:
        path = pathlib.Path(folder, name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return left


def least_to_start(lacuna, folder):
    """The limit in MiB from which on the loader finds memory for the program's libraries; None: it is watched by a
    sanitizer, which wants terabytes."""
    for mib in range(20, 1000, 5):
        if run(lacuna, ["version"], folder, mib * MIB).returncode == 0:
            return mib + 5
    return None


def sweep(lacuna, folder, limits, verbose):
    keep, wrong = set(os.listdir(folder)), 0
    for verb, arguments in VERBS.items():
        ends = collections.Counter()
        for mib in limits:
            done = run(lacuna, arguments + ["-q", "--threads", "2"], folder, mib * MIB)
            fault = judge(done, tidy(folder, keep))
            if fault and not (verb == "check" and "layers that should hold" in done.stderr):
                print(f"{verb} within {mib} MiB: {fault}: {done.stderr.strip()[-300:]}")
                wrong += 1
            ends[done.returncode] += 1
        if verbose:
            print(verb, dict(ends))
    return wrong


def without_threads(lacuna, folder):
    """Stacks larger than the address space: none but the first thread starts."""
    keep, wrong = set(os.listdir(folder)), 0
    for verb in ("prune", "plain", "infer", "eval", "bench", "train"):
        done = run(lacuna, VERBS[verb] + ["--threads", "2"], folder, 900 * MIB, 1000 * MIB)
        tidy(folder, keep)
        if done.returncode or "only 1 of 2 threads could be started" not in done.stderr:
            print(f"{verb} without threads: status {done.returncode}: {done.stderr.strip()[-300:]}")
            wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lacuna", required=True)
    parser.add_argument("--step", type=int, default=25, help="MiB from limit to limit")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    lacuna = str(pathlib.Path(options.lacuna).resolve())
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, HERE / "flatten.py"], cwd=folder, check=True)
        least = least_to_start(lacuna, folder)
        if least is None:
            print("skipped: the program does not start under any limit")
            return 0
        limits = [*range(least, least + 101, options.step), least + 200, least + 400]
        wrong = sweep(lacuna, folder, limits, options.verbose) + without_threads(lacuna, folder)
    print(f"limits of {limits[0]} to {limits[-1]} MiB, {len(VERBS)} verbs: {wrong} ended as they should not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
