# SPDX-License-Identifier: Apache-2.0
"""Twenty modules of torchvision and transformers with random weights: the same answers before masks, as many layers as through ONNX."""
import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
import lacuna.torch  # noqa: E402  pylint: disable=wrong-import-position
from lacuna.torch import export, orders  # noqa: E402  pylint: disable=wrong-import-position

pytestmark = [pytest.mark.torch, pytest.mark.large]
VISION = ["alexnet", "vgg11_bn", "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "squeezenet1_1", "mobilenet_v2",
          "mobilenet_v3_small", "shufflenet_v2_x1_0", "mnasnet0_5", "regnet_y_400mf", "regnet_x_400mf"]
WORDS = {"vocab_size": 96, "max_position_embeddings": 64}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
OTHERS = {
    "BertModel": {**SMALL, **WORDS}, "RobertaForMaskedLM": {**SMALL, **WORDS}, "ElectraModel": {**SMALL, **WORDS, "embedding_size": 64},
    "DistilBertModel": {"dim": 64, "hidden_dim": 128, "n_layers": 2, "n_heads": 4, **WORDS},
    "AlbertModel": {**SMALL, **WORDS, "embedding_size": 32}, "MPNetModel": {**SMALL, **WORDS},
}


def of_torchvision(name):
    return getattr(torchvision.models, name)(weights=None), torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def of_transformers(name):
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, name)
    return kind(kind.config_class(**OTHERS[name])), {"input_ids": torch.arange(16).view(1, 16)}


def spread(module):
    """Statistics and scales as trained networks have them, none of them one or zero."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                for value in (part.weight, part.running_var):
                    value.copy_(torch.rand(value.shape, generator=generator) * 0.5 + 0.75)
                for value in (part.bias, part.running_mean):
                    value.copy_(torch.randn(value.shape, generator=generator) * 0.1)


@pytest.mark.parametrize("name", VISION + list(OTHERS))
def test_a_module_is_as_its_network(name):
    torch.manual_seed(0)
    module, data = of_torchvision(name) if name in VISION else of_transformers(name)
    module.eval()
    spread(module)
    exported = export.Exported(module, data, allow_unused=True)
    through = lacuna.inspect(exported.model(export.tensors_of(module)), fold=False)
    before = orders.answers(module, data)
    report = lacuna.torch.prune(module, data, allow_unused=True, effort="fast", verify=False)
    assert report.summary.pruned == through.summary.eligible > 0 and report.difference <= 1e-4
    pruned = [layer.weight for layer in report.layers if layer.pruned]
    assert sorted(report.masks) == sorted(set(pruned)) and len(before) == len(orders.answers(module, data))
    assert all(2 * int(mask.sum()) == mask.numel() for mask in report.masks.values())
