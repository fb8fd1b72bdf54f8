# SPDX-License-Identifier: Apache-2.0
"""`prune --quantize dynamic-int8`: what is written, held to ONNX Runtime.

The outputs of both engines are ONNX Runtime's without graph optimizations; with them, it recognizes the products of integers.
"""
import collections
import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from exact import exact_session
from test_quantized import FLOATS, lacuna, session, stored_of

quantization = pytest.importorskip("onnxruntime.quantization")

DYNAMIC = ("--no-calibration", "--no-permute", "-q", "--quantize", "dynamic-int8")


def network(opset=17, constants=False, ir_version=8):
    """Products of every form: three of one value, a shared weight, Gemm in all forms, what stays in floats."""
    rng = np.random.default_rng(5)

    def w(*shape):
        return (0.2 * rng.standard_t(4, size=shape)).astype(np.float32)

    stored = {"q": w(32, 32), "k": w(32, 32), "v": w(32, 32), "bv": w(32), "o": w(32, 48), "g": w(64, 48), "c": w(64), "h": w(64, 16),
              "t": w(16, 64), "row": w(1, 64), "left": w(16, 6), "flat": np.array([-1, 48], np.int64), "last": w(64, 8)}
    node = helper.make_node
    nodes = [node("MatMul", ["x", "q"], ["xq"], name="query"), node("MatMul", ["x", "k"], ["xk"], name="key"),
             node("MatMul", ["x", "v"], ["xv"], name="value"), node("Add", ["xv", "bv"], ["xb"], name="bias"),
             node("Transpose", ["xk"], ["kt"], name="transpose", perm=[0, 2, 1]), node("MatMul", ["xq", "kt"], ["s"], name="scores"),
             node("Softmax", ["s"], ["p"], name="softmax", axis=-1), node("MatMul", ["p", "xb"], ["m"], name="mix"),
             node("MatMul", ["m", "q"], ["again"], name="shared"), node("Relu", ["again"], ["r"], name="relu"),
             node("MatMul", ["r", "o"], ["y0"], name="output"), node("Reshape", ["y0", "flat"], ["f"], name="reshape"),
             node("Gemm", ["f", "g", "c"], ["g1"], name="biased", transB=1), node("Gemm", ["g1", "h"], ["g2"], name="plain"),
             node("Gemm", ["g2", "t", "row"], ["g3"], name="row"), node("Gemm", ["g3", "h"], ["g4"], name="same"),
             node("Gemm", ["g4", "t"], ["g5"], name="scaled", alpha=0.5), node("Relu", ["g5"], ["g6"], name="relu2"),
             node("Gemm", ["g6", "last"], ["y1"], name="last"), node("MatMul", ["left", "m"], ["y2"], name="first")]
    tensors = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6, 32])]
    if ir_version < 4:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors]
    if constants:
        nodes = [node("Constant", [], [tensor.name], value=tensor) for tensor in tensors] + nodes
        tensors = []
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
               for name, shape in {"y0": ["N", 6, 48], "y1": ["M", 8], "y2": ["N", 16, 32]}.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    onnx.checker.check_model(model, full_check=True)
    return model


QUANTIZED = ["query", "key", "value", "shared", "output", "biased", "plain", "row", "same", "last"]
IN_FLOATS = {"scaled": "alpha or beta", "first": "first factor"}


def write(folder, model, *words, name="q.onnx"):
    onnx.save(model, str(folder / "f.onnx"))
    lacuna("prune", folder / "f.onnx", "-o", folder / name, *DYNAMIC, *words)
    made = onnx.load(str(folder / name))
    onnx.checker.check_model(made, full_check=True)
    return made


def inputs(n=3):
    return np.random.default_rng(n).normal(size=(n, 6, 32)).astype(np.float32)


def infer(path, engine, x, *words):
    np.save(path.parent / "x.npy", x)
    lacuna("infer", path, "--engine", engine, "-o", path.parent / engine, "--force", "-q", "--input", f"x={path.parent / 'x.npy'}", *words)
    return [np.load(path.parent / engine / f"{name}.npy") for name in ("y0", "y1", "y2")]


FORMS = {"opset 17": {}, "opset 11": {"opset": 11}, "opset 21": {"opset": 21, "ir_version": 10}, "constants": {"constants": True},
         "IR 3": {"opset": 11, "ir_version": 3}}


@pytest.mark.parametrize("form", FORMS)
def test_outputs_are_onnx_runtimes(tmp_path, form):
    model = network(**FORMS[form])
    made = write(tmp_path, model)
    assert made.opset_import[0].version == model.opset_import[0].version
    x = inputs()
    wanted = exact_session(tmp_path / "q.onnx").run(["y0", "y1", "y2"], {"x": x})
    floats = session(tmp_path / "f.onnx").run(["y0", "y1", "y2"], {"x": x})
    for engine in ("plain", "cpu"):
        for found, y in zip(infer(tmp_path / "q.onnx", engine, x), wanted):
            assert np.abs(found - y).max() <= 2e-3 * np.abs(y).max()
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "p.onnx", "--no-calibration", "--no-permute", "-q")
    pruned = session(tmp_path / "p.onnx").run(["y0", "y1", "y2"], {"x": x})
    for y, z, f in zip(wanted, pruned, floats):
        assert np.square(y - z).sum() < 2e-3 * np.square(z).sum() < np.square(f - z).sum()


