#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy without training: top-1 on CIFAR-10's whole test set after `prune --calibration`, and the seconds it took.

    bench/accuracy.py [--build build/release] [--networks resnet20,resnet56] [--seeds 5] [--only PART] [--refine S]
                      [--orders] [--parts lite0,bert,resnet50] [--peer PYTHON] [--json FILE] [--from FILE] [--docs]

Every row is a method of pruning all eligible layers of a trained network, 2:4 unless said: Lacuna's scores with and without the
exact solution, and, with --peer, a Python that has onnxsim and ONNX Runtime, onnxsim's SparseGPT on the same images. `check`
says along which axis the result's zeros hold the pattern. Seeds choose other calibration images. --orders compares searched
orders of channels with the file's, for three patterns; --parts measures other networks instead (accuracy_networks.py). --docs
writes the tables and the chart of docs/explain/without-training.md and its notes; --from takes what an earlier run kept with --json, and measures
only what is missing there.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import chart
from accuracy_networks import PARTS
from page import fill

TOP = pathlib.Path(__file__).resolve().parent.parent
SHARED = TOP.parent / "shared"
PAGE, NOTES = TOP / "docs/explain/without-training.md", TOP / "bench/notes/without-training.md"
CHART = TOP / "docs/explain/accuracy.svg"
NAMES = {"resnet20": "ResNet-20", "resnet32": "ResNet-32", "resnet44": "ResNet-44", "resnet56": "ResNet-56"}
PATTERNS = ("2:4", "4:8", "1:4")
COPIES = "4"  # of each image, flipped and shifted: what training saw. Steps make seven by themselves
ORDER_STEPS = "50"


class Failed(Exception):
    """A run failed; the text is its own."""


def calibrated(score, samples, *more):
    return ["--no-permute", "--score", score, "--calibration-samples", str(samples), *more]


def methods(refine):
    """Name in the table -> options of `prune`."""
    again = ("--no-solve", "--recalibrate", "--calibration-copies", COPIES)
    return {
        "magnitude": ["--no-permute"],
        "magnitude, BatchNorm again": calibrated("magnitude", 2048, *again),
        "sparsegpt, not solved": calibrated("sparsegpt", 2048, "--no-solve"),
        **{f"{score}, solved": calibrated(score, 2048) for score in ("magnitude", "wanda", "ria", "sparsegpt", "obs")},
        "alps, solved": calibrated("alps", 2048),
        "alps, solved, 512 images": calibrated("alps", 512),
        "alps, solved, 128 images": calibrated("alps", 128),
        f"alps, solved, {refine} s of whole-network steps":
            calibrated("alps", 2048, "--refine", str(refine)),
    }


def orders():
    """(pattern, method) -> options but for the order. Steps are counted: results then do not depend on the machine's speed."""
    of_data = ("--score", "alps", "--calibration-samples", "512")
    steps = {"one-shot": (), "solved": of_data,
             "refined": (*of_data, "--refine-steps", ORDER_STEPS)}
    return {(pattern, method): ["--pattern", pattern, *options] for pattern in PATTERNS for method, options in steps.items()}


