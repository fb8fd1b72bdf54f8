#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: requirements-networks.txt, ultralytics torchcrepe easyocr resemblyzer ddddocr
"""Makes the twenty networks that people deploy, which bench/peers.py times, and DIR/peers.txt, its arguments for all of them.

    peers_make.py DIR [NAME ...]
    peers.py [options] @DIR/peers.txt

Those inside packages are copied; where their sizes are open, the arguments fix them. The rest are exported: trained ones where a
package has the weights (torchcrepe, Resemblyzer), else random ones, of which only times count. What is in DIR already is kept.
"""
import importlib.util
import pathlib
import shutil
import sys
import types
import warnings

from tasks_made import SHARED, package_file

# Name -> package, file in it, and sizes where it leaves them open.
FILES = {
    "pp-ocr-det": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", {"x": "1x3x480x640"}),
    "pp-ocr-rec": ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", {"x": "1x3x48x320"}),
    "pp-ocr-cls": ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": "1x3x48x192"}),
    "basic-pitch": ("basic_pitch", "saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0": "1x43844x1"}),
    "magika": ("magika", "models/standard_v3_3/model.onnx", {"bytes": "1x2048"}),
    "nudenet": ("nudenet", "320n.onnx", {"images": "1x3x320x320"}),
    "silero-vad": ("silero_vad", "data/silero_vad_openvino_16k.onnx", {}),
    "ddddocr": ("ddddocr", "common.onnx", {"input1": "1x1x64x160"}),
}


def crepe(capacity):
    """The package's module of the network alone: the package imports torchaudio, which is not there for every torch."""
    import torch
    module, weights = package_file("torchcrepe", "model.py"), package_file("torchcrepe", f"assets/{capacity}.pth")
    spec = importlib.util.spec_from_file_location("crepe_model", module)
    found = importlib.util.module_from_spec(spec)
    sys.modules["torchcrepe"] = types.SimpleNamespace(PITCH_BINS=360)
    try:
        spec.loader.exec_module(found)
    finally:
        del sys.modules["torchcrepe"]
    network = found.Crepe(capacity)
    network.load_state_dict(torch.load(weights, map_location="cpu"))
    return network, {"frames": torch.randn(1, 1024)}


def craft():
    import torch
    from easyocr.craft import CRAFT
    return CRAFT(pretrained=False, freeze=False), {"image": torch.randn(1, 3, 320, 480)}


def crnn():
    import torch
    from easyocr.model.vgg_model import Model

    class Lines(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = Model(1, 256, 256, 97)

        def forward(self, image):
            return self.network(image, None)

    return Lines(), {"image": torch.randn(1, 1, 64, 320)}


def resemblyzer():
    import torch
    from resemblyzer.voice_encoder import VoiceEncoder
    return VoiceEncoder("cpu", verbose=False), {"mels": torch.randn(1, 160, 40)}


def yolo(config):
    import torch
    import ultralytics
    network = ultralytics.YOLO(config).model.fuse()
    network.model[-1].export, network.model[-1].format = True, "onnx"
    return network, {"images": torch.rand(1, 3, 640, 640)}


def whisper_encoder():
    import torch
    import transformers
    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
                                        decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536)
    return transformers.WhisperModel(config).get_encoder(), {"mels": torch.randn(1, 80, 3000)}


def vit():
    import torch
    import torchvision
    return torchvision.models.vit_b_16(weights=None), {"x": torch.randn(1, 3, 224, 224)}


def words(name):
    """A network of 128 token ids and a mask: DistilBERT's sizes, or MiniLM-L6's."""
    import torch
    import transformers

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            if name == "distilbert":
                self.network = transformers.DistilBertModel(transformers.DistilBertConfig())
            else:
                self.network = transformers.BertModel(transformers.BertConfig(
                    hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536))

        def forward(self, ids, mask):
            return self.network(input_ids=ids, attention_mask=mask).last_hidden_state

    return Words(), {"ids": torch.randint(0, 30000, (1, 128)), "mask": torch.ones(1, 128, dtype=torch.long)}


MADE = {"minilm": lambda: words("minilm"), "craft": craft, "crnn": crnn, "crepe-full": lambda: crepe("full"),
        "crepe-tiny": lambda: crepe("tiny"), "resemblyzer": resemblyzer, "yolo11n": lambda: yolo("yolo11n.yaml"),
        "yolov8n-seg": lambda: yolo("yolov8n-seg.yaml"), "whisper-encoder": whisper_encoder, "vit-b-16": vit,
        "distilbert": lambda: words("distilbert")}


def export(path, made):
    """Weights need no gradient, but gradients stay on: without them PyTorch's encoders take a fused operator that ONNX lacks."""
    import torch
    torch.manual_seed(0)
    network, inputs = made()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), tuple(inputs.values()), str(path), input_names=list(inputs), opset_version=17,
                          dynamo=False)


def make(folder, name):
    """The arguments of peers.py for the network, whose file is there when this returns."""
    path = folder / f"{name}.onnx"
    package, file, sizes = FILES.get(name, (None, None, {}))
    if not path.exists():
        if name in MADE:
            export(path, MADE[name])
        else:
            source = package_file(package, file) if package else SHARED / "models/efficientnet_lite0.onnx"
            if source is None:
                raise FileNotFoundError(f"package {package} with {file}")
            shutil.copy(source, path)
    return [str(path), *(f"{port}={shape}" for port, shape in sizes.items())]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    arguments = []
    for name in [*FILES, "efficientnet-lite0", *MADE]:
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        try:
            arguments += make(folder, name)
        except Exception as failed:  # whatever an export may raise: the others are made
            print(f"{name}: {failed}", file=sys.stderr)
    (folder / "peers.txt").write_text("\n".join(arguments) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
