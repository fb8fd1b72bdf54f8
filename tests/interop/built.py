# SPDX-License-Identifier: Apache-2.0
"""Finds the programs under test: LAC_BUILD_DIR, or build/release, holds tests/tools."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_dir():
    return pathlib.Path(os.environ.get("LAC_BUILD_DIR", ROOT / "build" / "release"))


def tool_path(name):
    """The path of a test tool; fails the test where it was not built."""
    path = build_dir() / "tests" / "tools" / name
    if not path.exists():
        pytest.fail(f"{path} is missing: build the project or set LAC_BUILD_DIR")
    return path
