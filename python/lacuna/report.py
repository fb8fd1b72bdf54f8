# SPDX-License-Identifier: Apache-2.0
"""What a function found and did, as plain Python objects: the fields are those of lacuna/report.h and docs/reference/json.md."""
import functools

from . import arrays
from .library import call, context, ffi, lib, path_bytes, text

# How many elements a pointer has where no field n_NAME of its own struct says so: (struct, field) -> the name of one.
COUNTS = {("lac_group", "permutation"): "channels", ("lac_target_report", "layers"): None}
HIDDEN = {"size", "reserved"}
TYPE_CHECKING = False  # the module typing is for those who check types
if TYPE_CHECKING:
    from typing import Any

    from ._fields import lac_report
else:
    lac_report = object


class Record:
    """Fields by name, as attributes and by vars()."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __repr__(self):
        shown = ", ".join(f"{name}={value!r}" if not isinstance(value, list) else f"{name}=[{len(value)}]"
                          for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other):
        return isinstance(other, Record) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]
    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...


@functools.cache
def enum_words(kind):
    """{value: word} of an enum: what its names have in common is left out, in small letters."""
    names = {value: name.split("_") for value, name in kind.elements.items() if not name.endswith("_COUNT")}
    least, common = min(len(name) for name in names.values()) - 1, 0
    while common < least and len({name[common] for name in names.values()}) == 1:
        common += 1
    return {value: "_".join(name[common:]).lower() for value, name in names.items()}


def record(struct, outer=None):
    """A Record of a struct and of all that it points to."""
    kind = ffi.typeof(struct)
    kind = kind.item if kind.kind == "pointer" else kind
    names = [name for name, _ in kind.fields]
    counts = {name for name in names if name.startswith("n_") and name[2:] in names}
    made = Record()
    for name, info in kind.fields:
        if name not in HIDDEN and name not in counts:
            setattr(made, name, _value(struct, kind, name, info.type, outer))
    return made


def _value(struct, kind, name, its_type, outer):
    """A field as Python has it."""
    value = getattr(struct, name)
    if its_type.kind == "enum":
        if its_type.cname == "lac_dtype":
            return arrays.dtype_name(value)
        return enum_words(its_type)[int(value)]
    if its_type.kind == "struct":
        return record(value, struct)
    if its_type.kind == "array":
        if its_type.item.cname == "char":
            return text(value)
        return tuple(value[at] for at in range(max(struct.rank, 0) if name == "shape" else its_type.length))
    if its_type.kind == "pointer":
        return _pointed(struct, kind, name, its_type, outer)
    return value


def _pointed(struct, kind, name, its_type, outer):
    """What a field points to: a text, a list, a struct, or None."""
    value = getattr(struct, name)
    if its_type.item.cname == "char":
        return text(value)
    count = _count(struct, kind, name, outer)
    if not value:
        return None if count is None or its_type.item.kind == "primitive" else []
    if its_type.item.kind == "pointer":
        item = its_type.item.item
        return [text(value[at]) if item.cname == "char" else record(value[at]) for at in range(count)]
    if its_type.item.kind == "primitive":
        return [value[at] for at in range(count)]
    if its_type.item.kind != "struct" or its_type.item.fields is None:
        return None
    return record(value[0], struct) if count is None else [record(value[at], struct) for at in range(count)]


def _count(struct, kind, name, outer):
    """How many elements a field points to; None: one, or none."""
    fields = dict(kind.fields)
    if f"n_{name}" in fields:
        return getattr(struct, f"n_{name}")
    if name == "plan_nodes":
        return struct.plan.n_nodes if struct.plan else 0
    owner = kind.cname.removeprefix("struct "), name
    if owner in COUNTS:
        other = COUNTS[owner]
        return getattr(struct, other) if other else outer.n_layers
    return None


class Report(Record, lac_report):
    """What prune, permute, check or inspect found and did.

    `summary` and `layers` are the heart of it; `groups`, `calibration`, `targets`, `quantization` and `plan` are there where the
    work had them. `model` is the network: after prune the pruned one.
    """

    def __init__(self, pointer, model, owner=None):
        super().__init__(**vars(record(pointer)))
        self.source, self.model, self._pointer, self._owner = self.model, model, pointer, owner

    def __repr__(self):
        return f"<lacuna.Report of {self.verb}: {self._sentence()}>"

    __str__ = __repr__

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("model", "_pointer", "_owner")}

    def _sentence(self):
        summary = self.summary
        parts = [f"{summary.pruned} of {summary.layers} layers are pruned {self.pattern}, {summary.eligible} may be"]
        if summary.verification_text:
            parts.append(summary.verification_text)
        if self.calibration:
            parts.append(f"outputs differ by {100 * self.calibration.outputs_error:.3g} %")
        return "; ".join(parts)

    @property
    def holds_pattern(self):
        """Does every layer hold the pattern that may be pruned?"""
        return all(layer.holds_pattern for layer in self.layers if layer.eligible)

    def layer(self, name):
        """The layer of this name, or of the weight of this name."""
        for layer in self.layers:
            if name in (layer.name, layer.weight):
                return layer
        raise KeyError(name)

    def json(self):
        """The report as docs/reference/json.md describes it, as a dict."""
        import json  # pylint: disable=import-outside-toplevel
        return json.loads(self.to_json())

    def to_json(self):
        """The same as a text."""
        made = ffi.new("char **")
        call("lac_report_json", self._pointer, made)
        try:
            return text(made[0])
        finally:
            lib.lac_text_free(made[0])

    def mask_of(self, tensor):
        """Which elements of a pruned tensor were kept: an array of bool of its shape."""
        import numpy  # pylint: disable=import-outside-toplevel
        values = numpy.zeros(self.model.tensors.shape(tensor), numpy.uint8)
        call("lac_report_mask", self._pointer, _word(tensor), ffi.from_buffer("uint8_t[]", values), values.size)
        return values.astype(bool)

    def order_of(self, tensor, axis):
        """Where the channels of an axis of a stored tensor came from: order[j] is the old index of the one that is now j."""
        import numpy  # pylint: disable=import-outside-toplevel
        size = self.model.tensors.shape(tensor)[axis]
        for layer in self.layers:
            if layer.weight == tensor and axis == layer.c_axis and layer.convolution_groups > 1:
                size *= layer.convolution_groups
        order = numpy.zeros(size, numpy.int32)
        call("lac_report_order", self._pointer, _word(tensor), axis, ffi.from_buffer("int32_t[]", order), order.size)
        return order

    def save_permutation(self, path, *, force=False):
        """Writes the orders as a file for permute(apply=...) and permute(invert=...)."""
        call("lac_permutation_save", self._pointer, path_bytes(path), bool(force))

    def plot(self, path, *, force=False):
        """Draws the operation graph: .svg, .pdf, .png or .dot."""
        call("lac_plot", self.model.pointer, self._pointer, path_bytes(path), bool(force), context())

    def plot_curve(self, path, *, force=False):
        """Draws the loss over the number of layers pruned, of prune(curve=...), as SVG."""
        call("lac_calibration_plot", self._pointer, path_bytes(path), bool(force))

    def _repr_html_(self):
        from html import escape  # pylint: disable=import-outside-toplevel
        rows = "".join(_html_row(layer, escape) for layer in self.layers)
        heads = "".join(f"<th>{head}</th>" for head in ("layer", "op", "shape", "structure", "zeros", "kept", ""))
        return (f"<div><p>{escape(self._sentence())}</p><table><thead><tr>{heads}</tr></thead>"
                f"<tbody>{rows}</tbody></table></div>")


def _html_row(layer, escape):
    structure = "pruned" if layer.pruned else "holds the pattern" if layer.holds_pattern else "dense"
    cells = [layer.name, layer.op, "x".join(str(size) for size in layer.shape), structure, f"{layer.zero_ratio:.4f}",
             f"{100 * layer.kept / layer.total:.2f} %" if layer.total and layer.pruned else "", layer.reason or ""]
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _word(name):
    return ffi.new("char[]", name.encode())


