#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks as other tools export them: counts of layers and groups, and for some the whole pipeline.

Each line of counts.txt is a network of tests/fixtures/zoo (filled with random weights first) or of the folder that
LAC_MODELS names (default: ../shared/models, skipped where it is not there), options, and what must come out:

    NETWORK [OPTIONS ...] | layers eligible permuted groups pruned | pipeline

`pipeline`: prune with verification, then check the result against the original. `-`: only look. Lines that start with # give
the reasoning.  run.py --print shows what is found instead of comparing it.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release"))
MODELS = pathlib.Path(os.environ.get("LAC_MODELS", TOP.parent / "shared/models"))
LIGHT = os.environ.get("LAC_TESTS") == "light"  # no pipelines over large networks
FIELDS = ("layers", "eligible", "permuted", "groups", "pruned")


def rows():
    for line in (TOP / "tests/zoo/counts.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        network, counts, pipeline = (part.strip() for part in line.split("|"))
        name, *options = network.split()
        yield name, options, [int(x) for x in counts.split()], pipeline


def run(*arguments):
    done = subprocess.run([str(x) for x in arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments[:4]))} ...: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def found_counts(report):
    return [report["summary"][field] for field in FIELDS]


def look(model, options, pipeline, folder):
    lacuna = BUILD / "lacuna"
    if pipeline != "pipeline":
        report = json.loads(run(lacuna, "inspect", "-q", model, *options, "--json", "-"))
        report["summary"]["pruned"] = report["summary"]["eligible"]  # what prune would do
        return found_counts(report)
    pruned = folder / "pruned.onnx"
    report = json.loads(run(lacuna, "prune", "--no-calibration", "--no-solve", "-q", "--force", model, "-o", pruned, *options, "--json", "-"))
    summary = report["summary"]
    bound = {"plain": 1e-9, "cpu": 1e-5}[summary["proof"]["engine"]]  # sums of double, of float
    if not summary["verified"] or not summary["max_abs_error"] <= bound * max(summary["max_abs_output"], 1e-30):
        raise RuntimeError(f"verification: {summary['max_abs_error']} of {summary['max_abs_output']}")
    if not summary["kept_after"] >= summary["kept_before"]:
        raise RuntimeError("the permutation keeps less than the order that was there")
    run(lacuna, "check", "-q", pruned, "--against", model, "--no-verify", *options)
    compare_counts(report, json.loads(run(lacuna, "check", "-q", pruned, *options, "--json", "-")))
    return found_counts(report)


def compare_counts(said, seen):
    """What prune said of its result is what a look at the file says, layer by layer."""
    fields = ("pruned", "holds_pattern", "zero_ratio")
    for a, b in zip(said["layers"], seen["layers"], strict=True):
        if any(a[field] != b[field] for field in fields):
            raise RuntimeError(f"{a['name']}: prune says {[a[f] for f in fields]}, check {[b[f] for f in fields]}")
    if said["summary"]["pruned"] != seen["summary"]["pruned"]:
        raise RuntimeError(f"prune says {said['summary']['pruned']}, check {seen['summary']['pruned']} layers are pruned")


def network(name, folder):
    """The file to work on; None where it is not there."""
    fixture = TOP / f"tests/fixtures/zoo/{name}.onnx"
    if not fixture.exists():
        model = MODELS / f"{name}.onnx"
        return model if model.exists() else None
    filled = folder / f"{name}.onnx"
    if not filled.exists():
        for old in folder.glob("*.onnx"):
            old.unlink()
        run(BUILD / "tests/tools/fill_model", fixture, filled, "1")
    return filled


def main():
    printing = "--print" in sys.argv
    only = [a for a in sys.argv[1:] if not a.startswith("-")]
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, options, wanted, pipeline in rows():
            title = " ".join([name, *options])
            if only and name not in only:
                continue
            model = network(name, folder)
            if model is None or (LIGHT and pipeline == "pipeline" and model.stat().st_size > 20e6):
                print(f"skipped: {title}")
                skipped += 1
                continue
            try:
                found = look(model, options, pipeline, folder)
            except RuntimeError as error:
                print(f"FAILED: {title}: {error}")
                failed += 1
                continue
            if printing:
                print(title, "|", *found, "|", pipeline, flush=True)
            elif found != wanted:
                print(f"FAILED: {title}: {' '.join(FIELDS)}: got {found}, want {wanted}")
                failed += 1
                continue
            passed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


sys.exit(main())
