# SPDX-License-Identifier: Apache-2.0
"""Keywords of finetune to lac_finetune's options, and its result."""
from . import samples
from .errors import failure
from .files import json_text, write_text
from .library import NULL, call, ffi, lib, options, path_bytes, sized, text
from .options import fill, run_fields
from .report import Record, Report, record

EXCLUDED = (("epochs", "steps"), ("keep_masks", "prune_rest"))


def _train_options(given, kept):
    """lac_train_options of the keywords: those of fine-tuning, or of the recipe that is named."""
    usual = given.get("recipe") is None
    made = options("lac_train_options", "lac_finetune_training_init" if usual else "lac_train_options_init")
    if usual and given.get("optimizer") is not None:
        made.rate = -1
    if given.get("steps") is not None:
        made.epochs = -1
    fill(made, "lac_train_options", given, kept)
    kept += [made, run_fields(made.run, given)]
    if given.get("boundaries") is not None:
        epochs = given["boundaries"]
        epochs = [float(part) for part in (epochs.split(",") if isinstance(epochs, str) else epochs)]
        kept.append(ffi.new("double[]", epochs))
        made.boundaries, made.n_boundaries = kept[-1], len(epochs)
    if given.get("stop_threshold") is not None:  # a share is said as 0.76, percent as 76
        made.stop_threshold = 100 * given["stop_threshold"] if given["stop_threshold"] <= 1 else given["stop_threshold"]
    made.trace, made.eval_first = given.get("trace") is not None, True
    return made


def finetune(model, given, read_options):
    """Trains the network, pruned first where it is not; a Record of `training`, `found`, `pruning`, `model` and the counts."""
    if given.get("data") is None:
        raise failure("data is missing: labelled images")
    for pair in EXCLUDED:
        if all(given.get(name) is not None for name in pair):
            raise failure(f"{pair[0]} and {pair[1]}: one of them")
    kept = []
    how, train = options("lac_finetune_options"), _train_options(given, kept)
    pruning = read_options(given, kept)
    how.training, how.pruning = train, pruning
    how.sparse = True if given.get("sparse") is None else bool(given["sparse"])
    how.prune_rest = not given["keep_masks"] if given.get("keep_masks") is not None else given.get("prune_rest") is not False
    how.replay = given.get("plot") is None
    path = path_bytes(given["data"]) if samples.is_path(given["data"]) else NULL
    if path == NULL:
        train.from_memory, held = samples.lac_samples(given["data"], model)
        kept.append((train.from_memory, held))
    result = ffi.gc(sized("lac_finetune_result"), lib.lac_finetune_result_clear)
    call("lac_finetune", model.pointer, path, how, result)
    made = Record(training=record(result.training), model=model, n_pruned=result.n_pruned, n_rest=result.n_rest,
                  n_zero=result.n_zero, replayed=result.replayed)
    for name in ("found", "pruning"):
        pointer = getattr(result, name)
        setattr(made, name, Report(pointer, model, result) if pointer else None)
    _write(made, result, (train, path), given)
    return made


def _write(made, result, about, given):
    """The files that the keywords name."""
    force, (train, path) = bool(given.get("force")), about
    if given.get("trace") is not None:
        write_text(given["trace"], text(result.training.trace), force)
    if given.get("plot") is not None:
        (made.pruning or made.found).plot(given["plot"], force=force)
    if given.get("json") is not None:
        facts, kept = sized("lac_train_about"), [ffi.new("char[]", word) for word in (b"finetune", made.model.name.encode())]
        facts.verb, facts.model, facts.data, facts.options = *kept, path, train
        facts.layers = result.pruning or result.found
        write_text(given["json"], json_text("lac_train_json", facts, result.training), force)
    if given.get("output") is not None:
        made.model.save(given["output"], force=force)
