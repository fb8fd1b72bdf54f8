#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lacuna against other engines: one table, one run, alternating.

    bench/compare.py [--only NETWORK] [--batch N] [--dtype f32|bf16] [--weights dense|2:4] [--engines LIST] [--time S]
                     [--json FILE] [--docs]

A cell is a network, a batch size, an element type, and its weights: dense, or pruned 2:4 by `lacuna prune --no-permute`. In the
latter Lacuna runs the pruned file with and without sparse kernels, and every other engine the dense and the pruned one. Its
engines run in processes of their own, in short time slices in random order until each has used its time, so that a slow moment
of the machine affects all alike. Answers are compared with ONNX Runtime's. With --json FILE a run that ended early goes on
where it was. The dense table takes about 25 minutes on two cores, that of pruned networks twice as long. Prints the change
against bench/ledger.json; --record adds an entry to it. docs/explain/speed.md explains.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time

import ledger

TOP = pathlib.Path(__file__).resolve().parent.parent
PYTHON = TOP / "build/venv-bench/bin/python"
try:
    import compare_models
except ImportError:  # numpy and onnx live in the environment
    if pathlib.Path(sys.prefix) == PYTHON.parent.parent or not PYTHON.exists():
        raise SystemExit("build/venv-bench is missing or broken: run bench/environment first") from None
    os.execv(PYTHON, [str(PYTHON), *sys.argv])
import compare_page
import compare_profile
from compare_worker import BF16_ENGINES, ENGINES, SPARSE_SETTINGS, Failed, Worker

WORK = TOP / "build/compare"
SLICES = 8        # that an engine's time is cut into
LEAST_RUNS = 3   # of an engine, however long one takes
CLOSE = 1e-4     # of the scale: what f32 answers may differ by


# ---- one cell ----

class Cell:
    """Where, what and with what to measure."""

    def __init__(self, arguments, path, batch, dtype):
        self.arguments, self.path, self.batch, self.dtype = arguments, path, batch, dtype

    def path_of(self, engine):
        return self.path

    def worker(self, engine, *extra, **environment):
        return Worker(engine, self.arguments.build, self.path_of(engine), self.dtype, self.arguments.threads, extra,
                      **environment)


class SparseCell(Cell):
    """The same of a pruned network, whose engines are SPARSE_SETTINGS."""

    def __init__(self, arguments, path, pruned, batch, dtype):
        super().__init__(arguments, path, batch, dtype)
        self.pruned = pruned

    def path_of(self, setting):
        return self.path if SPARSE_SETTINGS[setting][1] == "dense" else self.pruned

    def worker(self, setting, *extra, **environment):
        engine, _, said = SPARSE_SETTINGS[setting]
        return Worker(engine, self.arguments.build, self.path_of(setting), self.dtype, self.arguments.threads, extra,
                      **said, **environment)


def check_answer(cell, engine, worker, result):
    """The answer's difference from the reference; a wrong answer is a failure, and so is another precision."""
    place = cell.path_of(engine).parent
    with tempfile.TemporaryDirectory(dir=place) as folder:
        worker.ask(f"save {folder}")
        result["difference"] = compare_models.difference(place, pathlib.Path(folder))
    wanted = result["precision"]
    if cell.dtype not in wanted or (cell.dtype == "f32" and wanted != "f32"):
        raise Failed(f"works in {wanted or 'an unknown precision'}, not in {cell.dtype}")
    bound = CLOSE if cell.dtype == "f32" else float("inf")
    if not (result["difference"] <= bound and result["difference"] < float("inf")):
        raise Failed(f"wrong answer: off by {result['difference']:.2g} of the scale")


def begin(cell, engine):
    """A worker that has answered once, and its result so far: the best of a few starts."""
    starts = cell.arguments.starts if cell.batch == 1 and cell.dtype == "f32" else 1
    worker, result = None, {"answer_s": float("inf")}
    for _ in range(starts):
        if worker:
            worker.close()
        worker = cell.worker(engine)
        total = sum(worker.start[part] for part in ("load_s", "plan_s", "first_s"))
        if total < result["answer_s"]:
            result = {"answer_s": total, **worker.start}
    try:
        check_answer(cell, engine, worker, result)
        worker.run(0)
    except BaseException:
        worker.close()
        raise
    return worker, result


