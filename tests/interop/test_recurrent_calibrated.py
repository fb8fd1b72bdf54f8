# SPDX-License-Identifier: Apache-2.0
"""Masks and weights of LSTM, GRU and RNN, fitted to the inputs and the states of their steps: what the outputs lose next to
magnitudes alone, by ONNX Runtime, and the recurrent matrix next to the least squares of NumPy."""
import json
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
TIME, SAMPLES, INPUTS, HIDDEN = 6, 96, 32, 32

CASES = [("LSTM", "forward", 0, {}), ("LSTM", "bidirectional", 0, {}), ("LSTM", "reverse", 1, {}),
         ("GRU", "bidirectional", 0, {"linear_before_reset": 1}), ("GRU", "forward", 0, {}), ("RNN", "bidirectional", 1, {})]


def prune(model, out, *words):
    done = subprocess.run([LACUNA, "prune", model, "-o", out, "--force", "--recurrent", "--no-permute", "--json", out.with_suffix(".json"), *words],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(out.with_suffix(".json").read_text())


def run(model, arrays):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, arrays)


def smooth(rng, *shape):
    """Numbers of few degrees of freedom along the last axis, as what layers read has them."""
    mixed = rng.standard_normal((*shape[:-1], 8)) @ np.random.default_rng(1).standard_normal((8, shape[-1]))
    return (0.5 * mixed + 0.1 * rng.standard_normal(shape)).astype(np.float32)


def make(op, direction, layout, more, path):
    """Two nodes, one after the other; the first has states that are inputs of the network."""
    rng = np.random.default_rng(5)
    n, rows = 2 if direction == "bidirectional" else 1, GATES[op] * HIDDEN

    def weight(name, *shape):
        return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32), name)

    stored = [weight("W", n, rows, INPUTS), weight("R", n, rows, HIDDEN), weight("W2", n, rows, n * HIDDEN), weight("R2", n, rows, HIDDEN),
              weight("B", n, 2 * rows), numpy_helper.from_array(np.array([0, 0, -1], np.int64), "shape")]
    order = [0, 1, 2, 3] if layout else [0, 2, 1, 3]
    attributes = dict(hidden_size=HIDDEN, direction=direction, layout=layout, **more)
    nodes = [helper.make_node(op, ["x", "W", "R", "B", "", "h"], ["y"], **attributes),
             helper.make_node("Transpose", ["y"], ["z"], perm=order), helper.make_node("Reshape", ["z", "shape"], ["flat"]),
             helper.make_node(op, ["flat", "W2", "R2", "B"], ["y2"], **attributes)]
    x = ["n", TIME, INPUTS] if layout else [TIME, "n", INPUTS]
    h = ["n", n, HIDDEN] if layout else [n, "n", HIDDEN]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x),
                                           helper.make_tensor_value_info("h", TensorProto.FLOAT, h)],
                              [helper.make_tensor_value_info("y2", TensorProto.FLOAT, None)], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return n


def samples(seed, n, layout, count=SAMPLES):
    rng = np.random.default_rng(seed)
    x, h = smooth(rng, count, TIME, INPUTS), smooth(rng, count, n, HIDDEN)
    return {"x": x, "h": h} if layout else {"x": np.ascontiguousarray(x.swapaxes(0, 1)), "h": np.ascontiguousarray(h.swapaxes(0, 1))}


def with_layout_zero(path):
    """ONNX Runtime does not run layout 1: a copy that transposes around the nodes."""
    model = onnx.load(path)
    nodes = []
    for node in model.graph.node:
        if node.op_type not in GATES:
            nodes.append(node)
            continue
        kept = [attribute for attribute in node.attribute if attribute.name != "layout"]
        ports, out = list(node.input), node.output[0]
        nodes.append(helper.make_node("Transpose", [ports[0]], [out + "/x"], perm=[1, 0, 2]))
        ports[0] = out + "/x"
        if len(ports) > 5:
            nodes.append(helper.make_node("Transpose", [ports[5]], [out + "/h"], perm=[1, 0, 2]))
            ports[5] = out + "/h"
        nodes += [helper.make_node(node.op_type, ports, [out + "/y"]), helper.make_node("Transpose", [out + "/y"], [out], perm=[2, 0, 1, 3])]
        nodes[-2].attribute.extend(kept)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    made = path.with_name("runs_" + path.name)
    onnx.save(model, made)
    return made


@pytest.mark.parametrize(("op", "direction", "layout", "more"), CASES)
def test_calibration_loses_less_than_magnitudes(op, direction, layout, more, tmp_path):
    model, calibrated, magnitude = (tmp_path / f"{name}.onnx" for name in ("m", "calibrated", "magnitude"))
    n = make(op, direction, layout, more, model)
    np.savez(tmp_path / "data.npz", **samples(1, n, layout))
    report = prune(model, calibrated, "--calibration", tmp_path / "data.npz")
    prune(model, magnitude, "--no-calibration")
    assert all(layer["calibrated"] for layer in report["layers"]), report["layers"]
    assert report["calibration"]["outputs_error"] is not None, report["calibration"]["reason"]
    paths = [with_layout_zero(path) if layout else path for path in (model, magnitude, calibrated)]
    dense, by_magnitude, fitted = (run(path, samples(2, n, layout))[0] for path in paths)
    lost = [float(np.square(y - dense).sum()) for y in (by_magnitude, fitted)]
    assert lost[1] < 0.5 * lost[0], [value / np.square(dense).sum() for value in lost]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_the_recurrent_matrix_is_of_least_squares_over_the_states_before_steps(direction, tmp_path):
    model, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    n = make("RNN", direction, 0, {}, model)
    arrays = samples(1, n, 0)
    np.savez(tmp_path / "data.npz", **arrays)
    prune(model, out, "--calibration", tmp_path / "data.npz", "--include", "^R$", "--score", "magnitude")
    first = onnx.load(model)
    del first.graph.output[:]
    first.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    onnx.save(first, tmp_path / "first.onnx")
    y = run(tmp_path / "first.onnx", arrays)[0].astype(np.float64)
    before = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in first.graph.initializer}["R"]
    after = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in onnx.load(out).graph.initializer}["R"]
    assert not np.array_equal(before, after)
    for d in range(n):
        backward = direction == "reverse" or d == 1
        states = [arrays["h"][d], *(y[::-1, d] if backward else y[:, d])][:TIME]
        states = np.concatenate(states)
        for row, found in zip(before[d], after[d]):
            kept = found != 0
            best = np.linalg.lstsq(states[:, kept], states @ row, rcond=None)[0]
            least = np.square(states @ row - states[:, kept] @ best).sum()
            assert np.square(states @ (row - found)).sum() <= 1.15 * least  # an eighth of the samples judges, the rest is fitted to
