#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of bench/quantized_files.py: small networks, quantized by the tools of several vendors.

    quantized_files_make.py OUT_DIR VENDOR [TEXT ...]     OUT_DIR/VENDOR--CASE/model.onnx and inputs.npz, or failed.txt; of cases with TEXT

A VENDOR is onnxruntime, nncf, pytorch, modelopt, brevitas or tensorflow, and needs that package; all but the last need torch. Each case is one row of a
table: a name, the network (bench/quantized_files_networks.py), and what is asked of the vendor. inputs.npz has the samples of each input.
"""
import copy
import os
import pathlib
import sys
import traceback

import numpy as np
import onnx

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
SHARED = pathlib.Path(__file__).resolve().parents[2] / "shared/models"
CASES = {}  # vendor -> case -> (function, network, options)


def case(vendor, name, network, **options):
    """The vendor's function makes the case's model, from a path of floats or a module."""
    CASES.setdefault(vendor, {})[name] = (network, options)


def floats(network, folder, opset=17, dynamo=False):
    """FOLDER/float.onnx, and its samples."""
    import torch
    path = folder / "float.onnx"
    if network.endswith(".onnx"):
        path.write_bytes((SHARED / network).read_bytes())
        model = onnx.load(path)
        value = model.graph.input[0]
        shape = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
        return path, {value.name: np.random.default_rng(0).normal(size=[8, *shape[1:]]).astype(np.float32)}
    import quantized_files_networks
    module, samples = quantized_files_networks.network(network)
    export(module, {name: value[:1] for name, value in samples.items()}, path, opset, dynamo)
    return path, {name: value.numpy() for name, value in samples.items()}


def export(module, samples, path, opset=17, dynamo=False):
    import torch
    options = {"dynamo": True} if dynamo else {"dynamo": False, "do_constant_folding": True}
    torch.onnx.export(module, tuple(samples.values()), str(path), input_names=list(samples), output_names=["y"], opset_version=opset, **options)
    model = onnx.load(path)
    for file in path.parent.glob(f"{path.name}.data"):
        file.unlink()
    onnx.save(model, path)


def feeds(samples):
    return [{name: value[at:at + 1] for name, value in samples.items()} for at in range(len(next(iter(samples.values()))))]


# ---- ONNX Runtime ----

STATIC = {"cnn": ("residual", "mobile", "mobile-hard", "hourglass", "detector"), "other": ("mlp", "words", "lstm")}
for at, name in enumerate(STATIC["cnn"] + STATIC["other"]):
    case("onnxruntime", f"qdq-{name}", name, kind="static")
    case("onnxruntime", f"operators-{name}", name, kind="static", format="QOperator", weight="QInt8" if at % 2 else "QUInt8")
for name in ("residual", "mobile-hard", "hourglass", "words"):
    case("onnxruntime", f"qdq-signed-channel-{name}", name, kind="static", activation="QInt8", per_channel=True)
    case("onnxruntime", f"qdq-16-{name}", name, kind="static", activation="QUInt16", opset=21)
for network, name, options in (
        ("residual", "qdq-symmetric", {"activation": "QInt8", "extra": {"ActivationSymmetric": True, "WeightSymmetric": True}}),
        ("residual", "qdq-weights-asymmetric", {"weight": "QUInt8", "extra": {"WeightSymmetric": False}, "per_channel": True}),
        ("mobile", "qdq-reduced", {"reduce_range": True, "per_channel": True}), ("mobile", "qdq-dedicated", {"extra": {"DedicatedQDQPair": True}}),
        ("residual", "qdq-float-weights", {"extra": {"AddQDQPairToWeight": True}}), ("residual", "qdq-float-bias", {"extra": {"QuantizeBias": False}}),
        ("words", "qdq-weights-only-constant", {"extra": {"MatMulConstBOnly": True}}), ("residual", "qdq-16-signed", {"activation": "QInt16", "extra": {"UseQDQContribOps": True}}),
        ("residual", "qdq-4", {"weight": "QInt4", "opset": 21}), ("words", "qdq-4-unsigned", {"weight": "QUInt4", "opset": 21, "per_channel": True}),
        ("mlp", "qdq-float8", {"activation": "QFLOAT8E4M3FN", "weight": "QFLOAT8E4M3FN", "opset": 19, "calibrate": "Distribution", "extra": {"scenario": "same"}}),
        ("hourglass", "qdq-entropy", {"calibrate": "Entropy"}), ("detector", "qdq-percentile", {"calibrate": "Percentile"}),
        ("residual", "qdq-forced-contrib", {"extra": {"UseQDQContribOps": True, "ForceQuantizeNoInputCheck": True}}),
        ("hourglass", "qdq-removable", {"extra": {"QDQKeepRemovableActivations": True}}),
        ("residual", "qdq-opset-13", {"opset": 13, "per_channel": True}), ("residual", "operators-opset-11", {"opset": 11, "format": "QOperator"}),
        ("hourglass", "operators-opset-12", {"opset": 12, "format": "QOperator", "per_channel": True}), ("mobile", "qdq-opset-20", {"opset": 20, "dynamo": True}),
        ("residual", "qdq-opset-23", {"opset": 23, "dynamo": True}), ("words", "qdq-opset-22", {"opset": 22, "dynamo": True}),
        ("residual", "operators-signed", {"activation": "QInt8", "format": "QOperator", "per_channel": True}),
        ("detector", "operators-preprocessed", {"format": "QOperator", "preprocess": True}), ("words", "qdq-preprocessed", {"preprocess": True}),
        ("resnet18", "qdq-channel", {"per_channel": True}), ("mobilenet_v3_small", "qdq", {"preprocess": True}), ("squeezenet1_1", "operators", {"format": "QOperator", "preprocess": True}),
        ("shufflenet_v2_x1_0", "qdq", {"activation": "QInt8"}), ("googlenet", "operators", {"format": "QOperator", "preprocess": True}),
        ("efficientnet_b0", "operators", {"format": "QOperator", "preprocess": True}), ("convnext_tiny", "qdq", {"per_channel": True, "preprocess": True}),
        ("efficientnet_lite0.onnx", "qdq-signed", {"activation": "QInt8", "per_channel": True}),
        ("efficientnet_lite0.onnx", "operators", {"format": "QOperator"}), ("resnet20_cifar10.onnx", "operators", {"format": "QOperator"})):
    case("onnxruntime", f"{name}-{network.removesuffix('.onnx')}", network, kind="static", **options)
for name in ("mlp", "words", "lstm", "gru", "residual"):
    case("onnxruntime", f"dynamic-{name}", name, kind="dynamic")
case("onnxruntime", "dynamic-unsigned-channel-lstm", "lstm", kind="dynamic", weight="QUInt8", per_channel=True)
case("onnxruntime", "dynamic-channel-reduced-words", "words", kind="dynamic", per_channel=True, reduce_range=True)
case("onnxruntime", "dynamic-unsigned-words", "words", kind="dynamic", weight="QUInt8", extra={"WeightSymmetric": False})
for name, source in (("operators", "operators-mobile"), ("operators", "operators-detector"), ("operators", "operators-words"), ("operators", "operators-hourglass"), ("qdq", "qdq-mobile-hard"),
                     ("qdq", "qdq-hourglass"), ("qdq", "qdq-words"), ("dynamic", "dynamic-words"), ("dynamic", "dynamic-lstm"), ("dynamic", "dynamic-residual")):
    case("onnxruntime", f"optimized-{source}", source, kind="optimized")
case("onnxruntime", "optimized-all-qdq-residual", "qdq-residual", kind="optimized", level="ALL")
case("onnxruntime", "optimized-all-operators-mobile", "operators-mobile", kind="optimized", level="ALL")
case("onnxruntime", "transformer-dynamic-words", "words", kind="transformer")
for bits, block, symmetric, form in ((4, 32, True, "QOperator"), (4, 16, False, "QOperator"), (4, 32, True, "QDQ"), (4, 16, False, "QDQ"), (8, 32, True, "QOperator"), (8, 32, False, "QDQ")):
    case("onnxruntime", f"blocks-{bits}-{block}-{'symmetric' if symmetric else 'zeros'}-{form.lower()}-words", "words", kind="blocks", bits=bits, block=block, symmetric=symmetric, format=form)
case("onnxruntime", "blocks-hqq-words", "words", kind="blocks", bits=4, block=32, symmetric=False, format="QOperator", rule="HQQ")
case("onnxruntime", "qnn-mobile-hard", "mobile-hard", kind="qnn")
case("onnxruntime", "qnn-words", "words", kind="qnn")


class Reader:
    """What ONNX Runtime reads samples from; its CalibrationDataReader asks for these two functions."""

    def __init__(self, samples):
        self.feeds = iter(feeds(samples))

    def get_next(self):
        return next(self.feeds, None)

    def set_range(self, start_index, end_index):
        """All samples are read at once."""


def onnxruntime_static(folder, path, samples, form="QDQ", weight="QInt8", activation="QUInt8", calibrate="MinMax", extra=None, preprocess=False, **options):
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    if preprocess:
        quant_pre_process(path, folder / "pre.onnx")
        path = folder / "pre.onnx"
    quantization.quantize_static(path, folder / "model.onnx", Reader(samples), quant_format=quantization.QuantFormat[form],
                                 weight_type=quantization.QuantType[weight], activation_type=quantization.QuantType[activation],
                                 calibrate_method=quantization.CalibrationMethod[calibrate], extra_options=extra or {}, **options)


def optimize(source, made, level):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(made)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def onnxruntime_blocks(folder, path, bits, block, symmetric, form, rule=None):
    from onnxruntime import quantization
    from onnxruntime.quantization import matmul_nbits_quantizer as nbits
    form = quantization.QuantFormat[form]
    if rule == "HQQ":
        config = nbits.HQQWeightOnlyQuantConfig(block_size=block, bits=bits)
    else:
        config = nbits.DefaultWeightOnlyQuantConfig(block_size=block, is_symmetric=symmetric, quant_format=form, bits=bits)
    worker = nbits.MatMulNBitsQuantizer(onnx.load(path), algo_config=config)
    worker.process()
    onnx.save(worker.model.model, folder / "model.onnx")


def make_onnxruntime(folder, network, kind, opset=17, dynamo=False, level="EXTENDED", **options):
    from onnxruntime import quantization
    if kind == "optimized":
        other = folder.parent / f"onnxruntime--{network}"
        optimize(other / "model.onnx", folder / "model.onnx", level)
        return dict(np.load(other / "inputs.npz"))
    path, samples = floats(network, folder, opset if kind != "blocks" else 21, dynamo)
    options["form"] = options.pop("format", "QDQ")
    if kind == "static":
        onnxruntime_static(folder, path, samples, **options)
    elif kind == "blocks":
        onnxruntime_blocks(folder, path, **options)
    elif kind == "qnn":
        from onnxruntime.quantization.execution_providers import qnn
        config = qnn.get_qnn_qdq_config(path, Reader(samples), activation_type=quantization.QuantType.QUInt16, weight_type=quantization.QuantType.QUInt8)
        quantization.quantize(path, folder / "model.onnx", config)
    elif kind == "transformer":
        from onnxruntime.transformers import optimizer
        fused = optimizer.optimize_model(str(path), "bert", num_heads=4, hidden_size=64, opt_level=0)
        fused.save_model_to_file(str(folder / "fused.onnx"))
        quantization.quantize_dynamic(folder / "fused.onnx", folder / "model.onnx")
    else:
        options.pop("form")
        options["weight_type"] = quantization.QuantType[options.pop("weight", "QInt8")]
        quantization.quantize_dynamic(path, folder / "model.onnx", extra_options=options.pop("extra", {}), **options)
    return samples


# ---- OpenVINO's NNCF ----

for name in ("residual", "mobile", "mobile-hard", "hourglass", "detector", "words", "mlp"):
    case("nncf", f"mixed-{name}", name, preset="MIXED", words=name == "words")
for name in ("residual", "words", "hourglass"):
    case("nncf", f"performance-{name}", name, preset="PERFORMANCE", words=name == "words")
for mode in ("INT8_ASYM", "INT8_SYM", "INT4_ASYM", "INT4_SYM"):
    case("nncf", f"weights-{mode.lower().replace('_', '-')}-words", "words", weights=mode)
case("nncf", "mixed-lite0", "efficientnet_lite0.onnx", preset="MIXED")
case("nncf", "npu-resnet20", "resnet20_cifar10.onnx", preset="PERFORMANCE", device="NPU")


def make_nncf(folder, network, preset=None, weights=None, words=False, device="ANY"):
    import nncf
    path, samples = floats(network, folder, 21 if weights else 17)
    if weights:
        sizes = {"group_size": 16, "ratio": 0.8} if "4" in weights else {}
        made = nncf.compress_weights(onnx.load(path), mode=nncf.CompressWeightsMode[weights], **sizes)
    else:
        made = nncf.quantize(onnx.load(path), nncf.Dataset(feeds(samples)), preset=nncf.QuantizationPreset[preset],
                             target_device=nncf.TargetDevice[device], model_type=nncf.ModelType.TRANSFORMER if words else None, subset_size=8)
    onnx.save(made, folder / "model.onnx")
    return samples


# ---- PyTorch ----

for name in ("residual", "mobile", "hourglass", "detector", "words", "mlp", "lstm"):
    case("pytorch", f"pt2e-x86-{name}", name, how="pt2e")
for name in ("residual", "mobile", "words"):
    case("pytorch", f"pt2e-xnnpack-{name}", name, how="pt2e", backend="xnnpack")
case("pytorch", "pt2e-xnnpack-dynamic-words", "words", how="pt2e", backend="xnnpack", dynamic=True)
for name in ("residual", "mobile", "mobile-hard", "hourglass", "mlp"):
    case("pytorch", f"fx-{name}", name, how="fx")
    case("pytorch", f"fake-{name}", name, how="fake")
case("pytorch", "fx-qnnpack-residual", "residual", how="fx", backend="qnnpack")
case("pytorch", "weights-8-words", "words", how="weights")


def pt2e_quantizer(backend, dynamic):
    if backend == "xnnpack":
        from executorch.backends.xnnpack.quantizer import xnnpack_quantizer as place
        return place.XNNPACKQuantizer().set_global(place.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic))
    import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as place
    return place.X86InductorQuantizer().set_global(place.get_default_x86_inductor_quantization_config())


def make_pytorch(folder, network, how, backend="x86", dynamic=False):
    import torch
    import quantized_files_networks
    module, samples = quantized_files_networks.network(network)
    one = {name: value[:1] for name, value in samples.items()}
    if how == "pt2e":
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        module = prepare_pt2e(torch.export.export(module, tuple(one.values())).module(), pt2e_quantizer(backend, dynamic))
        for at in range(8):
            module(*(value[at:at + 1] for value in samples.values()))
        module = convert_pt2e(module, fold_quantize=False)
    elif how == "weights":
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
        quantize_(module, Int8WeightOnlyConfig())
    else:
        from torch.ao.quantization import QConfigMapping, get_default_qat_qconfig_mapping, get_default_qconfig_mapping, quantize_fx
        torch.backends.quantized.engine = backend
        if how == "fx":
            module = quantize_fx.prepare_fx(module, get_default_qconfig_mapping(backend), tuple(one.values()))
        else:
            module = quantize_fx.prepare_qat_fx(module.train(), get_default_qat_qconfig_mapping(backend, version=0), tuple(one.values()))
        module(*samples.values())
        module = module.eval()
        if how == "fx":
            module = quantize_fx.convert_fx(module)
        else:
            module.apply(torch.ao.quantization.disable_observer)
    export(module, one, folder / "model.onnx", 18 if how in ("pt2e", "weights") else 17, how in ("pt2e", "weights"))
    return {name: value.numpy() for name, value in samples.items()}


# ---- NVIDIA's Model Optimizer ----

for name in ("residual", "mobile-hard", "hourglass", "words", "mlp", "detector"):
    case("modelopt", f"int8-{name}", name, mode="int8")
case("modelopt", "int8-max-residual", "residual", mode="int8", method="max")
case("modelopt", "fp8-residual", "residual", mode="fp8")
case("modelopt", "fp8-words", "words", mode="fp8")
case("modelopt", "int4-awq-words", "words", mode="int4", method="awq_clip")
case("modelopt", "int4-rtn-words", "words", mode="int4", method="rtn_dq")
for config in ("INT8_DEFAULT_CFG", "INT8_SMOOTHQUANT_CFG", "FP8_DEFAULT_CFG", "INT4_AWQ_CFG"):
    case("modelopt", f"torch-{config.lower().removesuffix('_cfg').replace('_', '-')}-words", "words", config=config)
case("modelopt", "torch-int8-default-residual", "residual", config="INT8_DEFAULT_CFG")
case("modelopt", "torch-int8-default-hourglass", "hourglass", config="INT8_DEFAULT_CFG")


def make_modelopt(folder, network, mode=None, method=None, config=None):
    if mode:
        from modelopt.onnx.quantization import quantize
        path, samples = floats(network, folder, 17)
        one = {name: value[:1] for name, value in samples.items()}
        options = {"calibration_method": method} if method else {}
        quantize(str(path), quantize_mode=mode, calibration_data=one if mode == "int4" else one, output_path=str(folder / "model.onnx"),
                 calibration_eps=["cpu"], high_precision_dtype="fp32", **options)
        return samples
    import modelopt.torch.quantization as mtq
    import torch
    import quantized_files_networks
    module, samples = quantized_files_networks.network(network)
    module = mtq.quantize(module, copy.deepcopy(getattr(mtq, config)), lambda it: it(*samples.values()))
    export(module, {name: value[:1] for name, value in samples.items()}, folder / "model.onnx", 20)
    return {name: value.numpy() for name, value in samples.items()}


# ---- Brevitas ----

for bits in (8, 4):
    case("brevitas", f"qcdq-{bits}-mlp", "mlp", bits=bits)
    case("brevitas", f"qcdq-{bits}-cnn", "cnn", bits=bits)


def make_brevitas(folder, network, bits):
    import brevitas.nn as qnn
    import torch
    from brevitas.export import export_onnx_qcdq
    from torch import nn
    torch.manual_seed(1)
    if network == "mlp":
        module = nn.Sequential(qnn.QuantIdentity(return_quant_tensor=True), qnn.QuantLinear(48, 64, bias=True, weight_bit_width=bits),
                               qnn.QuantReLU(return_quant_tensor=True), qnn.QuantLinear(64, 10, bias=True, weight_bit_width=bits))
        samples = torch.randn(8, 48)
    else:
        module = nn.Sequential(qnn.QuantIdentity(return_quant_tensor=True), qnn.QuantConv2d(3, 16, 3, padding=1, weight_bit_width=bits),
                               qnn.QuantReLU(return_quant_tensor=True), qnn.QuantConv2d(16, 16, 3, padding=1, groups=16, weight_bit_width=bits),
                               qnn.QuantReLU(return_quant_tensor=True), nn.MaxPool2d(2), qnn.QuantConv2d(16, 32, 1, weight_bit_width=bits),
                               nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
        samples = torch.randn(8, 3, 16, 16)
    module(samples)
    export_onnx_qcdq(module.eval(), args=samples[:1], export_path=str(folder / "model.onnx"), opset_version=17, input_names=["x"], output_names=["y"], dynamo=False)
    return {"x": samples.numpy()}


# ---- TensorFlow Lite by tf2onnx ----

for name in ("residual", "depthwise", "dense", "lstm"):
    case("tensorflow", f"tflite-{name}", name)
case("tensorflow", "tflite-integers-residual", "residual", integers=True)
case("tensorflow", "tflite-dynamic-dense", "dense", dynamic=True)


def keras_network(tf, name):
    layer = tf.keras.layers
    if name == "dense":
        return tf.keras.Sequential([layer.Input((48,)), layer.Dense(64, "relu"), layer.Dense(32, "tanh"), layer.Dense(10, "softmax")])
    if name == "lstm":
        return tf.keras.Sequential([layer.Input((20, 8)), layer.Conv1D(16, 3, padding="same", activation="relu"), layer.Flatten(), layer.Dense(16), layer.Dense(5)])
    image = layer.Input((32, 32, 3), batch_size=1)
    x = layer.ReLU(6.0)(layer.BatchNormalization()(layer.Conv2D(16, 3, 2, "same")(image)))
    y = layer.DepthwiseConv2D(3, padding="same", activation="relu")(x) if name == "depthwise" else layer.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = layer.Concatenate()([layer.Add()([x, y]), layer.MaxPool2D(3, 1, "same")(x)])
    x = layer.UpSampling2D()(layer.AveragePooling2D(2)(layer.Conv2D(32, 1, activation="hard_swish" if name == "depthwise" else None)(x)))
    return tf.keras.Model(image, layer.Dense(10, "softmax")(layer.GlobalAveragePooling2D()(layer.LeakyReLU(0.1)(x))))


def make_tensorflow(folder, network, integers=False, dynamic=False):
    import subprocess
    import tensorflow as tf
    tf.keras.utils.set_random_seed(2)
    model = keras_network(tf, network)
    shape = [8, *model.input_shape[1:]]
    samples = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if not dynamic:
        converter.representative_dataset = lambda: ([samples[at:at + 1]] for at in range(8))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if integers:
        converter.inference_input_type = converter.inference_output_type = tf.int8
    (folder / "model.tflite").write_bytes(converter.convert())
    subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--tflite", str(folder / "model.tflite"), "--output", str(folder / "model.onnx"), "--opset", "17"],
                   check=True)
    name = onnx.load(folder / "model.onnx").graph.input[0].name
    return {name: (np.clip(np.round(samples * 40), -128, 127).astype(np.int8) if integers else samples)}


VENDORS = {"onnxruntime": make_onnxruntime, "nncf": make_nncf, "pytorch": make_pytorch, "modelopt": make_modelopt, "brevitas": make_brevitas,
          "tensorflow": make_tensorflow}


def make(folder, vendor, network, options):
    folder.mkdir(parents=True, exist_ok=True)
    try:
        samples = VENDORS[vendor](folder, network, **copy.deepcopy(options))
        np.savez(folder / "inputs.npz", **samples)
        (folder / "failed.txt").unlink(missing_ok=True)
    except Exception:  # whatever a vendor raises is its answer
        (folder / "failed.txt").write_text(traceback.format_exc())
        print(f"{folder.name}: {traceback.format_exc().strip().splitlines()[-1][:200]}", flush=True)


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in VENDORS:
        sys.exit(__doc__)
    out, vendor, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    for name, (network, options) in CASES[vendor].items():
        folder = out / f"{vendor}--{name}"
        if not (folder / "inputs.npz").exists() and (not wanted or any(text in name for text in wanted)):
            make(folder, vendor, network, options)


if __name__ == "__main__":
    main()
