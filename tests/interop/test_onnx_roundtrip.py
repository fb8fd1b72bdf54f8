# SPDX-License-Identifier: Apache-2.0
"""Load and save without changes, judged by the reference implementation of ONNX: equal messages, equal data.

Networks of tests/fixtures/zoo get their weights from tests/tools/fill_model first; those in ../shared/models are used
where they are. Models made here cover what those do not: every element type, functions, bodies, external data.
"""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
ZOO = sorted((TOP / "tests/fixtures/zoo").glob("*.onnx"))
SHARED = sorted(TOP.glob("../shared/models/*.onnx"))


def save_again(tool, source, target):
    done = subprocess.run([tool("roundtrip_main"), source, target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_equal(before, after):
    """Equal messages (external data by reference), then equal tensors."""
    assert onnx.load(before, load_external_data=False) == onnx.load(after, load_external_data=False)
    for old, new in zip(onnx.load(before).graph.initializer, onnx.load(after).graph.initializer):
        assert old.SerializeToString() == new.SerializeToString(), old.name


@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.stem)
def test_shared_model_is_unchanged(tool, tmp_path, path):
    save_again(tool, path, tmp_path / "out.onnx")
    assert_equal(path, tmp_path / "out.onnx")


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_zoo_model_is_refused_empty_and_unchanged_filled(tool, tmp_path, path):
    done = subprocess.run([tool("roundtrip_main"), path, tmp_path / "no.onnx"], capture_output=True, text=True)
    assert done.returncode == 1 and "0 bytes of data" in done.stderr
    assert not (tmp_path / "no.onnx").exists()
    filled = tmp_path / "filled.onnx"
    subprocess.run([tool("fill_model"), path, filled, "1"], check=True)
    save_again(tool, filled, tmp_path / "out.onnx")
    assert onnx.load(filled) == onnx.load(tmp_path / "out.onnx")
    filled.unlink()
    (tmp_path / "out.onnx").unlink()


def small_model(nodes=None, initializers=(), **more):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph(nodes or [helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y],
                              initializer=list(initializers))
    more.setdefault("opset_imports", [helper.make_opsetid("", 21)])
    return helper.make_model(graph, ir_version=10, **more)


def check(tool, tmp_path, model):
    onnx.checker.check_model(model)
    onnx.save(model, tmp_path / "in.onnx")
    text = save_again(tool, tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx") == model
    return text


@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
def test_every_element_type_survives(tool, tmp_path, raw):
    numbers = [1, 2, 3, 0]
    tensors = []
    for name, code in TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING") or code >= TensorProto.UINT4:
            continue
        values = np.array(numbers).astype(helper.tensor_dtype_to_np_dtype(code))
        tensors.append(numpy_helper.from_array(values, name) if raw
                       else helper.make_tensor(name, code, [4], values.tolist()))
    tensors.append(helper.make_tensor("text", TensorProto.STRING, [2], [b"a", b"\xff\x00"]))
    tensors.append(helper.make_tensor("nibbles", TensorProto.INT4, [3], [1, -2, 3]))
    tensors.append(helper.make_tensor("empty", TensorProto.FLOAT, [0, 4], []))
    check(tool, tmp_path, small_model(initializers=tensors))


def test_functions_bodies_and_metadata_survive(tool, tmp_path):
    scale = helper.make_function(
        "local", "Scale", ["v"], ["r"],
        [helper.make_node("Constant", [], ["w"], value_floats=[2.0]), helper.make_node("Mul", ["v", "w"], ["r"])],
        [helper.make_opsetid("", 21)])
    then = helper.make_graph([helper.make_node("Neg", ["t"], ["q"])], "then", [],
                             [helper.make_tensor_value_info("q", TensorProto.FLOAT, ["N", 4])])
    other = helper.make_graph([helper.make_node("Identity", ["t"], ["p"])], "else", [],
                              [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", 4])])
    nodes = [helper.make_node("Scale", ["x"], ["s"], domain="local"),
             helper.make_node("Scale", ["s"], ["t"], domain="local"),
             helper.make_node("Constant", [], ["c"], value=helper.make_tensor("", TensorProto.BOOL, [], [True])),
             helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    model = small_model(nodes, functions=[scale],
                        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("local", 1)])
    helper.set_model_props(model, {"author": "somebody", "empty": ""})
    model.graph.node[0].metadata_props.add(key="k", value="v")
    model.graph.node[0].doc_string = "\u00e9\U0001f600"
    text = check(tool, tmp_path, model)
    assert text.startswith("5 nodes") and "2 stored tensors" in text  # the If, and one in each of its bodies


def external_model(folder):
    rng = np.random.default_rng(0)
    tensors = [numpy_helper.from_array(rng.standard_normal(n).astype(np.float32), f"w{n}") for n in (1000, 3, 5000)]
    path = folder / "in.onnx"
    onnx.save(small_model(initializers=tensors), path, save_as_external_data=True, location="weights.bin",
              size_threshold=0, all_tensors_to_one_file=True)
    return path


def test_external_data_keeps_names_in_another_folder(tool, tmp_path):
    path = external_model(tmp_path)
    (tmp_path / "other").mkdir()
    save_again(tool, path, tmp_path / "other/out.onnx")
    assert_equal(path, tmp_path / "other/out.onnx")
    assert (tmp_path / "other/weights.bin").read_bytes() == (tmp_path / "weights.bin").read_bytes()


def test_external_data_next_to_its_model_gets_a_new_name(tool, tmp_path):
    path = external_model(tmp_path)
    save_again(tool, path, tmp_path / "out.onnx")
    assert onnx.load(path) == onnx.load(tmp_path / "out.onnx")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["in.onnx", "out.data", "out.onnx", "weights.bin"]
