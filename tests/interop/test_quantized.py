# SPDX-License-Identifier: Apache-2.0
"""Quantized networks: what `prune --quantize` writes, and what others quantized, held to ONNX Runtime and NumPy.

A written file is cut at every QuantizeLinear: each part gets the integers that ONNX Runtime found, without graph
optimizations, and both of our engines must give its next integers to one unit. Whole runs would not do: where a sum is
halfway, one unit's difference grows from layer to layer.
"""
import json
import logging
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
FLOATS = ("--score", "magnitude", "--no-solve", "--no-permute", "-q")


def lacuna(*words, code=0):
    done = subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def network(norm=True, opset=17, constants=False):
    """Convolutions with and without batch normalization, a sum, a pad, a grouped one, Gemm, MatMul."""
    rng = np.random.default_rng(3)

    def w(*shape, mean=0.0):
        return (0.2 * rng.standard_t(4, size=shape) + mean).astype(np.float32)

    stored = {"w1": w(32, 3, 3, 3), "w2": w(64, 32, 3, 3, mean=0.05), "b2": w(64), "w3": w(64, 64, 1, 1), "w4": w(64, 16, 3, 3),
              "b4": w(64), "g1": w(32, 64, mean=0.03), "c1": w(32), "m2": w(32, 16), "m3": w(16, 8),
              "n1": w(32, mean=1), "n2": w(32), "n3": w(32), "n4": np.abs(w(32)) + 0.5,
              "pads": np.array([0, 0, 1, 1, 0, 0, 0, 0], np.int64)}
    node = helper.make_node
    first = [node("Conv", ["x", "w1"], ["a0"], name="conv1", pads=[1] * 4)]
    first += [node("BatchNormalization", ["a0", "n1", "n2", "n3", "n4"], ["a1"], name="norm")] if norm else \
        [node("Identity", ["a0"], ["a1"], name="same")]
    nodes = [*first, node("Relu", ["a1"], ["r1"], name="relu1"),
             node("Conv", ["r1", "w2", "b2"], ["a2"], name="conv2", pads=[1] * 4, strides=[2, 2]),
             node("Relu", ["a2"], ["r2"], name="relu2"), node("Conv", ["r2", "w3"], ["a3"], name="conv3"),
             node("Clip", ["a3", "low", "high"], ["r3"], name="clip3"),
             node("Conv", ["r3", "w4", "b4"], ["a4"], name="conv4", pads=[1] * 4, group=4),
             node("Add", ["a4", "r2"], ["s"], name="add"), node("Pad", ["s", "pads"], ["p0"], name="pad"),
             node("MaxPool", ["p0"], ["p1"], name="pool", kernel_shape=[2, 2]), node("GlobalAveragePool", ["p1"], ["p2"], name="gap"),
             node("Flatten", ["p2"], ["f"], name="flat"), node("Gemm", ["f", "g1", "c1"], ["h"], name="gemm", transB=1),
             node("Relu", ["h"], ["hr"], name="relu5"), node("MatMul", ["hr", "m2"], ["k"], name="matmul1"),
             node("Sigmoid", ["k"], ["ks"], name="sigmoid"), node("MatMul", ["ks", "m3"], ["y"], name="matmul2")]
    stored["low"], stored["high"] = np.float32(0), np.float32(6)
    if not norm:
        stored = {name: value for name, value in stored.items() if name[0] != "n"}
    tensors = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    if constants:
        nodes = [node("Constant", [], [tensor.name], value=tensor) for tensor in tensors] + nodes
        tensors = []
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 12, 12])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def images(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3, 12, 12)).astype(np.float32)


@pytest.fixture(name="data")
def made_data(tmp_path):
    np.save(tmp_path / "data.npy", images(64))
    return tmp_path / "data.npy"


def stored_of(model):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def integers_of(model, path, feed):
    """Every value that a QuantizeLinear makes, by ONNX Runtime."""
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    names = {node.output[0]: types[node.input[2]] for node in whole.graph.node if node.op_type == "QuantizeLinear"}
    del whole.graph.output[:]
    whole.graph.output.extend(helper.make_tensor_value_info(name, dtype, None) for name, dtype in names.items())
    onnx.save(whole, str(path))
    return dict(zip(names, session(path).run(list(names), feed))), names


