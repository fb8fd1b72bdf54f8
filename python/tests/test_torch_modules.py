# SPDX-License-Identifier: Apache-2.0
"""47 modules of torchvision and transformers with random weights: the same answers before masks, as many layers as through ONNX."""
import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
import lacuna.torch  # noqa: E402  pylint: disable=wrong-import-position
from lacuna.torch import export, orders  # noqa: E402  pylint: disable=wrong-import-position

pytestmark = [pytest.mark.torch, pytest.mark.large]
VISION = {  # name: size of its images; the largest come last
    "resnet18": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "shufflenet_v2_x1_0": 64, "mnasnet0_5": 64, "squeezenet1_1": 64,
    "efficientnet_b0": 64, "regnet_y_400mf": 64, "regnet_x_400mf": 64, "googlenet": 64, "densenet121": 64, "resnet50": 64,
    "resnext50_32x4d": 64, "convnext_tiny": 64, "swin_t": 64, "swin_v2_t": 64, "inception_v3": 96, "efficientnet_v2_s": 64,
    "alexnet": 64, "vit_b_32": 224, "vgg11_bn": 64}
WORDS = {"vocab_size": 96, "max_position_embeddings": 64}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
IMAGES = {"image_size": 32, "patch_size": 8}
CONV1D = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 96, "n_positions": 64}  # weights [in, out], and caches as outputs
OTHERS = {
    "BertModel": {**SMALL, **WORDS}, "RobertaForMaskedLM": {**SMALL, **WORDS}, "ElectraModel": {**SMALL, **WORDS, "embedding_size": 64},
    "DistilBertModel": {"dim": 64, "hidden_dim": 128, "n_layers": 2, "n_heads": 4, **WORDS}, "MPNetModel": {**SMALL, **WORDS},
    "AlbertModel": {**SMALL, **WORDS, "embedding_size": 32}, "DebertaV2Model": {**SMALL, **WORDS},
    "GPT2LMHeadModel": CONV1D, "OpenAIGPTModel": CONV1D, "GPTNeoXForCausalLM": {**SMALL, **WORDS},
    "OPTForCausalLM": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128, "word_embed_proj_dim": 64, **WORDS},
    "LlamaForCausalLM": {**SMALL, **WORDS, "num_key_value_heads": 2}, "Qwen2Model": {**SMALL, **WORDS, "num_key_value_heads": 2},
    "MistralModel": {**SMALL, **WORDS, "num_key_value_heads": 2, "head_dim": 16},
    "T5EncoderModel": {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 96},
    "CLIPTextModel": {**SMALL, **WORDS}, "CLIPVisionModel": {**SMALL, **IMAGES},
    "ViTForImageClassification": {**SMALL, **IMAGES}, "DeiTModel": {**SMALL, **IMAGES}, "BeitModel": {**SMALL, **IMAGES},
    "Dinov2Model": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, **IMAGES},
    "ConvNextModel": {"hidden_sizes": [32, 64], "depths": [1, 1], "num_stages": 2, "image_size": 32},
    "ResNetForImageClassification": {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [1, 1]},
    "SegformerForImageClassification": {
        "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [32, 64], "patch_sizes": [7, 3], "strides": [4, 2],
        "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 64},
    "MobileViTModel": {"image_size": 64, "hidden_sizes": [32, 48, 64], "neck_hidden_sizes": [16, 32, 32, 48, 64, 80, 96], "num_attention_heads": 4},
    "Wav2Vec2Model": {**SMALL, "conv_dim": (32, 32), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2,
                      "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
}


def of_torchvision(name):
    given = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    module = getattr(torchvision.models, name)(weights=None, **given)
    return module, torch.randn(1, 3, VISION[name], VISION[name], generator=torch.Generator().manual_seed(0))


def of_transformers(name):
    transformers = pytest.importorskip("transformers")
    kind, sizes = getattr(transformers, name), OTHERS[name]
    module = kind(kind.config_class(**sizes))
    if module.main_input_name == "input_ids":
        return module, {"input_ids": torch.arange(16).view(1, 16)}
    side = sizes.get("image_size", 64)
    shape = (1, 3, side, side) if module.main_input_name == "pixel_values" else (1, 800)
    return module, {module.main_input_name: torch.randn(shape, generator=torch.Generator().manual_seed(0))}


def spread(module):
    """Parameters and statistics as trained networks have them: none of them all ones or zeros, which any order would suit."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in module.parameters():
            if value.ndim == 1 or not value.any():  # a head of ViT begins as zeros, which are never pruned
                value.add_(torch.randn(value.shape, generator=generator) * 0.1)
        for name, value in module.named_buffers():
            if name.endswith("running_var"):
                value.copy_(torch.rand(value.shape, generator=generator) * 0.5 + 0.75)
            elif name.endswith("running_mean"):
                value.copy_(torch.randn(value.shape, generator=generator) * 0.1)


def holds(mask, axis):
    """Two of every four along the input channels."""
    return bool((mask.movedim(axis, -1).reshape(-1, 4).sum(1) == 2).all())


@pytest.mark.parametrize("name", [*OTHERS, *VISION])
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
    pruned = {layer.weight: layer.c_axis for layer in report.layers if layer.pruned}
    assert sorted(report.masks) == sorted(pruned) and len(before) == len(orders.answers(module, data))
    assert all(holds(report.masks[weight], axis) for weight, axis in pruned.items())
    assert all(bool((module.get_parameter(weight)[~mask] == 0).all()) for weight, mask in report.masks.items())
