# SPDX-License-Identifier: Apache-2.0
"""arrays.py NAME.npy SIZES ...: arrays of floats, the same every time, as NumPy would write them, without NumPy."""
import math
import struct
import sys

for name, sizes in zip(sys.argv[1::2], sys.argv[2::2]):
    shape = [int(size) for size in sizes.split("x")]
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }" % ", ".join(map(str, shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    count = math.prod(shape)
    # a pattern without a period that a network's sizes could share
    values = [(k * 7919 % 4093) / 4093 for k in range(count)]
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % count, *values))