def differences(model, folder, engine, feed):
    """How far each part's integers are from ONNX Runtime's, all in one list."""
    found, types = integers_of(model, folder / "whole.onnx", feed)
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    for node in cut.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in found:
            node.input[0] = "cut_" + node.input[0]
    del cut.graph.output[:]
    words = []
    for name, value in [*feed.items(), *(("cut_" + name, value) for name, value in found.items())]:
        np.save(folder / f"{len(words)}.npy", value)
        words += ["--input", f"{name}={folder / f'{len(words)}.npy'}"]
    for name, dtype in types.items():
        cut.graph.input.append(helper.make_tensor_value_info("cut_" + name, dtype, found[name].shape))
        cut.graph.output.append(helper.make_tensor_value_info(name, dtype, None))
    onnx.save(cut, str(folder / "cut.onnx"))
    lacuna("infer", folder / "cut.onnx", "--engine", engine, "-o", folder / engine, "--force", "-q", *words)
    away = [np.abs(np.load(folder / engine / f"{name}.npy").astype(int) - value.astype(int)).ravel() for name, value in found.items()]
    return np.concatenate(away)


@pytest.mark.parametrize("engine", ["plain", "cpu"])
@pytest.mark.parametrize("kind", ["norm", "constants", "int8"])
def test_integers_are_onnx_runtimes(tmp_path, data, kind, engine):
    onnx.save(network(constants=kind == "constants"), str(tmp_path / "f.onnx"))
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *FLOATS, "--calibration", data, "--quantize", "qdq-int8",
           "--quantize-activations", "int8" if kind == "int8" else "uint8")
    away = differences(onnx.load(str(tmp_path / "q.onnx")), tmp_path, engine, {"x": images(4, seed=9)})
    assert away.size > 10000 and away.max() <= 1
    assert np.count_nonzero(away) <= away.size / 1000


@pytest.mark.parametrize("rule", ["mse", "percentile", "minmax"])
def test_file_is_what_was_asked_for(tmp_path, data, rule):
    onnx.save(network(), str(tmp_path / "f.onnx"))
    words = ["prune", tmp_path / "f.onnx", *FLOATS, "--calibration", data]
    lacuna(*words, "-o", tmp_path / "p.onnx")
    lacuna(*words, "-o", tmp_path / "q.onnx", "--quantize", "qdq-int8", "--quantize-range", rule,
           "--quantize-activations", "uint8", "--json", tmp_path / "q.json")
    lacuna("check", tmp_path / "q.onnx")
    floats, integers = onnx.load(str(tmp_path / "p.onnx")), onnx.load(str(tmp_path / "q.onnx"))
    onnx.checker.check_model(integers, full_check=True)
    names = [name for node in integers.graph.node for name in [*node.output, node.name]]
    assert len(names) == len(set(names))
    assert [v.name for v in integers.graph.output] == ["y"] and integers.opset_import == floats.opset_import
    old, new = stored_of(floats), stored_of(integers)
    report = json.loads((tmp_path / "q.json").read_text())["quantisation"]
    fitted = {layer["weight"]: layer["weight_fitted"] for layer in report["layers"]}
    assert not {"w1", "w2", "w3", "w4", "g1", "m2", "m3", "n1"} & set(new)  # nobody reads the floats any more
    for name, axis in [("w2", 0), ("w3", 0), ("w4", 0), ("g1", 0), ("m2", 1), ("m3", 1)]:
        w, q, scale = old[name].astype(float), new[name + "_quantized"], new[name + "_scale"]
        assert q.dtype == np.int8 and scale.shape == (w.shape[axis],) and not new[name + "_zero_point"].any()
        others = tuple(a for a in range(w.ndim) if a != axis)
        wide = scale.astype(float).reshape([-1 if a == axis else 1 for a in range(w.ndim)])
        assert np.allclose(scale, np.abs(w).max(axis=others) / 127, rtol=1e-6)
        nearest = np.clip(np.rint(w / wide), -127, 127)
        assert np.array_equal(q, nearest) or fitted[name] and np.abs(q - nearest).max() < 20 and np.abs(q - nearest).mean() < 1
        assert not q[w == 0].any()
    factor = old["n1"].astype(float) / np.sqrt(old["n4"].astype(float) + 1e-5)
    folded, bias = old["w1"] * factor[:, None, None, None], old["n2"] - old["n3"] * factor
    assert np.allclose(new["w1_scale"], np.abs(folded).max(axis=(1, 2, 3)) / 127, rtol=1e-6)
    scales = {value["name"]: value for value in report["values"]}
    corrected = {layer["weight"]: layer["bias_corrected"] for layer in report["layers"]}
    for name, value, data_name, weight in [("w1_bias", bias, "x", "w1"), ("b2", old["b2"], "r1", "w2"), ("c1", old["c1"], "p2", "g1")]:
        assert np.array_equal(new[name + "_scale"], new[data_name + "_scale"] * new[weight + "_scale"])
        moved = np.abs(new[name + "_quantized"] * new[name + "_scale"].astype(float) - value).max()
        assert moved <= new[name + "_scale"].max() or corrected[weight] and moved < 1
    assert report["range"] == rule and all(layer["quantised"] for layer in report["layers"]) and len(report["layers"]) == 7
    assert [layer["norm_folded"] for layer in report["layers"]] == [True] + 6 * [False]
    for name, value in scales.items():
        assert np.float32(value["scale"]) == new[name + "_scale"] and value["zero_point"] == new[name + "_zero_point"]
        reach = (255 - value["zero_point"]) * value["scale"]
        assert rule != "minmax" or abs(reach - value["high"]) <= value["scale"]
    assert not {"p0", "p1", "f"} & set(scales)  # elements that are moved keep their scale
    assert report["outputs_error"] < 0.02


