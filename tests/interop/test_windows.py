# SPDX-License-Identifier: Apache-2.0
"""Resize and ConvTranspose by the fast engine against ONNX Runtime, with attributes drawn at random."""
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from test_engine import close, file_of, run_engine

N_DRAWN = 24
# ONNX Runtime differs from the operator's text, and from ONNX's own reference: exclude_outside and antialias together.


def model_of(node, shape, stored, folder):
    graph = helper.make_graph([node], "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(array, name) for name, array in stored.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def agrees(tool, node, shape, stored, folder):
    path = model_of(node, shape, stored, folder)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    try:
        session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        want, = session.run(None, {"x": x})
    except Exception as refused:  # pylint: disable=broad-except
        pytest.skip(f"ONNX Runtime refuses: {str(refused)[:100]}")
    plan = run_engine(tool, path, {"x": x}, folder)
    close(want, np.load(file_of(folder / "out", "y")), 1e-5)
    return plan


@pytest.mark.parametrize("seed", range(N_DRAWN))
def test_resizes_as_the_runtime_does(seed, tool, tmp_path):
    rng = np.random.default_rng(seed)
    mode = ("nearest", "linear", "cubic")[seed % 3]
    shape = [1, int(rng.integers(1, 4)) * 8, *(int(n) for n in rng.integers(3, 12, 2))]
    attributes = {"mode": mode, "coordinate_transformation_mode": str(rng.choice(
        ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]))}
    if mode == "nearest":
        attributes["nearest_mode"] = str(rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic" and rng.integers(2):
        attributes["exclude_outside"] = 1
    if rng.integers(2):
        stored = {"scales": np.array([1, 1, *rng.choice([2, 3, 0.5, 4], 2)], np.float32)}
        inputs = ["x", "", "scales"]
    else:
        stored = {"sizes": np.array([1, shape[1], *rng.integers(2, 20, 2)], np.int64)}
        inputs = ["x", "", "", "sizes"]
    plan = agrees(tool, helper.make_node("Resize", inputs, ["y"], **attributes), shape, stored, tmp_path)
    assert " 0 of them by the plain operator" in plan


@pytest.mark.parametrize("seed", range(N_DRAWN))
def test_convolves_transposed_as_the_runtime_does(seed, tool, tmp_path):
    rng = np.random.default_rng(100 + seed)
    groups = int(rng.choice([1, 1, 2, 8]))
    channels, out = groups * int(rng.integers(1, 5)), int(rng.choice([1, 3, 8]))
    stride = int(rng.integers(1, 4))
    kernel = stride + int(rng.integers(0, 4))
    attributes = {"strides": [stride, stride], "group": groups, "kernel_shape": [kernel, kernel]}
    which = rng.integers(4)
    if which == 0:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    else:
        attributes["pads"] = [int(n) for n in rng.integers(0, kernel, 4)]
        attributes["output_padding"] = [int(rng.integers(0, stride)) for _ in range(2)]
    shape = [2, channels, *(int(n) for n in rng.integers(4, 10, 2))]
    stored = {"w": rng.standard_normal([channels, out, kernel, kernel]).astype(np.float32),
              "b": rng.standard_normal(groups * out).astype(np.float32)}
    plan = agrees(tool, helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes), shape, stored, tmp_path)
    assert " 0 of them by the plain operator" in plan
