# SPDX-License-Identifier: Apache-2.0
"""The other engines' side of bench/compare.py: loads a model, answers once, then runs when it is told to.

    peer_worker.py onnxruntime|openvino|deepsparse|provider MODEL.onnx INPUT_DIR f32|bf16 THREADS [--profile]

The orders and answers are those of engine_worker.c (bench/README.md lists them). Every engine is used as its manual says
for the shortest latency, with buffers bound beforehand where it allows that, and waits in its own manner: a waiting worker is
stopped by compare.py. `provider` is ONNX Runtime with Lacuna's provider: LAC_ORT_LIBRARY is its file, LAC_ORT_OPTIONS its options,
NAME=VALUE with commas between. The interpreter and the engine's library are loaded before any clock starts.
"""
import ctypes
import gc
import json
import os
import pathlib
import re
import signal
import sys
import time

import numpy as np
from inputs import TYPES, file_of, read_input


def status_mb(field):
    found = re.search(rf"^{field}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


class OnnxRuntime:
    def __init__(self, model, dtype, threads, _profile):
        import onnxruntime
        self.library, self.model, self.threads = onnxruntime, model, threads
        self.version, self.precision = onnxruntime.__version__, "f32"
        if dtype != "f32":
            raise SystemExit("no bf16 kernels on processors")

    def load(self):
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        self.session = self.library.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])

    def bind(self, folder):
        self.binding = self.session.io_binding()
        value = self.library.OrtValue.ortvalue_from_numpy
        self.held = {}
        for port in self.session.get_inputs():
            shape = [size if isinstance(size, int) else -1 for size in port.shape]
            array = read_input(file_of(folder, port.name), TYPES[port.type], shape)
            self.held[port.name] = value(array)
            self.binding.bind_ortvalue_input(port.name, self.held[port.name])
        for port in self.session.get_outputs():
            self.binding.bind_output(port.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        names = [port.name for port in self.session.get_outputs()]
        return dict(zip(names, self.binding.copy_outputs_to_cpu()))


class Provider(OnnxRuntime):
    """ONNX Runtime with Lacuna's provider."""
    NAME = "LacunaExecutionProvider"

    def __init__(self, model, dtype, threads, profile):
        super().__init__(model, dtype, threads, profile)
        self.library.register_execution_provider_library(self.NAME, os.environ["LAC_ORT_LIBRARY"])

    def load(self):
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        wanted = dict(each.split("=") for each in os.environ.get("LAC_ORT_OPTIONS", "").split(",") if each)
        options.add_provider_for_devices([d for d in self.library.get_ep_devices() if d.ep_name == self.NAME], wanted)
        self.session = self.library.InferenceSession(self.model, options, enable_fallback=0)


class OpenVino:
    # Where the arithmetic is, by OpenVINO's names: a network is f32 if all of these are.
    HEAVY = {"Convolution", "GroupConvolution", "FullyConnected", "MatMul", "ScaledDotProductAttention"}

    def __init__(self, model, dtype, threads, profile):
        import openvino
        self.library, self.model = openvino, model
        self.version, self.dtype = openvino.__version__.split("-")[0], dtype
        self.options = {"INFERENCE_PRECISION_HINT": dtype, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1",
                        "INFERENCE_NUM_THREADS": str(threads), "PERF_COUNT": "YES" if profile else "NO"}
        self.core = openvino.Core()

    def load(self):
        self.compiled = self.core.compile_model(self.core.read_model(self.model), "CPU", self.options)

    def bind(self, folder):
        self.request, self.held = self.compiled.create_infer_request(), []
        for port in self.compiled.inputs:
            array = read_input(self.find(folder, port), port.element_type.to_dtype(), tuple(port.shape))
            self.held.append(array)
            self.request.set_tensor(port, self.library.Tensor(array, shared_memory=True))

    @staticmethod
    def find(folder, port):
        """A port has several names; the network's is among them."""
        return next(path for path in (file_of(folder, name) for name in port.get_names()) if path.exists())

    @property
    def precision(self):
        """What the heavy operators really work in."""
        found = set()
        for node in self.compiled.get_runtime_model().get_ordered_ops():
            info = node.get_rt_info()
            kind = info["layerType"].astype(str)
            if kind in self.HEAVY:
                found.add(info["runtimePrecision"].astype(str))
        return "+".join(sorted(found))

    def run(self):
        self.request.infer()

    def outputs(self):
        return {name: np.array(self.request.get_tensor(port).data, np.float32)
                for port in self.compiled.outputs for name in port.get_names()}

    def profile(self):
        """Milliseconds of every operator in the last run; a convolution has its weight's shape, [groups,] out, in, kernel."""
        weights = {node.get_friendly_name(): [int(size) for size in node.input(1).get_shape()]
                   for node in self.compiled.get_runtime_model().get_ordered_ops()
                   if "Convolution" in node.get_rt_info()["layerType"].astype(str)}
        return [{"name": one.node_name, "operator": one.node_type, "weight": weights.get(one.node_name),
                 "ms": one.real_time.total_seconds() * 1e3}
                for one in self.request.get_profiling_info() if one.real_time.total_seconds() > 0]


class DeepSparse:
    def __init__(self, model, dtype, threads, _profile):
        import deepsparse
        self.library, self.threads = deepsparse, threads
        self.version, self.precision = deepsparse.__version__, "f32"
        older = pathlib.Path(model).with_suffix(".older.onnx")
        if older.with_suffix(".txt").exists():
            raise SystemExit(older.with_suffix(".txt").read_text())
        self.model = str(older if older.exists() else model)
        self.ports = json.loads(pathlib.Path(model).with_name("ports.json").read_text())
        self.batch = self.ports["inputs"][0][1][0]
        if dtype != "f32":
            raise SystemExit("no bf16 for dense networks")

    def load(self):
        self.engine = self.library.Engine(self.model, batch_size=self.batch, num_cores=self.threads)

    def bind(self, folder):
        self.inputs = [read_input(file_of(folder, name), kind, shape) for name, shape, kind in self.ports["inputs"]]

    def run(self):
        self.results = self.engine.run(self.inputs, val_inp=False)

    def outputs(self):
        return dict(zip(self.ports["outputs"], self.results))


ENGINES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "deepsparse": DeepSparse, "provider": Provider}


