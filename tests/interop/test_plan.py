# SPDX-License-Identifier: Apache-2.0
"""inspect --plan: what is said of networks with open sizes and with fixed ones, against what infer then does with them."""

import json
import subprocess

import numpy
import onnx
import pytest
from built import build_dir
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
W = numpy_helper.from_array(numpy.full((4, 3, 3, 3), 0.1, numpy.float32), "w")
FEW = numpy_helper.from_array(numpy.array([1, -1], numpy.int64), "few")
CONV = helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1] * 4)
NETWORKS = {
    "fast": [CONV, helper.make_node("Relu", ["c"], ["y"], "relu")],
    "shapes from shapes": [CONV, helper.make_node("Shape", ["c"], ["s"], "shape"),
                           helper.make_node("ConstantOfShape", ["s"], ["z"], "zeros"),
                           helper.make_node("Add", ["c", "z"], ["y"], "add")],
    "shapes from data": [CONV, helper.make_node("NonZero", ["c"], ["n"], "nonzero"),
                         helper.make_node("Cast", ["n"], ["y"], "cast", to=FLOAT)],
    "no fast kernel": [CONV, helper.make_node("Reshape", ["c", "few"], ["r"], "rows"),
                       helper.make_node("Hardmax", ["r"], ["y"], "hardmax")],
    "unknown": [CONV, helper.make_node("Odd", ["c"], ["y"], "odd", domain="com.acme")],
}


def save(nodes, path):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, ["n", 3, "h", "w"])],
                              [helper.make_tensor_value_info("y", FLOAT, None)], [W, FEW])
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)


def ask(path, engine, *options):
    done = subprocess.run([build_dir() / "lacuna", "inspect", "-q", path, "--plan", "--engine", engine, "--json", "-", *options],
                          capture_output=True, text=True, check=True)
    plan = json.loads(done.stdout)["plan"]
    return plan, {node["name"]: node for node in plan["nodes"]}


@pytest.mark.parametrize("engine", ["auto", "cpu"])
@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_said_is_what_is_done(name, engine, tmp_path):
    path = tmp_path / "net.onnx"
    save(NETWORKS[name], path)
    numpy.save(tmp_path / "x.npy", numpy.linspace(-1, 1, 2 * 3 * 8 * 8, dtype=numpy.float32).reshape(2, 3, 8, 8))
    run = subprocess.run([build_dir() / "lacuna", "infer", path, "--engine", engine, "--input", f"x={tmp_path}/x.npy",
                          "-o", tmp_path / "out"], capture_output=True, text=True, check=False)
    fixed, nodes = ask(path, engine, "--input-shape", "x=2x3x8x8")
    assert not fixed["assumed_sizes"] and fixed["possible"] == (run.returncode == 0), run.stderr
    assert fixed["possible"] or fixed["reason"] in run.stderr
    opened, of_open = ask(path, engine)
    assert opened["assumed_sizes"] and opened["possible"] >= fixed["possible"]
    assert nodes["conv"]["runner"] == of_open["conv"]["runner"] == "fast"
    if name == "unknown":
        assert not opened["possible"] and "com.acme.Odd" in opened["reason"]
        assert nodes["odd"]["runner"] == of_open["odd"]["runner"] == "none"
    if name == "shapes from data":
        assert nodes["nonzero"]["runner"] == ("exact" if engine == "auto" else "none")
        assert f"{sum(node['runner'] == 'exact' for node in nodes.values())} of 3 nodes run" in run.stderr or engine == "cpu"
    if name == "no fast kernel":
        assert nodes["hardmax"]["runner"] == "operator" and nodes["hardmax"]["reason"]
