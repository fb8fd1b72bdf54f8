#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: requirements-tasks.txt
"""Trained networks in their own tasks: what is lost by pruning, calibration and int8, and what a run takes next to other engines.

    bench/tasks.py [--build build/release] [--only rec,det] [--variants dense,int8] [--threads 1] [--rounds 5] [--seconds 0.5]
                   [--keep DIR] [--json FILE] [--from FILE] [--no-run] [--no-times] [--docs]

`pip install -r bench/requirements-tasks.txt` brings all but EfficientNet-Lite0: packages that hold trained networks, and the other
engines. bench/tasks_made.py draws each task's samples, those of the calibration from another seed than those of the test. Scores
are of ONNX Runtime's answers, so that no engine of ours judges itself; of int8, as the file says, without its integer kernels. Times are
of the least run in alternating slices, each in a process that is stopped meanwhile. --docs writes docs/networks.md.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

from compare_worker import HABITS, Failed, Process
from inputs import TYPES, write_input
from page import fill
from peer_quantizer import quantize
from tasks_made import TASKS

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs/networks.md"
SEEDS = {"calibration": 1, "test": 2}
# A file for each column: how `lacuna prune` makes it; 2:4 + int8 of the calibrated file, whose zeros stay. None: as it is.
DENSE_ALL = ["--keep-dense", "100000", "--score", "magnitude", "--no-solve", "--no-permute"]
VARIANTS = {
    "dense": None,
    "one-shot": ["--no-calibration", "--no-solve"],
    "calibrated": ["CALIBRATION"],
    "int8": ["CALIBRATION", *DENSE_ALL, "--quantize", "qdq-int8"],
    "2:4 + int8": ["CALIBRATION", "--quantize", "qdq-int8", "--score", "magnitude", "--no-solve", "--no-permute"],
    "what pays": ["CALIBRATION", "--target", "lacuna-cpu"],
    "within 1 %": ["MANY SAMPLES", "--target", "lacuna-cpu", "--max-drop", "1"],
}
# How ONNX Runtime quantizes the dense network: the best of these is what a user of it has.
PEER = "ONNX Runtime int8"
OPSET = 13  # older ones have one scale for all channels
PEER_KINDS = ("MinMax", "Percentile", "Entropy", "dynamic")
# What is timed: engine, file.
TIMED = {"dense": ("lacuna", "dense"), "2:4": ("lacuna", "calibrated"), "what pays": ("lacuna", "what pays"),
         "within 1 %": ("lacuna", "within 1 %"),
         "2:4 + int8": ("lacuna", "2:4 + int8"), "ONNX Runtime": ("onnxruntime", "dense"), "OpenVINO": ("openvino", "dense")}


SAMPLES = {"CALIBRATION": "calibration.npz", "MANY SAMPLES": "many.npz"}


def file_name(variant):
    return re.sub("[:%]", "", variant).strip().replace(" ", "_") + ".onnx"


class Run:
    """A network, run by ONNX Runtime as its file says; `dense` is the one before it was changed."""

    def __init__(self, path, dense=None, integers=False):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        if integers:  # its integer kernels saturate on processors with AVX2 and without VNNI
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.outputs = [port.name for port in self.session.get_outputs()]
        self.metadata = self.session.get_modelmeta().custom_metadata_map
        self.dense = dense or self

    def __call__(self, arrays):
        return self.session.run(None, arrays)


def lacuna(args, words, limit=3600):
    """What one run of the command took, and its failure, if it failed."""
    began = time.monotonic()
    with subprocess.Popen([str(word) for word in [args.build / "lacuna", *words]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as child:
        text = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failed((text.strip().splitlines() or ["no word"])[-1])
    return {"seconds": time.monotonic() - began, "peak_mb": usage.ru_maxrss / 1024}


def write_samples(task, dense, n, path):
    arrays, _ = task.samples(SEEDS["calibration"], n, dense)
    np.savez(path, **arrays | task.constants)
    return arrays | task.constants


def make_variant(args, model, options, folder, name):
    """The pruned file, and what making it took."""
    made, report = folder / file_name(name), folder / "report.json"
    words = ["prune", model, "-o", made, "--force", "--json", report, "--threads", args.threads_to_prune]
    for option in options:
        words += ["--calibration", folder / SAMPLES[option], "--calibration-samples", "1024"] if option in SAMPLES else [option]
    found = lacuna(args, words)
    report = json.loads(report.read_text())
    summary = report["summary"]
    return made, {**found, "layers": summary["layers"], "pruned": summary["pruned"],
                  "forecast_seconds": (report.get("calibration") or {}).get("forecast_seconds"),
                  "calibration_seconds": (report.get("calibration") or {}).get("calibration_seconds")}


def quantize_by_peer(task, arrays, kind, path):
    """By ONNX Runtime's quantizer: with the samples, or for ranges that it finds as it runs."""
    import onnx
    from onnx import version_converter
    from onnxruntime import quantization

    def sample(at):
        return {name: values if name in task.constants else np.take(values, [at], task.sample_axis.get(name, 0))
                for name, values in arrays.items()}

    ready = path.with_suffix(".ready.onnx")
    model = onnx.load(task.file())
    if next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx")) < OPSET:
        model = version_converter.convert_version(model, OPSET)  # scales by channel
    onnx.save(model, ready)
    if kind == "dynamic":
        quantize(ready, path)
    else:
        quantize(ready, path, map(sample, range(task.n_calibration)), calibrate_method=getattr(quantization.CalibrationMethod, kind))


