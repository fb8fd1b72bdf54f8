# SPDX-License-Identifier: Apache-2.0
"""Operators on quantized operands, as ONNX Runtime's quantizer and optimizer write them: each alone, and whole files.

ONNX Runtime judges, without graph optimizations. Integers are equal to one unit, and all but a few exactly: its kernels round sums
in f32, ours in double or, by the fast engine, in other orders of f32.
"""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

quantization = pytest.importorskip("onnxruntime.quantization")

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
MICROSOFT = "com.microsoft"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64, np.dtype(bool): TensorProto.BOOL}
ENGINES = ("plain", "cpu")


def lacuna(*words, code=0):
    done = subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def ours(tmp_path, path, feeds, engine):
    words = []
    for name, value in feeds.items():
        np.save(tmp_path / f"{name}.npy", value)
        words += ["--input", f"{name}={tmp_path / f'{name}.npy'}"]
    lacuna("infer", path, *words, "-o", tmp_path / "out", "--engine", engine, "--force", "-q")
    return {path.stem: np.load(path) for path in (tmp_path / "out").glob("*.npy")}


def theirs(path, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))


def near(found, wanted, share=0.002):
    """Are integers a unit apart at most, few of them at all, and floats equal to rounding?"""
    assert found.shape == wanted.shape
    if wanted.dtype.kind == "f":
        assert np.abs(found - wanted).max() <= 1e-4 * max(1.0, np.abs(wanted).max())
        return
    off = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
    assert off.max() <= 1 and (off > 0).mean() <= share, (off.max(), (off > 0).mean())


RNG = np.random.default_rng(11)


def u8(*shape):
    return RNG.integers(0, 256, shape).astype(np.uint8)


def i8(*shape):
    return RNG.integers(-128, 128, shape).astype(np.int8)


