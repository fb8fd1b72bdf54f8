# SPDX-License-Identifier: Apache-2.0
"""The provider of the wheel inside ONNX Runtime, in a process of its own."""
import re
import subprocess
import sys

import pytest

import lacuna
from lacuna import provider

PROGRAM = """
import sys, numpy, onnxruntime
import lacuna
from lacuna import provider
onnxruntime.register_execution_provider_library(provider.get_ep_name(), provider.get_library_path())
devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name in provider.get_ep_names()]
options = onnxruntime.SessionOptions()
options.add_provider_for_devices(devices, {})
images = numpy.random.default_rng(0).random((4, 1, 8, 8), dtype=numpy.float32)
scores, = onnxruntime.InferenceSession(sys.argv[1], options).run(None, {"image": images})
assert abs(scores - lacuna.Session(sys.argv[1]).run(None, {"image": images})[0]).max() < 1e-5
"""


def library():
    """The provider's file; skips where there is none, and no ONNX Runtime that loads it."""
    pytest.importorskip("onnxruntime")
    try:
        return provider.get_library_path()
    except lacuna.Error:
        pytest.skip("the package was built without the provider")


def test_the_page_runs(root, digits):
    found = re.findall(r"^```python\n(.*?)^```", (root / "docs/how-to/onnxruntime.md").read_text(), re.M | re.S)
    assert len(found) == 1
    text = found[0].replace("/usr/local/lib/lacuna/liblacuna_ort.so", library()).replace("net-24.onnx", str(digits)).replace('"input"', '"image"')
    subprocess.run([sys.executable, "-c", f"import numpy\nimages = numpy.ones((4, 1, 8, 8), numpy.float32)\n{text}\nassert scores.shape == (4, 10)"],
                   check=True)


def test_it_runs_in_onnx_runtime(digits):
    library()
    subprocess.run([sys.executable, "-c", PROGRAM, digits], check=True)


def test_the_package_of_the_provider_has_the_version(root):
    text = (root / "python/onnxruntime-ep-lacuna/pyproject.toml").read_text()
    assert f'version = "{lacuna.__version__}"' in text and f'"lacuna=={lacuna.__version__}"' in text
