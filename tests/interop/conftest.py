# SPDX-License-Identifier: Apache-2.0
"""Marks, and the fixture of test tools (built.py)."""

import pytest
from built import tool_path

# Half a gigabyte each, and each has a sibling of the same architecture by another exporter or with other axes.
LARGE = {"vgg16_ts_dyn", "bert_base_ts", "vit_b_16_dynamo"}


def pytest_collection_modifyitems(items):
    """Marks the tests of large networks, which .ci/run leaves to `make check-long`."""
    for item in items:
        if hasattr(item, "callspec") and item.callspec.id in LARGE:
            item.add_marker(pytest.mark.large)


@pytest.fixture(scope="session")
def tool():
    return tool_path