def f32(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def weights7(*shape):
    """Integers of 7 bits: without VNNI, ONNX Runtime's sums of two products saturate beyond these."""
    return RNG.integers(-63, 64, shape).astype(np.int8)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


S, Z = number(0.0371329), number(120, np.uint8)
S2, Z2 = number(0.0113717), number(7, np.uint8)
SY, ZY = number(0.0503911), number(100, np.uint8)
COLUMNS = (0.01 + 0.02 * RNG.random(12)).astype(np.float32)
CASES = {}


def case(op, *inputs, name="", **attributes):
    """A node of that operator: data of several axes are fed, and all else is stored. None: the input is absent."""
    CASES[f"{op.rpartition('.')[2]} {name}".strip()] = (op.rpartition(".")[2], inputs, attributes)


case("com.microsoft.QLinearAdd", u8(8, 30, 5), S, Z, u8(8, 30, 5), S2, Z2, SY, ZY)
case("com.microsoft.QLinearAdd", i8(4, 3, 5), S, number(-3, np.int8), i8(3, 1), S2, number(5, np.int8), SY, number(0, np.int8), name="broadcast-signed")
case("com.microsoft.QLinearMul", u8(2, 3, 5), S, Z, u8(2, 3, 5), S2, Z2, SY, ZY)
case("com.microsoft.QLinearSigmoid", u8(4, 64), S, Z, number(1 / 256), number(0, np.uint8))
case("com.microsoft.QLinearLeakyRelu", i8(4, 64), S, number(4, np.int8), S2, number(-20, np.int8), alpha=0.2)
case("com.microsoft.QLinearSoftmax", u8(4, 16), S, Z, number(1 / 256), number(0, np.uint8), axis=-1, opset=13)
case("com.microsoft.QLinearSoftmax", u8(4, 16), S, Z, number(1 / 101.7), number(0, np.uint8), name="scale", axis=-1, opset=13)
case("com.microsoft.QLinearAveragePool", u8(2, 9, 8, 4), S, Z, S2, Z2, name="last", kernel_shape=[3, 2], channels_last=1)
case("com.microsoft.QLinearGlobalAveragePool", u8(2, 7, 5, 16), S, Z, S2, Z2, name="last", channels_last=1)
case("com.microsoft.QLinearConv", u8(2, 9, 8, 6), S, Z, weights7(8, 6, 3, 3), COLUMNS[:8], np.zeros(8, np.int8), SY, ZY, RNG.integers(-900, 900, 8).astype(np.int32),
     name="last", pads=[1, 1, 0, 1], strides=[2, 1], channels_last=1)
case("com.microsoft.QLinearConv", u8(2, 9, 8, 6), S, Z, weights7(6, 1, 3, 3), S2, number(0, np.int8), SY, ZY, name="last-depthwise", group=6, channels_last=1)
case("com.microsoft.NhwcMaxPool", u8(2, 9, 8, 4), kernel_shape=[3, 3], strides=[2, 1], pads=[1, 0, 1, 1])
case("com.microsoft.QLinearAveragePool", u8(2, 4, 9, 9), S, Z, S2, Z2, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
case("com.microsoft.QLinearAveragePool", u8(2, 4, 9, 9), S, Z, SY, ZY, name="pool-counted", kernel_shape=[2, 3], pads=[1, 1, 1, 1], count_include_pad=1)
case("com.microsoft.QLinearGlobalAveragePool", u8(2, 16, 7, 7), S, Z, S2, Z2)
case("com.microsoft.QLinearConcat", SY, ZY, u8(20, 3, 14), S, Z, u8(20, 5, 14), S2, Z2, u8(20, 1, 14), SY, ZY, axis=1)
case("com.microsoft.QLinearWhere", RNG.random((3, 4)) > 0.5, u8(3, 4), S, Z, u8(3, 4), S2, Z2, SY, ZY)
case("com.microsoft.QGemm", u8(5, 24), S, Z, weights7(24, 12), COLUMNS, np.zeros(12, np.int8), RNG.integers(-900, 900, 12).astype(np.int32), SY, ZY)
case("com.microsoft.QGemm", u8(5, 24), S, Z, weights7(12, 24), COLUMNS, np.zeros(12, np.int8), RNG.integers(-900, 900, 12).astype(np.int32), SY, ZY, name="transposed", transB=1)
case("com.microsoft.QGemm", u8(5, 24), S, Z, weights7(24, 12), S2, number(3, np.int8), RNG.integers(-900, 900, 12).astype(np.int32), name="floats", alpha=0.5)
case("com.microsoft.MatMulIntegerToFloat", u8(2, 5, 24), weights7(24, 12), S, COLUMNS, Z, None, f32(12))
case("com.microsoft.MatMulIntegerToFloat", u8(5, 24), u8(24, 12), S, S2, Z, number(131, np.uint8), name="without-bias")
case("com.microsoft.DynamicQuantizeMatMul", f32(2, 5, 24), weights7(24, 12), COLUMNS, None, f32(12))
case("com.microsoft.DynamicQuantizeMatMul", f32(5, 24), u8(24, 12), S2, number(126, np.uint8), name="matmul-zero")
case("com.microsoft.QAttention", u8(2, 6, 16), weights7(16, 48), f32(48), S, S2, None, Z, number(0, np.int8), num_heads=4)
for directions, scales in ((1, 1), (2, 2), (2, 64)):
    each = [directions, 32] if scales == 64 else [directions]
    case("com.microsoft.DynamicQuantizeLSTM", f32(5, 1, 6), weights7(directions, 6, 32), weights7(directions, 8, 32), f32(directions, 64), None, None, None, None,
         (0.002 + 0.001 * RNG.random(each)).astype(np.float32), np.zeros(each, np.int8), (0.002 + 0.001 * RNG.random(each)).astype(np.float32),
         np.zeros(each, np.int8), name=f"{directions}-{scales}", hidden_size=8, direction="forward" if directions == 1 else "bidirectional")
case("com.microsoft.QEmbedLayerNormalization", RNG.integers(0, 9, (2, 5)).astype(np.int32), RNG.integers(0, 2, (2, 5)).astype(np.int32),
     u8(9, 16), u8(7, 16), u8(2, 16), u8(16), u8(16), None, S, S2, S, S2, S, Z, Z2, Z, Z, Z2)


def single(op, inputs, attributes, weights):
    """A network of one node. weights: which inputs are stored; scales and zero points always are."""
    names, fed, stored = [], [], []
    for at, value in enumerate(inputs):
        names.append("" if value is None else f"i{at}")
        if value is None:
            continue
        is_data = value.ndim > 1 and at not in weights
        if is_data:
            fed.append((f"i{at}", value))
        else:
            stored.append(numpy_helper.from_array(value, f"i{at}"))
    outputs = ["y", "kept"] if op.startswith("QEmbed") else ["y"]
    node = helper.make_node(op, names, outputs, name="node", domain=MICROSOFT, **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, TYPES[v.dtype], v.shape) for n, v in fed],
                              [helper.make_empty_tensor_value_info("y")], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)], ir_version=8)
    return model, dict(fed)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_each_operator(tmp_path, name, engine):
    op, inputs, attributes = CASES[name]
    weights = {"QGemm": {3}, "QLinearConv": {3}, "DynamicQuantizeLSTM": {1, 2, 3, 8, 9, 10, 11}, "QAttention": {1}, "QEmbedLayerNormalization": {2, 3, 4}}.get(op, {1} if "MatMul" in op else ())
    model, feeds = single(op, inputs, attributes, weights)
    onnx.save(model, tmp_path / "m.onnx")
    wanted = theirs(tmp_path / "m.onnx", feeds)["y"]
    found = ours(tmp_path, tmp_path / "m.onnx", feeds, engine)["y"]
    if "ynamic" in op or op == "QAttention":
        assert np.abs(found - wanted).max() <= 2e-3 * np.abs(wanted).max()
    else:
        near(found, wanted, 0.02)


