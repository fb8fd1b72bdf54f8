# SPDX-License-Identifier: Apache-2.0
"""A network from a path, bytes and a ModelProto; its tensors; errors as exceptions."""
import pickle

import numpy
import pytest

import lacuna


def test_sources_are_alike(digits):
    onnx = pytest.importorskip("onnx")
    data = digits.read_bytes()
    models = [lacuna.Model(source) for source in (digits, str(digits), data, memoryview(data), onnx.load(digits))]
    names = list(models[0].tensors)
    assert names and all(list(model.tensors) == names for model in models)
    assert all((model.tensors[names[0]] == models[0].tensors[names[0]]).all() for model in models)
    assert "digits.onnx" in repr(models[0]) and "memory" in repr(models[2])
    with pytest.raises(TypeError, match="not int"):
        lacuna.Model(3)


def test_tensors_are_read_and_written(digits, tmp_path):
    onnx = pytest.importorskip("onnx")
    model = lacuna.Model(digits)
    old = model.tensors["conv1.weight"]
    model.tensors["conv1.weight"] = 2 * old.astype(numpy.float64)
    assert (model.tensors["conv1.weight"] == 2 * old).all() and "conv1.weight" in model.tensors and "x" not in model.tensors
    with pytest.raises(ValueError, match="wanted"):
        model.tensors["conv1.weight"] = old[:1]
    with pytest.raises(LookupError, match="nothing"):
        model.tensors["nothing"]  # pylint: disable=pointless-statement
    path = tmp_path / "twice.onnx"
    model.save(path)
    assert path.read_bytes() == model.to_bytes()
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.to_onnx().graph.initializer}
    assert (stored["conv1.weight"] == 2 * old).all()
    with pytest.raises(FileExistsError):
        model.save(path)
    model.save(path, force=True)


def test_an_error_has_its_cure(digits, tmp_path):
    with pytest.raises(lacuna.Error, match="allowed") as memory:
        lacuna.prune(digits, max_memory=1)
    assert isinstance(memory.value, MemoryError) and memory.value.status == "MEMORY_LIMIT"
    assert memory.value.cure.startswith("max_memory=") and memory.value.cure in str(memory.value)
    again = pickle.loads(pickle.dumps(memory.value))
    assert (str(again), again.hint) == (str(memory.value), "MAX_MEMORY")
    with pytest.raises(LookupError, match="cannot open"):
        lacuna.Model(tmp_path / "nothing.onnx")
    with pytest.raises(ValueError, match="pattern"):
        lacuna.prune(digits, pattern="two")
    with pytest.raises(ValueError, match="effort='long': wanted .*fast"):
        lacuna.prune(digits, effort="long")
    with pytest.raises(ValueError, match="it goes with calibration"):
        lacuna.prune(digits, keep_dense=1, no_calibration=True)
    with pytest.raises(TypeError, match="patern"):
        lacuna.prune(digits, patern="2:4")
    with pytest.raises(ValueError, match="Relu is an operator that Lacuna knows"):
        lacuna.prune(digits, assume=["Relu=same"])
    taken = tmp_path / "taken.onnx"
    taken.touch()
    with pytest.raises(FileExistsError, match="force=True"):
        lacuna.prune(digits, taken)
    with pytest.raises(ValueError, match="ranges") as quantized:
        lacuna.quantize(digits)
    assert quantized.value.hint == "CALIBRATION"
