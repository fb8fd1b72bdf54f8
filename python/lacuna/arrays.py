# SPDX-License-Identifier: Apache-2.0
"""Arrays between NumPy and lac_array, without a copy where the library reads the type as it is.

NumPy is imported at the first array, so that `import lacuna` is quick. What has __dlpack__ (torch, jax, cupy on the CPU) or the
buffer protocol comes in through NumPy.
"""
import functools

from .errors import failure
from .library import NULL, ffi, lib, text

# NumPy's names; those of ml_dtypes, where it is installed, are found by the same name.
NAMES = {"F32": "float32", "F64": "float64", "F16": "float16", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16",
         "U32": "uint32", "I32": "int32", "U64": "uint64", "I64": "int64", "BOOL": "bool", "BF16": "bfloat16",
         "F8E4M3FN": "float8_e4m3fn", "F8E4M3FNUZ": "float8_e4m3fnuz", "F8E5M2": "float8_e5m2", "F8E5M2FNUZ": "float8_e5m2fnuz",
         "F8E8M0": "float8_e8m0fnu"}
CODES = {name: getattr(lib, f"LAC_DTYPE_{code}") for code, name in NAMES.items()}
F32, I64 = lib.LAC_DTYPE_F32, lib.LAC_DTYPE_I64
MOST_RANK = 8


@functools.cache
def code_of(kind):
    """The lac_dtype of a type of NumPy; None: there is none."""
    return CODES.get(kind.name) if kind.isnative else None


@functools.cache
def numpy_type(dtype):
    """NumPy's type of a lac_dtype; None where NumPy has none."""
    import numpy  # pylint: disable=import-outside-toplevel
    name = next((name for name, code in CODES.items() if code == dtype), None)
    try:
        return numpy.dtype(name) if name else None
    except TypeError:
        try:
            import ml_dtypes  # pylint: disable=import-outside-toplevel
            return numpy.dtype(getattr(ml_dtypes, name))
        except (ImportError, AttributeError):
            return None


def as_numpy(value):
    """A NumPy array of anything that is one, by DLPack where it can be."""
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return value
    import numpy  # pylint: disable=import-outside-toplevel
    if hasattr(value, "detach"):  # torch: no gradient goes through
        value = value.detach()
        value = value.cpu() if value.device.type != "cpu" else value
    if hasattr(value, "__dlpack__"):
        try:
            return numpy.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError):
            if str(getattr(value, "dtype", "")) == "torch.bfloat16":
                value = value.float()
    return numpy.asarray(value)


def given(value, declared, name):
    """The array as the library reads it: as it is where it has the declared type, or one of the two types that are always
    taken; floats and integers of other sizes become these. What does not fit is left to the library's refusal. Contiguous."""
    array = as_numpy(value)
    code = code_of(array.dtype)
    if (code == declared or code == F32) and array.flags.c_contiguous and array.ndim <= MOST_RANK:
        return array
    return _converted(array, declared, name)


def _converted(array, declared, name):
    import numpy  # pylint: disable=import-outside-toplevel
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    code = code_of(array.dtype)
    if code is None or array.ndim > MOST_RANK:
        raise failure(f"{name}: {array.dtype} of {array.ndim} axes; wanted numbers, at most {MOST_RANK} axes", "BAD_SHAPE")
    if code not in (declared, F32, I64) and (declared is None or is_float(code) == is_float(declared)):
        array = array.astype(numpy.float32 if is_float(code) else numpy.int64)
    return array if array.flags.c_contiguous else numpy.ascontiguousarray(array)  # which would give a number an axis


def is_float(dtype):
    return dtype in (F32, CODES["float64"], CODES["float16"], CODES["bfloat16"])


def fill(struct, array, name=NULL):
    """Sets a lac_array to a contiguous NumPy array, which must outlive it."""
    shape = array.shape
    rank = len(shape)
    struct.name, struct.dtype, struct.rank, struct.size_bytes = name, code_of(array.dtype), rank, array.nbytes
    struct.shape[0:rank] = shape
    try:
        struct.data = ffi.from_buffer(array)
    except (TypeError, ValueError):  # a type that the buffer protocol has not, such as bfloat16
        struct.data = ffi.cast("void *", array.ctypes.data)


def list_of(named):
    """(lac_array[n], n, what must outlive it) of [(name, NumPy array)]."""
    structs, kept = ffi.new("lac_array[]", len(named)), []
    for struct, (name, array) in zip(structs, named):
        word = ffi.new("char[]", name.encode()) if name is not None else NULL
        fill(struct, array, word)
        kept += [word, array]
    return structs, len(named), kept


def view(dtype, shape, data, size_bytes):
    """A NumPy array of C memory, which `data`, a cdata, keeps alive; bytes where NumPy has no such type."""
    import numpy  # pylint: disable=import-outside-toplevel
    kind = numpy_type(dtype)
    if not size_bytes:
        return numpy.empty(shape, kind)
    array = numpy.frombuffer(ffi.buffer(data, size_bytes), kind or numpy.uint8)
    return array.reshape(shape) if kind else array


def shape_of(struct):
    """The shape of a struct that has `rank` and `shape`; None for an unknown rank."""
    return tuple(struct.shape[0:struct.rank]) if struct.rank >= 0 else None


def dtype_name(dtype):
    """ "f32" and the like, as messages and reports have it."""
    return text(lib.lac_dtype_name(dtype))
