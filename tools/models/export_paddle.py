#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: paddlepaddle==3.0.0 paddle2onnx==2.1.0 onnx numpy setuptools
"""Writes the Paddle fixtures of tests/fixtures/zoo: randomly initialized paddle.vision networks through
paddle2onnx, weights stripped.

    export_paddle.py OUT_DIR
"""
import os
import sys
import tempfile

import numpy as np
import onnx
import paddle

from strip import save_stripped


def build(network):
    paddle.seed(0)
    model = getattr(paddle.vision.models, network)(pretrained=False)
    rng = np.random.default_rng(0)
    for name, t in model.state_dict().items():
        if len(t.shape) == 1:
            around_one = name.endswith(("weight", "variance"))
            value = rng.uniform(0.5, 1.5, t.shape) if around_one else 0.1 * rng.standard_normal(t.shape)
            t.set_value(value.astype("float32"))
    model.eval()
    return model


def main():
    for network in ["resnet50", "mobilenet_v2"]:
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "m")
            spec = [paddle.static.InputSpec([None, 3, 224, 224], "float32", "input")]
            paddle.onnx.export(build(network), path, input_spec=spec, opset_version=13)
            save_stripped(onnx.load(path + ".onnx"), os.path.join(sys.argv[1], network + "_paddle.onnx"))


if __name__ == "__main__":
    main()
