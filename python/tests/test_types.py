# SPDX-License-Identifier: Apache-2.0
"""What a checker of types says of a program that uses the package: nothing of one that is right, and a word of each mistake."""
import os
import pathlib
import subprocess
import sys

import pytest

import lacuna

pytest.importorskip("mypy")
pytestmark = pytest.mark.large
RIGHT = """
import pathlib
import lacuna
report = lacuna.prune("net.onnx", "out.onnx", calibration="synthetic", pattern=(2, 4), seed=3, effort="fast", target=["tensorrt"])
kept: bool = report.holds_pattern
pruned: int = report.summary.pruned
words: list[str] = [f"{layer.name}: {layer.reason or layer.zero_ratio}" for layer in report.layers]
producers: list[str] = report.groups[0].producers
model = lacuna.Model(pathlib.Path("net.onnx"))
lacuna.quantize(model, calibration=[{"image": b""}], quantize_range="minmax", progress=True)
scores = lacuna.Session(model, threads=1).run(None, {"image": b""})[0]
top1 = lacuna.evaluate("net.onnx", "images").top1 + 1
steps = lacuna.finetune(model, "images", steps=2).training.steps
weight = lacuna.TensorFile("net.safetensors")["conv1.weight"]
"""
WRONG = {
    "lacuna.prune('net.onnx', pattern=4)": "incompatible type",
    "lacuna.prune('net.onnx', patern='2:4')": "patern",
    "lacuna.prune('net.onnx', effort='fastest')": "incompatible type",
    "lacuna.check('net.onnx').summary.pruuned": "has no attribute",
    "lacuna.Session('net.onnx').run(None)": "Missing positional argument",
}


def complaints(text, folder):
    """What mypy says of a program, by line."""
    program = folder / "program.py"
    program.write_text(text)
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "--ignore-missing-imports", "--follow-imports=silent",
                           "--no-error-summary", program.name], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "MYPYPATH": str(pathlib.Path(lacuna.__file__).parents[1])})
    return [line for line in done.stdout.splitlines() if ": error:" in line]


def test_a_program_that_is_right(tmp_path):
    assert not complaints(RIGHT, tmp_path)


def test_each_mistake_is_found(tmp_path):
    found = complaints("import lacuna\n" + "\n".join(WRONG) + "\n", tmp_path)
    assert len(found) == len(WRONG)
    for line, word in zip(found, WRONG.values()):
        assert word in line
