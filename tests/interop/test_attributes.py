# SPDX-License-Identifier: Apache-2.0
"""The operators' tables of attributes against onnx.defs, and ONNX Runtime's own against its list: every attribute that a
declared operator has in any version from opset 7 on is in its table with its kind, and no table names one that no version
has."""
import collections
import subprocess

import onnx.defs
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

OLDEST = 7
OTHER = {"GRAPH": "OTHER"}  # what has no value of its own in our tables: bodies


def of_onnx():
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name].append(schema)
    found = {}
    for name, schemas in versions.items():
        first = max((s.since_version for s in schemas if s.since_version <= OLDEST), default=OLDEST)
        found[name] = {(a, OTHER.get(d.type.name, d.type.name)) for s in schemas if s.since_version >= first
                       for a, d in s.attributes.items()}
    return found


def of_onnxruntime():
    """Those that it knows besides ONNX's: of a domain of its own, or written into ai.onnx all the same."""
    found = {}
    for schema in runtime.get_all_operator_schema():
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        kinds = {(a, str(d.type).rpartition(".")[2]) for a, d in schema.attributes.items()}
        found[name] = found.get(name, set()) | kinds
    return found


def test_tables_hold_the_attributes_of_every_version(tool):
    ours = collections.defaultdict(set)
    for line in subprocess.run([tool("attributes_main")], capture_output=True, text=True, check=True).stdout.splitlines():
        name, *attribute = line.split()
        ours[name] |= {tuple(attribute)} if attribute else set()
    theirs = {**of_onnxruntime(), **of_onnx()}
    assert len(ours) > 100 and len(ours["Conv"]) == 6 and len(ours["com.microsoft.FusedMatMul"]) == 5
    assert ours == {name: theirs[name] for name in ours}
