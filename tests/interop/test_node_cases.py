# SPDX-License-Identifier: Apache-2.0
"""The ONNX standard's own node tests, made by the onnx package, on the engines.

`lacuna infer --engine plain` claims to be the definition of right, and `--engine auto` to run all that it runs, so what
they compute has to be what the standard says, within the standard's tolerance and in the standard's element types. A case may be refused, because nobody declared the
operator, one of its attributes or an element type: then the error has to say so, and all refusals of an engine together
stay under MOST_REFUSED. Cases with sequences, optionals, text or complex numbers and those of other domains than ONNX's own are left out:
no array in a file could hold them.

`python tests/interop/test_node_cases.py ENGINE` prints the counts of every operator, and with names each case of these.
"""

import collections
import dataclasses
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import tempfile
import warnings

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.backend.test.case import node as standard
from onnx.backend.test.runner import Runner

MOST_REFUSED = {"plain": 50, "auto": 50}  # cases that may be refused by an engine
# NumPy transforms float32 in float32: what is 0 comes out as 2e-7, and the standard's test holds us to that.
# NumPy rounds every step of float16, and we what is cast: the last bit differs, as that of ONNX Runtime does.
NOISE = {
    "test_dft_inverse": 1e-6,
    "test_dft_inverse_opset19": 1e-6,
    "test_attention_4d_causal_fp16_expanded": 5e-4,
}

TYPE = TensorProto.DataType
NO_ARRAY = {TYPE.STRING, TYPE.COMPLEX64, TYPE.COMPLEX128, TYPE.UNDEFINED}


@dataclasses.dataclass
class Case:
    name: str
    model: onnx.ModelProto
    inputs: list
    outputs: list
    rtol: float
    atol: float
    function: str = ""

    @property
    def operator(self):
        """Of a function that was written out in simpler operators, the function's."""
        return self.function or self.model.graph.node[0].op_type


def is_array(value):
    return value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.elem_type not in NO_ARRAY


def is_applicable(case):
    graph = case.model.graph
    domains = {node.domain for node in graph.node}
    return domains <= {"", "ai.onnx"} and all(is_array(value) for value in [*graph.input, *graph.output])


def make_cases():
    """All applicable cases; what is written out as a function follows the case with the function's own node."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, name, is_package in pkgutil.iter_modules(standard.__path__):
            if not is_package:  # packages are other domains
                importlib.import_module(f"{standard.__name__}.{name}")
    found = []
    function = ""
    for made in standard._NodeTestCases:
        case = Case(made.name, made.model, *made.data_sets[0], made.rtol, made.atol)
        if re.search(r"_expanded(_ver\d+)?$", case.name):
            case.function = function
        else:
            function = case.operator
        if is_applicable(case):
            found.append(case)
    return found


# ---- Running -----------------------------------------------------------------------------------------------------


def as_array(value):
    return onnx.numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def line_of(case, folder):
    """Writes the case's files; its line for infer_main."""
    folder.mkdir()
    fields = [str(folder / "model.onnx"), str(folder / "out")]
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for at, (value, info) in enumerate(zip(case.inputs, case.model.graph.input, strict=True)):
        np.save(folder / f"{at}.npy", as_array(value))
        fields.append(f"{info.name}={folder / f'{at}.npy'}")
    return "\t".join(fields)


def load(path, want):
    got = np.load(path)
    if got.dtype.kind == "V" and got.dtype.itemsize == want.dtype.itemsize:  # NumPy knows no such type by name
        return got.view(want.dtype)
    return got


def judge(case, folder, answer):
    """"passed", "refused" or "wrong", and why."""
    status, _, text = answer.partition("\t")
    if status != "ok":
        return ("refused" if status == "not supported" and text else "wrong"), f"{status}: {text}"
    got, want = [], [as_array(value) for value in case.outputs]
    for value, info in zip(want, case.model.graph.output, strict=True):
        got.append(load(folder / "out" / (re.sub(r"[^A-Za-z0-9_.-]", "_", info.name) + ".npy"), value))
    try:
        Runner.assert_similar_outputs(want, got, rtol=case.rtol, atol=NOISE.get(case.name, case.atol))
    except AssertionError as error:
        return "wrong", " ".join(str(error).split())[:300]
    return "passed", ""


def run_cases(tool, engine, cases, folder):
    """[(case, verdict, why)], all computed by one process."""
    folder.mkdir(exist_ok=True)
    folders = [folder / f"{at}" for at in range(len(cases))]
    lines = [line_of(case, place) for case, place in zip(cases, folders, strict=True)]
    done = subprocess.run([str(tool), engine], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    answers = done.stdout.splitlines()
    assert done.returncode == 0 and len(answers) == len(cases), done.stderr or done.stdout[-500:]
    return [(case, *judge(case, place, answer)) for case, place, answer in zip(cases, folders, answers, strict=True)]


def counts(results):
    table = collections.defaultdict(collections.Counter)
    for case, verdict, _ in results:
        table[case.operator][verdict] += 1
        table["all"][verdict] += 1
    lines = [f"{'operator':30}{'passed':>8}{'refused':>8}{'wrong':>8}"]
    lines += [f"{name:30}{n['passed']:8}{n['refused']:8}{n['wrong']:8}" for name, n in sorted(table.items())]
    return "\n".join(lines)


@pytest.mark.parametrize("engine", MOST_REFUSED)
def test_node_cases_of_the_standard(tool, tmp_path, engine):
    results = run_cases(tool("infer_main"), engine, make_cases(), tmp_path)
    print(counts(results))
    wrong = [f"{case.name}: {why}" for case, verdict, why in results if verdict == "wrong"]
    refused = [case.name for case, verdict, _ in results if verdict == "refused"]
    assert not wrong, "\n".join(wrong)
    assert len(results) > 1500
    assert len(refused) <= MOST_REFUSED[engine], " ".join(refused)


def main(engine, names):
    tool = pathlib.Path(os.environ.get("LAC_BUILD_DIR", "build/release")) / "tests/tools/infer_main"
    with tempfile.TemporaryDirectory() as folder:
        results = run_cases(tool, engine, make_cases(), pathlib.Path(folder))
    for case, verdict, why in results:
        if case.operator in names or verdict in names:
            print(f"{case.operator} {case.name} {verdict}: {why}")
    print(counts(results))


if __name__ == "__main__":
    main(sys.argv[1], set(sys.argv[2:]))