def alternate(workers, seconds, rng):
    """{engine: all milliseconds}. The first run of a time slice, on cold caches, counts only where a slice has few."""
    times, spent, errors = {e: [] for e in workers}, dict.fromkeys(workers, 0.0), {}
    while True:
        due = [e for e in workers if e not in errors and (spent[e] < seconds or len(times[e]) < LEAST_RUNS)]
        if not due:
            return times, errors
        rng.shuffle(due)
        for engine in due:
            try:
                found = workers[engine].run(min(seconds / SLICES, max(seconds - spent[engine], 0)))
            except Failed as why:
                errors[engine] = str(why)
                continue
            spent[engine] += sum(found) / 1e3
            times[engine] += found[1:] if len(found) > 3 else found


def finish(worker, result, times):
    result.update(min_ms=min(times), median_ms=statistics.median(times), runs=len(times))
    result["peak_mb"] = worker.ask("memory")["peak_mb"]
    worker.go_on()
    result["idle_share"] = worker.used_s / worker.idle_s if worker.idle_s else 0.0


def measure(cell, engines, rng):
    """{engine: its result, or {"error": why}}."""
    results, workers = {}, {}
    order = list(engines)
    rng.shuffle(order)
    try:
        for engine in order:
            try:
                workers[engine], results[engine] = begin(cell, engine)
            except Failed as why:
                results[engine] = {"error": str(why)}
        times, errors = alternate(workers, cell.arguments.time, rng)
        for engine, worker in workers.items():
            try:
                if engine in errors:
                    raise Failed(errors[engine])
                finish(worker, results[engine], times[engine])
            except Failed as why:
                results[engine] = {"error": str(why)}
    finally:
        for worker in workers.values():
            worker.close()
    return {engine: results[engine] for engine in engines}


def make_reference(arguments, path, batch):
    """What ONNX Runtime answers in f32."""
    folder = path.parent / "reference"
    folder.mkdir()
    worker = Cell(arguments, path, batch, "f32").worker("onnxruntime")
    worker.ask(f"save {folder}")
    worker.close()


# ---- all cells ----

def same_cell(one, network, batch, dtype, weights):
    return (one["network"], one["batch"], one["dtype"], compare_page.weights_of(one)) == (network, batch, dtype, weights)


def engines_of(arguments, dtype, weights):
    engines = [e for e in arguments.engines if dtype == "f32" or e in BF16_ENGINES]
    return engines if weights == "dense" else [setting for setting, (engine, _, _) in SPARSE_SETTINGS.items() if engine in engines]


def make_files(arguments, network, batch, with_pruned, folder):
    """(the network, the same pruned or None), each with what ONNX Runtime answers."""
    path, pruned = compare_models.prepare(network, batch, arguments.build, folder), None
    make_reference(arguments, path, batch)
    if with_pruned:
        pruned = compare_models.prune(path, batch, arguments.build)
        make_reference(arguments, pruned, batch)
    return path, pruned


def measure_files(arguments, network, batch, kinds, keep):
    """The cells that share files. kinds: [(dtype, weights)]."""
    with tempfile.TemporaryDirectory(dir=WORK, prefix=f"{os.getpid()}-") as folder:
        path, pruned, failure = None, None, None
        try:
            with_pruned = any(weights != "dense" for _, weights in kinds)
            path, pruned = make_files(arguments, network, batch, with_pruned, pathlib.Path(folder))
        except Exception as why:  # whatever an exporter's file can do to its reader: the cell says so
            failure = f"no file to measure: {str(why).splitlines()[0][:150]}"
        for dtype, weights in kinds:
            begin_s, engines, losses = time.monotonic(), engines_of(arguments, dtype, weights), []
            is_dense = weights == "dense"
            cell = Cell(arguments, path, batch, dtype) if is_dense else SparseCell(arguments, path, pruned, batch, dtype)
            if failure:
                results = {engine: {"error": failure} for engine in engines}
            else:
                seed = f"{arguments.seed} {network} {batch} {dtype}"
                results = measure(cell, engines, random.Random(seed))
            one = {"network": network, "batch": batch, "dtype": dtype, "weights": weights, "engines": results}
            if is_dense and compare_page.is_slower(one):
                losses = compare_profile.losses(cell, results)
            keep({**one, "losses": losses, "seconds": round(time.monotonic() - begin_s, 1)})


