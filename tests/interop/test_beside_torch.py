# SPDX-License-Identifier: Apache-2.0
"""Sessions in a process that also computes with PyTorch: loaded before it or after it, run alternately, and in a fork."""

import subprocess
import sys

import pytest
from built import ROOT, build_dir
from test_bindings import declarations  # noqa: F401  pylint: disable=unused-import

pytestmark = pytest.mark.torch

PROGRAM = '''
import os, pathlib, sys, time
order, header, library, folder = sys.argv[1:5]
sys.path.insert(0, f"{folder}/tests/interop")
import cffi, numpy
from test_bindings import Calls

ffi = cffi.FFI()
ffi.cdef(pathlib.Path(header).read_text())
if order == "torch first":
    import torch
lib = ffi.dlopen(library)
if order == "torch last":
    import torch
call = Calls(ffi, lib)
images = numpy.random.default_rng(0).random((3, 1, 8, 8), dtype=numpy.float32)
model = ffi.new("lac_model **")
call("lac_model_load", f"{folder}/examples/digits/digits.onnx".encode(), ffi.NULL, model)
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(576, 10))

def session(threads):
    made, options = ffi.new("lac_session **"), call.options("session_options")
    options.run.threads = threads
    call("lac_session_create", model[0], options, made)
    return made

def scores(of):
    inputs, _ = call.array(images)
    found = numpy.zeros((3, 10), numpy.float32)
    outputs, _ = call.array(found)
    call("lac_session_run", of[0], inputs, 1, outputs, 1)
    return found

def torch_scores():
    with torch.no_grad():
        return network(torch.from_numpy(images)).numpy()

one, two = session(1), session(2)
wanted, of_torch = scores(one), torch_scores()
for _ in range(20):  # alternately
    assert (scores(one) == wanted).all() and numpy.allclose(scores(two), wanted, atol=1e-5)
    assert numpy.allclose(torch_scores(), of_torch, atol=1e-5)

def child():
    assert (scores(one) == wanted).all()
    torch.set_num_threads(1)  # its own threads were not forked, either
    assert numpy.allclose(torch_scores(), of_torch, atol=1e-5)
    assert (scores(session(1)) == wanted).all()
    try:
        scores(two)
    except ValueError as failure:
        assert "forked" in failure.args[0], failure
    else:
        raise AssertionError("two threads in a fork")

process = os.fork()
if process == 0:
    try:
        child()
        os._exit(0)
    except BaseException as failure:
        print(repr(failure), file=sys.stderr, flush=True)
        os._exit(1)
ends = time.monotonic() + 60
while (done := os.waitpid(process, os.WNOHANG))[0] == 0:
    if time.monotonic() > ends:
        os.kill(process, 9)
        sys.exit("the fork hangs")
    time.sleep(0.01)
assert done[1] == 0, done
assert (scores(one) == wanted).all() and numpy.allclose(scores(two), wanted, atol=1e-5)
assert numpy.allclose(torch_scores(), of_torch, atol=1e-5)
for each in (one, two):
    lib.lac_session_destroy(each[0])
lib.lac_model_destroy(model[0])
'''


@pytest.mark.parametrize("order", ["torch first", "torch last"])
def test_both_run_in_one_process_and_in_its_fork(order, declarations, tmp_path):  # noqa: F811
    header = tmp_path / "lacuna.h"
    header.write_text(declarations)
    done = subprocess.run([sys.executable, "-c", PROGRAM, order, header, build_dir() / "liblacuna.so", ROOT],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
