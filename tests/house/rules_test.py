#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of the house refuse what they are there to refuse: each rule is tried on texts that break it and on some that do not."""
import importlib.machinery
import importlib.util
import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def tool(name):
    """A script of tools/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def a_subject_names_its_room_and_says_what_to_do():
    complaints = tool("check_commits").complaints
    for subject in ("graph: add an operator", "engine/cpu: skip ports", "cli, docs: name it", "tests: feed both engines",
                    "onnx: README says what is read", "kernel/sparse: embed the table"):
        assert not list(complaints(subject, "Why.")), subject
    for subject in ("add an operator", "graph: Add an operator", "graph: added an operator", "graph: adding an operator",
                    "graph: add an operator.", "graph:add an operator", "Graph: add an operator", "graph: " + "a" * 60):
        assert list(complaints(subject, "Why.")), subject
    assert list(complaints("graph: add an operator", "\n"))


def main():
    tests = [test for name, test in globals().items() if callable(test) and name.startswith(("a_", "no_", "what_"))]
    for test in tests:
        test()
    print(f"{len(tests)} rules hold")
    return 0


sys.exit(main())
