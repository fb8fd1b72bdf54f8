# SPDX-License-Identifier: Apache-2.0
"""Data in memory as the library reads it.

An array (of the first input), {name: array} or a tuple (the inputs in the network's order, then labels) is all of the data. A list
and any other iterable, such as torch's DataLoader, has such batches. Samples are along the first axis.
"""
import os

from . import arrays
from .errors import failure
from .library import ffi
from .session import Session

LABELS = "labels"


def is_path(data):
    """Is it a file or folder, which the library reads by itself?"""
    return isinstance(data, (str, os.PathLike))


def _is_array(value):
    return hasattr(value, "__dlpack__") or hasattr(value, "__array__") or hasattr(value, "__array_interface__")


def _named(batch, names):
    """{name: array} of one batch: of a mapping, an array for the first input, or a tuple in the order of the inputs, with
    labels after them."""
    if hasattr(batch, "items"):
        return {key: arrays.as_numpy(value) for key, value in batch.items()}
    parts = [batch] if _is_array(batch) else list(batch)
    order = list(names) + [LABELS]
    if len(parts) > len(order):
        raise failure(f"data: {len(parts)} arrays, wanted at most {len(order)}: {', '.join(order)}", "BAD_SHAPE")
    return {name: arrays.as_numpy(part) for name, part in zip(order, parts)}


def _gather(batches, names, limit):
    """{name: all rows} of an iterable; no more than `limit` rows are asked for."""
    import numpy  # pylint: disable=import-outside-toplevel
    parts, rows = {}, 0
    for batch in batches:
        for name, array in _named(batch, names).items():
            parts.setdefault(name, []).append(array if array.ndim else array[None])
        rows = sum(len(part) for part in next(iter(parts.values()), ()))
        if limit and rows >= limit:
            break
    if not rows:
        raise failure("data: the iterable has no samples", "NOT_FOUND")
    return {name: numpy.concatenate(part)[:limit or None] for name, part in parts.items()}


def lac_samples(data, model, limit=None):
    """(lac_samples *, what must outlive its use) of arrays or an iterable; `limit` rows of an iterable are enough. A struct's
    field that holds the pointer does not keep it alive, so what must outlive its use has it first."""
    declared = {port.name: dtype for port, dtype in Session(model).declared_inputs()}
    if hasattr(data, "items") or _is_array(data) or isinstance(data, tuple):
        named = _named(data, declared)
    else:
        named = _gather(data, declared, limit)
    rows = [(name, arrays.given(array, declared.get(name, arrays.I64), name))
            for name, array in named.items()]
    structs, count, kept = arrays.list_of(rows)
    samples = ffi.new("lac_samples *", {"size": ffi.sizeof("lac_samples"), "arrays": structs, "n_arrays": count})
    return samples, [samples, structs, kept]
