# SPDX-License-Identifier: Apache-2.0
"""Float weights that a file quantizes and brings back (quantization-aware training, ONNX Runtime's AddQDQPairToWeight): the
float is pruned, its zeros come back as 0, and its channels move with their scales. ONNX Runtime is the judge."""
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


def make(path, zero, back=None, per_channel=False, clip=1.0, shared=True, block=0, domain="", stored_q=False):
    """Three layers; `back`: the zero point of DequantizeLinear, where it is another one."""
    rng = np.random.default_rng(0)
    stored, nodes, x = [], [], "x"
    for layer in range(3):
        w = rng.normal(size=(32, 32)).astype(np.float32)
        n = (32, 32 // block) if block else 32 if per_channel else ()
        size = np.abs(w.reshape(32, -1, block or 32)).max(2 if block else (1, 2)) if per_channel or block else np.abs(w).max()
        scale = np.asarray(size * clip / 127, np.float32).reshape(n)
        stored += [numpy_helper.from_array(w, f"w{layer}"), numpy_helper.from_array(scale, f"s{layer}"),
                   numpy_helper.from_array(np.full(n, zero), f"z{layer}")]
        if not shared:
            stored += [numpy_helper.from_array(scale, f"t{layer}"),
                       numpy_helper.from_array(np.full(n, zero if back is None else back), f"b{layer}")]
        s, z = ("s", "z") if shared else ("t", "b")
        if stored_q:  # the integers themselves, and no QuantizeLinear
            steps = w.T / scale if per_channel else w / scale
            q = np.clip(np.rint(steps.T if per_channel else steps) + int(zero), *[getattr(np.iinfo(zero.dtype), e) for e in
                                                                                 ("min", "max")]).astype(zero.dtype)
            stored[-3 if shared else -5] = numpy_helper.from_array(q, f"q{layer}")
        attributes = {"axis": 1, "block_size": block} if block else {"axis": 0} if per_channel else {}
        attributes["domain"] = domain
        nodes += [helper.make_node("QuantizeLinear", [f"w{layer}", f"s{layer}", f"z{layer}"], [f"q{layer}"], **attributes),
                  helper.make_node("DequantizeLinear", [f"q{layer}", f"{s}{layer}", f"{z}{layer}"], [f"d{layer}"], **attributes),
                  helper.make_node("Gemm", [x, f"d{layer}"], [f"y{layer}"], transB=1, name=f"fc{layer}")]
        if stored_q:
            del nodes[-3]
        x = f"y{layer}"
        if layer < 2:
            nodes.append(helper.make_node("Relu", [x], [f"r{layer}"]))
            x = f"r{layer}"
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 32])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [4, 32])], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10), path)


def run(path, also=()):
    model = onnx.load(path)
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, [32, 32]) for name in also)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    x = np.random.default_rng(1).normal(size=(4, 32)).astype(np.float32)
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})


