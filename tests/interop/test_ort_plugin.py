# SPDX-License-Identifier: Apache-2.0
"""The provider for ONNX Runtime: its answers against those of ONNX Runtime's own, for whole graphs and parts of them."""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import numpy
import onnx
import onnxruntime as ort
import pytest
from built import build_dir
from onnx import TensorProto, helper, numpy_helper

NAME = "LacunaExecutionProvider"
LIBRARY = build_dir() / "lib" / "lacuna" / "liblacuna_ort.so"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
ALL = {"all": "1"}
RELEASE = int(ort.__version__.split(".")[1])

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without the provider (LAC_ORT)")


@pytest.fixture(scope="module", autouse=True)
def registered():
    ort.register_execution_provider_library(NAME, str(LIBRARY))
    yield
    ort.unregister_execution_provider_library(NAME)


def session(model, options=None, **settings):
    """A session with our provider, or, without options, with ONNX Runtime's alone."""
    model = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    so = ort.SessionOptions()
    so.log_severity_level = 3
    for key, value in settings.items():
        setattr(so, key, value)
    if options is None:
        return ort.InferenceSession(model, so, providers=["CPUExecutionProvider"])
    so.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == NAME], options)
    return ort.InferenceSession(model, so, enable_fallback=0)


def run_alone(code, *arguments, **settings):
    """Runs code in a process of its own, which has registered the provider. Returns what it says: output, and log."""
    head = f"""
        import os, sys, threading, numpy, onnxruntime as ort
        NAME, LIBRARY = {NAME!r}, {str(LIBRARY)!r}
        def register(): ort.register_execution_provider_library(NAME, LIBRARY)
        def open_session(path, intra=0, level=3, **options):
            so = ort.SessionOptions()
            so.log_severity_level, so.intra_op_num_threads = level, intra
            so.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == NAME], options)
            return ort.InferenceSession(path, so, enable_fallback=0)
        register()
    """
    text = textwrap.dedent(head) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def owners(model, options):
    """The lines of the log that say who has each node: {name: line}."""
    _, log = run_alone(f'open_session(sys.argv[1], level=2, verbose="1", **{options!r})', model)
    lines = [line.split("Lacuna: ")[1] for line in log.splitlines() if "Lacuna: " in line]
    return {line.split(" (")[0]: line for line in lines if "): " in line}


def make(nodes, inputs, outputs, weights=(), opset=17, domains=()):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs], list(weights))
    sets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def tensor(name, *shape, sparse=False, seed=0, dtype=numpy.float32):
    values = numpy.random.default_rng(seed).standard_normal(shape) / max(1, numpy.prod(shape[1:])) ** 0.5
    if sparse:  # 2:4 along the input channels
        values = values.reshape(shape[0], -1, 4, *shape[2:]) if len(shape) == 4 else values.reshape(shape[0], -1, 4)
        values[:, :, :2] = 0
        values = values.reshape(shape)
    return numpy_helper.from_array(values.astype(dtype), name)


def convolutions(sparse, batch="n", size=14):
    """Three convolutions of 64 channels, which a sparse kernel takes gladly: no dense one transforms windows of 5 x 5."""
    weights = [tensor(f"w{k}", 64, 64, 5, 5, sparse=sparse, seed=k) for k in range(3)]
    nodes = []
    for k in range(3):
        nodes += [helper.make_node("Conv", [f"x{k}", f"w{k}"], [f"c{k}"], f"conv{k}", pads=[2] * 4),
                  helper.make_node("Relu", [f"c{k}"], [f"x{k + 1}"], f"relu{k}")]
    return make(nodes, [("x0", FLOAT, [batch, 64, size, size])], [("x3", FLOAT, None)], weights)


def compare(model, feeds, options=ALL, tolerance=1e-4, **settings):
    wanted = session(model).run(None, feeds)
    found = session(model, options, **settings).run(None, feeds)
    for one, other in zip(wanted, found):
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.dtype.kind == "f" and one.size:
            assert numpy.abs(one.astype(numpy.float64) - other).max() <= tolerance * max(1, numpy.abs(one).max())
        else:
            assert numpy.array_equal(one, other)
    return found


def random(*shape, seed=1):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


