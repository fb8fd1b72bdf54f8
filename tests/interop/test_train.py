# SPDX-License-Identifier: Apache-2.0
"""What training writes, read by others: networks with fresh weights by onnx and ONNX Runtime, event files by the
tensorboard package, and (with PyTorch) the same outputs as torchvision's networks of the same weights."""
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest

NETWORKS = {"resnet18": (3, 64, 1000), "resnet50": (3, 64, 1000), "resnext50_32x4d": (3, 64, 1000),
            "cifar-resnet20": (3, 32, 10), "cifar-resnet56": (3, 32, 10), "digits": (1, 8, 10)}


def make(tool, tmp_path, name, *options):
    path = tmp_path / f"{name}.onnx"
    subprocess.run([tool("arch_main"), name, path, *options], check=True)
    return path


@pytest.mark.parametrize("shortcut", [(), ("shortcut=conv",)], ids=["usual", "conv"])
@pytest.mark.parametrize("name", NETWORKS)
def test_new_network(tool, tmp_path, name, shortcut):
    if shortcut and not name.startswith("cifar"):
        pytest.skip("only CIFAR's networks have the choice")
    channels, size, classes = NETWORKS[name]
    path = make(tool, tmp_path, name, f"size={size}", *shortcut)
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for n in (1, 3):
        image = np.random.default_rng(n).standard_normal((n, channels, size, size)).astype(np.float32)
        scores, = session.run(["scores"], {"image": image})
        assert scores.shape == (n, classes) and np.isfinite(scores).all() and scores.std() > 0


@pytest.mark.torch
@pytest.mark.parametrize("name", ["resnet18", "resnet34", "resnet50", "resnet101", "resnext50_32x4d"])
def test_same_as_torchvision(tool, tmp_path, name):
    import torch
    import torchvision
    path = make(tool, tmp_path, name, "size=64")
    network = getattr(torchvision.models, name)(weights=None).eval()
    model = onnx.load(str(path))
    stored = {x.name: onnx.numpy_helper.to_array(x).copy() for x in model.graph.initializer}
    rng = np.random.default_rng(0)
    for tensor in model.graph.initializer:  # scales of 0 would hide the blocks
        if stored[tensor.name].ndim == 1:
            stored[tensor.name] = rng.uniform(0.5, 1.5, stored[tensor.name].shape).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(stored[tensor.name], tensor.name))
    missing, unexpected = network.load_state_dict({k: torch.tensor(v) for k, v in stored.items()}, strict=False)
    assert not unexpected and all(x.endswith("num_batches_tracked") for x in missing)
    image = rng.standard_normal((2, 3, 64, 64)).astype(np.float32)
    with torch.no_grad():
        wanted = network(torch.tensor(image)).numpy()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found, = session.run(None, {"image": image})
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_tensorboard_reads_events(tool, tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    subprocess.run([tool("events_main"), tmp_path, "20"], check=True, stdout=subprocess.DEVNULL)
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert events.Tags()["scalars"] == ["loss", "accuracy/top1"]
    loss = events.Scalars("loss")
    assert [x.step for x in loss] == list(range(1, 21))
    assert np.allclose([x.value for x in loss], [1 / x for x in range(1, 21)])
    assert events.Scalars("accuracy/top1")[4].value == 50
