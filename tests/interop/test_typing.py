# SPDX-License-Identifier: Apache-2.0
"""A network that breaks ONNX's typing is refused by every verb that reads it, or with --lenient frozen where it does."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"


def network(path, attribute=None, weight=None):
    """Four convolutions in a row; `second` gets what is wrong."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((16, 16, 3, 3)).astype(np.float32), f"w{n}") for n in range(4)]
    if weight:
        weights[1].data_type = weight
    names = ["first", "second", "third", "fourth"]
    nodes = [helper.make_node("Conv", [f"h{n}", f"w{n}"], [f"h{n + 1}"], name=name, pads=[1] * 4)
             for n, name in enumerate(names)]
    if attribute:
        nodes[1].attribute.append(attribute)
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("h0", TensorProto.FLOAT, [1, 16, 8, 8])],
                              [helper.make_tensor_value_info("h4", TensorProto.FLOAT, [1, 16, 8, 8])], weights,
                              value_info=[helper.make_tensor_value_info(f"h{n}", TensorProto.FLOAT, [1, 16, 8, 8])
                                          for n in (1, 2, 3)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


CASES = {
    "text": (dict(attribute=helper.make_attribute("group", "2")), "attribute 'group' is a text, wanted an integer"),
    "float": (dict(attribute=helper.make_attribute("group", 1.0)), "attribute 'group' is a float, wanted an integer"),
    "ints": (dict(attribute=helper.make_attribute("auto_pad", [1])),
             "attribute 'auto_pad' is a list of integers, wanted a text"),
    "int32": (dict(weight=TensorProto.INT32), "its weight 'w1' is of type i32, wanted f16, bf16, f32 or f64"),
    "unknown": (dict(weight=99), "its weight 'w1' is of an unknown type, wanted f16, bf16, f32 or f64"),
}


def run(*words):
    return subprocess.run([LACUNA, *words], capture_output=True, text=True)


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_by_name_or_frozen(case, tmp_path):
    how, said = CASES[case]
    model, out = network(tmp_path / "net.onnx", **how), tmp_path / "out.onnx"
    for verb in (["prune", "--no-calibration", "-o", out], ["check"], ["inspect"], ["plot", "-o", tmp_path / "x.svg"], ["pack", "-o", out],
                 ["infer", "-o", tmp_path / "d"], ["bench"]):
        done = run(*verb, "-q", model)
        assert done.returncode == 1 and f"net.onnx: second (Conv): {said}" in done.stderr, (verb, done.stderr)
        assert not out.exists()
    done = run("prune", "--no-calibration", "--lenient", model, "-o", out, "--json", tmp_path / "r.json")
    assert done.returncode == 0 and f"warning: second (Conv): {said}" in done.stderr, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert [layer["name"] for layer in report["layers"]] == ["first", "third", "fourth"]
    assert all(layer["pruned"] for layer in report["layers"])
    assert any(group["cause"] and said in group["cause"] for group in report["groups"])
    assert report["summary"]["groups"] == 1  # between third and fourth


def test_a_sound_network_passes(tmp_path):
    model = network(tmp_path / "net.onnx", attribute=helper.make_attribute("future", "text"))
    done = run("inspect", "-v", model)
    assert done.returncode == 0 and "second (Conv): attribute 'future' is not known" in done.stderr
