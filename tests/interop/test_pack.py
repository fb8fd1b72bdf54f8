# SPDX-License-Identifier: Apache-2.0
"""Packs of networks that others made: every byte comes back, onnx and ONNX Runtime see what they saw before."""
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
MODELS = [TOP / "examples/digits/digits.onnx", *sorted(TOP.glob("../shared/models/resnet*.onnx"))]


def lacuna(*words):
    done = subprocess.run([LACUNA, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(path, seed=0):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    feed = {i.name: rng.standard_normal([d if isinstance(d, int) else 2 for d in i.shape]).astype(np.float32)
            for i in session.get_inputs()}
    return session.run(None, feed)


def there_and_back(path, tmp_path, pattern="2:4"):
    """The path of the unpacked model, in a folder of its own."""
    (tmp_path / "back").mkdir()
    lacuna("pack", "-q", path, "-o", tmp_path / "p.pack", "--pattern", pattern)
    lacuna("unpack", "-q", tmp_path / "p.pack", "-o", tmp_path / "back" / path.name)
    assert (tmp_path / "back" / path.name).read_bytes() == path.read_bytes()
    return tmp_path / "back" / path.name


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_runtime_gives_identical_outputs_before_and_after(model, tmp_path):
    pruned = tmp_path / "pruned.onnx"
    lacuna("prune", "--no-calibration", "-q", "--no-permute", "-o", pruned, model)
    back = there_and_back(pruned, tmp_path)
    for data in tmp_path.glob("*.data"):
        assert (tmp_path / "back" / data.name).read_bytes() == data.read_bytes()
    onnx.checker.check_model(str(back), full_check=True)
    for before, after in zip(run(pruned), run(back)):
        assert np.array_equal(before, after)


def conv_model(weight, typed_field=False):
    """x -> Conv(weight) in the weight's type."""
    dtype = helper.np_dtype_to_tensor_dtype(weight.dtype)
    stored = numpy_helper.from_array(weight, "w")
    if typed_field:
        stored = helper.make_tensor("w", dtype, weight.shape, weight.flatten().tolist())
    shape = [1, weight.shape[1], 8, 8]
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], "g",
                              [helper.make_tensor_value_info("x", dtype, shape)],
                              [helper.make_tensor_value_info("y", dtype, None)], [stored])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def masked(dtype, multiply):
    """2:4 along axis 1; multiply: by a mask, so that there are negative zeros."""
    rng = np.random.default_rng(1)
    w = rng.standard_normal((16, 32, 3, 3)).astype(dtype)
    keep = np.zeros_like(w)
    for block in range(0, 32, 4):
        keep[:, [block + 1, block + 2]] = 1
    return w * keep if multiply else np.where(keep != 0, w, np.zeros_like(w))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("multiply", [False, True])
def test_every_float_type_and_negative_zeros(dtype, multiply, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(conv_model(masked(dtype, multiply)), str(path))
    there_and_back(path, tmp_path)
    assert (tmp_path / "p.pack").stat().st_size < 0.75 * path.stat().st_size


def test_floats_in_a_typed_field_are_packed(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(conv_model(masked(np.float32, False), typed_field=True), str(path))
    there_and_back(path, tmp_path)
    assert (tmp_path / "p.pack").stat().st_size < 0.65 * path.stat().st_size


def test_a_constant_node_s_weight_is_packed(tmp_path):
    path = tmp_path / "m.onnx"
    model = conv_model(masked(np.float32, False))
    weight = model.graph.initializer[0]
    model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=weight))
    del model.graph.initializer[:]
    onnx.save(model, str(path))
    back = there_and_back(path, tmp_path)
    assert (tmp_path / "p.pack").stat().st_size < 0.65 * path.stat().st_size
    assert np.array_equal(run(path)[0], run(back)[0])


def test_external_data_in_a_folder_of_its_own(tmp_path):
    source = tmp_path / "source"
    (source / "data").mkdir(parents=True)
    onnx.save(conv_model(masked(np.float32, False)), str(source / "m.onnx"), save_as_external_data=True,
              location="data/w.bin", size_threshold=0)
    lacuna("pack", "-q", source / "m.onnx", "-o", tmp_path / "p.pack")
    lacuna("unpack", "-q", tmp_path / "p.pack", "-o", tmp_path / "m.onnx")
    assert np.array_equal(run(source / "m.onnx")[0], run(tmp_path / "m.onnx")[0])


def quantized(zero_points):
    """x -> Conv(DequantizeLinear(u8 weight)); a zero point a channel, or one."""
    rng = np.random.default_rng(2)
    zero = np.asarray(zero_points, dtype=np.uint8)
    full = np.broadcast_to(zero.reshape(-1, 1, 1, 1), (16, 32, 3, 3)).copy()
    for block in range(0, 32, 4):
        full[:, [block, block + 3]] = rng.integers(0, 255, (16, 2, 3, 3))
    per_channel = zero.size > 1
    scale = np.full(zero.shape, 0.02, dtype=np.float32)
    stored = [numpy_helper.from_array(a, n) for a, n in ((full, "w"), (scale, "s"), (zero, "z"))]
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], **({"axis": 0} if per_channel else {})),
             helper.make_node("Conv", ["x", "d"], ["y"], name="conv")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_zero_point_takes_the_place_of_zero(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(quantized(np.uint8(7)), str(path))
    there_and_back(path, tmp_path)
    assert "1 weight packed" in lacuna("pack", "-q", "--force", path, "-o", tmp_path / "p.pack")
    onnx.save(quantized(np.arange(16)), str(path))
    assert "zero points differ" in lacuna("pack", "-q", "--force", path, "-o", tmp_path / "p.pack")
