# SPDX-License-Identifier: Apache-2.0
"""train --pretrained: files of the safetensors package for networks that torchvision and timm call so. What is read is
what ONNX Runtime computes with afterwards; with PyTorch, logits are torchvision's."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
DIGITS = TOP / "examples/digits"


def lacuna(*words):
    done = subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def cifar_folder(folder, n=40):
    """CIFAR-10 in binary form, noise."""
    folder.mkdir()
    random = np.random.default_rng(3)
    for name in [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]:
        labels = (np.arange(n) % 10).astype(np.uint8)[:, None]
        (folder / name).write_bytes(np.hstack([labels, random.integers(0, 256, (n, 3072), np.uint8)]).tobytes())
    return folder


def state_of(path):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def logits_of(path, images):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: images})[0]


def write_with_step_of_nothing(folder, arch, data, weights, *more):
    """The network with these weights, written after a step at rate 0; statistics move, so they are put back."""
    out = folder / "out.onnx"
    code, text = lacuna("train", "--arch", arch, "--data", data, "--pretrained", weights, "-o", out, "--steps", 1, "--lr", 0,
                        "--batch-size", 2, "--warmup-epochs", 0, "--schedule", "constant", "--no-eval", "--force", *more)
    assert code == 0, text
    return out, text


def with_statistics(path, state):
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if "running_" in tensor.name:
            tensor.CopyFrom(numpy_helper.from_array(state[tensor.name].astype(np.float32), tensor.name))
    onnx.save(model, path)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_what_the_safetensors_package_writes_is_read(tmp_path, dtype):
    safetensors = pytest.importorskip("safetensors.numpy")
    data = cifar_folder(tmp_path / "cifar")
    first = tmp_path / "first.onnx"
    code, text = lacuna("train", "-q", "--arch", "cifar-resnet20", "--data", data, "-o", first, "--steps", 1, "--batch-size", 2,
                        "--no-eval", "--seed", 5)
    assert code == 0, text
    random = np.random.default_rng(7)
    state = {name: (value + random.normal(0, 0.01, value.shape)).astype(dtype)
             for name, value in state_of(first).items() if value.dtype == np.float32}
    state = {name: abs(value) if name.endswith("running_var") else value for name, value in state.items()}
    renamed = {"module." + name.replace("fc.", "linear."): value for name, value in state.items()}
    renamed["module.bn1.num_batches_tracked"] = np.array(7)
    safetensors.save_file(renamed, tmp_path / "net.safetensors")
    out, text = write_with_step_of_nothing(tmp_path, "cifar-resnet20", data, tmp_path / "net.safetensors", "--seed", 9)
    assert f"{len(state)} tensors taken" in text and "not in" not in text
    for name, value in state_of(out).items():
        if name in state and "running_" not in name:
            assert np.array_equal(value, state[name].astype(np.float32)), name
    with_statistics(out, state)
    reference = onnx.load(first)
    for tensor in reference.graph.initializer:
        if tensor.name in state:
            tensor.CopyFrom(numpy_helper.from_array(state[tensor.name].astype(np.float32), tensor.name))
    onnx.save(reference, tmp_path / "reference.onnx")
    images = random.normal(0, 1, (4, 3, 32, 32)).astype(np.float32)
    assert np.array_equal(logits_of(out, images), logits_of(tmp_path / "reference.onnx", images))


@pytest.mark.torch
@pytest.mark.parametrize("arch", ["resnet18", "resnet50", "resnext50_32x4d"])
def test_logits_are_torchvisions(tmp_path, arch):
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("torchvision.models")
    save_file = pytest.importorskip("safetensors.torch").save_file
    data = cifar_folder(tmp_path / "cifar")
    torch.manual_seed(1)
    net = getattr(models, arch)(num_classes=10).eval()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_var, 0.5, 2)
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    out, text = write_with_step_of_nothing(tmp_path, arch, data, tmp_path / "net.safetensors")
    bytes_of = out.read_bytes()
    torch.save(net.state_dict(), tmp_path / "net.pth")
    torch.save({"state_dict": net.state_dict(), "epoch": 3, "args": ["x", None, True]}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for name in ("net.pth", "old.pt"):  # PyTorch's own files, in both formats
        assert write_with_step_of_nothing(tmp_path, arch, data, tmp_path / name)[0].read_bytes() == bytes_of, name
    assert "not in" not in text
    with_statistics(out, {name: value.numpy() for name, value in net.state_dict().items()})
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        wanted = net(images).numpy()
    assert np.abs(logits_of(out, images.numpy()) - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_what_is_no_file_of_pytorch_is_refused(tmp_path):
    (tmp_path / "net.pth").write_bytes(b"PK\3\4")
    code, text = lacuna("train", "--arch", "digits", "--data", DIGITS, "--pretrained", tmp_path / "net.pth", "-o", tmp_path / "x.onnx")
    assert code == 1 and "net.pth" in text and not (tmp_path / "x.onnx").exists()