def random_network(seed):
    """A chain of products, by MatMul and Gemm, of odd sizes, with shared data and shared weights; data of one to four axes."""
    rng = np.random.default_rng(seed)
    first = [int(size) for size in rng.integers(1, 6, rng.integers(0, 4))] + [int(rng.integers(1, 70))]
    shape, value, nodes, stored, n_layers = list(first), "x", [], {}, 0
    for at in range(int(rng.integers(2, 6))):
        n, k, y = int(rng.integers(1, 80)), shape[-1], f"v{at}"
        stored[f"w{at}"] = (rng.standard_t(4, size=(k, n)) * rng.choice([1e-3, 0.3, 50])).astype(np.float32)
        stored[f"c{at}"] = rng.normal(size=n).astype(np.float32)
        kind = rng.integers(0, 3 if len(shape) == 2 else 2)
        if kind == 0:
            nodes.append(helper.make_node("MatMul", [value, f"w{at}"], [y]))
        elif kind == 1:
            nodes += [helper.make_node("MatMul", [value, f"w{at}"], [f"{y}_{side}"]) for side in "ab"]
            nodes.append(helper.make_node("Sum", [f"{y}_a", f"{y}_b", f"c{at}"], [y]))
        else:
            transposed = int(rng.integers(0, 2))
            stored[f"w{at}"] = stored[f"w{at}"].T.copy() if transposed else stored[f"w{at}"]
            nodes.append(helper.make_node("Gemm", [value, f"w{at}", f"c{at}"][:int(rng.integers(2, 4))], [y], transB=transposed))
        n_layers += 2 if kind == 1 else 1
        value, shape = y, shape[:-1] + [n]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, first)],
                              [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(array, name) for name, array in stored.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", int(rng.choice([11, 13, 17, 20])))], ir_version=8), n_layers


@pytest.mark.parametrize("seed", range(16))
def test_random_networks(tmp_path, seed):
    model, n_layers = random_network(seed)
    made = write(tmp_path, model, "--all-sizes")
    assert sum(node.op_type == "MatMulInteger" for node in made.graph.node) == n_layers
    shape = [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    wanted = exact_session(tmp_path / "q.onnx").run(None, {"x": x})[0]
    for engine in ("plain", "cpu"):
        lacuna("infer", tmp_path / "q.onnx", "--engine", engine, "-o", tmp_path / engine, "-q", "--input", f"x={tmp_path / 'x.npy'}")
        found = np.load(tmp_path / engine / f"{model.graph.output[0].name}.npy")
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-3 * np.abs(wanted).max())


def test_which_layers(tmp_path):
    made = write(tmp_path, network(), "--json", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())["quantisation"]
    assert report["format"] == "dynamic-int8" and report["range"] is None and report["values"] == [] and report["samples"] == 0
    assert report["outputs_error"] is None and report["reason"] == "there are no samples"
    assert [layer["name"] for layer in report["layers"] if layer["quantised"]] == QUANTIZED
    for layer in report["layers"]:
        assert layer["quantised"] or IN_FLOATS[layer["name"]] in layer["reason"]
        assert not layer["quantised"] or (0 < layer["scale_low"] <= layer["scale_high"] and layer["weight_error"] < 1e-3)
    types = collections.Counter(node.op_type for node in made.graph.node)
    assert types["MatMulInteger"] == len(QUANTIZED) and types["Gemm"] == 1 and types["MatMul"] == 3 and types["Add"] == 3
    read = [node.input[0] for node in made.graph.node if node.op_type == "DynamicQuantizeLinear"]
    assert len(read) == len(set(read)) == 8  # query, key and value read the same
    assert sum(name.endswith("_quantized") for name in stored_of(made)) == 8  # q and h are stored once
    assert not {"q", "k", "g"} & set(stored_of(made)) and {"t", "left"} <= set(stored_of(made))


def test_pruned_weights_are_zero(tmp_path):
    tensors = stored_of(write(tmp_path, network()))
    for name, value in tensors.items():
        if name.endswith("_quantized") and value.shape[0] % 16 == 0:
            kept = np.count_nonzero(value.reshape(-1, 4, value.shape[1]), axis=1)
            assert kept.max() <= 2, name
            assert not tensors[name.replace("_quantized", "_zero_point")].any()
    lacuna("check", tmp_path / "q.onnx", "-q")


def test_integers_are_those_of_quantize_dynamic(tmp_path):
    """Scales and integers of weights are ONNX Runtime's, where it quantizes the same layers."""
    onnx.save(network(), str(tmp_path / "f.onnx"))
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "p.onnx", "--no-calibration", "--no-permute", "-q")
    ours = stored_of(write(tmp_path, network()))
    quantization.quantize_dynamic(tmp_path / "p.onnx", tmp_path / "ort.onnx", per_channel=True, weight_type=quantization.QuantType.QInt8)
    theirs = stored_of(onnx.load(str(tmp_path / "ort.onnx")))
    for name in ("q", "k", "v", "o", "h", "last"):
        np.testing.assert_allclose(ours[name + "_scale"], theirs[name + "_scale"], rtol=1e-6)
        assert np.abs(ours[name + "_quantized"].astype(int) - theirs[name + "_quantized"]).max() <= 1


