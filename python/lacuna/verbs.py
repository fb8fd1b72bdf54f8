# SPDX-License-Identifier: Apache-2.0
"""What the functions of `_verbs.py` do: keywords to options, one call of the library, outputs. The work is all in the library."""
import os

from . import arrays, files, folders, jobs, keywords, samples, training
from .errors import failure
from .files import json_text, write_text
from .library import NULL, call, context, ffi, lib, options, path_bytes, sized
from .model import opened
from .options import fill, number_of_bytes, read_pattern, run_fields, with_engine
from .report import Record, Report, record

AT_RUN_TIME = "dynamic-int8"  # the value of `quantize` that needs no samples
OUTPUTS = ("output", "plot", "save_permutation", "json", "curve", "roofline", "measure_costs", "trace")


def _check_outputs(given):
    """Refuses outputs that exist before the long work; the library refuses them again when it writes."""
    for option in OUTPUTS:
        path = given.get(option)
        if path is not None and os.path.lexists(path) and not given.get("force"):
            raise failure(f"{os.fspath(path)}: it exists already", "EXISTS", "FORCE", "force=True replaces it")


def _max_memory(given):
    return number_of_bytes("max_memory", given["max_memory"]) if given.get("max_memory") is not None else 0


def _open(model, given, fold=True):
    """The network, its computed weights stored as `fold` says."""
    made = opened(model, lenient=bool(given.get("lenient")))
    if fold and given.get("fold") is not False:
        made.fold(everything=bool(given.get("fold")), max_memory=_max_memory(given))
    return made


def _options(given, kept):
    """lac_options of the keywords."""
    made = options("lac_options")
    kept.append(made)
    fill(made, "lac_options", with_engine(given), kept)
    if given.get("pattern") is not None:
        read_pattern(made, given["pattern"])
    return made


def _calibration(given, model, kept):
    """lac_calibration of the keywords. Without `calibration` it is on synthetic images, which is optional where no keyword wants
    them; NULL with no_calibration, and where the score needs none."""
    data, score = given.get("calibration"), given.get("score")
    wants = [name for name in ("calibration_samples", "calibration_copies", "calibration_constant", "solve", "keep_dense", "max_drop", "recalibrate",
                               "refine", "refine_steps", "curve", "mean", "std", "resize", "crop", "quantize")
             if given.get(name) is not None and (name, given[name]) not in (("solve", False), ("quantize", AT_RUN_TIME))]
    optional = data is None and score is None and not wants
    if data is not None and given.get("no_calibration"):
        raise failure("calibration and no_calibration=True: wanted one")
    if given.get("calibration_synthetic") and (data is None or isinstance(data, str) and data == "synthetic"):
        raise failure("calibration_synthetic=True: it goes with calibration=DATA")
    if given.get("no_calibration") and wants:
        raise failure(f"{wants[0]}={given[wants[0]]!r}: it goes with calibration", cure="calibration=DATA")
    plain = score is not None and (not isinstance(score, str) or score in ("magnitude", "random") or score.endswith(".npz"))
    if given.get("no_calibration") or (data is None and plain and not wants):
        return NULL
    data = "synthetic" if data is None else data
    made = options("lac_calibration")
    fill(made, "lac_calibration", given, kept)
    made.curve = given.get("curve") is not None
    made.optional = optional
    if isinstance(data, str) and data == "synthetic":
        made.synthetic = True
        made.samples = given.get("calibration_samples") or 0
    elif samples.is_path(data):
        kept.append(path_bytes(data))
        made.data = kept[-1]
    else:
        made.from_memory, held = samples.lac_samples(data, model, given.get("calibration_samples"))
        kept.append(held)
        if given.get("calibration_samples") is None:
            made.samples = min(made.samples, made.from_memory.arrays[0].shape[0])
    kept.append(made)
    return made


def _quantization(given, kept):
    """lac_quantization of the keywords, NULL without `quantize`."""
    lone = [name for name in ("quantize_range", "quantize_activations") if given.get(name) is not None]
    if lone and given.get("quantize") in (None, AT_RUN_TIME):
        raise failure(f"{lone[0]}={given[lone[0]]!r}: it goes with quantize=\"qdq-int8\"")
    if given.get("quantize") is None:
        return NULL
    if given["quantize"] not in ("qdq-int8", AT_RUN_TIME):
        raise failure(f"quantize={given['quantize']!r}: wanted qdq-int8 or {AT_RUN_TIME}")
    if given.get("quantize_activations") not in (None, "uint8", "int8"):
        raise failure(f"quantize_activations={given['quantize_activations']!r}: wanted uint8 or int8")
    made = options("lac_quantization")
    fill(made, "lac_quantization", given, kept)
    made.is_signed = given.get("quantize_activations") == "int8"
    kept.append(made)
    return made


