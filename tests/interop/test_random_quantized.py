# SPDX-License-Identifier: Apache-2.0
"""Random quantized networks (QDQ): the fast engine, as it is and by sparse kernels alone, against the plain one.

Convolutions of all kinds, sums, pools and moves of elements, whose values go through bytes or do not, are read again by later layers, and are
dequantized once or by each reader for itself. All is chosen by the seed.
"""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
EACH = 10
SEEDS = max(1, int(os.environ.get("LAC_RANDOM_GRAPHS", "80")) // EACH)


class Network:
    """A graph that grows from its input x; values are (name, channels, height, width, bytes with scale and zero point)."""

    def __init__(self, rng):
        self.rng, self.nodes, self.stored = rng, [], {}
        self.channels = int(rng.choice([3, 4, 7, 8, 12, 16, 20]))
        self.shape = (int(rng.choice([1, 2, 16, 17])), self.channels, int(rng.integers(3, 14)), int(rng.integers(3, 20)))
        self.values = [self.quantized("x", *self.shape[1:])]

    def node(self, kind, inputs, **attributes):
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, array):
        name = f"constant{len(self.stored)}"
        self.stored[name] = np.asarray(array)
        return name

    def quantized(self, value, channels, height, width, parameters=None):
        rng = self.rng
        if not parameters:
            zero = np.array(rng.integers(0, 256), np.uint8) if rng.random() < .6 else np.array(rng.integers(-128, 128), np.int8)
            parameters = [self.constant(np.float32(rng.uniform(.01, .06))), self.constant(zero)]
        read = [self.node("QuantizeLinear", [value, *parameters]), *parameters]
        if rng.random() < .15:  # fewer bits, as PyTorch's quantizers write them
            zero = self.stored[parameters[1]]
            info = np.iinfo(zero.dtype)
            low, high = rng.integers(info.min, int(zero) + 1), rng.integers(int(zero), info.max + 1)
            if low < high:
                read[0] = self.node("Clip", [read[0], self.constant(np.array(low, zero.dtype)), self.constant(np.array(high, zero.dtype))])
        return self.node("DequantizeLinear", read), channels, height, width, read

    def follow(self, value, like):
        """A normalization, functions, a sum and quantization after a layer, or not."""
        rng, kind = self.rng, self.rng.random()
        if rng.random() < .15:  # some channels change their sign, and some are 0
            scale = rng.uniform(.3, 1.5, size=like[0]) * rng.choice([1, 1, 1, -1, 0], size=like[0])
            lists = [scale, rng.normal(size=like[0]) * .2, rng.normal(size=like[0]) * .2, rng.uniform(.3, 1.5, size=like[0])]
            value = self.node("BatchNormalization", [value, *(self.constant(array.astype(np.float32)) for array in lists)])
        if kind < .4:
            value = self.node("Relu", [value])
        elif kind < .5:
            value = self.node("HardSwish", [value])
        elif kind < .6:
            value = self.node("Clip", [value, self.constant(np.float32(-1)), self.constant(np.float32(2))])
        alike = [v for v in self.values if v[1:4] == like]
        if alike and rng.random() < .25:
            value = self.node("Add", [value, alike[-1][0]])
        self.values.append(self.quantized(value, *like) if rng.random() < .85 else (value, *like, None))
        if rng.random() < .2:
            self.values.append(self.quantized(self.values[-1][0], *like))  # the units of bytes change

    def convolution(self, value, channels, height, width, read):
        rng, groups, out = self.rng, 1, int(self.rng.choice([4, 5, 8, 12, 16, 24]))
        if channels % 8 == 0 and rng.random() < .25:
            groups, out = 2, 8 * int(rng.integers(1, 3))
        if channels > 1 and rng.random() < .3:
            groups = out = channels
        kernel, stride = int(rng.choice([1, 1, 3, 3, 5])), int(rng.choice([1, 1, 2]))
        pad = int(rng.integers(0, kernel // 2 + 1))
        if min(height, width) + 2 * pad < kernel:
            return
        weight = rng.integers(-127, 128, size=(out, channels // groups, kernel, kernel)).astype(np.int8)
        if rng.random() < .7:
            weight[rng.random(weight.shape) < .5] = 0
        by_row = rng.random() < .6
        scale = (rng.uniform(.5, 1.5, size=out if by_row else ()) / np.sqrt(weight[0].size) / 100).astype(np.float32)
        axis = {"axis": 0} if by_row else {}
        inputs = [value, self.node("DequantizeLinear", [self.constant(weight), self.constant(scale)], **axis)]
        if read and rng.random() < .5:
            units = (self.stored[read[1]] * scale * np.ones(out)).astype(np.float32)
            bias = self.constant(rng.integers(-2000, 2000, size=out).astype(np.int32))
            inputs.append(self.node("DequantizeLinear", [bias, self.constant(units)], axis=0))
        y = self.node("Conv", inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)
        self.follow(y, (out, (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1))

    def sum(self, value, channels, height, width):
        alike = [v for v in self.values if v[1:4] == (channels, height, width)]
        y = self.node("Add", [value, alike[int(self.rng.integers(0, len(alike)))][0]])
        if self.rng.random() < .5:
            y = self.node("Relu", [y])
        self.values.append(self.quantized(y, channels, height, width))

    def pool(self, value, channels, height, width, read):
        rng, kernel, stride = self.rng, int(self.rng.choice([2, 3])), int(self.rng.choice([1, 2]))
        pad = int(rng.integers(0, 2)) if kernel == 3 else 0
        average = rng.random() < .4
        if average:
            y = self.node("AveragePool", [value], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                          count_include_pad=int(rng.integers(0, 2)))
        else:
            y = self.node("MaxPool", [value], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        size = [(n + 2 * pad - kernel) // stride + 1 for n in (height, width)]
        if not average and rng.random() < .2:
            return self.keep(y, channels, *size, read)
        return self.values.append(self.quantized(y, channels, *size, read[1:] if read and not average and rng.random() < .8 else None))

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def keep(self, value, channels, height, width, read):
        """The result of a move: of the same scale, of another one, or not quantized for itself."""
        kind = self.rng.random()
        if kind < .2:
            self.values.append((value, channels, height, width, None))
        else:
            self.values.append(self.quantized(value, channels, height, width, read[1:] if read and kind < .6 else None))

    def join(self, value, channels, height, width, read):
        alike = [v for v in self.values if v[2:4] == (height, width)]
        parts = [alike[int(self.rng.integers(0, len(alike)))] for _ in range(int(self.rng.integers(1, 3)))]
        parts.insert(int(self.rng.integers(0, len(parts) + 1)), (value, channels, height, width, read))
        along = [v for v in self.values if v[1] == channels and v[3] == width]
        if self.rng.random() < .2:
            parts = [(value, channels, height, width, read), along[int(self.rng.integers(0, len(along)))]]
            return self.keep(self.node("Concat", [v[0] for v in parts], axis=2), channels, sum(v[2] for v in parts), width, read)
        y = self.node("Concat", [v[0] for v in parts], axis=1)
        return self.keep(y, sum(v[1] for v in parts), height, width, read)

    def part(self, value, channels, height, width, read):
        rng, size = self.rng, [channels, height, width]
        if rng.random() < .4 and channels > 1:
            first = int(rng.integers(1, channels)) if channels % 8 or rng.random() < .3 else channels // 2
            names = [f"split{len(self.nodes)}_{at}" for at in range(2)]
            self.nodes.append(helper.make_node("Split", [value, self.ints(first, channels - first)], names, axis=1))
            self.keep(names[0], first, height, width, read)
            return self.keep(names[1], channels - first, height, width, read)
        axis = int(rng.integers(0, 3))
        if size[axis] < 4:
            return None
        start, step = int(rng.integers(0, 2)), int(rng.choice([1, 1, 2, -1]))
        if step < 0:
            ends = [-1 - start, -2**31, 1]
            ends[2] = size[axis] - start
        else:
            ends = [start, 2**31 - 1, len(range(start, size[axis], step))]
        y = self.node("Slice", [value, self.ints(ends[0]), self.ints(ends[1]), self.ints(axis + 1), self.ints(step)])
        size[axis] = ends[2]
        return self.keep(y, *size, read)

    def resize(self, value, channels, height, width, read):
        factors = [self.rng.choice([1, 2, 2, 3, .7, 1.6]) for _ in range(2)]
        size = [max(1, int(n * factor)) for n, factor in zip((height, width), factors)]
        if max(size) > 40:
            return
        rule = ("asymmetric", "floor") if self.rng.random() < .6 else ("half_pixel", "round_prefer_floor")
        y = self.node("Resize", [value, "", "", self.ints(self.shape[0], channels, *size)], mode="nearest" if self.rng.random() < .8 else "linear",
                      coordinate_transformation_mode=rule[0], nearest_mode=rule[1])
        self.keep(y, channels, *size, read)

    def pad(self, value, channels, height, width, read):
        pads = [int(n) for n in self.rng.integers(0, 3, size=4)]
        kind = str(self.rng.choice(["constant", "constant", "edge", "reflect"]))
        y = self.node("Pad", [value, self.ints(0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3])] +
                      ([self.constant(np.float32(self.rng.choice([0, .3])))] if kind == "constant" else []), mode=kind)
        self.keep(y, channels, height + pads[0] + pads[2], width + pads[1] + pads[3], read)

    def block(self, value, channels, height, width, read):
        mode = {"mode": str(self.rng.choice(["DCR", "CRD"]))}
        if channels % 4 == 0 and self.rng.random() < .6:
            self.keep(self.node("DepthToSpace", [value], blocksize=2, **mode), channels // 4, 2 * height, 2 * width, read)
        elif height % 2 == 0 and width % 2 == 0:
            self.keep(self.node("SpaceToDepth", [value], blocksize=2), 4 * channels, height // 2, width // 2, read)
        else:
            order = self.constant(self.rng.permutation(channels).astype(np.int64))
            self.keep(self.node("Gather", [value, order], axis=1), channels, height, width, read)

    def move(self, *value):
        move = self.rng.choice([self.join, self.join, self.part, self.resize, self.pad, self.block])
        if min(value[2:4]) > 3 or move == self.join:
            move(*value)

    def grow(self):
        rng = self.rng
        value, channels, height, width, read = self.values[int(rng.integers(max(0, len(self.values) - 2), len(self.values)))]
        if read and rng.random() < .3:
            value = self.node("DequantizeLinear", read)
        kind = rng.random()
        if kind < .28 and channels <= 64:
            self.move(value, channels, height, width, read)
        elif kind < .7:
            self.convolution(value, channels, height, width, read)
        elif kind < .85:
            self.sum(value, channels, height, width)
        elif min(height, width) > 3:
            self.pool(value, channels, height, width, read)

    def model(self):
        nodes = [*self.nodes, helper.make_node("Identity", [self.values[-1][0]], ["y"])]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        stored = [numpy_helper.from_array(array, name) for name, array in self.stored.items()]
        return helper.make_model(helper.make_graph(nodes, "g", [x], [y], stored), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(folder, *words, **environment):
    command = [LACUNA, "infer", folder / "m.onnx", "--input", f"x={folder / 'x.npy'}", "-o", folder / "out", "--force", "-v", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return np.load(folder / "out" / "y.npy"), done.stdout + done.stderr


@pytest.mark.parametrize("seed", range(SEEDS))
def test_engines_agree(tmp_path, seed):
    rng, layers = np.random.default_rng(seed), 0
    for _ in range(EACH):
        network = Network(rng)
        for _ in range(int(rng.integers(1, 8))):
            network.grow()
        model = network.model()
        onnx.save(model, str(tmp_path / "m.onnx"))
        halves = any(attribute.s == b"linear" for node in model.graph.node for attribute in node.attribute)
        np.save(tmp_path / "x.npy", rng.normal(size=network.shape).astype(np.float32))
        want, _ = run(tmp_path, "--engine", "plain")
        scale = max(np.abs(want).max(), 1e-6)
        for environment in ({}, {"LAC_SPARSE": "all"}, {"LAC_ALGORITHM": "amx"}, {"LAC_ALGORITHM": "byte_pairs"},
                            {"LAC_ALGORITHM": "csr", "LAC_CPU": "scalar"}):
            got, text = run(tmp_path, **environment)
            apart = np.abs(got - want)
            # Where a sum is halfway it may fall on either side: a few values, and what follows from them; more where bytes are
            # interpolated, by ONNX Runtime, too. A step is at most a fifth of the scale.
            few = 3 + (.06 if halves else .03) * apart.size
            assert apart.max() <= .201 * scale and np.count_nonzero(apart > 1e-4 * scale) <= few, environment
            layers += sum(text.count(kernel) for kernel in ("compiled int8", "avx512vnni", "int8 sum", "int8 pool", "int8 depthwise", "int8 average", "int8 move", " amx", "pairs"))
    assert layers > EACH
