#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of Lacuna and of PyTorch, alternating: images a second, peak memory, and where Lacuna's time goes.

    bench/train.py [--build build/release] [--torch PYTHON] [--only NETWORK] [--dtype f32|bf16] [--threads N] [--time S]
                   [--cpu-time] [--profile] [--json FILE] [--docs] [--record]

A cell is a network with its batch and an element type; Lacuna, Lacuna with --remat and each of PyTorch's layouts run in
processes of their own, in short time slices until each has used its time. PyTorch's best layout counts. --cpu-time compares
processor time (with --threads 1 that means something on a machine that is not quiet). PYTHON needs torch and torchvision.
--docs writes the tables of docs/explain/train-speed.md and bench/notes/train-speed.md; --record adds an entry to bench/ledger.json.
"""
import argparse
import json
import os
import pathlib
import random
import statistics

import ledger
from compare_worker import HABITS, Failed, Process
from page import fill

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE, NOTES = TOP / "docs/explain/train-speed.md", TOP / "bench/notes/train-speed.md"
NETWORKS = {"cifar-resnet56": 128, "resnet50": 32}  # and their batches
NAMES = {"cifar-resnet56": "CIFAR ResNet-56", "resnet50": "ResNet-50"}
LAYOUTS = {"f32": ("channels_last", "contiguous"), "bf16": ("channels_last",)}
WANTED = {"f32": 1.3, "bf16": 1.5}  # times PyTorch's images a second
SLICES = 4
LEAST_STEPS = 3
TIMEOUT = 600.0
SHOWN = 12  # kinds of steps in a table


# ---- measuring ----

def commands(arguments, network, dtype):
    """{name: command} of those that alternate."""
    common = [network, str(NETWORKS[network]), dtype, str(arguments.threads)]
    ours = [str(arguments.build / "bench/train_worker"), *common]
    out = {"lacuna": ours, "remat": [*ours, "remat"]}
    for layout in LAYOUTS[dtype]:
        out[layout] = [str(arguments.torch), str(TOP / "bench/train_peer.py"), *common, layout]
    return out


def alternate(workers, seconds, rng):
    """{name: {"ms", "cpu_ms"}}; the first step after a pause counts only where there are few."""
    found, spent = {name: {"ms": [], "cpu_ms": []} for name in workers}, dict.fromkeys(workers, 0.0)
    while True:
        due = [name for name in workers if spent[name] < seconds or len(found[name]["ms"]) < LEAST_STEPS]
        if not due:
            return found
        rng.shuffle(due)
        for name in due:
            part = min(seconds / SLICES, max(seconds - spent[name], 0))
            steps = workers[name].ask(f"run {part:.4f}", TIMEOUT + part)
            skip = 1 if len(steps["ms"]) > 3 else 0
            spent[name] += sum(steps["ms"]) / 1e3
            for key in found[name]:
                found[name][key] += steps[key][skip:]


def result_of(worker, steps, batch, cpu_time):
    times = steps["cpu_ms" if cpu_time else "ms"]
    return {**worker.start, "steps": len(times), "min_ms": min(times), "median_ms": statistics.median(times),
            "images_per_second": 1e3 * batch / statistics.median(times), "peak_mb": worker.ask("memory")["peak_mb"]}


def measure(arguments, network, dtype):
    """A cell."""
    workers, cell = {}, {"network": network, "batch": NETWORKS[network], "dtype": dtype}
    try:
        for name, command in commands(arguments, network, dtype).items():
            workers[name] = Process(command, TIMEOUT, **HABITS.get(name, {}), OMP_NUM_THREADS=str(arguments.threads))
        found = alternate(workers, arguments.time, random.Random(f"{network} {dtype}"))
        cell["engines"] = {name: result_of(worker, found[name], NETWORKS[network], arguments.cpu_time)
                           for name, worker in workers.items()}
        if arguments.profile or arguments.docs:
            cell["kinds"] = workers["lacuna"].ask("profile 3", TIMEOUT)["kinds"]
    finally:
        for worker in workers.values():
            worker.close()
    return cell


# ---- showing ----

def best_peer(cell):
    peers = [name for name in cell["engines"] if name in LAYOUTS["f32"]]
    return max(peers, key=lambda name: cell["engines"][name]["images_per_second"])


def ratio(cell):
    engines = cell["engines"]
    return engines["lacuna"]["images_per_second"] / engines[best_peer(cell)]["images_per_second"]


def table(cells):
    yield "| network, batch | type | Lacuna img/s | PyTorch img/s | layout | ratio | wanted | Lacuna MB | PyTorch MB |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for cell in cells:
        peer = best_peer(cell)
        ours, theirs = cell["engines"]["lacuna"], cell["engines"][peer]
        yield (f"| {NAMES[cell['network']]}, {cell['batch']} | {cell['dtype']} | {ours['images_per_second']:.1f} "
               f"| {theirs['images_per_second']:.1f} | {peer} | {ratio(cell):.2f} | {WANTED[cell['dtype']]} "
               f"| {ours['peak_mb']:.0f} | {theirs['peak_mb']:.0f} |")


def profile_table(cell):
    total = sum(kind["ms"] for kind in cell["kinds"])
    yield f"| {NAMES[cell['network']]}, {cell['dtype']}: step, kernel | steps | ms | share |"
    yield "|---|---|---|---|"
    for kind in cell["kinds"][:SHOWN]:
        yield f"| {kind['name']} | {kind['steps']} | {kind['ms']:.1f} | {100 * kind['ms'] / total:.1f} % |"
    rest = sum(kind["ms"] for kind in cell["kinds"][SHOWN:])
    yield f"| all else | | {rest:.1f} | {100 * rest / total:.1f} % |"


def remat_table(cells):
    yield "| network, batch | type | planned MB | with `--remat` | most held, MB | with `--remat` | time of a step |"
    yield "|---|---|---|---|---|---|---|"
    for cell in cells:
        kept, again = cell["engines"]["lacuna"], cell["engines"]["remat"]
        yield (f"| {NAMES[cell['network']]}, {cell['batch']} | {cell['dtype']} | {kept['planned_mb']:.0f} "
               f"| {again['planned_mb']:.0f} | {kept['peak_mb']:.0f} | {again['peak_mb']:.0f} "
               f"| {again['median_ms'] / kept['median_ms']:.2f} x |")


def circumstances_line(results):
    here, threads = results["circumstances"], results["threads"]
    cell = results["cells"][0]
    torch = cell["engines"][best_peer(cell)]["version"]
    kind = "processor time" if results["cpu_time"] else "wall time"
    return (f"{here['machine']['cpu']}, {threads} thread{'s' * (threads > 1)}, {kind}, medians; PyTorch {torch}; "
            f"Lacuna {here['commit']}, {here['compiler']}, {here['date']}.")


def write_docs(results):
    profiles = [line for cell in results["cells"] if "kinds" in cell for line in [*profile_table(cell), ""]]
    text = fill(PAGE.read_text(), "speed", "train.py", [*table(results["cells"]), "", circumstances_line(results)])
    PAGE.write_text(fill(text, "remat", "train.py", list(remat_table(results["cells"]))))
    NOTES.write_text(fill(NOTES.read_text(), "profile", "train.py", profiles[:-1]))


def figures_of(results):
    out = {}
    for cell in results["cells"]:
        name, ours = f"{cell['network']}, {cell['dtype']}", cell["engines"]["lacuna"]
        out[f"{name}: step"] = ledger.figure(ours["median_ms"], "ms")
        out[f"{name}: times PyTorch's speed"] = ledger.figure(ratio(cell), "x")
        out[f"{name}: peak memory"] = ledger.figure(ours["peak_mb"], "MB")
    return out


# ---- the program ----

def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--torch", type=pathlib.Path, default=TOP / "build/venv-interop/bin/python",
                        help="a Python with torch and torchvision (default: that of make check-torch)")
    parser.add_argument("--only", action="append", choices=list(NETWORKS), metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--dtype", action="append", choices=list(LAYOUTS), help="default both")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--time", type=float, default=40.0, metavar="S", help="seconds of each in a cell (default 40)")
    parser.add_argument("--cpu-time", action="store_true", help="processor time, not wall time")
    parser.add_argument("--profile", action="store_true", help="show where Lacuna's time goes")
    parser.add_argument("--json", type=pathlib.Path, help="keep the results there")
    parser.add_argument("--tables", action="store_true", help="measure nothing: show, write or record what --json holds")
    parser.add_argument("--docs", action="store_true", help="write the tables of docs/explain/train-speed.md and the notes")
    parser.add_argument("--record", action="store_true", help="add an entry to bench/ledger.json")
    arguments = parser.parse_args()
    if arguments.tables and not (arguments.json and arguments.json.exists()):
        parser.error("--tables wants --json FILE of an earlier run")
    if arguments.threads < 1 or not arguments.time > 0:
        parser.error("--threads and --time want positive numbers")
    arguments.build = arguments.build.resolve()
    return arguments


def measure_all(arguments):
    results = {"schema": 1, "circumstances": ledger.circumstances(arguments.build), "threads": arguments.threads,
               "cpu_time": arguments.cpu_time, "cells": []}
    for network in arguments.only or NETWORKS:
        for dtype in arguments.dtype or LAYOUTS:
            try:
                cell = measure(arguments, network, dtype)
            except Failed as why:
                raise SystemExit(f"{network}, {dtype}: {why}") from None
            results["cells"].append(cell)
            print(f"{network}, {dtype}: {ratio(cell):.2f} times PyTorch", flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return results


def main():
    arguments = parse()
    results = json.loads(arguments.json.read_text()) if arguments.tables else measure_all(arguments)
    print("\n" + "\n".join(table(results["cells"])) + "\n" + circumstances_line(results))
    print("\n" + "\n".join(remat_table(results["cells"])))
    for cell in results["cells"]:
        if "kinds" in cell:
            print("\n" + "\n".join(profile_table(cell)))
    if arguments.docs:
        write_docs(results)
    ledger.report("train", figures_of(results), results["circumstances"], arguments.record)


if __name__ == "__main__":
    main()
