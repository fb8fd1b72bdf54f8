# SPDX-License-Identifier: Apache-2.0
"""What the command writes, judged by others: onnx.checker, ONNX Runtime, and Polygraphy's search for sparse weights.

The demo's network is always there; networks in ../shared/models are used where they are.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
MODELS = [TOP / "examples/digits/digits.onnx", *sorted(TOP.glob("../shared/models/resnet*.onnx"))]


def lacuna(*words):
    done = subprocess.run([LACUNA, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def random_inputs(path, batch=2):
    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return {i.name: rng.standard_normal([d if isinstance(d, int) else batch for d in i.shape]).astype(np.float32)
            for i in session.get_inputs()}


@pytest.fixture(params=MODELS, ids=lambda path: path.stem)
def model(request):
    return request.param


def test_pruned_file_passes_the_checker_and_loads(model, tmp_path):
    out = tmp_path / "out.onnx"
    lacuna("prune", "--no-calibration", "-q", "-o", out, model)
    onnx.checker.check_model(str(out), full_check=True)
    assert all(np.isfinite(x).all() for x in run(out, random_inputs(out)))


def test_runtime_agrees_before_and_after_the_permutation(model, tmp_path):
    out = tmp_path / "out.onnx"
    lacuna("permute", "-q", "-o", out, model)
    inputs = random_inputs(model)
    for before, after in zip(run(model, inputs), run(out, inputs)):
        scale = np.abs(before).max()
        assert np.abs(before - after).max() <= 1e-4 * scale


def test_only_stored_tensors_differ(model, tmp_path):
    out = tmp_path / "out.onnx"
    lacuna("prune", "--no-calibration", "-q", "-o", out, model)
    before, after = onnx.load(str(model)), onnx.load(str(out))
    for a, b in zip(before.graph.initializer, after.graph.initializer):
        assert (a.name, a.dims, a.data_type) == (b.name, b.dims, b.data_type)
    for m in (before, after):
        del m.graph.initializer[:]
        for node in m.graph.node:
            if node.op_type == "Constant":
                del node.attribute[:]
    assert before == after


def test_polygraphy_finds_the_pruned_layers(model, tmp_path):
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    lacuna("prune", "--no-calibration", "-q", "-o", out, "--json", report, model)
    done = subprocess.run(["polygraphy", "inspect", "sparsity", out], capture_output=True, text=True)
    said = done.stdout + done.stderr
    pruned = [layer for layer in json.loads(report.read_text())["layers"] if layer["pruned"]]
    missing = [layer["weight"] for layer in pruned if layer["weight"] not in said]
    assert done.returncode == 0 and pruned and not missing, said[-2000:]