# ---- Whole files ----


def convolutions(opset=17):
    rng = np.random.default_rng(3)

    def w(*shape):
        return (0.2 * rng.standard_t(4, size=shape)).astype(np.float32)

    stored = {"w1": w(16, 3, 3, 3), "b1": w(16), "w2": w(32, 16, 3, 3), "b2": w(32), "w3": w(32, 32, 1, 1), "w4": w(32, 1, 3, 3),
              "g1": w(32, 16), "c1": w(16), "m2": w(16, 8), "shape": np.array([-1, 32], np.int64)}
    node = helper.make_node
    nodes = [node("Conv", ["x", "w1", "b1"], ["a1"], name="conv1", pads=[1] * 4), node("Relu", ["a1"], ["r1"], name="relu1"),
             node("MaxPool", ["r1"], ["p1"], name="pool1", kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["p1", "w2", "b2"], ["a2"], name="conv2", pads=[1] * 4), node("LeakyRelu", ["a2"], ["r2"], name="leaky", alpha=0.1),
             node("Conv", ["r2", "w3"], ["a3"], name="conv3"), node("Sigmoid", ["a3"], ["g"], name="gate"), node("Mul", ["a3", "g"], ["sw"], name="swish"),
             node("Conv", ["sw", "w4"], ["a4"], name="depthwise", pads=[1] * 4, group=32), node("Add", ["a4", "r2"], ["s"], name="add"),
             node("Concat", ["s", "a4"], ["cc"], name="concat", axis=1), node("Split", ["cc"], ["h0", "h1"], name="split", axis=1),
             node("AveragePool", ["h0"], ["ap"], name="average", kernel_shape=[2, 2], strides=[2, 2]),
             node("Transpose", ["ap"], ["tr"], name="transpose", perm=[0, 1, 3, 2]),
             node("GlobalAveragePool", ["tr"], ["gp"], name="global"), node("Reshape", ["gp", "shape"], ["f"], name="reshape"),
             node("Gemm", ["f", "g1", "c1"], ["h"], name="gemm"), node("Relu", ["h"], ["hr"], name="relu5"),
             node("MatMul", ["hr", "m2"], ["k"], name="matmul"), node("Softmax", ["k"], ["y"], name="softmax", axis=-1)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 12, 12])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
                              [numpy_helper.from_array(value, name) for name, value in stored.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def tokens(opset=17):
    """Embedding, attention of two heads, a product with a bias, an LSTM of none: what transformers have."""
    rng = np.random.default_rng(5)

    def w(*shape):
        return (0.3 * rng.normal(size=shape)).astype(np.float32)

    stored = {"e": w(50, 32), "q": w(32, 32), "k": w(32, 32), "v": w(32, 32), "bq": w(32), "bv": w(32), "o": w(32, 32), "f1": w(32, 64),
              "fb": w(64), "f2": w(64, 32), "n1": 1 + w(32), "n2": w(32), "half": np.float32(0.25), "heads": np.array([0, 0, 2, 16], np.int64),
              "flat": np.array([0, 0, 32], np.int64)}
    node = helper.make_node
    nodes = [node("Gather", ["e", "ids"], ["x"], name="embed")]
    for kind in "qkv":
        nodes += [node("MatMul", ["x", kind], [f"{kind}0"], name=f"to_{kind}")]
        if kind != "k":
            nodes += [node("Add", [f"{kind}0", f"b{kind}"], [f"{kind}1"], name=f"bias_{kind}")]
        nodes += [node("Reshape", [f"{kind}{0 if kind == 'k' else 1}", "heads"], [f"{kind}2"], name=f"heads_{kind}"),
                  node("Transpose", [f"{kind}2"], [f"{kind}3"], name=f"turn_{kind}", perm=[0, 2, 3, 1] if kind == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", ["q3", "k3"], ["sc"], name="scores"), node("Mul", ["sc", "half"], ["ss"], name="scale"),
              node("Softmax", ["ss"], ["p"], name="softmax", axis=-1), node("MatMul", ["p", "v3"], ["a"], name="mix"),
              node("Transpose", ["a"], ["at"], name="back", perm=[0, 2, 1, 3]), node("Reshape", ["at", "flat"], ["ar"], name="flat_heads"),
              node("MatMul", ["ar", "o"], ["ao"], name="out"), node("Add", ["ao", "x"], ["r"], name="residual"),
              node("LayerNormalization", ["r", "n1", "n2"], ["l"], name="norm", axis=-1), node("MatMul", ["l", "f1"], ["h"], name="wide"),
              node("Add", ["h", "fb"], ["hb"], name="wide_bias"), node("Relu", ["hb"], ["hr"], name="relu"),
              node("MatMul", ["hr", "f2"], ["y"], name="narrow")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", "T"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "T", 32])],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


class Reader(quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


IMAGES = np.random.default_rng(0).normal(size=(16, 3, 12, 12)).astype(np.float32)
IDS = np.random.default_rng(1).integers(0, 50, (3, 9))


def quantize(tmp_path, kind):
    made = tmp_path / f"{kind}.onnx"
    if kind.startswith("dynamic"):
        onnx.save(tokens(), tmp_path / "f.onnx")
        quantization.quantize_dynamic(tmp_path / "f.onnx", made, per_channel="channel" in kind, reduce_range=True,
                                      weight_type=quantization.QuantType.QUInt8 if "unsigned" in kind else quantization.QuantType.QInt8)
        return made, {"ids": IDS}
    onnx.save(convolutions(), tmp_path / "f.onnx")
    signed = quantization.QuantType.QInt8
    quantization.quantize_static(tmp_path / "f.onnx", made, Reader([{"x": IMAGES[at:at + 1]} for at in range(8)]),
                                 quant_format=quantization.QuantFormat.QDQ if "qdq" in kind else quantization.QuantFormat.QOperator,
                                 per_channel="channel" in kind, weight_type=signed, reduce_range=True,
                                 activation_type=signed if "signed" in kind else quantization.QuantType.QUInt8)
    return made, {"x": IMAGES}


KINDS = ("operators", "operators-channel", "operators-signed", "qdq", "qdq-channel", "dynamic", "dynamic-channel", "dynamic-unsigned")


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_the_quantizer(tmp_path, kind):
    path, feeds = quantize(tmp_path, kind)
    wanted = theirs(path, feeds)["y"]
    for engine in ENGINES:
        found = ours(tmp_path, path, feeds, engine)["y"]
        # a sum that is halfway moves what follows by one unit of 1/256 here, and by a hundredth of the range there
        assert np.abs(found - wanted).max() <= 0.03 * np.abs(wanted).max(), engine
        assert np.abs(found - wanted).mean() <= 0.004 * np.abs(wanted).max(), engine
    lacuna("prune", path, "-o", tmp_path / "p.onnx", "--force", "-q",)
    lacuna("check", tmp_path / "p.onnx", "-q")
    found = ours(tmp_path, tmp_path / "p.onnx", feeds, "cpu")["y"]
    wanted = theirs(tmp_path / "p.onnx", feeds)["y"]
    assert np.abs(found - wanted).max() <= 0.05 * np.abs(wanted).max()


@pytest.mark.parametrize("level", ("EXTENDED", "ALL"))
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_the_optimizer(tmp_path, kind, level):
    """The same after ONNX Runtime's optimizer: DynamicQuantizeMatMul, MatMulIntegerToFloat, QLinearConv with fused functions, on channels as the
    last axis."""
    path, feeds = quantize(tmp_path, kind)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.__members__[f"ORT_ENABLE_{level}"]
    options.optimized_model_filepath = str(tmp_path / "o.onnx")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    wanted = theirs(tmp_path / "o.onnx", feeds)["y"]
    for engine in ENGINES:
        found = ours(tmp_path, tmp_path / "o.onnx", feeds, engine)["y"]
        assert np.abs(found - wanted).max() <= 0.08 * np.abs(wanted).max(), engine
