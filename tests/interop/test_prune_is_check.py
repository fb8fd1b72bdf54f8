# SPDX-License-Identifier: Apache-2.0
"""What prune says of its result, check says of the file: which layers there are, which are pruned, what is zero in them, and
why others are not. Over every kind of weight, and however computed ones were treated."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import test_folded_weights as folded

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
K, C = 32, 16


def lacuna(*arguments):
    done = subprocess.run([LACUNA, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, " ".join(map(str, arguments)) + "\n" + done.stdout + done.stderr
    return done.stdout


FIELDS = ("name", "weight", "shape", "dtype", "computed", "storable", "eligible", "pruned", "zeros", "elements", "zero_ratio",
          "holds_pattern", "holds_pattern_both")
SUMS = ("layers", "eligible", "pruned")
OF_THE_WORK = ("pruned already", "keeps its mask", "left dense")  # what only prune can know


def compare(said, seen, network):
    for a, b in zip(said["layers"], seen["layers"], strict=True):
        assert {f: a[f] for f in FIELDS} == {f: b[f] for f in FIELDS}, network
        if not any(words in (a["reason"] or "") for words in OF_THE_WORK):
            assert a["reason"] == b["reason"], network
    assert [said["summary"][f] for f in SUMS] == [seen["summary"][f] for f in SUMS], network


def agree(path, folder, *options, against=True):
    """Whatever prune did, check passes and says the same; also with --against the original."""
    out = folder / "pruned.onnx"
    both = [o for o in options if o not in ("--fold", "--no-verify", "--no-permute")]
    said = json.loads(lacuna("prune", "--no-calibration", "--no-solve", "-q", "--force", "-o", out, "--json", "-", *options, path))
    seen = json.loads(lacuna("check", "-q", "--json", "-", *both, out))
    compare(said, seen, f"{path} {options}")
    if against:
        checked = json.loads(lacuna("check", "-q", "--json", "-", "--no-verify", "--against", path, *both, out))
        compare(said, checked, f"{path} {options}, against the original")
        assert said["summary"]["reordered"] == checked["summary"]["reordered"]
    if "--no-permute" not in options:  # free to be searched, which check says of what may be
        assert said["summary"]["permuted"] == seen["summary"]["permuted"]
    return said


def int8_of(w):
    scale = np.abs(w).max() / 127
    return np.clip(np.rint(w / scale), -127, 127).astype(np.int8), np.float32(scale)


def dequantized(net):
    q, scale = int8_of(net.floats(K, C, 3, 3))
    return net.op("DequantizeLinear", net.put(q), net.put(scale), net.put(np.int8(3)))


def quantized_float(net):
    scale, zero = net.put(np.float32(0.01)), net.put(np.int8(0))
    return net.op("DequantizeLinear", net.op("QuantizeLinear", net.put(net.floats(K, C, 3, 3)), scale, zero), scale, zero)


def masked_and_quantized(net):
    value, _, _ = folded.masked(net)
    scale, zero = net.put(np.float32(0.01)), net.put(np.int8(0))
    return net.op("DequantizeLinear", net.op("QuantizeLinear", value, scale, zero), scale, zero)


def quantized_and_masked(net):
    q, scale = int8_of(net.floats(K, C, 3, 3))
    w = net.op("DequantizeLinear", net.put(q), net.put(scale), net.put(np.int8(0)))
    return net.op("Mul", w, net.put(folded.mask_2of4(q.astype(np.float32)).astype(np.float32)))


def sum_of_quantized(net):
    return net.op("Add", dequantized(net), dequantized(net))


def halves(net):
    return net.op("Cast", net.put(net.floats(K, C, 3, 3).astype(np.float16)), to=TensorProto.FLOAT)


def normalized(net):
    v, g = net.put(net.floats(K, C, 3, 3), "v"), net.put(np.abs(net.floats(K, 1, 1, 1)) + 1)
    return net.op("Mul", v, net.op("Div", g, net.op("ReduceL2", "v", axes=[1, 2, 3], keepdims=1)))


KINDS = {f.__name__: f for f in (dequantized, quantized_float, masked_and_quantized, quantized_and_masked, sum_of_quantized,
                                 halves, normalized)}
KINDS.update({make.__name__: lambda net, make=make: make(net)[0] for make in (
    folded.masked, folded.masked_along_inputs, folded.sum_of_branches, folded.standardized, folded.joined, folded.transposed_sum,
    folded.in_a_function)})
FORMS = {"as it is": (), "no fold": ("--no-fold", "--all-sizes"), "fold": ("--fold", "--no-permute")}


def chain(net, value, width=C):
    """Conv, the layer, Conv; the last one of 12 output channels, which holds nothing without --all-sizes."""
    x = net.op("Relu", net.op("Conv", "x", net.put(net.floats(C, width, 1, 1))))
    x = net.op("Relu", net.op("Conv", x, value))
    return net.op("Conv", x, net.put(net.floats(12, K, 1, 1)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_prune_and_check_agree(kind, form, tmp_path):
    net, path = folded.Net(), tmp_path / "model.onnx"
    folded.save(net, chain(net, KINDS[kind](net)), path, [1, C, 6, 6])
    said = agree(path, tmp_path, *FORMS[form])
    assert said["summary"]["layers"] == 3
    assert all(layer["zeros"] is not None for layer in said["layers"])


@pytest.mark.parametrize("kind", ["masked_and_quantized", "quantized_and_masked", "masked", "in_a_function"])
def test_mask_in_the_graph_counts_as_pruned_where_it_stays(kind, tmp_path):
    net, path = folded.Net(), tmp_path / "model.onnx"
    folded.save(net, chain(net, KINDS[kind](net)), path, [1, C, 6, 6])
    said = agree(path, tmp_path, "--no-fold", "--no-permute")
    layer = next(la for la in said["layers"] if la["computed"])
    assert layer["pruned"] and layer["zero_ratio"] >= 0.5
    assert agree(path, tmp_path)["summary"]["folded"] == (kind != "quantized_and_masked")


def test_layer_that_stays_dense_by_its_size_but_holds_the_pattern_counts(tmp_path):
    net, path = folded.Net(), tmp_path / "model.onnx"
    w = net.floats(12, K)
    folded.save(net, net.op("Gemm", "x", net.put(w * folded.mask_2of4(w)), transB=1), path, [2, K])
    said = agree(path, tmp_path)
    assert not said["layers"][0]["eligible"] and said["layers"][0]["pruned"]


def test_a_dense_product_that_prune_would_prune_holds_no_pattern(tmp_path):
    net, path = folded.Net(), tmp_path / "model.onnx"
    product = net.op("Mul", net.put(net.floats(C, K)), net.put(net.floats(C, K)))
    folded.save(net, net.op("MatMul", "x", product), path, [2, C])
    done = subprocess.run([LACUNA, "check", "-q", path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "1 of 1 layer that should hold 2:4 does not" in done.stderr, done
    lacuna("check", "-q", "--no-fold", path)


def test_target_sees_a_mask_in_the_graph(tmp_path):
    net, path = folded.Net(), tmp_path / "model.onnx"
    w = net.floats(64, 64)
    value = net.op("Mul", net.put(w), net.put(folded.mask_2of4(w).astype(np.float32)))
    folded.save(net, net.op("Gemm", "x", value, transB=1), path, [2, 64])
    for form in ("--no-fold", "--fold"):
        report = json.loads(lacuna("check", "-q", "--json", "-", "--target", "tensorrt", form, path))
        assert report["targets"][0]["taken"] == 1, form


NETWORKS = sorted((TOP / "tests/torture/networks").glob("*.onnx")) + [TOP / "examples/digits/digits.onnx"]


@pytest.mark.parametrize("form", ["as it is", "no fold"])
@pytest.mark.parametrize("path", NETWORKS, ids=lambda p: p.stem)
def test_prune_and_check_agree_on_kept_networks(path, form, tmp_path):
    agree(path, tmp_path, "--no-verify", *FORMS[form])


def test_pack_has_a_row_for_a_computed_weight_and_says_why_it_stays(tmp_path):
    path, pack, back = tmp_path / "model.onnx", tmp_path / "model.pack", tmp_path / "back.onnx"
    value, _, _ = folded.build("masked", path)
    rows = json.loads(lacuna("pack", "-q", "--json", "-", "-o", pack, path))["layers"]
    row = next(r for r in rows if r["weight"] == value)
    assert len(rows) == 3 and not row["packed"] and "is computed by Mul" in row["reason"]
    lacuna("unpack", "-q", "-o", back, pack)
    assert back.read_bytes() == path.read_bytes()
