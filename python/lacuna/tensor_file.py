# SPDX-License-Identifier: Apache-2.0
"""Files of named tensors without a network, read by the library: nothing in them is run."""
from collections.abc import Mapping

from .errors import failure
from .library import NULL, call, context, ffi, lib, path_bytes, sized, text
from .options import read_pattern


class TensorFile(Mapping):
    """The tensors of a safetensors file, or of a .pt, .pth or .bin of PyTorch, by name.

        file = lacuna.TensorFile("net.safetensors")
        weight = file["layer1.0.conv1.weight"]
        pruned = [name for name in file if file.holds(name)]

    A value is a NumPy array of float32, read when it is asked for. A file of PyTorch that holds more than tensors and plain values is
    refused, with the name that it wants to call; PyTorch is not needed.
    """

    def __init__(self, path):
        made = ffi.new("lac_tensor_file **")
        call("lac_tensor_file_open", path_bytes(path), context(), made)
        self._file = ffi.gc(made[0], lib.lac_tensor_file_close)
        self._rows = {}
        for at in range(lib.lac_tensor_file_count(self._file)):
            row = sized("lac_file_tensor")
            call("lac_tensor_file_get", self._file, at, row)
            self._rows[text(row.name)] = (at, tuple(row.shape[axis] for axis in range(row.rank)), text(row.type))

    def __getitem__(self, name):
        import numpy  # pylint: disable=import-outside-toplevel
        at, shape, _ = self._rows[name]
        values = numpy.empty(shape, numpy.float32)
        call("lac_tensor_file_read", self._file, at, ffi.from_buffer("float[]", values) if values.size else NULL, values.size)
        return values

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)

    def shape(self, name):
        """The shape of a tensor, which is not read."""
        return self._rows[name][1]

    def dtype(self, name):
        """The type of its elements in the file, in the format's words: "F32", "BF16", "I64"."""
        return self._rows[name][2]

    def zeros(self, name):
        """How many elements are zero; None where they are no floats, or not all finite."""
        count = int(self._measured(name, "2:4").n_zeros)
        return None if count < 0 else count

    def holds(self, name, pattern="2:4"):
        """Does the tensor hold the pattern along axis 1 (the input channels of a convolution or of torch's Linear), or along axis 0?"""
        return int(self._measured(name, pattern).pattern_axis) >= 0

    def _measured(self, name, pattern):
        how, row = sized("lac_options"), sized("lac_file_tensor")
        read_pattern(how, pattern)
        if how.v:
            raise failure(f"pattern={pattern!r}: wanted N:M, such as 2:4")
        call("lac_tensor_file_measure", self._file, self._rows[name][0], how.n, how.m, row)
        return row
