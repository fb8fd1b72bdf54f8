# SPDX-License-Identifier: Apache-2.0
"""What the command says of a verification: all outputs, a part, nothing; and of samples that judge nothing."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
RNG = np.random.default_rng(0)


def weight(*shape):
    return (RNG.standard_t(4, size=shape) * 0.2).astype(np.float32)


def save(path, nodes, inputs, outputs, stored, between=()):
    domains = {n.domain for n in nodes} - {""}
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(np.array(v), k) for k, v in stored.items()],
                              value_info=list(between))
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    onnx.save(model, str(path))


def real(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def mlp(first="x", last="y"):
    """Two layers whose channels in between are free to move."""
    return [helper.make_node("MatMul", [first, "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("MatMul", ["b", "w1"], [last])], dict(w0=weight(16, 32), w1=weight(32, 16))


def lacuna(*words):
    return subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True)


def prune(tmp_path, *more):
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    done = lacuna("prune", tmp_path / "m.onnx", "-o", out, "--json", report, "--force", *more)
    said = json.loads(report.read_text())["verification"] if report.exists() else None
    return done, said, out


def test_all_outputs(tmp_path):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", 4, 16)], [real("y", 4, 16)], stored)
    done, said, _ = prune(tmp_path)
    assert done.returncode == 0 and "verified: all outputs" in done.stdout
    assert said["state"] == "verified" and said["outputs"] == said["outputs_compared"] == 1
    assert said["reached"] is None and 0 < said["max_abs_output"] < np.inf


def test_a_part_is_a_warning(tmp_path):
    nodes, stored = mlp(last="h")
    nodes.append(helper.make_node("Odd", ["h"], ["y"], name="odd", domain="my"))
    nodes.append(helper.make_node("Sigmoid", ["h"], ["z"]))
    save(tmp_path / "m.onnx", nodes, [real("x", 4, 16)], [real("y", 4, 16), real("z", 4, 16)], stored)
    done, said, out = prune(tmp_path)
    assert done.returncode == 0 and out.exists()
    assert "verified in part: 1 of 2 outputs, up to odd: my.Odd is not known" in done.stdout
    assert "channel by channel" in done.stdout and "verified in part" in done.stderr
    assert said["state"] == "partial" and said["outputs_compared"] == 1 and said["reached"] == "odd"


def test_no_output_is_verified_after_an_unknown_first_node(tmp_path):
    """What it gives is made up, so that the order of what follows is checked, and no output is."""
    nodes, stored = mlp(first="u")
    nodes[:0] = [helper.make_node("Odd", ["x"], ["u"], name="odd", domain="my")]
    save(tmp_path / "m.onnx", nodes, [real("x", 4, 16)], [real("y", 4, 16)], stored, [real("u", 4, 16)])
    done, said, _ = prune(tmp_path)
    assert done.returncode == 0 and "verified: all" not in done.stdout and "not verified" not in done.stdout + done.stderr
    wanted = "verified in part: no output could be compared (my.Odd is not known), "
    assert wanted in done.stdout and wanted in done.stderr
    assert said["state"] == "partial" and said["outputs_compared"] == 0 and said["reached"] == "odd"


def nothing_finite(path):
    nodes, stored = mlp(last="v")
    nodes[:1] = [helper.make_node("Mul", ["x", "k"], ["u"]), helper.make_node("MatMul", ["u", "w0"], ["a"])]
    nodes.append(helper.make_node("Identity", ["v"], ["y"]))
    save(path, nodes, [real("x", 4, 16)], [real("y", 4, 16)], stored | {"k": np.float32(np.nan)})


def test_nothing_finite_is_not_verified(tmp_path):
    nothing_finite(tmp_path / "m.onnx")
    done, _, out = prune(tmp_path)
    assert done.returncode == 1 and not out.exists()
    assert "not verified: " in done.stderr and "--no-verify" in done.stderr
    done, said, out = prune(tmp_path, "--no-verify")
    assert done.returncode == 0 and out.exists() and "not verified: " in done.stdout
    assert said["state"] == "not verified" and said["reason"]
    check = lacuna("check", out, "--against", tmp_path / "m.onnx", "--no-verify")
    assert check.returncode == 0 and "not verified: the verification was left out" in check.stdout


def detector(path, threshold):
    nodes, stored = mlp(last="c")
    node = helper.make_node
    nodes += [node("ReduceMax", ["c"], ["mx"], axes=[1], keepdims=0), node("Greater", ["mx", "th"], ["g"]),
              node("Compress", ["c", "g"], ["sel"], axis=0), node("Shape", ["sel"], ["s"]), node("Gather", ["s", "z"], ["k"]),
              node("Unsqueeze", ["k", "ax"], ["k1"]), node("Concat", ["k1", "m1"], ["sh"], axis=0),
              node("Reshape", ["sel", "sh"], ["y"], name="cut")]
    stored |= dict(th=np.float32(threshold), z=np.int64(0), ax=np.array([0]), m1=np.array([-1]))
    save(path, nodes, [real("x", 4, 16)], [real("y", "n", "k")], stored)


@pytest.mark.parametrize("threshold, state", [(40, "verified"), (1e12, "partial")])
def test_a_detector_without_detections_is_no_failure(tmp_path, threshold, state):
    detector(tmp_path / "m.onnx", threshold)
    done, said, _ = prune(tmp_path)
    assert done.returncode == 0, done.stderr
    assert said["state"] == state
    assert said["reached"] == (None if state == "verified" else "cut")
    check = lacuna("check", tmp_path / "out.onnx", "--against", tmp_path / "m.onnx", "--json", tmp_path / "c.json")
    assert check.returncode == 0, check.stderr
    assert json.loads((tmp_path / "c.json").read_text())["verification"]["state"] == state


def test_token_numbers_after_an_offset_and_a_shape_as_an_input(tmp_path):
    nodes, stored = mlp(first="e")
    nodes[:0] = [helper.make_node("Sub", ["ids", "o"], ["t"]), helper.make_node("Gather", ["table", "t"], ["e"])]
    nodes[-1].output[0] = "r"
    nodes.append(helper.make_node("Reshape", ["r", "shape"], ["y"]))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", "t"])
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [2])
    save(tmp_path / "m.onnx", nodes, [ids, shape], [real("y", "a", "b")],
         stored | dict(o=np.int64(1000), table=weight(50, 16)))
    done, said, _ = prune(tmp_path)
    assert done.returncode == 0 and said["state"] == "verified", done.stderr


@pytest.mark.parametrize("samples", ["zeros", "alike", "flat"])
def test_constant_samples_judge_nothing(tmp_path, samples):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", "n", 16)], [real("y", "n", 16)], stored)
    x = RNG.standard_normal((64, 16)).astype(np.float32)
    x = {"zeros": 0 * x, "alike": x[:1].repeat(64, 0), "flat": x[:, :1].repeat(16, 1)}[samples]
    np.save(tmp_path / "x.npy", x)
    done, _, _ = prune(tmp_path, "--calibration", tmp_path / "x.npy")
    assert done.returncode == 0, done.stderr
    assert "agree" not in done.stdout and "says nothing" in done.stdout
    said = json.loads((tmp_path / "report.json").read_text())["calibration"]
    assert said["reason"] and said["outputs_error"] is None and said["agreement"] is None


def test_solved_weights_are_compared_by_their_outputs(tmp_path):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", "n", 16)], [real("y", "n", 16)], stored)
    np.save(tmp_path / "x.npy", RNG.standard_normal((64, 16)).astype(np.float32))
    done, _, out = prune(tmp_path, "--calibration", tmp_path / "x.npy")
    assert done.returncode == 0, done.stderr
    against = ("check", out, "--against", tmp_path / "m.onnx", "--json", tmp_path / "c.json")
    done = lacuna(*against)
    assert done.returncode == 1 and "not verified: " in done.stderr and "--no-verify" in done.stderr
    assert "solved, corrected or trained" in done.stderr and "outputs differ by" in done.stderr
    assert lacuna(*against, "--no-verify").returncode == 0
    said = json.loads((tmp_path / "c.json").read_text())["verification"]
    assert said["state"] == "not verified" and "outputs differ by" in said["reason"]


@pytest.mark.parametrize("how", ["quantized", "of another type", "of other nodes"])
def test_networks_with_other_weights_are_compared_by_their_outputs(tmp_path, how):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", "n", 16)], [real("y", "n", 16)], stored)
    np.save(tmp_path / "x.npy", RNG.standard_normal((64, 16)).astype(np.float32))
    more = ("--calibration", tmp_path / "x.npy", "--no-verify") + (("--quantize", "qdq-int8") if how == "quantized" else ())
    done, _, out = prune(tmp_path, *more)
    assert done.returncode == 0, done.stderr
    if how == "of other nodes":
        model = onnx.load(out)
        model.graph.node.insert(0, helper.make_node("Identity", ["x"], ["x1"]))
        model.graph.node[1].input[0] = "x1"
        onnx.save(model, out)
    if how == "of another type":
        model = onnx.load(out)
        halves = {t.name: numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float16), t.name) for t in model.graph.initializer}
        model.graph.ClearField("initializer")
        model.graph.initializer.extend(halves.values())
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
        model.graph.ClearField("value_info")
        onnx.save(model, out)
    against = ("check", out, "--against", tmp_path / "m.onnx", "--json", tmp_path / "c.json")
    done = lacuna(*against)
    assert done.returncode == 1 and "not verified: " in done.stderr and "--no-verify" in done.stderr
    assert f"{how} cannot be compared one by one" in done.stderr and "outputs differ by" in done.stderr
    done = lacuna(*against, "--no-verify")
    assert done.returncode == 0 and "outputs differ by" in done.stdout and "channel by channel" not in done.stdout
    said = json.loads((tmp_path / "c.json").read_text())["verification"]
    assert said["state"] == "not verified" and "outputs differ by" in said["reason"]


def test_a_network_of_other_inputs_is_not_compared(tmp_path):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", "n", 16)], [real("y", "n", 16)], stored)
    nodes[0].input[0] = "sum"
    nodes.insert(0, helper.make_node("Add", ["x", "z"], ["sum"]))
    save(tmp_path / "other.onnx", nodes, [real("x", "n", 16), real("z", "n", 16)], [real("y", "n", 16)], stored)
    done = lacuna("check", tmp_path / "other.onnx", "--against", tmp_path / "m.onnx")
    assert done.returncode == 1 and "outputs could not be compared either" in done.stderr


def test_text_and_log_have_the_same_words(tmp_path):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", 4, 16)], [real("y", 4, 16)], stored)
    for more in ((), ("--no-verify",)):
        done, _, _ = prune(tmp_path, *more)
        said = [line for line in done.stdout.splitlines() if "verified: " in line]
        assert len(said) == 1 and said[0] in done.stderr.splitlines(), (done.stdout, done.stderr)


@pytest.mark.parametrize("n", [1, 7, 8])
def test_few_samples_say_how_little_they_show(tmp_path, n):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", "n", 16)], [real("y", "n", 16)], stored)
    np.save(tmp_path / "x.npy", RNG.standard_normal((n, 16)).astype(np.float32))
    done, _, _ = prune(tmp_path, "--calibration", tmp_path / "x.npy", "--quantize", "qdq-int8")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    for kind, first in (("calibration", "calibrated ("), ("quantisation", "outputs in integers")):
        line, = [line for line in done.stdout.splitlines() if line.startswith(first)]
        held = report[kind]["held_back"]
        if held and report[kind]["agreement"] == 0:
            assert ", 0.00% of the answers agree, on" in line
        elif held:
            assert "% at least, 95 % sure)" in line and 0 < report[kind]["agreement_least"] < 51
        else:
            assert "tells nothing of others" in line and report[kind]["agreement_least"] is None


def test_an_order_from_a_file_is_applied_and_not_searched(tmp_path):
    nodes, stored = mlp()
    save(tmp_path / "m.onnx", nodes, [real("x", 4, 16)], [real("y", 4, 16)], stored)
    done = lacuna("permute", tmp_path / "m.onnx", "-o", tmp_path / "p.onnx", "--save-permutation", tmp_path / "p.json")
    assert "1 group searched" in done.stdout, done.stderr
    done = lacuna("permute", tmp_path / "m.onnx", "-o", tmp_path / "again.onnx", "--apply", tmp_path / "p.json")
    assert "an order applied to 1 group" in done.stdout and "searched" not in done.stdout
