#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: torch torchvision transformers onnx onnxscript onnxruntime onnxconverter-common numpy
"""Writes the torch fixtures of tests/fixtures/zoo: randomly initialized networks of torchvision and transformers
as PyTorch's two exporters write them, their weights stripped (strip.py).

    export_torch.py OUT_DIR [NAME_REGEX]
"""
import os
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch
import torchvision

from strip import save_stripped

warnings.simplefilter("ignore")

# fixture: (network, exporter, opset or None for the exporter's default, dynamic axes of the input)
FIXTURES = {
    "resnet18_ts": ("resnet18", "ts", 9, ()),
    "resnet50_ts": ("resnet50", "ts", None, ()),
    "resnet101_ts_dyn": ("resnet101", "ts", 17, (0,)),
    "resnext50_32x4d_ts": ("resnext50_32x4d", "ts", 13, ()),
    "densenet121_ts": ("densenet121", "ts", None, ()),
    "shufflenet_v2_x1_5_ts": ("shufflenet_v2_x1_5", "ts", 11, ()),
    "mobilenet_v2_ts": ("mobilenet_v2", "ts", 13, ()),
    "mobilenet_v3_small_ts": ("mobilenet_v3_small", "ts", None, ()),
    "efficientnet_b0_ts": ("efficientnet_b0", "ts", 17, ()),
    "googlenet_ts": ("googlenet", "ts", None, ()),
    "inception_v3_ts": ("inception_v3", "ts", 12, ()),
    "vgg16_bn_ts": ("vgg16_bn", "ts", 7, ()),
    "vgg16_ts_dyn": ("vgg16", "ts", 17, (0,)),
    "squeezenet1_1_ts": ("squeezenet1_1", "ts", 8, ()),
    "regnet_y_400mf_ts": ("regnet_y_400mf", "ts", 18, ()),
    "resnet18_ts_dyn": ("resnet18", "ts", None, (0, 2, 3)),
    "resnet50_ts_dyn": ("resnet50", "ts", 17, (0,)),
    "shufflenet_v2_x1_5_ts_dyn": ("shufflenet_v2_x1_5", "ts", None, (0,)),
    "resnet18_ts_tied": ("resnet18", "ts-tied", None, ()),
    "resnet50_folded": ("resnet50", "ts-folded", None, ()),
    "densenet121_folded": ("densenet121", "ts-folded", None, ()),
    "resnet50_dynamo": ("resnet50", "dynamo", None, (0,)),
    "shufflenet_v2_x1_5_dynamo": ("shufflenet_v2_x1_5", "dynamo", None, ()),
    "efficientnet_b0_dynamo": ("efficientnet_b0", "dynamo", 18, ()),
    "densenet121_dynamo": ("densenet121", "dynamo", 23, ()),
    "mobilenet_v2_dynamo": ("mobilenet_v2", "dynamo", None, ()),  # some metadata stays here
    "resnet18_f16": ("resnet18", "f16", None, ()),
    "resnet18_bf16": ("resnet18", "bf16", None, ()),
    "resnet20_qdq": ("resnet20", "qdq", None, ()),
    "vit_b_16_ts": ("vit_b_16", "ts-folded", 17, ()),
    "vit_b_16_dynamo": ("vit_b_16", "dynamo", None, (0,)),
    "bert_base_ts": ("bert_base", "ts-folded", 14, (0, 1)),
    "bert_base_dynamo": ("bert_base", "dynamo", None, ()),
}
KEEP_METADATA = {"mobilenet_v2_dynamo": 12}


class Block(torch.nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        conv, bn = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.body = torch.nn.Sequential(
            conv(i, o, 3, stride, 1, bias=False), bn(o), torch.nn.ReLU(), conv(o, o, 3, 1, 1, bias=False), bn(o))
        self.shortcut = torch.nn.Sequential(conv(i, o, 1, stride, bias=False), bn(o)) if i != o else torch.nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet20():
    """A CIFAR-sized ResNet-20, 16 to 64 channels."""
    layers, width = [torch.nn.Conv2d(3, 16, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.ReLU()], 16
    for out, stride in [(16, 1)] * 3 + [(32, 2), (32, 1), (32, 1)] + [(64, 2), (64, 1), (64, 1)]:
        layers.append(Block(width, out, stride))
        width = out
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))


