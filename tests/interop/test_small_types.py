# SPDX-License-Identifier: Apache-2.0
"""Types of 16 bits and fewer: casts round in every engine as they do in ONNX Runtime, and weights of 8, 4 and 2 bits
before DequantizeLinear are pruned, where their zero is 0. ONNX Runtime judges, or onnx's reference where it has no kernel."""
import json
import os
import pathlib
import subprocess

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
ENGINES = ["plain", "cpu", "auto"]
OPSET = 25


def save(path, nodes, inputs, outputs, stored=()):
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                              [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs], list(stored))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=13)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def infer(model, engine, **arrays):
    folder = model.parent / f"out_{engine}"
    command = [LACUNA, "infer", model, "-o", folder, "--force", "-q", "--engine", engine]
    for name, array in arrays.items():
        np.save(model.parent / f"{name}.npy", array)
        command += ["--input", f"{name}={model.parent / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.stem: np.load(path) for path in folder.glob("*.npy")}


def judge(model, names, **arrays):
    """ONNX Runtime's answers, step by step; the reference's where it lacks a kernel."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        answers = onnxruntime.InferenceSession(str(model), options).run(names, arrays)
    except Exception:  # noqa: BLE001, of several kinds
        answers = ReferenceEvaluator(onnx.load(model)).run(names, arrays)
    return dict(zip(names, answers, strict=True))


def same(got, want):
    return ((got == want) | (np.isnan(got) & np.isnan(want))).all()


THERE_AND_BACK = ["FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cast_there_and_back_shows_the_rounding(engine, tmp_path):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal(400) * 10.0 ** rng.integers(-9, 6, 400),
                        [0, -0.0, np.inf, -np.inf, np.nan, 65519, 65520, 464, 465, 248, 61440, 2**-25, 2**-24 * 1.5]])
    x = x.astype(np.float32).reshape(-1)
    nodes, outputs = [], []
    for name in THERE_AND_BACK:
        for saturate in [1, 0] if name.startswith("FLOAT8") else [1]:
            here = f"{name}_{saturate}"
            nodes += [helper.make_node("Cast", ["x"], [f"{here}_small"], to=getattr(TensorProto, name), saturate=saturate),
                      helper.make_node("Cast", [f"{here}_small"], [here], to=TensorProto.FLOAT)]
            outputs.append((here, TensorProto.FLOAT, [len(x)]))
    save(tmp_path / "casts.onnx", nodes, [("x", TensorProto.FLOAT, [len(x)])], outputs)
    want = judge(tmp_path / "casts.onnx", [name for name, _, _ in outputs], x=x)
    for name in THERE_AND_BACK[2:]:  # without saturation ONNX Runtime makes NaN of what E5M2 has an infinity for
        kind = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
        want[f"{name}_0"] = x.astype(kind).astype(np.float32)
    got = infer(tmp_path / "casts.onnx", engine, x=x)
    for name in want:
        assert same(got[name], want[name]), name


@pytest.mark.parametrize("engine", ENGINES)
def test_integers_come_from_the_rounded_number(engine, tmp_path):
    """2.9999 is 3 in half precision, and 100 * 0.29 is 29 in single: as an integer, too."""
    x = np.array([2.9999, -1.9999, 1023.9, 0.29, 7.0], np.float32)
    nodes = [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
             helper.make_node("Cast", ["h"], ["from_half"], to=TensorProto.INT32),
             helper.make_node("CastLike", ["x", "like"], ["b"]),
             helper.make_node("Cast", ["b"], ["from_bf16"], to=TensorProto.INT32),
             helper.make_node("Mul", ["x", "hundred"], ["m"]),
             helper.make_node("Cast", ["m"], ["from_single"], to=TensorProto.INT64)]
    stored = [helper.make_tensor("like", TensorProto.BFLOAT16, [1], [1.0]),
              numpy_helper.from_array(np.float32(100), "hundred")]
    outputs = [("from_half", TensorProto.INT32, [5]), ("from_bf16", TensorProto.INT32, [5]), ("from_single", TensorProto.INT64, [5])]
    save(tmp_path / "whole.onnx", nodes, [("x", TensorProto.FLOAT, [5])], outputs, stored)
    want = judge(tmp_path / "whole.onnx", [name for name, _, _ in outputs], x=x)
    got = infer(tmp_path / "whole.onnx", engine, x=x)
    for name in want:
        assert (got[name] == want[name]).all(), (name, got[name], want[name])


HALVES = {"x_and_scale": (np.float16, np.float16, {}), "scale_alone": (np.float32, np.float16, {}),
          "by_attribute": (np.float32, np.float32, {"precision": TensorProto.FLOAT16}),
          "single_by_attribute": (np.float16, np.float16, {"precision": TensorProto.FLOAT})}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("back", [False, True], ids=["integers", "floats_again"])
@pytest.mark.parametrize("case", HALVES)
def test_a_quotient_in_half_precision_gives_the_integers_of_that(case, back, engine, tmp_path):
    """What is divided is an element of its type, too: a product of halves comes before."""
    x_type, scale_type, attributes = HALVES[case]
    n = 4000
    x = (np.random.default_rng(0).standard_normal(n) * 5).astype(x_type)
    code = helper.np_dtype_to_tensor_dtype
    nodes = [helper.make_node("Mul", ["x", "k"], ["m"]), helper.make_node("QuantizeLinear", ["m", "s", "z"], ["q"], **attributes)]
    if back:
        nodes += [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]), helper.make_node("Cast", ["d"], ["y"], to=TensorProto.FLOAT)]
    else:
        nodes += [helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)]
    stored = [numpy_helper.from_array(a, name) for a, name in [(x_type(1.37), "k"), (scale_type(0.1), "s"), (np.int8(3), "z")]]
    save(tmp_path / "half.onnx", nodes, [("x", code(np.dtype(x_type)), [n])], [("y", TensorProto.FLOAT, [n])], stored)
    want = judge(tmp_path / "half.onnx", ["y"], x=x)["y"]
    got = infer(tmp_path / "half.onnx", engine, x=x)["y"]
    assert same(got, want), np.flatnonzero(got != want)


@pytest.mark.parametrize("engine", ["cpu", "auto"])
def test_fast_and_exact_parts_compute_in_single_precision(engine, tmp_path):
    """floor(100 * 0.29f) is 29 for floats and 28 for doubles; NonZero makes the default engine go node by node."""
    nodes = [helper.make_node("Mul", ["x", "hundred"], ["m"]), helper.make_node("Floor", ["m"], ["f"])]
    outputs = [("f", TensorProto.FLOAT, [3])]
    if engine == "auto":
        nodes = [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Squeeze", ["at", "first"], ["places"]),
                 helper.make_node("Gather", ["x", "places"], ["some"]),
                 helper.make_node("Mul", ["some", "hundred"], ["m"]), helper.make_node("Floor", ["m"], ["f"])]
        outputs = [("f", TensorProto.FLOAT, ["n"])]
    stored = [numpy_helper.from_array(np.float32(100), "hundred"), numpy_helper.from_array(np.array([0]), "first")]
    save(tmp_path / "floor.onnx", nodes, [("x", TensorProto.FLOAT, [3])], outputs, stored)
    x = np.array([0.29, 0.57, 1.15], np.float32)
    assert (infer(tmp_path / "floor.onnx", engine, x=x)["f"] == judge(tmp_path / "floor.onnx", ["f"], x=x)["f"]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_sizes_are_computed_in_single_precision(engine, tmp_path):
    """29 rows are 0.29f of 100 for floats, 28 for doubles: in a declared shape, and in one that a Reshape asks for."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["sf"], to=TensorProto.FLOAT),
             helper.make_node("Mul", ["sf", "part"], ["m"]), helper.make_node("Floor", ["m"], ["f"]),
             helper.make_node("Cast", ["f"], ["i"], to=TensorProto.INT64), helper.make_node("Slice", ["x", "none", "i"], ["e"]),
             helper.make_node("Reshape", ["e", "wanted"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    rng = np.random.default_rng(0)
    stored = [numpy_helper.from_array(a, name) for a, name in [
        (np.array([0.29], np.float32), "part"), (np.array([0]), "none"), (np.array([1, 29]), "wanted"),
        (rng.standard_normal((29, 8)).astype(np.float32), "w")]]
    save(tmp_path / "sizes.onnx", nodes, [("x", TensorProto.FLOAT, [100])], [("y", TensorProto.FLOAT, [1, 8])], stored)
    x = rng.standard_normal(100).astype(np.float32)
    np.testing.assert_allclose(infer(tmp_path / "sizes.onnx", engine, x=x)["y"], judge(tmp_path / "sizes.onnx", ["y"], x=x)["y"],
                               rtol=1e-4, atol=1e-5)


# ---- Weights -----------------------------------------------------------------------------------------------------

KINDS = {
    "int4": dict(kind="INT4"),
    "int4_by_channel": dict(kind="INT4", axis=1),
    "int4_blocks": dict(kind="INT4", block=16),
    "uint4_zeros": dict(kind="UINT4", axis=1, zero="mixed"),
    "uint4_blocks_of_zeros": dict(kind="UINT4", block=16, zero="mixed"),
    "int8_blocks": dict(kind="INT8", block=8),
    "int2": dict(kind="INT2", axis=1),
    "uint2": dict(kind="UINT2", axis=1, zero=1),
    "f8e4m3fn": dict(kind="FLOAT8E4M3FN", axis=1),
    "f8e4m3fnuz": dict(kind="FLOAT8E4M3FNUZ", zero=0),
    "f8e5m2_blocks": dict(kind="FLOAT8E5M2", block=16),
    "f8e5m2fnuz": dict(kind="FLOAT8E5M2FNUZ", axis=1),
    "f4e2m1_blocks": dict(kind="FLOAT4E2M1", block=16),
}
RANGES = {"INT8": (-128, 128), "INT4": (-8, 8), "UINT4": (0, 16), "INT2": (-2, 2), "UINT2": (0, 4)}
K, N = 32, 16


def weight_model(path, kind, axis=None, block=0, zero=None):
    """x W0, relu, x W (small), relu, x W2: so that both axes of W are free to move."""
    rng = np.random.default_rng(1)
    code = getattr(TensorProto, kind)
    dtype = helper.tensor_dtype_to_np_dtype(code)
    w = (rng.integers(*RANGES[kind], (K, N)) if kind in RANGES else rng.standard_normal((K, N)).clip(-5, 5)).astype(dtype)
    shape = (K // block, N) if block else (w.shape[axis],) if axis is not None else ()
    stored = [numpy_helper.from_array(rng.standard_normal((K, K)).astype(np.float32), "w0"),
              numpy_helper.from_array(rng.standard_normal((N, N)).astype(np.float32), "w2"),
              numpy_helper.from_array(w, "w"),
              numpy_helper.from_array((rng.random(shape) + 0.5).astype(np.float32), "s")]
    inputs = ["w", "s"]
    if zero is not None:
        z = rng.integers(0, 15, shape) if zero == "mixed" else np.full(shape, zero)
        stored.append(numpy_helper.from_array(z.astype(dtype), "z"))
        inputs.append("z")
    attributes = dict(axis=0, block_size=block) if block else {} if axis is None else dict(axis=axis)
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("DequantizeLinear", inputs, ["d"], **attributes),
             helper.make_node("MatMul", ["b", "d"], ["c"], name="small"), helper.make_node("Relu", ["c"], ["e"]),
             helper.make_node("MatMul", ["e", "w2"], ["y"])]
    save(path, nodes, [("x", TensorProto.FLOAT, [4, K])], [("y", TensorProto.FLOAT, [4, N])], stored)


def prune(model, out):
    done = subprocess.run([LACUNA, "prune", "--no-calibration", "-q", "--json", "-", "-o", out, model], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(row for row in json.loads(done.stdout)["layers"] if row["name"] == "small")


@pytest.mark.parametrize("name", KINDS)
def test_small_weights_are_pruned_and_proved(name, tmp_path):
    weight_model(tmp_path / "m.onnx", **KINDS[name])
    row = prune(tmp_path / "m.onnx", tmp_path / "o.onnx")
    assert row["pruned"] and row["holds_pattern"] and "K" in row["permuted"]
    assert ("C" in row["permuted"]) == ("block" not in KINDS[name])
    for more in ([], ["--against", tmp_path / "m.onnx"]):
        assert subprocess.run([LACUNA, "check", "-q", tmp_path / "o.onnx", *more], capture_output=True).returncode == 0
    pruned = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(pruned, full_check=True)
    tensors = {t.name: t for t in pruned.graph.initializer}
    assert tensors["w"].data_type == getattr(TensorProto, KINDS[name]["kind"])
    w, z = (numpy_helper.to_array(tensors[n]).astype(np.float32) if n in tensors else np.float32(0) for n in "wz")
    zeros = w == (np.repeat(z, KINDS[name]["block"], 0) if z.ndim == 2 else z)
    assert (zeros.reshape(K // 4, 4, N).sum(1) >= 2).all()
    x = np.random.default_rng(2).standard_normal((4, K)).astype(np.float32)
    for model in ("m.onnx", "o.onnx"):
        want = judge(tmp_path / model, ["y"], x=x)["y"]
        for engine in ENGINES:
            assert np.abs(infer(tmp_path / model, engine, x=x)["y"] - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize("name", ["int4", "uint4_zeros", "int2", "f8e4m3fn", "f8e5m2fnuz", "f4e2m1_blocks"])
def test_a_target_that_does_not_take_a_small_type_refuses_it(name, tmp_path):
    weight_model(tmp_path / "m.onnx", **KINDS[name])
    prune(tmp_path / "m.onnx", tmp_path / "o.onnx")
    done = subprocess.run([LACUNA, "check", "-q", "--target", "tensorrt", "--json", tmp_path / "check.json", tmp_path / "o.onnx"])
    report = json.loads((tmp_path / "check.json").read_text())
    small = next(row for row in report["targets"][0]["layers"] if row["name"] == "small")
    assert done.returncode == 1 and small["answer"] == "refused" and "weights of" in small["reason"], small


@pytest.mark.parametrize("name", ["int4", "int2", "f4e2m1_blocks", "f8e4m3fn"])
def test_a_pack_report_counts_the_bytes_of_the_file(name, tmp_path):
    weight_model(tmp_path / "m.onnx", **KINDS[name])
    done = subprocess.run([LACUNA, "pack", "-q", "--json", "-", tmp_path / "m.onnx", "-o", tmp_path / "m.pack"],
                          capture_output=True, text=True, check=True)
    row = next(row for row in json.loads(done.stdout)["layers"] if row["name"] == "small")
    raw = next(len(t.raw_data) for t in onnx.load(tmp_path / "m.onnx").graph.initializer if t.name == "w")
    assert row["dense_bytes"] == row["packed_bytes"] == raw


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shape", [(0, 8), (4, 0)])
def test_blocks_of_an_empty_axis_are_none(shape, engine, tmp_path):
    w = np.zeros(shape, np.int8)
    nodes = [helper.make_node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=4)]
    stored = [numpy_helper.from_array(np.ones((shape[0], shape[1] // 4), np.float32), "s")]
    save(tmp_path / "none.onnx", nodes, [("x", TensorProto.INT8, shape)], [("y", TensorProto.FLOAT, shape)], stored)
    assert infer(tmp_path / "none.onnx", engine, x=w)["y"].shape == shape


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_large_integers_are_rounded_to_single_precision_once(kind, engine, tmp_path):
    x = np.array([2**60 + 2**36 + 1, 2**60 + 2**36, 2**54 + 2**30 + 1, 2**62 + 3 * 2**38 - 1, 7], kind)
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]
    save(tmp_path / "large.onnx", nodes, [("x", getattr(TensorProto, kind.upper()), [5])], [("y", TensorProto.FLOAT, [5])])
    assert (infer(tmp_path / "large.onnx", engine, x=x)["y"] == judge(tmp_path / "large.onnx", ["y"], x=x)["y"]).all()


def test_a_float_that_has_a_zero_point_is_left_with_a_reason(tmp_path):
    weight_model(tmp_path / "m.onnx", "FLOAT8E4M3FN", zero=1)
    row = prune(tmp_path / "m.onnx", tmp_path / "o.onnx")
    assert not row["pruned"] and row["reason"] == "its floats have a zero point that is not 0"


@pytest.mark.parametrize("external", [False, True], ids=["inside", "outside"])
def test_tensors_that_nobody_touched_keep_their_bytes(external, tmp_path):
    weight_model(tmp_path / "m.onnx", "UINT4", axis=1, zero="mixed")
    model = onnx.load(tmp_path / "m.onnx")
    odd = numpy_helper.from_array(np.arange(7).astype(helper.tensor_dtype_to_np_dtype(TensorProto.INT4)), "odd")
    odd.raw_data = odd.raw_data[:-1] + bytes([odd.raw_data[-1] | 0xF0])  # a nibble that belongs to no element
    model.graph.initializer.append(odd)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=external, location="m.data", size_threshold=0)
    prune(tmp_path / "m.onnx", tmp_path / "o.onnx")
    before, after = ({t.name: t.raw_data for t in onnx.load(tmp_path / f"{n}.onnx").graph.initializer} for n in "mo")
    assert before["odd"] == after["odd"] and len(before["w"]) == len(after["w"]) == K * N // 2
    assert before["w"] != after["w"]


FEW = [(np.float32, 2, 64), (np.float32, 7, 256), (np.int8, 4, 64), (np.int8, 7, 256), (ml_dtypes.int4, 7, 256),
       (ml_dtypes.int4, 16, 512), (ml_dtypes.int2, 4, 64), (ml_dtypes.float4_e2m1fn, 7, 256)]


def few_values(path, dtype, n_values, width):
    """Three products of weights that have few values, one scale and no bias: channels are alike as sets of values."""
    rng = np.random.default_rng(7)
    low = 0 if n_values == 2 else -(n_values // 2)
    nodes, stored, value = [], [], "x"
    for k, shape in enumerate([(32, width), (width, 64), (64, 32)]):
        stored.append(numpy_helper.from_array(rng.integers(low, low + n_values, shape).astype(np.float32).astype(dtype), f"w{k}"))
        weight = f"w{k}"
        if dtype is not np.float32:
            stored.append(numpy_helper.from_array(np.float32(0.125), f"s{k}"))
            nodes.append(helper.make_node("DequantizeLinear", [weight, f"s{k}"], [f"d{k}"]))
            weight = f"d{k}"
        nodes += [helper.make_node("MatMul", [value, weight], [f"m{k}"]), helper.make_node("Relu", [f"m{k}"], [f"r{k}"])]
        value = f"r{k}"
    save(path, nodes, [("x", TensorProto.FLOAT, [4, 32])], [(value, TensorProto.FLOAT, [4, 32])], stored)


@pytest.mark.parametrize(("dtype", "n_values", "width"), FEW, ids=lambda v: getattr(v, "__name__", v))
def test_check_finds_the_order_of_weights_that_have_few_values(dtype, n_values, width, tmp_path):
    path, pruned = tmp_path / "few.onnx", tmp_path / "pruned.onnx"
    few_values(path, dtype, n_values, width)
    subprocess.run([LACUNA, "prune", "--no-calibration", "-q", path, "-o", pruned], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([LACUNA, "check", pruned, "--against", path], capture_output=True, text=True)
    assert done.returncode == 0 and "verified: all outputs" in done.stderr, done.stderr
    changed = onnx.load(pruned)
    at = next(i for i, t in enumerate(changed.graph.initializer) if t.name == "w1")
    weight = numpy_helper.to_array(changed.graph.initializer[at]).copy()
    row, column = np.argwhere(weight.astype(np.float32) == weight.astype(np.float32).max())[0]
    weight[row, column] = np.float32(-1).astype(dtype)
    changed.graph.initializer[at].CopyFrom(numpy_helper.from_array(weight, "w1"))
    onnx.save(changed, pruned)
    done = subprocess.run([LACUNA, "check", pruned, "--against", path], capture_output=True, text=True)
    assert done.returncode == 1 and "not verified" in done.stderr, done.stderr


CHAINS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


@pytest.mark.parametrize("kind, code", [(np.float16, TensorProto.FLOAT16), (ml_dtypes.bfloat16, TensorProto.BFLOAT16)])
@pytest.mark.parametrize("op", CHAINS)
def test_the_plain_engine_rounds_every_result_to_its_type(tmp_path, op, kind, code):
    """y = (a op b) - r, where r is what NumPy's rounded operator gives: all 0, unless a op b is held more exactly."""
    rng = np.random.default_rng(8)
    a, b = (rng.uniform(1, 100, 64).astype(kind) for _ in range(2))
    nodes = [helper.make_node(op, ["a", "b"], ["t"]), helper.make_node("Sub", ["t", "r"], ["d"]),
             helper.make_node("Cast", ["d"], ["y"], to=TensorProto.FLOAT)]
    inputs = [helper.make_tensor_value_info(name, code, ["n"]) for name in "abr"]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    words = []
    for name, array in dict(a=a, b=b, r=CHAINS[op](a, b)).items():
        np.save(tmp_path / f"{name}.npy", array)
        words += ["--input", f"{name}={tmp_path}/{name}.npy"]
    done = subprocess.run([LACUNA, "infer", tmp_path / "m.onnx", "-o", tmp_path / "out", "--engine", "plain", *words],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not np.load(tmp_path / "out" / "y.npy").any()


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_integers_of_64_bits_are_rounded_once(tmp_path, kind, engine):
    """2^62 + 2^54 is in the middle of two numbers of bf16; one more or less, which no double holds, decides."""
    middle = 2**62 + 2**54
    x = np.array([middle - 1, middle, middle + 1, middle + 2**55 - 1, middle + 2**55, middle + 2**55 + 1], kind)
    nodes = [helper.make_node("Cast", ["x"], ["b"], to=TensorProto.BFLOAT16),
             helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT)]
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", code, ["n"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([LACUNA, "infer", tmp_path / "m.onnx", "-o", tmp_path / "out", "--engine", engine, "--input",
                           f"x={tmp_path}/x.npy"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    low = 2**62
    assert [int(v) - low for v in np.load(tmp_path / "out" / "y.npy")] == [0, 0, 2**55, 2**55, 2**56, 2**56]
