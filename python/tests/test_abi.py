# SPDX-License-Identifier: Apache-2.0
"""The declarations that the package was made with are those of the headers, and the library has all of them."""
import json

from lacuna.library import ffi, lib


def test_the_library_has_every_function(root):
    for name in (root / "src/lacuna.symbols").read_text().split():
        assert ffi.typeof(getattr(lib, name)).kind == "function", name


def test_structs_are_those_of_the_headers(root):
    """tests/fixtures/abi.json is held to the headers by tests/interop/test_bindings.py."""
    known = json.loads((root / "tests/fixtures/abi.json").read_text())["structs"]
    assert known
    for name, layout in known.items():
        if isinstance(layout, dict) and "size" in layout:
            assert ffi.sizeof(name) == layout["size"], name
