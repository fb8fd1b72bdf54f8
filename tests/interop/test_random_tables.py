# SPDX-License-Identifier: Apache-2.0
"""Random functions of one quantized value (QDQ), which the fast engine computes by tables, against ONNX Runtime.

Activations as quantizers write them, a QuantizeLinear and a DequantizeLinear after each operator or after some of them,
between convolutions, between products of matrices, or alone. All is chosen by the seed.
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
SEEDS, EACH, CHANNELS = 6, 8, 16


class Network:
    """A graph that grows from its input x."""

    def __init__(self, rng):
        self.rng, self.nodes, self.stored = rng, [], {}
        self.rows = rng.random() < .4
        size = int(rng.choice([5, 8])), int(rng.integers(3, 18))
        self.shape = (int(rng.choice([1, 3])), size[1], CHANNELS) if self.rows else (int(rng.choice([1, 2, 16])), CHANNELS, *size)
        self.always = rng.random() < .7  # a quantization after each operator

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, array):
        name = f"constant{len(self.stored)}"
        self.stored[name] = np.asarray(array)
        return name

    def number(self, x):
        return self.constant(np.full(((), (1,), (1, 1))[int(self.rng.integers(0, 3))], x, np.float32))

    def quantized(self, value, low=-4., high=4., parameters=None):
        """value through bytes that hold the numbers from low to high."""
        if not parameters:
            scale = np.float32((high - low) / 255 * self.rng.uniform(.8, 1.2))
            zero = int(np.clip(round(-low / scale), 0, 255))
            zero = np.array(zero, np.uint8) if self.rng.random() < .5 else np.array(zero - 128, np.int8)
            parameters = [self.constant(scale), self.constant(zero)]
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [value, *parameters]), *parameters])

    def between(self, value, low, high):
        return self.quantized(value, low, high) if self.always or self.rng.random() < .5 else value

    def activation(self, x):
        """(a function of x, its bounds)"""
        kind = int(self.rng.integers(0, 11))
        if kind == 0:  # swish
            return self.node("Mul", [x, self.between(self.node("Sigmoid", [x]), 0, 1)]), -.3, 4
        if kind == 1:  # gelu of single operators
            a = self.between(self.node("Div", [x, self.number(np.sqrt(2))]), -3, 3)
            b = self.between(self.node("Erf", [a]), -1, 1)
            c = self.between(self.node("Add", [b, self.number(1)]), 0, 2)
            return self.node("Mul", [self.between(self.node("Mul", [x, c]), -.4, 8), self.number(.5)]), -.2, 4
        if kind == 2:  # hard swish
            return self.node("Mul", [self.between(self.node("HardSigmoid", [x], alpha=1 / 6, beta=.5), 0, 1), x]), -.4, 4
        if kind == 3:  # hard swish of single operators
            a = self.between(self.node("Add", [x, self.number(3)]), -1, 7)
            b = self.between(self.node("Clip", [a, self.constant(np.float32(0)), self.constant(np.float32(6))]), 0, 6)
            return self.node("Div", [self.between(self.node("Mul", [x, b]), -2, 24), self.number(6)]), -.4, 4
        if kind == 4:  # quick gelu
            a = self.between(self.node("Mul", [self.number(1.702), x]), -7, 7)
            return self.node("Mul", [x, self.between(self.node("Sigmoid", [a]), 0, 1)]), -.2, 4
        if kind == 5:
            return self.node("Tanh", [self.between(self.node("Mul", [x, x]), 0, 16)]), 0, 1
        if kind == 6:
            return self.node("LeakyRelu", [self.between(self.node("Sub", [self.number(1), x]), -3, 5)], alpha=.1), -.3, 5
        if kind == 7:
            return self.node("Clip", [self.between(self.node("Elu", [x]), -1, 4), self.constant(np.float32(-.5)), self.constant(np.float32(2))]), -.5, 2
        if kind == 8:
            return self.node("Max", [self.node("Neg", [x]), x, self.number(.3)]), 0, 4
        if kind == 9:  # a gate of two functions
            return self.node("Mul", [self.between(self.node("Tanh", [x]), -1, 1), self.between(self.node("Sigmoid", [x]), 0, 1)]), -.3, 1
        return self.node("Relu", [x]), 0, 4

    def layer(self, value):
        rng = self.rng
        shape = (CHANNELS, CHANNELS) if self.rows else (CHANNELS, CHANNELS, *([1, 1] if rng.random() < .5 else [3, 3]))
        weight = rng.integers(-127, 128, size=shape).astype(np.int8)
        scale = self.constant(np.float32(1 / (40 * np.sqrt(weight.size / CHANNELS))))
        inputs = [value, self.node("DequantizeLinear", [self.constant(weight), scale])]
        if self.rows:
            return self.node("MatMul", inputs)
        return self.node("Conv", inputs, pads=[shape[-1] // 2] * 4, kernel_shape=shape[2:])

    def reshaped(self, x, shape):
        return self.node("Reshape", [x, self.constant(np.array(shape, np.int64))])

    def grow(self):
        rng, x = self.rng, self.quantized("x")
        outputs = []
        for _ in range(int(rng.integers(1, 4))):
            if rng.random() < .6:
                x = self.quantized(self.layer(x))
                if self.rows and rng.random() < .5:  # a bias after it, as exporters of transformers write it
                    x = self.quantized(self.node("Add", [self.constant(rng.normal(size=CHANNELS).astype(np.float32)), x]))
                if self.rows and rng.random() < .3:
                    x = self.reshaped(x, [-1, CHANNELS])
                    x = self.reshaped(self.quantized(self.node("Abs", [x])), self.shape)
            y, low, high = self.activation(x)
            y = self.quantized(y, low, high) if rng.random() < .85 else y
            if rng.random() < .25:  # others read the start, or what comes out
                outputs.append(x if rng.random() < .5 else y)
            x = y if rng.random() < .8 else self.node("Add", [x, y])
            if x != y or self.nodes[-1].op_type != "DequantizeLinear":
                x = self.quantized(x)
        if rng.random() < .5:
            x = self.layer(x)
        return list(dict.fromkeys([x, *outputs]))

    def model(self):
        outputs = self.grow()
        nodes = [*self.nodes, *(helper.make_node("Identity", [name], [f"y{at}"]) for at, name in enumerate(outputs))]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        y = [helper.make_tensor_value_info(f"y{at}", TensorProto.FLOAT, None) for at in range(len(outputs))]
        stored = [numpy_helper.from_array(array, name) for name, array in self.stored.items()]
        return helper.make_model(helper.make_graph(nodes, "g", [x], y, stored), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(folder, names, **environment):
    command = [LACUNA, "infer", folder / "m.onnx", "--input", f"x={folder / 'x.npy'}", "-o", folder / "out", "--force", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return [np.load(folder / "out" / f"{name}.npy") for name in names], done.stdout + done.stderr


def run_onnxruntime(model, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})


@pytest.mark.parametrize("seed", range(SEEDS))
def test_as_onnxruntime(tmp_path, seed):
    rng, n_tables, n_bytes = np.random.default_rng(seed), 0, 0
    for _ in range(EACH):
        network = Network(rng)
        model = network.model()
        x = rng.normal(size=network.shape).astype(np.float32)
        onnx.save(model, str(tmp_path / "m.onnx"))
        np.save(tmp_path / "x.npy", x)
        want = run_onnxruntime(model, x)
        names = [f"y{at}" for at in range(len(want))]
        for environment in ({}, {"LAC_SPARSE": "all"}, {"LAC_SPARSE": "all", "LAC_CPU": "scalar"}, {"LAC_SPARSE": "0"}):
            got, text = run(tmp_path, names, **environment)
            for a, b in zip(got, want):
                apart, scale = np.abs(a - b), max(np.abs(b).max(), 1e-6)
                # Functions and sums that are rounded otherwise may fall to the other side of a half.
                assert apart.max() <= .1 * scale and np.count_nonzero(apart > 1e-4 * scale) <= 3 + .03 * apart.size, environment
            n_tables += text.count("table of")
            n_bytes += text.count("int8 table")
    assert n_tables > 4 * EACH
    assert n_bytes > EACH
