# SPDX-License-Identifier: Apache-2.0
"""The operators' tables of attributes against onnx.defs: every attribute that a declared operator has in any version from
opset 7 on is in its table with its kind, and no table names one that no version has."""
import collections
import subprocess

import onnx.defs

OLDEST = 7


def of_onnx():
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name].append(schema)
    found = {}
    for name, schemas in versions.items():
        first = max((s.since_version for s in schemas if s.since_version <= OLDEST), default=OLDEST)
        found[name] = {(a, d.type.name) for s in schemas if s.since_version >= first for a, d in s.attributes.items()}
    return found


def test_tables_hold_the_attributes_of_every_version(tool):
    ours = collections.defaultdict(set)
    for line in subprocess.run([tool("attributes_main")], capture_output=True, text=True, check=True).stdout.splitlines():
        name, *attribute = line.split()
        ours[name] |= {tuple(attribute)} if attribute else set()
    theirs = of_onnx()
    assert len(ours) > 100 and len(ours["Conv"]) == 6
    assert ours == {name: theirs[name] for name in ours}
