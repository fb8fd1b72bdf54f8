# SPDX-License-Identifier: Apache-2.0
"""Keywords as fields of the library's options. What a field is, lacuna.h says: one rule for each C type, none for each option."""
import functools
import os
import re

from . import keywords
from .errors import failure
from .library import call, ffi, lib, text

BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
DTYPES = {"f32": "LAC_DTYPE_F32", "fp32": "LAC_DTYPE_F32", "bf16": "LAC_DTYPE_BF16"}


def _wrong(name, value, wanted):
    return failure(f"{name}={value!r}: wanted {wanted}")


def number_of_bytes(name, value):
    """16 << 30, or "16G"."""
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", value)
        if not found:
            raise _wrong(name, value, "a size such as 800M or 16G")
        return int(float(found[1]) * BYTES[found[2]])
    return int(value)


def _texts(name, value):
    """A list of texts, NAME=1x3x224x224 or NAME=1 of a dict."""
    if isinstance(value, str):
        value = [value]
    if hasattr(value, "items"):
        value = [f"{key}=" + ("x".join("?" if size is None or size < 0 else str(size) for size in given)
                              if isinstance(given, (tuple, list)) else str(given)) for key, given in value.items()]
    if not all(isinstance(word, str) for word in value):
        raise _wrong(name, value, "texts")
    return [ffi.new("char[]", word.encode()) for word in value]


def _floats(name, value):
    """R, G, B."""
    parts = value.split(",") if isinstance(value, str) else list(value)
    try:
        parts = [float(part) for part in parts]
    except (TypeError, ValueError):
        parts = []
    if len(parts) != 3:
        raise _wrong(name, value, "three numbers")
    return parts


def _enum(name, value, kind):
    words = {word: number for number, word in kind.elements.items() if not word.endswith("_COUNT")}
    if kind.cname == "lac_dtype":
        found = words.get(DTYPES.get(str(value)))
    else:
        found = next((number for word, number in words.items() if word.lower().rpartition("_")[2] == str(value)), None)
    if found is None:
        raise _wrong(name, value, " or ".join(DTYPES if kind.cname == "lac_dtype" else
                                              [word.lower().rpartition("_")[2] for word in words]))
    return found


@functools.cache
def _types(struct):
    """{field: its C type} of a struct."""
    return {name: info.type for name, info in ffi.typeof(struct).fields}


def set_field(struct, kind, name, value, kept):
    """Sets a field, (name, C type), by the rule of its type; what must outlive the struct goes to `kept`."""
    field, kind = kind
    if kind.kind == "enum":
        made = _enum(name, value, kind)
    elif kind.cname == "char *":
        made = ffi.new("char[]", os.fsencode(value))
        kept.append(made)
    elif kind.cname == "char * *":
        words = _texts(name, value)
        made = ffi.new("char *[]", words)
        kept += [words, made]
        setattr(struct, f"n_{field}", len(words))
        made = ffi.cast("const char *const *", made)
    elif kind.kind == "array":
        made = _floats(name, value)
    elif kind.cname == "_Bool":
        made = bool(value)
    elif kind.cname in ("float", "double"):
        made = float(value)
    else:
        made = number_of_bytes(name, value)
    try:
        setattr(struct, field, made)
    except OverflowError as error:
        raise _wrong(name, value, "a smaller number, or one that is not negative") from error


def fill(struct, name, given, kept):
    """Sets the fields of a struct of this name that keywords were given for."""
    for option, field in keywords.FIELDS[name].items():
        if given.get(option) is not None:
            set_field(struct, (field, _types(name)[field]), option, given[option], kept)


def read_pattern(options, value):
    """ "2:4" or "64:2:8", or (2, 4)."""
    parts = value.split(":") if isinstance(value, str) else list(value)
    try:
        parts = [int(part) for part in parts]
    except (TypeError, ValueError):
        parts = []
    if len(parts) not in (2, 3):
        raise _wrong("pattern", value, "N:M or V:N:M, such as 2:4 or 64:2:8")
    options.n, options.m = parts[-2:]
    options.v = parts[0] if len(parts) == 3 else 0


def timings():
    """The file in which times of layers are kept, as the command has it; None: there is no home folder."""
    cache, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")
    if cache.startswith("/"):
        return f"{cache}/lacuna/timings.json"
    return f"{home}/.cache/lacuna/timings.json" if home.startswith("/") else None


def engine_name(value):
    """An engine's name; a plug-in's file is loaded."""
    if "/" not in os.fspath(value) and not os.fspath(value).endswith(".so"):
        return value
    name = ffi.new("const char **")
    call("lac_engine_load", ffi.new("char[]", os.fsencode(value)), name)
    return text(name[0])


def with_engine(given):
    """The keywords with an engine's name in the place of its plug-in's file."""
    return {**given, "engine": engine_name(given["engine"])} if given.get("engine") is not None else given


def run_fields(run, given):
    """Sets a lac_run_options; what must outlive it."""
    kept, given = [], with_engine(given)
    fill(run, "lac_run_options", given, kept)
    if given.get("sparse_kernels") is not None:
        run.dense_only = not given["sparse_kernels"]
    if run.tuning != lib.LAC_TUNING_OFF and timings():
        kept.append(ffi.new("char[]", timings().encode()))
        run.timings = kept[-1]
    return kept

