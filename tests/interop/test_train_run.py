# SPDX-License-Identifier: Apache-2.0
"""Whole trainings: 20 steps of a CIFAR ResNet-20 against PyTorch's losses in float64, and what a run leaves in its
folder, read by the tensorboard package."""
import json
import os
import pathlib
import subprocess
import xml.etree.ElementTree

import pytest

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
MODEL = pathlib.Path(os.environ.get("LAC_MODELS", TOP.parent / "shared/models")) / "resnet20_cifar10.onnx"
CIFAR = TOP.parent / "shared/data/cifar-10-batches-bin"
LOSSES = TOP / "tests/fixtures/train/resnet20_losses.txt"


def lacuna(*words):
    done = subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def train_20_steps(folder):
    lacuna("finetune", "-q", MODEL, "--data", CIFAR, "--no-sparse", "--no-augment", "--no-shuffle", "--batch-size", 128,
           "--optimizer", "sgd", "--lr", 0.01, "--momentum", 0.9, "--weight-decay", 1e-4, "--schedule", "constant",
           "--label-smoothing", 0, "--steps", 20, "--no-eval", "--model-dir", folder, "-o", folder / "tuned.onnx")
    return [line["loss"] for line in lines_of(folder)]


@pytest.mark.skipif(not (MODEL.exists() and CIFAR.exists()), reason="no trained network or no CIFAR-10")
def test_twenty_steps_lose_what_pytorchs_lose(tmp_path):
    wanted = [float(line) for line in LOSSES.read_text().split()]
    found = train_20_steps(tmp_path)
    errors = [abs(a - b) / b for a, b in zip(found, wanted)]
    assert len(found) == len(wanted) == 20
    assert errors[0] <= 1e-5 and max(errors) <= 1e-2, errors


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Digits: 30 steps in two runs, the second goes on from the first one's checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    words = ["train", "-q", "--arch", "digits", "--data", TOP / "examples/digits", "--model-dir", folder, "--lr", 0.05,
             "--batch-size", 48, "--eval-steps", 10, "--display-steps", 5, "--schedule", "constant", "--recover"]
    lacuna(*words, "--steps", 20, "-o", folder / "first.onnx")
    lacuna(*words, "--steps", 30, "-o", folder / "second.onnx")
    return folder


def test_the_log_of_two_runs_is_one(run):
    lines = lines_of(run)
    assert [line["step"] for line in lines if "eval" not in line] == list(range(1, 31))
    assert [line["step"] for line in lines if "eval" in line] == [10, 20, 30]


def test_tensorboard_reads_a_run(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run))
    events.Reload()
    lines = lines_of(run)
    assert set(events.Tags()["scalars"]) == {
        "loss/train", "accuracy/train", "rate", "images_per_second", "loss/test", "accuracy/top1", "accuracy/top5"}
    loss = {line["step"]: line["loss"] for line in lines if "eval" not in line}
    # the first step of each run, and every fifth
    assert [x.step for x in events.Scalars("loss/train")] == sorted({1, 21, *range(5, 31, 5)})
    assert all(x.value == pytest.approx(loss[x.step], rel=1e-6) for x in events.Scalars("loss/train"))
    top1 = {line["step"]: line["top1"] for line in lines if "eval" in line}
    assert {x.step: pytest.approx(x.value, rel=1e-6) for x in events.Scalars("accuracy/top1")} == top1


def test_the_curves_are_well_formed(run):
    root = xml.etree.ElementTree.parse(run / "curves.svg").getroot()
    assert root.tag.endswith("svg") and "top-1" in "".join(root.itertext())
