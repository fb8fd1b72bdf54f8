#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scores.py REPORT.json OUT.npz [--without NAME] [--cut NAME] [--first NAME VALUE]: scores for the weights of a report.

An array of f32 for each weight, by a formula; one may be left out, lack its last axis, or begin with a value of its own.
Only what Python brings along: NumPy is not everywhere.
"""
import json
import math
import struct
import sys
import zipfile


def npy(shape, values):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    text += " " * (63 - (len(text) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(values)}f", *values)


def main(report, out, *more):
    options = {more[at]: more[at + 1:] for at in range(len(more)) if more[at].startswith("--")}
    with zipfile.ZipFile(out, "w") as archive:
        for layer in json.load(open(report))["layers"]:
            name, shape = layer["weight"], layer["shape"]
            if name in options.get("--without", [])[:1]:
                continue
            if name in options.get("--cut", [])[:1]:
                shape = shape[:-1]
            values = [(at * 7919 + len(name)) % 101 / 64 for at in range(math.prod(shape))]
            if name in options.get("--first", [])[:1]:
                values[0] = float(options["--first"][1])
            archive.writestr(name + ".npy", npy(shape, values))


main(*sys.argv[1:])
