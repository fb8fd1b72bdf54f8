# SPDX-License-Identifier: Apache-2.0
"""infer writes each output in the type that the network gives it, and reads inputs of all of them: against ONNX Runtime.

bf16 has no type in NumPy, and ONNX Runtime cannot return it: its bits are compared with those of a Cast back to f32.
"""
import os
import pathlib
import subprocess

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
CASTS = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f64": TensorProto.DOUBLE,
         "f32": TensorProto.FLOAT, "i32": TensorProto.INT32, "u8": TensorProto.UINT8, "bool": TensorProto.BOOL}
KINDS = {"f16": np.float16, "f64": np.float64, "f32": np.float32, "i32": np.int32, "u8": np.uint8, "bool": np.bool_}


def save(path, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "types", [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                              [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs], list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def infer(model, folder, *words, **arrays):
    command = [LACUNA, "infer", model, "-o", folder, "--force", *words]
    for name, array in arrays.items():
        np.save(folder.parent / f"{name}.npy", array)
        command += ["--input", f"{name}={folder.parent / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.stem: np.load(path) for path in folder.glob("*.npy")}, done.stderr


@pytest.fixture
def casts(tmp_path):
    """|x| (so that no type is left out) in every type, and bf16 as f32."""
    nodes = [helper.make_node("Abs", ["x"], ["a"])]
    nodes += [helper.make_node("Cast", ["a"], [name], to=code) for name, code in CASTS.items()]
    nodes += [helper.make_node("Cast", ["bf16"], ["back"], to=TensorProto.FLOAT)]
    outputs = [(name, code, [3, 50]) for name, code in CASTS.items()] + [("back", TensorProto.FLOAT, [3, 50])]
    save(tmp_path / "casts.onnx", nodes, [("x", TensorProto.FLOAT, [3, 50])], outputs)
    return tmp_path / "casts.onnx"


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_outputs_have_the_types_of_the_network(casts, engine, tmp_path):
    x = np.random.default_rng(4).uniform(-200, 200, (3, 50)).astype(np.float32)
    wanted = [*KINDS, "back"]
    session = onnxruntime.InferenceSession(str(casts), providers=["CPUExecutionProvider"])
    want = dict(zip(wanted, session.run(wanted, {"x": x})))
    got, said = infer(casts, tmp_path / "out", "--engine", engine, x=x)
    for name, kind in KINDS.items():
        assert got[name].dtype == kind and (got[name] == want[name]).all(), name
    assert got["bf16"].dtype == np.dtype("V2") and "bf16.npy holds bf16" in said
    assert (got["bf16"].view(ml_dtypes.bfloat16).astype(np.float32) == want["back"]).all()
    np.save(tmp_path / "theirs.npy", want["back"].astype(ml_dtypes.bfloat16))
    assert (tmp_path / "out/bf16.npy").read_bytes() == (tmp_path / "theirs.npy").read_bytes()
    plain, said = infer(casts, tmp_path / "out", "--engine", engine, "--f32", x=x)
    for name, step in (("f16", 2**-11), ("bf16", 2**-8), ("f64", 0), ("f32", 0)):  # as computed, not rounded twice
        exact = np.abs(x)
        assert plain[name].dtype == np.float32 and (np.abs(plain[name] - exact) <= step * exact).all(), name
    assert plain["i32"].dtype == np.int32 and plain["bool"].dtype == np.bool_ and "bf16" not in said


@pytest.mark.parametrize("engine", ["plain", "cpu"])
@pytest.mark.parametrize("kind, code, tolerance", [(np.float16, TensorProto.FLOAT16, 2e-3),
                                                   (np.float64, TensorProto.DOUBLE, 1e-6)], ids=["f16", "f64"])
def test_networks_of_other_types_agree(kind, code, tolerance, engine, tmp_path):
    rng = np.random.default_rng(5)
    w = rng.standard_normal((20, 30)).astype(kind)
    save(tmp_path / "net.onnx", [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
         [("x", code, [4, 20])], [("y", code, [4, 30])], [onnx.numpy_helper.from_array(w, "w")])
    x = rng.standard_normal((4, 20)).astype(kind)
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": x})[0]
    got = infer(tmp_path / "net.onnx", tmp_path / "out", "--engine", engine, x=x)[0]["y"]
    assert got.dtype == want.dtype == kind
    assert np.abs(got.astype(np.float64) - want).max() <= tolerance * np.abs(want).max()


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_bf16_arrays_are_inputs(engine, tmp_path):
    x = np.random.default_rng(6).standard_normal((2, 9)).astype(ml_dtypes.bfloat16)
    save(tmp_path / "net.onnx", [helper.make_node("Identity", ["x"], ["y"])],
         [("x", TensorProto.BFLOAT16, [2, 9])], [("y", TensorProto.BFLOAT16, [2, 9])])
    got = infer(tmp_path / "net.onnx", tmp_path / "out", "--engine", engine, x=x)[0]["y"]
    assert (got.view(ml_dtypes.bfloat16) == x).all()


CONVERSIONS = [  # found, wanted, elements, does the wanted type hold them all?
    ("u8", "f32", [0, 7, 255], True), ("i64", "f32", [1, 2**24, -5], True), ("i64", "f32", [1, 2**24 + 1], False),
    ("i64", "f32", [2**63 - 1], False), ("u64", "f64", [2**64 - 1], False), ("u64", "f64", [2**63], True),
    ("f64", "f32", [0.5, np.nan, np.inf, -3], True), ("f64", "f32", [0.1], True), ("f64", "f32", [1e300], False),
    ("f16", "f32", [0.1, 6e-8], True), ("f32", "f16", [0.1], True), ("f32", "f16", [0.5, 2048], True),
    ("f32", "f16", [1e5], False), ("f32", "i64", [3, -4], True), ("f32", "i64", [0.5], False), ("f32", "i64", [np.nan], False),
    ("i64", "i32", [2**31 - 1], True), ("i64", "i32", [2**31], False), ("bool", "f32", [0, 1], True), ("i32", "u8", [-1], False)]
NUMPY = dict(u8=np.uint8, i32=np.int32, i64=np.int64, u64=np.uint64, f16=np.float16, f32=np.float32, f64=np.float64, bool=np.bool_)


@pytest.mark.parametrize("found, wanted, elements, holds", CONVERSIONS)
def test_an_array_of_another_type_is_taken_where_nothing_is_lost(tmp_path, found, wanted, elements, holds):
    code = helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[wanted]))
    save(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])], [("x", code, ["n"])], [("y", code, ["n"])])
    x = np.array(elements, NUMPY[found])
    np.save(tmp_path / "x.npy", x)
    command = [LACUNA, "infer", tmp_path / "m.onnx", "-o", tmp_path / "out", "--input", f"x={tmp_path}/x.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not holds:
        assert done.returncode == 1 and not (tmp_path / "out" / "y.npy").exists()
        assert f"x.npy: found {found}, and element" in done.stderr and f"wanted an array of {wanted}" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), x.astype(NUMPY[wanted]))
    assert done.stderr.count(f"{found} as {wanted} for input 'x'") == 1
