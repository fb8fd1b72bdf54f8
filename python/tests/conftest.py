# SPDX-License-Identifier: Apache-2.0
"""Finds the package: one that is installed (tools/check_wheel), or that tools/interop put into the build folder."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAGED = pathlib.Path(os.environ.get("LAC_BUILD_DIR", ROOT / "build" / "release")) / "python"
if STAGED.is_dir():
    sys.path.insert(0, str(STAGED))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(STAGED), *filter(None, [os.environ.get("PYTHONPATH")])])  # of processes that tests start


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def digits():
    """A small network, dense."""
    return ROOT / "examples/digits/digits.onnx"


@pytest.fixture(scope="session")
def command():
    """The command of the package."""
    import lacuna
    return pathlib.Path(lacuna.__file__).parent / "bin" / "lacuna"


@pytest.fixture(scope="session")
def images():
    """Inputs of that network."""
    import numpy
    return numpy.random.default_rng(0).random((64, 1, 8, 8), dtype=numpy.float32)