# ---- Whole graphs ----


def test_a_network_gives_the_same_from_bytes_and_from_a_path(tmp_path):
    model = convolutions(sparse=True)
    feeds = {"x0": random(2, 64, 14, 14)}
    bytes_ = compare(model, feeds)
    onnx.save(model, tmp_path / "net.onnx")
    path = compare(str(tmp_path / "net.onnx"), feeds)
    onnx.save(model, tmp_path / "ext.onnx", save_as_external_data=True, size_threshold=100, location="ext.data")
    external = compare(str(tmp_path / "ext.onnx"), feeds)
    assert numpy.array_equal(bytes_[0], path[0]) and numpy.array_equal(path[0], external[0])


def test_an_optimized_file_of_onnxruntime_runs(tmp_path):
    path = str(tmp_path / "opt.onnx")
    session(convolutions(sparse=True), graph_optimization_level=ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
            optimized_model_filepath=path)
    assert {n.op_type for n in onnx.load(path).graph.node} == {"FusedConv"}
    compare(path, {"x0": random(2, 64, 14, 14)})
    assert all("taken" in line for line in owners(path, ALL).values())


@pytest.mark.parametrize("shape", [(1, 64, 14, 14), (3, 64, 7, 9), (0, 64, 14, 14)])
def test_shapes_come_and_go(shape):
    model = convolutions(sparse=True, size="s")
    one, other = session(model), session(model, {"all": "1", "plans": "2"})
    for k in range(4):
        feeds = {"x0": random(*shape[:2], shape[2] + k, shape[3] + k)}
        assert numpy.allclose(one.run(None, feeds)[0], other.run(None, feeds)[0], atol=1e-4)


TYPES = [TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16,
         TensorProto.UINT16, TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64, TensorProto.BOOL]


@pytest.mark.parametrize("of", TYPES, ids=[TensorProto.DataType.Name(t) for t in TYPES])
def test_element_types_pass(of):
    """A cast to float and one back, of an array, a scalar and an array without elements."""
    nodes = [helper.make_node("Cast", ["x"], ["f"], "in", to=FLOAT), helper.make_node("Abs", ["f"], ["g"], "abs"),
             helper.make_node("Cast", ["g"], ["y"], "out", to=of)]
    shape = ["n", 3]
    model = make(nodes, [("x", of, shape)], [("y", of, shape)], opset=19)
    if of == TensorProto.BFLOAT16:  # NumPy has none: only that it is taken
        assert NAME in session(model, ALL).get_providers()
        return
    dtype = helper.tensor_dtype_to_np_dtype(of)
    for n in (4, 0):
        compare(model, {"x": numpy.arange(3 * n).reshape(n, 3).astype(dtype)})
    model = make(nodes, [("x", of, [])], [("y", of, [])], opset=19)
    compare(model, {"x": numpy.array(3).astype(dtype)})


def test_what_is_left_out_stays_out():
    """Optional inputs, an initializer that a caller may replace, and an output of a fixed size."""
    nodes = [helper.make_node("Clip", ["x", "", "most"], ["y"], "clip"), helper.make_node("Add", ["y", "b"], ["z"], "add")]
    model = make(nodes, [("x", FLOAT, [2, 3]), ("most", FLOAT, []), ("b", FLOAT, [3])], [("z", FLOAT, [2, 3])],
                 [numpy_helper.from_array(numpy.ones(3, numpy.float32), "b")])
    feeds = {"x": random(2, 3), "most": numpy.array(0.25, numpy.float32)}
    compare(model, feeds)
    compare(model, {**feeds, "b": random(3)})


# ---- Parts of graphs ----