def _report(function, *arguments):
    """The report that a function of the library makes."""
    made = ffi.new("lac_report **")
    call(function, *arguments, made)
    return ffi.gc(made[0], lib.lac_report_destroy)


def _write(report, given):
    """The files that the keywords name."""
    force = bool(given.get("force"))
    if given.get("plot") is not None:
        report.plot(given["plot"], force=force)
    if given.get("curve") is not None:
        report.plot_curve(given["curve"], force=force)
    if given.get("save_permutation") is not None:
        report.save_permutation(given["save_permutation"], force=force)
    if given.get("json") is not None:
        write_text(given["json"], report.to_json(), force)
    if given.get("output") is not None:
        report.model.save(given["output"], force=force)
    return report


def prune(model, *, progress=None, **given):
    """lac_prune; a folder of Hugging Face goes through its module."""
    if folders.is_folder(model):
        return _prune_folder(model, given, progress)
    _check_outputs(given)

    def work():
        kept = []
        network = _open(model, given)
        how = _options(given, kept)
        how.quantization, how.calibration = _quantization(given, kept), _calibration(given, network, kept)
        how.correct = given.get("solve") is not False
        return Report(_report("lac_prune", network.pointer, how), network)
    return _write(jobs.run(work, progress), given)


def _prune_folder(path, given, progress):
    """lacuna.folders.prune of the keywords that were given."""
    given = {name: value for name, value in given.items() if value is not None}
    output, report_path, force = given.pop("output", None), given.pop("json", None), bool(given.pop("force", False))
    if output is None:
        raise failure(f"{os.fspath(path)}: a folder of Hugging Face, whose new folder has no name", cure="output=FOLDER")
    taken = sorted({"plot", "save_permutation", "curve", "quantize", "quantize_range", "quantize_activations", "fold", "lenient"} & set(given))
    if taken:
        raise failure(f"{os.fspath(path)}: a folder of Hugging Face, which takes no {taken[0]}", "UNSUPPORTED")
    if given.pop("no_calibration", False) and given.get("calibration") is not None:
        raise failure("calibration and no_calibration=True: wanted one")
    report = folders.prune(path, output, force=force, progress=progress, **given)
    if report_path is not None:
        write_text(report_path, report.to_json(), force)
    return report


def quantize(model, *, progress=None, **given):
    """lac_prune with lac_quantization."""
    if given.get("quantize") is None:
        given["quantize"] = "qdq-int8"
    if given.get("calibration") is None and given["quantize"] != AT_RUN_TIME:
        raise failure("quantize: ranges of activations come from samples of the inputs", "BAD_ARGUMENT", "CALIBRATION",
                      "calibration=DATA")
    return prune(model, progress=progress, **given)


def permute(model, *, progress=None, **given):
    """lac_permute, or lac_permutation_apply."""
    _check_outputs(given)
    saved = given.get("apply"), given.get("invert")
    if None not in saved:
        raise failure("apply and invert: only one of them can be done")

    def work():
        kept = []
        network = _open(model, given)
        how = _options(given, kept)
        if saved == (None, None):
            return Report(_report("lac_permute", network.pointer, how), network)
        path = path_bytes(saved[0] if saved[0] is not None else saved[1])
        return Report(_report("lac_permutation_apply", network.pointer, path, saved[1] is not None, how), network)
    return _write(jobs.run(work, progress), given)


def check(model, *, progress=None, **given):
    """lac_check."""
    _check_outputs(given)

    def work():
        kept, original = [], None
        network = _open(model, given, fold=given.get("fold") is True)
        if given.get("against") is not None:
            original = _open(given["against"], given, fold=given.get("fold") is True)
            if given.get("fold") is not False:
                call("lac_model_fold_like", original.pointer, network.pointer, _max_memory(given), context())
        other = original.pointer if original else NULL
        return Report(_report("lac_check", network.pointer, other, _options(given, kept)), network)
    return _write(jobs.run(work, progress), given)


