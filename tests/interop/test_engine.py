# SPDX-License-Identifier: Apache-2.0
"""The fast engine computes what ONNX Runtime and the plain engine compute, for networks as exporters write them."""
import os
import pathlib
import subprocess

import numpy as np
import onnxruntime
import pytest

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
ZOO = TOP / "tests/fixtures/zoo"
MODELS = pathlib.Path(os.environ.get("LAC_MODELS", TOP.parent / "shared/models"))
TRAINED = [f"resnet{n}_cifar10" for n in (20, 32, 44, 56)] + [
    "resnet56_cifar10_dynamo", "resnet56_cifar10_folded", "efficientnet_lite0"]
# The plain engine does not round to half precision, nor does the fast one; ONNX Runtime does, and it has no
# convolution for bf16. Where it is asked, 8-bit values may fall on either side of a step.
AGAINST_PLAIN = ["resnet18_f16", "resnet18_bf16", "resnet20_qdq", "mobilenet_v3_small_ts", "shufflenet_v2_x1_5_ts"]
AGAINST_RUNTIME = sorted({path.stem for path in ZOO.glob("*.onnx")} - {"resnet18_f16", "resnet18_bf16"})
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(bfloat16)": np.float32,
         "tensor(int64)": np.int64}


def file_of(folder, name):
    return folder / f"{name.replace('/', '_')}.npy"


def run_engine(tool, model, inputs, folder, *options):
    """The outputs by name, and the plan's last line."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "out").mkdir(exist_ok=True)
    arguments = []
    for name, value in inputs.items():
        np.save(file_of(folder / "in", name), value)
        arguments += ["--shape", f"{name}={'x'.join(map(str, value.shape))}"]
    done = subprocess.run([tool("engine_main"), "--plan", *options, *arguments, model, folder / "in", folder / "out"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def inputs_of(session):
    rng = np.random.default_rng(0)
    inputs = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 2 if at == 0 else 64 for at, d in enumerate(i.shape)]
        if i.type == "tensor(int64)":  # words, masks and kinds of words
            inputs[i.name] = rng.integers(0, 2, shape)
        else:
            inputs[i.name] = rng.standard_normal(shape).astype(TYPES[i.type])
    return inputs


def close(want, got, tolerance):
    want, got = np.asarray(want, np.float64), np.asarray(got, np.float64)
    assert want.shape == got.shape
    assert np.abs(want - got).max() <= tolerance * np.abs(want).max()  # a NaN is not less


def against_runtime(tool, model, folder, *options, tolerance=1e-4):
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    inputs = inputs_of(session)
    plan = run_engine(tool, model, inputs, folder, *options)
    for output, want in zip(session.get_outputs(), session.run(None, inputs)):
        close(want, np.load(file_of(folder / "out", output.name)), tolerance)
    return plan


@pytest.fixture
def filled(tool, tmp_path):
    def fill(name):
        subprocess.run([tool("fill_model"), ZOO / f"{name}.onnx", tmp_path / "model.onnx", "1"], check=True)
        return tmp_path / "model.onnx"
    return fill


@pytest.mark.parametrize("name", AGAINST_RUNTIME)
def test_the_engine_agrees_with_the_runtime(name, tool, filled, tmp_path):
    plan = against_runtime(tool, filled(name), tmp_path)
    if name != "resnet20_qdq":  # no quantized kernels yet
        assert " 0 of them by the plain operator" in plan


# Results of 16 bits are rounded to them by the plain engine, after every node; the fast one keeps f32.
ROUNDED = {"resnet18_f16": 2**-9, "resnet18_bf16": 2**-6}


@pytest.mark.parametrize("name", AGAINST_PLAIN)
def test_the_engine_agrees_with_the_plain_one(name, tool, filled, tmp_path):
    model = filled(name)
    size = 32 if name == "resnet20_qdq" else 224
    inputs = {"input": np.random.default_rng(0).standard_normal([1, 3, size, size]).astype(np.float32)}
    run_engine(tool, model, inputs, tmp_path)
    (tmp_path / "plain").mkdir()
    subprocess.run([tool("plain_main"), model, tmp_path / "in", tmp_path / "plain"], check=True)
    for want in (tmp_path / "plain").iterdir():
        close(np.load(want), np.load(tmp_path / "out" / want.name), ROUNDED.get(name, 1e-4))


@pytest.mark.parametrize("name", TRAINED)
def test_the_engine_agrees_on_trained_networks(name, tool, tmp_path):
    model = MODELS / f"{name}.onnx"
    if not model.exists():
        pytest.skip(f"{model} is not there")
    against_runtime(tool, model, tmp_path)


def test_the_engine_agrees_on_the_digits(tool, tmp_path):
    against_runtime(tool, TOP / "examples/digits/digits.onnx", tmp_path)


def test_threads_change_only_the_last_bits(tool, filled, tmp_path):
    model = filled("mobilenet_v3_small_ts")
    for threads in ("1", "2", "3"):
        against_runtime(tool, model, tmp_path, "--threads", threads)


@pytest.mark.skipif("avx512_bf16" not in pathlib.Path("/proc/cpuinfo").read_text(), reason="no bf16 instructions")
def test_bf16_stays_near(tool, filled, tmp_path):
    against_runtime(tool, filled("resnet50_ts"), tmp_path, "--bf16", tolerance=3e-2)
