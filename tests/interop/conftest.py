# SPDX-License-Identifier: Apache-2.0
"""Finds the programs under test: LAC_BUILD_DIR, or build/release, holds tests/tools."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Half a gigabyte each, and each has a sibling of the same architecture by another exporter or with other axes.
LARGE = {"vgg16_ts_dyn", "bert_base_ts", "vit_b_16_dynamo"}


def pytest_collection_modifyitems(items):
    """Marks the tests of large networks, which .ci/run leaves to `make check-long`."""
    for item in items:
        if hasattr(item, "callspec") and item.callspec.id in LARGE:
            item.add_marker(pytest.mark.large)


def build_dir():
    return pathlib.Path(os.environ.get("LAC_BUILD_DIR", ROOT / "build" / "release"))


def tool_path(name):
    """The path of a test tool; fails the test where it was not built."""
    path = build_dir() / "tests" / "tools" / name
    if not path.exists():
        pytest.fail(f"{path} is missing: build the project or set LAC_BUILD_DIR")
    return path


@pytest.fixture(scope="session")
def tool():
    return tool_path
