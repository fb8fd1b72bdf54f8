#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: requirements-networks.txt
"""Makes the networks of bench/networks.py, one a run, and inputs to run them on.

    networks_make.py --list               the names of all of them
    networks_make.py OUT_DIR NAME ...     OUT_DIR/LIBRARY--NETWORK--EXPORTER/model.onnx and inputs.npz for each, or failed.txt

A NAME is LIBRARY/NETWORK/EXPORTER; each is made by a process of its own, which has the libraries loaded already. Networks of torchvision and transformers have random weights: those of layers get input
channels of different size, as trained ones have, and scales and statistics of normalizations differ from channel to
channel, so that no two tensors are equal. Trained files come from packages of PyPI that hold some.
"""
import importlib.metadata
import os
import pathlib
import shutil
import sys
import warnings

import numpy as np

EXPORTERS = ("torchscript", "dynamo")

# ---- torchvision: network -> what differs from a classifier of 64 x 64 pixels ----

CLASSIFIERS = {
    "alexnet": {"size": 224}, "resnet18": {}, "resnet50": {}, "resnext50_32x4d": {}, "wide_resnet50_2": {},
    "densenet121": {}, "vgg11_bn": {"size": 224}, "googlenet": {"options": {"aux_logits": False, "init_weights": False}},
    "inception_v3": {"size": 299, "options": {"aux_logits": False, "init_weights": False}}, "mobilenet_v2": {},
    "mobilenet_v3_small": {}, "mobilenet_v3_large": {}, "efficientnet_b0": {}, "efficientnet_v2_s": {},
    "shufflenet_v2_x1_0": {}, "squeezenet1_1": {}, "mnasnet1_0": {}, "regnet_x_400mf": {}, "regnet_y_400mf": {},
    "convnext_tiny": {}, "swin_t": {}, "swin_v2_t": {}, "vit_b_16": {"options": {"image_size": 64}},
    "maxvit_t": {"size": 224},
}
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large")
DETECTION = ("ssd300_vgg16", "ssdlite320_mobilenet_v3_large", "retinanet_resnet50_fpn", "fcos_resnet50_fpn",
             "fasterrcnn_mobilenet_v3_large_320_fpn", "fasterrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn",
             "maskrcnn_resnet50_fpn")
VIDEO = {"r3d_18": (8, 64), "mc3_18": (8, 64), "r2plus1d_18": (8, 64), "s3d": (16, 64), "mvit_v1_b": (16, 224),
         "swin3d_t": (8, 64)}

# ---- transformers: network -> class of the model, of its configuration, what differs there, what it reads ----

SMALL = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 320,
         "max_position_embeddings": 64}
LLAMA = {**SMALL, "num_key_value_heads": 2}
VISION = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256, "image_size": 64,
          "patch_size": 16}
GPT2 = {"n_embd": 128, "n_layer": 3, "n_head": 4, "vocab_size": 320, "n_positions": 64}
SEQ2SEQ = {"d_model": 128, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
           "decoder_attention_heads": 4, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256, "vocab_size": 320}
T5 = {"d_model": 128, "d_kv": 32, "d_ff": 256, "num_layers": 2, "num_heads": 4, "vocab_size": 320,
      "decoder_start_token_id": 0}
