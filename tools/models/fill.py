#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: onnx numpy
"""Gives the stripped tensors of a model (strip.py) new random data, by the rule in their doc_string.

    fill.py IN.onnx OUT.onnx SEED

Numbers: Philox, keyed by the seed and the tensor's place in the file, so one tensor's data does not
depend on another's. Weights are heavy-tailed, as trained ones are:

    w = gaussian * exp(0.7 * c) * sqrt(2 / fan_in) / exp(0.49),   c gaussian, one per column (axis 1)

where the last factor brings the variance back to 2 / fan_in. The C tool tests/tools/fill_model.c
follows the same rules with a generator of its own; the bytes differ.
"""
import math
import sys

import numpy as np
import onnx
from onnx import TensorProto

from strip import stored_tensors, subgraphs


def values(rule, dims, rng):
    """float64 array of shape dims."""
    kind, *args = rule.split()
    if kind == "fill:positive":
        return rng.uniform(0.5, 1.5, dims)
    if kind == "fill:small":
        return 0.1 * rng.standard_normal(dims)
    columns = [1] * len(dims)
    if len(dims) > 1:
        columns[1] = dims[1]
    tail = rng.standard_normal(dims) * np.exp(0.7 * rng.standard_normal(columns))
    if kind == "fill:int8":
        return np.clip(np.rint(tail * 24), -127, 127)
    if kind != "fill:weight":
        sys.exit(f"{rule}: not a fill rule")
    return tail * (math.sqrt(2 / int(args[0])) / math.exp(0.49))


def encode(a, data_type):
    if data_type == TensorProto.BFLOAT16:
        bits = a.astype("<f4").view("<u4")
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
    if data_type == TensorProto.UINT8:
        a = a + 128
    return a.astype(onnx.helper.tensor_dtype_to_np_dtype(data_type)).tobytes()


def fill(model, seed):
    """Fills in place; returns how many tensors were filled."""
    count = 0
    bodies = list(subgraphs(model.graph))
    for graph in bodies:
        for _, t in stored_tensors(graph):
            if t.doc_string.startswith("fill:"):
                rng = np.random.Generator(np.random.Philox(key=[seed, count]))
                t.raw_data = encode(values(t.doc_string, list(t.dims), rng), t.data_type)
                t.ClearField("doc_string")
                count += 1
    return count


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    proto = onnx.load(sys.argv[1])
    fill(proto, int(sys.argv[3]))
    onnx.save(proto, sys.argv[2])
