#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""accuracy_bert.py MODEL TOKENS: a small network of BERT's shape with random heavy-tailed weights, and inputs for it (accuracy.py).

Runs in a Python of its own that has onnx and numpy. Weights have Student's t distribution of three degrees of freedom, their rows'
and columns' scales are spread over a decade: some channels matter far more than others, as in trained networks. Tokens follow
Zipf's law."""
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HIDDEN, HEADS, INNER, VOCABULARY, TOKENS, SAMPLES = 4, 256, 4, 1024, 2000, 64, 512


class Builder:
    """Nodes and stored tensors, one after the other."""

    def __init__(self):
        self.rng, self.nodes, self.stored = numpy.random.default_rng(0), [], []

    def store(self, name, array):
        self.stored.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def heavy(self, rows, columns):
        drawn = self.rng.standard_t(3, (rows, columns)) * 10 ** self.rng.uniform(-0.5, 0.5, (rows, 1))
        drawn = drawn * 10 ** self.rng.uniform(-0.25, 0.25, (1, columns))
        return (drawn / numpy.sqrt((drawn ** 2).mean() * rows)).astype(numpy.float32)

    def dense(self, x, name, rows, columns):
        weight = self.store(f"{name}.weight", self.heavy(rows, columns))
        bias = self.store(f"{name}.bias", (0.1 * self.rng.standard_normal(columns)).astype(numpy.float32))
        return self.add("Add", [self.add("MatMul", [x, weight], f"{name}.product"), bias], name)

    def norm(self, x, name):
        scale = self.store(f"{name}.weight", self.rng.uniform(0.5, 1.5, HIDDEN).astype(numpy.float32))
        bias = self.store(f"{name}.bias", (0.1 * self.rng.standard_normal(HIDDEN)).astype(numpy.float32))
        return self.add("LayerNormalization", [x, scale, bias], name, axis=-1)

    def heads(self, x, name, order):
        cut = self.add("Reshape", [x, "heads"], f"{name}.cut")
        return self.add("Transpose", [cut], f"{name}.heads", perm=order)

    def attention(self, x, name):
        query = self.heads(self.dense(x, f"{name}.query", HIDDEN, HIDDEN), f"{name}.query", [0, 2, 1, 3])
        key = self.heads(self.dense(x, f"{name}.key", HIDDEN, HIDDEN), f"{name}.key", [0, 2, 3, 1])
        value = self.heads(self.dense(x, f"{name}.value", HIDDEN, HIDDEN), f"{name}.value", [0, 2, 1, 3])
        scores = self.add("Mul", [self.add("MatMul", [query, key], f"{name}.scores"), "scale"], f"{name}.scaled")
        mixed = self.add("MatMul", [self.add("Softmax", [scores], f"{name}.softmax", axis=-1), value], f"{name}.mixed")
        joined = self.add("Transpose", [mixed], f"{name}.transposed", perm=[0, 2, 1, 3])
        return self.dense(self.add("Reshape", [joined, "joined"], f"{name}.joined"), f"{name}.output", HIDDEN, HIDDEN)

    def gelu(self, x, name):
        halves = self.add("Erf", [self.add("Mul", [x, "root_half"], f"{name}.by_root")], f"{name}.erf")
        return self.add("Mul", [self.add("Mul", [x, "half"], f"{name}.half"),
                                self.add("Add", [halves, "one"], f"{name}.plus_one")], name)


def build():
    b = Builder()
    b.store("heads", numpy.array([0, TOKENS, HEADS, HIDDEN // HEADS], numpy.int64))
    b.store("joined", numpy.array([0, TOKENS, HIDDEN], numpy.int64))
    for name, value in (("scale", (HIDDEN // HEADS) ** -0.5), ("root_half", 0.5 ** 0.5), ("half", 0.5), ("one", 1)):
        b.store(name, numpy.array(value, numpy.float32))
    b.store("words", (b.rng.standard_t(3, (VOCABULARY, HIDDEN)) * 0.5).astype(numpy.float32))
    b.store("places", (0.2 * b.rng.standard_normal((TOKENS, HIDDEN))).astype(numpy.float32))
    x = b.norm(b.add("Add", [b.add("Gather", ["words", "tokens"], "embedded"), "places"], "placed"), "embedding.norm")
    for k in range(LAYERS):
        name = f"layer{k}"
        x = b.norm(b.add("Add", [x, b.attention(x, f"{name}.attention")], f"{name}.sum1"), f"{name}.norm1")
        inner = b.gelu(b.dense(x, f"{name}.inner", HIDDEN, INNER), f"{name}.gelu")
        x = b.norm(b.add("Add", [x, b.dense(inner, f"{name}.outer", INNER, HIDDEN)], f"{name}.sum2"), f"{name}.norm2")
    b.add("Identity", [x], "hidden")
    graph = helper.make_graph(
        b.nodes, "bert_shaped", [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", TOKENS])],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["batch", TOKENS, HIDDEN])], b.stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    model, tokens = sys.argv[1:]
    found = build()
    onnx.checker.check_model(found, full_check=True)
    onnx.save(found, model)
    drawn = numpy.random.default_rng(1).zipf(1.3, (SAMPLES, TOKENS))
    numpy.save(tokens, (drawn % VOCABULARY).astype(numpy.int64))


if __name__ == "__main__":
    main()
