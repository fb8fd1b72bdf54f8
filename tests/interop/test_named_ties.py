# SPDX-License-Identifier: Apache-2.0
"""Tensors that a file ties together by their names alone, outside of all nodes, stay in their order, and the cause says so."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
RNG = np.random.default_rng(7)


def network():
    """conv0 -> Relu "b" -> conv1 -> Relu "d" -> conv2: two groups of 32 channels are free."""
    def weight(name, k, c):
        return numpy_helper.from_array((RNG.standard_normal((k, c, 1, 1)) * 0.1).astype(np.float32), name)

    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], name="conv0"), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w1"], ["c"], name="conv1"), helper.make_node("Relu", ["c"], ["d"]),
             helper.make_node("Conv", ["d", "w2"], ["y"], name="conv2")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 4, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 4, 4])],
                              [weight("w0", 32, 16), weight("w1", 32, 32), weight("w2", 16, 32)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def causes(model, tmp_path):
    """Of the groups that are frozen, without those of the network's own input and output."""
    onnx.save(model, tmp_path / "m.onnx")
    done = subprocess.run([LACUNA, "inspect", "-q", tmp_path / "m.onnx", "--json", "-"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = [group["cause"] for group in json.loads(done.stdout)["groups"] if group["frozen"]]
    return sorted({cause for cause in found if "of the network" not in cause})


def annotate(model, tensor, scales):
    model.graph.initializer.append(numpy_helper.from_array(np.ones(scales, np.float32), "scales"))
    annotation = model.graph.quantization_annotation.add(tensor_name=tensor)
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scales")


def test_a_network_without_names_is_free(tmp_path):
    assert causes(network(), tmp_path) == []


def test_a_value_with_a_scale_for_each_channel_stays_in_place(tmp_path):
    model = network()
    annotate(model, "b", 32)
    assert causes(model, tmp_path) == ["b is named by the file's quantization_annotation, which no node follows"]


def test_a_weight_with_a_scale_for_each_channel_stays_in_place(tmp_path):
    model = network()
    annotate(model, "w2", 32)
    assert causes(model, tmp_path) == ["w2 is named by the file's quantization_annotation, which no node follows"]


def test_one_scale_for_a_whole_value_ties_nothing(tmp_path):
    model = network()
    annotate(model, "b", 1)
    assert causes(model, tmp_path) == []


def test_a_weight_that_a_training_graph_reads_stays_in_place(tmp_path):
    model = network()
    info = model.training_info.add()
    info.algorithm.name = "algorithm"
    info.algorithm.node.append(helper.make_node("Identity", ["w2"], ["next"]))
    info.algorithm.output.append(helper.make_tensor_value_info("next", TensorProto.FLOAT, [16, 32, 1, 1]))
    assert causes(model, tmp_path) == ["w2 is named by the file's training_info, which no node follows"]


def test_a_weight_that_an_initialization_is_bound_to_stays_in_place(tmp_path):
    model = network()
    info = model.training_info.add()
    info.initialization.name = "first"
    info.initialization.node.append(helper.make_node("RandomNormal", [], ["drawn"], shape=[32, 16, 1, 1]))
    info.initialization.output.append(helper.make_tensor_value_info("drawn", TensorProto.FLOAT, [32, 16, 1, 1]))
    info.initialization_binding.add(key="w0", value="drawn")
    assert causes(model, tmp_path) == ["w0 is named by the file's training_info, which no node follows"]