def test_a_foreign_node_is_never_between(tmp_path):
    """x -> conv -> foreign -> add <- conv: what is before and after the foreign node cannot be one part."""
    weights = [tensor("w0", 64, 64, 3, 3, sparse=True), tensor("w1", 64, 64, 3, 3, sparse=True, seed=1)]
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c"], "conv0", pads=[1] * 4),
             helper.make_node("Relu", ["c"], ["r"], "relu"),
             helper.make_node("Identity", ["r"], ["t"], "same"),
             helper.make_node("SequenceConstruct", ["r", "r"], ["s"], "pair"),
             helper.make_node("ConcatFromSequence", ["s"], ["f"], "foreign", axis=1),
             helper.make_node("Slice", ["f", "zero", "many", "one"], ["h"], "half"),
             helper.make_node("Conv", ["t", "w1"], ["d"], "conv1", pads=[1] * 4),
             helper.make_node("Add", ["d", "h"], ["y"], "add")]
    weights += [numpy_helper.from_array(numpy.array([k], numpy.int64), name)
                for name, k in (("zero", 0), ("many", 64), ("one", 1))]
    model = make(nodes, [("x", FLOAT, [1, 64, 8, 8])], [("y", FLOAT, None)], weights)
    compare(model, {"x": random(1, 64, 8, 8)})
    onnx.save(model, tmp_path / "net.onnx")
    lines = owners(tmp_path / "net.onnx", ALL)
    assert "taken" in lines["conv0"] and "taken" in lines["add"]
    assert "left to ONNX Runtime: a value has a type" in lines["pair"]


def test_bodies_go_whole_or_stay(tmp_path):
    body = helper.make_graph([helper.make_node("Add", ["x", "w"], ["a"], "inner")], "then", [],
                             [helper.make_tensor_value_info("a", FLOAT, None)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["b"], "negative")], "else", [],
                              [helper.make_tensor_value_info("b", FLOAT, None)])
    nodes = [helper.make_node("Abs", ["u"], ["x"], "abs"),
             helper.make_node("If", ["c"], ["y"], "if", then_branch=body, else_branch=other),
             helper.make_node("Sqrt", ["y"], ["z"], "root")]
    model = make(nodes, [("u", FLOAT, [2, 3]), ("c", TensorProto.BOOL, [])], [("z", FLOAT, None)], [tensor("w", 2, 3)])
    for taken in (True, False):
        feeds = {"u": numpy.abs(random(2, 3)), "c": numpy.array(taken)}
        for one, another in zip(session(model).run(None, feeds), session(model, ALL).run(None, feeds)):
            assert numpy.allclose(one, another, equal_nan=True)
    onnx.save(model, tmp_path / "net.onnx")
    line = owners(tmp_path / "net.onnx", ALL)["if"]
    assert "taken" in line if RELEASE >= 28 else "does not hand over" in line
    assert "it has bodies" in owners(tmp_path / "net.onnx", {})["if"]


def test_only_what_gains_is_taken(tmp_path):
    for sparse in (True, False):
        path = tmp_path / f"{sparse}.onnx"
        onnx.save(convolutions(sparse, batch=1), path)
        lines = owners(path, {})
        assert len(lines) == 6
        assert all(("taken" if sparse else "its part would not be faster") in line for line in lines.values())


# ---- What it says of itself ----


def test_memory_is_told(tmp_path):
    """Of fixed sizes when the session is made, of open ones after the first run."""
    for batch in (2, "n"):
        onnx.save(convolutions(True, batch=batch), tmp_path / "net.onnx")
        _, log = run_alone("""
            one = open_session(sys.argv[1], level=2, verbose="1")
            print("made", file=sys.stderr, flush=True)
            for _ in range(3): one.run(None, {"x0": numpy.ones((2, 64, 14, 14), numpy.float32)})
        """, tmp_path / "net.onnx")
        before, after = log.split("made")
        told = r"the part that makes x3: 1 plan of \d+\.\d MB, most allowed \d+\.\d MB; 1.2 MB of weights are copies; \d+ thread"
        assert bool(re.search(told, before)) == (batch == 2) and len(re.findall(told, after)) == 1


