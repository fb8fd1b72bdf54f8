#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: numpy onnx onnxruntime
"""Quantized files of several vendors: is each read, run right, run in integers, and pruned?

    bench/quantized_files.py FOLDER [--build build/release] [--only TEXT] [--samples 4] [--json FILE] [--jobs 2] [--from FILE] [--docs]

FOLDER holds what bench/quantized_files_make.py made. For each file: `inspect`; `infer` by the fast engine and by the plain one on several samples,
against ONNX Runtime without optimizations; `bench`, for products that are computed in integers and for steps that run node by node; `prune`, by magnitude
and with samples; `check`, and both engines again on the pruned file. --docs writes the tables of bench/notes/int8.md.

An error is the largest difference of an element, in percent of the largest element of ONNX Runtime's result. One unit of a quantized value in the middle
of a network is about one percent of its outputs.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

from page import fill

TOP = pathlib.Path(__file__).resolve().parent.parent
NOTES = TOP / "bench/notes/int8.md"
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
INTEGERS = ("int8", "vnni", "amx")  # in a kernel's name
SHARE = 0.02  # of a run's time, from which a step node by node counts


class Failed(Exception):
    """A step failed; the text is its own."""


class File:
    """One file, and what is found out about it."""

    def __init__(self, args, place, folder):
        self.args, self.place, self.folder = args, place, folder
        self.found = {"vendor": place.name.partition("--")[0], "file": place.name.partition("--")[2]}

    def lacuna(self, *words, wanted=(0,), **environment):
        words = [str(word) for word in (self.args.build / "lacuna", *words)]
        try:
            run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=self.args.limit, env={**os.environ, **environment})
        except subprocess.TimeoutExpired as expired:
            raise Failed(f"{words[1]}: more than {self.args.limit} s") from expired
        if run.returncode not in wanted:
            raise Failed(f"{words[1]}: exit {run.returncode}: {run.stderr.strip()[-300:]}")
        return run

    def samples(self):
        """Feeds, one for each sample; names as the file has them."""
        kept = dict(np.load(self.place / "inputs.npz"))
        model = onnx.load(self.place / "model.onnx", load_external_data=False)
        stored = {value.name for value in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in stored]
        return [{name: value[at:at + 1] for name, value in zip(names, kept.values())} for at in range(self.args.samples)]

    def ours(self, model, feeds, engine):
        words = []
        for name, value in feeds.items():
            np.save(self.folder / f"{len(words)}.npy", value)
            words += ["--input", f"{name}={self.folder / f'{len(words)}.npy'}"]
        self.lacuna("infer", model, *words, "-o", self.folder / "out", "--engine", engine, "--threads", 1, "--force", "-q")
        return {path.stem: np.load(path) for path in (self.folder / "out").glob("*.npy")}

    def error(self, model, feeds, engine, wanted):
        """The largest difference, in percent of the largest element, and whether an answer changes."""
        worst = 0.0
        for one, want in zip(feeds, wanted):
            got = self.ours(model, one, engine)
            for name, value in want.items():
                value = value.astype(np.float64)
                apart = np.abs(got["".join(c if c.isalnum() or c in "-_." else "_" for c in name)].astype(np.float64) - value)
                worst = max(worst, float(np.where(np.isnan(apart), np.inf, apart).max() / max(np.abs(value).max(), 1e-12)))
        return 100 * worst

    def theirs(self, model, feeds):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        return [dict(zip([out.name for out in session.get_outputs()], session.run(None, one))) for one in feeds]

    def step(self, name, function):
        """Keeps what a step finds, or why it failed; True: it went well."""
        try:
            self.found |= function()
            return True
        except Exception as failed:  # ONNX Runtime's own have no common class
            self.found.setdefault("failed", {})[name] = f"{type(failed).__name__}: {failed}"[:400]
            return False

    def inspect(self):
        report = json.loads(self.lacuna("inspect", self.place / "model.onnx", "--json", "-", "-q").stdout)
        return {"layers": report["summary"]["layers"], "eligible": report["summary"]["eligible"],
                "refused": {layer["name"]: layer["reason"] for layer in report["layers"] if not layer["eligible"]}}

    def run(self):
        model, feeds = self.place / "model.onnx", self.samples()
        try:
            wanted = self.theirs(model, feeds)
        except Exception as failed:  # its own exceptions have no common class
            self.found["runtime"] = str(failed)[:200]
            wanted = [self.ours(model, one, "plain") for one in feeds]
        return {"plain_error": self.error(model, feeds, "plain", wanted), "error": self.error(model, feeds, "auto", wanted)}

    def plan(self, **environment):
        """The report of `bench`, its products, and those of them that are computed in floats."""
        report = json.loads(self.lacuna("bench", self.place / "model.onnx", "--threads", 1, "--json", "-", "-q", **environment).stdout)
        products = [layer for layer in report["layers"] if layer["op"] in PRODUCTS]
        return report, products, [layer for layer in products if not any(text in layer["kernel"] for text in INTEGERS)]

    def bench(self):
        report, products, floats = self.plan()
        never = self.plan(LAC_ALGORITHM="amx")[2]
        slow = [layer for layer in report["layers"] if (layer["plain"] or layer["exact"]) and layer["share"] > SHARE]
        return {"products": len(products), "floats": [f"{layer['op']} {layer['name']}: {layer['kernel']}" for layer in floats],
                "never": len(never), "slow": [f"{layer['op']} {layer['name']} {100 * layer['share']:.0f} %" for layer in slow], "ms": report["dense_ms"]["min"]}

    def prune(self, name, words):
        pruned = self.folder / f"{name}.onnx"
        run = self.lacuna("prune", self.place / "model.onnx", "-o", pruned, "--force", "--effort", "fast", "--json", "-", "-q", *words)
        report = json.loads(run.stdout)
        checked = self.lacuna("check", pruned, "-q", "--json", "-", wanted=(0, 1))
        feeds = self.samples()
        found = {f"{name}": report["summary"]["pruned"], f"{name}_check": checked.returncode}
        if "runtime" not in self.found:
            wanted = self.theirs(pruned, feeds)
            found |= {f"{name}_error": self.error(pruned, feeds, "auto", wanted), f"{name}_plain_error": self.error(pruned, feeds, "plain", wanted)}
        return found

    def measure(self):
        if (self.place / "failed.txt").exists():
            self.found["not_made"] = (self.place / "failed.txt").read_text().strip().splitlines()[-1][:200]
            return self.found
        if self.step("inspect", self.inspect) and self.step("infer", self.run):
            self.step("bench", self.bench)
            self.step("prune", lambda: self.prune("pruned", ["--no-calibration"]))
            self.step("calibrate", lambda: self.prune("calibrated", ["--calibration", self.place / "inputs.npz"]))
        return self.found


def measure(args, place):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return File(args, place, pathlib.Path(folder)).measure()
        except Exception as failed:  # a file that breaks the script is a line, too
            return {"vendor": place.name.partition("--")[0], "file": place.name.partition("--")[2], "failed": {"script": repr(failed)[:300]}}


def percent(found, name):
    return f"{found[name]:.2g}" if name in found else "-"


def line_of(found):
    if "not_made" in found:
        return f"| {found['vendor']} | {found['file']} | not made: {found['not_made']} |" + " |" * 6
    pruned = f"{found['pruned']} of {found['layers']}" if "pruned" in found else "no"
    products = "-"
    if "products" in found:
        products = f"{found['products'] - len(found['floats'])}, {found['products'] - found['never']} of {found['products']}"
    words = "; ".join(f"{name}: {text}" for name, text in found.get("failed", {}).items())
    return (f"| {found['vendor']} | {found['file']} | {percent(found, 'plain_error')} | {percent(found, 'error')} | {products} | {len(found.get('slow', []))} | "
            f"{pruned} | {percent(found, 'pruned_error')} / {percent(found, 'calibrated_error')} | {words} |")


def lines(results):
    """One row for each vendor."""
    table = ["| files of | files | read and run | largest error, %: plain | fast | products in integers | where they can be | slow steps | pruned | calibrated | not |",
             "|---|" + "--:|" * 10]
    for vendor in dict.fromkeys(found["vendor"] for found in results):
        files = [found for found in results if found["vendor"] == vendor and "not_made" not in found]
        ran = [found for found in files if "error" in found]
        products = sum(found.get("products", 0) for found in ran)
        pruned = sum("pruned" in found for found in files)
        table.append(f"| {vendor} | {len(files)} | {len(ran)} | {max((found['plain_error'] for found in ran), default=0):.2g} | "
                     f"{max((found['error'] for found in ran), default=0):.2g} | {products - sum(len(found.get('floats', [])) for found in ran)} of {products} | "
                     f"{products - sum(found.get('never', 0) for found in ran)} | {sum(len(found.get('slow', [])) for found in ran)} | {pruned} | "
                     f"{sum('calibrated' in found for found in files)} | {len(files) - pruned} |")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--only", default="", help="only files whose name has one of these in it, a,b,c")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--limit", type=int, default=120, help="seconds that one run of the command may take")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path, help="files that an earlier run kept with --json, as they are")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    args.build, args.folder = args.build.resolve(), args.folder.resolve()
    places = sorted(place for place in args.folder.iterdir() if any(part in place.name for part in args.only.split(",")))
    places = [place for place in places if (place / "inputs.npz").exists() or (place / "failed.txt").exists()]
    results = json.loads(args.earlier.read_text()) if args.earlier else []
    kept = {f"{found['vendor']}--{found['file']}" for found in results}
    places = [place for place in places if place.name not in kept]
    print("| vendor | file | plain error, % | error, % | products in integers | slow steps | pruned | pruned error, % | fails |")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for found in pool.map(lambda place: measure(args, place), places):
            results.append(found)
            print(line_of(found), flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=1) + "\n")
    if args.docs:
        NOTES.write_text(fill(NOTES.read_text(), "quantized files", "quantized_files.py", lines(results)))


if __name__ == "__main__":
    sys.exit(main())
