# SPDX-License-Identifier: Apache-2.0
"""Files of tensors without a network: by Python, and by `lacuna inspect`."""
import json
import struct
import subprocess

import numpy
import pytest

import lacuna


@pytest.fixture(name="path")
def a_file(tmp_path):
    """Weights that hold 2:4 along axis 1, along axis 0 and not at all, and a counter."""
    values = numpy.arange(1, 65, dtype=numpy.float32).reshape(8, 8)
    mask = numpy.array([0, 1, 1, 0] * 2, numpy.float32)
    arrays = {"conv": values * mask, "dense": values, "right": values * mask[:, None], "steps": numpy.array(3, numpy.int64)}
    header, at = {}, 0
    for name, array in arrays.items():
        kind = "I64" if array.dtype == numpy.int64 else "F32"
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    words = json.dumps(header).encode()
    path = tmp_path / "net.safetensors"
    path.write_bytes(struct.pack("<Q", len(words)) + words + b"".join(array.tobytes() for array in arrays.values()))
    return path


def test_tensors_by_name(path):
    file = lacuna.TensorFile(path)
    assert list(file) == ["conv", "dense", "right", "steps"] and file.shape("conv") == (8, 8) and file.dtype("steps") == "I64"
    assert file["dense"].tolist() == numpy.arange(1, 65, dtype=float).reshape(8, 8).tolist() and file.zeros("conv") == 32
    assert {name: file.holds(name) for name in file} == {"conv": True, "dense": False, "right": True, "steps": False}
    assert not file.holds("conv", "1:4") and file.holds("conv", (4, 8)) and file.zeros("steps") is None
    with pytest.raises(KeyError):
        file["absent"]  # pylint: disable=pointless-statement
    with pytest.raises(NotImplementedError, match="steps is of type I64"):
        file["steps"]  # pylint: disable=pointless-statement
    with pytest.raises(ValueError, match="wanted N:M, such as 2:4"):
        file.holds("conv", "64:2:8")


def test_files_of_pytorch(root):
    for name in ("state.pt", "old.pth"):
        file = lacuna.TensorFile(root / "tests/fixtures/torch" / name)
        assert file["weight"].shape == (4, 6) and file["bf16"].tolist() == [1.5, -2.0] and file.dtype("bf16") == "BF16"
    with pytest.raises(NotImplementedError, match="__builtin__.print"):
        lacuna.TensorFile(root / "tests/fixtures/torch/call.pt")


def test_the_command(path, command, root):
    def run(*words):
        return subprocess.run([command, "inspect", *words], capture_output=True, text=True, check=False)
    rows = {line.split()[0]: line.split()[1:] for line in run(path).stdout.splitlines() if line}
    assert rows["conv"] == ["F32", "8x8", "50.00%", "yes,", "along", "axis", "1"] and rows["dense"][-1] == "no"
    assert rows["right"][-1] == "0" and rows["steps"] == ["I64"]
    assert "2 of 3 with two axes or more hold 2:4" in run(path).stdout
    made = json.loads(run(path, "--json", "-", "--pattern", "1:4").stdout)
    assert [(row["name"], row["zeros"], row["pattern_axis"]) for row in made["tensors"]] == [
        ("conv", 32, None), ("dense", 0, None), ("right", 32, None), ("steps", None, None)] and made["pattern"] == "1:4"
    for words in (["--why", "conv"], ["--max-memory", "1G"], ["--pattern", "64:2:8"]):
        done = run(path, *words)
        assert done.returncode == 2 and "without their network" in done.stderr and not done.stdout
    done = run(root / "tests/fixtures/torch/call.pt")
    assert done.returncode == 1 and "wanted tensors and plain values only" in done.stderr
    assert run(path, "--json", path, "--force").returncode != 0 and path.stat().st_size > 700
