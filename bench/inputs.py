# SPDX-License-Identifier: Apache-2.0
"""Files that hold the inputs of a network for the workers of all engines.

FOLDER/NAME.bin has the elements as lac_engine_run takes them: float32 for all types of floats, int64 for integers and booleans.
Every engine converts them to the type that its network declares.
"""
import pathlib

import numpy as np

# Types of ports by ONNX Runtime's names.
TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64", "tensor(bool)": "bool",
         **{f"tensor({kind})": kind for bits in (8, 16, 32, 64) for kind in (f"int{bits}", f"uint{bits}")}}


def file_of(folder, name):
    return pathlib.Path(folder) / f"{name.replace('/', '_')}.bin"


def stored_type(dtype):
    return np.float32 if np.dtype(dtype).kind == "f" else np.int64


def write_input(folder, name, array):
    np.ascontiguousarray(array, stored_type(array.dtype)).tofile(file_of(folder, name))


def read_input(path, dtype, shape):
    """The input as an array of the type that the network declares."""
    return np.fromfile(path, stored_type(dtype)).astype(dtype).reshape(shape)