class Bench:
    """Runs the command in a folder of its own."""

    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)
        self.data = args.data / "cifar-10-batches-bin"

    def lacuna(self, *words, ends_with=(0,)):
        """Resources that a run used; other exit codes than these are failures."""
        words = [str(word) for word in (self.args.build / "lacuna", *words)]
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as said:
            run = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=said)
            _, status, used = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
            if run.returncode not in ends_with:
                said.seek(0)
                raise Failed(f"{' '.join(words)}: {said.read().strip()}")
        return {"seconds": time.monotonic() - began, "processor_seconds": used.ru_utime + used.ru_stime,
                "peak_bytes": 1024 * used.ru_maxrss}

    def top1(self, file):
        self.lacuna("eval", file, "--data", self.data, "--json", "eval.json", "--force")
        return json.loads((self.folder / "eval.json").read_text())["top1"]

    def axis(self, file, pattern="2:4", chosen=()):
        """Do the zeros hold the pattern along the input channels, where hardware expects it?"""
        (self.folder / "check.json").unlink(missing_ok=True)
        self.lacuna("check", file, "--pattern", pattern, *chosen, "--json", "check.json", "--force", ends_with=(0, 1))
        layers = json.loads((self.folder / "check.json").read_text())["layers"]
        holds = [layer["holds_pattern"] for layer in layers if layer["eligible"]]
        return {"eligible": len(holds), "hold": sum(holds)}

    def pruned(self, network, options, seed):
        model = self.args.models / f"{network}_cifar10.onnx"
        data = ["--calibration", self.data] if "--calibration-samples" in options else ["--no-calibration", "--no-solve"]
        spent = self.lacuna("prune", model, *options, *data, "--seed", seed, "-o", "pruned.onnx", "--force")
        pattern = options[options.index("--pattern") + 1] if "--pattern" in options else "2:4"
        return {**spent, "top1": self.top1("pruned.onnx"), **self.axis("pruned.onnx", pattern)}

    def peer(self, network, samples, seed):
        """onnxsim's SparseGPT on so many images of the training part."""
        model = self.args.models / f"{network}_cifar10.onnx"
        worker = TOP / "bench/accuracy_peer.py"
        began = time.monotonic()
        words = [self.args.peer, worker, model, self.data, samples, seed, self.folder / "peer.onnx"]
        run = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Failed(f"onnxsim: {run.stderr.strip()[-400:]}")
        return {"seconds": time.monotonic() - began, "top1": self.top1("peer.onnx"), **self.axis("peer.onnx")}


# ---- runs ----

def plan(args):
    """Keys of all runs and what makes each: a method without randomness has one seed."""
    for part in args.parts:
        methods_of, run, _ = PARTS[part]
        for name, options in methods_of().items():
            yield f"{part} | {name} | 0", lambda b, r=run, o=options: r(b, o)
    for network in args.networks if not args.parts else []:
        yield from plan_orders(args, network) if args.orders else plan_methods(args, network)


def plan_methods(args, network):
    for name, options in methods(args.refine).items():
        for seed in range(args.seeds if "--calibration-samples" in options else 1):
            yield f"{network} | {name} | {seed}", lambda b, o=options, s=seed: b.pruned(network, o, s)
    if args.peer:
        for samples in (128, 512):
            yield f"{network} | onnxsim SparseGPT, {samples} images | 0", lambda b, k=samples: b.peer(network, k, 0)


def plan_orders(args, network):
    for (pattern, method), options in orders().items():
        for order, more in (("file", ["--no-permute"]), ("searched", [])):
            for seed in range(args.order_seeds if order == "searched" or method != "one-shot" else 1):
                yield (f"{network} | {pattern} {method}, {order} order | {seed}",
                       lambda b, o=[*more, *options], s=seed: b.pruned(network, o, s))


def measure(args, results):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for network in args.networks if not args.parts else []:
            if f"{network} | dense | 0" not in results:
                results[f"{network} | dense | 0"] = {"top1": bench.top1(args.models / f"{network}_cifar10.onnx")}
        for key, run in plan(args):
            if key in results or args.only not in key:
                continue
            results[key] = run(bench)
            told = f"{results[key]['top1']:.2f}" if "top1" in results[key] else f"error {results[key]['error']:.5f}"
            print(f"{key}: {told} in {results[key]['seconds']:.1f} s", flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=1) + "\n")


def gathered(results):
    """network -> method -> [runs of all seeds]"""
    table = {}
    for key, found in results.items():
        network, method, _ = key.split(" | ")
        table.setdefault(network, {}).setdefault(method, []).append(found)
    return table


# ---- the page ----

def spread(runs):
    tops = [run["top1"] for run in runs]
    text = f"{statistics.mean(tops):.2f}"
    return text if len(tops) == 1 else f"{text} ({min(tops):.2f}-{max(tops):.2f})"


def seconds(runs):
    return f"{statistics.median(run['seconds'] for run in runs):.1f}"


def is_method(method):
    return method != "dense" and " order" not in method


