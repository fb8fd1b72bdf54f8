#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""accuracy_peer.py MODEL CIFAR SAMPLES SEED OUTPUT: onnxsim's SparseGPT, 2:4, on images of CIFAR-10's training part (accuracy.py).

Runs in a Python of its own that has onnxsim, onnxruntime and numpy."""
import pathlib
import sys

import numpy
import onnx
import onnxsim

RECORD = 1 + 3072
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = 64


def images(folder, samples, seed):
    parts = [numpy.fromfile(folder / f"data_batch_{k}.bin", numpy.uint8).reshape(-1, RECORD)[:, 1:] for k in range(1, 6)]
    chosen = numpy.random.default_rng(seed).permutation(sum(map(len, parts)))[:samples]
    pixels = numpy.concatenate(parts)[chosen].reshape(-1, 3, 32, 32).astype(numpy.float32) / 255
    return (pixels - numpy.float32(MEAN)[:, None, None]) / numpy.float32(STD)[:, None, None]


def main():
    model, folder, samples, seed, output = sys.argv[1:]
    network = onnx.load(model)
    name = network.graph.input[0].name
    found = images(pathlib.Path(folder), int(samples), int(seed))
    batches = [{name: found[at:at + BATCH]} for at in range(0, len(found), BATCH)]
    onnx.save(onnxsim.apply_sparsegpt_pruning(network, batches, n=2, m=4), output)


if __name__ == "__main__":
    main()
