# SPDX-License-Identifier: Apache-2.0
"""Networks with If, Loop and Scan, and recurrent layers, before and after: ONNX Runtime says that a permuted network
computes what it computed, that our plain engine computes the same, and that the weights of bodies and of LSTM, GRU and RNN
hold 2:4 once pruned.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
RNG = np.random.default_rng(5)


def tensor(name, *shape):
    return numpy_helper.from_array((RNG.standard_normal(shape) * 0.3).astype(np.float32), name)


def info(name, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def node(op, inputs, outputs, name="", **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name, **attrs)


def graph(nodes, inputs, outputs, stored=(), name="g"):
    return helper.make_graph(nodes, name, inputs, outputs, list(stored))


def a_choice():
    """Two branches with weights of their own, one of them a Constant node; what they give is read by a layer."""
    then = graph([node("MatMul", "x t1", "a", "m1"), node("Relu", "a", "b"),
                  node("Constant", "", "t2", value=tensor("", 32, 32)), node("MatMul", "b t2", "c", "m2")],
                 [], [info("c")], [tensor("t1", 16, 32)])
    other = graph([node("MatMul", "x e1", "d", "m1")], [], [info("d")], [tensor("e1", 16, 32)])
    return graph([node("If", "which", "z", "If_0", then_branch=then, else_branch=other), node("MatMul", "z w", "y", "last")],
                 [info("x", [2, 16]), info("which", [], TensorProto.BOOL)], [info("y", [2, 16])], [tensor("w", 32, 16)])


def a_loop():
    """A recurrence that begins with zeros that the network makes; one result per iteration."""
    body = graph([node("MatMul", "h r", "q", "again"), node("Add", "q p", "s"), node("Tanh", "s", "t"),
                  node("Identity", "go", "on"), node("Identity", "t", "u")],
                 [info("i", [], TensorProto.INT64), info("go", [], TensorProto.BOOL), info("h")],
                 [info("on", [], TensorProto.BOOL), info("t"), info("u")], [tensor("r", 32, 32)])
    return graph([node("MatMul", "x w", "p", "in"), node("Shape", "p", "sizes"), node("ConstantOfShape", "sizes", "h0"),
                  helper.make_node("Loop", ["n", "", "h0"], ["z", "zs"], name="loop", body=body),
                  node("MatMul", "z v", "y", "out"), node("MatMul", "zs v", "ys", "outs")],
                 [info("x", ["N", 16]), info("n", [], TensorProto.INT64)], [info("y"), info("ys")],
                 [tensor("w", 16, 32), tensor("v", 32, 16)])


def a_scan():
    body = graph([node("MatMul", "h r", "q", "again"), node("Add", "q p", "a"), node("Tanh", "a", "t"),
                  node("Identity", "t", "u")],
                 [info("h"), info("p")], [info("t"), info("u")], [tensor("r", 32, 32)])
    return graph([node("MatMul", "x w", "s", "in"),
                  node("Scan", "h0 s", "z zs", "scan", body=body, num_scan_inputs=1, scan_input_axes=[1],
                       scan_input_directions=[1], scan_output_axes=[1]), node("MatMul", "zs v", "y", "out")],
                 [info("x", [3, 5, 16])], [info("y")], [tensor("w", 16, 32), tensor("v", 32, 16), tensor("h0", 3, 32)])


def a_function():
    """A local function whose If holds weights, called twice: one tensor for both calls."""
    then = graph([node("Constant", "", "k", value=tensor("", 16, 16)), node("MatMul", "v k", "r", "m")], [], [info("r")])
    other = graph([node("Neg", "v", "q")], [], [info("q")])
    made = helper.make_function("local", "F", ["c", "v"], ["o"], [node("If", "c", "o", "if", then_branch=then, else_branch=other)],
                                [helper.make_opsetid("", 17)])
    return graph([node("MatMul", "x w", "a", "in"), node("F", "which a", "b", "one", domain="local"),
                  node("F", "which b", "c", "two", domain="local"), node("MatMul", "c u", "y", "out")],
                 [info("x", [2, 16]), info("which", [], TensorProto.BOOL)], [info("y")],
                 [tensor("w", 16, 16), tensor("u", 16, 16)]), [made]


def recurrent(op, direction="forward", **more):
    """The layer between two others, all of its results read by one."""
    gates, n, size = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 2 if direction == "bidirectional" else 1, 32
    stored = [tensor("W", n, gates * size, 16), tensor("R", n, gates * size, size), tensor("B", n, 2 * gates * size)]
    inputs = ["x", "W", "R", "B"]
    if op == "LSTM" and more.pop("peepholes", False):
        stored.append(tensor("P", n, 3 * size))
        inputs += ["", "", "", "P"]
    cut = numpy_helper.from_array(np.array([5, 2, n * size]), "cut")
    return graph([node("MatMul", "u w0", "x", "pre"),
                  helper.make_node(op, inputs, ["Y"], name="rec", hidden_size=size, direction=direction, **more),
                  node("Transpose", "Y", "t", perm=[0, 2, 1, 3]), node("Reshape", "t cut", "z"), node("MatMul", "z w9", "y", "post")],
                 [info("u", [5, 2, 16])], [info("y", [5, 2, 16])], [*stored, cut, tensor("w0", 16, 16), tensor("w9", n * size, 16)])


# name: the graph, tensors that are pruned, groups of channels that move
NETWORKS = {
    "if": (a_choice, 4, 2),
    "loop": (a_loop, 3, 1),  # two of its layers share a tensor
    "scan": (a_scan, 3, 1),
    "function": (a_function, 3, 1),
    "lstm": (lambda: recurrent("LSTM"), 4, 2),
    "lstm-peepholes": (lambda: recurrent("LSTM", "bidirectional", peepholes=True), 4, 2),
    "lstm-input-forget": (lambda: recurrent("LSTM", "reverse", input_forget=1), 4, 2),
    "gru": (lambda: recurrent("GRU"), 4, 2),
    "gru-linear-before-reset": (lambda: recurrent("GRU", "bidirectional", linear_before_reset=1), 4, 2),
    "rnn": (lambda: recurrent("RNN"), 4, 2),
    "rnn-bidirectional": (lambda: recurrent("RNN", "bidirectional"), 4, 2),
}


@pytest.fixture(params=NETWORKS)
def network(request, tmp_path):
    make, tensors, groups = NETWORKS[request.param]
    made = make()
    body, functions = made if isinstance(made, tuple) else (made, [])
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid("local", 1)] if functions else [])
    onnx.save(helper.make_model(body, opset_imports=opsets, functions=functions, ir_version=8), tmp_path / "in.onnx")
    return tmp_path / "in.onnx", tensors, groups


def lacuna(*words):
    done = subprocess.run([str(LACUNA), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def feeds(path):
    """Inputs of the network, for both branches and several numbers of iterations."""
    rng = np.random.default_rng(1)
    for iterations in (1, 2, 4):
        fed = {}
        for value in onnx.load(path).graph.input:
            kind, shape = value.type.tensor_type.elem_type, [d.dim_value or 2 for d in value.type.tensor_type.shape.dim]
            fed[value.name] = (np.array(iterations > 1) if kind == TensorProto.BOOL else np.array(iterations) if kind == TensorProto.INT64
                               else rng.standard_normal(shape).astype(np.float32))
        yield fed


def run(path, fed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {o.name: x for o, x in zip(session.get_outputs(), session.run(None, fed), strict=True)}


def assert_close(got, want):
    assert got.keys() == want.keys()
    for name, x in want.items():
        assert got[name].shape == x.shape
        assert np.abs(got[name] - x).max(initial=0) <= 2e-5 * max(1, np.abs(x).max(initial=0))


def weights(path):
    """All float tensors of two axes and more, wherever they are.""" 
    found = []

    def walk(message):
        if isinstance(message, onnx.TensorProto):
            array = numpy_helper.to_array(message)
            found.extend([array] if array.dtype == np.float32 and array.ndim >= 2 else [])
            return
        for field, value in message.ListFields():
            for item in value if field.is_repeated else [value]:
                if field.message_type:
                    walk(item)

    walk(onnx.load(path))
    return found


def test_a_permuted_network_computes_the_same(network, tmp_path):
    path, _, groups = network
    out = tmp_path / "out.onnx"
    said = lacuna("permute", path, "-o", out, "--recurrent")
    assert f"{groups} of " in said or f" {groups} group" in said, said
    moved = sum(not np.array_equal(a, b) for a, b in zip(weights(path), weights(out), strict=True))
    assert moved > groups
    for fed in feeds(path):
        assert_close(run(out, fed), run(path, fed))


def test_the_plain_engine_computes_what_onnxruntime_does(network, tmp_path):
    path = network[0]
    for fed in feeds(path):
        words = []
        for name, value in fed.items():
            np.save(tmp_path / f"{name}.npy", value)
            words += ["--input", f"{name}={tmp_path / name}.npy"]
        lacuna("infer", path, "--engine", "plain", "--force", *words, "-o", tmp_path / "found")
        want = run(path, fed)
        assert_close({name: np.load(tmp_path / "found" / f"{name}.npy") for name in want}, want)


def test_weights_of_bodies_and_cells_hold_the_pattern(network, tmp_path):
    path, tensors, _ = network
    out = tmp_path / "out.onnx"
    lacuna("prune", "--no-calibration", path, "-o", out, "--recurrent")
    said = lacuna("check", out, "--recurrent")
    lacuna("check", out, "--against", path, "--recurrent")
    half = [w for w in weights(out) if (w == 0).mean() == 0.5]
    assert len(half) == tensors, said
    for fed in feeds(path):
        assert all(np.isfinite(x).all() for x in run(out, fed).values())


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_recurrent_weights_are_pruned_only_on_request(op, tmp_path):
    path, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(helper.make_model(recurrent(op), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    said = lacuna("prune", "--no-calibration", path, "-o", out)
    assert said.count("recurrent: only with the option recurrent") == 2, said
    assert "2/4 layers" in said, said
    assert [w.ndim for w in weights(out) if (w == 0).mean() == 0.5] == [2, 2]
    assert "2/4 layers" in lacuna("check", out, "--against", path)
    assert "4/4 layers" in lacuna("prune", "--no-calibration", path, "-o", out, "--recurrent", "--force")
    assert "4/4 layers" in lacuna("check", out, "--recurrent")


def test_layers_whose_weights_a_body_computes_are_in_the_report(tmp_path):
    """They are rows of the report, after the layers that can be pruned, and no plan knows them."""
    then = graph([node("Mul", "t1 t2", "t"), node("MatMul", "x t", "c", "m1")], [], [info("c")], [tensor("t1", 16, 32), tensor("t2", 16, 32)])
    other = graph([node("MatMul", "x e1", "d", "m2")], [], [info("d")], [tensor("e1", 16, 32)])
    whole = graph([node("If", "which", "z", "If_0", then_branch=then, else_branch=other), node("MatMul", "z w", "y", "last")],
                  [info("x", [2, 16]), info("which", [], TensorProto.BOOL)], [info("y", [2, 16])], [tensor("w", 32, 16)])
    path, out, report = tmp_path / "in.onnx", tmp_path / "out.onnx", tmp_path / "report.json"
    onnx.save(helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    lacuna("prune", "--no-calibration", path, "-o", out, "--json", report)
    found = json.loads(report.read_text())
    names = [layer["name"] for layer in found["layers"]]
    assert "last" in names and len(names) > 1
    assert [layer["name"] for layer in found["prediction"]["layers"]] == names
    computed = [layer["reason"] for layer in found["prediction"]["layers"] if layer["name"].endswith("m1")]
    assert computed == [None]
