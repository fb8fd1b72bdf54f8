# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's answers without its saturating sums.

On processors without VNNI it adds two products of uint8 and int8 in 16 bits, which saturate, even without graph optimizations.
Products of uint8 and uint8 are exact everywhere. So weights of int8 are moved by 128, as their zero points are.
"""
import onnx
import onnxruntime
from onnx import TensorProto, helper


def types_of_constants(graph):
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            types[node.output[0]] = node.attribute[0].t.data_type
    return types


def moved(name, own):
    """The nodes that add 128 to an int8 value as an uint8 value; the last one's output is that value."""
    middle = helper.make_tensor("", TensorProto.INT32, [], [128])
    return [helper.make_node("Cast", [name], [f"{own}_wide"], to=TensorProto.INT32),
            helper.make_node("Constant", [], [f"{own}_middle"], value=middle),
            helper.make_node("Add", [f"{own}_wide", f"{own}_middle"], [f"{own}_sum"]),
            helper.make_node("Cast", [f"{own}_sum"], [own], to=TensorProto.UINT8)]


def without_saturation(model):
    """The network with MatMulInteger of uint8 alone, the same by definition."""
    types, nodes = types_of_constants(model.graph), []
    for node in model.graph.node:
        if node.op_type == "MatMulInteger" and types.get(node.input[1]) == TensorProto.INT8:
            inputs, own = list(node.input) + [""] * (4 - len(node.input)), f"{node.output[0]}_exact"
            nodes += moved(inputs[1], f"{own}_weight")
            if inputs[3]:
                nodes += moved(inputs[3], f"{own}_zero")
            else:
                zero = helper.make_tensor("", TensorProto.UINT8, [], [128])
                nodes.append(helper.make_node("Constant", [], [f"{own}_zero"], value=zero))
            node = helper.make_node("MatMulInteger", [inputs[0], f"{own}_weight", inputs[2], f"{own}_zero"], list(node.output))
        nodes.append(node)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def exact_session(path):
    """A session of the file, without graph optimizations and saturating sums."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    model = without_saturation(onnx.load(str(path)))
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
