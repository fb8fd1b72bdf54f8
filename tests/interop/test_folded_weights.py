# SPDX-License-Identifier: Apache-2.0
"""Weights that constants make: masks in the graph, sums of branches, low-rank updates. Each is stored as one tensor, which
NumPy computes here by itself, pruned, and judged by ONNX Runtime; what the parts were has left the file."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
K, C = 32, 16


class Net:
    """Nodes and stored tensors; each value is there as a float64 array, too."""

    def __init__(self, seed=0, dtype=np.float32):
        self.rng, self.dtype, self.nodes, self.stored, self.functions = np.random.default_rng(seed), dtype, [], {}, []

    def op(self, kind, *inputs, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"{kind}_{len(self.nodes)}", **attrs))
        return name

    def put(self, values, name=None):
        name = name or f"t{len(self.stored)}"
        self.stored[name] = np.asarray(values)
        return name

    def floats(self, *shape, scale=0.2):
        return (scale * self.rng.standard_normal(shape)).astype(self.dtype)


def wide(*arrays):
    return [a.astype(np.float64) for a in arrays]


def mask_2of4(w, axis=1):
    a = np.moveaxis(np.abs(w), axis, -1)
    rank = np.argsort(np.argsort(-a.reshape(*a.shape[:-1], -1, 4), axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.moveaxis((rank < 2).reshape(a.shape), -1, axis)


# Each kind: (value of the weight, its contents, does it hold 2:4 already).
def masked(net):
    w = net.floats(K, C, 3, 3)
    m = mask_2of4(w).astype(w.dtype)
    return net.op("Mul", net.put(w), net.put(m)), w * m, True


def masked_by_bool(net):
    w = net.floats(K, C, 3, 3)
    m = mask_2of4(w)
    to = helper.np_dtype_to_tensor_dtype(w.dtype)
    return net.op("Mul", net.op("Cast", net.put(m), to=to), net.put(w)), w * m, True


def masked_by_where(net):
    w = net.floats(K, C, 3, 3)
    m = mask_2of4(w)
    return net.op("Where", net.put(m), net.put(w), net.put(np.zeros((), w.dtype))), w * m, True


def masked_along_kernel_axes(net):
    w = net.floats(K, C, 3, 3)
    m = mask_2of4(np.abs(w).sum(axis=(2, 3), keepdims=True)).astype(w.dtype)
    return net.op("Mul", net.put(w), net.put(m)), w * m, True


def masked_by_constant_node(net):
    w = net.floats(K, C, 3, 3)
    m = mask_2of4(w).astype(w.dtype)
    net.nodes.append(helper.make_node("Constant", [], ["mask"], value=numpy_helper.from_array(m, "mask")))
    return net.op("Mul", net.put(w), "mask"), w * m, True


def sum_of_branches(net):
    w, one = net.floats(K, C, 3, 3), net.floats(K, C, 1, 1)
    pads = net.put(np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    a, b = wide(w, np.pad(one, ((0, 0), (0, 0), (1, 1), (1, 1))))
    return net.op("Add", net.put(w), net.op("Pad", net.put(one), pads)), a + b, False


def standardized(net):
    w, eps = net.floats(K, C, 3, 3), np.asarray(1e-5, net.dtype)
    v = net.put(w)
    centered = net.op("Sub", v, net.op("ReduceMean", v, axes=[1, 2, 3], keepdims=1))
    two = net.put(np.asarray(2, net.dtype))
    variance = net.op("ReduceMean", net.op("Pow", centered, two), axes=[1, 2, 3], keepdims=1)
    a = w.astype(np.float64)
    c = a - a.mean(axis=(1, 2, 3), keepdims=True)
    root = np.sqrt((c ** 2).mean(axis=(1, 2, 3), keepdims=True) + float(eps))
    return net.op("Div", centered, net.op("Sqrt", net.op("Add", variance, net.put(eps)))), c / root, False


def spectral(net):
    w, u, v = net.floats(K, C, 3, 3), net.floats(K), net.floats(C * 9)
    rows = net.op("Reshape", net.put(w, "w"), net.put(np.array([K, C * 9])))
    sigma = net.op("MatMul", net.put(u), net.op("MatMul", rows, net.put(v)))
    a, b, c = wide(w, u, v)
    return net.op("Div", "w", sigma), a / (b @ (a.reshape(K, -1) @ c)), False


def joined(net):
    a, b = net.floats(K, C // 2, 3, 3), net.floats(K, C // 2, 3, 3)
    return net.op("Concat", net.put(a), net.put(b), axis=1), np.concatenate([a, b], axis=1), False


def sliced(net):
    w = net.floats(K + 8, C, 3, 3)
    cut = net.op("Slice", net.put(w), net.put(np.array([8])), net.put(np.array([K + 8])), net.put(np.array([0])))
    return cut, w[8:], False


def transposed_sum(net):
    a, b = net.floats(C, K, 3, 3), net.floats(C, K, 3, 3)
    s, t = wide(a, b)
    total = net.op("Add", net.put(a), net.put(b))
    return net.op("Transpose", total, perm=[1, 0, 2, 3]), (s + t).transpose(1, 0, 2, 3), False


def in_a_function(net):
    w = net.floats(K, C, 3, 3)
    m = mask_2of4(w).astype(w.dtype)
    body = [helper.make_node("Mul", ["a", "b"], ["p"]), helper.make_node("Identity", ["p"], ["c"])]
    net.functions.append(helper.make_function("local", "masked", ["a", "b"], ["c"], body, [helper.make_opsetid("", 17)]))
    return net.op("masked", net.put(w), net.put(m), domain="local"), w * m, True


def masked_along_inputs(net):
    w = net.floats(K, C, 3, 3)
    m = np.tile(np.array([1, 0, 0, 1], w.dtype), C // 4).reshape(1, C, 1, 1)
    return net.op("Mul", net.put(w), net.put(m)), w * m, True


CONVS = {f.__name__: f for f in (masked, masked_by_bool, masked_by_where, masked_along_kernel_axes, masked_by_constant_node, masked_along_inputs,
                                 sum_of_branches, standardized, spectral, joined, sliced, transposed_sum, in_a_function)}


def low_rank(net, shape):
    w, b, a = net.floats(*shape), net.floats(shape[0], 4), net.floats(4, shape[1])
    s = np.asarray(0.5, net.dtype)
    update = net.op("Mul", net.op("MatMul", net.put(b), net.put(a)), net.put(s))
    x, y, z = wide(w, b, a)
    return net.op("Add", net.put(w), update), x + float(s) * (y @ z), False


def masked_dense(net, shape, axis):
    w = net.floats(*shape)
    m = mask_2of4(w, axis).astype(w.dtype)
    return net.op("Mul", net.put(w), net.put(m)), w * m, True


def save(net, y, path, shape, external=False):
    t = helper.np_dtype_to_tensor_dtype(np.dtype(net.dtype))
    graph = helper.make_graph(net.nodes, "g", [helper.make_tensor_value_info("x", t, shape)],
                              [helper.make_tensor_value_info(y, t, [None] * len(shape))],
                              [numpy_helper.from_array(v, n) for n, v in net.stored.items()])
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid("local", 1)] if net.functions else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=net.functions)
    onnx.save(model, path, save_as_external_data=external, location="model.data", size_threshold=16)
    return model


def build(kind, path, dtype=np.float32, external=False):
    """Conv, the layer, Conv; returns the weight's value, its contents as the file's type, whether it holds 2:4."""
    net = Net(dtype=dtype)
    x = net.op("Relu", net.op("Conv", "x", net.put(net.floats(C, C, 1, 1))))
    value, weight, holds = CONVS[kind](net)
    x = net.op("Relu", net.op("Conv", x, value))
    y = net.op("Conv", x, net.put(net.floats(C, K, 1, 1)))
    save(net, y, path, [1, C, 6, 6], external)
    return value, weight.astype(dtype), holds


def run(path, shape, dtype=np.float32):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.random.default_rng(1).standard_normal(shape).astype(dtype)})[0]


def lacuna(*arguments, status=0):
    done = subprocess.run([LACUNA, *arguments], capture_output=True, text=True, check=False)
    assert status is None or done.returncode == status, done.stdout + done.stderr
    return done.stdout


def report_of(*arguments, status=0):
    return json.loads(lacuna(*arguments, "-q", "--json", "-", status=status))


def stored_of(path):
    return {t.name: numpy_helper.to_array(t, str(path.parent)) for t in onnx.load(path).graph.initializer}


def weight_at(path, node):
    """What the layer reads, whatever makes it: by the reference of onnx itself."""
    model = onnx.load(path)
    value = next(n for n in model.graph.node if n.name == node).input[1]
    stored = stored_of(path)
    if value in stored:
        return stored[value]
    made = {n.output[0]: n for n in model.graph.node}[value]
    assert made.op_type == "Transpose", made.op_type
    return stored[made.input[0]].transpose(made.attribute[0].ints)


def layer_name(path, value):
    return next(n.name for n in onnx.load(path).graph.node if value in n.input and n.op_type != "Identity")


@pytest.mark.parametrize("kind", CONVS)
def test_product_is_stored_and_pruned(kind, tmp_path):
    path, pruned = tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    value, weight, holds = build(kind, path)
    report = report_of("prune", "--no-calibration", "--no-permute", "-o", pruned, path)
    summary = report["summary"]
    assert (summary["layers"], summary["pruned"], summary["folded"]) == (3, 3, 1)
    assert sum(layer["folded"] for layer in report["layers"]) == 1
    found = weight_at(pruned, layer_name(path, value))
    np.testing.assert_allclose(found, weight * (weight != 0 if holds else mask_2of4(weight)), rtol=1e-6, atol=1e-9)
    before, after = onnx.load(path), onnx.load(pruned)
    kept = [n.name for n in after.graph.node]
    assert kept == [n.name for n in before.graph.node if n.name in kept] and len(after.graph.initializer) == 3
    onnx.checker.check_model(after, full_check=True)
    assert report_of("check", pruned)["summary"]["pruned"] == 3
    lacuna("check", "-q", "--against", path, pruned)


@pytest.mark.parametrize("kind", CONVS)
def test_network_computes_the_same_in_another_order(kind, tmp_path):
    path, permuted = tmp_path / "model.onnx", tmp_path / "permuted.onnx"
    build(kind, path)
    assert report_of("permute", "-o", permuted, path)["summary"]["permuted"] >= 2
    before, after = run(path, (1, C, 6, 6)), run(permuted, (1, C, 6, 6))
    assert np.abs(after - before).max() <= 1e-4 * np.abs(before).max()


MASKED = [k for k in CONVS if k.startswith("masked") or k == "in_a_function"]


@pytest.mark.parametrize("kind", MASKED)
def test_masked_product_is_seen_by_check(kind, tmp_path):
    path = tmp_path / "model.onnx"
    _, weight, _ = build(kind, path)
    layers = report_of("check", path, status=1)["layers"]
    layer = next(la for la in layers if la["pruned"])
    assert layer["holds_pattern"] and [la["pruned"] for la in layers].count(True) == 1
    assert layer["zero_ratio"] == pytest.approx(np.mean(weight == 0))


# ---- Masks that stay in the graph ----

def read_by_a_norm(net):
    w = net.floats(K, C, 3, 3)
    v = net.put(w)
    net.op("ReduceL2", v, keepdims=0)
    return net.op("Mul", v, net.put(mask_2of4(w).astype(w.dtype)))


def of_integers(net):
    w = net.rng.integers(-127, 128, (K, C, 3, 3)).astype(np.int8)
    v = net.op("DequantizeLinear", net.put(w), net.put(np.float32(0.01)))
    return net.op("Mul", v, net.put(mask_2of4(w.astype(np.float32)).astype(np.float32)))


def left_out(net):
    w = net.floats(K, C, 3, 3)
    return net.put(w * mask_2of4(w), "left_out")


STAYING = {f.__name__: f for f in (masked, read_by_a_norm, of_integers, left_out)}


def build_branches(kind, path):
    """The weight, and a dense one that reads the same channels: an order for that would break it."""
    net = Net()
    x = net.op("Relu", net.op("Conv", "x", net.put(net.floats(C, C, 1, 1))))
    value = STAYING[kind](net)
    value = value[0] if isinstance(value, tuple) else value
    sides = [net.op("Conv", x, w) for w in (value, net.put(net.floats(K, C, 3, 3)))]
    y = net.op("Conv", net.op("Relu", net.op("Add", *sides)), net.put(net.floats(C, K, 1, 1)))
    save(net, y, path, [1, C, 6, 6])
    return value


def holds_2of4(path, value):
    """By ONNX Runtime, which computes the weight."""
    model = onnx.load(path)
    stored = stored_of(path)
    if value not in stored:
        model.graph.output.append(helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, [K, C, 3, 3]))
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        w = session.run([value], {"x": np.zeros((1, C, 6, 6), np.float32)})[0]
    else:
        w = stored[value]
    return bool((np.count_nonzero(w.reshape(K, C // 4, 4, 9), axis=2) <= 2).all())


@pytest.mark.parametrize("verb", ["prune", "permute"])
@pytest.mark.parametrize("kind", STAYING)
def test_order_for_others_breaks_no_mask_that_stays(kind, verb, tmp_path):
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    value = build_branches(kind, path)
    assert holds_2of4(path, value)
    name = layer_name(path, value)
    exclude = ("--exclude", "^left_out$") if kind == "left_out" else ()
    report = report_of(verb, "--no-fold", *exclude, "-o", out, path)
    assert holds_2of4(out, value)
    assert any(f"{name} holds 2:4 already and keeps its mask" in (la["reason"] or "") for la in report["layers"])
    after = next(la for la in report_of("check", out, status=None)["layers"] if la["name"] == name)
    assert after["holds_pattern"] and after["pruned"]
    before = run(path, (1, C, 6, 6))
    if verb == "permute":
        assert np.abs(run(out, (1, C, 6, 6)) - before).max() <= 1e-4 * np.abs(before).max()


def test_stored_order_that_breaks_a_mask_is_said(tmp_path):
    path, dense, out, order = (tmp_path / n for n in ("model.onnx", "dense.onnx", "out.onnx", "order.json"))
    value = build_branches("masked", path)
    model = onnx.load(path)
    mask = next(n for n in model.graph.node if value in n.output).input[1]
    at = next(t for t in model.graph.initializer if t.name == mask)
    at.CopyFrom(numpy_helper.from_array(np.ones((K, C, 3, 3), np.float32), mask))
    onnx.save(model, dense)
    lacuna("permute", "-q", "--no-fold", "-o", out, "--save-permutation", order, dense)
    done = subprocess.run([LACUNA, "permute", "--no-fold", "--force", "--apply", order, "-o", out, path],
                          capture_output=True, text=True, check=True)
    assert not holds_2of4(out, value)
    assert f"{layer_name(path, value)} held 2:4, and does not in this order" in done.stderr


def kernels_of(path):
    layers = json.loads(lacuna("bench", "-q", "--runs", "1", "--time", "0.01", "--json", "-", path))["layers"]
    return [layer["kernel"] for layer in layers]


def test_masks_of_all_layers_hold_and_are_run_by_sparse_kernels(tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    x = "x"
    for _ in range(2):
        w = net.floats(128, 128, 3, 3)
        m = mask_2of4(w).astype(np.float32)
        x = net.op("Relu", net.op("Conv", x, net.op("Mul", net.put(w), net.put(m)), pads=[1] * 4))
    save(net, x, path, [1, 128, 14, 14])
    report = report_of("check", "--target", "tensorrt", path)
    assert (report["summary"]["layers"], report["summary"]["pruned"]) == (2, 2)
    assert report["targets"][0]["taken"] == 2
    report_of("prune", "--no-calibration", "--no-permute", "-o", pruned, path)
    kernels = kernels_of(path)
    assert kernels == kernels_of(pruned) and sum("sparse" in k for k in kernels) == 2


DENSE = {
    "MatMul": (lambda net, x, w: net.op("MatMul", x, w), (C, K), 0),
    "Gemm": (lambda net, x, w: net.op("Gemm", x, w), (C, K), 0),
    "Gemm of the transpose": (lambda net, x, w: net.op("Gemm", x, w, transB=1), (K, C), 1),
}
PRODUCTS = {"mask": lambda net, shape, axis: masked_dense(net, shape, axis), "low rank": lambda net, shape, _: low_rank(net, shape)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("layer", DENSE)
def test_dense_layers_and_their_types(layer, product, dtype, tmp_path):
    path, pruned = tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    op, shape, axis = DENSE[layer]
    net = Net(dtype=dtype)
    value, weight, holds = PRODUCTS[product](net, shape, axis)
    save(net, op(net, "x", value), path, [2, C])
    summary = report_of("prune", "--no-calibration", "-o", pruned, path)["summary"]
    assert (summary["layers"], summary["pruned"], summary["folded"]) == (1, 1, 1)
    weight = weight.astype(dtype)
    stored = stored_of(pruned)
    assert list(stored) == [value] and stored[value].dtype == dtype
    want = weight * (weight != 0 if holds else mask_2of4(weight, axis).astype(dtype))
    close = {np.float32: 1e-6, np.float64: 1e-12, np.float16: 1e-3}[dtype]
    np.testing.assert_allclose(stored[value], want, rtol=close, atol=close / 100)
    if dtype != np.float16:
        x = np.random.default_rng(1).standard_normal((2, C)).astype(dtype)
        y = x @ (want.T if axis else want)
        np.testing.assert_allclose(run(pruned, (2, C), dtype), y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("engine", ["plain", "cpu", "auto"])
def test_a_weight_rounded_to_levels_is_folded_to_the_levels_of_runtimes(engine, tmp_path):
    """Halfway between two levels the quotient's own rounding decides: in float32, and before and after folding alike."""
    path, folded = tmp_path / "model.onnx", tmp_path / "folded.onnx"
    net, step = Net(), np.float32(0.013)
    w = (net.rng.integers(-255, 256, (C, K)) / 2 * step).astype(np.float32)
    level = net.op("Round", net.op("Div", net.put(w), net.put(step)))
    value = net.op("Mul", net.op("Clip", level, net.put(np.float32(-128)), net.put(np.float32(127))), net.put(step))
    save(net, net.op("MatMul", "x", value), path, [C, C])
    report_of("permute", "-o", folded, path)
    assert list(stored_of(folded)) == [value]
    np.save(tmp_path / "x.npy", np.eye(C, dtype=np.float32))
    want = onnxruntime.InferenceSession(str(path)).run(None, {"x": np.eye(C, dtype=np.float32)})[0]
    assert (stored_of(folded)[value] == want).all()
    for model in [path, folded]:
        subprocess.run([LACUNA, "infer", model, "-o", tmp_path / "out", "--force", "-q", "--engine", engine,
                        "--input", f"x={tmp_path / 'x.npy'}"], check=True)
        (found,) = (tmp_path / "out").glob("*.npy")
        np.testing.assert_allclose(np.load(found), want, rtol=0, atol=1e-7)


