# SPDX-License-Identifier: Apache-2.0
"""Decoders as large as wanted, f16, in ONNX with external data: written field by field, a stretch at a time, and the data
sparse where it is to be so.

A block: norm, attention over heads, sum; norm, gate and up, their product, down, sum.
"""
import random

F16, I64 = 10, 7
NOISE_BYTES = 1 << 24
ALIGNMENT = 4096


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def text(number, content):
    return field(number, content.encode())


def number(field_number, value):
    return varint(field_number << 3) + varint(value)


def noise(seed):
    """Random f16 numbers between 2^-10 and 2^-6: none is zero, none becomes infinite in the network."""
    raw = bytearray(random.Random(seed).randbytes(NOISE_BYTES))
    raw[1::2] = bytes(raw[1::2]).translate(bytes((high & 0x83) | (5 + (high >> 4 & 3)) << 2 for high in range(256)))
    return bytes(raw)


class Decoder:
    """filled: bytes of each weight that hold numbers, the rest is a hole; 0: all of them."""

    def __init__(self, hidden, inner, heads, blocks, vocabulary=0, filled=0, n_files=1):
        self.hidden, self.inner, self.heads, self.blocks = hidden, inner, heads, blocks
        self.vocabulary, self.filled, self.n_files = vocabulary, filled, n_files
        self.nodes, self.stored, self.sizes, self.offsets = [], [], {}, [0] * n_files
        self.at, self.weights = "x", []
        self.build()

    def tensor(self, name, dims, kind=F16):
        return b"".join(number(1, d) for d in dims) + number(2, kind) + text(8, name)

    def weight(self, name, *dims):
        n = 2
        for d in dims:
            n *= d
        which = len(self.weights) % self.n_files
        offset = self.offsets[which]
        self.offsets[which] += (n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        entries = [("location", f"data.{which}.bin"), ("offset", str(offset)), ("length", str(n))]
        external = b"".join(field(13, text(1, key) + text(2, value)) for key, value in entries)
        self.stored.append(self.tensor(name, dims) + external + number(14, 1))
        self.weights.append((which, offset, n))
        return name

    def ints(self, name, *values):
        raw = b"".join(v.to_bytes(8, "little", signed=True) for v in values)
        self.stored.append(self.tensor(name, [len(values)], I64) + field(9, raw))
        return name

    def node(self, op, inputs, name, *attributes):
        out = name + "_out"
        body = b"".join(text(1, i) for i in inputs) + text(2, out) + text(3, name) + text(4, op)
        self.nodes.append(body + b"".join(field(5, a) for a in attributes))
        return out

    def matmul(self, x, name, n_in, n_out):
        return self.node("MatMul", [x, self.weight(name + ".weight", n_in, n_out)], name)

    def norm(self, x, name):
        return self.node("RMSNormalization", [x, self.weight(name + ".weight", self.hidden)], name)

    def attention(self, x, name):
        def split(out, which):
            cut = self.node("Reshape", [out, "heads"], f"{name}.{which}.cut")
            axes = text(1, "perm") + b"".join(number(8, a) for a in (0, 2, 1, 3)) + number(20, 7)
            return self.node("Transpose", [cut], f"{name}.{which}.transpose", axes)

        h = self.hidden
        q, k, v = (split(self.matmul(x, f"{name}.{which}", h, h), which) for which in "qkv")
        axes = text(1, "perm") + b"".join(number(8, a) for a in (0, 1, 3, 2)) + number(20, 7)
        k = self.node("Transpose", [k], f"{name}.k.back", axes)
        share = self.node("Softmax", [self.node("MatMul", [q, k], f"{name}.scores")], f"{name}.share")
        mixed = self.node("MatMul", [share, v], f"{name}.mixed")
        axes = text(1, "perm") + b"".join(number(8, a) for a in (0, 2, 1, 3)) + number(20, 7)
        mixed = self.node("Transpose", [mixed], f"{name}.mixed.transpose", axes)
        joined = self.node("Reshape", [mixed, "joined"], f"{name}.joined")
        return self.matmul(joined, f"{name}.o", h, h)

    def feed_forward(self, x, name):
        gate = self.matmul(x, f"{name}.gate", self.hidden, self.inner)
        gate = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
        up = self.matmul(x, f"{name}.up", self.hidden, self.inner)
        return self.matmul(self.node("Mul", [gate, up], f"{name}.product"), f"{name}.down", self.inner, self.hidden)

    def build(self):
        self.ints("heads", 0, 0, self.heads, self.hidden // self.heads)
        self.ints("joined", 0, 0, self.hidden)
        x = "x"
        if self.vocabulary:
            x = self.node("Gather", [self.weight("embedding", self.vocabulary, self.hidden), "x"], "embed")
        else:
            x = self.matmul(x, "stem", 64, self.hidden)
        for at in range(self.blocks):
            name = f"block{at}"
            mixed = self.attention(self.norm(x, f"{name}.norm1"), f"{name}.attention")
            x = self.node("Add", [x, mixed], f"{name}.add1")
            x = self.node("Add", [x, self.feed_forward(self.norm(x, f"{name}.norm2"), f"{name}.ff")], f"{name}.add2")
        self.at = self.matmul(self.norm(x, "norm"), "head", self.hidden, self.vocabulary or 64)

    def value(self, name, kind, dims):
        shape = b"".join(field(1, number(1, d)) for d in dims)
        return text(1, name) + field(2, field(1, number(1, kind) + field(2, shape)))

    def save(self, folder, name="m.onnx", seed=1):
        words = [1, 4] if self.vocabulary else [1, 4, 64]
        graph = b"".join(field(1, n) for n in self.nodes) + text(2, "decoder") + b"".join(field(5, t) for t in self.stored)
        graph += field(11, self.value("x", I64 if self.vocabulary else F16, words))
        graph += field(12, self.value(self.at, F16, [1, 4, self.vocabulary or 64]))
        model = number(1, 11) + field(7, graph) + field(8, text(1, "") + number(2, 23))
        (folder / name).write_bytes(model)
        numbers = noise(seed)
        files = [open(folder / f"data.{which}.bin", "wb") for which in range(self.n_files)]
        for count, (which, offset, n) in enumerate(self.weights):
            if self.filled:
                n = min(n, self.filled)
            files[which].seek(offset)
            start = count * 0x3456 % NOISE_BYTES & ~1
            while n > 0:
                some = min(n, NOISE_BYTES - start)
                files[which].write(memoryview(numbers)[start:start + some])
                n, start = n - some, 0
        for which, file in enumerate(files):
            file.truncate(self.offsets[which])
            file.close()
        return sum(self.offsets)
