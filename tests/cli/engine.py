#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds examples/engine outside the tree, with the public headers alone, and runs the walk of docs/how-to/write-an-engine.md:
infer, eval, bench, finetune and prune with the engine by its path. Answers, losses and trained weights are those of the built-in engine.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/how-to/write-an-engine.md"
DIGITS = TOP / "examples/digits"
SO = "examples/engine/naive.so"
FINETUNE = ["finetune", "net.onnx", "--data", str(DIGITS), "--steps", "2", "--batch-size", "16", "--eval-limit", "64",
            "--threads", "1"]


class Checks:
    def __init__(self, folder, lacuna, compiler):
        self.folder, self.lacuna, self.passed, self.failed = folder, lacuna, 0, 0
        self.environment = {**os.environ, "CC": compiler, "LACUNA_CFLAGS": "-Iinclude-of-lacuna", "XDG_CACHE_HOME": str(folder)}
        self.environment["PATH"] = f"{lacuna.parent}:{self.environment['PATH']}"

    def expect(self, sentence, good, found=""):
        self.passed, self.failed = self.passed + bool(good), self.failed + (not good)
        if not good:
            print(f"failed: {sentence}: {found}")

    def run(self, words):
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        return done.returncode, done.stdout, done.stderr

    def lines(self, *words):
        code, out, err = self.run([str(self.lacuna), *words])
        self.expect(f"lacuna {shlex.join(words)} succeeds", code == 0, err)
        return out + err


def array_of(path):
    """The floats of a .npy file of format 1."""
    content = path.read_bytes()
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    return struct.unpack(f"<{(len(content) - begin) // 4}f", content[begin:])


def is_close(a, b, tolerance):
    return len(a) == len(b) and all(math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance) for x, y in zip(a, b))


def build(checks):
    """Copies the example and the headers, and builds the plug-in; the Makefile is the example's own."""
    shutil.copytree(TOP / "examples/engine", checks.folder / "examples/engine", ignore=shutil.ignore_patterns("*.so"))
    shutil.copytree(TOP / "include", checks.folder / "examples/engine/include-of-lacuna")
    shutil.copy(DIGITS / "digits.onnx", checks.folder / "net.onnx")
    checks.run([sys.executable, str(TOP / "tests/cli/arrays.py"), "x.npy", "1x1x8x8"])
    code, _, err = checks.run(["make", "-C", "examples/engine"])
    checks.expect("the example builds with the headers alone", code == 0 and not err, err)
    nm = checks.run([checks.environment["CC"], "-print-prog-name=nm"])[1].strip()
    code, out, err = checks.run([nm, "-D", "--undefined-only", SO])
    checks.expect("it needs nothing of the library", code == 0 and "lac" not in out, out + err)
    code, out, err = checks.run([nm, "-D", "--defined-only", SO])
    names = [line.split()[-1] for line in out.splitlines()]
    checks.expect("it exports one function", names == ["lac_plugin_open"], names)


def walk(checks):
    """Every command of the page, in order; what it shows is printed."""
    text, printed = PAGE.read_text(), ""
    for line in re.findall(r"^    (lacuna .*)$", text, re.M):
        words = shlex.split(line.replace("DATA", str(DIGITS)))[1:]
        words += ["--threads", "1"] + (["--eval-limit", "64"] if words[0] == "finetune" else [])
        words += ["--limit", "64"] if words[0] == "eval" else []
        words += ["--calibration-samples", "32"] if words[0] == "prune" else []
        printed += checks.lines(*words)
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S):
        if language == "c":
            checks.expect("the page shows parts of the example", block in (TOP / "examples/engine/naive.c").read_text(), block)
        elif not language:
            checks.expect("a command prints what the page shows", block.strip() in printed, block)


def compare(checks):
    """Against the built-in engines: answers, losses, and a training step's weights."""
    for name, engine in (("plain", "plain"), ("naive", SO), ("again", f"./{SO}")):
        checks.lines("infer", "net.onnx", "--input", "image=x.npy", "-o", name, "--engine", engine)
    answers = [array_of(checks.folder / name / "scores.npy") for name in ("plain", "naive", "again")]
    checks.expect("infer gives the plain engine's answers", is_close(answers[0], answers[1], 1e-4), answers)
    checks.expect("any path of the file is the same engine", answers[1] == answers[2])
    losses = []
    for engine in ([], ["--engine", SO]):
        text = checks.lines("eval", "net.onnx", "--data", str(DIGITS), "--limit", "64", "--threads", "1", *engine)
        losses.append(re.search(r"^64 images: .*loss [\d.]+$", text, re.M)[0])
    checks.expect("eval gives the same loss", losses[0] == losses[1], losses)
    report = json.loads(checks.lines("bench", "net.onnx", "--runs", "3", "--threads", "1", "-q", "--json", "-", "--engine", SO))
    checks.expect("bench names the engine", report["engine"] == "naive", report["engine"])
    checks.expect("bench counts nodes that the engine leaves to the library", report["exact_nodes"] == 10, report["exact_nodes"])
    kernels = {layer["kernel"] for layer in report["layers"]}
    checks.expect("bench names the engine's kernels", kernels == {"loops", "lacuna"}, kernels)
    outputs = []
    for engine in ("cpu", SO):
        text = checks.lines(*FINETUNE, "--no-sparse", "-o", f"{engine[-3:]}.onnx", "--engine", engine)
        outputs.append(re.search(r"^2 steps, loss [\d.]+$", text, re.M)[0])
        checks.lines("infer", f"{engine[-3:]}.onnx", "--input", "image=x.npy", "-o", f"trained{engine[-3:]}", "--engine", "plain")
    checks.expect("training steps give the same loss", outputs[0] == outputs[1], outputs)
    trained = [array_of(checks.folder / f"trained{end}" / "scores.npy") for end in ("cpu", ".so")]
    checks.expect("training steps give the same weights", is_close(trained[0], trained[1], 1e-3), trained)
    checks.expect("training changed them", not is_close(trained[0], answers[0], 1e-3))
    checks.lines("train", "--arch", "digits", "--data", str(DIGITS), "--steps", "1", "--eval-limit", "16", "--threads", "1",
                 "-o", "new.onnx", "--engine", SO)
    code, _, err = checks.run([str(checks.lacuna), "prune", "net.onnx", "-o", "o.onnx", "--no-calibration", "--engine", SO])
    checks.expect("prune refuses an engine that would run nothing", code == 1 and "would run nothing" in err, err)
    checks.expect("... and writes no file", not (checks.folder / "o.onnx").exists())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    options = parser.parse_args()
    os.environ.update(TERM="dumb", LC_ALL="C.UTF-8")
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(pathlib.Path(folder), options.lacuna.resolve(), options.cc)
        build(checks)
        walk(checks)
        compare(checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
