# SPDX-License-Identifier: Apache-2.0
"""What is not finite stays so by the fast engine, in places where its kernels could lose it; the plain engine judges.

Each network ends in a Relu, which makes 0 of NaN in most kernels.
"""

import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(__file__).resolve().parents[2]
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
FLOAT = TensorProto.FLOAT
NAN, INF = np.float32("nan"), np.float32("inf")
node = helper.make_node


def numbers(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def poisoned(array, place, what):
    array = array.copy()
    array[place] = what
    return array


# name -> nodes up to y, what is stored, inputs, operator set
CASES = {
    "a result after an absent one": (
        [node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=4)], dict(w=numbers(1, 16, 3), r=numbers(1, 16, 4)),
        dict(x=poisoned(numbers(5, 1, 3), (2, 0, 1), NAN)), 17),
    "a divisor": (
        [node("Sigmoid", ["x"], ["s"]), node("Div", ["s", "c"], ["y"])], dict(c=np.array([1, NAN, 2], np.float32)),
        dict(x=numbers(4, 3)), 17),
    "rows of one number, normalized": (
        [node("Sigmoid", ["x"], ["s"]), node("LayerNormalization", ["s", "c"], ["y"], epsilon=0.0)],
        dict(c=np.ones(3, np.float32)), dict(x=np.ones((2, 3), np.float32)), 17),
    "an attribute of Pad": (
        [node("Pad", ["x"], ["y"], pads=[0, 1, 0, 1], value=float("nan"))], {}, dict(x=numbers(2, 3)), 10),
    "what is outside of a resized image": (
        [node("Resize", ["x", "roi", "", "size"], ["y"], coordinate_transformation_mode="tf_crop_and_resize",
              mode="nearest", extrapolation_value=float("nan"))],
        dict(roi=np.array([0, 0, 0, 0, 1, 1, 2, 2], np.float32), size=np.array([1, 1, 4, 4])),
        dict(x=numbers(1, 1, 4, 4)), 17),
}


def infer(folder, inputs, engine):
    files = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        files += ["--input", f"{name}={folder / name}.npy"]
    run = subprocess.run([LACUNA, "infer", folder / "m.onnx", *files, "-o", folder / engine, "--engine", engine],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return np.load(folder / engine / "z.npy")


def save(folder, nodes, stored, inputs, opset):
    graph = helper.make_graph(
        [*nodes, node("Relu", ["y"], ["z"])], "g",
        [helper.make_tensor_value_info(name, FLOAT, array.shape) for name, array in inputs.items()],
        [helper.make_tensor_value_info("z", FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in stored.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    onnx.save(model, folder / "m.onnx")


@pytest.mark.parametrize("name", CASES)
def test_is_not_lost(name, tmp_path):
    nodes, stored, inputs, opset = CASES[name]
    save(tmp_path, nodes, stored, inputs, opset)
    exact, fast = (infer(tmp_path, inputs, engine) for engine in ("plain", "cpu"))
    assert not np.isfinite(exact).all(), "the case has nothing to lose"
    np.testing.assert_array_equal(np.isfinite(fast), np.isfinite(exact))


def test_the_least_float_in_a_mask_is_no_reason_to_be_careful(tmp_path):
    inputs = dict(x=numbers(4, 3))
    nodes = [node("Max", ["x", "least"], ["y"])]
    save(tmp_path, nodes, dict(least=np.array(np.finfo(np.float32).min)), inputs, 17)
    np.save(tmp_path / "x.npy", inputs["x"])
    run = subprocess.run([LACUNA, "infer", tmp_path / "m.onnx", "--input", f"x={tmp_path}/x.npy", "-o", tmp_path / "o"],
                         capture_output=True, text=True)
    assert run.returncode == 0 and "carefully" not in run.stderr, run.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "o/z.npy"), np.maximum(inputs["x"], 0))