def with_added_vectors(model):
    """The network with an Add of a vector after each MatMul."""
    for at, name in enumerate(("matmul1", "matmul2")):
        index, node = next((index, node) for index, node in enumerate(model.graph.node) if node.name == name)
        vector = np.linspace(-1, 1, (16, 8)[at], dtype=np.float32)
        model.graph.initializer.append(numpy_helper.from_array(vector, f"v{at}"))
        add = helper.make_node("Add", [[f"v{at}", "product"], ["product1", f"v{at}"]][at], [node.output[0]], name=f"vector{at}")
        node.output[0] = add.input[1 - at]
        model.graph.node.insert(index + 1, add)
    onnx.checker.check_model(model, full_check=True)
    return model


def means_of(path, names, feed):
    """The mean of each channel of these values, by ONNX Runtime as the file says."""
    whole = onnx.shape_inference.infer_shapes(onnx.load(str(path)))
    known = {value.name: value for value in [*whole.graph.value_info, *whole.graph.output]}
    del whole.graph.output[:]
    whole.graph.output.extend(known.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    whole_path = path.with_suffix(".whole.onnx")
    onnx.save(whole, str(whole_path))
    found = session(whole_path).run(list(names), feed)
    return [y.astype(float).mean(axis=tuple(axis for axis in range(y.ndim) if axis != 1)) for y in found]


def test_biases_take_up_the_mean_errors(tmp_path):
    """Of each channel of each layer's outputs, in the inputs that the layer has after those before it were corrected."""
    np.save(tmp_path / "data.npy", images(128))
    onnx.save(with_added_vectors(network()), str(tmp_path / "f.onnx"))
    words = ["prune", tmp_path / "f.onnx", *FLOATS, "--calibration", tmp_path / "data.npy"]
    lacuna(*words, "-o", tmp_path / "p.onnx")
    lacuna(*words, "-o", tmp_path / "q.onnx", "--quantize", "qdq-int8", "--json", tmp_path / "q.json")
    report = json.loads((tmp_path / "q.json").read_text())["quantisation"]
    after = {"conv1": "a1", "conv2": "a2", "conv3": "a3", "conv4": "a4", "gemm": "h", "matmul1": "k", "matmul2": "y"}
    outputs = [after[layer["name"]] for layer in report["layers"]]
    feed = {"x": images(128)}  # those held back, too, whose means are nearly the same
    floats, integers = (means_of(tmp_path / name, outputs, feed) for name in ("p.onnx", "q.onnx"))
    stored, n = stored_of(onnx.load(str(tmp_path / "q.onnx"))), 0
    for layer, a, b in zip(report["layers"], floats, integers):
        assert layer["output_error"] <= layer["output_error_before"]
        if not layer["bias_corrected"]:
            continue
        step = stored[layer["input"] + "_scale"] * stored[layer["weight"] + "_scale"] if layer["op"] != "MatMul" else 0
        assert np.all(np.abs(a - b) <= 0.51 * step + 3e-3 * np.abs(a).max()), layer
        n += 1
    assert n == report["corrected"] >= 5
    assert {"v0_corrected", "v1_corrected"} & set(stored)


def test_runtime_finds_integer_kernels(tmp_path, data):
    onnx.save(network(), str(tmp_path / "f.onnx"))
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *FLOATS, "--calibration", data, "--quantize", "qdq-int8")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "fast.onnx")
    onnxruntime.InferenceSession(str(tmp_path / "q.onnx"), options, providers=["CPUExecutionProvider"])
    kinds = [node.op_type for node in onnx.load(str(tmp_path / "fast.onnx")).graph.node]
    assert kinds.count("QLinearConv") == 4 and kinds.count("QLinearAdd") == 1 and "QGemm" in kinds
    assert not {"Conv", "Gemm", "MatMul", "Relu", "Clip"} & set(kinds)


