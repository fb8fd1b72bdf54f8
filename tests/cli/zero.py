#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""zero.py IN.onnx OUT.onnx TENSOR: the same network with one stored tensor all zero, as some heads begin."""
import pathlib
import sys

from external import GRAPH, INITIALIZER, RAW_DATA, field, fields

NAME = 8


def main():
    source, out = map(pathlib.Path, sys.argv[1:3])
    wanted = sys.argv[3].encode()

    def tensor(message):
        if (NAME, wanted) not in [(number, content) for number, content, _ in fields(message)]:
            return message
        return b"".join(field(n, bytes(len(c))) if n == RAW_DATA else whole for n, c, whole in fields(message))

    def graph(message):
        return b"".join(field(n, tensor(c)) if n == INITIALIZER else whole for n, c, whole in fields(message))

    out.write_bytes(b"".join(field(n, graph(c)) if n == GRAPH else whole for n, c, whole in fields(source.read_bytes())))


if __name__ == "__main__":
    main()
