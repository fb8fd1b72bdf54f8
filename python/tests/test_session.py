# SPDX-License-Identifier: Apache-2.0
"""Sessions: the call of ONNX Runtime, its answers, any number of threads, arrays of any kind."""
import concurrent.futures
import os

import numpy
import pytest

import lacuna


@pytest.fixture(scope="module", name="session")
def make_session(digits):
    return lacuna.Session(digits, threads=1)


def test_answers_are_those_of_onnx_runtime(session, digits, images):
    other = pytest.importorskip("onnxruntime").InferenceSession(str(digits), providers=["CPUExecutionProvider"])
    for names in (None, ["scores"]):
        (mine,), (theirs,) = (one.run(names, {"image": images}) for one in (session, other))
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype and abs(mine - theirs).max() < 1e-5
    assert [(port.name, port.type, len(port.shape)) for port in session.get_inputs()] == \
        [(port.name, port.type, len(port.shape)) for port in other.get_inputs()]
    assert [port.name for port in session.get_outputs()] == ["scores"]


class Exported:
    """An array that only DLPack reaches."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_any_kind(session, images):
    expected, = session.run(None, {"image": images})
    twisted = numpy.ascontiguousarray(images.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    for array in (twisted, images.astype(numpy.float64), images.astype(">f4"), Exported(images), memoryview(images)):
        assert (session.run(None, {"image": array})[0] == expected).all()
    first = session.run(None, {"image": images[:1]})[0]
    session.run(None, {"image": images[1:2]})
    assert numpy.allclose(first, expected[:1], atol=1e-6), "an answer stays what it was"
    first += 1  # it is the caller's


def test_failures_are_named(session, images):
    with pytest.raises(LookupError, match="image"):
        session.run(None, {})
    with pytest.raises(LookupError, match="no such output; it has scores"):
        session.run(["nothing"], {"image": images})
    with pytest.raises(ValueError, match="image"):
        session.run(None, {"image": images[:, :, :, :4]})
    with pytest.raises(lacuna.Error, match="image"):
        session.run(None, {"image": images.astype(numpy.int64)})
    with pytest.raises(ValueError, match="wanted numbers"):
        session.run(None, {"image": numpy.array(["text"])})


def test_threads_share_a_session(session, images):
    expected = {size: session.run(None, {"image": images[:size]})[0] for size in (1, 3, 8)}

    def work(at):
        size = (1, 3, 8)[at % 3]
        return (session.run(None, {"image": images[:size]})[0] == expected[size]).all()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(240)))
    assert session.about().n_plans <= 16 and session.about().engine == "auto"


def test_memory_does_not_grow(session, images):
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    one = {"image": images[:1]}
    for _ in range(500):
        session.run(None, one)
    before = resident()
    for _ in range(2000):
        session.run(None, one)
    assert resident() - before < 1 << 20


def test_a_forked_process_goes_on(session, images):
    expected, = session.run(None, {"image": images[:2]})
    child = os.fork()
    if child == 0:
        same = (session.run(None, {"image": images[:2]})[0] == expected).all()
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