def quantized_values(folder, data, nodes, stored):
    """The names of values that `prune --quantize` quantizes in a network of these nodes."""
    tensors = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 12, 12])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8, "height", "width"])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(folder / "f.onnx"))
    lacuna("prune", folder / "f.onnx", "-o", folder / "q.onnx", *FLOATS, "--calibration", data, "--quantize", "qdq-int8")
    model = onnx.load(str(folder / "q.onnx"))
    onnx.checker.check_model(model, full_check=True)
    return {node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}


@pytest.mark.parametrize("nodes, quantized", [
    # functions of one value are tables, so that the value is read as integers
    ([("Sigmoid", "a", "s"), ("Mul", "a s", "h"), ("Conv", "h v", "y")], {"x", "a", "h"}),
    ([("Mul", "a two", "d"), ("Erf", "d", "e"), ("Add", "e a", "h"), ("Conv", "h v", "y")], {"x", "a", "h"}),
    # sums and moves whose results are read as integers
    ([("Conv", "a v", "b"), ("Add", "a b", "s"), ("MaxPool", "s", "h"), ("Conv", "h v", "y")], {"x", "a", "b", "s", "h"}),
    # squeeze and excitation: a sum, of functions that are tables
    ([("Sigmoid", "a", "s"), ("Mul", "a s", "h"), ("GlobalAveragePool", "h", "p"), ("Conv", "p v", "b"), ("Sigmoid", "b", "g"),
      ("Mul", "h g", "m"), ("Conv", "m v", "y")], {"x", "a", "h", "p", "b", "g", "m"}),
    # nothing reads the result as integers
    ([("Neg", "a", "n"), ("Exp", "n", "y")], {"x"}),
    ([("Conv", "a v", "b"), ("Softmax", "b", "h"), ("Conv", "h v", "y")], {"x", "a", "h"}),
    ([("Conv", "x w", "b"), ("Add", "a b", "s"), ("Abs", "s", "y")], {"x"}),
    ([("Sigmoid", "a", "s"), ("Mul", "s scales", "h"), ("Conv", "h v", "y")], {"x", "h"}),
])
def test_values_that_nothing_reads_as_integers_stay_floats(tmp_path, data, nodes, quantized):
    rng = np.random.default_rng(0)
    stored = {"w": rng.normal(size=(8, 3, 3, 3)), "v": rng.normal(size=(8, 8, 1, 1)), "two": np.array(2), "scales": rng.normal(size=(8, 1, 1))}
    made = [helper.make_node(kind, inputs.split(), [result], **({"kernel_shape": [2, 2]} if kind == "MaxPool" else {}))
            for kind, inputs, result in [("Conv", "x w", "a"), *nodes]]
    stored = {name: value.astype(np.float32) for name, value in stored.items() if any(name in node.input for node in made)}
    assert quantized_values(tmp_path, data, made, stored) == quantized


def test_external_data_keep_what_is_left(tmp_path, data):
    model = network()
    model.graph.initializer.append(numpy_helper.from_array(np.arange(4000, dtype=np.float32), "kept"))
    model.graph.node.append(helper.make_node("ReduceSum", ["kept"], ["total"], name="total", keepdims=0))
    model.graph.output.append(helper.make_tensor_value_info("total", TensorProto.FLOAT, []))
    onnx.save(model, str(tmp_path / "f.onnx"), save_as_external_data=True, location="f.data", size_threshold=256)
    words = [*FLOATS, "--calibration", data, "--quantize", "qdq-int8", "--no-verify"]
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *words)
    assert (tmp_path / "q.data").stat().st_size < (tmp_path / "f.data").stat().st_size / 2
    onnx.checker.check_model(str(tmp_path / "q.onnx"), full_check=True)
    new = stored_of(onnx.load(str(tmp_path / "q.onnx")))
    assert np.array_equal(new["kept"], np.arange(4000))
    onnx.save(network(), str(tmp_path / "g.onnx"))
    lacuna("prune", tmp_path / "g.onnx", "-o", tmp_path / "r.onnx", *words)
    for name, value in stored_of(onnx.load(str(tmp_path / "r.onnx"))).items():
        assert np.array_equal(new[name], value)


