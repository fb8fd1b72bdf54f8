# SPDX-License-Identifier: Apache-2.0
"""The provider for ONNX Runtime over thousands of runs, from several threads, and next to other libraries with threads."""

import os
import subprocess

import numpy
import onnx
import pytest
from onnx import helper, numpy_helper
from test_ort_plugin import ALL, FLOAT, LIBRARY, convolutions, make, random, registered, run_alone, session, tensor  # noqa: F401

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="built without the provider (LAC_ORT)")
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")


# ---- Load ----


def run_many(tmp_path, rounds):
    """Bytes that the process grew by over all but the first tenth of the runs, shapes mixed."""
    onnx.save(convolutions(True, size=4), tmp_path / "open.onnx")
    onnx.save(convolutions(True, batch=1, size=4), tmp_path / "fixed.onnx")
    grown, _ = run_alone("""
        rounds = int(sys.argv[3])
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        shaped, fixed = open_session(sys.argv[1], all="1", plans="3"), open_session(sys.argv[2], all="1")
        feeds = [numpy.ones((n, 64, 4, 4), numpy.float32) for n in (1, 2, 3)]
        for k in range(rounds):
            shaped.run(None, {"x0": feeds[k % 3]})
            fixed.run(None, {"x0": feeds[0]})
            if k == rounds // 10: before = resident()
        print(resident() - before)
    """, tmp_path / "open.onnx", tmp_path / "fixed.onnx", rounds)
    return int(grown)


@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps what is freed")
def test_memory_stays_over_some_hundred_runs(tmp_path):
    assert run_many(tmp_path, 400) < 1 << 20


@pytest.mark.large
@pytest.mark.skipif(SANITIZED, reason="the sanitizer keeps what is freed")
def test_memory_stays_over_ten_thousand_runs(tmp_path):
    assert run_many(tmp_path, 10000) < 1 << 20


@pytest.mark.parametrize("rounds", [40, pytest.param(1000, marks=pytest.mark.large)])
def test_four_threads_run_two_sessions(tmp_path, rounds):
    """Shapes mixed, with fewer plans than shapes: the answers are those of one thread."""
    onnx.save(convolutions(True, size=6), tmp_path / "net.onnx")
    run_alone("""
        one, two = open_session(sys.argv[1], all="1"), open_session(sys.argv[1], 1, all="1", plans="2")
        feeds = [numpy.random.default_rng(n).standard_normal((n, 64, 6, 6)).astype(numpy.float32) for n in (1, 2, 3, 4)]
        wanted, wrong = [one.run(None, {"x0": x})[0] for x in feeds], []
        def work(first):
            for k in range(int(sys.argv[2])):
                n = (first + k) % 4
                for each in (one, two):
                    if not numpy.array_equal(each.run(None, {"x0": feeds[n]})[0], wanted[n]): wrong.append(n)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong
    """, tmp_path / "net.onnx", rounds)


# ---- Next to others ----

OTHER = """
#include <omp.h>
/* The sum of 0 .. n - 1, on as many threads as OpenMP likes; *threads: how many there were. */
long sum_up(long n, int *threads) {
  long sum = 0;
  int most = 1;
#pragma omp parallel for reduction(+ : sum) reduction(max : most)
  for (long k = 0; k < n; k++) {
    sum += k;
    most = omp_get_num_threads();
  }
  *threads = most;
  return sum;
}
"""


@pytest.mark.parametrize("order", ["before", pytest.param("after", marks=pytest.mark.large)])
def test_a_library_with_openmp_keeps_its_own_run_time(tmp_path, order):
    """Loaded before the provider or after it, called alternately, from several threads at a time, and in a fork."""
    (tmp_path / "other.c").write_text(OTHER)
    subprocess.run(["gcc", "-O1", "-fopenmp", "-shared", "-fPIC", "-o", tmp_path / "other.so", tmp_path / "other.c"], check=True)
    onnx.save(convolutions(True, batch=2), tmp_path / "net.onnx")
    run_alone("""
        import ctypes
        def load():
            library = ctypes.CDLL(sys.argv[2])
            library.sum_up.restype = ctypes.c_long
            return library
        if sys.argv[3] == "before": other = load()
        one = open_session(sys.argv[1], all="1")
        x = numpy.ones((2, 64, 14, 14), numpy.float32)
        wanted = one.run(None, {"x0": x})[0]
        if sys.argv[3] == "after": other = load()
        cores, wrong = len(os.sched_getaffinity(0)), []
        def sum_up():
            threads = ctypes.c_int()
            return other.sum_up(ctypes.c_long(1000), ctypes.byref(threads)) == 499500 and threads.value == cores
        def both():
            for _ in range(20):
                if not sum_up() or not numpy.array_equal(one.run(None, {"x0": x})[0], wanted): wrong.append(1)
        both()
        threads = [threading.Thread(target=both) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong
        child = os.fork()
        if child == 0:  # GNU's threads were not forked, ours begin anew
            os._exit(0 if numpy.array_equal(open_session(sys.argv[1], all="1").run(None, {"x0": x})[0], wanted) else 1)
        assert os.waitpid(child, 0)[1] == 0
    """, tmp_path / "net.onnx", tmp_path / "other.so", order, env={**os.environ, "OMP_DYNAMIC": "false"})