def score_peer(task, dense, folder, right, test, calibration):
    """The score of the best file that ONNX Runtime's quantizer makes, and those of all."""
    kept = {}
    for kind in PEER_KINDS:
        path = folder / f"peer-{kind}.onnx"
        try:
            quantize_by_peer(task, calibration, kind, path)
            run = Run(path, dense, True)
            run.metadata = dense.metadata
            kept[kind] = task.score(run, test, right)
        except Exception as failed:  # what its quantizer raises has no common kind
            kept[f"{kind} failed"] = (str(failed).strip().splitlines() or ["no word"])[0]
    scores = [value for name, value in kept.items() if not name.endswith("failed")]
    if not scores:
        raise Failed(next(iter(kept.values())))
    return {**kept, "score": max(scores)}


def score_task(args, task, folder, found):
    """Scores and files of all variants, into found["variants"]."""
    model = task.file()
    dense = Run(model)
    calibration = write_samples(task, dense, task.n_calibration, folder / SAMPLES["CALIBRATION"])
    write_samples(task, dense, task.n_many, folder / SAMPLES["MANY SAMPLES"])
    arrays, right = task.samples(SEEDS["test"], task.n_test, dense)
    found["samples"] = [task.n_calibration, len(next(iter(arrays.values())))]
    files = {"dense": model}
    for name, options in VARIANTS.items():
        if args.variants and name not in args.variants:
            continue
        kept = found["variants"].setdefault(name, {})
        try:
            if options is not None:
                source = files.get("calibrated", model) if name == "2:4 + int8" else model
                files[name], took = make_variant(args, source, options, folder, name)
                kept.update(took)
            kept["score"] = task.score(Run(files[name], dense, "int8" in name), arrays, right)
            kept["kb"] = files[name].stat().st_size / 1e3
        except Failed as failed:
            kept["failed"] = str(failed)
        print(f"{task.name}, {name}: {kept}", flush=True)
    if args.variants and PEER not in args.variants:
        return files
    try:
        found["variants"][PEER] = score_peer(task, dense, folder, right, arrays, calibration)
    except Failed as failed:
        found["variants"][PEER] = {"failed": str(failed)}
    print(f"{task.name}, {PEER}: {found['variants'][PEER]}", flush=True)
    return files


def fix_sizes(task, source, folder):
    """A copy at batch 1 with all sizes given, and inputs next to it: every engine may plan for it."""
    import onnx
    import onnxruntime
    arrays, _ = task.samples(SEEDS["calibration"], task.n_calibration, Run(task.file()))
    arrays = {name: np.take(values, [0], task.sample_axis.get(name, 0)) for name, values in arrays.items()}
    arrays.update(task.constants)
    folder.mkdir(exist_ok=True)
    model = onnx.load(source)
    for port in model.graph.input:
        if port.name in arrays:
            del port.type.tensor_type.shape.dim[:]
            for size in arrays[port.name].shape:
                port.type.tensor_type.shape.dim.add().dim_value = size
    for port in model.graph.output:
        port.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    onnx.save(model, folder / "model.onnx")
    for name, array in arrays.items():
        write_input(folder, name, array)
    session = onnxruntime.InferenceSession(str(task.file()), providers=["CPUExecutionProvider"])
    ports = {"inputs": [(port.name, arrays[port.name].shape, TYPES[port.type]) for port in session.get_inputs()],
             "outputs": [port.name for port in session.get_outputs()]}
    (folder / "ports.json").write_text(json.dumps(ports))
    return folder / "model.onnx"


def start(args, engine, path):
    arguments = [path, path.parent, "f32", args.threads]
    command = [args.build / "bench/engine_worker"] if engine == "lacuna" else [sys.executable, TOP / "bench/peer_worker.py", engine]
    return Process([*command, *arguments], **{name: value for name, value in HABITS.get(engine, {}).items() if name not in os.environ})