def test_onnx_runtime_fuses(tmp_path):
    write(tmp_path, network())
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(str(tmp_path / "q.onnx"), options, providers=["CPUExecutionProvider"])
    types = collections.Counter(node.op_type for node in onnx.load(str(tmp_path / "fused.onnx")).graph.node)
    assert types["DynamicQuantizeMatMul"] + types["MatMulIntegerToFloat"] == len(QUANTIZED) and not types["MatMulInteger"]


def test_engine_multiplies_integers(tmp_path):
    write(tmp_path, network())
    lacuna("bench", tmp_path / "q.onnx", "--runs", 1, "--json", tmp_path / "b.json", "-q")
    text = (tmp_path / "b.json").read_text()
    assert "DynamicSteps" in text and "MatMulInteger" not in text


def test_files_do_not_depend_on_threads(tmp_path):
    for threads in (1, 2):
        write(tmp_path, network(), "--threads", threads, name=f"{threads}.onnx")
    assert (tmp_path / "1.onnx").read_bytes() == (tmp_path / "2.onnx").read_bytes()


def test_outputs_are_compared_on_samples(tmp_path):
    onnx.save(network(), str(tmp_path / "f.onnx"))
    np.save(tmp_path / "data.npy", inputs(64))
    words = ["prune", tmp_path / "f.onnx", *FLOATS, "--calibration", tmp_path / "data.npy", "--quantize", "dynamic-int8"]
    lacuna(*words, "-o", tmp_path / "q.onnx", "--json", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())["quantisation"]
    assert report["reason"] is None and 0 < report["outputs_error"] < 5e-3 and report["held_back"] == 8


def test_a_limit_leaves_the_worst_in_floats(tmp_path):
    """The second layer's data have one element of a thousand times the others' size, which takes all of their integers."""
    rng = np.random.default_rng(6)
    spread = np.ones(32, np.float32)
    spread[3] = 1000
    weight = rng.normal(size=(32, 10)).astype(np.float32)
    tensors = [numpy_helper.from_array(value, name) for name, value in
               {"a": rng.normal(size=(32, 32)).astype(np.float32), "spread": spread, "b": weight / spread[:, None]}.items()]
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"], name="even"), helper.make_node("Mul", ["h", "spread"], ["m"], name="mul"),
             helper.make_node("MatMul", ["m", "b"], ["y"], name="uneven")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "f.onnx"))
    np.save(tmp_path / "data.npy", rng.normal(size=(2048, 32)).astype(np.float32))
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *FLOATS, "--calibration", tmp_path / "data.npy",
           "--calibration-samples", 2048, "--quantize", "dynamic-int8", "--max-drop", 20, "--json", tmp_path / "r.json")
    even, uneven = json.loads((tmp_path / "r.json").read_text())["quantisation"]["layers"]
    assert even["quantised"] and not uneven["quantised"] and "the loss is limited" in uneven["reason"]


@pytest.mark.parametrize("words, text", [
    (("--quantize", "dynamic-int8", "--quantize-range", "mse"), "--quantize-range: it goes with --quantize qdq-int8"),
    (("--quantize", "dynamic-int8", "--quantize-activations", "int8"), "--quantize-activations: it goes with --quantize qdq-int8"),
    (("--quantize", "dynamic-int4"), "--quantize dynamic-int4: wanted qdq-int8|dynamic-int8")])
def test_misuse(tmp_path, words, text):
    onnx.save(network(), str(tmp_path / "f.onnx"))
    assert text in lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", "--no-calibration", *words, code=2)
    assert not (tmp_path / "q.onnx").exists()


def test_what_cannot_be_quantized(tmp_path):
    write(tmp_path, network())
    said = lacuna("prune", tmp_path / "q.onnx", "-o", tmp_path / "again.onnx", *DYNAMIC, code=1)
    assert "the network is quantized already" in said
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])
    weight = numpy_helper.from_array(np.ones((16, 8), np.float32), "w")
    old = helper.make_model(helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weight]),
                            opset_imports=[helper.make_opsetid("", 10)], ir_version=6)
    onnx.save(old, str(tmp_path / "old.onnx"))
    said = lacuna("prune", tmp_path / "old.onnx", "-o", tmp_path / "again.onnx", *DYNAMIC, code=1)
    assert "opset 10 of ai.onnx has no DynamicQuantizeLinear; wanted 11 or later" in said
    assert not (tmp_path / "again.onnx").exists()