def answer(**fields):
    print(json.dumps(fields), flush=True)


def start(engine, folder):
    base, begin = status_mb("VmRSS"), time.perf_counter()
    engine.load()
    planned = time.perf_counter()
    engine.bind(folder)
    first = time.perf_counter()
    engine.run()
    answer(version=engine.version, precision=engine.precision, base_mb=base, load_s=0.0, plan_s=planned - begin,
         first_s=time.perf_counter() - first)


def run_for(engine, seconds):
    """Runs until the time is over, at least once."""
    clock, run, times = time.perf_counter, engine.run, []
    begin = now = clock()
    while not times or now - begin < seconds:
        start_of_run = clock()
        run()
        now = clock()
        times.append(round(1e3 * (now - start_of_run), 4))
    answer(ms=times)


def save(engine, folder):
    values = engine.outputs()
    for name, value in values.items():
        np.ascontiguousarray(value, np.float32).tofile(file_of(folder, name))
    answer(saved=len(values))


def main():
    name, model, folder, dtype, threads = sys.argv[1:6]
    # A waiting worker is stopped by a signal and would not see its parent's end.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    engine = ENGINES[name](model, dtype, int(threads), "--profile" in sys.argv)
    start(engine, folder)
    gc.disable()
    for line in sys.stdin:
        order, _, rest = line.strip().partition(" ")
        if order == "run":
            run_for(engine, float(rest))
        elif order == "save":
            save(engine, rest)
        elif order == "memory":
            answer(peak_mb=status_mb("VmHWM"))
        elif order == "profile":
            answer(operators=engine.profile())
        else:
            break


if __name__ == "__main__":
    main()