def time_task(args, task, files, folder, found):
    """Least milliseconds of each engine and file, alternating."""
    times, workers = {}, {}
    for name, (engine, variant) in TIMED.items():
        if variant in files:
            try:
                path = fix_sizes(task, files[variant], folder / f"timed-{file_name(variant)}")
                workers[name] = start(args, engine, path)
            except Failed as failed:
                found["untimed"][name] = str(failed)
    for _ in range(args.rounds):
        for name, worker in list(workers.items()):
            try:
                times.setdefault(name, []).extend(worker.ask(f"run {args.seconds}")["ms"])
            except Failed as failed:
                found["untimed"][name] = str(failed)
                workers.pop(name).close()
    for worker in workers.values():
        worker.close()
    found["times"] = {name: {"least": min(ms), "median": float(np.median(ms))} for name, ms in times.items()}
    found["load"] = os.getloadavg()[0]
    print(f"{task.name}: {found['times']}, load {found['load']:.1f}", flush=True)


def measure(args, results):
    for task in TASKS:
        if args.only and task.name not in args.only:
            continue
        found = results.setdefault(task.name, {"variants": {}, "untimed": {}})
        if not task.file():
            found["absent"] = "not installed"
            print(f"{task.name}: not installed", flush=True)
            continue
        with tempfile.TemporaryDirectory() as own:
            folder = args.keep / task.name if args.keep else pathlib.Path(own)
            folder.mkdir(parents=True, exist_ok=True)
            if args.times_only:
                files = {name: folder / file_name(name) for name in VARIANTS}
                files = {name: file for name, file in {**files, "dense": task.file()}.items() if file.exists()}
            else:
                files = score_task(args, task, folder, found)
            if not args.no_times:
                time_task(args, task, files, folder, found)
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n")


# ---- the page ----

def cell(found, name):
    kept = found["variants"].get(name, {})
    return f"{kept['score']:.1f}" if "score" in kept else "-"


def score_lines(results):
    columns = [*VARIANTS, PEER]
    lines = [f"| network | score | samples | {' | '.join(columns)} | pruned |", "|---|---|--:|" + "--:|" * (len(columns) + 1)]
    for task in TASKS:
        found = results.get(task.name, {})
        if "samples" in found:
            calibrated = found["variants"]["calibrated"]
            pruned = f"{calibrated['pruned']} of {calibrated['layers']}" if "pruned" in calibrated else "-"
            lines.append(f"| {task.what} | {task.kind} | {found['samples'][0]}, {found['samples'][1]} | "
                         f"{' | '.join(cell(found, name) for name in columns)} | {pruned} |")
    return lines


def ratio(times, name):
    """How many times as fast as Lacuna dense: above 1 is faster."""
    return f"{times['dense']['least'] / times[name]['least']:.2f}" if name in times else "-"


def time_lines(results):
    others = [name for name in TIMED if name != "dense"]
    lines = [f"| network | Lacuna dense, ms | {' | '.join(others)} | load |", "|---|--:|" + "--:|" * (len(others) + 1)]
    for task in TASKS:
        found = results.get(task.name, {})
        times = found.get("times", {})
        if "dense" in times:
            lines.append(f"| {task.what} | {times['dense']['least']:#.3g} | {' | '.join(ratio(times, name) for name in others)} | "
                         f"{found['load']:.1f} |")
    return lines


def failure_lines(results):
    lines = []
    for task in TASKS:
        found = results.get(task.name, {})
        failed = {name: kept["failed"] for name, kept in found.get("variants", {}).items() if "failed" in kept}
        lines += [f"- {task.what}, {name}: `{re.sub('/[^ ]*/', '', why)}`" for name, why in {**failed, **found.get("untimed", {})}.items()]
    return lines or ["None."]


def write_page(results):
    text = fill(PAGE.read_text(), "scores", "tasks.py", score_lines(results))
    text = fill(text, "times", "tasks.py", time_lines(results))
    PAGE.write_text(fill(text, "not made", "tasks.py", failure_lines(results)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="names of tasks: a,b,c")
    parser.add_argument("--variants", type=lambda text: text.split(","), default=[], help="columns of the scores: a,b,c")
    parser.add_argument("--threads", type=int, default=1, help="of the timed runs")
    parser.add_argument("--threads-to-prune", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one slice")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder that keeps the files that are made")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    parser.add_argument("--no-run", action="store_true", help="only what --from has")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--times-only", action="store_true", help="of the files that --keep kept")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    results = json.loads(args.earlier.read_text()) if args.earlier else {}
    if not args.no_run:
        measure(args, results)
    if args.docs:
        write_page(results)


if __name__ == "__main__":
    main()