def test_same_bytes_for_any_number_of_threads(tmp_path, data):
    onnx.save(network(), str(tmp_path / "f.onnx"))
    for n in (1, 3):
        lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / f"{n}.onnx", *FLOATS, "--calibration", data, "--quantize", "qdq-int8",
               "--threads", n)
    assert (tmp_path / "1.onnx").read_bytes() == (tmp_path / "3.onnx").read_bytes()


def test_written_file_goes_on(tmp_path, data):
    """Pruned again, permuted, run: the file is a network like any other."""
    onnx.save(network(norm=False), str(tmp_path / "f.onnx"))
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *FLOATS, "--calibration", data, "--quantize", "qdq-int8")
    lacuna("prune", "--no-calibration", tmp_path / "q.onnx", "-o", tmp_path / "again.onnx", "--no-permute", "-q")
    assert stored_of(onnx.load(str(tmp_path / "again.onnx"))).keys() == stored_of(onnx.load(str(tmp_path / "q.onnx"))).keys()
    for (name, old), new in zip(stored_of(onnx.load(str(tmp_path / "q.onnx"))).items(),
                                stored_of(onnx.load(str(tmp_path / "again.onnx"))).values()):
        assert np.array_equal(old, new), name
    lacuna("permute", tmp_path / "q.onnx", "-o", tmp_path / "moved.onnx", "-q")
    x = images(3, seed=5)
    for old, new in zip(session(tmp_path / "q.onnx").run(None, {"x": x}), session(tmp_path / "moved.onnx").run(None, {"x": x})):
        assert np.allclose(old, new, atol=1e-3 * np.abs(old).max() + 1e-6)
    lacuna("bench", tmp_path / "q.onnx", "--input-shape", "x=2x3x12x12", "-q")


# ---- What is refused, and what stays ----

def test_data_are_asked_for(tmp_path):
    onnx.save(network(), str(tmp_path / "f.onnx"))
    text = lacuna("prune", "--no-calibration", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", "--quantize", "qdq-int8", code=2)
    assert "--calibration DATA" in text
    text = lacuna("prune", "--no-calibration", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", "--quantize-range", "mse", code=2)
    assert "--quantize qdq-int8" in text
    assert not (tmp_path / "q.onnx").exists()


def change(model, what):
    if what == "opset":
        for node in list(model.graph.node):
            if node.op_type in ("ReduceSum", "Pad"):
                for other in model.graph.node:
                    for at, name in enumerate(other.input):
                        if name == node.output[0]:
                            other.input[at] = node.input[0]
                model.graph.node.remove(node)
        model.opset_import[0].version = 10
    elif what == "f16":
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
        for value in [*model.graph.input, *model.graph.output]:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


@pytest.mark.parametrize("what, text", [("opset", "opset 10"), ("f16", "its weight is not f32"), ("twice", "quantized already")])
def test_network_that_cannot_be(tmp_path, data, what, text):
    onnx.save(change(network(norm=False), what), str(tmp_path / "f.onnx"))
    words = [*FLOATS, "--calibration", data, "--quantize", "qdq-int8"]
    if what == "twice":
        lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "g.onnx", *words)
        (tmp_path / "g.onnx").replace(tmp_path / "f.onnx")
    said = lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *words, code=1)
    assert text in said and said.count("\n") <= 3
    assert not (tmp_path / "q.onnx").exists()


def old_network(opset):
    """Of an opset whose axes and parts are attributes."""
    rng = np.random.default_rng(1)
    stored = [numpy_helper.from_array((rng.normal(size=shape) / 3).astype(np.float32), name)
              for name, shape in (("a", (8, 3, 3, 3)), ("b", (8, 8, 3, 3)), ("c", (4, 5)))]
    nodes = [helper.make_node("Conv", ["x", "a"], ["u"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["u"], ["v"]),
             helper.make_node("Conv", ["v", "b"], ["w"], pads=[1, 1, 1, 1]),
             helper.make_node("ReduceSum", ["w"], ["s"], axes=[3], keepdims=1), helper.make_node("Squeeze", ["s"], ["q"], axes=[3]),
             helper.make_node("Unsqueeze", ["q"], ["r"], axes=[1]), helper.make_node("Squeeze", ["r"], ["t"], axes=[1]),
             helper.make_node("Split", ["t"], ["e", "f"], axis=1, split=[4, 4]), helper.make_node("Add", ["e", "f"], ["g"]),
             helper.make_node("ReduceSum", ["g"], ["h"], axes=[2], keepdims=0), helper.make_node("MatMul", ["h", "c"], ["m"]),
             helper.make_node("Softmax", ["m"], ["y"], axis=1)]
    if opset == 11:
        nodes.insert(-1, helper.make_node("Dropout", ["m"], ["d"], ratio=0.25))
        nodes[-1].input[0] = "d"
    graph = helper.make_graph(nodes, "old", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 12, 12])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


