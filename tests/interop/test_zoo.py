# SPDX-License-Identifier: Apache-2.0
"""Networks as other exporters write them: ONNX Runtime computes the same before and after the permutation."""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnxruntime
import pytest

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release"))
# ONNX Runtime has no bf16 convolution; the others are of families that these cover.
NETWORKS = ["resnet18_ts", "resnet18_ts_tied", "resnet18_f16", "resnet20_qdq", "resnet50_tf", "resnet50_paddle",
            "resnext50_32x4d_ts", "shufflenet_v2_x1_5_dynamo", "mobilenet_v2_keras", "mobilenet_v3_small_ts",
            "efficientnet_b0_ts", "efficientnet_b0_tf", "googlenet_ts", "densenet121_dynamo", "squeezenet1_1_ts"]
TOLERANCE = {"resnet18_f16": 2e-2}  # half precision: the order of a sum shows


def run(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def random_inputs(path):
    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    return {i.name: rng.standard_normal([d if isinstance(d, int) else 1 for d in i.shape]).astype(types[i.type])
            for i in session.get_inputs()}


@pytest.mark.parametrize("name", NETWORKS)
def test_runtime_agrees_before_and_after_the_permutation(name, tmp_path):
    model, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    subprocess.run([BUILD / "tests/tools/fill_model", TOP / f"tests/fixtures/zoo/{name}.onnx", model, "1"], check=True)
    done = subprocess.run([BUILD / "lacuna", "permute", "-q", "--effort", "fast", "--no-verify", "-o", out, model],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    inputs = random_inputs(model)
    for before, after in zip(run(model, inputs), run(out, inputs)):
        before, after = before.astype(np.float64), after.astype(np.float64)
        assert np.abs(before - after).max() <= TOLERANCE.get(name, 1e-4) * np.abs(before).max()


@pytest.mark.parametrize("name", ["resnet20_qdq", "resnet18_ts"])
def test_what_an_order_keeps_is_what_its_file_keeps(name, tmp_path):
    """Scales of channels follow the rows that they belong to."""
    def permuted(source, out, *options):
        run = subprocess.run([BUILD / "lacuna", "permute", "-q", "--no-verify", *options, "-o", out, "--json", "-", source],
                             capture_output=True, text=True, check=True)
        return [layer for layer in json.loads(run.stdout)["layers"] if layer["eligible"]]

    model = tmp_path / "model.onnx"
    subprocess.run([BUILD / "tests/tools/fill_model", TOP / f"tests/fixtures/zoo/{name}.onnx", model, "1"], check=True)
    told = permuted(model, tmp_path / "one.onnx", "--effort", "fast")
    found = permuted(tmp_path / "one.onnx", tmp_path / "two.onnx", "--strategy", "none")
    assert len(told) > 10 and any(layer["kept"] > layer["kept_identity"] for layer in told)
    for one, two in zip(told, found):
        assert abs(one["kept"] - two["kept_identity"]) <= 1e-9 * two["kept_identity"], one["name"]