TRANSFORMERS = {
    "bert": ("BertModel", "BertConfig", SMALL, "words"),
    "bert-mlm": ("BertForMaskedLM", "BertConfig", SMALL, "words"),
    "roberta": ("RobertaForSequenceClassification", "RobertaConfig", SMALL, "words"),
    "distilbert": ("DistilBertModel", "DistilBertConfig",
                   {"dim": 128, "n_layers": 3, "n_heads": 4, "hidden_dim": 256, "vocab_size": 320}, "words"),
    "albert": ("AlbertModel", "AlbertConfig", {**SMALL, "embedding_size": 64}, "words"),
    "deberta-v2": ("DebertaV2Model", "DebertaV2Config",
                   {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16,
                    "norm_rel_ebd": "layer_norm", "share_att_key": True}, "words"),
    "electra": ("ElectraModel", "ElectraConfig", {**SMALL, "embedding_size": 64}, "words"),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL, "words"),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, "words"),
    "gpt2-untied": ("GPT2LMHeadModel", "GPT2Config", {**GPT2, "tie_word_embeddings": False}, "words"),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, "words"),
    "bloom": ("BloomForCausalLM", "BloomConfig", {"hidden_size": 128, "n_layer": 3, "n_head": 4, "vocab_size": 320}, "words"),
    "opt": ("OPTForCausalLM", "OPTConfig",
            {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 256, "vocab_size": 320,
             "max_position_embeddings": 64, "word_embed_proj_dim": 128}, "words"),
    "llama": ("LlamaForCausalLM", "LlamaConfig", LLAMA, "words"),
    "mistral": ("MistralForCausalLM", "MistralConfig", LLAMA, "words"),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", LLAMA, "words"),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**LLAMA, "head_dim": 32}, "words"),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**LLAMA, "head_dim": 32}, "words"),
    "phi": ("PhiForCausalLM", "PhiConfig", SMALL, "words"),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5, "pair"),
    "t5-gated": ("T5ForConditionalGeneration", "T5Config",
                 {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, "pair"),
    "bart": ("BartForConditionalGeneration", "BartConfig", {**SEQ2SEQ, "max_position_embeddings": 64}, "pair"),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig",
                {**SEQ2SEQ, "num_mel_bins": 80, "max_source_positions": 50, "max_target_positions": 32, "pad_token_id": 0,
                 "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None,
                 "begin_suppress_tokens": None}, "mel"),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config",
                 {**SMALL, "conv_dim": (64,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
                  "apply_spec_augment": False}, "sound"),
    "hubert": ("HubertModel", "HubertConfig",
               {**SMALL, "conv_dim": (64,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
                "apply_spec_augment": False}, "sound"),
    "vit": ("ViTForImageClassification", "ViTConfig", VISION, "image"),
    "deit": ("DeiTModel", "DeiTConfig", VISION, "image"),
    "beit": ("BeitModel", "BeitConfig", {**VISION, "use_relative_position_bias": True}, "image"),
    "dinov2": ("Dinov2Model", "Dinov2Config", {**VISION, "mlp_ratio": 2}, "image"),
    "swin": ("SwinModel", "SwinConfig",
             {"image_size": 64, "patch_size": 2, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
             "image"),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig",
                  {"hidden_sizes": [32, 64, 80, 128], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 5, 8],
                   "decoder_hidden_size": 64}, "image"),
    "detr": ("DetrForObjectDetection", "DetrConfig",
             {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
              "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "num_queries": 10,
              "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}, "image"),
    "yolos": ("YolosForObjectDetection", "YolosConfig", {**VISION, "image_size": [64, 64], "num_detection_tokens": 8}, "image"),
    "clip": ("CLIPModel", "CLIPConfig",
             {"projection_dim": 64, "text_config": {**SMALL, "eos_token_id": 2}, "vision_config": VISION}, "pictured words"),
    "convnext": ("ConvNextModel", "ConvNextConfig", {"hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 2, 1]}, "image"),
    "convnextv2": ("ConvNextV2Model", "ConvNextV2Config", {"hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 2, 1]},
                   "image"),
    "mobilevit": ("MobileViTModel", "MobileViTConfig", {"image_size": 64}, "image"),
    "resnet": ("ResNetModel", "ResNetConfig", {"embedding_size": 32, "hidden_sizes": [64, 128, 256, 512],
                                               "depths": [1, 1, 1, 1]}, "image"),
    "poolformer": ("PoolFormerModel", "PoolFormerConfig",
                   {"hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 1, 1]}, "image"),
    "mixer-mamba": ("MambaModel", "MambaConfig", {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 320}, "words"),
}

# ---- files inside packages of PyPI: package -> file (the end of its path) -> inputs that it is run on ----

PACKAGES = {
    "basic-pitch": {"nmp.onnx": {"serving_default_input_2:0": (1, 43844, 1)}},
    "magika": {"model.onnx": {"bytes": ("ids", (1, 2048), 256)}},
    "nudenet": {"320n.onnx": {"images": (1, 3, 320, 320)}},
    "silero-vad": {"silero_vad.onnx": {"input": (1, 576), "state": (2, 1, 128), "sr": ("ids", (), 16001)},
                   "silero_vad_16k_op15.onnx": {"input": (1, 576), "state": (2, 1, 128), "sr": ("ids", (), 16001)},
                   "silero_vad_half.onnx": {"input": (1, 576), "state": (2, 1, 128)},
                   "silero_vad_op18_ifless.onnx": {"input": (1, 576), "state": (2, 1, 128), "sr": ("ids", (), 16001)},
                   "silero_vad_16k_sequence.onnx": {"input": (4, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
                   "silero_vad_openvino_16k.onnx": {"input": (1, 576), "state": (2, 1, 128)}},
    "rapidocr-onnxruntime": {"ch_PP-OCRv4_det_infer.onnx": {"x": (1, 3, 64, 64)},
                             "ch_PP-OCRv4_rec_infer.onnx": {"x": (1, 3, 48, 96)},
                             "ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": (1, 3, 48, 192)}},
}


def names():
    for exporter in EXPORTERS:
        for network in (*CLASSIFIERS, *SEGMENTATION, *VIDEO, "raft_small"):
            yield f"torchvision/{network}/{exporter}"
        for network in TRANSFORMERS:
            yield f"transformers/{network}/{exporter}"
    for network in DETECTION:
        yield f"torchvision/{network}/torchscript"
    for package, files in PACKAGES.items():
        for file in files:
            yield f"{package}/{file}/trained"


# ---- PyTorch ----

def randomise(network, torch):
    """Input channels of layers differ in size; parameters of one axis are no two alike."""
    layers = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)
    with torch.no_grad():
        for module in network.modules():
            for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                if not tensor.is_floating_point() or tensor.dim() == 0:
                    continue
                transposed = type(module).__name__ == "Conv1D"  # transformers' own: input channels first
                if (transposed or isinstance(module, layers)) and name == "weight":
                    in_axis = 0 if transposed else 1
                    axis = [tensor.shape[a] if a == in_axis else 1 for a in range(tensor.dim())]
                    tensor.mul_(torch.exp(0.7 * torch.randn(axis)) / np.exp(0.49))
                elif tensor.dim() == 1:
                    positive = name.endswith(("weight", "var", "gamma", "lambda_1", "lambda_2"))
                    torch.nn.init.uniform_(tensor, 0.5, 1.5) if positive else torch.nn.init.normal_(tensor, 0, 0.1)


def normalize(network, torch):
    """Statistics of batch normalization become those of the network: with random ones activations shrink layer by layer until
    all scores of a detector are alike."""
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    with torch.no_grad():
        network(list(torch.rand(4, 3, 320, 320)))
    network.eval()


def torchvision_network(name):
    import torch
    import torchvision
    models = torchvision.models
    if name in SEGMENTATION:
        options = {"weights": None, "weights_backbone": None}
        return getattr(models.segmentation, name)(**options), {"image": torch.randn(1, 3, 96, 96)}
    if name in DETECTION:
        network = getattr(models.detection, name)(weights=None, weights_backbone=None)
        return network, {"image": torch.rand(1, 3, 320, 320)}
    if name in VIDEO:
        frames, size = VIDEO[name]
        return getattr(models.video, name)(weights=None), {"video": torch.randn(1, 3, frames, size, size)}
    if name == "raft_small":
        return (models.optical_flow.raft_small(weights=None),
                {"image1": torch.rand(1, 3, 128, 128), "image2": torch.rand(1, 3, 128, 128)})
    row = CLASSIFIERS[name]
    size = row.get("size", 64)
    return getattr(models, name)(weights=None, **row.get("options", {})), {"image": torch.randn(1, 3, size, size)}


def transformers_inputs(kind, torch):
    words = torch.randint(3, 300, (2, 16))
    return {"words": {"input_ids": words, "attention_mask": torch.ones_like(words)},
            "pair": {"input_ids": words, "decoder_input_ids": torch.randint(3, 300, (2, 8))},
            "mel": {"input_features": torch.randn(1, 80, 100), "decoder_input_ids": torch.randint(3, 300, (1, 8))},
            "sound": {"input_values": torch.randn(1, 3200)},
            "image": {"pixel_values": torch.randn(1, 3, 64, 64)},
            "pictured words": {"input_ids": words, "pixel_values": torch.randn(2, 3, 64, 64),
                               "attention_mask": torch.ones_like(words)}}[kind]


def transformers_network(name):
    import torch
    import transformers
    model, config, differs, kind = TRANSFORMERS[name]
    settings = getattr(transformers, config)(**differs)
    if name == "detr":
        settings.backbone_config = transformers.ResNetConfig(embedding_size=32, hidden_sizes=[32, 64, 128, 256],
                                                             depths=[1, 1, 1, 1], out_features=["stage4"])
    if hasattr(settings, "use_cache"):
        settings.use_cache = False
    inputs = transformers_inputs(kind, torch)

    class Plain(torch.nn.Module):
        """Tensors in, the first tensors out: exporters write no dictionaries."""

        def __init__(self):
            super().__init__()
            self.body = getattr(transformers, model)(settings)

        def forward(self, *values):
            found = self.body(**dict(zip(inputs, values)))
            return [value for value in found.to_tuple() if isinstance(value, torch.Tensor)][0]

    return Plain(), inputs


def export(network, inputs, exporter, path, torch):
    """Dynamic batches are left out: sizes of one image or sentence."""
    names_in = list(inputs)
    torch.onnx.export(network, tuple(inputs.values()), str(path), dynamo=exporter == "dynamo", input_names=names_in)


def make_torch(library, name, exporter, folder):
    import torch
    torch.manual_seed(0)
    network, inputs = (torchvision_network if library == "torchvision" else transformers_network)(name)
    network.eval()
    randomise(network, torch)
    if name.startswith("ssdlite"):
        normalize(network, torch)
    with torch.no_grad():
        export(network, inputs, exporter, folder / "model.onnx", torch)
    return {key: value.numpy() for key, value in inputs.items()}


# ---- trained files ----

def make_trained(package, file, folder):
    found = [each for each in importlib.metadata.files(package) if each.name == file]
    if not found:
        sys.exit(f"networks_make.py: {package} holds no {file}")
    shutil.copy(found[0].locate(), folder / "model.onnx")
    rng = np.random.default_rng(0)
    import onnxruntime
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    types = {value.name: value.type for value in session.get_inputs()}
    whole = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
    inputs = {}
    for name, shape in PACKAGES[package][file].items():
        if name not in types:
            continue
        if shape and shape[0] == "ids":
            _, shape, high = shape
            value = np.full(shape, 16000) if name == "sr" else rng.integers(0, high, shape)
            inputs[name] = value.astype(whole[types[name]])
        else:
            half = types[name] == "tensor(float16)"
            inputs[name] = rng.standard_normal(shape).astype(np.float16 if half else np.float32)
    return inputs


def make(name, folder):
    library, network, exporter = name.split("/")
    folder.mkdir(parents=True, exist_ok=True)
    trained = exporter == "trained"
    inputs = make_trained(library, network, folder) if trained else make_torch(library, network, exporter, folder)
    np.savez(folder / "inputs.npz", **inputs)


def load_libraries(names):
    """What children then share. Threads are theirs: none may be started here."""
    if any(name.startswith(("torchvision/", "transformers/")) for name in names):
        import torch
        import torchvision
        torch.set_num_threads(1)
    if any(name.startswith("transformers/") for name in names):
        import transformers
    if any(name.endswith("/dynamo") for name in names):
        import onnxscript


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names()))
        return
    wanted = sys.argv[2:]
    load_libraries(wanted)
    for name in wanted:
        folder = pathlib.Path(sys.argv[1]) / name.replace("/", "--")
        if (folder / "inputs.npz").exists():
            continue
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        try:
            make(name, folder)
        except BaseException as error:  # whatever an exporter says is kept, and the next one made
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "failed.txt").write_text(f"{type(error).__name__}: {error}"[:2000])
        os._exit(0)


if __name__ == "__main__":
    main()
