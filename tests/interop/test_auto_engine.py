# SPDX-License-Identifier: Apache-2.0
"""Networks that the fast engine cannot run as a whole, by default, against ONNX Runtime.

A detector's network has known shapes and its end has not; bodies are in the middle; loops make no iteration. Each network runs,
what is before these nodes runs fast, and one line names the first node that does not.
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

TOP = pathlib.Path(__file__).resolve().parents[2]
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def stored(**arrays):
    return [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]


def backbone(rng):
    """Two convolutions: x [1, 3, 32, 32] becomes f [1, 24, 16, 16]."""
    weights = stored(
        w0=(rng.standard_normal((16, 3, 3, 3)) / 5).astype(np.float32),
        w1=(rng.standard_normal((24, 16, 3, 3)) / 12).astype(np.float32),
    )
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], "conv0", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["f"], "conv1", pads=[1] * 4),
    ]
    return nodes, weights


def detector():
    node = helper.make_node
    more = [
        node("Reshape", ["f", "six"], ["g"]),
        node("Split", ["g", "parts"], ["b", "s"], axis=1),
        node("Transpose", ["b"], ["boxes"], perm=[0, 2, 1]),
        node("NonMaxSuppression", ["boxes", "s", "most", "iou"], ["chosen"], "nms"),
        node("Gather", ["chosen", "two"], ["at"], axis=1),
        node("Gather", ["boxes", "at"], ["picked"], axis=1),
        node("Reshape", ["picked", "corners"], ["y"], "end"),
    ]
    return more, stored(
        six=np.array([1, 6, -1]), parts=np.array([4, 2]), most=np.array(20), iou=np.float32(0.5), two=np.array(2),
        corners=np.array([-1, 2, 2]),
    ), ["y", "chosen"]


def choice():
    """An If whose branches have other shapes, before a product of known shape again."""
    then = helper.make_graph([helper.make_node("Relu", ["f"], ["t"])], "then", [], [value("t", FLOAT)])
    other = helper.make_graph([helper.make_node("Neg", ["f"], ["e"])], "else", [], [value("e", FLOAT)])
    return [
        helper.make_node("ReduceSum", ["f"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["is"]),
        helper.make_node("If", ["is"], ["i"], "choice", then_branch=then, else_branch=other),
        helper.make_node("Conv", ["i", "w2"], ["y"], "back"),
    ], stored(zero=np.float32(0), w2=np.ones((8, 24, 3, 3), np.float32) / 50), ["y"]


def loop(iterations):
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Mul", ["v", "half"], ["o"]),
         helper.make_node("ReduceMean", ["o"], ["each"], keepdims=0)],
        "body", [value("k", INT, []), value("go", BOOL, []), value("v", FLOAT, [1, 24, 16, 16])],
        [value("on", BOOL, []), value("o", FLOAT, [1, 24, 16, 16]), value("each", FLOAT, [])],
    )
    return [helper.make_node("Loop", ["n", "", "f"], ["y", "means"], "loop", body=body)], stored(
        n=np.array(iterations), half=np.float32(0.5)), ["y", "means"]


CASES = {
    "a detector": (detector(), "nms", {"conv0", "conv1"}),
    "an If": (choice(), "choice", {"conv0", "conv1", "back"}),
    "a Loop of three iterations": (loop(3), "loop", {"conv0", "conv1"}),
    "a Loop of no iteration": (loop(0), "loop", {"conv0", "conv1"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rest_of_a_network_runs_fast_and_the_runtime_agrees(tmp_path, name):
    (more, constants, outputs), first, fast = CASES[name]
    nodes, weights = backbone(np.random.default_rng(7))
    kinds = {"chosen": INT}
    graph = helper.make_graph(
        nodes + more, "net", [value("x", FLOAT, [1, 3, 32, 32])],
        [value(output, kinds.get(output, FLOAT)) for output in outputs], weights + constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    x = np.random.default_rng(8).standard_normal((1, 3, 32, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    run = [LACUNA, "infer", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out", "--force"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stderr.count("run exactly") + done.stderr.count("runs exactly") == 1 and first in done.stderr
    assert subprocess.run([*run, "--engine", "cpu"], capture_output=True, check=False).returncode == 1
    want = onnxruntime.InferenceSession(path).run(None, {"x": x})
    for output, array in zip(outputs, want, strict=True):
        got = np.load(tmp_path / "out" / f"{output}.npy")
        assert got.shape == array.shape
        assert np.allclose(got, array, rtol=1e-3, atol=1e-5)
    timed = [LACUNA, "bench", path, "--runs", "3", "--threads", "1", "-q", "--json", "-"]
    report = json.loads(subprocess.run(timed, capture_output=True, text=True, check=True).stdout)
    exact = {layer["name"] for layer in report["layers"] if layer["exact"]}
    assert first in exact and not exact & fast
    assert 0 < report["exact_nodes"] < report["nodes"] and first in report["exact_reason"]


def test_logits_whose_shape_comes_from_data_are_evaluated(tmp_path):
    """Compress by what is always true leaves all rows, and nobody knows how many before a run."""
    digits = TOP / "examples/digits"
    model = onnx.load(digits / "digits.onnx")
    logits = model.graph.output[0].name
    model.graph.node.extend([
        helper.make_node("Mul", [logits, "zero"], ["zeros"]),
        helper.make_node("ReduceSum", ["zeros", "axis"], ["none"], keepdims=0),
        helper.make_node("Equal", ["none", "zero"], ["kept"]),
        helper.make_node("Compress", [logits, "kept"], ["open"], "compress", axis=0),
    ])
    model.graph.initializer.extend(stored(zero=np.float32(0), axis=np.array([1])))
    del model.graph.output[:]
    model.graph.output.append(value("open", FLOAT))
    onnx.save(model, tmp_path / "open.onnx")
    found = []
    for path in (digits / "digits.onnx", tmp_path / "open.onnx"):
        run = [LACUNA, "eval", path, "--data", digits, "-q", "--json", "-"]
        found.append(json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout))
    assert [report["exact_nodes"] for report in found] == [0, 1]
    assert found[0]["images"] == found[1]["images"] == 360
    for key in ("top1", "top5", "loss"):
        assert found[0][key] == pytest.approx(found[1][key], rel=1e-6)


DOUBLE = TensorProto.DOUBLE
node = helper.make_node
# name -> nodes, what is stored, input, kind of the output
DOUBLES = {
    "through": ([node("Identity", ["x"], ["y"])], {}, np.array([1 / 3, 1e300, 1e-300]), DOUBLE),
    "differences of large numbers": (
        [node("Sub", ["x", "c"], ["y"])], dict(c=np.float64(1.7e9)), np.array([1.7e9 + 3.25, 1.7e9 + 100.5]), DOUBLE),
    "integers through doubles": (
        [node("Cast", ["x"], ["d"], to=DOUBLE), node("Mul", ["d", "c"], ["m"]), node("Cast", ["m"], ["y"], to=INT)],
        dict(c=np.float64(1)), np.array([16777217, 123456789, 2**40 + 1]), INT),
    "the larger of two": ([node("ArgMax", ["x"], ["y"], axis=0)], {}, np.array([1, 1 + 1e-9, 1 + 2e-9]), INT),
}


@pytest.mark.parametrize("name", DOUBLES)
def test_doubles_are_computed_as_doubles(name, tmp_path):
    nodes, constants, x, kind = DOUBLES[name]
    graph = helper.make_graph(nodes, "g", [value("x", INT if x.dtype == np.int64 else DOUBLE, x.shape)],
                              [value("y", kind)], stored(**constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    run = subprocess.run([LACUNA, "infer", "m.onnx", "--input", "x=x.npy", "-o", "o"], cwd=tmp_path, capture_output=True,
                         text=True)
    assert run.returncode == 0 and "f64" in run.stderr, run.stderr
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(np.load(tmp_path / "o/y.npy"), session.run(None, {"x": x})[0])


@pytest.mark.parametrize("kind", ["STRING", "COMPLEX64"])
@pytest.mark.parametrize("engine", ["auto", "cpu", "plain"])
def test_types_that_nobody_computes_are_refused(kind, engine, tmp_path):
    nodes = [node("Cast", ["x"], ["c"], to=getattr(TensorProto, kind)), node("Cast", ["c"], ["y"], to=FLOAT)]
    graph = helper.make_graph(nodes, "g", [value("x", FLOAT, [3])], [value("y", FLOAT, [3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([700, 1.6, -3], np.float32))
    run = subprocess.run([LACUNA, "infer", "m.onnx", "--input", "x=x.npy", "-o", "o", "--engine", engine], cwd=tmp_path,
                         capture_output=True, text=True)
    assert run.returncode == 1 and "cannot compute with elements of type" in run.stderr, run.stderr


@pytest.mark.parametrize("verb", ["infer", "bench"])
@pytest.mark.parametrize("op", ["Unique", "NonZero", "loop"])
def test_what_the_fast_engine_refuses_names_the_engine_that_runs_it(tmp_path, op, verb):
    if op == "loop":
        nodes, more, _ = loop(2)
        graph_inputs = [value("x", FLOAT, [1, 3, 32, 32])]
        head, weights = backbone(np.random.default_rng(0))
        graph = helper.make_graph(head + nodes, "g", graph_inputs, [value("y", FLOAT)], weights + more)
        shape = (1, 3, 32, 32)
    else:
        graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [value("x", FLOAT, ["n"])],
                                  [value("y", FLOAT if op == "Unique" else INT)])
        shape = (4,)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones(shape, np.float32))
    words = {"infer": ["--input", f"x={tmp_path}/x.npy", "-o", tmp_path / "out"],
             "bench": ["--input-shape", "x=" + "x".join(map(str, shape)), "--runs", "1"]}[verb]
    done = subprocess.run([LACUNA, verb, tmp_path / "m.onnx", "--engine", "cpu", *words], capture_output=True, text=True)
    assert done.returncode == 1 and "(--engine auto runs it" in done.stderr
    done = subprocess.run([LACUNA, verb, tmp_path / "m.onnx", "--engine", "auto", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
