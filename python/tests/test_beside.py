# SPDX-License-Identifier: Apache-2.0
"""Next to others that compute in the same process: another OpenMP run time whose names are global, PyTorch, ONNX Runtime; in any
order of import, and in a fork."""
import importlib.util
import itertools
import shutil
import subprocess
import sys

import pytest

# The names of OpenMP, as a library that was loaded later has them. Whoever calls them here calls a run time that oneDNN does not.
OTHER = """
#include <stdlib.h>
int omp_get_max_threads(void) { return 5; }
void omp_set_num_threads(int n) { (void)n; abort(); }
void GOMP_parallel(void (*body)(void *), void *data, unsigned n, unsigned flags) { abort(); }
"""
LATER = """
import ctypes, sys, numpy
import lacuna
ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)
images = numpy.random.default_rng(0).random((4, 1, 8, 8), dtype=numpy.float32)
one, two = (lacuna.Session(sys.argv[1], threads=threads).run(None, {"image": images})[0] for threads in (1, 2))
assert abs(one - two).max() < 1e-5
"""
FORK = """
import importlib, os, sys, time
for name in sys.argv[2:]:
    importlib.import_module(name)
import lacuna, numpy
images = numpy.random.default_rng(0).random((4, 1, 8, 8), dtype=numpy.float32)

def others():
    if "torch" in sys.argv:
        import torch
        assert torch.randn(300, 300).mm(torch.randn(300, 300)).isfinite().all()
    if "onnxruntime" in sys.argv:
        import onnxruntime
        onnxruntime.InferenceSession(sys.argv[1]).run(None, {"image": images})
    if "openvino" in sys.argv:
        import openvino
        assert openvino.Core().compile_model(sys.argv[1], "CPU")([images])[0].shape == (4, 10)
    if "tensorflow" in sys.argv:
        import tensorflow
        assert tensorflow.linalg.matmul(tensorflow.ones([300, 300]), tensorflow.ones([300, 300]))[0, 0] == 300

def ours(threads):
    return lacuna.Session(sys.argv[1], threads=threads).run(None, {"image": images})[0]

others()
wanted = ours(2)
child = os.fork()
if child == 0:
    os._exit(0 if abs(ours(1) - wanted).max() < 1e-5 else 1)
ends = time.monotonic() + 60
while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
    if time.monotonic() > ends:
        os.kill(child, 9)
        sys.exit("the fork hangs")
    time.sleep(0.01)
assert done[1] == 0
others()
assert (ours(2) == wanted).all()
"""


def run(program, *arguments):
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_a_later_run_time_is_none_of_ours(digits, tmp_path):
    if not shutil.which("cc"):
        pytest.skip("no compiler")
    (tmp_path / "other.c").write_text(OTHER)
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", tmp_path / "other.so", tmp_path / "other.c"], check=True)
    run(LATER, digits, tmp_path / "other.so")


ORDERS = [*itertools.permutations(["lacuna", "torch", "onnxruntime"]),
          *(order for name in ("openvino", "tensorflow") for order in itertools.permutations(["lacuna", name])),
          *itertools.permutations(["lacuna", "openvino", "tensorflow", "torch"])]


@pytest.mark.torch
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_any_order_of_import_and_a_fork(order, digits):
    for name in order:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"no {name}")
    run(FORK, digits, *order)


def test_the_import_is_quick():
    """What takes milliseconds to import waits until it is needed."""
    code = "import sys, lacuna; print(*sorted({'json', 'logging', 'numpy', 'onnx', 'shutil', 'subprocess', 'tempfile', 'torch', 'typing'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-S", "-c", "import sys; sys.path = sys.argv[1:]; " + code, *sys.path], capture_output=True, text=True, check=True)
    assert not run.stdout.strip()
