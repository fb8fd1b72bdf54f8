# SPDX-License-Identifier: Apache-2.0
"""Networks as the installed PyTorch exports them today, by both exporters: the whole pipeline, and the same outputs."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnxruntime
import pytest

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
# network: layers, eligible ones (which are all permuted), groups
WANTED = {"resnet18": (21, 20, 12), "resnet50": (54, 53, 37), "mobilenet_v2": (53, 33, 24),
          "shufflenet_v2_x1_5": (57, 28, 74), "efficientnet_b0": (82, 38, 26), "densenet121": (121, 120, 120)}

# The same without the exporters' own folding, which leaves Shape nodes that read weights: as many layers.
RAW = {"torchscript": {"dynamo": False, "do_constant_folding": False}, "dynamo": {"dynamo": True, "optimize": False}}
RAW_WANTED = {"resnet18": (21, 20, 20), "mobilenet_v2": (53, 33, 33), "vit": (10, 9, 9), "encoder": (5, 5, 2)}

pytestmark = pytest.mark.torch


def randomise(network, torch):
    """Parameters of one axis that matter: the initial ones are all 0 or 1, and the exporter stores equal ones once."""
    for module in network.modules():
        for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if tensor.dim() != 1:
                continue
            positive = isinstance(module, torch.nn.BatchNorm2d) and name in ("weight", "running_var")
            torch.nn.init.uniform_(tensor, 0.5, 1.5) if positive else torch.nn.init.normal_(tensor, 0, 0.1)


@pytest.mark.parametrize("dynamo", [False, True], ids=["torchscript", "dynamo"])
@pytest.mark.parametrize("name", WANTED)
def test_pipeline(name, dynamo, tmp_path):
    import torch
    import torchvision
    torch.manual_seed(0)
    network = getattr(torchvision.models, name)(weights=None).eval()
    randomise(network, torch)
    model, permuted, pruned = (tmp_path / f"{x}.onnx" for x in ("model", "permuted", "pruned"))
    image = torch.randn(1, 3, 64, 64)
    torch.onnx.export(network, (image,), str(model), dynamo=dynamo, input_names=["image"])

    subprocess.run([LACUNA, "permute", "-q", "-o", permuted, model], check=True, stdout=subprocess.DEVNULL)
    with torch.no_grad():
        wanted = network(image).numpy()
    session = onnxruntime.InferenceSession(str(permuted), providers=["CPUExecutionProvider"])
    found = session.run(None, {"image": image.numpy()})[0]
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()

    done = subprocess.run([LACUNA, "prune", "--no-calibration", "--no-solve", "-q", "-o", pruned, "--json", "-", model], check=True,
                          stdout=subprocess.PIPE)
    summary = json.loads(done.stdout)["summary"]
    layers, eligible, groups = WANTED[name]
    assert (summary["layers"], summary["eligible"], summary["permuted"], summary["pruned"], summary["groups"]) == (
        layers, eligible, eligible, eligible, groups)
    assert summary["max_abs_error"] <= 1e-9 * summary["max_abs_output"]
    subprocess.run([LACUNA, "check", "-q", "--against", model, pruned], check=True, stdout=subprocess.DEVNULL)


def network_of(name, torch, torchvision):
    """The network and an input; transformers are small, and all that they learn is random."""
    if name == "vit":
        network, x = torchvision.models.VisionTransformer(32, 16, 2, 4, 64, 128), torch.randn(1, 3, 32, 32)
    elif name == "encoder":
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        network, x = torch.nn.Sequential(torch.nn.Linear(64, 64), layer), torch.randn(1, 10, 64)
    else:
        network, x = getattr(torchvision.models, name)(weights=None), torch.randn(1, 3, 64, 64)
        randomise(network, torch)
        return network.eval(), x
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0, 0.1)
    return network.eval(), x


@pytest.mark.parametrize("exporter", RAW)
@pytest.mark.parametrize("name", RAW_WANTED)
def test_exports_that_nothing_has_folded_permute_as_many_layers(name, exporter, tmp_path):
    import torch
    import torchvision
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # the older exporter cannot write that operator
    network, x = network_of(name, torch, torchvision)
    model, permuted = tmp_path / "model.onnx", tmp_path / "permuted.onnx"
    torch.onnx.export(network, (x,), str(model), input_names=["x"], external_data=False, **RAW[exporter])
    done = subprocess.run([LACUNA, "permute", "-q", "-o", permuted, "--json", "-", model], check=True,
                          stdout=subprocess.PIPE)
    summary = json.loads(done.stdout)["summary"]
    assert (summary["layers"], summary["eligible"], summary["permuted"]) == RAW_WANTED[name]
    with torch.no_grad():
        wanted = network(x).numpy()
    session = onnxruntime.InferenceSession(str(permuted), providers=["CPUExecutionProvider"])
    assert np.abs(session.run(None, {"x": x.numpy()})[0] - wanted).max() <= 1e-4 * np.abs(wanted).max()