@pytest.mark.torch
@pytest.mark.parametrize("order", ["before", "after"])
def test_pytorch_computes_in_the_same_process(tmp_path, order):
    pytest.importorskip("torch")
    onnx.save(convolutions(True, batch=2), tmp_path / "net.onnx")
    run_alone("""
        if sys.argv[2] == "before": import torch
        one = open_session(sys.argv[1], all="1")
        x = numpy.ones((2, 64, 14, 14), numpy.float32)
        wanted = one.run(None, {"x0": x})[0]
        import torch
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64 * 144, 10))
        def score():
            with torch.no_grad(): return network(torch.from_numpy(x)).numpy()
        of_torch, wrong = score(), []
        def both():
            for _ in range(50):
                if not numpy.array_equal(one.run(None, {"x0": x})[0], wanted): wrong.append("ours")
                if not numpy.allclose(score(), of_torch, atol=1e-5): wrong.append("torch")
        both()
        threads = [threading.Thread(target=both) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert not wrong
    """, tmp_path / "net.onnx", order)


# ---- Types ----


def quantized(sparse):
    """Two int8 convolutions in the manner of ONNX Runtime's quantizer, each between QuantizeLinear and DequantizeLinear."""
    weights, nodes = [], []
    for name, of, dtype in (("s", 0.03, numpy.float32), ("z", 120, numpy.uint8), ("ws", 0.002, numpy.float32), ("wz", 0, numpy.int8)):
        weights.append(numpy_helper.from_array(numpy.array(of, dtype), name))
    for k in range(2):
        values = numpy_helper.to_array(tensor(f"w{k}", 64, 64, 3, 3, sparse=sparse, seed=k))
        weights.append(numpy_helper.from_array(numpy.clip(numpy.round(values / 0.002), -127, 127).astype(numpy.int8), f"w{k}"))
        nodes += [helper.make_node("QuantizeLinear", [f"x{k}", "s", "z"], [f"q{k}"], f"quantize{k}"),
                  helper.make_node("DequantizeLinear", [f"q{k}", "s", "z"], [f"d{k}"], f"dequantize{k}"),
                  helper.make_node("DequantizeLinear", [f"w{k}", "ws", "wz"], [f"wd{k}"], f"weights{k}"),
                  helper.make_node("Conv", [f"d{k}", f"wd{k}"], [f"x{k + 1}"], f"conv{k}", pads=[1] * 4)]
    nodes += [helper.make_node("QuantizeLinear", ["x2", "s", "z"], ["q2"], "quantize2"),
              helper.make_node("DequantizeLinear", ["q2", "s", "z"], ["y"], "dequantize2")]
    shape = ["n", 64, 14, 14]
    return make(nodes, [("x0", FLOAT, shape)], [("y", FLOAT, shape)], weights)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("options", [ALL, {}], ids=["whole", "what gains"])
def test_int8_networks_answer_within_a_unit(sparse, options):
    model, feeds = quantized(sparse), {"x0": random(2, 64, 14, 14)}
    wanted, found = session(model).run(None, feeds)[0], session(model, options).run(None, feeds)[0]
    assert not numpy.abs(wanted - found).max() > 0.03 * 1.001
    assert not numpy.mean(wanted != found) > 0.02


def test_bf16_is_computed_or_refused(tmp_path):
    """Never silently something else: an answer within bf16's rounding, or an error that says why."""
    model, feeds = convolutions(True), {"x0": random(2, 64, 14, 14)}
    wanted = session(model).run(None, feeds)[0]
    try:
        one = session(model, {"all": "1", "dtype": "bf16"})
        one.disable_fallback()
        found = one.run(None, feeds)[0]
    except Exception as error:
        assert "bf16" in str(error) and "Lacuna" in str(error)
        return
    assert not numpy.abs(wanted - found).max() > 2e-2 * numpy.abs(wanted).max()