def sweep():
    """Makes the working folder, and removes from it what runs left that were killed."""
    WORK.mkdir(parents=True, exist_ok=True)
    for folder in WORK.iterdir():
        if not pathlib.Path(f"/proc/{folder.name.partition('-')[0]}").exists():
            shutil.rmtree(folder)


def measure_all(arguments, results):
    commit = ledger.circumstances(arguments.build)["commit"]

    def keep(cell):
        cell["commit"] = commit
        results["cells"] = [one for one in results["cells"]
                            if not same_cell(one, cell["network"], cell["batch"], cell["dtype"], cell["weights"])] + [cell]
        results["cells"].sort(key=compare_page.place_of)
        if arguments.json:
            temporary = arguments.json.with_suffix(".part")
            temporary.write_text(json.dumps(results, indent=1) + "\n")
            temporary.replace(arguments.json)
        print(compare_page.line_of(cell), flush=True)

    sweep()
    for network in arguments.only:
        for batch in arguments.batch:
            due = [(dtype, weights) for weights in arguments.weights for dtype in arguments.dtype if arguments.again or
                   not any(same_cell(one, network, batch, dtype, weights) for one in results["cells"])]
            if due:
                measure_files(arguments, network, batch, due, keep)


def earlier_results(arguments):
    """What --json FILE holds already, if it was measured under the same conditions, or an empty table."""
    here = {**ledger.circumstances(arguments.build), "threads": arguments.threads, "time_s": arguments.time}
    if not arguments.json or not arguments.json.exists():
        return {"schema": 1, "circumstances": here, "cells": []}
    results = json.loads(arguments.json.read_text())
    was = results["circumstances"]
    for what in ("machine", "threads"):
        if not arguments.tables and was[what] != here[what]:
            raise SystemExit(f"{arguments.json}: measured with {what} {was[what]}, not {here[what]}; name another file")
    return results


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    networks = list(compare_models.NETWORKS)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--only", action="append", choices=networks, metavar="NETWORK", help=", ".join(networks))
    parser.add_argument("--batch", action="append", type=int, metavar="N", help="default 1 and 16")
    parser.add_argument("--dtype", action="append", choices=("f32", "bf16"), help="default both")
    parser.add_argument("--weights", action="append", choices=("dense", "2:4"), help="default both")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES), help=",".join(ENGINES))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--time", type=float, default=6.0, metavar="S", help="seconds of an engine in a cell (default 6)")
    parser.add_argument("--starts", type=int, default=2, help="fresh processes for the time to the first answer (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of engines")
    parser.add_argument("--json", type=pathlib.Path, help="keep all results there, and go on from what it holds")
    parser.add_argument("--again", action="store_true", help="measure cells that --json holds already once more")
    parser.add_argument("--tables", action="store_true", help="measure nothing: show, draw or record what --json holds")
    parser.add_argument("--docs", action="store_true", help="write the tables and charts of docs/explain/speed.md and bench/notes/speed.md")
    parser.add_argument("--record", action="store_true", help="add an entry to bench/ledger.json")
    arguments = parser.parse_args()
    arguments.only = arguments.only or networks
    arguments.batch = arguments.batch or [1, 16]
    arguments.dtype = arguments.dtype or ["f32", "bf16"]
    arguments.weights = arguments.weights or ["dense", "2:4"]
    arguments.build = arguments.build.resolve()
    for name in arguments.engines:
        if name not in ENGINES:
            parser.error(f"no engine {name}: there are {', '.join(ENGINES)}")
    if min(arguments.batch) < 1 or arguments.threads < 1 or arguments.starts < 1 or not arguments.time > 0:
        parser.error("--batch, --threads, --starts and --time want positive numbers")
    if arguments.tables and not (arguments.json and arguments.json.exists()):
        parser.error("--tables wants --json FILE of an earlier run")
    return arguments


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    results = earlier_results(arguments)
    if not arguments.tables:
        measure_all(arguments, results)
    print("\n" + "\n".join(compare_page.text(results)))
    if arguments.docs:
        compare_page.write_docs(results)
    ledger.report("compare", compare_page.figures_of(results), results["circumstances"], arguments.record)
    wrong = [cell for cell in results["cells"] if "error" in cell["engines"].get("lacuna", {})]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
