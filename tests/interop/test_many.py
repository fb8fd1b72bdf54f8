# SPDX-License-Identifier: Apache-2.0
"""Nodes of thousands of inputs or outputs: they run, as in ONNX Runtime, in memory that grows with the file."""
import os
import pathlib
import resource
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
MEMORY = 2 << 30  # of addresses; each network took more, of memory, when every input had a map as wide as the output


def lacuna(*words):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run([LACUNA, *words, "--threads", "1"], capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 0, done.stderr
    return done.stdout


def random_numbers(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def save(path, nodes, width, channels):
    """x -> Conv -> y -> `nodes`, which make z of `channels` -> Conv -> out"""
    weights = {"w": random_numbers(width, 16, 1, 1), "v": random_numbers(8, channels, 1, 1)}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"]), *nodes, helper.make_node("Conv", ["z", "v"], ["out"])], "many",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 2, 2])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 8, 2, 2])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def one_value(n):
    return [helper.make_node("Concat", ["y"] * n, ["z"], axis=1)], 16, 16 * n


def many_values(n):
    parts = [f"r{k}" for k in range(n)]
    return ([helper.make_node("Relu", ["y"], [part]) for part in parts] +
            [helper.make_node("Concat", parts, ["z"], axis=1)]), 16, 16 * n


def many_parts(n):
    parts = [f"p{k}" for k in range(n)]
    return [helper.make_node("Split", ["y"], parts, axis=1), helper.make_node("Concat", parts[::-1], ["z"], axis=1)], n, n


@pytest.mark.parametrize("make", [one_value, many_values, many_parts])
def test_a_few_thousand_ports_run_as_elsewhere(make, tmp_path):
    model = save(tmp_path / "many.onnx", *make(4000))
    x = random_numbers(1, 16, 2, 2)
    np.save(tmp_path / "x.npy", x)
    lacuna("infer", model, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out")
    wanted = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    assert np.abs(np.load(tmp_path / "out/out.npy") - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("make", [one_value, many_values])
def test_many_inputs_are_pruned_in_little_memory(make, tmp_path):
    model = save(tmp_path / "many.onnx", *make(8000))
    lacuna("inspect", model)
    lacuna("prune", "--no-calibration", model, "-o", tmp_path / "out.onnx", "--effort", "fast", "--no-verify")


def test_many_parts_are_inspected_in_little_memory(tmp_path):
    lacuna("inspect", save(tmp_path / "many.onnx", *many_parts(50000)))
