# SPDX-License-Identifier: Apache-2.0
"""Copies and bounds of integers between QuantizeLinear and DequantizeLinear, as PyTorch's exporters and Brevitas write them.

ONNX Runtime judges the values, and the plan that no node runs by itself. Weights before such nodes are pruned like others.
"""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"


def lacuna(*words):
    done = subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


class Writer:
    """A network of convolutions: how values and weights become integers and floats again is the exporter's."""

    def __init__(self, exporter, kind):
        self.rng, self.exporter, self.kind = np.random.default_rng(7), exporter, kind
        self.nodes, self.stored = [], {}

    def node(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op.lower()}_{name}", **attributes))
        return name

    def constant(self, array):
        self.stored[f"c{len(self.stored)}"] = np.asarray(array)
        return f"c{len(self.stored) - 1}"

    def between(self, integers, low, high):
        """What the exporter writes between the integers and their floats."""
        dtype = np.int8 if low < 0 else np.uint8
        if self.exporter == "cast":  # PyTorch's FX quantization
            return self.node("Cast", [integers], to=TensorProto.INT8 if low < 0 else TensorProto.UINT8)
        if self.exporter == "whole clip":  # its dynamo exporter
            info = np.iinfo(dtype)
            return self.node("Clip", [integers, self.constant(np.array(info.min, dtype)), self.constant(np.array(info.max, dtype))])
        return self.node("Clip", [integers, "" if low == 0 else self.constant(np.array(low, dtype)), self.constant(np.array(high, dtype))])

    def activation(self, value, twice=False):
        low, high = (-64, 63) if self.kind == "signed" else (0, 127)
        zero = np.array(-3, np.int8) if low < 0 else np.array(50, np.uint8)
        parameters = [self.constant(np.float32(0.05)), self.constant(zero)]
        if self.exporter == "cast":
            parameters[1] = self.node("Identity", [parameters[1]])
        integers = self.node("QuantizeLinear", [value, *parameters])
        first = self.between(integers, low, high)
        floats = self.node("DequantizeLinear", [first, *parameters])
        if not twice:
            return floats
        second = self.between(integers, low, high) if self.exporter == "cast" else first  # each reader has a copy of its own, or none
        return floats, self.node("DequantizeLinear", [second, *parameters])

    def weight(self, out, channels, kernel):
        w = (self.rng.normal(size=(out, channels, kernel, kernel)) / np.sqrt(channels * kernel**2)).astype(np.float32)
        parameters = [self.constant(np.float32(np.abs(w).max((1, 2, 3)) / 127)), self.constant(np.zeros(out, np.int8))]
        if self.exporter == "cast":
            parameters[1] = self.node("Identity", [parameters[1]])
        if self.exporter == "narrow clip":  # Brevitas: integers are stored
            integers = self.constant(np.round(w / self.stored[parameters[0]].reshape(-1, 1, 1, 1)).astype(np.int8))
        else:
            integers = self.node("QuantizeLinear", [self.constant(w), *parameters], axis=0)
        return self.node("DequantizeLinear", [self.between(integers, -127, 127), *parameters], axis=0)

    def convolution(self, x, out, channels, kernel):
        bias = self.constant(self.rng.normal(size=out).astype(np.float32))
        return self.node("Conv", [x, self.weight(out, channels, kernel), bias], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4)

    def model(self):
        a = self.activation(self.node("Relu", [self.convolution(self.activation("x"), 32, 16, 3)]))
        b, c = self.activation(self.convolution(a, 32, 32, 1), twice=True)
        c = self.activation(self.node("Relu", [self.convolution(c, 32, 32, 3)]))
        y = self.convolution(self.activation(self.node("Add", [b, c])), 16, 32, 1)
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 16, 9, 11])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 16, 9, 11])],
                                  [numpy_helper.from_array(array, name) for name, array in self.stored.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def theirs(path, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def check_values(tmp_path, path, x):
    wanted = theirs(path, x)
    for words in ((), ("--engine", "plain")):
        text = lacuna("infer", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out", "--force", "-v", *words)
        apart = np.abs(np.load(tmp_path / "out/y.npy") - wanted)
        # a sum that is halfway may fall on either side
        # Int8 layers round biases of floats to the units of their sums: a sum that is nearly halfway may fall on either side.
        assert apart.max() <= 0.03 * np.abs(wanted).max() and apart.mean() <= 1e-3 * np.abs(wanted).max()
        assert words or "plain" not in text.replace("by the plain operator", ""), text


@pytest.mark.parametrize("kind", ("unsigned", "signed"))
@pytest.mark.parametrize("exporter", ("cast", "whole clip", "narrow clip"))
def test_copies_and_bounds(tmp_path, exporter, kind):
    x = np.random.default_rng(1).normal(size=(2, 16, 9, 11)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    model = Writer(exporter, kind).model()
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, tmp_path / "m.onnx")
    check_values(tmp_path, tmp_path / "m.onnx", x)
    text = lacuna("prune", tmp_path / "m.onnx", "-o", tmp_path / "p.onnx", "--no-calibration")
    assert "4/4 layers" in text
    assert "4/4 layers" in lacuna("check", tmp_path / "p.onnx")
    check_values(tmp_path, tmp_path / "p.onnx", x)


def test_a_clip_that_leaves_out_zero(tmp_path):
    """Its weight cannot be pruned, since 0 would become another number."""
    writer = Writer("narrow clip", "unsigned")
    model = writer.model()
    bound = next(node for node in model.graph.node if node.op_type == "Clip" and node.input[0].startswith("c")).input[1]
    next(tensor for tensor in model.graph.initializer if tensor.name == bound).CopyFrom(numpy_helper.from_array(np.array(3, np.int8), bound))
    onnx.save(model, tmp_path / "m.onnx")
    assert "3/4 layers" in lacuna("prune", tmp_path / "m.onnx", "-o", tmp_path / "p.onnx", "--no-calibration")
