#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: onnx onnxruntime numpy
"""Lacuna inside ONNX Runtime: how fast, next to Lacuna alone and to ONNX Runtime's own provider, in one run, interleaved.

    bench/ort.py [--build build/release] [--batches 1,16] [--seconds 20] [--slice 1] [--threads N] [--options all=1] MODEL.onnx ...
    bench/ort.py --start PLAIN.onnx PACKED.onnx      what passes until the first answer, the two files interleaved
    bench/ort.py --load MODEL.onnx                   one session run by four threads, shapes mixed, next to a session for each thread

The models' first axis is the batch; other axes are fixed. Each contender is a process of its own, which the others find stopped
(compare_worker.py). A row has the least and the middle time of all runs, the middle one of the ratios of slices that follow each
other, and the processor time of a run: on a machine that is not quiet, that one still compares, with --threads 1. Of a network
that the provider does not take (dense, without all=1) the ratio to ONNX Runtime's own is what its presence costs.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import numpy as np
import onnx
from compare_worker import HABITS, Process
from inputs import write_input

TOP = pathlib.Path(__file__).resolve().parent.parent
WORKER = TOP / "bench/peer_worker.py"
CONTENDERS = {"lacuna": "Lacuna alone", "provider": "Lacuna inside", "onnxruntime": "ONNX Runtime's own"}
N_THREADS, N_RUNS = 4, 1000


def with_batch(model, batch, folder):
    """The model with this batch, and its inputs; the path of the model."""
    net = onnx.load(model)
    constants = {tensor.name for tensor in net.graph.initializer}
    rng = np.random.default_rng(0)
    for value in net.graph.input:
        if value.name in constants:
            continue
        sizes = value.type.tensor_type.shape.dim
        if not sizes[0].HasField("dim_value"):
            sizes[0].dim_value = batch
        shape = [size.dim_value for size in sizes]
        floats = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).kind == "f"
        write_input(folder, value.name, rng.standard_normal(shape) if floats else rng.integers(0, 2, shape))
    onnx.save(net, folder / "model.onnx")
    return folder / "model.onnx"


def command(name, args, path):
    threads = args.threads or len(os.sched_getaffinity(0))
    if name == "lacuna":
        return [args.build / "bench/engine_worker", path, path.parent, "f32", threads]
    return [sys.executable, WORKER, name, path, path.parent, "f32", threads]


def begin(name, args, path):
    habits = HABITS["lacuna"] if name == "lacuna" else {}
    return Process(command(name, args, path), LAC_ORT_LIBRARY=str(args.build.resolve() / "lib/lacuna/liblacuna_ort.so"),
                   LAC_ORT_OPTIONS=args.options, **habits)


def speed(args, model, batch):
    """Milliseconds of all contenders, slice by slice."""
    with tempfile.TemporaryDirectory() as folder:
        path = with_batch(model, batch, pathlib.Path(folder))
        names = [name for name in CONTENDERS if name != "lacuna" or (args.build / "bench/engine_worker").exists()]
        workers = {name: begin(name, args, path) for name in names}
        slices, used = {name: [] for name in names}, dict.fromkeys(names, 0.0)
        try:
            for worker in workers.values():  # not counted
                worker.ask(f"run {args.slice:.4f}")
            end = time.monotonic() + args.seconds * len(names)
            while time.monotonic() < end:
                for name, worker in workers.items():
                    before = worker.stat()[1]
                    slices[name].append(worker.ask(f"run {args.slice:.4f}")["ms"])
                    used[name] += worker.stat()[1] - before
        finally:
            for worker in workers.values():
                worker.close()
    row = {"model": pathlib.Path(model).name, "batch": batch, "runs": {}, "min_ms": {}, "median_ms": {}, "ratio": {}, "cpu_ms": {}}
    for name, of in slices.items():
        runs = [ms for one in of for ms in one]
        row["runs"][name], row["min_ms"][name], row["median_ms"][name] = len(runs), min(runs), statistics.median(runs)
        row["cpu_ms"][name] = 1e3 * used[name] / len(runs)
        pairs = zip(of, slices["provider"])
        row["ratio"][name] = statistics.median(statistics.median(other) / statistics.median(own) for other, own in pairs)
    for name in names:
        print(f"{row['model']:28} {batch:5} {CONTENDERS[name]:20} {row['min_ms'][name]:10.3f} {row['median_ms'][name]:10.3f} "
              f"{row['min_ms'][name] / row['min_ms']['provider']:6.3f} {row['ratio'][name]:6.3f} {row['cpu_ms'][name]:10.3f} "
              f"{row['cpu_ms'][name] / row['cpu_ms']['provider']:6.3f} {row['runs'][name]:6}", flush=True)
    return row


def start(args):
    """Seconds until the first answer, a process for each."""
    found = {model: [] for model in args.models}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with_batch(args.models[0], 1, folder)
        for _ in range(args.rounds):
            for model in args.models:
                (folder / "model.onnx").unlink()
                (folder / "model.onnx").symlink_to(pathlib.Path(model).resolve())
                worker = begin("provider", args, folder / "model.onnx")
                found[model].append((worker.start["plan_s"] + worker.start["first_s"], worker.start["plan_s"]))
                worker.close()
    for model, seconds in found.items():
        print(f"{pathlib.Path(model).name:28} first answer: least {1e3 * min(s for s, _ in seconds):8.1f} ms, middle "
              f"{1e3 * statistics.median(s for s, _ in seconds):8.1f} ms; session alone, least {1e3 * min(p for _, p in seconds):8.1f}")
    return found


def load(args):
    """Runs a second of four threads with batches 1 to 3 mixed: on one session, and each on its own with one thread."""
    import onnxruntime
    library = onnxruntime
    name = "LacunaExecutionProvider"
    library.register_execution_provider_library(name, str(args.build.resolve() / "lib/lacuna/liblacuna_ort.so"))

    def session(threads):
        options = library.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        wanted = dict(each.split("=") for each in args.options.split(",") if each)
        options.add_provider_for_devices([d for d in library.get_ep_devices() if d.ep_name == name], wanted)
        return library.InferenceSession(args.models[0], options, enable_fallback=0)

    shared, single = session(args.threads or len(os.sched_getaffinity(0))), [session(1) for _ in range(N_THREADS)]
    port = shared.get_inputs()[0]
    rng = np.random.default_rng(0)
    feeds = [{port.name: rng.standard_normal((n, *port.shape[1:])).astype(np.float32)} for n in (1, 2, 3)]
    wanted = [shared.run(None, feed)[0] for feed in feeds]
    wrong = []

    def work(one, first, runs):
        for k in range(runs):
            n = (first + k) % 3
            found = one.run(None, feeds[n])[0]
            if not np.allclose(found, wanted[n], rtol=1e-4, atol=1e-4 * np.abs(wanted[n]).max()):
                wrong.append(n)

    def round_of(sessions, runs):
        threads = [threading.Thread(target=work, args=(sessions[k % len(sessions)], k, runs)) for k in range(N_THREADS)]
        began = time.perf_counter()
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return time.perf_counter() - began

    round_of([shared], 6)
    round_of(single, 6)
    pairs = [(round_of([shared], N_RUNS // 20), round_of(single, N_RUNS // 20)) for _ in range(20)]
    print(f"{N_THREADS} threads of {N_RUNS} runs: {len(wrong)} wrong; one session {sum(a for a, _ in pairs):.2f} s, "
          f"a session each {sum(b for _, b in pairs):.2f} s, middle of ratios {statistics.median(b / a for a, b in pairs):.3f}")
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--slice", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--options", default="")
    parser.add_argument("--json", type=pathlib.Path)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--start", action="store_true")
    kinds.add_argument("--load", action="store_true")
    args = parser.parse_args()
    if args.start or args.load:
        found = start(args) if args.start else load(args)
    else:
        print(f"{'network':28} {'batch':>5} {'':20} {'least ms':>10} {'middle ms':>10} {'/least':>6} {'/slice':>6} {'cpu ms':>10} "
              f"{'/cpu':>6} {'runs':>6}")
        found = [speed(args, model, int(batch)) for model in args.models for batch in args.batches.split(",")]
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
