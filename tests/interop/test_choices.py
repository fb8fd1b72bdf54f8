# SPDX-License-Identifier: Apache-2.0
"""Ifs as voice detectors have them, against ONNX Runtime: an input chooses the network, and sizes that the file leaves open choose
inside of it. Each branch has a plan of its own; a branch that these sizes do not fit is never run."""

import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(__file__).resolve().parents[2]
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
WINDOWS = {16000: 512, 8000: 256}


def node(op, inputs, outputs, name="", **attrs):
    return helper.make_node(op, inputs, outputs, name, **attrs)


def value(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def stored(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def squeezed(name):
    """Axis 2 is dropped where its size is 1, as PyTorch's squeeze is exported."""
    return [
        node("Shape", [f"{name}r"], [f"{name}shape"]),
        node("Gather", [f"{name}shape", "two"], [f"{name}size"]),
        node("Equal", [f"{name}size", "one"], [f"{name}single"]),
        node("If", [f"{name}single"], [f"{name}s"], f"{name}squeeze",
             then_branch=helper.make_graph([node("Squeeze", [f"{name}r", "axis"], [f"{name}t"])], "then", [], [value(f"{name}t")]),
             else_branch=helper.make_graph([node("Identity", [f"{name}r"], [f"{name}e"])], "else", [], [value(f"{name}e")])),
    ]


def detector(name, window, rng):
    """A branch: one frame of `window` samples and a state become a state and a probability."""
    weights = [stored(f"{name}w", rng.standard_normal((64, 1, window)).astype(np.float32) / 30),
               stored(f"{name}u", rng.standard_normal((128, 64)).astype(np.float32) / 10),
               stored(f"{name}o", rng.standard_normal((64, 1)).astype(np.float32) / 10)]
    nodes = [
        node("Unsqueeze", ["x", "axis1"], [f"{name}x"]), node("Conv", [f"{name}x", f"{name}w"], [f"{name}c"], f"{name}conv"),
        node("Relu", [f"{name}c"], [f"{name}r"]), *squeezed(name),
        node("Concat", [f"{name}s", "state"], [f"{name}j"], axis=1), node("MatMul", [f"{name}j", f"{name}u"], [f"{name}m"], f"{name}step"),
        node("Tanh", [f"{name}m"], [f"{name}next"]), node("MatMul", [f"{name}next", f"{name}o"], [f"{name}l"]),
        node("Sigmoid", [f"{name}l"], [f"{name}p"]),
    ]
    return helper.make_graph(nodes, name, [], [value(f"{name}p"), value(f"{name}next")], weights)


@pytest.fixture
def network(tmp_path):
    rng = np.random.default_rng(5)
    graph = helper.make_graph(
        [node("Equal", ["rate", "high"], ["is"]),
         node("If", ["is"], ["p", "next"], "rate of samples", then_branch=detector("high_", WINDOWS[16000], rng),
              else_branch=detector("low_", WINDOWS[8000], rng))],
        "voice", [value("x", FLOAT, ["n", "samples"]), value("state", FLOAT, ["n", 64]), value("rate", INT, [])],
        [value("p", FLOAT, ["n", 1]), value("next", FLOAT, ["n", 64])],
        [stored("high", np.int64(16000)), stored("one", np.int64(1)), stored("two", np.int64(2)), stored("axis", np.array([2])),
         stored("axis1", np.array([1]))])
    path = tmp_path / "voice.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def feeds(rate, batch):
    rng = np.random.default_rng(rate)
    return {"x": rng.standard_normal((batch, WINDOWS[rate])).astype(np.float32),
            "state": rng.standard_normal((batch, 64)).astype(np.float32), "rate": np.array(rate)}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("rate", WINDOWS)
def test_each_branch_computes_what_onnxruntime_does(network, tmp_path, rate, batch):
    fed = feeds(rate, batch)
    words = [LACUNA, "infer", network, "-o", tmp_path / "out", "--force"]
    for name, array in fed.items():
        np.save(tmp_path / f"{name}.npy", array)
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    subprocess.run(words, capture_output=True, check=True)
    want = onnxruntime.InferenceSession(network).run(None, fed)
    for name, array in zip(["p", "next"], want, strict=True):
        got = np.load(tmp_path / "out" / f"{name}.npy")
        assert got.shape == array.shape
        assert np.allclose(got, array, rtol=1e-4, atol=1e-5)


def test_a_branch_that_fits_runs_fast(network):
    """No number that is drawn for `rate` is 16000: the second branch runs."""
    words = [LACUNA, "bench", network, "--runs", "3", "--threads", "1", "-q", "--json", "-", "--input-shape", "x=1x256",
             "--input-shape", "state=1x64"]
    report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    layers = {layer["name"].rpartition("/")[2]: layer for layer in report["layers"]}
    assert not layers["low_conv"]["exact"] and not layers["low_step"]["exact"]
    assert layers["low_conv"]["ms"] > 0
    assert layers["high_conv"]["exact"] and "high_conv" in report["exact_reason"]  # the window is longer than the frame


def test_layers_of_branches_have_a_predicted_time(network, tmp_path):
    words = [LACUNA, "prune", network, "-o", tmp_path / "out.onnx", "--no-calibration", "-q", "--json", "-", "--input-shape", "x=1x256",
             "--input-shape", "state=1x64"]
    report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert report["prediction"]["dense_seconds"] > 0
