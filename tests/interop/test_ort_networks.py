# SPDX-License-Identifier: Apache-2.0
"""The provider for ONNX Runtime on networks that others made: dense, 2:4, int8 of Lacuna's, int8 of ONNX Runtime's.

LAC_NETWORKS lists folders, with colons between: each holds NAME/model.onnx with inputs.npz, as `bench/networks.py --keep` leaves
them, or NAME.onnx, with NAME.npz or without. Without it, those of ../shared/models are taken, where they are.

Networks of floats answer as ONNX Runtime's own provider does. Of int8 networks its answers depend on its optimizations, by many
units on processors without VNNI. So these are compared with its answers without them, which are what the operators' definitions
say: a unit of the last QuantizeLinear. A network that magnifies float32's rounding is left out: its own answers differ.
"""

import os
import pathlib
import subprocess

import numpy
import onnx
import onnxruntime as ort
import pytest
from built import ROOT, build_dir
from onnx import helper
from test_ort_plugin import ALL, LIBRARY, registered, session  # noqa: F401 (registered is a fixture)

FOLDERS = os.environ.get("LAC_NETWORKS", str(ROOT.parent / "shared/models")).split(":")
FORMS = ["dense", "2:4", "int8", "qdq"]
PARTS = {"whole": ALL, "what gains": {}}
TYPES = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(double)": numpy.float64,
         "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32, "tensor(bool)": bool, "tensor(uint8)": numpy.uint8}
TOLERANCE, FLOOR = 1e-4, 1e-6  # of the largest element of an output, and what float32 loses of a probability near 0
HALF = 5e-3                    # the same where values between nodes are of half precision: ONNX Runtime computes these in float32
FLIPPED = 0.02                 # of integers: indices of scores that are nearly equal
UNITS = 1.001                  # and what float32 loses of it

pytestmark = [pytest.mark.large, pytest.mark.skipif(not LIBRARY.exists(), reason="built without the provider (LAC_ORT)")]


def networks():
    """{name: (path of the model, path of its inputs, which may be missing)}"""
    found = {}
    for folder in map(pathlib.Path, FOLDERS):
        for model in sorted(folder.glob("*/model.onnx")):
            found[model.parent.name] = (model.resolve(), model.resolve().parent / "inputs.npz")
        for model in sorted(folder.glob("*.onnx")):
            found[model.stem] = (model.resolve(), model.resolve().with_suffix(".npz"))
    return found


NETWORKS = networks()


def sample(model, path):
    """Inputs of one run: those that are kept, as many as the network takes, else random ones with 2 for open sizes."""
    rng = numpy.random.default_rng(0)
    kept = dict(numpy.load(path)) if path.exists() else {}
    feeds = {}
    for value in session(str(model)).get_inputs():
        shape = [size if isinstance(size, int) and size > 0 else 2 for size in value.shape]
        dtype = TYPES[value.type]
        if value.name in kept:
            many = kept[value.name]
            one = many[0] if many.ndim > len(shape) else many
            feeds[value.name] = one[:shape[0]] if shape and isinstance(value.shape[0], int) else one
        elif numpy.issubdtype(dtype, numpy.floating):
            feeds[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            feeds[value.name] = rng.integers(0, 2, shape).astype(dtype)
    return feeds


class Samples:
    """For ONNX Runtime's quantizer: the same inputs twice."""

    def __init__(self, feeds):
        self.left = [feeds, feeds]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantize(model, out, feeds):
    """By ONNX Runtime's quantizer. Returns why it does not; empty: it did."""
    from onnxruntime import quantization
    ready = out.with_name("ready.onnx")
    try:
        quantization.shape_inference.quant_pre_process(str(model), str(ready))
        quantization.quantize_static(str(ready), str(out), Samples(feeds), per_channel=True)
        session(str(out))
    except Exception as error:
        return f"ONNX Runtime does not quantize it: {str(error)[:200]}"
    return ""


def make(model, inputs, form, folder):
    """The path of the network in this form, and why there is none."""
    out = folder / "made.onnx"
    if form == "dense":
        return str(model), ""
    if form == "qdq":
        why = quantize(model, out, sample(model, inputs))
        return (None, why) if why else (str(out), "")
    words = [build_dir() / "lacuna", "prune", model, "-o", out, "--force", "-q", "--no-verify", "--effort", "fast"]
    if form == "2:4":
        words += ["--no-calibration"]
    else:
        feeds = sample(model, inputs)
        first = next(iter(feeds))
        numpy.savez(folder / "samples.npz", **{k: numpy.concatenate([v] * 4) if k == first and v.ndim else v for k, v in feeds.items()})
        words += ["--calibration", folder / "samples.npz", "--quantize", "qdq-int8", "--score", "magnitude", "--no-solve"]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    return (str(out), "") if done.returncode == 0 else (None, done.stderr.strip().splitlines()[-1])


def show_last(path, folder):
    """The int8 network with its last quantized activation as an output. Returns path, index of that output, and its unit."""
    model = onnx.load(path)
    constants = {t.name: t for t in model.graph.initializer}
    last = [n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] not in constants and n.input[1] in constants]
    if not last:
        return path, None, 0.0
    value = last[-1].output[0]
    if value not in [o.name for o in model.graph.output]:
        model.graph.output.append(helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None))
    onnx.save(model, folder / "shown.onnx", save_as_external_data=model.ByteSize() > 1 << 30)
    unit = float(onnx.numpy_helper.to_array(constants[last[-1].input[1]]).max())
    return str(folder / "shown.onnx"), [o.name for o in model.graph.output].index(value), unit


