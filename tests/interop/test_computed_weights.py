# SPDX-License-Identifier: Apache-2.0
"""Weights that are computed from stored tensors: which are pruned and permuted, and what ONNX Runtime makes of the result. The
pattern must hold in the weight that the layer reads, and what is kept must keep its value."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
CHANNELS = 32


class Net:
    def __init__(self):
        self.rng, self.nodes, self.stored = np.random.default_rng(0), [], {}

    def op(self, kind, *inputs, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"{kind}_{len(self.nodes)}", **attrs))
        return name

    def put(self, name, values):
        self.stored[name] = np.asarray(values)
        return name

    def floats(self, *shape):
        return (0.2 * self.rng.standard_normal(shape)).astype(np.float32)


def conv_weight(net):
    return net.floats(CHANNELS, CHANNELS, 3, 3)


def constant(net):
    net.nodes.append(helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(conv_weight(net), "w")))
    return "w"


def dequantized(net):
    w = net.put("w", net.rng.integers(-127, 128, (CHANNELS, CHANNELS, 3, 3)).astype(np.int8))
    return net.op("DequantizeLinear", w, net.put("scale", 0.01 * np.abs(net.floats(CHANNELS))),
                  net.put("zero", np.zeros(CHANNELS, np.int8)), axis=0)


def parts(net, axis=0):
    shape = [1] * 4
    shape[axis] = CHANNELS
    return net.put("v", conv_weight(net)), net.put("g", np.abs(net.floats(*shape)) + np.float32(0.1))


def norm(net, v, axis=0):
    return net.op("ReduceL2", v, axes=[a for a in range(4) if a != axis], keepdims=1)


def norm_of_rows(net, v):
    rows = net.op("Reshape", v, net.put("flat", np.array([CHANNELS, -1])))
    return net.op("Reshape", net.op("ReduceL2", rows, axes=[1], keepdims=0), net.put("back", np.array([CHANNELS, 1, 1, 1])))


def root_of_squares(net, v):
    squares = net.op("Pow", v, net.put("two", np.float32(2)))
    return net.op("Sqrt", net.op("ReduceSum", squares, net.put("axes", np.array([1, 2, 3])), keepdims=1))


def normalized(norm_of):
    def make(net):
        v, g = parts(net)
        return net.op("Mul", net.op("Div", v, norm_of(net, v)), g)
    return make


def gain_first(net):
    v, g = parts(net)
    return net.op("Mul", v, net.op("Div", g, norm(net, v)))


def product_first(net):
    v, g = parts(net)
    return net.op("Div", net.op("Mul", g, v), norm(net, v))


def along_inputs(net):
    v, g = parts(net, 1)
    return net.op("Mul", g, net.op("Div", v, norm(net, v, 1)))


FORMS = {
    "identity": lambda net: net.op("Identity", net.put("w", conv_weight(net))),
    "cast": lambda net: net.op("Cast", net.put("w", conv_weight(net).astype(np.float16)), to=1),
    "transpose": lambda net: net.op("Transpose", net.put("w", conv_weight(net)), perm=[1, 0, 2, 3]),
    "all of these": lambda net: net.op("Transpose", net.op("Cast", net.op("Identity", net.put(
        "w", conv_weight(net).astype(np.float16))), to=1), perm=[1, 0, 2, 3]),
    "reshape": lambda net: net.op("Reshape", net.put("w", net.floats(CHANNELS, CHANNELS, 9)),
                                  net.put("shape", np.array([CHANNELS, CHANNELS, 3, 3]))),
    "unsqueeze": lambda net: net.op("Unsqueeze", net.put("w", net.floats(CHANNELS, CHANNELS)), net.put("axes", np.array([2, 3]))),
    "constant": constant,
    "dequantize": dequantized,
    "factor": lambda net: net.op("Mul", net.put("w", conv_weight(net)), net.put("g", net.floats(CHANNELS, 1, 1, 1))),
    "norm": normalized(norm),
    "norm of rows": normalized(norm_of_rows),
    "root of squares": normalized(root_of_squares),
    "norm below the gain": gain_first,
    "norm below the product": product_first,
    "norm along inputs": along_inputs,
}


def build(form, ir=8, listed=False):
    net = Net()
    x = net.op("Relu", net.op("Conv", "x", net.put("w0", net.floats(CHANNELS, 16, 1, 1)), net.put("b0", net.floats(CHANNELS))))
    weight = FORMS[form](net)
    x = net.op("Relu", net.op("Conv", x, weight, net.put("b1", net.floats(CHANNELS))))
    y = net.op("Conv", x, net.put("w2", net.floats(16, CHANNELS, 1, 1)))
    inputs = [helper.make_tensor_value_info("x", 1, [1, 16, 6, 6])]
    if listed:
        inputs += [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                   for n, v in net.stored.items()]
    graph = helper.make_graph(net.nodes, "g", inputs, [onnx.ValueInfoProto(name=y)],
                              [numpy_helper.from_array(v, n) for n, v in net.stored.items()])
    graph.output[0].CopyFrom(helper.make_tensor_value_info(y, 1, None))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir), weight


def run(path, fed, value=None):
    """The network's answer, or another value of it."""
    model = onnx.load(path)
    if value and value not in {t.name for t in model.graph.initializer}:
        model.graph.output.append(helper.make_tensor_value_info(value, 1, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, fed)[-1]


def lacuna(*arguments):
    done = subprocess.run([LACUNA, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("form", FORMS)
def test_pattern_holds_in_the_weight_that_is_read(form, tmp_path):
    model, weight = build(form)
    path, permuted, pruned = (tmp_path / f"{x}.onnx" for x in ("model", "permuted", "pruned"))
    onnx.save(model, path)
    fed = {"x": np.random.default_rng(1).standard_normal((1, 16, 6, 6)).astype(np.float32)}
    report = json.loads(lacuna("permute", "-q", "-o", permuted, "--json", "-", path))
    assert (report["summary"]["permuted"], report["summary"]["groups"]) == (2, 2)
    before, after = run(path, fed), run(permuted, fed)
    assert np.abs(after - before).max() <= 1e-4 * np.abs(before).max()

    report = json.loads(lacuna("prune", "--no-calibration", "-q", "--no-permute", "-o", pruned, "--json", "-", path))
    assert (report["summary"]["layers"], report["summary"]["pruned"]) == (3, 3)
    dense, sparse = run(path, fed, weight), run(pruned, fed, weight)
    kept = sparse != 0
    groups = kept.reshape(CHANNELS, CHANNELS // 4, 4, -1)
    assert (groups.sum(axis=2) == 2).all()
    assert np.abs(sparse[kept] / dense[kept] - 1).max() < 1e-6
    largest = -np.sort(-np.abs(dense).reshape(groups.shape), axis=2)[:, :, 1:2]
    assert (np.abs(dense).reshape(groups.shape)[groups] >= np.broadcast_to(largest, groups.shape)[groups]).all()
    lacuna("check", "-q", "--against", path, pruned)


@pytest.mark.parametrize("ir, permuted", [(3, 2), (4, 0), (8, 0)])
def test_weights_that_are_listed_as_inputs(ir, permuted, tmp_path):
    """Below IR 4 a stored tensor has to be listed; from there on a caller may replace it, so it stays in place."""
    model, _ = build("identity", ir, listed=True)
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model, path)
    report = json.loads(lacuna("permute", "-q", "-o", out, "--json", "-", path))
    assert report["summary"]["permuted"] == permuted
    told = [layer for layer in report["layers"] if "may be replaced by the caller" in (layer["reason"] or "")]
    assert len(told) == (0 if permuted else 3)
    fed = {"x": np.random.default_rng(1).standard_normal((1, 16, 6, 6)).astype(np.float32)}
    before, after = run(path, fed), run(out, fed)
    assert np.abs(after - before).max() <= 1e-4 * np.abs(before).max()


def test_norm_that_others_read_is_left_alone(tmp_path):
    model, weight = build("norm")
    reduced = next(n for n in model.graph.node if n.op_type == "ReduceL2")
    model.graph.node.append(helper.make_node("Squeeze", [reduced.output[0]], ["seen"]))
    model.graph.output.append(helper.make_tensor_value_info("seen", 1, [CHANNELS]))
    path, pruned = tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    onnx.save(model, path)
    lacuna("prune", "--no-calibration", "-q", "-o", pruned, path)
    fed = {"x": np.zeros((1, 16, 6, 6), np.float32)}
    assert (run(pruned, fed, weight) != 0).all()
    np.testing.assert_allclose(run(pruned, fed), run(path, fed), rtol=1e-6)


def two_products(path, make):
    """Two dense layers in a row, whose weights are what make(net, name, shape) computes."""
    net = Net()
    first = net.op("MatMul", "x", make(net, "a", (32, 64)))
    net.op("MatMul", net.op("Relu", first), make(net, "b", (64, 16)))
    net.nodes[-1].output[0] = "y"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(net.nodes, "g", [value("x", 1, [4, 32])], [value("y", 1, [4, 16])],
                              [numpy_helper.from_array(v, k) for k, v in net.stored.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def masked(net, name, shape):
    mask = np.zeros(shape, np.float32)
    mask[0::4] = mask[1::4] = 1
    return net.op("Mul", net.put(name, net.floats(*shape)), net.put(name + "_mask", mask))


def test_computed_layers_that_hold_the_pattern_are_no_warning(tmp_path):
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    two_products(path, masked)
    done = subprocess.run([LACUNA, "prune", "--no-calibration", "--no-fold", "-o", out, path], capture_output=True, text=True)
    assert done.returncode == 0 and "2/2 layers (Conv or Dense) are pruned" in done.stdout
    assert "no layer takes" not in done.stderr
    two_products(path, lambda net, name, shape: net.op("Neg", net.put(name, net.floats(*shape))))
    done = subprocess.run([LACUNA, "prune", "--no-calibration", "--no-fold", "--force", "-o", out, path], capture_output=True, text=True)
    assert done.returncode == 0 and "no layer takes 2:4" in done.stderr


@pytest.mark.parametrize("op, found", [("Log", "NaN"), ("Reciprocal", "inf")])
def test_a_computed_weight_that_is_not_finite_is_promised_to_nobody(op, found, tmp_path):
    path = tmp_path / "model.onnx"

    def broken(net, name, shape):
        values = np.abs(net.floats(*shape))
        return net.op(op, net.put(name, -values if op == "Log" else np.zeros_like(values)))

    two_products(path, broken)
    check = subprocess.run([LACUNA, "check", path], capture_output=True, text=True)
    assert check.returncode == 1 and "stores as one tensor" not in check.stdout
    assert f"found {found}, wanted a finite number" in check.stdout
    prune = subprocess.run([LACUNA, "prune", "--no-calibration", "-o", tmp_path / "out.onnx", path], capture_output=True, text=True)
    assert prune.returncode == 1 and f"found {found}" in prune.stderr