@pytest.mark.skipif(RELEASE < 25, reason="providers of older releases cannot add to a profile")
def test_steps_are_in_the_profile(tmp_path):
    so = ort.SessionOptions()
    so.enable_profiling, so.profile_file_prefix = True, str(tmp_path / "profile")
    so.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == NAME], {})
    one = ort.InferenceSession(convolutions(True).SerializeToString(), so)
    for n in (1, 2):
        one.run(None, {"x0": random(n, 64, 14, 14)})
    events = json.loads(pathlib.Path(one.end_profiling()).read_text())
    whole = [e for e in events if e.get("cat") == "Node" and e["args"].get("provider") == NAME]
    steps = [e for e in events if e.get("cat") == "Kernel" and e["args"].get("provider") == NAME]
    assert len(whole) == 2
    assert [e["name"] for e in steps if e["name"].startswith("conv")] == ["conv0", "conv1", "conv2"] * 2
    assert all(e["args"]["sparse"] == "1" for e in steps if e["name"].startswith("conv"))
    for step in steps:  # each is inside of the node that the part has become
        assert any(e["ts"] - 2 <= step["ts"] and step["ts"] + step["dur"] <= e["ts"] + e["dur"] + 2 for e in whole)
    one.run(None, {"x0": random(1, 64, 14, 14)})


# ---- Options and failures ----


@pytest.mark.parametrize(("name", "value", "wanted"), [
    ("threads", "two", "wanted a number"), ("threads", "-1", "wanted a number"), ("all", "yes", "wanted 0 or 1"),
    ("dtype", "f16", "wanted f32 or bf16"), ("memory", "1T", "wanted bytes"), ("pool", "mine", "wanted session or own"),
    ("plans", "9" * 80, "a value of 81 characters")])
def test_options_that_are_none_are_refused(name, value, wanted):
    with pytest.raises(Exception, match=f"ep.lacunaexecutionprovider.{name}: .*{wanted}"):
        session(convolutions(True), {name: value})


@pytest.mark.parametrize("options", [{"threads": "1"}, {"threads": "2"}, {"pool": "session"}, {"pool": "own"}, {"memory": "1G"},
                                     {"all": "true", "plans": "1"}, {"dtype": "f32"}], ids=str)
def test_options_change_no_answer(options):
    compare(convolutions(True), {"x0": random(2, 64, 14, 14)}, {**ALL, **options})


def test_a_failure_is_onnxruntimes_with_our_text():
    """An index out of range, and a limit of memory that the plan does not keep."""
    nodes = [helper.make_node("Gather", ["w", "i"], ["y"], "gather"), helper.make_node("Relu", ["y"], ["z"], "relu")]
    model = make(nodes, [("i", INT64, ["n"])], [("z", FLOAT, None)], [tensor("w", 8, 4)])
    with pytest.raises(Exception, match="Lacuna: .*"):
        session(model, ALL).run(None, {"i": numpy.array([9])})
    small = session(convolutions(True), {"all": "1", "memory": "100K"})
    small.disable_fallback()  # to ONNX Runtime's own provider, which Python tries after such a failure
    with pytest.raises(Exception, match="Lacuna: .*the plan needs"):
        small.run(None, {"x0": random(1, 64, 14, 14)})


# ---- Threads and processes ----


def test_many_threads_run_one_session(tmp_path):
    """Four threads, shapes mixed: the answers are those of one thread."""
    onnx.save(convolutions(True), tmp_path / "net.onnx")
    run_alone("""
        one = open_session(sys.argv[1], all="1")
        feeds = [numpy.random.default_rng(n).standard_normal((n, 64, 14, 14)).astype(numpy.float32) for n in (1, 2, 3)]
        wanted, wrong = [one.run(None, {"x0": x})[0] for x in feeds], []
        def work(first):
            for k in range(30):
                n = (first + k) % 3
                if not numpy.array_equal(one.run(None, {"x0": feeds[n]})[0], wanted[n]): wrong.append(n)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong
    """, tmp_path / "net.onnx")


def test_a_forked_process_makes_sessions_of_its_own(tmp_path):
    """As servers do it: the parent has run a session, on all threads, before it forks."""
    onnx.save(convolutions(True, batch=2), tmp_path / "net.onnx")
    run_alone("""
        x = numpy.ones((2, 64, 14, 14), numpy.float32)
        wanted = open_session(sys.argv[1], all="1").run(None, {"x0": x})[0]
        child = os.fork()
        if child == 0:
            same = all(numpy.array_equal(open_session(sys.argv[1], intra, all="1").run(None, {"x0": x})[0], wanted) for intra in (1, 0))
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
    """, tmp_path / "net.onnx")


