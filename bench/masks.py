#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each kind of mask keeps, and the top-1 that is left in one shot.

    bench/masks.py [--build build/release] [--networks resnet20,efficientnet_lite0] [--only PART] [--kept-only] [--images N]
                   [--json FILE] [--from FILE] [--docs]

Kept is the share of |w| of the layers that are pruned, in the file's order of channels and in the one that `prune` searches. Top-1, of
the CIFAR ResNets alone, is of the searched order, on the whole test set (or its first N images), nothing trained or fitted. --docs
writes the tables of docs/reference/masks.md and bench/notes/masks.md; --from takes what an earlier run kept with --json, and measures only what is missing there.
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
PAGE, NOTES = TOP / "docs/reference/masks.md", TOP / "bench/notes/masks.md"
FILES = {"resnet20": "resnet20_cifar10.onnx", "resnet32": "resnet32_cifar10.onnx", "resnet44": "resnet44_cifar10.onnx",
         "resnet56": "resnet56_cifar10.onnx", "efficientnet_lite0": "efficientnet_lite0.onnx"}
NAMES = {"resnet20": "ResNet-20", "resnet32": "ResNet-32", "resnet44": "ResNet-44", "resnet56": "ResNet-56",
         "efficientnet_lite0": "EfficientNet-Lite0"}
METHODS = {"2:4": (), "2:4, 2d-greedy": ("--mask", "2d-greedy"), "2:4, 2d-best": ("--mask", "2d-best"),
        "2:4, random": ("--score", "random"), "4:8": ("--pattern", "4:8"), "4:8, 2d-best": ("--pattern", "4:8", "--mask", "2d-best"),
        "2:8": ("--pattern", "2:8"), "4:2:8": ("--pattern", "4:2:8"), "16:2:8": ("--pattern", "16:2:8"),
        "64:2:8": ("--pattern", "64:2:8"), "64:2:16": ("--pattern", "64:2:16")}
ORDERS = {"file": ("--no-permute",), "searched": ("--no-verify",)}


class Failed(Exception):
    """A run failed; the text is its own."""


class Bench:
    """Runs the command in a folder of its own."""

    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)

    def lacuna(self, *words):
        words = [str(word) for word in (self.args.build / "lacuna", *words)]
        run = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Failed(f"{' '.join(words)}: {run.stderr.strip()}")

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def kept(self, network, method, order):
        """Of the layers that `prune` prunes; `check` then has to find the pattern in each of them."""
        options = METHODS[method]
        self.lacuna("prune", self.args.models / FILES[network], "-o", "pruned.onnx", "--force", "--no-calibration", "--no-solve", *ORDERS[order],
                    *options, "--json", "prune.json")
        report = self.read("prune.json")
        layers = [layer for layer in report["layers"] if layer["pruned"]]
        self.lacuna("check", "pruned.onnx", "--pattern", report["pattern"], "--json", "check.json", "--force")
        both = [layer["holds_pattern_both"] for layer in self.read("check.json")["layers"] if layer["pruned"]]
        return {"layers": len(layers), "both": sum(both),
                "kept": 100 * sum(layer["kept"] for layer in layers) / sum(layer["total"] for layer in layers)}

    def top1(self, file):
        limit = ("--limit", self.args.images) if self.args.images else ()
        self.lacuna("eval", file, "--data", self.args.data / "cifar-10-batches-bin", *limit, "--json", "eval.json", "--force")
        return self.read("eval.json")["top1"]


def measure(args, results):
    def keep(key, found):
        results[key] = found
        print(f"{key}: {found}", flush=True)
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for network in args.networks:
            counts = network.startswith("resnet") and not args.kept_only
            dense = f"{network} | dense"
            if counts and dense not in results and args.only in dense:
                keep(dense, {"top1": bench.top1(args.models / FILES[network])})
            for method in METHODS:
                for order in ORDERS:
                    key = f"{network} | {method} | {order}"
                    wanted = counts and order == "searched"
                    found = results.get(key, {})
                    if args.only not in key or ("kept" in found and ("top1" in found or not wanted)):
                        continue
                    found = bench.kept(network, method, order)
                    if wanted:
                        found["top1"] = bench.top1("pruned.onnx")
                    keep(key, found)


# ---- the page ----

def kept_lines(results, networks):
    lines = ["| mask | " + " | ".join(NAMES[n] for n in networks) + " |", "|---|" + "---|" * len(networks)]
    for method in METHODS:
        cells = []
        for network in networks:
            found = [results.get(f"{network} | {method} | {order}", {}).get("kept") for order in ORDERS]
            cells.append(" / ".join(f"{x:.2f}" for x in found if x is not None))
        if any(cells):
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def top1_lines(results, networks):
    networks = [n for n in networks if any(key.startswith(f"{n} |") and "top1" in found for key, found in results.items())]
    if not networks:
        return ["Not measured yet."]
    rows = {"dense": [results.get(f"{n} | dense", {}) for n in networks]}
    rows.update({method: [results.get(f"{n} | {method} | searched", {}) for n in networks] for method in METHODS})
    lines = ["| mask | " + " | ".join(NAMES[n] for n in networks) + " |", "|---|" + "---|" * len(networks)]
    for method, cells in rows.items():
        if any("top1" in cell for cell in cells):
            lines.append(f"| {method} | " + " | ".join(f"{c['top1']:.2f}" if "top1" in c else "" for c in cells) + " |")
    return lines


def write_page(results):
    PAGE.write_text(fill(PAGE.read_text(), "kept", "masks.py", kept_lines(results, list(FILES))))
    NOTES.write_text(fill(NOTES.read_text(), "top-1", "masks.py", top1_lines(results, list(FILES))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--models", type=pathlib.Path, default=SHARED / "models")
    parser.add_argument("--data", type=pathlib.Path, default=SHARED / "data")
    parser.add_argument("--networks", type=lambda text: text.split(","), default=list(FILES))
    parser.add_argument("--only", default="", help="only runs whose name has this in it")
    parser.add_argument("--kept-only", action="store_true", help="no top-1")
    parser.add_argument("--images", type=int, default=0, help="of the test set, for top-1; 0: all")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    unknown = [network for network in args.networks if network not in FILES]
    if unknown:
        parser.error(f"--networks {unknown[0]}: wanted some of {', '.join(FILES)}")
    results = json.loads(args.earlier.read_text()) if args.earlier else {}
    try:
        measure(args, results)
    except Failed as failed:
        sys.exit(f"masks.py: {failed}")
    if args.docs:
        write_page(results)


if __name__ == "__main__":
    main()
