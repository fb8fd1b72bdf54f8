# SPDX-License-Identifier: Apache-2.0
"""lacuna.h, read by generators of bindings: cffi parses it after `cc -E`, and a program of Python alone loads a network, prunes
it with arrays in memory, runs it and asks for the cure of an error. SWIG and bindgen wrap every function, and the ABI only grows."""

import json
import os
import re
import shutil
import subprocess

import numpy
import pytest
from built import ROOT, build_dir

cffi = pytest.importorskip("cffi")
TYPES = {"float32": "LAC_DTYPE_F32", "int64": "LAC_DTYPE_I64"}


@pytest.fixture(scope="module")
def declarations(tmp_path_factory):
    """lacuna.h after a preprocessor; the C library's headers are left out, since generators know their types."""
    empty = tmp_path_factory.mktemp("headers")
    for name in ("stdbool.h", "stddef.h", "stdint.h"):
        (empty / name).touch()
    return subprocess.run(["cc", "-E", "-P", "-nostdinc", "-DLAC_DECLARATIONS_ONLY", f"-I{ROOT}/include", f"-I{empty}",
                           f"{ROOT}/include/lacuna/lacuna.h"], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def ffi(declarations):
    made = cffi.FFI()
    made.cdef(declarations)
    return made


@pytest.fixture(scope="module")
def lib(ffi):
    return ffi.dlopen(str(build_dir() / "liblacuna.so"))


class Calls:
    """Calls that raise the library's text, with its hint."""

    def __init__(self, ffi, lib):
        self.ffi, self.lib = ffi, lib

    def __call__(self, name, *args):
        err = self.ffi.new("lac_error *")
        if getattr(self.lib, name)(*args, err) != self.lib.LAC_OK:
            raise ValueError(self.ffi.string(err.text).decode(), self.ffi.string(self.lib.lac_hint_text(err.hint)).decode())

    def options(self, kind):
        made = self.ffi.new(f"lac_{kind} *")
        getattr(self.lib, f"lac_{kind}_init")(made, self.ffi.sizeof(f"lac_{kind}"))
        return made

    def array(self, values, name=None):
        """A lac_array of a NumPy array; keep both."""
        made = self.ffi.new("lac_array *", {"dtype": getattr(self.lib, TYPES[values.dtype.name]), "rank": values.ndim,
                                            "shape": values.shape, "size_bytes": values.nbytes})
        made.data = self.ffi.cast("void *", values.ctypes.data)
        self.kept = self.ffi.new("char[]", name.encode()) if name else self.ffi.NULL
        made.name = self.kept
        return made, self.kept


def test_prunes_with_arrays_and_runs(ffi, lib):
    call = Calls(ffi, lib)
    data = (ROOT / "examples/digits/digits.onnx").read_bytes()
    model, report, session = ffi.new("lac_model **"), ffi.new("lac_report **"), ffi.new("lac_session **")
    source = call.options("load_options")
    kept = source.bytes = ffi.from_buffer(data)
    source.size_bytes = len(data)
    call("lac_model_load", ffi.NULL, source, model)
    samples = numpy.random.default_rng(0).random((64, 1, 8, 8), dtype=numpy.float32)
    images, _keep = call.array(samples, "image")
    calibration, options = call.options("calibration"), call.options("options")
    given = ffi.new("lac_samples *", {"size": ffi.sizeof("lac_samples"), "arrays": images, "n_arrays": 1})
    calibration.from_memory, calibration.samples = given, 64
    options.calibration = calibration
    call("lac_prune", model[0], options, report)
    assert report[0].summary.pruned > 0 and report[0].calibration.samples > 0
    call("lac_session_create", model[0], call.options("session_options"), session)
    for batch in (1, 5):
        inputs, _ = call.array(samples[:batch])
        scores = numpy.zeros((batch, 10), numpy.float32)
        outputs, _ = call.array(scores)
        call("lac_session_run", session[0], inputs, 1, outputs, 1)
        assert list(outputs.shape[0:2]) == [batch, 10] and numpy.isfinite(scores).all() and scores.any()
    lib.lac_session_destroy(session[0])
    lib.lac_report_destroy(report[0])
    lib.lac_model_destroy(model[0])


def test_trains_and_evaluates_from_memory(ffi, lib):
    """A network from a function, pruned and trained on arrays and rows; masks, orders and weights come out as arrays."""
    call, data = Calls(ffi, lib), (ROOT / "examples/digits/digits.onnx").read_bytes()
    asked, rng = [], numpy.random.default_rng(0)
    images, labels = rng.random((48, 1, 8, 8), dtype=numpy.float32), numpy.arange(48) % 10

    @ffi.callback("lac_status(void *, const char *, uint64_t, void *, size_t *, lac_error *)")
    def read(_context, name, offset, to, n, _err):
        asked.append(ffi.string(name))
        n[0] = min(n[0], len(data) - offset, 5000)
        ffi.memmove(to, data[offset:offset + n[0]], n[0])
        return lib.LAC_OK

    @ffi.callback("lac_status(void *, const char *, int64_t, void *, lac_error *)")
    def read_row(_context, _name, row, to, _err):
        ffi.memmove(to, images[row].tobytes(), images[row].nbytes)
        return lib.LAC_OK

    model, source = ffi.new("lac_model **"), call.options("load_options")
    source.read, source.size_bytes = read, len(data)
    call("lac_model_load", ffi.NULL, source, model)
    assert set(asked) == {b""}
    made = [call.array(images, "image"), call.array(labels, "labels")]
    arrays = ffi.new("lac_array[]", [pair[0][0] for pair in made])
    arrays[0].data = ffi.NULL
    samples = ffi.new("lac_samples *", {"size": ffi.sizeof("lac_samples"), "arrays": arrays, "n_arrays": 2, "read_row": read_row})
    recipe = ffi.new("char[]", b"cifar")
    training, tuning, pruning = call.options("train_options"), call.options("finetune_options"), call.options("options")
    training.from_memory, training.batch, training.steps, training.recipe = samples, 16, 3, recipe
    tuning.training, tuning.pruning = training, pruning
    result = ffi.new("lac_finetune_result *", {"size": ffi.sizeof("lac_finetune_result")})
    call("lac_finetune", model[0], ffi.NULL, tuning, result)
    assert result.training.steps == 3 and result.training.images == 48
    scored, how = ffi.new("lac_eval_result *", {"size": ffi.sizeof("lac_eval_result")}), call.options("eval_options")
    how.from_memory = samples
    call("lac_eval", model[0], ffi.NULL, how, scored)
    assert scored.images == 48 and scored.top1 == result.training.top1
    bytes_of, n = ffi.new("const uint8_t **"), ffi.new("size_t *")
    tensor = ffi.new("lac_tensor *", {"size": ffi.sizeof("lac_tensor")})
    assert lib.lac_mask_count(result.mask) > 0
    for at in range(lib.lac_mask_count(result.mask)):
        weight = lib.lac_mask_name(result.mask, at)
        call("lac_mask_bytes", result.mask, weight, bytes_of, n)
        mask = numpy.frombuffer(ffi.buffer(bytes_of[0], n[0]), numpy.uint8)
        call("lac_model_find_tensor", model[0], weight, tensor)
        values = numpy.frombuffer(ffi.buffer(tensor.bytes, tensor.size_bytes), numpy.float32).reshape(list(tensor.shape)[:tensor.rank])
        assert 2 * mask.sum() == mask.size and (values.ravel()[mask == 0] == 0).all()
        order = numpy.zeros(values.shape[1], numpy.int32)
        call("lac_report_order", result.pruning, weight, 1, ffi.from_buffer("int32_t[]", order), order.size)
        assert sorted(order) == list(range(order.size))
        twice = 2 * values
        array, _ = call.array(twice, ffi.string(weight).decode())
        call("lac_model_set_tensor", model[0], array)
        call("lac_model_find_tensor", model[0], weight, tensor)
        assert (numpy.frombuffer(ffi.buffer(tensor.bytes, tensor.size_bytes), numpy.float32) == twice.ravel()).all()
    lib.lac_finetune_result_clear(result)
    lib.lac_model_destroy(model[0])


def test_no_null_is_followed(ffi, lib):
    """Every function that fails is handed NULL for all pointers: it says so, or had nothing to do."""
    called = 0
    for function in (ROOT / "src/lacuna.symbols").read_text().split():
        kind = ffi.typeof(getattr(lib, function))
        if kind.result.cname != "lac_status" or not kind.args or kind.args[-1].cname != "lac_error *":
            continue
        nulls = [ffi.NULL if argument.kind in ("pointer", "function") else 0 for argument in kind.args[:-1]]
        err, called = ffi.new("lac_error *"), called + 1
        status = getattr(lib, function)(*nulls, err)
        assert status == err.status and (status == 0 or len(ffi.string(err.text)) > 10), function
    assert called > 50


def test_an_error_has_its_cure(ffi, lib):
    call = Calls(ffi, lib)
    model, path = ffi.new("lac_model **"), str(ROOT / "examples/digits/digits.onnx").encode()
    call("lac_model_load", path, ffi.NULL, model)
    options, report = call.options("options"), ffi.new("lac_report **")
    options.max_memory = 1
    with pytest.raises(ValueError, match="bytes are allowed") as failure:
        call("lac_prune", model[0], options, report)
    assert failure.value.args[1] == "options.max_memory"
    options.max_memory, options.size = 0, 0
    with pytest.raises(ValueError, match="lac_options.size is 0"):
        call("lac_prune", model[0], options, report)
    lib.lac_model_destroy(model[0])


@pytest.mark.skipif(not shutil.which("swig"), reason="no SWIG")
def test_swig_wraps_every_function(declarations, tmp_path):
    (tmp_path / "all.h").write_text(declarations)
    (tmp_path / "lacuna.i").write_text('%module lacuna\n%include <stdint.i>\n%include "all.h"\n')
    subprocess.run(["swig", "-python", "-w314,322,451", "-Werror", "-o", "wrap.c", "lacuna.i"], cwd=tmp_path, check=True)
    wrapped = (tmp_path / "wrap.c").read_text()
    exported = (ROOT / "src/lacuna.symbols").read_text().split()
    assert [name for name in exported if f"_wrap_{name}(" not in wrapped] == []


def layout(ffi, declarations):
    """{kind: {name: what a compiled program relies on}}: structs, enums and prototypes."""
    structs, enums = {}, {}
    for name in set(ffi.list_types()[0]) & set(re.findall(r"^\} (lac_\w+);", declarations, re.M)):
        kind = ffi.typeof(name)
        if kind.kind == "struct" and kind.fields is not None:
            structs[name] = {"size": ffi.sizeof(kind),
                             "fields": [[field, info.type.cname, info.offset] for field, info in kind.fields]}
        elif kind.kind == "enum":
            enums[name] = {text: number for number, text in kind.elements.items() if not text.endswith("_COUNT")}
    calls = re.findall(r"^([\w *]+?[ *]+)(lac_\w+)\(([^;{}]*)\);", declarations, re.M)
    return {"structs": structs, "enums": enums,
            "functions": {name: " ".join(f"{result}({arguments})".split()) for result, name, arguments in calls}}


def breaks(then, now):
    """What a program that was built against `then` would miss in `now`: fields keep their places, later ones lie after the
    struct's former end, and enums and prototypes keep what they had (docs/decisions/structs-that-grow.md)."""
    broken = []
    for name, old in then["structs"].items():
        new = now["structs"].get(name, {"size": 0, "fields": []})
        n, end = len(old["fields"]), old["size"]
        if old["fields"][-1][0] == "reserved":  # later fields take its bytes
            n, end = n - 1, old["fields"][-1][2]
        if new["fields"][:n] != old["fields"][:n] or any(offset < end for _, _, offset in new["fields"][n:]):
            broken.append(name)
        elif new["size"] != old["size"] and old["fields"][0][0] != "size":
            broken.append(f"{name} has no size, and grew")
    for kind in ("enums", "functions"):
        for name, old in then[kind].items():
            new = now[kind].get(name)
            same = new == old if kind == "functions" else new and all(new.get(text) == number for text, number in old.items())
            broken += [] if same else [name]
    return broken


def test_the_abi_only_grows(ffi, declarations):
    """Against tests/fixtures/abi.json, which LAC_UPDATE_ABI=1 writes anew."""
    path, now = ROOT / "tests/fixtures/abi.json", layout(ffi, declarations)
    if os.environ.get("LAC_UPDATE_ABI"):
        kinds = [f'"{kind}": {{\n' + ",\n".join(f'"{name}": {json.dumps(now[kind][name])}' for name in sorted(now[kind])) + "}"
                 for kind in sorted(now)]
        path.write_text("{" + ",\n".join(kinds) + "}\n")
    then = json.loads(path.read_text())
    assert not breaks(then, now)
    for kind in ("structs", "functions"):
        assert set(then[kind]) == set(now[kind]), "run with LAC_UPDATE_ABI=1"


# What a change of the headers could break: (what, its name, a pattern in the declarations, what it becomes).
BREAKS = [
    ("two fields change places", "lac_session_options", r"  int n_plans;\n  int n_copies;\n", "  int n_copies;\n  int n_plans;\n"),
    ("a field has another type", "lac_bench_options", r"  int runs;", "  int64_t runs;"),
    ("a field has another name", "lac_bench_options", r"  int runs;", "  int n_runs;"),
    ("a field is gone", "lac_session_facts", r"  int n_engines;\n", ""),
    ("a field comes in the middle", "lac_session_facts", r"  int n_engines;\n", "  int n_engines;\n  int64_t tomorrow;\n"),
    ("a struct without size grows", "lac_error has no size, and grew", r"\} lac_error;", "  int tomorrow;\n} lac_error;"),
    ("an enum's value is another", "lac_effort", r"LAC_EFFORT_BEST = 2", "LAC_EFFORT_BEST = 3"),
    ("a parameter is added", "lac_model_save", r"lac_model_save\(lac_model \*model,", "lac_model_save(lac_model *model, int how,"),
    ("a parameter has another type", "lac_report_json", r"lac_report_json\(const lac_report \*report",
     "lac_report_json(const lac_model *report"),
    ("a function is gone", "lac_text_free", r"\n *void lac_text_free\([^;]*;", ""),
]
RENAMES = ("a field has another name",)  # breaks sources alone: abidiff calls it harmless


def stub(folder, name, declarations):
    """A shared library of empty functions with these declarations and their types, for abidiff."""
    bodies = re.sub(r"^((?!typedef)[\w *]+?[ *]lac_\w+\([^;{}]*\));", r"\1 { __builtin_trap(); }", declarations, flags=re.M)
    (folder / f"{name}.c").write_text("#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n" + bodies)
    subprocess.run(["cc", "-g", "-O0", "-w", "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c"], cwd=folder, check=True)
    return folder / f"{name}.so"


@pytest.mark.skipif(not shutil.which("abidiff"), reason="no abidiff")
def test_every_kind_of_break_is_seen(ffi, declarations, tmp_path):
    """abi.json is small, and sees what abidiff (libabigail) sees."""
    then, good = layout(ffi, declarations), stub(tmp_path, "good", declarations)
    assert not breaks(then, then) and subprocess.run(["abidiff", good, good], check=False).returncode == 0
    for number, (what, name, pattern, text) in enumerate(BREAKS):
        changed, n = re.subn(pattern, text, declarations, count=1)
        assert n == 1, what
        other = cffi.FFI()
        other.cdef(changed)
        assert name in breaks(then, layout(other, changed)), what
        done = subprocess.run(["abidiff", good, stub(tmp_path, f"bad{number}", changed)], capture_output=True, text=True, check=False)
        assert what in RENAMES or done.returncode & 12, (what, done.stdout)  # 4: a change, 8: an incompatible one


@pytest.mark.skipif(not shutil.which("bindgen"), reason="no bindgen")
def test_bindgen_wraps_every_function(tmp_path):
    """Rust's generator reads the header itself."""
    made = tmp_path / "lacuna.rs"
    subprocess.run(["bindgen", "--allowlist-function", "lac_.*", "--allowlist-type", "lac_.*", "-o", made, ROOT / "include/lacuna/lacuna.h", "--",
                    "-DLAC_DECLARATIONS_ONLY", f"-I{ROOT}/include"], check=True)
    text = made.read_text()
    exported = (ROOT / "src/lacuna.symbols").read_text().split()
    assert [name for name in exported if not re.search(rf"pub fn {name}\(", text)] == []
    assert re.search(r"pub struct lac_options \{\s+pub size: size_t,", text)
