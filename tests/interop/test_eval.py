# SPDX-License-Identifier: Apache-2.0
"""eval and infer against ONNX Runtime: the same predictions on the same images, and the accuracies that others measured."""
import gzip
import json
import os
import pathlib
import subprocess

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, load, numpy_helper, save

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
DIGITS = TOP / "examples/digits"
MODELS = pathlib.Path(os.environ.get("LAC_MODELS", TOP.parent / "shared/models"))
DATA = TOP.parent / "shared/data"
CIFAR = DATA / "cifar-10-batches-bin"
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)
N = 500


def lacuna(*words):
    done = subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def evaluate(*words):
    return json.loads(lacuna("eval", "-q", "--json", "-", *words))


def session_of(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def infer(model, inputs, folder, *options):
    """The outputs by name of file."""
    words = []
    for name, value in inputs.items():
        np.save(folder / f"{name}.in.npy", value)
        words += ["--input", f"{name}={folder / name}.in.npy"]
    lacuna("infer", "-q", model, "-o", folder / "out", "--force", *words, *options)
    return {path.name: np.load(path) for path in (folder / "out").glob("*.npy")}


def cifar(n):
    records = np.frombuffer((CIFAR / "test_batch.bin").read_bytes(), np.uint8).reshape(-1, 3073)[:n]
    pixels = records[:, 1:].reshape(n, 3, 32, 32).astype(np.float32)
    return (pixels - MEAN[:, None, None]) / STD[:, None, None], records[:, 0]


def cross_entropy(logits, labels):
    z = logits.astype(np.float64)
    most = z.max(1)
    return np.mean(np.log(np.exp(z - most[:, None]).sum(1)) + most - z[np.arange(len(z)), labels])


needs_cifar = pytest.mark.skipif(not (CIFAR.exists() and MODELS.exists()), reason="CIFAR-10 and its networks are not here")
needs_photographs = pytest.mark.skipif(not (DATA / "imagenet-sample").exists(), reason="the photographs are not here")


@needs_cifar
@pytest.mark.parametrize("name", ["resnet20_cifar10", "resnet56_cifar10"])
def test_predictions_are_those_of_the_runtime(name, tmp_path):
    images, labels = cifar(N)
    session = session_of(MODELS / f"{name}.onnx")
    feed = session.get_inputs()[0]
    batch = feed.shape[0] if isinstance(feed.shape[0], int) else N
    want = np.concatenate([session.run(None, {feed.name: images[at:at + batch]})[0] for at in range(0, N, batch)])
    result = evaluate(MODELS / f"{name}.onnx", "--data", CIFAR, "--limit", N, "--predictions", tmp_path / "p.npy")
    got = np.load(tmp_path / "p.npy")
    assert got.dtype == np.float32 and got.shape == want.shape
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
    best = np.sort(want, axis=1)
    tie = best[:, -1] - best[:, -2] <= 1e-4 * np.abs(want).max()
    assert ((got.argmax(1) == want.argmax(1)) | tie).all()
    assert result["images"] == N and result["top1"] == pytest.approx(100 * (got.argmax(1) == labels).mean())
    assert result["loss"] == pytest.approx(cross_entropy(got, labels), rel=1e-12)


@needs_photographs
def test_photographs_are_recognized_as_measured_elsewhere():
    result = evaluate(MODELS / "efficientnet_lite0.onnx", "--data", DATA / "imagenet-sample",
                      "--mean", "127,127,127", "--std", "128,128,128")
    assert result["images"] == 100 and abs(result["top1"] - 89) <= 1 and abs(result["top5"] - 99) <= 1


@pytest.mark.parametrize("engine", ["cpu", "plain"])
def test_digits_are_run_as_by_the_runtime(engine, tmp_path):
    rows = np.loadtxt(gzip.open(DIGITS / "digits.csv.gz"), delimiter=",", dtype=np.float32)[-40:]
    images = (rows[:, :64] / 16).reshape(-1, 1, 8, 8)
    want = session_of(DIGITS / "digits.onnx").run(None, {"image": images})[0]
    got = infer(DIGITS / "digits.onnx", {"image": images}, tmp_path, "--engine", engine)["scores.npy"]
    assert got.dtype == np.float32 and got.shape == want.shape
    assert np.abs(got - want).max() <= 1e-4 * np.abs(want).max()
    # An array of another type and shape, but of the same numbers, is the same input.
    flat = infer(DIGITS / "digits.onnx", {"image": images.astype(np.float64).reshape(-1, 8, 8)}, tmp_path,
                 "--engine", engine, "--input-shape", "image=40x1x8x8")["scores.npy"]
    assert (flat == got).all()


@pytest.mark.parametrize("engine", ["cpu", "plain"])
def test_several_inputs_and_outputs_keep_their_types(engine, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "at"], ["deep/row"]),
         helper.make_node("Greater", ["deep/row", "zero"], ["is positive"]),
         helper.make_node("Cast", ["deep/row"], ["whole"], to=TensorProto.INT32)], "g",
        [helper.make_tensor_value_info("table", TensorProto.FLOAT, ["n", 3]),
         helper.make_tensor_value_info("at", TensorProto.INT64, ["k"])],
        [helper.make_tensor_value_info("deep/row", TensorProto.FLOAT, ["k", 3]),
         helper.make_tensor_value_info("is positive", TensorProto.BOOL, ["k", 3]),
         helper.make_tensor_value_info("whole", TensorProto.INT32, ["k", 3])],
        [helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, tmp_path / "m.onnx")
    table = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32) * 10
    at = np.array([4, 0, 2], np.int32)  # narrower than the network's own
    want = session_of(tmp_path / "m.onnx").run(None, {"table": table, "at": at.astype(np.int64)})
    got = infer(tmp_path / "m.onnx", {"table": table, "at": at}, tmp_path, "--engine", engine)
    for name, value in zip(["deep_row", "is_positive", "whole"], want):
        assert got[f"{name}.npy"].dtype == value.dtype and (got[f"{name}.npy"] == value).all()
    np.save(tmp_path / "at.npy", np.array([0.5]))
    done = subprocess.run([LACUNA, "infer", tmp_path / "m.onnx", "-o", tmp_path / "no", "--input",
                           f"table={tmp_path}/table.in.npy", "--input", f"at={tmp_path}/at.npy"], capture_output=True, text=True)
    assert done.returncode == 1 and "element 0 is 0.5" in done.stderr and not (tmp_path / "no").exists()


