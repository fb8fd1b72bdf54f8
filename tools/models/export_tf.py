#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: tensorflow-cpu tf2onnx onnx numpy
"""Writes the Keras fixtures of tests/fixtures/zoo: randomly initialized Keras networks, once through
tf2onnx (NAME_tf) and once by Keras' own model.export(format="onnx") (NAME_keras), weights stripped.

    export_tf.py OUT_DIR [NAME_REGEX]
"""
import os
import re
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import keras
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx

from strip import save_stripped

NETWORKS = {"resnet50": "ResNet50", "mobilenet_v2": "MobileNetV2", "efficientnet_b0": "EfficientNetB0",
            "densenet121": "DenseNet121"}
KERAS_OWN = ["resnet50", "mobilenet_v2", "efficientnet_b0"]


def build(name):
    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, NETWORKS[name])(weights=None)
    rng = np.random.default_rng(0)
    for w in model.weights:  # equal tensors (fresh BatchNorms) would be merged into one
        if len(w.shape) == 1 and "float" in w.dtype:
            around_one = w.name in ("gamma", "moving_variance", "variance")
            w.assign(rng.uniform(0.5, 1.5, w.shape) if around_one else 0.1 * rng.standard_normal(w.shape))
    return model


def by_tf2onnx(model, path):
    size = model.input_shape[1]
    spec = (tf.TensorSpec((None, size, size, 3), tf.float32, name="input"),)
    function = tf.function(lambda x: model(x, training=False), input_signature=spec)
    tf2onnx.convert.from_function(function, input_signature=spec, opset=17, output_path=path)


def by_keras(model, path):
    model(np.zeros((1,) + model.input_shape[1:], np.float32))  # the exporter wants a model that was called
    model.export(path, format="onnx", verbose=False)


def main():
    out, pattern = sys.argv[1], re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    jobs = [(n, "_tf", by_tf2onnx) for n in NETWORKS] + [(n, "_keras", by_keras) for n in KERAS_OWN]
    for name, suffix, exporter in jobs:
        if not pattern.search(name + suffix):
            continue
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "m.onnx")
            exporter(build(name), path)
            save_stripped(onnx.load(path), os.path.join(out, name + suffix + ".onnx"))


if __name__ == "__main__":
    main()
