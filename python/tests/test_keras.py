# SPDX-License-Identifier: Apache-2.0
"""Keras 3 models pruned in place, on the backend torch and, by a second process, on JAX: as many layers as through Keras's own ONNX."""
import importlib.util
import os
import re
import subprocess
import sys

import numpy
import pytest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("keras") is None:
    pytest.skip("no Keras with PyTorch", allow_module_level=True)
os.environ.setdefault("KERAS_BACKEND", "torch")
import keras  # noqa: E402  pylint: disable=wrong-import-position
import lacuna  # noqa: E402  pylint: disable=wrong-import-position
from lacuna.keras import AspOptimizerWrapperV2, check_pruned_layers, prune  # noqa: E402  pylint: disable=wrong-import-position

pytestmark = [pytest.mark.torch, pytest.mark.skipif(keras.backend.backend() != "torch", reason="another backend")]
SHARED = """
def shared():
    layers = keras.layers
    x = keras.Input((16, 16, 8), name="x")
    first = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    twice = layers.Conv2D(32, 3, padding="same")
    y = layers.ReLU()(layers.BatchNormalization()(twice(first)))
    y = layers.Add()([twice(y), first])
    return keras.Model(x, layers.Dense(16)(layers.GlobalAveragePooling2D()(y)))
"""
exec(SHARED)  # pylint: disable=exec-used


def data(model, rows=8):
    generator = numpy.random.default_rng(0)
    return generator.standard_normal((rows, *model.inputs[0].shape[1:])).astype("float32"), generator.integers(0, 10, rows)


def through_onnx(model, path):
    model(data(model, 1)[0])  # an export wants a call
    model.export(path, format="onnx", verbose=False)
    return lacuna.inspect(path).summary.eligible


def test_a_network_with_shared_layers_trains(tmp_path, capsys):
    keras.utils.clear_session()
    model = shared()  # noqa: F821  pylint: disable=undefined-variable
    images, labels = data(model)
    before = model.predict(images, verbose=0)
    count = through_onnx(model, tmp_path / "net.onnx")
    report = prune(model, effort="fast")
    assert report.summary.pruned == count == 3 and len(report.masks) == 2 and report.difference < 1e-4 and before.shape == (8, 16)
    optimizer = AspOptimizerWrapperV2(keras.optimizers.Adam(1e-2), model, padding=False, permute=False,
                                      plot_to_file=str(tmp_path / "net.dot"), effort="fast")
    model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, epochs=5, batch_size=4, verbose=0)
    found = check_pruned_layers(model)
    assert found == {"conv2d/kernel": False, "conv2d_1/kernel": True, "dense/kernel": True} and (tmp_path / "net.dot").exists()
    assert "2 of 3 layers are pruned 2:4" in capsys.readouterr().out
    values = keras.ops.convert_to_numpy(model.get_layer("conv2d_1").kernel)
    assert 0.4 < (values != 0).mean() <= 0.5
    with pytest.raises(lacuna.Error, match="has done 10 steps"):
        AspOptimizerWrapperV2(optimizer, model)


@pytest.mark.large
@pytest.mark.parametrize("name", ["ResNet50", "MobileNetV2"])
def test_as_many_layers_as_through_onnx(name, tmp_path):
    model = getattr(keras.applications, name)(weights=None, input_shape=(64, 64, 3))
    count = through_onnx(model, tmp_path / "net.onnx")
    report = prune(model, effort="fast", verify=False)
    assert report.summary.pruned == count > 30 and sum(check_pruned_layers(model).values()) == len(report.masks)


def test_the_page_runs(root):
    keras.utils.clear_session()
    model = shared()  # noqa: F821  pylint: disable=undefined-variable
    found = re.findall(r"^```python\n(.*?)^```", (root / "docs/how-to/keras.md").read_text(), re.M | re.S)
    known = {"model": model, "images": data(model)[0], "targets": numpy.zeros((8, 16), "float32")}
    assert len(found) == 1
    exec(compile(found[0], "keras.md", "exec"), known)  # pylint: disable=exec-used
    assert sum(check_pruned_layers(model).values()) == 2


ELSEWHERE = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras, numpy
from lacuna.keras import AspOptimizerWrapperV2, check_pruned_layers
""" + SHARED + """
model = shared()
images, labels = numpy.random.default_rng(0).standard_normal((8, 16, 16, 8)).astype("float32"), numpy.arange(8)
optimizer = AspOptimizerWrapperV2(keras.optimizers.SGD(0.05, momentum=0.9), model, effort="fast")
model.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, labels, epochs=3, batch_size=4, verbose=0)
assert sum(check_pruned_layers(model, show_all=True).values()) == 2
"""


def test_another_backend():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("no jax")
    environment = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"}
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
