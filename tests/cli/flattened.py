#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flattened.py IN.onnx OUT.onnx TENSOR: the same network with two of every four neighbours of one stored f32 tensor
zero, as pruners leave it that see a kernel as [O, I*kH*kW]."""
import pathlib
import struct
import sys

from external import GRAPH, INITIALIZER, RAW_DATA, field, fields

NAME = 8


def halve(content):
    """Of each four elements the two largest stay."""
    values = list(struct.unpack(f"<{len(content) // 4}f", content))
    for at in range(0, len(values), 4):
        for k in sorted(range(at, at + 4), key=lambda k: abs(values[k]))[:2]:
            values[k] = 0.0
    return struct.pack(f"<{len(values)}f", *values)


def main():
    source, out = map(pathlib.Path, sys.argv[1:3])
    wanted = sys.argv[3].encode()

    def tensor(message):
        if (NAME, wanted) not in [(number, content) for number, content, _ in fields(message)]:
            return message
        return b"".join(field(n, halve(c)) if n == RAW_DATA else whole for n, c, whole in fields(message))

    def graph(message):
        return b"".join(field(n, tensor(c)) if n == INITIALIZER else whole for n, c, whole in fields(message))

    out.write_bytes(b"".join(field(n, graph(c)) if n == GRAPH else whole for n, c, whole in fields(source.read_bytes())))


if __name__ == "__main__":
    main()