def inspect(model, *, progress=None, **given):
    """lac_inspect, or lac_inspect_why."""
    _check_outputs(given)

    def work():
        kept = []
        network = _open(model, given)
        how = _options(given, kept)
        if given.get("plan"):
            engine = options("lac_engine_options")
            kept += [engine, run_fields(engine.run, given)]
            how.plan = engine
        if given.get("why") is not None:
            return json_text("lac_inspect_why", network.pointer, how, ffi.new("char[]", given["why"].encode()))
        return Report(_report("lac_inspect", network.pointer, how), network)
    found = jobs.run(work, progress)
    return found if isinstance(found, str) else _write(found, given)


def plot(model, *, progress=None, **given):
    """lac_plot of a report of lac_inspect."""
    if given.get("output") is None:
        raise failure("output is missing: where the drawing goes")
    _check_outputs(given)
    drawn = {"plot" if key == "output" else key: value for key, value in given.items()}
    report = inspect(model, progress=progress, **{key: value for key, value in drawn.items() if key != "plot"})
    report.plot(given["output"], force=bool(given.get("force")))


def pack(model, *, progress=None, **given):
    """lac_pack_save."""
    if given.get("output") is None:
        raise failure("output is missing: where the pack goes")
    _check_outputs(given)

    def work():
        kept, made = [], ffi.new("lac_pack_report **")
        network = _open(model, given, fold=False)
        save = "lac_pack_save_context" if given.get("ort") else "lac_pack_save"
        call(save, network.pointer, path_bytes(given["output"]), _options(given, kept), bool(given.get("force")), made)
        report = ffi.gc(made[0], lib.lac_pack_report_destroy)
        if given.get("json") is not None:
            write_text(given["json"], json_text("lac_pack_report_json", report), bool(given.get("force")))
        return record(report)
    return jobs.run(work, progress)


def unpack(path, *, progress=None, **given):
    """lac_pack_restore."""
    if given.get("output") is None:
        raise failure("output is missing: where the ONNX file goes")
    _check_outputs(given)
    return jobs.run(lambda: call("lac_pack_restore", path_bytes(path), path_bytes(given["output"]), bool(given.get("force")), context()),
                    progress)


def evaluate(model, *, progress=None, **given):
    """lac_eval."""
    if given.get("data") is None:
        raise failure("data is missing: labelled images")
    _check_outputs(given)

    def work():
        kept, how, result = [], options("lac_eval_options"), sized("lac_eval_result")
        network = _open(model, given, fold=False)
        fill(how, "lac_eval_options", given, kept)
        kept.append(run_fields(how.run, given))
        path = NULL
        if samples.is_path(given["data"]):
            path = path_bytes(given["data"])
        else:
            how.from_memory, held = samples.lac_samples(given["data"], network, given.get("limit"))
            kept.append(held)
        call("lac_eval", network.pointer, path, how, result)
        if given.get("json") is not None:
            write_text(given["json"], json_text("lac_eval_json", network.pointer, result), bool(given.get("force")))
        return record(result)
    return jobs.run(work, progress)


def finetune(model, *, progress=None, **given):
    """lac_finetune."""
    _check_outputs(given)
    return jobs.run(lambda: training.finetune(_open(model, given), given, _options), progress)


def train(arch, *, progress=None, **given):
    """lac_finetune of a network that lac_network_create makes."""
    _check_outputs(given)
    return jobs.run(lambda: training.train(arch, given, _options), progress)


def compare(model, other=None, *, progress=None, **given):
    """lac_compare."""
    if other is None and given.get("against_ort") is None:
        raise failure("other is missing: the network to compare with", cure="against_ort=LIBRARY compares with ONNX Runtime")
    _check_outputs(given)
    force = bool(given.get("force"))

    def work():
        kept, how, made = [], options("lac_compare_options"), ffi.new("lac_compare_result **")
        networks = [opened(model), opened(other) if other is not None else None]
        fill(how, "lac_compare_options", given, kept)
        with files.arrays_on_disk(given.get("input") or {}) as paths:
            inputs = ffi.new("lac_infer_input[]", len(paths))
            how.inputs, how.n_inputs = inputs if paths else NULL, len(paths)
            for struct, (name, path) in zip(inputs, paths.items()):
                kept += [ffi.new("char[]", name.encode()), path_bytes(path)]
                struct.name, struct.path = kept[-2:]
            call("lac_compare", networks[0].pointer, networks[1].pointer if networks[1] else NULL, how, made)
        result = ffi.gc(made[0], lib.lac_compare_result_destroy)
        if given.get("plot") is not None:
            call("lac_compare_plot", result, path_bytes(given["plot"]), force)
        if given.get("json") is not None:
            write_text(given["json"], json_text("lac_compare_json", result), force)
        return record(result)
    return jobs.run(work, progress)


