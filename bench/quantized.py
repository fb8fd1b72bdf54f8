#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What int8 costs a pruned network: top-1 on CIFAR-10's whole test set of 2:4 networks in floats and quantized, the same masks.

    bench/quantized.py [--build build/release] [--networks resnet20,resnet56] [--kinds uint8-mse,int8-mse] [--json FILE]
                       [--no-own] [--from FILE] [--docs]

Every network is pruned once, `prune --calibration` with 512 images, and then quantized for each kind, ACTIVATIONS-RANGE: pruned
again by magnitude, which leaves its weights as they are. `eval` counts (not with --no-own), and, where this Python has onnxruntime,
ONNX Runtime on the same file: without graph optimizations, which is what the file
says, and with its integer kernels. `check` has to find every pattern. --docs writes the table of docs/how-to/quantize.md; --from takes what an earlier run kept
with --json, and measures only what is missing there.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from page import fill

TOP = pathlib.Path(__file__).resolve().parent.parent
SHARED = TOP.parent / "shared"
PAGE = TOP / "docs/how-to/quantize.md"
NAMES = {"resnet20": "ResNet-20", "resnet32": "ResNet-32", "resnet44": "ResNet-44", "resnet56": "ResNet-56"}
KINDS = [f"{activations}-{rule}" for activations in ("uint8", "int8") for rule in ("mse", "percentile", "minmax")]
AGAIN = ["--score", "magnitude", "--no-solve", "--no-permute"]  # what is 2:4 stays as it is
MEAN, STD, BATCH = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 100


class Failed(Exception):
    """A run failed; the text is its own."""


def lacuna(args, *words):
    words = [str(word) for word in (args.build / "lacuna", *words)]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failed(f"{' '.join(words)}: {run.stderr.strip()}")


def top1(args, folder, model):
    lacuna(args, "eval", model, "--data", args.data, "--json", folder / "eval.json", "--force")
    return json.loads((folder / "eval.json").read_text())["top1"]


def runtime_top1(args, model, fused):
    """The same by ONNX Runtime, with its integer kernels or as the file says; None: it is not there."""
    try:
        import numpy as np
        import onnxruntime
    except ImportError:
        return None
    raw = np.fromfile(args.data / "test_batch.bin", np.uint8).reshape(-1, 3073)
    images = raw[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255
    images = (images - np.array(MEAN, np.float32)[:, None, None]) / np.array(STD, np.float32)[:, None, None]
    options = onnxruntime.SessionOptions()
    if not fused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    answers = [session.run(None, {name: images[at:at + BATCH]})[0].argmax(axis=1) for at in range(0, len(images), BATCH)]
    return 100 * float(np.mean(np.concatenate(answers) == raw[:, 0]))


def prune(args, folder, network):
    pruned = folder / f"{network}.onnx"
    if not pruned.exists():
        lacuna(args, "prune", args.models / f"{network}_cifar10.onnx", "--calibration", args.data, "-o", pruned)
    return pruned


def quantize(args, folder, network, kind):
    activations, rule = kind.split("-")
    made, report = folder / f"{network}-{kind}.onnx", folder / "q.json"
    lacuna(args, "prune", prune(args, folder, network), *AGAIN, "--calibration", args.data, "--quantize", "qdq-int8",
           "--quantize-activations", activations, "--quantize-range", rule, "-o", made, "--json", report, "--force")
    lacuna(args, "check", made)
    found = json.loads(report.read_text())
    layers = found["quantisation"]["layers"]
    return {"top1": None if args.no_own else top1(args, folder, made), "runtime": runtime_top1(args, made, True),
            "as_written": runtime_top1(args, made, False), "error": found["quantisation"]["outputs_error"],
            "pruned": found["summary"]["pruned"], "quantised": sum(layer["quantised"] for layer in layers), "layers": len(layers),
            "bytes": made.stat().st_size}


def measure(args, results, folder):
    for network in args.networks:
        for kind in ["floats", *args.kinds]:
            key = f"{network} | {kind}"
            if key in results:
                continue
            if kind == "floats":
                made = prune(args, folder, network)
                results[key] = {"top1": top1(args, folder, made), "runtime": runtime_top1(args, made, True),
                                "as_written": runtime_top1(args, made, False), "bytes": made.stat().st_size}
            else:
                results[key] = quantize(args, folder, network, kind)
            print(f"{key}: {number(results[key]['top1'])} {number(results[key]['as_written'])}", flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=1) + "\n")


def number(value):
    return "" if value is None else f"{value:.2f}"


def lines(results):
    table = ["| network, 2:4 | activations | ranges | `eval` | ONNX Runtime, as written | less than in floats | its integer kernels | "
             "outputs' error | layers in int8 | kB |", "|---|---|---|---|---|---|---|---|---|---|"]
    for network, title in NAMES.items():
        floats = results.get(f"{network} | floats")
        if not floats:
            continue
        table.append(f"| {title} | f32 | | {number(floats['top1'])} | {number(floats['as_written'])} | | {number(floats['runtime'])} | | | "
                     f"{floats['bytes'] / 1e3:.0f} |")
        for kind in KINDS:
            found = results.get(f"{network} | {kind}")
            if not found:
                continue
            activations, rule = kind.split("-")
            best = "top1" if found["as_written"] is None else "as_written"
            table.append(f"| | {activations} | {rule} | {number(found['top1'])} | {number(found['as_written'])} | "
                         f"{floats[best] - found[best]:.2f} | {number(found['runtime'])} | {100 * found['error']:.3f} % | "
                         f"{found['quantized']} of {found['layers']} | {found['bytes'] / 1e3:.0f} |")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--models", type=pathlib.Path, default=SHARED / "models")
    parser.add_argument("--data", type=pathlib.Path, default=SHARED / "data/cifar-10-batches-bin")
    parser.add_argument("--networks", type=lambda text: text.split(","), default=list(NAMES))
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    parser.add_argument("--no-own", action="store_true", help="quantized networks by ONNX Runtime alone")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    for given, known in ((args.networks, NAMES), (args.kinds, KINDS)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"{unknown[0]}: wanted some of {', '.join(known)}")
    results = json.loads(args.earlier.read_text()) if args.earlier else {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(args, results, pathlib.Path(folder))
    except Failed as failed:
        sys.exit(f"quantized.py: {failed}")
    if args.docs:
        PAGE.write_text(fill(PAGE.read_text(), "quantized", "quantized.py", lines(results)))


if __name__ == "__main__":
    main()
