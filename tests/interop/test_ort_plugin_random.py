# SPDX-License-Identifier: Apache-2.0
"""The provider for ONNX Runtime on random graphs with foreign nodes in between: answers, parts, and slots that fail."""

import os
import re

import numpy
import onnx
import onnxruntime as ort
import pytest
from built import ROOT
from onnx import TensorProto, helper
from test_ort_plugin import ALL, LIBRARY, NAME, registered, run_alone, session, tensor  # noqa: F401 (registered is a fixture)

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without the provider (LAC_ORT)")

N_GRAPHS = int(os.environ.get("LAC_RANDOM_GRAPHS", "40"))
CHANNELS, SIZE = 8, 6
ONE = ["Relu", "Sigmoid", "Abs", "Tanh", "Neg", "Softplus", "HardSwish"]


class Graph:
    """Values of one shape [2, 8, 6, 6], so that any of them may be an operand of any node."""

    def __init__(self, seed):
        self.rng = numpy.random.default_rng(seed)
        self.nodes, self.weights, self.values = [], [], ["x0", "x1"]

    def new(self):
        return f"v{len(self.nodes)}_{len(self.weights)}"

    def pick(self):
        """A value: mostly a late one."""
        n = len(self.values)
        return self.values[max(0, n - 1 - int(self.rng.exponential(2)))]

    def add(self, op, inputs, **attributes):
        out = self.new()
        self.nodes.append(helper.make_node(op, inputs, [out], f"{op}_{out}", **attributes))
        return out

    def convolution(self):
        name = f"w{len(self.weights)}"
        self.weights.append(tensor(name, CHANNELS, CHANNELS, 3, 3, sparse=bool(self.rng.integers(2)), seed=int(self.rng.integers(1 << 30))))
        return self.add("Conv", [self.pick(), name], pads=[1] * 4)

    def foreign(self):
        kind = self.rng.integers(3)
        if kind == 0:  # an operator that Lacuna does not know
            return self.add("SampleOp", [self.pick()], domain="com.microsoft")
        pair = self.add("SequenceConstruct", [self.pick(), self.pick()])  # values that cannot be passed
        if kind == 1:
            self.weights.append(onnx.numpy_helper.from_array(numpy.array(1, numpy.int64), f"at{len(self.weights)}"))
            return self.add("SequenceAt", [pair, self.weights[-1].name])
        joined = self.add("ConcatFromSequence", [pair], axis=1)
        self.weights.append(tensor(f"w{len(self.weights)}", CHANNELS, 2 * CHANNELS, 1, 1, seed=int(self.rng.integers(1 << 30))))
        return self.add("Conv", [joined, self.weights[-1].name])

    def body(self):
        """An If whose branches read values of the graph around it."""
        branches = []
        for at in range(2):
            out = f"{self.new()}_{at}"
            node = helper.make_node(ONE[at], [self.pick()], [out])
            branches.append(helper.make_graph([node], out, [], [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)]))
        return self.add("If", ["c"], then_branch=branches[0], else_branch=branches[1])

    def step(self):
        kind = self.rng.random()
        if kind < 0.3:
            return self.convolution()
        if kind < 0.55:
            return self.add(ONE[self.rng.integers(len(ONE))], [self.pick()])
        if kind < 0.75:
            return self.add(["Add", "Mul", "Max"][self.rng.integers(3)], [self.pick(), self.pick()])
        return self.foreign() if kind < 0.95 else self.body()

    def model(self):
        for _ in range(int(self.rng.integers(4, 24))):
            self.values.append(self.step())
        read = {name for node in self.nodes for name in node.input}
        last = [v for v in self.values[2:] if v not in read]
        outputs = sorted({*last, self.values[int(self.rng.integers(2, len(self.values)))]})  # one that others read, too
        shape = ["n", CHANNELS, SIZE, SIZE]
        graph = helper.make_graph(
            self.nodes, "random", [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape) for x in ("x0", "x1")] +
            [helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs], self.weights)
        sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=9)


def feeds_of(seed):
    rng = numpy.random.default_rng(seed + 10**6)
    shape = (int(rng.integers(1, 3)), CHANNELS, SIZE, SIZE)
    feeds = {x: rng.standard_normal(shape).astype(numpy.float32) for x in ("x0", "x1")}
    return {**feeds, "c": numpy.array(bool(rng.integers(2)))}


@pytest.mark.parametrize("first", range(0, N_GRAPHS, 20))
def test_random_graphs_answer_as_before(first):
    level = ort.GraphOptimizationLevel
    for seed in range(first, min(first + 20, N_GRAPHS)):
        model = Graph(seed).model()
        feeds = feeds_of(seed)
        how = {"graph_optimization_level": level.ORT_DISABLE_ALL if seed % 2 else level.ORT_ENABLE_ALL}
        with_ours = session(model, ALL, **how)
        with_ours.disable_fallback()
        for one, other in zip(session(model, **how).run(None, feeds), with_ours.run(None, feeds)):
            assert one.shape == other.shape, seed
            assert not numpy.abs(one - other).max(initial=0) > 1e-4 * max(1, numpy.abs(one).max(initial=0)), seed
        assert NAME in with_ours.get_providers()


# ---- Faults ----


THOROUGH = "LAC_ORT_THOROUGH" in os.environ
SLOTS = ROOT / "plugins" / "ort" / "slots.def"
TRY = """
    model, feeds, wanted = sys.argv[1], numpy.load(sys.argv[2]), numpy.load(sys.argv[3])
    def attempt():
        "The error's text; empty: there was none, and the answers are right."
        try:
            one = open_session(model, level=4, all="1")
            one.disable_fallback()
            found = one.run(None, dict(feeds))
        except Exception as e:
            return str(e)
        assert all(numpy.allclose(found[k], wanted[f"arr_{k}"], atol=1e-4) for k in range(len(found)))
        return ""
"""


