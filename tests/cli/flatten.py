#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes, in the current folder, what the tests of eval and infer need, with nothing but Python.

flatten.onnx: x [N, 3, 32, 32] -> Flatten -> all -> Gather -> y [N, 10], so that logits are the first ten pixels;
with the word all, all.onnx: without the Gather, y [N, 3072]. cifar/test_batch.bin: 20 grey images, image k
being of class k % 10, in which pixel k % 10 is white for the first 15 images. x.npy: one array [2, 8, 8].
"""
import os
import struct
import sys


def field(number, payload):
    """A protobuf field: a number, or bytes with their length before them."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def flatten(picks):
    dims = [field(2, b"N"), field(1, 3), field(1, 32), field(1, 32)]
    shape = b"".join(field(1, dim) for dim in dims)
    x = field(1, b"x") + field(2, field(1, field(1, 1) + field(2, shape)))
    out = b"all" if picks else b"y"
    graph = field(1, field(1, b"x") + field(2, out) + field(4, b"Flatten"))
    if picks:
        axis = field(1, b"axis") + field(3, 1) + field(20, 2)
        names = field(1, b"all") + field(1, b"columns") + field(2, b"y")
        graph += field(1, names + field(4, b"Gather") + field(5, axis))
        columns = struct.pack("<10q", *range(10))
        graph += field(5, field(1, 10) + field(2, 7) + field(8, b"columns") + field(9, columns))
    graph += field(2, b"g") + field(11, x) + field(12, field(1, b"y"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def record(image):
    pixels = bytearray(b"\x40" * 3072)
    if image < 15:
        pixels[image % 10] = 255
    return bytes([image % 10]) + pixels


def array():
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 8, 8), }"
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    values = struct.pack("<128f", *((k * 5 % 17) / 16 for k in range(128)))
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + values


os.makedirs("cifar", exist_ok=True)
networks = [("flatten.onnx", flatten(True)), ("all.onnx", flatten(False))][:1 + ("all" in sys.argv)]
for name, content in (*networks, ("x.npy", array()),
                      ("cifar/test_batch.bin", b"".join(map(record, range(20))))):
    with open(name, "wb") as file:
        file.write(content)