class Bert(torch.nn.Module):
    """Configured as bert-base-uncased; the last hidden state and the pooled first token come out."""

    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertModel
        self.body = BertModel(BertConfig())

    def forward(self, input_ids, attention_mask, token_type_ids):
        y = self.body(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return y.last_hidden_state, y.pooler_output


def build(network, randomize):
    torch.manual_seed(0)
    if network == "resnet20":
        model = resnet20()
    elif network == "bert_base":
        model = Bert()
    else:
        inception = {"aux_logits": False, "transform_input": False, "init_weights": False}
        extra = inception if network in ("googlenet", "inception_v3") else {}
        model = getattr(torchvision.models, network)(weights=None, **extra)
    if randomize:  # equal tensors (fresh BatchNorms) would be merged into one by the exporter
        for name, t in list(model.named_parameters()) + list(model.named_buffers()):
            if t.dtype == torch.float32 and t.dim() == 1:
                t.data.uniform_(0.5, 1.5) if name.endswith(("weight", "var")) else t.data.normal_(0, 0.1)
    return model.eval()


def example(network, batch):
    """Inputs by name, output names, and what its axes are called."""
    if network == "bert_base":
        ids, ones = torch.randint(1000, 30000, (batch, 128)), torch.ones(batch, 128, dtype=torch.int64)
        inputs = {"input_ids": ids, "attention_mask": ones, "token_type_ids": 0 * ones}
        return inputs, ["last_hidden_state", "pooler_output"], {0: "batch", 1: "sequence"}
    size = 32 if network == "resnet20" else 299 if network == "inception_v3" else 224
    return {"input": torch.randn(batch, 3, size, size)}, ["output"], {0: "batch", 2: "height", 3: "width"}


def export(model, network, exporter, opset, dynamic, path):
    # torch.export takes a size of 1 for fixed
    inputs, outputs, axis_names = example(network, 2 if dynamic and exporter == "dynamo" else 1)
    names = {"input_names": list(inputs), "output_names": outputs, "opset_version": opset}
    axes = {a: axis_names[a] for a in dynamic}
    args = tuple(inputs.values())
    if exporter == "dynamo":
        shapes = tuple({a: torch.export.Dim(n) for a, n in axes.items()} for _ in args) if axes else None
        program = torch.onnx.export(model, args, dynamo=True, dynamic_shapes=shapes, **names)
        return program.model_proto
    # PRESERVE and no folding keep BatchNormalization in its inference form
    keep = {} if exporter == "ts-folded" else {
        "training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    moving = {name: axes for name in inputs} | {name: {0: "batch"} for name in outputs} if axes else None
    torch.onnx.export(model, args, path, dynamo=False, dynamic_axes=moving, **keep, **names)
    return onnx.load(path)


def to_f16(model):
    from onnxconverter_common import float16
    return float16.convert_float_to_float16(model)


def to_bf16(model):
    """Every float becomes bfloat16; the model must hold no operator that names a float type.
    Conv reads bfloat16 from opset 22 on, which this exporter does not write: the operators of a ResNet
    mean the same in 20 and 22."""
    def convert(t):
        a = onnx.numpy_helper.to_array(t).astype(np.float32).view(np.uint32)
        t.raw_data = ((a + 0x7FFF + ((a >> 16) & 1)) >> 16).astype(np.uint16).tobytes()
        t.data_type = onnx.TensorProto.BFLOAT16
    for t in model.graph.initializer:
        if t.data_type == onnx.TensorProto.FLOAT:
            convert(t)
    for node in model.graph.node:
        for a in node.attribute:
            if a.HasField("t") and a.t.data_type == onnx.TensorProto.FLOAT:
                convert(a.t)
    for v in list(model.graph.input) + list(model.graph.output) + list(model.graph.value_info):
        if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            v.type.tensor_type.elem_type = onnx.TensorProto.BFLOAT16
    model.opset_import[0].version, model.ir_version = 22, 10
    return model


def to_qdq(path):
    from onnxruntime import quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(q.CalibrationDataReader):
        def __init__(self):
            rng = np.random.default_rng(0)
            self.left = iter([{"input": rng.standard_normal((1, 3, 32, 32)).astype(np.float32)} for _ in range(8)])

        def get_next(self):
            return next(self.left, None)

    quant_pre_process(path, path + ".pre", skip_symbolic_shape=True)
    q.quantize_static(path + ".pre", path + ".qdq", Samples(), quant_format=q.QuantFormat.QDQ, per_channel=True)
    return onnx.load(path + ".qdq")


def main():
    out, pattern = sys.argv[1], re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    for name, (network, exporter, opset, dynamic) in FIXTURES.items():
        if not pattern.search(name):
            continue
        model = build(network, exporter != "ts-tied")
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "m.onnx")
            proto = export(model, network, exporter, opset, dynamic, path)
            if exporter == "f16":
                proto = to_f16(proto)
            if exporter == "bf16":
                proto = to_bf16(proto)
            if exporter == "qdq":
                proto = to_qdq(path)
        save_stripped(proto, os.path.join(out, name + ".onnx"), KEEP_METADATA.get(name, 0))


if __name__ == "__main__":
    main()
