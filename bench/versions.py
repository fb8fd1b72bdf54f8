#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of Lacuna, an old and a new one, alternating: is anything slower or larger than it was?

    bench/versions.py OLD [NEW] [--only PART]... [--rows TEXT] [--time S] [--json FILE]

OLD and NEW are build folders (NEW: build/release). Parts: infer (networks of compare.py), train (train.py, with --remat,
too), prune (whole commands) and search. Both builds do the same work in rounds, a short time slice of each, so that other load
on the machine affects both alike. The ratio is the median of the rounds' old/new, so that 1.1 says that the new build takes a
tenth less; its possible error is shown next to it. Needs numpy and onnx for `infer`.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from compare_worker import HABITS, Failed, Process, Worker

TOP = pathlib.Path(__file__).resolve().parent.parent
SLICE = 0.2        # seconds of a build in a round; at least one run
LEAST_ROUNDS = 8
ENOUGH = 0.98     # what the new build has to reach
TRAININGS = (("cifar-resnet56", 128, ""), ("cifar-resnet56", 128, "remat"), ("resnet50", 16, ""), ("resnet50", 16, "remat"))
PRUNED = (("resnet50_ts", "normal"), ("resnet50_ts", "fast"), ("mobilenet_v2_ts", "normal"), ("vit_b_16_dynamo", "fast"))
SEARCHES = ("512x1024", "2304x256")
TIMEOUT_S = 600.0


def in_rounds(workers, seconds, rng, take):
    """{which: [the least time of a slice]}: a round has a time slice of each, in random order, as `take(worker, seconds)` does
    it."""
    found, begin = {which: [] for which in workers}, time.monotonic()
    while time.monotonic() - begin < 2 * seconds or len(found["new"]) < LEAST_ROUNDS:
        order = list(workers)
        rng.shuffle(order)
        for which in order:
            found[which].append(min(take(workers[which], SLICE)))
    return found


def row_of(name, found, **more):
    """The median of the rounds' ratios, and what it may be wrong by: twice the standard error of a median."""
    ratios = [old / new for old, new in zip(found["old"], found["new"])]
    middle = statistics.median(ratios)
    spread = 1.4826 * statistics.median(abs(ratio - middle) for ratio in ratios)
    return {"name": name, "old_ms": min(found["old"]), "new_ms": min(found["new"]), "ratio": middle,
            "error": 2 * 1.2533 * spread / len(ratios) ** 0.5, "rounds": len(ratios), **more}


def with_processes(builds, start, seconds, rng, name):
    """A row measured by two programs that take orders. start(build) makes one."""
    workers = {}
    try:
        for which, build in builds.items():
            workers[which] = start(build)
        found = in_rounds(workers, seconds, rng, lambda worker, part: worker.ask(f"run {part:.4f}", TIMEOUT_S)["ms"])
        peaks = {f"{which}_mb": worker.ask("memory")["peak_mb"] for which, worker in workers.items()}
        starts = {f"{which}_{part}": worker.start[part] for which, worker in workers.items()
                  for part in ("plan_s", "planned_mb") if part in worker.start}
        return row_of(name, found, **peaks, **starts)
    finally:
        for worker in workers.values():
            worker.close()


def infer_rows(builds, arguments, rng):
    import compare_models  # numpy and onnx are needed here only
    for network in compare_models.NETWORKS:
        for batch in (1, 16):
            name = f"infer {network}, batch {batch}"
            if arguments.rows not in name:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = compare_models.prepare(network, batch, builds["new"], pathlib.Path(folder))
                yield with_processes(builds, lambda build: Worker("lacuna", build, path, "f32", arguments.threads),
                                     arguments.time, rng, name)


def train_rows(builds, arguments, rng):
    for arch, batch, remat in TRAININGS:
        name = f"train {arch}, batch {batch}{', ' + remat if remat else ''}"
        if arguments.rows not in name:
            continue
        options = [arch, str(batch), "f32", str(arguments.threads), *([remat] if remat else [])]
        yield with_processes(builds, lambda build: Process([build / "bench/train_worker", *options], TIMEOUT_S, **HABITS["lacuna"]),
                             2 * arguments.time, rng, name)


class Command:
    """A command that runs whole in every time slice."""

    def __init__(self, *command):
        self.command, self.peak_mb = [str(part) for part in command], 0.0

    def run(self):
        begin = time.monotonic()
        process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise Failed(f"{' '.join(self.command)} failed")
        self.peak_mb = max(self.peak_mb, usage.ru_maxrss / 1024)
        return [1e3 * (time.monotonic() - begin)]


def command_row(builds, command_of, arguments, rng, name):
    commands = {which: Command(*command_of(build)) for which, build in builds.items()}
    found = in_rounds(commands, arguments.time, rng, lambda command, _: command.run())
    return row_of(name, found, **{f"{which}_mb": command.peak_mb for which, command in commands.items()})


def prune_rows(builds, arguments, rng):
    for network, effort in PRUNED:
        name = f"prune {network}, {effort}"
        if arguments.rows not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.onnx"
            subprocess.run([builds["new"] / "tests/tools/fill_model", TOP / f"tests/fixtures/zoo/{network}.onnx", model, "1"],
                           check=True, stdout=subprocess.DEVNULL)
            yield command_row(builds, lambda build: [build / "lacuna", "prune", "-q", "--force", "--score", "magnitude", model, "-o",
                                                     model.with_suffix(".out.onnx"), "--effort", effort],
                              arguments, rng, name)


def search_rows(builds, arguments, rng):
    for row in SEARCHES:
        name = f"search {row}"
        if arguments.rows in name:
            yield command_row(builds, lambda build: [build / "bench/search_bench", "--quick", "--only", row],
                              arguments, rng, name)


PARTS = {"infer": infer_rows, "train": train_rows, "prune": prune_rows, "search": search_rows}


def is_slower(row):
    return row["ratio"] + row["error"] < ENOUGH


def show(row):
    memory = f"{row['old_mb']:8.0f}{row['new_mb']:8.0f}" if "old_mb" in row else ""
    print(f"{row['name']:38}{row['old_ms']:10.2f}{row['new_ms']:10.2f}{row['ratio']:7.3f} +-{row['error']:6.3f}{row['rounds']:7}"
          f"{memory}{'  slower' if is_slower(row) else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path, nargs="?", default=TOP / "build/release")
    parser.add_argument("--only", action="append", choices=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rows", default="", metavar="TEXT", help="only rows that have TEXT in their name")
    parser.add_argument("--time", type=float, default=8.0, metavar="S", help="seconds of each build in a row (default 8)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--json", type=pathlib.Path, help="keep the results there")
    arguments = parser.parse_args()
    builds, rows = {"old": arguments.old.resolve(), "new": arguments.new.resolve()}, []
    print(f"{'':38}{'old ms':>10}{'new ms':>10}{'ratio':>7}{'rounds':>16}{'old MB':>8}{'new MB':>8}")
    for part in arguments.only or PARTS:
        try:
            for row in PARTS[part](builds, arguments, random.Random(part)):
                show(row)
                rows.append(row)
        except Failed as why:
            raise SystemExit(f"{part}: {why}") from None
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    n_slow = sum(map(is_slower, rows))
    print(f"{len(rows) - n_slow} of {len(rows)} rows at {ENOUGH} or better, within their error")
    sys.exit(bool(n_slow))


if __name__ == "__main__":
    main()
