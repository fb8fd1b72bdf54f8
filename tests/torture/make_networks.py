#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_networks FOLDER: the small networks that `make torture` damages, a few kilobytes each; needs onnx and numpy.

Together they hold what graphs are made of: convolutions of all kinds, products, attention, joins and cuts, shape
arithmetic, bodies, functions, quantized and half-precision weights, an unknown operator.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(1)


class Net:
    """Nodes one after the other; `weight` makes a stored tensor."""

    def __init__(self, name, shape, dtype=TensorProto.FLOAT, opset=17):
        self.name, self.nodes, self.stored, self.opset = name, [], [], opset
        self.inputs = [helper.make_tensor_value_info("x", dtype, shape)]
        self.at = "x"

    def weight(self, *shape, scale=0.3, dtype=np.float32):
        return self.store((rng.standard_t(4, shape) * scale).astype(dtype))

    def store(self, array):
        name = f"w{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def ints(self, *values):
        return self.store(np.array(values, np.int64))

    def add(self, op, inputs=None, n_out=1, domain="", **attributes):
        inputs = [self.at] if inputs is None else inputs
        outs = [f"v{len(self.nodes)}_{k}" for k in range(n_out)]
        self.nodes.append(helper.make_node(op, inputs, outs, name=f"{op}{len(self.nodes)}", domain=domain, **attributes))
        self.at = outs[0]
        return outs[0] if n_out == 1 else outs

    def conv(self, x, c_in, c_out, k=3, **attributes):
        group = attributes.get("group", 1)
        return self.add("Conv", [x, self.weight(c_out, c_in // group, k, k), self.weight(c_out)],
                        pads=[k // 2] * 4, **attributes)

    def norm(self, x, c):
        ones = self.store(np.abs(rng.normal(1, .1, c)).astype(np.float32))
        return self.add("BatchNormalization", [x, ones, self.weight(c), self.weight(c), ones])

    def save(self, folder, outputs=None, functions=(), domains=()):
        names = outputs or [self.at]
        graph = helper.make_graph(self.nodes, self.name, self.inputs,
                                  [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names], self.stored)
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in domains]
        model = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=8)
        onnx.save(model, str(folder / f"{self.name}.onnx"))


def residual():
    net = Net("residual", ["N", 1, 8, 8])
    x = net.norm(net.conv("x", 1, 16), 16)
    x = net.add("Relu", [x])
    for _ in range(2):
        y = net.add("Relu", [net.norm(net.conv(x, 16, 16), 16)])
        x = net.add("Relu", [net.add("Add", [net.norm(net.conv(y, 16, 16), 16), x])])
    x = net.add("Flatten", [net.add("GlobalAveragePool", [x])])
    net.add("Gemm", [x, net.weight(10, 16), net.weight(10)], transB=1)
    return net


def joins():
    net = Net("joins", [1, 8, 8, 8])
    a = net.conv("x", 8, 16)
    b = net.conv(a, 16, 16, group=4)
    c = net.conv(b, 16, 16, group=16)
    joined = net.add("Concat", [a, b, c], axis=1)
    parts = net.add("Split", [joined, net.ints(16, 16, 16)], n_out=3, axis=1)
    shuffled = net.add("Reshape", [parts[0], net.ints(1, 4, 4, 8, 8)])
    shuffled = net.add("Transpose", [shuffled], perm=[0, 2, 1, 3, 4])
    shuffled = net.add("Reshape", [shuffled, net.ints(1, 16, 8, 8)])
    cut = net.add("Slice", [parts[1], net.ints(2), net.ints(10), net.ints(1)])
    padded = net.add("Pad", [cut, net.ints(0, 4, 0, 0, 0, 4, 0, 0)])
    picked = net.add("Gather", [parts[2], net.ints(*range(15, -1, -1))], axis=1)
    total = net.add("Sum", [shuffled, padded, picked])
    pooled = net.add("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    up = net.add("ConvTranspose", [pooled, net.weight(16, 8, 2, 2)], strides=[2, 2])
    net.add("Clip", [net.conv(up, 8, 16, 1), net.store(np.float32(0)), net.store(np.float32(6))])
    return net


def attention():
    net = Net("attention", ["B", 6, 16])
    scale, shift = net.store(np.ones(16, np.float32)), net.weight(16)
    normed = net.add("LayerNormalization", ["x", scale, shift], axis=-1)
    heads = []
    for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        part = net.add("Add", [net.add("MatMul", [normed, net.weight(16, 16)]), net.weight(16)])
        part = net.add("Reshape", [part, net.ints(0, 6, 2, 8)])
        heads.append(net.add("Transpose", [part], perm=perm))
    scores = net.add("Softmax", [net.add("MatMul", heads[:2])], axis=-1)
    mixed = net.add("Transpose", [net.add("MatMul", [scores, heads[2]])], perm=[0, 2, 1, 3])
    mixed = net.add("Reshape", [mixed, net.ints(0, 6, 16)])
    x = net.add("Add", ["x", net.add("MatMul", [mixed, net.weight(16, 16)])])
    hidden = net.add("MatMul", [x, net.weight(16, 32)])
    gelu = net.add("Mul", [hidden, net.add("Sigmoid", [hidden])])
    net.add("Add", [x, net.add("MatMul", [gelu, net.weight(32, 16)])])
    return net


def shapes():
    net = Net("shapes", ["N", 16, "H", "W"])
    x = net.conv("x", 16, 16)
    size = net.add("Gather", [net.add("Shape", ["x"]), net.ints(0)], axis=0)
    whole = net.add("Concat", [size, net.ints(-1)], axis=0)
    x = net.add("Resize", [x, "", net.store(np.array([1, 1, .5, .5], np.float32))], mode="nearest")
    x = net.add("ReduceMean", [x], axes=[2, 3], keepdims=1)
    flat = net.add("Reshape", [x, whole])
    near = net.add("Where", [net.add("Greater", [flat, net.store(np.float32(0))]), flat,
                             net.add("Expand", [net.weight(1, 1), net.ints(1, 16)])])
    column = net.add("Unsqueeze", [near, net.ints(2)])
    row = net.add("Squeeze", [net.add("Tile", [column, net.ints(1, 1, 2)])])
    net.add("TopK", [net.add("Gemm", [near, net.weight(16, 8)]), net.ints(3)], n_out=2)
    net.add("CumSum", [row, net.store(np.int64(1))])
    return net


def bodies():
    net = Net("bodies", [4, 16])
    x = net.add("MatMul", ["x", net.weight(16, 16)])
    one = helper.make_graph([helper.make_node("Relu", [x], ["yes"])], "one", [],
                            [helper.make_tensor_value_info("yes", 1, None)])
    other = helper.make_graph([helper.make_node("MatMul", [x, net.weight(16, 16)], ["no"])], "other", [],
                              [helper.make_tensor_value_info("no", 1, None)])
    x = net.add("If", [net.store(np.array(True))], then_branch=one, else_branch=other)
    step = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["s", x], ["t"])], "step",
        [helper.make_tensor_value_info("k", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("s", 1, [4, 16])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("t", 1, [4, 16])])
    x = net.add("Loop", [net.store(np.int64(3)), net.store(np.array(True)), x], body=step)
    x = net.add("Mystery", [x], domain="my.own")
    x = net.add("LSTM", [net.add("Unsqueeze", [x, net.ints(0)]), net.weight(1, 32, 16), net.weight(1, 32, 8)],
                n_out=3, hidden_size=8)[0]
    net.add("MatMul", [net.add("Twice", [x], domain="local"), net.weight(8, 8)])
    return net


def twice():
    return helper.make_function("local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                [helper.make_opsetid("", 17)])


def types():
    net = Net("types", [2, 16], TensorProto.FLOAT16)
    x = net.add("MatMul", ["x", net.weight(16, 32, dtype=np.float16)])
    x = net.add("Cast", [x], to=TensorProto.FLOAT)
    q = net.store(rng.integers(-127, 128, (32, 16)).astype(np.int8))
    scale, zero = net.store(np.full(16, .02, np.float32)), net.store(rng.integers(-80, 81, 16).astype(np.int8))
    x = net.add("MatMul", [x, net.add("DequantizeLinear", [q, scale, zero], axis=1)])
    x = net.add("QuantizeLinear", [x, net.store(np.float32(.1)), net.store(np.int8(0))])
    x = net.add("DequantizeLinear", [x, net.store(np.float32(.1)), net.store(np.int8(0))])
    net.add("ArgMax", [x], axis=1)
    net.add("PRelu", [x, net.weight(16)])
    return net


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for make in (residual, joins, attention, shapes, types):
        make().save(folder)
    bodies().save(folder, functions=[twice()], domains=["my.own", "local"])


main()