def tolerance_of(path):
    """Of floats, relative: more where values between nodes are of half precision."""
    kinds = {t.data_type for t in onnx.load(path, load_external_data=False).graph.initializer}
    return HALF if onnx.TensorProto.FLOAT16 in kinds else TOLERANCE


def difference(one, other):
    """(largest difference of floats, beyond FLOOR; the scale; the share of integers that differ)"""
    assert one.shape == other.shape and one.dtype == other.dtype
    if one.dtype.kind != "f" or not one.size:
        return 0.0, 1.0, float(numpy.mean(one != other)) if one.size else 0.0
    one, other = one.astype(numpy.float64), other.astype(numpy.float64)
    same = (one == other) | (numpy.isnan(one) & numpy.isnan(other))
    apart = numpy.where(same, 0, numpy.abs(one - other)).max()
    return max(0.0, float(apart) - FLOOR), float(numpy.abs(one[numpy.isfinite(one)]).max(initial=0)), 0.0


def run_strictly(path, options, feeds):
    one = session(path, options)
    one.disable_fallback()
    return one.run(None, feeds)


def compare_int8(path, feeds, folder):
    """The last quantized activation is within a unit of its definition's, or no farther from it than ONNX Runtime's own."""
    path, at, unit = show_last(path, folder)
    if at is None:
        pytest.skip("no activation is quantized by constants")
    plain = session(path, graph_optimization_level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL).run(None, feeds)
    own = session(path).run(None, feeds)

    def units(one, other):
        return float(numpy.abs(one[at].astype(numpy.float64) - other[at]).max(initial=0)) / unit

    for part, options in PARTS.items():
        found = run_strictly(path, options, feeds)
        ours, its = units(plain, found), units(plain, own)
        print(f"{part}: {ours:.2f} units from the definition; ONNX Runtime's own answer is {its:.2f} from it")
        assert not ours > UNITS * max(1, its), part


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_answer_as_before(name, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where ONNX Runtime's quantizer leaves files
    path, why = make(*NETWORKS[name], form, tmp_path)
    if not path:
        pytest.skip(why)
    feeds = sample(*NETWORKS[name])
    try:
        session(path).run(None, feeds)
    except Exception as error:
        if NETWORKS[name][1].exists():
            raise
        pytest.skip(f"ONNX Runtime does not run it on made-up inputs: {str(error)[:200]}")
    if form in ("int8", "qdq"):
        compare_int8(path, feeds, tmp_path)
        return
    wanted, relative = session(path).run(None, feeds), tolerance_of(path)
    plain = session(path, graph_optimization_level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL).run(None, feeds)
    for one, other in zip(plain, wanted):
        apart, scale, flipped = difference(one, other)
        if apart > 10 * relative * scale or flipped > FLIPPED:
            pytest.skip(f"ONNX Runtime's own answers differ by {apart:.2g} of {scale:.2g}, or {flipped:.2%}, with its optimizations")
    for part, options in PARTS.items():
        for k, value in enumerate(run_strictly(path, options, feeds)):
            apart, scale, flipped = difference(wanted[k], value)
            print(f"{name} {form} {part}: {apart:.2g} of {scale:.2g}, {flipped:.2%} flipped")
            assert not apart > relative * scale and not flipped > FLIPPED, (part, k)