@pytest.mark.parametrize("opset", [11, 12])
def test_older_opsets_are_converted(tmp_path, data, opset):
    onnx.save(old_network(opset), str(tmp_path / "f.onnx"))
    words = ["prune", tmp_path / "f.onnx", *FLOATS, "--calibration", data]
    lacuna(*words, "-o", tmp_path / "p.onnx")
    lacuna(*words, "-o", tmp_path / "q.onnx", "--quantize", "qdq-int8")
    model = onnx.load(str(tmp_path / "q.onnx"))
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 13 and onnx.load(str(tmp_path / "p.onnx")).opset_import[0].version == opset
    feed = {"x": images(8, seed=3)}
    floats, integers = (session(tmp_path / f"{name}.onnx").run(None, feed)[0] for name in "pq")
    assert np.abs(floats - integers).max() < 0.1


def test_constants_that_layers_share_by_identities(tmp_path, data):
    """PyTorch's exporter stores equal tensors once, and writes an Identity of it for each other reader."""
    plain, shared = network(), network()
    for name in ("b2", "n3"):
        first = next(n for n in shared.graph.node if name in n.input)
        first.input[list(first.input).index(name)] = f"{name}_same"
        shared.graph.node.insert(0, helper.make_node("Identity", [name], [f"{name}_same"], name=f"same_{name}"))
    for name, model in (("plain", plain), ("shared", shared)):
        onnx.save(model, tmp_path / f"{name}.onnx")
        lacuna("prune", tmp_path / f"{name}.onnx", "-o", tmp_path / f"{name}-8.onnx", "--calibration", data, "--quantize", "qdq-int8",
               "--json", tmp_path / f"{name}.json", *FLOATS)
    reports = [json.loads((tmp_path / f"{name}.json").read_text())["quantisation"] for name in ("plain", "shared")]
    assert [len(report["layers"]) for report in reports] == [7, 7]
    assert all(layer["reason"] is None for report in reports for layer in report["layers"])
    sessions = [onnxruntime.InferenceSession(tmp_path / f"{name}-8.onnx") for name in ("plain", "shared")]
    outputs = [session.run(None, {"x": images(4, 9)})[0] for session in sessions]
    assert np.array_equal(*outputs)


def test_a_softmax_over_several_axes_is_not_converted(tmp_path, data):
    model = old_network(12)
    model.graph.node[-1].attribute[0].i = 0
    onnx.save(model, str(tmp_path / "f.onnx"))
    said = lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *FLOATS, "--calibration", data, "--quantize", "qdq-int8", code=1)
    assert "is not over the last axis" in said and not (tmp_path / "q.onnx").exists()


def test_values_that_are_zero_stay_floats(tmp_path, data):
    """A convolution whose results a Relu cuts away: what reads them has no scale."""
    model = network(norm=False)
    for tensor in model.graph.initializer:
        if tensor.name == "b2":
            tensor.CopyFrom(numpy_helper.from_array(np.full(64, -1e6, np.float32), "b2"))
    onnx.save(model, str(tmp_path / "f.onnx"))
    lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *FLOATS, "--calibration", data, "--quantize", "qdq-int8", "--json",
           tmp_path / "q.json")
    layers = {layer["name"]: layer for layer in json.loads((tmp_path / "q.json").read_text())["quantisation"]["layers"]}
    assert "0 on all calibration samples" in layers["conv3"]["reason"] and layers["conv2"]["quantised"]
    onnx.checker.check_model(str(tmp_path / "q.onnx"), full_check=True)
    assert np.isfinite(session(tmp_path / "q.onnx").run(None, {"x": images(2)})[0]).all()


def test_values_that_are_not_finite(tmp_path, data):
    model = network(norm=False)
    for tensor in model.graph.initializer:
        if tensor.name == "m3":
            tensor.CopyFrom(numpy_helper.from_array(np.full((16, 8), 3e38, np.float32), "m3"))
    model.graph.node.append(helper.make_node("MatMul", ["y", "m4"], ["z"], name="matmul3"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((8, 4), np.float32), "m4"))
    model.graph.output[0].name = "z"
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4
    onnx.save(model, str(tmp_path / "f.onnx"))
    text = lacuna("prune", tmp_path / "f.onnx", "-o", tmp_path / "q.onnx", *FLOATS, "--no-verify", "--calibration", data, "--quantize",
                  "qdq-int8", code=1)
    assert "value 'y' is NaN or infinite" in text
    assert not (tmp_path / "q.onnx").exists()


