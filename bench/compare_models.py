# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/compare.py as files: filled with random weights, at one batch size, with inputs to run them on.

All engines read the same file, and it says one fixed batch size, so that each of them may plan for it. An engine that
knows only older operator sets gets a converted copy. What a network must answer is what ONNX Runtime answers in f32.
"""
import json
import pathlib
import subprocess

import numpy as np
import onnx
from inputs import write_input
from onnx import version_converter

TOP = pathlib.Path(__file__).resolve().parent.parent
# network: (what it is called in tables, its file in tests/fixtures/zoo, sizes of axes that the file leaves open)
NETWORKS = {
    "resnet18": ("ResNet-18", "resnet18_ts", {}),
    "resnet50": ("ResNet-50", "resnet50_ts_dyn", {}),
    "resnet101": ("ResNet-101", "resnet101_ts_dyn", {}),
    "resnext50": ("ResNeXt-50 32x4d", "resnext50_32x4d_ts", {}),
    "mobilenet_v2": ("MobileNet-v2", "mobilenet_v2_ts", {}),
    "efficientnet_b0": ("EfficientNet-B0", "efficientnet_b0_ts", {}),
    "densenet121": ("DenseNet-121", "densenet121_ts", {}),
    "vgg16": ("VGG-16", "vgg16_ts_dyn", {}),
    "vit_b_16": ("ViT-B/16", "vit_b_16_dynamo", {}),
    "bert_base": ("BERT-base", "bert_base_ts", {"sequence": 128}),
}
NEWEST_OF_DEEPSPARSE = 17
VOCABULARY = 30000


def set_batch(model, batch, sizes):
    """Gives every input's first axis this size; what was said of values between is dropped."""
    stored = {tensor.name for tensor in model.graph.initializer}
    for port in model.graph.input:
        if port.name in stored:
            continue
        for axis, dim in enumerate(port.type.tensor_type.shape.dim):
            if axis == 0:
                dim.dim_value = batch
            elif dim.dim_param:
                dim.dim_value = sizes[dim.dim_param]
    for port in model.graph.output:
        port.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def ports_of(model):
    stored = {tensor.name for tensor in model.graph.initializer}
    kinds = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.INT32: "int32", onnx.TensorProto.INT64: "int64"}
    inputs = [(port.name, [d.dim_value for d in port.type.tensor_type.shape.dim], kinds[port.type.tensor_type.elem_type])
              for port in model.graph.input if port.name not in stored]
    return {"inputs": inputs, "outputs": [port.name for port in model.graph.output]}


def make_input(rng, name, shape, kind):
    if kind == "float32":
        return rng.standard_normal(shape, np.float32)
    if "mask" in name:
        return np.ones(shape, np.int64)
    return rng.integers(0, 2 if "type" in name else VOCABULARY, shape)


def save_at(model, batch, sizes, path):
    """Writes the model for this batch, with what follows from it said of all values."""
    set_batch(model, batch, sizes)
    model = onnx.shape_inference.infer_shapes(model)
    del model.graph.value_info[:]
    onnx.save(model, path)
    return model


def prepare(network, batch, build, folder):
    """Writes folder/model.onnx, its inputs, and a copy for DeepSparse if it needs one; returns the model's path."""
    _, fixture, sizes = NETWORKS[network]
    path = folder / "model.onnx"
    subprocess.run([build / "tests/tools/fill_model", TOP / f"tests/fixtures/zoo/{fixture}.onnx", path, "1"], check=True,
                   stdout=subprocess.DEVNULL)
    model = save_at(onnx.load(path), batch, sizes, path)
    ports, rng = ports_of(model), np.random.default_rng(0)
    (folder / "ports.json").write_text(json.dumps(ports))
    for name, shape, kind in ports["inputs"]:
        write_input(folder, name, make_input(rng, name, shape, kind))
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    if opset > NEWEST_OF_DEEPSPARSE:
        write_older(model, folder / "model.older.onnx")
    return path


def prune(path, batch, build):
    """The network 2:4, as `lacuna prune` writes it, in a folder of its own with the same inputs; returns its path. It is pruned
    at batch 1: the analysis of channels looks at every position of a reshaped value."""
    folder = path.parent / "pruned"
    folder.mkdir()
    one, pruned = folder / "one.onnx", folder / "model.onnx"
    save_at(onnx.load(path), 1, {}, one)
    subprocess.run([build / "lacuna", "prune", "-q", "--no-permute", "--no-calibration", one, "-o", pruned], check=True,
                   stdout=subprocess.DEVNULL)
    save_at(onnx.load(pruned), batch, {}, pruned)
    for name in [path.parent / "ports.json", *path.parent.glob("*.bin")]:
        (folder / name.name).symlink_to(name)
    if (path.parent / "model.older.onnx").exists() or (path.parent / "model.older.txt").exists():
        write_older(onnx.load(pruned), folder / "model.older.onnx")
    return pruned


def write_older(model, path):
    """For DeepSparse: a copy, or where it cannot be converted back a file that says why."""
    try:
        onnx.save(version_converter.convert_version(model, NEWEST_OF_DEEPSPARSE), path)
    except (RuntimeError, ValueError) as why:
        text = str(why).rpartition(": ")[2].strip()
        path.with_suffix(".txt").write_text(f"no conversion to operator set {NEWEST_OF_DEEPSPARSE}, which it knows: {text}")


def difference(folder, got):
    """The largest absolute difference of an output from the reference, relative to the output's scale; the worst output's.
    Infinite where one is missing, of another size or not a number."""
    worst = 0.0
    for name in json.loads((folder / "ports.json").read_text())["outputs"]:
        file = f"{name.replace('/', '_')}.bin"
        want, have = (np.fromfile(place / file, np.float32) if (place / file).exists() else np.empty(0)
                      for place in (folder / "reference", got))
        if not want.size or want.shape != have.shape or not np.isfinite(have).all():
            return float("inf")
        worst = max(worst, float(np.abs(want - have).max() / np.abs(want).max()))
    return worst