def method_lines(table, networks):
    networks = [network for network in networks if network in table]
    names = [method for network in networks for method in table[network] if is_method(method)]
    head = " | ".join(f"{NAMES[n]}, dense {table[n]['dense'][0]['top1']:.2f} | s" for n in networks)
    lines = [f"| masks and weights | {head} | zeros hold 2:4 |", "|---|" + "---|---|" * len(networks) + "---|"]
    for method in dict.fromkeys(names):
        cells = [(table[n].get(method), n) for n in networks]
        texts = " | ".join(f"{spread(runs)} | {seconds(runs)}" if runs else " | " for runs, _ in cells)
        one = next(runs for runs, _ in cells if runs)[0]
        lines.append(f"| {method} | {texts} | {one['hold']} of {one['eligible']} layers |")
    return lines


def order_lines(table):
    lines = ["| network | pattern | " + " | ".join(f"{method}: file's order | searched" for method in ("one-shot", "solved", "refined")) +
             " |", "|---|---|" + "---|---|" * 3]
    for network, found in ((network, table[network]) for network in NAMES if network in table):
        for pattern in PATTERNS:
            cells = [found.get(f"{pattern} {method}, {order} order")
                     for method in ("one-shot", "solved", "refined") for order in ("file", "searched")]
            if any(cells):
                lines.append(f"| {NAMES[network]} | {pattern} | " + " | ".join(spread(c) if c else "" for c in cells) + " |")
    return lines


def draw_chart(table, networks):
    """Top-1 against seconds: one line for each kind of method."""
    panels = []
    for network in (n for n in networks if n in table):
        found = {method: (statistics.median(r["seconds"] for r in runs), statistics.mean(r["top1"] for r in runs))
                 for method, runs in table[network].items() if is_method(method)}
        kinds = {"alps": ("a", [p for method, p in found.items() if method.startswith("alps")]),
                 "others": ("b", [p for method, p in found.items() if method.endswith(", solved") and not method.startswith("alps")]),
                 "onnxsim": ("c", [p for method, p in found.items() if method.startswith("onnxsim")])}
        lines = [{"name": name, "colour": colour, "points": points} for name, (colour, points) in kinds.items() if points]
        dense = table[network]["dense"][0]["top1"]
        panels.append({"title": f"{NAMES[network]}, dense {dense:.2f}", "lines": lines, "range": [dense]})
    return chart.draw(panels, "top-1 in percent against seconds of two cores")


def write_page(results, networks):
    """What was not measured stays as it is on the page."""
    table, text, notes = gathered(results), PAGE.read_text(), NOTES.read_text()
    if any(is_method(method) for network in table.keys() & set(networks) for method in table[network]):
        text = fill(text, "accuracy", "accuracy.py", method_lines(table, networks))
        CHART.write_text(draw_chart(table, networks))
    for part in table.keys() & PARTS.keys():
        notes = fill(notes, part, "accuracy.py", PARTS[part][2](table[part]))
    if len(lines := order_lines(table)) > 2:
        notes = fill(notes, "orders", "accuracy.py", lines)
    PAGE.write_text(text)
    NOTES.write_text(notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--models", type=pathlib.Path, default=SHARED / "models")
    parser.add_argument("--data", type=pathlib.Path, default=SHARED / "data")
    parser.add_argument("--networks", type=lambda text: text.split(","), help="resnet20,resnet56; with --orders all four")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--order-seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="only runs whose name has this in it")
    parser.add_argument("--refine", type=int, default=60, help="seconds of whole-network steps")
    parser.add_argument("--orders", action="store_true")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[], help="other networks: lite0, bert, resnet50")
    parser.add_argument("--peer", type=pathlib.Path, help="a Python with onnxsim and onnxruntime")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.peer = args.peer and args.peer.absolute()
    args.networks = args.networks or (list(NAMES) if args.orders else ["resnet20", "resnet56"])
    unknown = [network for network in args.networks if network not in NAMES]
    if unknown:
        parser.error(f"--networks {unknown[0]}: wanted some of {', '.join(NAMES)}")
    strange = [part for part in args.parts if part not in PARTS]
    if strange:
        parser.error(f"--parts {strange[0]}: wanted some of {', '.join(PARTS)}")
    if "bert" in args.parts and not args.peer:
        parser.error("--parts bert makes its network by --peer PYTHON, which has onnx and numpy")
    results = json.loads(args.earlier.read_text()) if args.earlier else {}
    try:
        measure(args, results)
    except Failed as failed:
        sys.exit(f"accuracy.py: {failed}")
    if args.docs:
        write_page(results, args.networks)


if __name__ == "__main__":
    main()