def everything(tmp_path):
    """A network that has all that is read of one: bodies, tensors in attributes, data files, open sizes."""
    for seed in range(100):
        graph = Graph(seed)
        model = graph.model()
        if {"If", "SequenceAt", "Conv"} <= {n.op_type for n in model.graph.node}:
            break
    first = model.graph.output[0].name
    model.graph.node.append(helper.make_node("Shape", [first], ["shape"], "shape"))
    model.graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["filled"], "filled",
                                             value=helper.make_tensor("value", TensorProto.FLOAT, [1], [2.0])))
    model.graph.node.append(helper.make_node("Transpose", ["filled"], ["swapped"], "swapped", perm=[0, 1, 3, 2]))
    values = [("i", TensorProto.INT64, []), ("on", TensorProto.BOOL, []), ("sum", TensorProto.FLOAT, None)]
    nodes = [helper.make_node("Add", ["sum", "step"], ["more"], "grow"), helper.make_node("Identity", ["on"], ["goes_on"], "same")]
    body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info(*v) for v in values],
                             [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("more", TensorProto.FLOAT, None)], [tensor("step", 1, CHANNELS, SIZE, SIZE)])
    model.graph.initializer.append(onnx.numpy_helper.from_array(numpy.array(3, numpy.int64), "times"))
    model.graph.node.append(helper.make_node("Loop", ["times", "", "swapped"], ["summed"], "loop", body=body))
    model.graph.output.append(helper.make_tensor_value_info("summed", TensorProto.FLOAT, None))
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=1000, location="net.data")
    feeds = feeds_of(0)
    numpy.savez(tmp_path / "in.npz", **feeds)
    numpy.savez(tmp_path / "out.npz", *session(str(path)).run(None, feeds))
    return path, tmp_path / "in.npz", tmp_path / "out.npz"


def slots():
    """(place, name, fails) of every function that is called; fails: it returns a status."""
    for place, name, result in re.findall(r"LAC_ORT_SLOT\((\d+), (\w+), ([\w ]+ ?\**),", SLOTS.read_text()):
        yield int(place), name, result == "ort_status *"


def test_functions_that_are_missing_or_fail_are_errors(tmp_path):
    places = list(slots())
    assert len(places) > 50 and len({p for p, *_ in places}) == len(places)
    faults = [f"null:{place}" for place, *_ in places] + ["api"]
    counts = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89) if THOROUGH else (1,)
    faults += [f"fail:{place}:{n}" for place, _, fails in places if fails and place != 0 for n in counts]
    faulty = LIBRARY.parents[2] / "tests" / "plugins" / "libtest_ort_faults.so"
    told, _ = run_alone(TRY + """
    import ctypes
    hit = ctypes.CDLL(sys.argv[4]).ort_faults_hit
    ort.unregister_execution_provider_library(NAME)
    for fault in sys.argv[5:]:
        os.environ["LAC_ORT_FAULT"] = fault
        why = ""
        try:
            ort.register_execution_provider_library("faulty", sys.argv[4])
        except Exception as e:
            why = "registering: " + str(e)
        if not why:
            why = attempt() if any(d.ep_name == NAME for d in ort.get_ep_devices()) else "no device"
            ort.unregister_execution_provider_library("faulty")
        print(fault, hit(), why.replace(chr(10), " "))
    """, *everything(tmp_path), faulty, *faults, env={**os.environ, "LAC_ORT_LIBRARY": str(LIBRARY)})
    lines = dict(line.split(" ", 1) for line in told.splitlines())
    assert lines.keys() == set(faults)
    missing = {f"null:{place}": name for place, name, _ in places if place != 0}
    for fault, name in missing.items():
        assert "registering: " in lines[fault] and f"({name})" in lines[fault]
    assert "has no API of version 23" in lines["api"] and "null:0" in lines
    # A fault while nodes are chosen is logged, and none is taken; a later one is the session's.
    assert sum("a fault of the test" in line for line in lines.values()) >= 2
    hit = {fault.split(":")[1] for fault, line in lines.items() if line.startswith("1 ")}
    never = {name for place, name, fails in places if fails and place != 0 and str(place) not in hit}
    assert never <= {"log"}


def test_memory_that_ends_is_an_error(tmp_path):
    """Each allocation fails in turn, or, in the short form, some of them."""
    libraries = f"{LIBRARY.parents[2] / 'tests' / 'torture' / 'libfaults.so'} {LIBRARY}"
    told, _ = run_alone(TRY + """
    import ctypes
    begin = ctypes.CDLL(None).faults_begin
    begin.restype = ctypes.c_long
    assert not attempt()
    begin(b"malloc:1?")
    assert not attempt()
    n, failed = begin(b"none"), 0
    assert n > 500
    for at in range(1, n + 1, 1 if int(sys.argv[4]) else max(1, n // 25)):
        begin(b"malloc:%d" % at)
        why = attempt()
        begin(b"none")
        failed += bool(why)
        assert not why or "Lacuna" in why or "emory" in why, why
    assert not attempt()
    print(n, failed)
    """, *everything(tmp_path), int(THOROUGH),
                        env={**os.environ, "LD_PRELOAD": libraries, "LAC_FAULT": "none:0", "LAC_FAULT_LIBRARIES": "1"})
    n, failed = map(int, told.split())
    assert failed >= 1
