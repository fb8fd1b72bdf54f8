# SPDX-License-Identifier: Apache-2.0
"""A network: from a path, bytes or an onnx.ModelProto, its stored tensors as arrays, and back."""
import os

from . import arrays
from .errors import failure
from .library import NULL, call, context, ffi, lib, options, path_bytes, sized, text


class Tensors:
    """The stored tensors of a network by name: model.tensors["conv1.weight"] is a copy, and may be assigned to."""

    def __init__(self, model):
        self._model = model

    def _find(self, name):
        found = sized("lac_tensor")
        call("lac_model_find_tensor", self._model.pointer, ffi.new("char[]", name.encode()), found)
        return found

    def __getitem__(self, name):
        found = self._find(name)
        array = arrays.view(found.dtype, arrays.shape_of(found), ffi.cast("char *", found.bytes), found.size_bytes)
        return array.copy()

    def shape(self, name):
        """The shape of a tensor."""
        return arrays.shape_of(self._find(name))

    def __setitem__(self, name, values):
        found = self._find(name)
        array = arrays.given(values, found.dtype, name)
        if array.shape != arrays.shape_of(found):
            raise failure(f"{name}: {array.shape}, wanted {arrays.shape_of(found)}", "BAD_SHAPE")
        structs, _, _kept = arrays.list_of([(name, array)])
        call("lac_model_set_tensor", self._model.pointer, structs)

    def __contains__(self, name):
        return name in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return lib.lac_model_tensor_count(self._model.pointer)

    def keys(self):
        """The names, in the file's order."""
        names, tensor = [], sized("lac_tensor")
        for index in range(len(self)):
            call("lac_model_tensor", self._model.pointer, index, tensor)
            names.append(text(tensor.name))
        return names

    def items(self):
        """(name, array) of every tensor."""
        return [(name, self[name]) for name in self.keys()]


class Model:
    """A network.

    source: a path, the bytes of an ONNX file or a pack, an onnx.ModelProto, or a lacuna.Model
    lenient: freeze a node whose attributes or weight break ONNX's typing, in the place of refusing the model
    data_dir: the folder of external data, where source is bytes or a ModelProto

    `tensors` has the stored tensors, `save`, `to_bytes` and `to_onnx` write it. Functions that change a model must not run in two
    threads at once; everything else may.
    """

    def __init__(self, source, *, lenient=False, data_dir=None):
        how, made = options("lac_load_options"), ffi.new("lac_model **")
        how.lenient = bool(lenient)
        path, kept = NULL, path_bytes(data_dir)
        if isinstance(source, (str, os.PathLike)):
            path = path_bytes(source)
        else:
            data = source if isinstance(source, (bytes, bytearray, memoryview)) else serialized(source)
            view = ffi.from_buffer(data)
            how.bytes, how.size_bytes, how.data_dir = view, len(view), kept
        call("lac_model_load", path, how, made)
        self.pointer = ffi.gc(made[0], lib.lac_model_destroy)
        self.name = os.fspath(source) if path else "(memory)"

    @classmethod
    def of(cls, pointer, name):
        """A network that the library made; it is freed with the last reference to it."""
        made = cls.__new__(cls)
        made.pointer, made.name = ffi.gc(pointer, lib.lac_model_destroy), name
        return made

    def __repr__(self):
        return f"<lacuna.Model {self.name}: {len(self.tensors)} stored tensors>"

    @property
    def tensors(self):
        """The stored tensors by name."""
        return Tensors(self)

    def fold(self, *, everything=False, max_memory=0):
        """Stores weights that are computed from stored tensors as one tensor each; how many were made."""
        count = ffi.new("int *")
        call("lac_model_fold", self.pointer, lib.LAC_FOLD_ALL if everything else lib.LAC_FOLD_ALONE, max_memory, context(), count)
        return count[0]

    def save(self, path, *, force=False):
        """Writes the network as an ONNX file, whole or not at all."""
        call("lac_model_save", self.pointer, path_bytes(path), bool(force))

    def to_bytes(self):
        """The network as the bytes of an ONNX file."""
        parts = []

        @ffi.callback("lac_write_bytes")
        def write(data, size, _context, _err):
            parts.append(ffi.unpack(ffi.cast("char *", data), size))
            return lib.LAC_OK
        call("lac_model_stream", self.pointer, write, NULL)
        return b"".join(parts)

    def to_onnx(self):
        """The network as an onnx.ModelProto."""
        import onnx  # pylint: disable=import-outside-toplevel
        return onnx.load_model_from_string(self.to_bytes())


def serialized(source):
    """The bytes of an onnx.ModelProto."""
    if not hasattr(source, "SerializeToString"):
        raise TypeError(f"a model is a path, bytes, an onnx.ModelProto or a lacuna.Model, not {type(source).__name__}")
    return source.SerializeToString()


def opened(source, **how):
    """The model itself, or one that is read from a source."""
    return source if isinstance(source, Model) else Model(source, **how)

