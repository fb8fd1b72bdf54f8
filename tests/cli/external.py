#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""external.py IN.onnx OUT.onnx DATA: the same network with its stored tensors' bytes in the file DATA next to it, or below.

ONNX is protobuf: a message is a row of fields, each with a number and a kind. Only the path to the tensors' raw bytes
is taken apart (model.graph.initializer.raw_data); everything else is copied as it is.
"""
import pathlib
import sys

GRAPH, INITIALIZER, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION, KEY, VALUE = 7, 5, 9, 13, 14, 1, 2
BYTES, FIXED = 2, {1: 8, 5: 4}


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def read_varint(data, at):
    n = shift = 0
    while True:
        n |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return n, at


def field(number, content):
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def fields(message):
    """(number, content or None, the field's own bytes) of each field."""
    at = 0
    while at < len(message):
        start = at
        tag, at = read_varint(message, at)
        content = None
        if tag & 7 == BYTES:
            size, at = read_varint(message, at)
            content = message[at:at + size]
            at += size
        elif tag & 7 == 0:
            _, at = read_varint(message, at)
        else:
            at += FIXED[tag & 7]
        yield tag >> 3, content, message[start:at]


def main():
    source, out, data = map(pathlib.Path, sys.argv[1:])
    blob = bytearray()

    def tensor(message):
        made = b""
        for number, content, whole in fields(message):
            if number != RAW_DATA:
                made += whole
                continue
            entries = {"location": data.relative_to(out.parent), "offset": len(blob), "length": len(content)}
            for key, value in entries.items():
                made += field(EXTERNAL_DATA, field(KEY, key.encode()) + field(VALUE, str(value).encode()))
            made += varint(DATA_LOCATION << 3) + varint(1)
            blob.extend(content)
        return made

    def graph(message):
        return b"".join(field(n, tensor(c)) if n == INITIALIZER else whole for n, c, whole in fields(message))

    model = source.read_bytes()
    out.write_bytes(b"".join(field(n, graph(c)) if n == GRAPH else whole for n, c, whole in fields(model)))
    data.write_bytes(blob)


if __name__ == "__main__":
    main()
