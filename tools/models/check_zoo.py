#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: onnx onnxruntime numpy
"""Fills every fixture of the zoo, checks it with onnx.checker and runs it in ONNX Runtime (no graph
optimization): outputs must be finite and not constant. Exit 1 if one fails.

    check_zoo.py ZOO_DIR [NAME_REGEX] [--fill COMMAND]     COMMAND IN OUT SEED instead of fill.py
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

from fill import fill

SIZES = {"batch": 2, "height": 96, "width": 64}
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


def run(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rng, feeds = np.random.default_rng(0), {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else SIZES.get(d, 2) for d in i.shape]
        feeds[i.name] = rng.standard_normal(shape).astype(TYPES[i.type])
    return session.run(None, feeds)


def widen(model):
    """bfloat16 to float32: ONNX Runtime's CPU provider has no bfloat16 convolution."""
    for t in model.graph.initializer:
        if t.data_type == onnx.TensorProto.BFLOAT16:
            t.raw_data = (np.frombuffer(t.raw_data, np.uint16).astype(np.uint32) << 16).tobytes()
            t.data_type = onnx.TensorProto.FLOAT
    for v in list(model.graph.input) + list(model.graph.output):
        v.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return model


def check(path, command):
    with tempfile.TemporaryDirectory() as tmp:
        filled = os.path.join(tmp, "m.onnx")
        if command:
            subprocess.run([*command.split(), path, filled, "1"], check=True)
        else:
            model = onnx.load(path)
            fill(model, 1)
            onnx.save(model, filled)
        onnx.checker.check_model(filled, full_check=True)
        if "_bf16" in path:
            onnx.save(widen(onnx.load(filled)), filled)
        outputs = run(filled)
    if not all(np.isfinite(o).all() and o.std() > 0 for o in outputs):
        raise ValueError("output is not finite or constant")
    return outputs[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--fill", metavar="COMMAND")
    args = parser.parse_args()
    failed = 0
    names = sorted(n for n in os.listdir(args.folder) if n.endswith(".onnx") and re.search(args.pattern, n))
    for name in names:
        start = time.time()
        try:
            out = check(os.path.join(args.folder, name), args.fill)
            print(f"{name:36} ok   |out| max {np.abs(out).max():9.3g}  {time.time() - start:5.1f} s", flush=True)
        except Exception as e:
            failed += 1
            print(f"{name:36} FAIL {str(e).splitlines()[0][:160]}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
