# SPDX-License-Identifier: Apache-2.0
"""liblacuna, by cffi's ABI mode: `ffi` and `lib` come from lacuna.h itself (python/generate.py), `call` raises what fails.

cffi releases the GIL in every call.
"""
import contextlib
import os
import threading

from ._abi import ffi
from ._table import HINTS, LIBRARY
from .errors import failure

NULL = ffi.NULL
_job = threading.local()
PATH = os.path.join(os.path.dirname(__file__), "lib", LIBRARY)


def _load():
    """The library, bound at once: names of OpenMP that another package makes global later are none of its.

    Its OpenMP run time reads once, when it is loaded, how long idle threads spin: as short as in the command.
    """
    asked = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ)
    if not asked:
        os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        return ffi.dlopen(PATH, ffi.RTLD_NOW | ffi.RTLD_LOCAL)
    except OSError as error:
        raise ImportError(f"liblacuna: {error}") from error
    finally:
        if not asked:
            del os.environ["GOMP_SPINCOUNT"]


lib = _load()


def text(pointer):
    """A C text as str; None for NULL."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else None


def enum_name(kind, value, prefix):
    """The name of an enum's value without its prefix: LAC_BAD_SHAPE is "BAD_SHAPE"."""
    return ffi.typeof(kind).elements.get(int(value), f"{prefix}{int(value)}")[len(prefix):]


def exception(err):
    """The exception of a lac_error."""
    hint = enum_name("lac_hint", err.hint, "LAC_HINT_")
    return failure(text(err.text), enum_name("lac_status", err.status, "LAC_"), hint, HINTS.get(hint, ""))


def call(name, *arguments):
    """Calls a function whose last parameter is a lac_error, and raises its failure."""
    err = ffi.new("lac_error *")
    if getattr(lib, name)(*arguments, err):
        raise exception(err)


def context():
    """The context of the job that this thread works for (jobs.py); NULL: none."""
    return getattr(_job, "context", NULL)


@contextlib.contextmanager
def in_context(made):
    """Calls within are of this job: options have its context."""
    _job.context = made
    try:
        yield
    finally:
        del _job.context


def options(kind, init=None):
    """A struct of options with the library's defaults, and the job's context."""
    made = ffi.new(f"{kind} *")
    getattr(lib, init or f"{kind}_init")(made, ffi.sizeof(kind))
    fields = dict(ffi.typeof(kind).fields)
    if "run" in fields:
        made.run.context = context()
    elif "context" in fields:
        made.context = context()
    return made


def sized(kind):
    """A struct that the library fills."""
    return ffi.new(f"{kind} *", {"size": ffi.sizeof(kind)})


def path_bytes(path):
    """A path as C has it; None is NULL."""
    return NULL if path is None else ffi.new("char[]", os.fsencode(path))


def version():
    """The library's version."""
    return text(lib.lac_version())
