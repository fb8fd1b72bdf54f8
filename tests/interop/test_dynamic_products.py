# SPDX-License-Identifier: Apache-2.0
"""Random dynamically quantized products against ONNX Runtime without its optimizer: sums are integers, so that only the last
product and sum may be rounded differently.

Shapes, types, zero points, scales and what follows are chosen by the seed. Half of the networks are two layers.
"""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from exact import exact_session

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
SEEDS, EACH = 8, 12
SIZES = [1, 2, 3, 4, 7, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100, 130, 200]


class Network:
    def __init__(self, rng):
        self.rng, self.nodes, self.stored = rng, [], {}
        self.shape = tuple(int(rng.choice(SIZES)) for _ in range(int(rng.choice([1, 2, 2, 3]))))
        if len(self.shape) == 3:
            self.shape = (int(rng.integers(1, 4)), *self.shape[1:])
        self.products = 0

    def node(self, kind, inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}{len(self.nodes)}_{at}" for at in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def constant(self, array):
        name = f"constant{len(self.stored)}"
        self.stored[name] = np.asarray(array)
        return name

    def product(self, quantized, depth):
        rng, columns = self.rng, int(self.rng.choice(SIZES))
        q, scale, zero = quantized
        kind = np.uint8 if rng.random() < .5 else np.int8
        info = np.iinfo(kind)
        inputs = [q, self.constant(rng.integers(info.min, info.max + 1, (depth, columns)).astype(kind)), zero]
        if rng.random() < .8:
            size = columns if rng.random() < .5 else ()
            inputs.append(self.constant(rng.integers(info.min, info.max + 1, size).astype(kind)))
        units = rng.uniform(.5, 1.5, size=columns if rng.random() < .6 else ()).astype(np.float32) / 256 / np.float32(depth)
        sums = self.node("Cast", [self.node("MatMulInteger", inputs)], to=TensorProto.FLOAT)
        pair = [scale, self.constant(units)]
        factors = [sums, self.node("Mul", pair if rng.random() < .5 else pair[::-1])]
        y = self.node("Mul", factors if rng.random() < .5 else factors[::-1])
        self.products += 1
        if rng.random() < .6:
            y = self.node("Add", [y, self.constant(rng.normal(size=columns).astype(np.float32))])
        follows = rng.choice(["", "Relu", "Sigmoid", "Softplus"])
        return (self.node(follows, [y]) if follows else y), columns

    def grow(self, x, depth):
        quantized = self.node("DynamicQuantizeLinear", [x], 3)
        if self.rng.random() < .3:
            self.product(quantized, depth)  # nobody reads it
        return self.product(quantized, depth)

    def model(self):
        x, depth = self.grow("x", self.shape[-1])
        if self.rng.random() < .5:
            x, depth = self.grow(x, depth)
        nodes = [*self.nodes, helper.make_node("Identity", [x], ["y"])]
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        stored = [numpy_helper.from_array(array, name) for name, array in self.stored.items()]
        graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def wanted(path, x):
    return exact_session(path).run(None, {"x": x})[0]


def found(folder, **environment):
    command = [LACUNA, "infer", folder / "m.onnx", "--input", f"x={folder / 'x.npy'}", "-o", folder / "out", "--force", "-v"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return np.load(folder / "out" / "y.npy"), done.stdout + done.stderr


def numbers(rng, shape):
    x = (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4) + rng.choice([0, 0, 2, -2])).astype(np.float32)
    if rng.random() < .2 and x.ndim > 1:
        x[..., 0, :] = 0
    return np.zeros_like(x) if rng.random() < .05 else x


@pytest.mark.parametrize("seed", range(SEEDS))
def test_products_are_those_of_the_runtime(tmp_path, seed):
    rng, steps = np.random.default_rng(seed), 0
    for _ in range(EACH):
        network = Network(rng)
        onnx.save(network.model(), str(tmp_path / "m.onnx"))
        x = numbers(rng, network.shape)
        np.save(tmp_path / "x.npy", x)
        want = wanted(tmp_path / "m.onnx", x)
        got, text = found(tmp_path)
        steps += text.count(" bytes:")
        # A rounded input of the second layer may be on the other side of a half: one step of 1/255 of its range there.
        layers = 2 if text.count("DynamicSteps") > 1 else 1
        assert got.shape == want.shape
        assert np.abs(got - want).max() <= (2e-6 if layers == 1 else 2e-2) * max(np.abs(want).max(), 1e-30)
        for level in ("scalar", "avx2"):
            assert np.array_equal(found(tmp_path, LAC_CPU=level)[0], got) or "Sigmoid" in text or "Softplus" in text
    assert steps >= EACH