def pruned_summary(model, pruned):
    done = subprocess.run([LACUNA, "prune", "--no-calibration", "-q", "-o", pruned, "--json", "-", model], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["summary"]


CASES = {
    "int8": {"zero": np.int8(0)},
    "int8_by_channel": {"zero": np.int8(0), "per_channel": True},
    "uint8_by_channel": {"zero": np.uint8(100), "per_channel": True},
    "clipped": {"zero": np.uint8(30), "clip": 0.3},
    "parameters_stored_twice": {"zero": np.int8(7), "shared": False},
    "int16": {"zero": np.int16(-5)},
    "microsoft": {"zero": np.uint8(90), "per_channel": True, "domain": "com.microsoft"},
    "microsoft_16": {"zero": np.uint16(77), "domain": "com.microsoft"},
    "microsoft_stored": {"zero": np.int8(5), "per_channel": True, "domain": "com.microsoft", "stored_q": True},
    "stored": {"zero": np.uint8(120), "stored_q": True},
    "blocks": {"zero": np.int8(3), "block": 16},
}


@pytest.mark.parametrize("name", CASES)
def test_the_float_is_pruned_and_its_zeros_come_back(name, tmp_path):
    model, permuted, pruned = (tmp_path / f"{x}.onnx" for x in ("model", "permuted", "pruned"))
    make(model, **CASES[name])
    subprocess.run([LACUNA, "permute", "-q", "-o", permuted, model], check=True, stdout=subprocess.DEVNULL)
    wanted = run(model)[0]
    assert np.abs(run(permuted)[0] - wanted).max() <= 1e-5 * np.abs(wanted).max()

    summary = pruned_summary(model, pruned)
    assert (summary["layers"], summary["pruned"]) == (3, 3)
    if "block" not in CASES[name]:
        assert summary["permuted"] == 2
    types = [[node.op_type for node in onnx.load(path).graph.node] for path in (model, pruned)]
    assert types[0] == types[1]
    for weight in run(pruned, ["d0", "d1", "d2"])[1:]:
        assert ((weight.reshape(32, 8, 4) != 0).sum(2) <= 2).all()
        assert (weight != 0).mean() > 0.4
    subprocess.run([LACUNA, "check", "-q", "--against", model, pruned], check=True, stdout=subprocess.DEVNULL)


def test_another_zero_point_of_dequantization_is_a_row_and_a_reason(tmp_path):
    model, pruned = tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    make(model, zero=np.int8(0), back=np.int8(1), shared=False)
    done = subprocess.run([LACUNA, "inspect", "--json", "-", model], check=True, stdout=subprocess.PIPE)
    layers = json.loads(done.stdout)["layers"]
    assert len(layers) == 3
    assert all("DequantizeLinear" in layer["reason"] for layer in layers)


SCORED = CASES | {"most_are_clipped": {"zero": np.uint8(10), "clip": 0.1},
                  "blocks_along_inputs": {"zero": np.int8(0), "block": 8, "clip": 0.5}}


@pytest.mark.parametrize("order", ["--no-permute", "--permute"])
@pytest.mark.parametrize("name", SCORED)
def test_what_is_kept_is_counted_in_the_numbers_that_the_network_computes(name, order, tmp_path):
    model, pruned = tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    make(model, **SCORED[name])
    weights = ["d0", "d1", "d2"]
    said = json.loads(subprocess.run([LACUNA, "prune", "--no-calibration", "-q", order, "-o", pruned, "--json", "-", model], check=True,
                                     stdout=subprocess.PIPE).stdout)
    seen = json.loads(subprocess.run([LACUNA, "check", "-q", "--json", "-", pruned], check=True, stdout=subprocess.PIPE).stdout)
    before, after = (np.abs(np.asarray(run(path, weights)[1:], np.float64)) for path in (model, pruned))
    best = np.sort(before.reshape(3, -1, 4), axis=2)[:, :, 2:]
    for layer, was, by_best, left, found in zip(said["layers"], before, best, after, seen["layers"], strict=True):
        assert layer["total"] == pytest.approx(was.sum(), rel=1e-6), name
        assert layer["kept_identity"] == pytest.approx(by_best.sum(), rel=1e-6), name
        assert layer["kept"] == pytest.approx(left.sum(), rel=1e-6), name
        assert found["total"] == pytest.approx(left.sum(), rel=1e-6), name


def with_neighbours(path, neighbour):
    """One layer whose float is transposed or multiplied before it is quantized, or multiplied after."""
    rng = np.random.default_rng(3)
    w, factor = rng.normal(size=(32, 32)).astype(np.float32), rng.uniform(0.2, 2, (32, 1)).astype(np.float32)
    stored = [numpy_helper.from_array(a, n) for a, n in [(w, "w"), (factor, "f"), (np.full(32, 0.01, np.float32) * factor[:, 0], "s"),
                                                         (np.full(32, 20, np.uint8), "z")]]
    before = {"transposed": [helper.make_node("Transpose", ["w"], ["a"])], "multiplied before": [helper.make_node("Mul", ["w", "f"], ["a"])]}
    nodes = before.get(neighbour, [])
    nodes += [helper.make_node("QuantizeLinear", ["a" if nodes else "w", "s", "z"], ["q"], axis=0),
              helper.make_node("DequantizeLinear", ["q", "s", "z"], ["b"], axis=0)]
    is_after = neighbour == "multiplied after"
    nodes += [helper.make_node("Mul" if is_after else "Identity", ["b", "f"] if is_after else ["b"], ["d"]),
              helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 32])], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


@pytest.mark.parametrize("neighbour", ["transposed", "multiplied before", "multiplied after"])
def test_what_is_kept_follows_what_is_next_to_the_quantization(neighbour, tmp_path):
    model, pruned = tmp_path / "model.onnx", tmp_path / "pruned.onnx"
    with_neighbours(model, neighbour)
    said = json.loads(subprocess.run([LACUNA, "prune", "--no-calibration", "-q", "-o", pruned, "--json", "-", model], check=True,
                                     stdout=subprocess.PIPE).stdout)
    before, after = (np.abs(run(path, ["d"])[1].astype(np.float64)) for path in (model, pruned))
    best = np.sort(before.reshape(-1, 4), axis=1)[:, 2:]
    layer = said["layers"][0]
    assert layer["pruned"] and layer["total"] == pytest.approx(before.sum(), rel=1e-6)
    assert layer["kept"] == pytest.approx(best.sum(), rel=1e-6) == pytest.approx(after.sum(), rel=1e-6)