def test_external_data_of_parts_leaves_its_file(tmp_path):
    path, pruned = tmp_path / "model.onnx", tmp_path / "out" / "pruned.onnx"
    pruned.parent.mkdir()
    _, weight, _ = build("masked", path, external=True)
    report_of("prune", "--no-calibration", "-o", pruned, path)
    assert (pruned.parent / "model.data").stat().st_size < (tmp_path / "model.data").stat().st_size - weight.nbytes
    before = run(path, (1, C, 6, 6))
    assert np.isfinite(run(pruned, (1, C, 6, 6))).all() and before.shape == (1, C, 4, 4)
    assert report_of("check", pruned)["summary"]["pruned"] == 3


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_layer_that_is_nearly_empty_says_how_much_is_left(kept, tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    w = np.zeros((K, C), np.float32)
    w.reshape(-1)[:4 * kept:4] = 1
    save(net, net.op("Gemm", "x", net.put(w), transB=1), path, [2, C])
    said = "all zero" if kept == 0 else f"only {kept} of {K * C} weights" if kept == 1 else None
    for report in (report_of("check", path), report_of("prune", "--no-calibration", "-o", pruned, path)):
        layer = report["layers"][0]
        assert report["summary"]["pruned"] == layer["pruned"] == (kept > 0)
        assert said in layer["reason"] if said else "only" not in (layer["reason"] or "")


def test_two_layers_that_read_one_product(tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    w, m = net.floats(C, C, 1, 1), net.floats(C, C, 1, 1)
    value = net.op("Add", net.put(w), net.put(m))
    y = net.op("Conv", net.op("Relu", net.op("Conv", "x", value)), value)
    save(net, y, path, [1, C, 6, 6])
    summary = report_of("prune", "--no-calibration", "-o", pruned, path)["summary"]
    assert (summary["layers"], summary["pruned"], summary["folded"]) == (2, 2, 1)
    assert list(stored_of(pruned)) == [value]
    assert report_of("check", pruned)["summary"]["pruned"] == 2


def test_part_that_another_layer_reads_stays_unless_fold_is_asked_for(tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    w, m = net.floats(K, C, 3, 3), net.floats(K, C, 3, 3)
    net.put(w, "w")
    value = net.op("Add", "w", net.put(m))
    y = net.op("Add", net.op("Conv", "x", value), net.op("Conv", "x", "w"))
    save(net, y, path, [1, C, 6, 6])
    report = report_of("prune", "--no-calibration", "--no-verify", "-o", pruned, path)
    rows = {la["weight"]: la for la in report["layers"]}
    assert report["summary"]["layers"] == 2 and report["summary"]["folded"] == 0
    assert rows[value]["computed"] and "reads, too" in rows[value]["reason"]
    assert report_of("check", pruned)["summary"]["pruned"] == report["summary"]["pruned"]
    report = report_of("prune", "--no-calibration", "--fold", "--force", "-o", pruned, path)
    assert (report["summary"]["layers"], report["summary"]["pruned"], report["summary"]["folded"]) == (2, 2, 1)
    assert set(stored_of(pruned)) == {"w", value}
    assert report_of("check", pruned)["summary"]["pruned"] == 2


@pytest.mark.parametrize("named", ["a part", "a small part", "a step in between"])
@pytest.mark.parametrize("by", ["training_info", "quantization_annotation"])
def test_part_that_the_file_names_elsewhere_stays(by, named, tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    scaled = net.op("Mul", net.put(net.floats(C, C), "w"), net.put(net.floats(C, 1), "s"))
    value = net.op("Tanh", scaled)
    part = {"a part": "w", "a small part": "s", "a step in between": scaled}[named]
    model = save(net, net.op("MatMul", "x", value), path, [2, C])
    if by == "training_info":
        info = model.training_info.add()
        info.algorithm.CopyFrom(helper.make_graph([helper.make_node("Neg", [part], ["next"])], "step", [],
                                                  [helper.make_tensor_value_info("next", onnx.TensorProto.FLOAT, None)]))
    else:
        scale = model.graph.quantization_annotation.add(tensor_name=part).quant_parameter_tensor_names
        scale.add(key="SCALE_TENSOR", value="w")
    onnx.save(model, path)
    report = report_of("check", path, status=0)
    assert report["summary"]["folded"] == 0
    assert report["layers"][0]["reason"].endswith(f"which the file's {by} names")
    report = report_of("prune", "--no-calibration", "--fold", "--force", "--no-verify", "-o", pruned, path)
    assert [report["summary"][k] for k in ("layers", "pruned", "folded")] == [1, 1, 1]
    after = onnx.load(pruned)
    assert {part} <= set(stored_of(pruned)) | {n.output[0] for n in after.graph.node} and value in stored_of(pruned)
    assert [n.op_type for n in after.graph.node] == (["Mul"] if named == "a step in between" else []) + ["MatMul"]


def test_file_of_old_lists_the_product_as_an_input(tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    value = net.op("Mul", net.put(net.floats(C, C)), net.put(net.floats(C, C)))
    model = save(net, net.op("MatMul", net.op("Relu", net.op("MatMul", "x", net.put(net.floats(C, C)))), value), path, [2, C])
    model.ir_version, model.opset_import[0].version = 3, 9
    known = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in model.graph.initializer]
    model.graph.input.extend(known)
    model.graph.value_info.append(helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, [C, C]))
    onnx.checker.check_model(model)
    onnx.save(model, path)
    assert report_of("prune", "--no-calibration", "--no-permute", "-o", pruned, path)["summary"]["folded"] == 1
    after = onnx.load(pruned)
    onnx.checker.check_model(after, full_check=True)
    listed = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in after.graph.input}
    assert listed == {"x": [2, C], "t2": [C, C], value: [C, C]}
    assert run(pruned, (2, C)).shape == (2, C)


def test_no_fold_leaves_the_file_and_says_why(tmp_path):
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    value, _, _ = build("masked", path)
    report = report_of("prune", "--no-calibration", "--no-fold", "--no-permute", "-o", out, path)
    assert (report["summary"]["layers"], report["summary"]["pruned"], report["summary"]["folded"]) == (3, 3, 0)
    row = next(la for la in report["layers"] if la["weight"] == value)
    assert row["computed"] and not row["eligible"] and "is computed by Mul" in row["reason"]
    assert [n.name for n in onnx.load(out).graph.node] == [n.name for n in onnx.load(path).graph.node]
    assert row["pruned"] and row["holds_pattern"]
    assert report_of("check", "--no-fold", out)["summary"]["pruned"] == 3


def function(net, name, inputs, *nodes):
    net.functions.append(helper.make_function("local", name, inputs, ["c"], nodes, [helper.make_opsetid("", 17)]))


def test_layers_of_a_function_get_their_products_as_an_input(tmp_path):
    """Two calls, whose parts differ; a formal input that nothing reads then goes, one that is read elsewhere stays."""
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    function(net, "block", ["x", "w", "m", "g"], helper.make_node("Mul", ["w", "m"], ["p"]),
             helper.make_node("Conv", ["x", "p"], ["a"], name="conv"), helper.make_node("Mul", ["a", "g"], ["c"]))
    x, products = "x", []
    for _ in range(2):
        w, g = net.floats(C, C, 1, 1), net.floats(C, 1, 1)
        m = mask_2of4(w).astype(np.float32)
        products.append(w * m)
        x = net.op("block", x, net.put(w), net.put(m), net.put(g), domain="local")
    save(net, x, path, [1, C, 6, 6])
    report = report_of("prune", "--no-calibration", "-o", pruned, "--no-permute", path)
    assert [report["summary"][k] for k in ("layers", "pruned", "folded")] == [2, 2, 2]
    model, stored = onnx.load(pruned), stored_of(pruned)
    assert [n.op_type for n in model.functions[0].node] == ["Conv", "Mul"]
    assert list(model.functions[0].input) == ["x", "g", "p"] and len(stored) == 4
    for node, product in zip(model.graph.node, products):
        np.testing.assert_array_equal(stored[node.input[2]], product)
    np.testing.assert_allclose(run(pruned, (1, C, 6, 6)), run(path, (1, C, 6, 6)), rtol=1e-5, atol=1e-6)
    assert report_of("check", pruned)["summary"]["pruned"] == 2
    lacuna("check", "-q", "--against", path, pruned)


def test_constants_of_a_function_make_one_tensor_for_all_calls(tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    w, v = net.floats(C, C, 1, 1), net.floats(C, C, 1, 1)
    function(net, "block", ["x"], *(helper.make_node("Constant", [], [n], value=numpy_helper.from_array(a, n))
                                    for n, a in (("w", w), ("v", v))),
             helper.make_node("Add", ["w", "v"], ["p"]), helper.make_node("Conv", ["x", "p"], ["c"], name="conv"))
    x = net.op("Relu", net.op("block", "x", domain="local"))
    save(net, net.op("block", x, domain="local"), path, [1, C, 6, 6])
    report = report_of("prune", "--no-calibration", "-o", pruned, path)
    assert [report["summary"][k] for k in ("layers", "pruned", "folded")] == [2, 2, 1]
    assert [n.op_type for n in onnx.load(pruned).functions[0].node] == ["Conv"] and len(stored_of(pruned)) == 1
    assert report_of("check", pruned)["summary"]["pruned"] == 2
    whole = tmp_path / "whole.onnx"
    report_of("permute", "-o", whole, path)
    before, after = run(path, (1, C, 6, 6)), run(whole, (1, C, 6, 6))
    assert np.abs(after - before).max() <= 1e-4 * np.abs(before).max()


def test_product_after_a_transpose_in_a_function_is_stored_once_for_each_call(tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    function(net, "block", ["x", "w", "m"], helper.make_node("Mul", ["w", "m"], ["p"]),
             helper.make_node("Transpose", ["p"], ["q"], perm=[1, 0]), helper.make_node("MatMul", ["x", "q"], ["c"], name="mm"))
    x, calls, products = "x", 3, []
    for _ in range(calls):
        w = net.floats(C, C)
        m = mask_2of4(w).astype(np.float32)
        products.append(w * m)
        x = net.op("block", x, net.put(w), net.put(m), domain="local")
    save(net, x, path, [2, C])
    report = report_of("prune", "--no-calibration", "-o", pruned, "--no-permute", path)
    assert [report["summary"][k] for k in ("layers", "pruned", "folded")] == [calls, calls, calls]
    model, stored = onnx.load(pruned), stored_of(pruned)
    assert [n.op_type for n in model.functions[0].node] == ["Transpose", "MatMul"] and len(stored) == calls
    for node, product in zip(model.graph.node, products):
        np.testing.assert_array_equal(stored[node.input[1]], product)


@pytest.mark.parametrize("kind", ["two calls of one name", "a value of the main graph", "a call of another function"])
def test_product_whose_name_belongs_to_another_value_stays(kind, tmp_path):
    """Inlining makes up CALL/VALUE, and another name where that is taken. ONNX Runtime refuses nodes of one name."""
    net, path, out = Net(), tmp_path / "model.onnx", tmp_path / "out.onnx"

    def parts():
        return net.put(net.floats(C, C)), net.put(net.floats(C, C))

    def call(x, function, name):
        x = net.op(function, x, *parts(), domain="local")
        net.nodes[-1].name = name
        return x

    product = helper.make_node("MatMul", ["x", "p"], ["c"], name="mm")
    function(net, "block", ["x", "w", "m"], helper.make_node("Mul", ["w", "m"], ["p"]), product)
    function(net, "other", ["x", "w", "m"], helper.make_node("Add", ["w", "m"], ["p"]), product)
    x, folded = "x", 0
    if kind == "a value of the main graph":
        net.nodes.append(helper.make_node("Mul", list(parts()), ["one/p"], name="own"))
        x, folded = net.op("MatMul", x, "one/p"), 1
    elif kind == "a call of another function":
        x = call(x, "other", "one")
    x = call(x, "block", "one")
    x = call(x, "block", "one" if kind == "two calls of one name" else "two")
    save(net, x, path, [2, C])
    report = report_of("permute", "-o", out, path)
    assert report["summary"]["folded"] == folded
    reasons = [la["reason"] for la in report["layers"] if la["computed"]]
    assert len(reasons) == (3 if kind == "a call of another function" else 2) and all("is computed by" in r for r in reasons)
    feed = {"x": np.random.default_rng(1).standard_normal((2, C)).astype(np.float32)}
    before, after = (ReferenceEvaluator(onnx.load(p)).run(None, feed)[0] for p in (path, out))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-6)


def test_function_that_makes_a_weight_of_an_input_in_one_call_stays(tmp_path):
    net, path, pruned = Net(), tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    function(net, "block", ["x", "w", "m"], helper.make_node("Mul", ["w", "m"], ["p"]),
             helper.make_node("Conv", ["x", "p"], ["c"], name="conv"))
    x = net.op("block", "x", net.put(net.floats(C, C, 1, 1)), net.put(net.floats(C, C, 1, 1)), domain="local")
    x = net.op("block", x, net.put(net.floats(C, C, 1, 1)), net.op("ReduceMean", "x", keepdims=1), domain="local")
    save(net, x, path, [1, C, 6, 6])
    report = report_of("prune", "--no-calibration", "--no-verify", "-o", pruned, path)
    assert [report["summary"][k] for k in ("layers", "pruned", "folded")] == [1, 0, 0]
    assert "is computed by" in report["layers"][0]["reason"]
    assert report_of("check", pruned)["summary"]["pruned"] == 0


def test_weight_of_an_input_is_no_layer(tmp_path):
    net, path = Net(), tmp_path / "model.onnx"
    scale = net.op("Reshape", net.op("ReduceMean", "x", keepdims=0), net.put(np.array([1, 1, 1, 1])))
    y = net.op("Conv", "x", net.op("Mul", net.put(net.floats(K, C, 3, 3)), scale))
    save(net, y, path, [1, C, 6, 6])
    assert report_of("check", path)["summary"]["layers"] == 0


@pytest.mark.parametrize("seed", range(6))
def test_random_products(seed, tmp_path):
    """Branches of products, sums, quotients by norms, slices: NumPy follows along in float64."""
    net, path, pruned = Net(seed), tmp_path / "model.onnx", tmp_path / "pruned.onnx"

    def part(depth):
        if depth == 0 or net.rng.random() < 0.15:
            w = net.floats(K, C, 3, 3) + np.float32(0.5)
            return net.put(w), w.astype(np.float64)
        kind = net.rng.integers(6)
        name, w = part(depth - 1)
        if kind == 0:
            other, v = part(depth - 1)
            return net.op("Add", name, other), w + v
        if kind == 1:
            other, v = part(depth - 1)
            return net.op("Mul", name, other), w * v
        if kind == 2:
            return net.op("Div", name, net.op("ReduceL2", name, axes=[1, 2, 3], keepdims=1)), \
                w / np.sqrt((w ** 2).sum(axis=(1, 2, 3), keepdims=True))
        if kind == 3:
            flat = net.op("Transpose", net.op("Transpose", name, perm=[1, 0, 2, 3]), perm=[1, 0, 2, 3])
            return net.op("Neg", flat), -w
        if kind == 4:
            bound = net.put(np.float32(0.7))
            return net.op("Clip", name, "", bound), np.minimum(w, float(np.float32(0.7)))
        half = net.op("Slice", name, net.put(np.array([0])), net.put(np.array([C // 2])), net.put(np.array([1])))
        rest = net.op("Slice", name, net.put(np.array([C // 2])), net.put(np.array([C])), net.put(np.array([1])))
        return net.op("Concat", rest, half, axis=1), np.roll(w, C // 2, axis=1)

    name, w = part(4)
    value = net.op("Tanh", name)
    w = np.tanh(w).astype(np.float32)
    save(net, net.op("Relu", net.op("Conv", "x", value)), path, [1, C, 6, 6])
    summary = report_of("prune", "--no-calibration", "--no-permute", "-o", pruned, path)["summary"]
    assert (summary["layers"], summary["pruned"], summary["folded"]) == (1, 1, 1)
    stored = stored_of(pruned)
    kept = stored[value] != 0
    assert list(stored) == [value] and (kept.reshape(K, C // 4, 4, 9).sum(axis=2) == 2).all()
    np.testing.assert_allclose(stored[value][kept], w[kept], rtol=1e-6, atol=1e-7)
    whole = tmp_path / "whole.onnx"
    report_of("permute", "-o", whole, path)
    before, after = run(path, (1, C, 6, 6)), run(whole, (1, C, 6, 6))
    assert np.abs(after - before).max() <= 1e-4 * np.abs(before).max()


def test_weights_that_nobody_can_know_have_a_row_without_counts(tmp_path):
    net, path = Net(), tmp_path / "model.onnx"
    net.nodes.append(helper.make_node("Foo", [net.put(net.floats(K, C))], ["foo"], domain="foreign"))
    h = net.op("Gemm", "x", "foo", transB=1)
    blocks = net.put(net.rng.integers(0, 256, (C, 1, 16)).astype(np.uint8))
    y = net.op("MatMulNBits", h, blocks, net.put(net.floats(C)), K=K, N=C, bits=4, block_size=32, domain="com.microsoft")
    save(net, y, path, [2, C])
    model = onnx.load(path)
    model.opset_import.extend([helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("foreign", 1)])
    onnx.save(model, path)
    report = report_of("check", path, status=None)
    assert report["summary"]["layers"] == 2 and report["summary"]["eligible"] == 0
    assert [(la["op"], la["zeros"], la["elements"], la["shape"]) for la in report["layers"]] == [
        ("Gemm", None, None, []), ("MatMulNBits", None, None, [])]
    assert "foreign.Foo) makes of it is not known" in report["layers"][0]["reason"]
    assert (report["layers"][1]["channels_in"], report["layers"][1]["channels_out"]) == (K, C)