# The options of each kind of data.
DATA = {"imagenet": "lac_imagenet_options", "synthetic": "lac_synthetic_options"}


def data(kind, source, *, progress=None, **given):
    """lac_imagenet_convert, lac_synthetic_save or lac_synthetic_images."""
    if kind not in DATA:
        raise failure(f"kind={kind!r}: wanted {' or '.join(DATA)}")
    own = keywords.FIELDS[DATA[kind]]
    for other, struct in DATA.items():
        for option in keywords.FIELDS[struct]:
            if option not in own and option != "force" and given.get(option) is not None:
                raise failure(f"{option}={given[option]!r}: it goes with {other!r}")
    return jobs.run(lambda: (_imagenet if kind == "imagenet" else _synthetic)(source, given), progress)


def _imagenet(source, given):
    """Shards in a folder, where an earlier conversion goes on."""
    if given.get("output") is None:
        raise failure("output is missing: the folder where the shards go")
    kept, how, result = [], options("lac_imagenet_options"), sized("lac_imagenet_result")
    fill(how, "lac_imagenet_options", given, kept)
    call("lac_imagenet_convert", path_bytes(source), path_bytes(given["output"]), how, result)
    return record(result)


def _synthetic(source, given):
    """Images for a network's input: an array, or a file."""
    _check_outputs(given)
    kept, how = [], options("lac_synthetic_options")
    fill(how, "lac_synthetic_options", given, kept)
    network = opened(source)
    if given.get("output") is not None:
        call("lac_synthetic_save", network.pointer, path_bytes(given["output"]), how, bool(given.get("force")))
        return Record(images=None)
    made = ffi.new("lac_array *")
    call("lac_synthetic_images", network.pointer, how, made)
    try:
        return Record(images=arrays.view(made.dtype, arrays.shape_of(made), made.data, made.size_bytes).copy())
    finally:
        lib.lac_session_release(made, 1)


def _shapes(given, kept):
    """lac_engine_shape[n] of input_shape={name: sizes}."""
    sizes = given.get("input_shape") or {}
    if not hasattr(sizes, "items"):
        texts = [sizes] if isinstance(sizes, str) else sizes
        pairs = [word.rpartition("=")[::2] for word in texts]
        sizes = {name: [-1 if size == "?" else int(size) for size in shape.split("x")] for name, shape in pairs}
    made = ffi.new("lac_engine_shape[]", len(sizes))
    for shape, (name, values) in zip(made, sizes.items()):
        word = ffi.new("char[]", name.encode())
        kept.append(word)
        shape.name, shape.rank = word, len(values)
        for axis, size in enumerate(values):
            shape.shape[axis] = -1 if size is None else size
    kept.append(made)
    return made, len(sizes)


def bench(model, *, progress=None, **given):
    """lac_bench; with `measure_costs`, lac_bench_measure_costs."""
    _check_outputs(given)
    force = bool(given.get("force"))

    def costs():
        write_text(given["measure_costs"], json_text("lac_bench_measure_costs", context()), force)

    def work():
        kept, how, made, pattern = [], options("lac_bench_options"), ffi.new("lac_bench_result **"), options("lac_options")
        network = opened(model, lenient=bool(given.get("lenient")))
        network.fold(everything=True, max_memory=_max_memory(given))
        fill(how, "lac_bench_options", given, kept)
        kept.append(run_fields(how.run, given))
        read_pattern(pattern, given.get("pattern") or "2:4")
        how.n, how.m = pattern.n, pattern.m
        how.shapes, how.n_shapes = _shapes(given, kept)
        call("lac_bench", network.pointer, how, made)
        result = ffi.gc(made[0], lib.lac_bench_result_destroy)
        if given.get("plot") is not None:
            call("lac_bench_plot", result, path_bytes(given["plot"]), force, context())
        if given.get("roofline") is not None:
            call("lac_bench_roofline", result, path_bytes(given["roofline"]), force)
        if given.get("json") is not None:
            write_text(given["json"], json_text("lac_bench_json", result), force)
        return record(result)
    return jobs.run(work if given.get("measure_costs") is None else costs, progress)
