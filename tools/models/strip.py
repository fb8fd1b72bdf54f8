#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: onnx numpy
"""Takes the bulky numbers out of an ONNX model and leaves its structure.

A float tensor with more than 64 elements loses its data and keeps name, dims and type; its doc_string
becomes the rule by which fill.py and fill_model.c make new data:

    fill:weight FAN_IN   weight of a Conv, ConvTranspose, Gemm or MatMul
    fill:positive        scale or variance: around 1, never near 0
    fill:small           bias, mean: around 0
    fill:int8            int8 or uint8 weight before a DequantizeLinear

The rule is decided by the node that reads the tensor, looked for through nodes that only move or cast.

    strip.py IN.onnx OUT.onnx [--keep-metadata N]     N: the first N nodes keep their metadata
"""
import argparse
import math
import re

import onnx
from onnx import TensorProto, shape_inference

KEEP_ELEMENTS = 64
FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
BYTES = {TensorProto.INT8, TensorProto.UINT8}
MOVES = {"Identity", "Cast", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "DequantizeLinear", "QuantizeLinear"}
DATA_FIELDS = ["raw_data", "float_data", "double_data", "int32_data", "int64_data"]


def subgraphs(graph):
    """graph and every graph inside it."""
    yield graph
    for node in graph.node:
        for a in node.attribute:
            for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                yield from subgraphs(g)


def stored_tensors(graph):
    """(value name, tensor) of every initializer and Constant."""
    for t in graph.initializer:
        yield t.name, t
    for node in graph.node:
        if node.op_type == "Constant":
            for a in node.attribute:
                if a.HasField("t"):
                    yield node.output[0], a.t


def attribute(node, name, default):
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def rule_at(node, slot, dims):
    """The rule if node's input number slot, of shape dims, is read there; None if node says nothing."""
    op = node.op_type
    if op == "Conv" and slot == 1:
        return f"fill:weight {math.prod(dims[1:])}"
    if op == "ConvTranspose" and slot == 1:
        return f"fill:weight {dims[0] * math.prod(dims[2:])}"
    if op == "Gemm" and slot < 2:
        transposed = attribute(node, "transB" if slot else "transA", 0)
        return f"fill:weight {dims[1] if bool(slot) == bool(transposed) else dims[0]}"
    if op == "MatMul" and slot < 2:
        return f"fill:weight {dims[-1] if slot == 0 or len(dims) == 1 else dims[-2]}"
    if op == "BatchNormalization":
        return "fill:positive" if slot in (1, 4) else "fill:small"
    if op in ("Mul", "Div", "Sqrt", "Pow", "InstanceNormalization", "LayerNormalization") and slot < 2:
        return "fill:positive"
    return "fill:small" if op in ("Conv", "ConvTranspose", "Gemm", "Add", "Sub") else None


def find_rule(name, dims, readers, shapes):
    for node, slot in readers.get(name, []):
        if node.op_type in MOVES and slot == 0:
            moved = shapes.get(node.output[0], dims)
            rule = find_rule(node.output[0], moved, readers, shapes)
        else:
            rule = rule_at(node, slot, dims)
        if rule:
            return rule
    return None


def known_shapes(graph):
    dims = {}
    for v in graph.value_info:
        shape = v.type.tensor_type.shape.dim
        if shape and all(d.HasField("dim_value") for d in shape):
            dims[v.name] = [d.dim_value for d in shape]
    return dims


def strip_graph(graph, shapes):
    readers = {}
    for node in graph.node:
        for slot, value in enumerate(node.input):
            readers.setdefault(value, []).append((node, slot))
    for name, t in stored_tensors(graph):
        dims = list(t.dims)
        if math.prod(dims) <= KEEP_ELEMENTS:
            continue
        if t.data_type in FLOATS:
            used = [n.op_type for n, s in readers.get(name, []) if "Quantize" in n.op_type and s == 1]
            if used:  # a quantization scale stays: made-up steps would saturate everything
                continue
            rule = find_rule(name, dims, readers, shapes)
            if not rule:
                rule = f"fill:weight {math.prod(dims[1:])}" if len(dims) > 1 else "fill:small"
                print(f"  {name} {dims}: no reader tells, {rule}")
        elif t.data_type in BYTES and len(dims) > 1:
            rule = "fill:int8"
        else:
            continue
        for field in DATA_FIELDS + ["external_data", "data_location", "segment"]:
            t.ClearField(field)
        t.doc_string = rule


def strip(model, keep_metadata=0):
    """model, stripped in place; metadata of all but the first keep_metadata nodes goes as well."""
    try:
        inferred = shape_inference.infer_shapes(model)
        shapes = known_shapes(inferred.graph)
    except Exception:  # larger than protobuf allows
        shapes = known_shapes(model.graph)
    for owner in [model.graph] + list(model.functions):
        for i, node in enumerate(owner.node):
            node.ClearField("doc_string")
            if i >= keep_metadata:
                node.ClearField("metadata_props")
            for p in node.metadata_props:
                p.value = re.sub(r'"/[^"]*/(site-packages|dist-packages)/', r'"/usr/lib/python3/\1/', p.value)
                p.value = re.sub(r'"/(?!usr/lib/python3)[^"]*/', '"', p.value)
    for graph in subgraphs(model.graph):
        graph.ClearField("doc_string")
        for p in graph.metadata_props:
            p.value = p.value[:200]
        if not keep_metadata:
            graph.ClearField("metadata_props")
        for v in list(graph.value_info) + list(graph.input) + list(graph.output):
            v.ClearField("doc_string")
            v.ClearField("metadata_props")
        for t in graph.initializer:
            t.ClearField("metadata_props")
        strip_graph(graph, shapes)
    return model


def save_stripped(model, path, keep_metadata=0):
    onnx.save(strip(model, keep_metadata), path)
    print(f"{path}: {len(model.graph.node)} nodes, opset {model.opset_import[0].version}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--keep-metadata", type=int, default=0, metavar="N")
    args = parser.parse_args()
    save_stripped(onnx.load(args.input), args.output, args.keep_metadata)
