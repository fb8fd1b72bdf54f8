# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN by the fast engine against ONNX Runtime: directions, lengths, states, peepholes, clips and flags."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

LACUNA = pathlib.Path(os.environ["LAC_BUILD_DIR"]) / "lacuna"
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
TIME, BATCH, INPUTS, HIDDEN = 17, 3, 11, 37

# operator, direction, operands after R, attributes
CASES = [
    ("LSTM", "forward", "", {}),
    ("LSTM", "reverse", "B lengths h c P", {"clip": 1.5}),
    ("LSTM", "bidirectional", "B h c", {}),
    ("LSTM", "bidirectional", "B lengths P", {"input_forget": 1}),
    ("GRU", "forward", "B h", {"linear_before_reset": 1}),
    ("GRU", "bidirectional", "B lengths h", {}),
    ("GRU", "bidirectional", "", {"linear_before_reset": 1, "clip": 0.9}),
    ("RNN", "reverse", "B h", {}),
    ("RNN", "bidirectional", "B lengths", {"activations": ["Tanh", "Sigmoid"]}),
]


def stored(name, *shape):
    return numpy_helper.from_array((0.3 * np.random.default_rng(len(name) + sum(shape)).standard_normal(shape)).astype(np.float32), name)


@pytest.mark.parametrize(("op", "direction", "operands", "more"), CASES)
def test_the_fast_engine_computes_what_onnxruntime_does(op, direction, operands, more, tmp_path):
    n, rows = 2 if direction == "bidirectional" else 1, GATES[op] * HIDDEN
    tensors = {"B": stored("B", n, 2 * rows), "h": stored("h", n, BATCH, HIDDEN), "c": stored("c", n, BATCH, HIDDEN),
               "P": stored("P", n, 3 * HIDDEN), "lengths": numpy_helper.from_array(np.array([17, 5, 11], np.int32), "lengths")}
    given = operands.split()
    inputs = ["x", "W", "R"] + [name if name in given else "" for name in ("B", "lengths", "h", "c", "P")[:5 if op == "LSTM" else 3]]
    outputs = ["y", "y_h"] + ["y_c"] * (op == "LSTM")
    graph = helper.make_graph(
        [helper.make_node(op, inputs, outputs, hidden_size=HIDDEN, direction=direction, **more)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [TIME, BATCH, INPUTS])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [stored("W", n, rows, INPUTS), stored("R", n, rows, HIDDEN), *(tensors[name] for name in given)])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    x = np.random.default_rng(3).standard_normal((TIME, BATCH, INPUTS)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run([LACUNA, "infer", path, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "found", "--engine", "cpu"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    want = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(outputs, {"x": x})
    for name, values in zip(outputs, want, strict=True):
        found = np.load(tmp_path / "found" / f"{name}.npy")
        assert found.shape == values.shape
        assert np.abs(found - values).max() <= 1e-5 * max(1, np.abs(values).max()), name
