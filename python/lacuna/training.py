# SPDX-License-Identifier: Apache-2.0
"""Keywords of finetune and train to lac_finetune's options, and their result."""
import os

from . import samples
from .errors import failure
from .files import json_text, write_text
from .library import NULL, call, ffi, lib, options, path_bytes, sized, text
from .model import Model
from .options import fill, run_fields
from .report import Record, Report, record

EXCLUDED = (("epochs", "steps"), ("keep_masks", "prune_rest"))


def _train_options(given, kept):
    """lac_train_options of the keywords: those of fine-tuning, of the recipe that is named, or of the network's."""
    arch = given.get("arch")
    usual = given.get("recipe") is None and arch is None
    made = options("lac_train_options", "lac_finetune_training_init" if usual else "lac_train_options_init")
    if usual and given.get("optimizer") is not None:
        made.rate = -1
    if given.get("steps") is not None:
        made.epochs = -1
    fill(made, "lac_train_options", given, kept)
    if given.get("recipe") is None and arch is not None:
        made.recipe = lib.lac_network_recipe(ffi.new("char[]", arch.encode()))
    kept += [made, run_fields(made.run, given)]
    if given.get("boundaries") is not None:
        epochs = given["boundaries"]
        epochs = [float(part) for part in (epochs.split(",") if isinstance(epochs, str) else epochs)]
        kept.append(ffi.new("double[]", epochs))
        made.boundaries, made.n_boundaries = kept[-1], len(epochs)
    if given.get("stop_threshold") is not None:  # a share is said as 0.76, percent as 76
        made.stop_threshold = 100 * given["stop_threshold"] if given["stop_threshold"] <= 1 else given["stop_threshold"]
    made.trace, made.eval_first = given.get("trace") is not None, arch is None or given.get("pretrained") is not None
    return made


def _check(given):
    """Refuses keywords that exclude each other."""
    if given.get("data") is None:
        raise failure("data is missing: labelled images")
    for pair in EXCLUDED:
        if all(given.get(name) is not None for name in pair):
            raise failure(f"{pair[0]} and {pair[1]}: one of them")


def finetune(model, given, read_options):
    """Trains the network, pruned first where it is not; a Record of `training`, `found`, `pruning`, `model` and the counts."""
    _check(given)
    kept = []
    train = _train_options(given, kept)
    path = _data(train, model, given, kept)
    sparse = given.get("sparse") is None or bool(given["sparse"])
    return _run(model, (train, path), {**given, "sparse": sparse}, read_options(given, kept))


def train(arch, given, read_options):
    """Trains a fresh network that fits the data; a Record as finetune's."""
    _check(given)
    given = {**given, "arch": arch}
    if given.get("eval_only") and given.get("pretrained") is None and not given.get("recover"):
        raise failure("eval_only=True: fresh weights say nothing; wanted pretrained=FILE, or recover=True with model_dir=FOLDER")
    kept = []
    how = _train_options(given, kept)
    network = options("lac_network_options")
    fill(network, "lac_network_options", given, kept)
    network.conv_shortcut = given.get("shortcut") == "conv"
    in_memory = not samples.is_path(given["data"])
    path = _data(how, _fresh(network) if in_memory else None, given, kept)
    found = sized("lac_train_data")
    call("lac_train_data_find", path, how, found)
    network.classes, network.image_size = found.classes, found.height
    model = _fresh(network)
    if given.get("pretrained") is not None:
        call("lac_pretrained_read", model.pointer, path_bytes(given["pretrained"]), how.run.context, sized("lac_pretrained"))
    return _run(model, (how, path), given, read_options(given, kept))


def _fresh(network):
    """A lacuna.Model of lac_network_options."""
    made = ffi.new("lac_model **")
    call("lac_network_create", network, made)
    return Model.of(made[0], text(network.name))


def _data(train, model, given, kept):
    """The path of the data; NULL where they are in memory, which the options then have."""
    if samples.is_path(given["data"]):
        return path_bytes(given["data"])
    train.from_memory, held = samples.lac_samples(given["data"], model)
    kept.append(held)
    return NULL


def _run(model, about, given, pruning):
    """lac_finetune with these options."""
    train, path = about
    how = options("lac_finetune_options")
    how.training, how.pruning = train, pruning
    how.sparse = bool(given.get("sparse"))
    how.prune_rest = not given["keep_masks"] if given.get("keep_masks") is not None else given.get("prune_rest") is not False
    how.replay = given.get("plot") is None
    result = ffi.gc(sized("lac_finetune_result"), lib.lac_finetune_result_clear)
    call("lac_finetune", model.pointer, path, how, result)
    made = Record(training=record(result.training), model=model, n_pruned=result.n_pruned, n_rest=result.n_rest,
                  n_zero=result.n_zero, replayed=result.replayed)
    for name in ("found", "pruning"):
        pointer = getattr(result, name)
        setattr(made, name, Report(pointer, model, result) if pointer else None)
    _write(made, result, (train, path, pruning), given)
    return made


def _inspected(model, how):
    """The report of lac_inspect."""
    made = ffi.new("lac_report **")
    call("lac_inspect", model.pointer, how, made)
    return Report(ffi.gc(made[0], lib.lac_report_destroy), model)


def _write(made, result, about, given):
    """The files that the keywords name."""
    force, (train, path, pruning) = bool(given.get("force")), about
    if given.get("trace") is not None:
        write_text(given["trace"], text(result.training.trace), force)
    if given.get("plot") is not None:
        (made.pruning or made.found or _inspected(made.model, pruning)).plot(given["plot"], force=force)
    if given.get("json") is not None:
        arch = given.get("arch")
        words = [b"finetune" if arch is None else b"train", (given.get("pretrained") if arch else made.model.name), arch]
        facts, kept = sized("lac_train_about"), [word if isinstance(word, bytes) else os.fsencode(word) if word else None for word in words]
        kept = [ffi.new("char[]", word) if word else NULL for word in kept]
        facts.verb, facts.model, facts.arch = kept
        facts.data, facts.options = path, train
        facts.layers = result.pruning or result.found
        write_text(given["json"], json_text("lac_train_json", facts, result.training), force)
    if given.get("output") is not None:
        made.model.save(given["output"], force=force)
