# SPDX-License-Identifier: Apache-2.0
"""`lacuna compare --against-ort`: ONNX Runtime, whose library the command opens, computes what ONNX Runtime computes here."""
import json
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from built import ROOT, build_dir

DIGITS = ROOT / "examples/digits/digits.onnx"
LIBRARY = next(iter(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")), None)

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="this package of ONNX Runtime has no library of its own")


def compare(*words):
    return subprocess.run([build_dir() / "lacuna", "compare", "-q", *map(str, words)], capture_output=True, text=True)


def report(*words):
    done = compare(*words, "--against-ort", LIBRARY, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def changed(path, weight):
    """digits.onnx with one element of a weight doubled."""
    model = onnx.load(DIGITS)
    tensor = next(t for t in model.graph.initializer if t.name == weight)
    values = numpy_helper.to_array(tensor).copy()
    values.flat[np.abs(values).argmax()] *= 2
    tensor.CopyFrom(numpy_helper.from_array(values, weight))
    onnx.save(model, path)
    return path


def test_every_value_of_one_network():
    found = report(DIGITS)
    assert found["runtime"] == f"ONNX Runtime {onnxruntime.__version__}"
    assert found["summary"]["compared"] == len(onnx.load(DIGITS).graph.node)
    assert found["summary"]["apart"] == 0
    assert 0 < max(layer["error"] for layer in found["layers"]) < 1e-5  # single precision against double


def test_two_networks_part_where_they_differ(tmp_path):
    other = changed(tmp_path / "other.onnx", "layer2.0.conv1.weight")
    ours = json.loads(compare(DIGITS, other, "--json", "-").stdout)
    theirs = report(DIGITS, other)
    assert theirs["summary"]["first_apart"] == ours["summary"]["first_apart"] == "layer2.0.conv1"
    for one, two in zip(ours["layers"], theirs["layers"], strict=True):
        assert one["name"] == two["name"] and abs(one["error"] - two["error"]) < 1e-4


def test_weights_in_a_file_of_their_own_and_integers(tmp_path):
    weight = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["rows"], name="rows"),
         helper.make_node("Relu", ["rows"], ["y"], name="relu")], "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])], [numpy_helper.from_array(weight, "table")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    np.save(tmp_path / "ids.npy", np.array([7, 0, 3]))
    found = report(tmp_path / "net.onnx", "--input", f"ids={tmp_path / 'ids.npy'}")
    assert found["summary"]["compared"] == 2 and all(layer["error"] == 0 for layer in found["layers"])


def test_refusals_say_whose_they_are(tmp_path):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "half.onnx")
    done = compare(tmp_path / "half.onnx", "--against-ort", LIBRARY)
    assert done.returncode == 1 and "x: " in done.stderr and done.stdout == ""