def test_it_is_registered_again_and_again(tmp_path):
    """With a session each time; the memory stays, as it does over runs. tools/ort_releases does it a hundred times."""
    rounds = int(os.environ.get("LAC_ORT_ROUNDS", "16"))
    onnx.save(convolutions(True, batch=1, size=4), tmp_path / "net.onnx")
    grown, _ = run_alone("""
        rounds = int(sys.argv[2])
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        x, before = numpy.ones((1, 64, 4, 4), numpy.float32), 0
        ort.unregister_execution_provider_library(NAME)
        for k in range(rounds):
            register()
            one = open_session(sys.argv[1], all="1")
            one.run(None, {"x0": x})
            del one
            ort.unregister_execution_provider_library(NAME)
            if k == rounds // 2: before = resident()
        register()
        sessions = resident() - before
        one = open_session(sys.argv[1], all="1")
        for k in range(600):
            one.run(None, {"x0": x})
            if k == 99: before = resident()
        print(sessions, resident() - before)
    """, tmp_path / "net.onnx", rounds)
    sessions, runs = map(int, grown.split())
    assert sessions < 8 << 20 and runs < 1 << 20


def test_a_session_may_outlive_the_registration(tmp_path):
    onnx.save(convolutions(True, batch=1, size=4), tmp_path / "net.onnx")
    run_alone("""
        one = open_session(sys.argv[1], all="1")
        try: ort.unregister_execution_provider_library(NAME)
        except Exception: pass  # some releases refuse
        one.run(None, {"x0": numpy.ones((1, 64, 4, 4), numpy.float32)})
        del one
        try: register()
        except Exception: pass
    """, tmp_path / "net.onnx")


def test_onednn_calls_the_providers_own_run_time(tmp_path):
    """GNU's run time is loaded with oneDNN, but not used: oneDNN's calls come to the provider."""
    onnx.save(convolutions(True, batch=1), tmp_path / "net.onnx")
    _, bound = run_alone("""
        open_session(sys.argv[1], all="1").run(None, {"x0": numpy.ones((1, 64, 14, 14), numpy.float32)})
    """, tmp_path / "net.onnx", env={"LD_DEBUG": "bindings"})
    lines = [line for line in bound.splitlines() if "`GOMP_parallel'" in line and "libdnnl" in line]
    assert lines and all("liblacuna_ort.so" in line.split(" to ")[1] for line in lines)


# ---- Packed models ----


def test_a_packed_model_answers_as_before_from_half_the_bytes(tmp_path):
    weights = [tensor(f"w{k}", 256, 256, 3, 3, sparse=True, seed=k) for k in range(2)]
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c"], "conv0", pads=[1] * 4), helper.make_node("Relu", ["c"], ["r"], "relu"),
             helper.make_node("Conv", ["r", "w1"], ["y"], "conv1", pads=[1] * 4)]
    model = make(nodes, [("x", FLOAT, ["n", 256, 6, 6])], [("y", FLOAT, ["n", 256, 6, 6])], weights)
    path, packed = str(tmp_path / "net.onnx"), str(tmp_path / "packed.onnx")
    onnx.save(model, path)
    subprocess.run([build_dir() / "lacuna", "pack", path, "--ort", "-o", packed, "-q"], check=True, capture_output=True)
    assert os.path.getsize(packed) <= 0.55 * os.path.getsize(path)
    onnx.checker.check_model(packed)
    feeds = {"x": random(2, 256, 6, 6)}
    whole, small = session(path, ALL), session(packed, {})
    assert [(i.name, i.shape, i.type) for i in small.get_inputs()] == [(i.name, i.shape, i.type) for i in whole.get_inputs()]
    assert numpy.array_equal(small.run(None, feeds)[0], whole.run(None, feeds)[0])
    with pytest.raises(Exception, match="EPContext"):
        session(packed)
    damaged = onnx.load(packed)
    context = next(a for a in damaged.graph.node[0].attribute if a.name == "ep_cache_context")
    context.s = context.s[:5000] + b"?" + context.s[5001:]
    with pytest.raises(Exception, match="Lacuna: "):
        session(damaged, {})
    damaged.graph.node[0].attribute.remove(context)
    with pytest.raises(Exception, match="the node holds no pack"):
        session(damaged, {})