# ---- What others quantized ----

class Reader(quantization.CalibrationDataReader):
    """Images for ONNX Runtime's quantizer."""

    def __init__(self):
        self.batches = iter([{"x": images(8, seed)} for seed in range(4)])

    def get_next(self):
        return next(self.batches, None)


KINDS = {
    "qdq s8s8 channel": ("QDQ", "QInt8", "QInt8", True, {}),
    "qdq u8s8 tensor": ("QDQ", "QUInt8", "QInt8", False, {}),
    "qdq u8u8 tensor": ("QDQ", "QUInt8", "QUInt8", False, {}),
    "qdq u8u8 channel": ("QDQ", "QUInt8", "QUInt8", True, {}),
    "qdq s8s8 asymmetric": ("QDQ", "QInt8", "QInt8", True, {"WeightSymmetric": False}),
    "operators u8s8 channel": ("QOperator", "QUInt8", "QInt8", True, {}),
    "operators u8u8 tensor": ("QOperator", "QUInt8", "QUInt8", False, {}),
    "operators s8s8 tensor": ("QOperator", "QInt8", "QInt8", False, {}),
    "dynamic u8": ("dynamic", None, "QUInt8", False, {}),
    "dynamic s8 channel": ("dynamic", None, "QInt8", True, {}),
}


def quantized_by_runtime(kind, path):
    logging.disable(logging.CRITICAL)
    form, activations, weights, per_channel, more = KINDS[kind]
    onnx.save(network(norm=False), str(path.with_suffix(".f.onnx")))
    types = quantization.QuantType
    # Without VNNI, ONNX Runtime's kernels of u8 and s8 saturate in the middle of a sum, so that the order of channels
    # matters: 7 bits do not.
    few = weights == "QInt8"
    if form == "dynamic":
        quantization.quantize_dynamic(str(path.with_suffix(".f.onnx")), str(path), weight_type=getattr(types, weights),
                                      per_channel=per_channel, reduce_range=few, extra_options=more)
        return
    quantization.quantize_static(str(path.with_suffix(".f.onnx")), str(path), Reader(), per_channel=per_channel, reduce_range=few,
                                 quant_format=getattr(quantization.QuantFormat, form), activation_type=getattr(types, activations),
                                 weight_type=getattr(types, weights), extra_options=more)