def test_images_whose_answer_is_not_finite_are_counted(tmp_path):
    """The root of each score and a number: NaN for the half of the images whose least score is below its negative."""
    lacuna("eval", "-q", DIGITS / "digits.onnx", "--data", DIGITS, "--predictions", tmp_path / "scores.npy")
    scores = np.load(tmp_path / "scores.npy")
    least = np.sort(scores.min(1))
    at = len(least) // 2 + int(np.argmax(np.diff(least[len(least) // 2:])[:20]))  # a wide gap
    shift = np.float32(-(least[at] + least[at + 1]) / 2)
    bad = at + 1
    model = load(str(DIGITS / "digits.onnx"))
    name = model.graph.output[0].name
    model.graph.initializer.append(numpy_helper.from_array(shift, "shift"))
    model.graph.node.extend([helper.make_node("Add", [name, "shift"], ["more"]), helper.make_node("Sqrt", ["more"], ["root"])])
    model.graph.output[0].name = "root"
    save(model, str(tmp_path / "root.onnx"))
    command = [LACUNA, "eval", tmp_path / "root.onnx", "--data", DIGITS, "--predictions", tmp_path / "none.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "top-1" not in done.stdout and not (tmp_path / "none.npy").exists()
    assert f"{bad} of {len(scores)} images have an answer that is not finite" in done.stderr
