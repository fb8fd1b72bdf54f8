#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Any ONNX files of float or integer inputs: builds of Lacuna, ONNX Runtime and OpenVINO, alternating.

    bench/peers.py [--lacuna build/release/lacuna,OTHER] [--threads 2] [--rounds 3] [--seconds 0.8] MODEL.onnx [NAME=1x3x640x640 ...] ...
    bench/peers.py [options] @DIR/peers.txt         (peers_make.py DIR: the networks that people deploy)

Sizes that a file leaves open follow its name. Each engine's least time counts. The
table has the fastest other engine's time over the last build's as its last column. Needs onnxruntime and openvino.
"""
import argparse
import json
import pathlib
import subprocess
import time

import numpy as np
import onnxruntime
import openvino

TYPES = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}


def least_ms(run, seconds):
    """The least time of a run; three runs at least."""
    began, least, n = time.perf_counter(), float("inf"), 0
    while n < 3 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
        n += 1
    return 1000 * least


def inputs_of(session, sizes):
    rng = np.random.default_rng(0)
    inputs = {}
    for port in session.get_inputs():
        shape = sizes.get(port.name) or [size if isinstance(size, int) else 1 for size in port.shape]
        kind = TYPES[port.type]
        inputs[port.name] = (rng.standard_normal(shape) if kind == np.float32 else rng.integers(0, 200, shape)).astype(kind)
    return inputs


def lacuna(command, model, sizes, args):
    given = [word for name, shape in sizes.items() for word in ("--input-shape", f"{name}={'x'.join(map(str, shape))}")]
    words = [command, "bench", model, *given, "--threads", args.threads, "--time", args.seconds, "--json", "-", "-q"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["dense_ms"]["min"]


def contenders(model, sizes, args):
    """Name -> a function that measures once."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = args.threads, 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    inputs = inputs_of(session, sizes)
    network = openvino.Core().read_model(model)
    network.reshape({port.any_name: inputs[port.any_name].shape for port in network.inputs})
    hints = {"INFERENCE_NUM_THREADS": args.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(network, "CPU", hints).create_infer_request()
    found = {"ONNX Runtime": lambda: least_ms(lambda: session.run(None, inputs), args.seconds),
             "OpenVINO": lambda: least_ms(lambda: request.infer(inputs), args.seconds)}
    for command in args.lacuna.split(","):
        found[command] = lambda command=command: lacuna(command, model, sizes, args)
    return found


def networks(words):
    """Files, each with the sizes that follow it."""
    found = []
    for word in words:
        if "=" in word:
            name, shape = word.rsplit("=", 1)
            found[-1][1][name] = [int(size) for size in shape.split("x")]
        else:
            found.append((pathlib.Path(word), {}))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     fromfile_prefix_chars="@")
    parser.add_argument("--lacuna", default="build/release/lacuna")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("words", nargs="+", metavar="MODEL.onnx [NAME=SIZES]")
    args = parser.parse_args()
    header = ["network", "ONNX Runtime", "OpenVINO", *args.lacuna.split(","), "against the fastest"]
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for model, sizes in networks(args.words):
        engines = contenders(model, sizes, args)
        least = dict.fromkeys(engines, float("inf"))
        for _ in range(args.rounds):
            for name, measure in engines.items():
                least[name] = min(least[name], measure())
        ratio = min(least["ONNX Runtime"], least["OpenVINO"]) / list(least.values())[-1]
        print(f"| {model.stem} | {' | '.join(f'{ms:.4g}' for ms in least.values())} | {ratio:.2f} × |", flush=True)


if __name__ == "__main__":
    main()