def zeros_of(model):
    """Weight -> (integers less their zero points, scales), both as large as the weight, and its axis of input channels."""
    stored, found = stored_of(model), {}
    ports = {"DequantizeLinear": (0, 1, 2), "QLinearConv": (3, 4, 5), "QLinearMatMul": (3, 4, 5), "ConvInteger": (1, None, 3),
             "MatMulInteger": (1, None, 3), "QGemm": (3, 4, 5)}
    for node in model.graph.node:
        if node.op_type not in ports or len(node.input) <= ports[node.op_type][2]:
            continue
        name, scale, zero = (None if port is None else node.input[port] for port in ports[node.op_type])
        if name not in stored or stored[name].ndim < 2:
            continue
        q = stored[name].astype(int)
        matrix = "MatMul" in node.op_type or (node.op_type == "QGemm" and not any(a.name == "transB" and a.i for a in node.attribute)) or \
            (node.op_type == "DequantizeLinear" and q.ndim == 2 and name[0] == "m")
        axis = q.ndim - 1 if matrix else 0
        wide = [-1 if a == axis else 1 for a in range(q.ndim)]
        point = stored[zero].astype(int)
        factor = stored[scale].astype(float) if scale else np.ones(1)
        found[name] = (q - (point.reshape(wide) if point.size > 1 else point.reshape([1] * q.ndim)),
                       np.broadcast_to(factor.reshape(wide) if factor.size > 1 else factor.reshape([1] * q.ndim), q.shape),
                       0 if matrix else 1)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_networks_that_the_runtime_quantized(tmp_path, kind):
    quantized_by_runtime(kind, tmp_path / "q.onnx")
    lacuna("permute", tmp_path / "q.onnx", "-o", tmp_path / "moved.onnx", "-q")
    x = images(4, seed=8)
    want, got = (session(tmp_path / name).run(None, {"x": x})[0] for name in ("q.onnx", "moved.onnx"))
    assert np.abs(want - got).max() <= 0.02 * np.abs(want).max()  # a unit here and there
    lacuna("prune", "--no-calibration", tmp_path / "q.onnx", "-o", tmp_path / "p.onnx", "--no-permute", "-q", "--json", tmp_path / "p.json")
    lacuna("check", tmp_path / "p.onnx")
    lacuna("check", tmp_path / "p.onnx", "--against", tmp_path / "q.onnx")
    layers = {layer["weight"]: layer for layer in json.loads((tmp_path / "p.json").read_text())["layers"]}
    old, new = zeros_of(onnx.load(str(tmp_path / "q.onnx"))), zeros_of(onnx.load(str(tmp_path / "p.onnx")))
    pruned = [name for name, layer in layers.items() if layer["pruned"]]
    assert len(pruned) >= 4
    for name in pruned:
        distance, scale, axis = old[name]
        rows = np.moveaxis(np.abs(distance) * scale, axis, -1)
        rows = rows.reshape(-1, rows.shape[-1] // 4, 4)
        left = np.moveaxis(new[name][0], axis, -1).reshape(rows.shape)
        assert np.count_nonzero(left, axis=2).max() <= 2
        best = np.sort(rows, axis=2)[:, :, 2:].sum()
        assert np.isclose(np.where(left != 0, rows, 0).sum(), best, rtol=1e-9)
        assert np.isclose(layers[name]["kept"], best, rtol=1e-6)
        assert np.array_equal(new[name][0], np.where(new[name][0] != 0, distance, 0))


LAYERS_OF_INT8 = {"qdq s8s8 channel": 4, "qdq u8s8 tensor": 4, "qdq u8u8 tensor": 0, "qdq u8u8 channel": 0, "qdq s8s8 asymmetric": 0}


@pytest.mark.parametrize("n", [1, 3, 16])
@pytest.mark.parametrize("kind", ["written", *LAYERS_OF_INT8])
def test_layers_of_int8(tmp_path, data, kind, n, monkeypatch):
    """By sparse kernels alone, whose integers are exact, whether the processor has code for them or not."""
    path = tmp_path / "q.onnx"
    if kind == "written":
        onnx.save(network(), str(tmp_path / "f.onnx"))
        lacuna("prune", tmp_path / "f.onnx", "-o", path, *FLOATS, "--calibration", data, "--quantize", "qdq-int8")
    else:
        quantized_by_runtime(kind, path)
    x = images(n, seed=12)
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setenv("LAC_SPARSE", "all")
    text = lacuna("infer", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out", "-v")
    layers = text.count("compiled int8") + text.count("avx512vnni")
    assert layers >= LAYERS_OF_INT8.get(kind, 4)
    want, got = session(path).run(None, {"x": x})[0], np.load(tmp_path / "out" / "y.npy")
    assert np.abs(want - got).max() <= 0.02 * np.abs(want).max()  # a unit here and there
    assert text.count("int8 sum") == 1


@pytest.mark.parametrize("engine", ["cpu", "plain"])
@pytest.mark.parametrize("kind,zero", [("uint8", 0), ("uint8", 100), ("int8", 0), ("int8", -7)])
def test_numbers_beyond_all_integers_become_the_outermost(tmp_path, kind, zero, engine):
    """After a convolution, where kernels convert them, and by QuantizeLinear itself; a NaN becomes the least."""
    node, rng = helper.make_node, np.random.default_rng(0)
    x = (rng.normal(size=(2, 16, 9, 9)) * 10.0 ** rng.integers(-2, 38, (2, 16, 9, 9))).astype(np.float32)
    x[0, 3, 2, 2:6] = [np.inf, -np.inf, np.nan, 3e9]
    stored = {"s": np.float32(0.5), "z": np.array(zero, kind), "ws": np.float32(1e30), "wz": np.int8(0), "ss": np.float32(1e-4),
              "w": rng.integers(-127, 128, (8, 16, 3, 3)).astype(np.int8)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]), node("Conv", ["d", "wd"], ["c"]),
             node("QuantizeLinear", ["c", "ss", "z"], ["cq"]), node("DequantizeLinear", ["cq", "ss", "z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "d")],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items()])
    path = tmp_path / "n.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    np.save(tmp_path / "x.npy", x)
    wanted = session(path).run(["y", "d"], {"x": x})
    lacuna("infer", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out", "--engine", engine, "-q")
    for name, value in zip("yd", wanted):
        np.testing.assert_array_equal(np.load(tmp_path / "out" / f"{name}.npy"), value)
