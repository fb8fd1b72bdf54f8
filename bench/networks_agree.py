#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: onnxruntime numpy
"""Do two files give the same outputs in ONNX Runtime?  networks_agree.py BEFORE AFTER [INPUTS.npz]

Prints one JSON object: `error`, the largest difference of an element, `scale`, the largest element of the first file's
outputs, `flipped`, the share of elements of integer outputs that differ (an index changes where two scores are nearly equal).
Outputs of one length list the same things, as detectors do: where the integer of one of these changed, it is another detection,
and `error` leaves it out.
Without inputs they are random, open sizes 1. Optimizations are off: they round differently once channels have moved.
"""
import json
import os
import sys

import numpy as np
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
         "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool}


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 2, 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def made_up(value, rng):
    shape = [size if isinstance(size, int) and size > 0 else 1 for size in value.shape]
    kind = TYPES[value.type]
    return (rng.standard_normal(shape) if np.issubdtype(kind, np.floating) else rng.integers(0, 2, shape)).astype(kind)


def compared(pairs):
    found = {"error": 0.0, "scale": 0.0, "flipped": 0.0, "outputs": len(pairs)}
    changed = {}  # length of a list -> which of its things are others
    for one, other in pairs:
        if one.shape != other.shape:
            sys.exit(f"networks_agree.py: shapes {one.shape} and {other.shape}")
        if one.size and not np.issubdtype(one.dtype, np.floating):
            found["flipped"] = max(found["flipped"], float(np.mean(one != other)))
            if one.ndim:
                changed[len(one)] = changed.get(len(one), False) | (one != other).reshape(len(one), -1).any(axis=1)
    for one, other in pairs:
        if one.size == 0 or not np.issubdtype(one.dtype, np.floating):
            continue
        one, other = one.astype(np.float64), other.astype(np.float64)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        if one.ndim and len(one) in changed:
            same[changed[len(one)]] = True
        found["error"] = max(found["error"], float(np.where(same, 0, np.abs(one - other)).max()))
        found["scale"] = max(found["scale"], float(np.abs(one[np.isfinite(one)]).max(initial=0)))
    return found


def main():
    first, second = session(sys.argv[1]), session(sys.argv[2])
    rng = np.random.default_rng(0)
    kept = dict(np.load(sys.argv[3])) if len(sys.argv) > 3 and os.path.exists(sys.argv[3]) else {}
    wanted = [value.name for value in first.get_inputs()]
    if kept and not set(wanted) <= set(kept):  # exporters rename
        kept = dict(zip(wanted, kept.values()))
    inputs = {value.name: kept[value.name] if value.name in kept else made_up(value, rng) for value in first.get_inputs()}
    pairs = [(np.asarray(one), np.asarray(other)) for one, other in zip(first.run(None, inputs), second.run(None, inputs))]
    print(json.dumps(compared(pairs)))


if __name__ == "__main__":
    main()
