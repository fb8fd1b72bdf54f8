# SPDX-License-Identifier: Apache-2.0
"""Runs of a network from any number of threads, by the call that ONNX Runtime has."""
import collections

from . import arrays
from .errors import failure
from .library import call, ffi, lib, options, sized, text
from .model import opened
from .options import run_fields

Port = collections.namedtuple("Port", "name shape type")
Port.__doc__ = "An input or output: its name, its shape with None for sizes that are open, and its type in ONNX's words."
ONNX_TYPES = {"f32": "float", "f64": "double", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32",
              "u32": "uint32", "i64": "int64", "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "bool": "bool"}


def _ports(session, which):
    """[(Port, lac_dtype)] of the inputs or the outputs."""
    found = ffi.new("const lac_array **")
    count = getattr(lib, f"lac_session_{which}")(session, found)
    ports = []
    for at in range(count):
        port, kind = found[0][at], arrays.dtype_name(found[0][at].dtype)
        shape = arrays.shape_of(port)
        shape = None if shape is None else tuple(None if size < 0 else size for size in shape)
        ports.append((Port(text(port.name), shape, f"tensor({ONNX_TYPES.get(kind, kind)})"), int(port.dtype)))
    return ports


def _release(data):
    array = ffi.new("lac_array *")
    array.data, array.owned = data, True
    lib.lac_session_release(array, 1)


class Session:
    """A network that any number of threads run at once.

        session = lacuna.Session("net.onnx")
        scores, = session.run(None, {"input": images})

    model: a path, bytes, an onnx.ModelProto or a lacuna.Model, which must not be changed while the session is used
    threads: of one run; 0: the cores this process may use. For callers with many threads of their own, 1
    dtype: "f32", or "bf16" on processors that have it
    engine: "auto", "cpu", "plain", or the file of an engine's plug-in
    sparse_kernels: False: zeros are multiplied, too
    careful: keep NaN and infinity wherever operators define them; slow
    tune: "off", "quick" or "full": choose kernels by a rule, or by times of this machine
    max_memory: bytes that all plans together may take, a number or a text such as "4G"
    n_plans, n_copies: how many sets of shapes are kept planned, and how many threads run one at once
    """

    def __init__(self, model, *, threads=None, dtype=None, engine=None, sparse_kernels=None, careful=None, tune=None,
                 max_memory=None, n_plans=0, n_copies=0, lenient=False):
        self.model = opened(model, lenient=lenient)
        how, made = options("lac_session_options"), ffi.new("lac_session **")
        given = {"threads": threads, "dtype": dtype, "engine": engine, "careful": careful, "tune": tune,
                 "max_memory": max_memory, "sparse_kernels": sparse_kernels}
        kept = run_fields(how.run, given)
        how.n_plans, how.n_copies = n_plans, n_copies
        call("lac_session_create", self.model.pointer, how, made)
        del kept
        self._session = ffi.gc(made[0], lib.lac_session_destroy)
        self._inputs, self._outputs = _ports(self._session, "inputs"), _ports(self._session, "outputs")
        self._declared = {port.name: (ffi.new("char[]", port.name.encode()), dtype) for port, dtype in self._inputs}
        self._names = [(port.name, ffi.new("char[]", port.name.encode()), arrays.numpy_type(dtype) is not None)
                       for port, dtype in self._outputs]

    def get_inputs(self):
        """The network's inputs: name, shape, type."""
        return [port for port, _ in self._inputs]

    def get_outputs(self):
        """The network's outputs: name, shape, type."""
        return [port for port, _ in self._outputs]

    def declared_inputs(self):
        """[(port, lac_dtype)] of the inputs."""
        return self._inputs

    def run(self, output_names, input_feed, run_options=None):  # pylint: disable=unused-argument
        """The outputs of these names (None: all) for {input name: array}, as a list of NumPy arrays.

        Arrays are read in place where their type is the network's own, float32 or int64, and they are contiguous. Anything with
        __dlpack__ or the buffer protocol will do. Other shapes than before are planned first. Any thread may call it.
        """
        inputs, kept = ffi.new("lac_array[]", len(input_feed)), []
        for struct, (name, value) in zip(inputs, input_feed.items()):
            word, declared = self._declared.get(name) or (ffi.new("char[]", name.encode()), None)
            array = arrays.given(value, declared, name)
            kept.append((word, array))
            arrays.fill(struct, array, word)
        wanted = self._names if output_names is None else [self._name(name) for name in output_names]
        outputs = ffi.new("lac_array[]", len(wanted))
        for output, (_, word, has_type) in zip(outputs, wanted):
            output.name = word
            output.dtype = lib.LAC_DTYPE_NONE if has_type else arrays.F32
        call("lac_session_run", self._session, inputs, len(inputs), outputs, len(wanted))
        del kept
        return [arrays.view(output.dtype, arrays.shape_of(output), ffi.gc(ffi.cast("char *", output.data), _release),
                            output.size_bytes) for output in outputs]

    def _name(self, name):
        for row in self._names:
            if row[0] == name:
                return row
        raise failure(f"{name}: the network has no such output; it has {', '.join(row[0] for row in self._names)}", "NOT_FOUND")

    def about(self):
        """Facts at this moment: the engine, its type, threads, plans and bytes."""
        from .report import record  # pylint: disable=import-outside-toplevel
        facts = sized("lac_session_facts")
        call("lac_session_about", self._session, facts)
        return record(facts)

