# SPDX-License-Identifier: Apache-2.0
"""Which field of the library's options each option of the command is, and what Python says of it beyond the command's help.

Pure data: python/generate.py makes the functions of `_verbs.py` from it and from cli/options.def, and a test
(python/tests/test_keywords.py) fails where an option of a verb has no place here.
"""

# {struct: {option: field}}. A field's type in lacuna.h says how a value is converted (options.py).
FIELDS = {
    "lac_load_options": {"lenient": "lenient"},
    "lac_options": {
        "mask": "mask", "permute": "permute", "padding": "padding", "all_sizes": "all_sizes", "verify": "verify",
        "recurrent": "recurrent", "include": "include", "exclude": "exclude", "score": "score", "permute_for": "permute_for",
        "strategy": "strategy", "effort": "effort", "time_limit": "time_limit", "seed": "seed", "threads": "threads",
        "assume": "assume", "target": "targets", "input_shape": "input_shapes", "max_memory": "max_memory",
        "engine": "engine", "speed": "speed"},
    "lac_calibration": {
        "calibration_samples": "samples", "calibration_copies": "copies", "calibration_constant": "constants",
        "calibration_synthetic": "synthetic", "solve": "solve", "resize": "resize", "crop": "crop",
        "mean": "mean", "std": "std", "keep_dense": "keep_dense", "max_drop": "max_drop", "recalibrate": "recalibrate",
        "refine": "refine", "refine_steps": "refine_steps"},
    "lac_quantization": {"quantize": "format", "quantize_range": "range"},
    "lac_run_options": {"threads": "threads", "dtype": "dtype", "max_memory": "max_memory", "engine": "engine",
                        "tune": "tuning", "careful": "careful"},
    "lac_bench_options": {"batch": "batch", "runs": "runs", "time": "seconds", "seed": "seed"},
    "lac_eval_options": {"batch_size": "batch", "limit": "limit", "resize": "resize", "crop": "crop", "mean": "mean",
                         "std": "std", "classes": "classes", "predictions": "predictions", "force": "force"},
    "lac_train_options": {
        "remat": "remat", "seed": "seed", "recipe": "recipe", "batch_size": "batch", "accumulate": "accumulate", "epochs": "epochs",
        "steps": "steps", "optimizer": "optimizer", "lr": "rate", "momentum": "momentum", "weight_decay": "weight_decay",
        "nesterov": "nesterov", "decay_all": "decay_all", "schedule": "schedule", "decay": "decay", "warmup_epochs": "warmup_epochs",
        "label_smoothing": "label_smoothing", "mixup": "mixup", "cutmix": "cutmix", "erasing": "erasing", "policy": "policy",
        "policy_magnitude": "policy_magnitude", "clip_norm": "clip_norm", "ema": "ema", "augment": "augment", "shuffle": "shuffle",
        "eval": "evaluate", "eval_only": "eval_only", "eval_limit": "eval_limit", "eval_steps": "eval_steps",
        "epochs_between_evals": "epochs_between_evals", "steps_per_loop": "steps_per_loop", "keep_best": "keep_best",
        "model_dir": "model_dir", "checkpoint_steps": "checkpoint_steps", "keep_checkpoints": "keep_checkpoints",
        "recover": "recover", "force": "force", "display_steps": "display_steps", "format": "format", "resize": "resize",
        "crop": "crop", "mean": "mean", "std": "std", "classes": "classes", "wire": "wire", "bucket": "bucket_bytes",
        "paranoid": "paranoid_steps"},
    "lac_network_options": {"arch": "name", "seed": "seed"},
    "lac_compare_options": {"tolerance": "tolerance", "seed": "seed", "threads": "threads", "max_memory": "max_memory",
                            "against_ort": "runtime"},
    "lac_imagenet_options": {"threads": "threads", "shards": "shards", "val_shards": "val_shards", "seed": "seed", "force": "force"},
    "lac_synthetic_options": {"threads": "threads", "samples": "samples", "seed": "seed", "crop": "crop", "mean": "mean", "std": "std"},
}

# Options that a function of verbs.py handles by itself.
HANDLED = {
    "prune": {"calibration", "no_calibration", "quantize_activations", "curve"},
    "permute": {"apply", "invert"},
    "check": {"against"},
    "inspect": {"plan", "why"},
    "pack": {"ort"},
    "finetune": {"data", "sparse", "prune_rest", "keep_masks", "boundaries", "stop_threshold", "trace"},
    "train": {"pretrained", "shortcut", "data", "sparse", "prune_rest", "keep_masks", "boundaries", "stop_threshold", "trace"},
    "compare": {"input"},
    "eval": {"data"},
    "bench": {"plot", "roofline", "measure_costs", "input_shape", "pattern"},
}
EVERYWHERE = {"output", "plot", "save_permutation", "json", "force", "fold", "pattern", "sparse_kernels"}

# Options that are no keywords, and what does the same.
ELSEWHERE = {
    "quiet": "the logger `lacuna` of logging",
    "verbose": "the logger `lacuna` of logging",
    "wide": "how the terminal shows rows",
    "help": "help()",
    "config": "a dict of keywords, as in lacuna.prune(model, **options)",
    "print_config": "a dict of keywords",
    "html": "the command, which writes pages; in C lac_page_write",
    "all_nodes": "the command, which draws with more options",
    "details": "the command, which draws with more options",
    "show": "report.mask_of()",
    "like": "the command, which reads other scripts' options",
    "print": "the command, which shows a recipe's settings",
    "export_dir": "output",
    "resnet_size": "arch",
    "resnext": "arch",
    "timeout": "several processes run the command, under mpirun",
}

# {function: (verb, first parameters, what it returns, what Python says beyond the command's help)}
FUNCTIONS = {
    "prune": ("prune", "model", "Report", """
The search finds which channels may change places, and the order in which pruning loses least. The reordered network is verified.
Then the masks are set, and with `calibration` the kept weights are fitted. `report.model` is the new network: save it, run it,
or take its tensors.

    report = lacuna.prune("net.onnx", "net-24.onnx")
    report = lacuna.prune("net.onnx", calibration=images, pattern="2:4")
    report.model.save("net-24.onnx")"""),
    "permute": ("permute", "model", "Report", """
As `prune`, but no weight is set to zero."""),
    "quantize": ("prune", "model", "Report", """
As `prune`, with `quantize="qdq-int8"` where it is None: the ranges of activations come from `calibration`, which must be given.
With `quantize="dynamic-int8"` they are found at run time, and `calibration` may be left out. Layers that hold the pattern already
keep their masks."""),
    "check": ("check", "model", "Report", """
`report.holds_pattern` says whether every layer that should hold the pattern does. With `against` a network that is not the
original, reordered and masked, raises lacuna.Error."""),
    "inspect": ("inspect", "model", "Report", """
The report lists layers and groups of channels; `report.groups[k].cause` says what freezes a group. With `why` the function
returns a text, the path from that node to what freezes it."""),
    "plot": ("plot", "model", "None", """
The ending of `output` is the format."""),
    "pack": ("pack", "model", "Record", """
Model(output) and Session(output) read a pack like any network."""),
    "unpack": ("unpack", "path", "None", ""),
    "evaluate": ("eval", "model", "Record", """
`data` may also be arrays in memory: {input: images, "labels": classes}."""),
    "finetune": ("finetune", "model", "Record", """
`data` may also be arrays in memory: {input: images, "labels": classes}. The result has `training` (steps, top1, loss ...),
`pruning`, a Report where layers were pruned, and `model`, the network."""),
    "bench": ("bench", "model", "Record", ""),
    "train": ("train", "arch", "Record", """
`data` may also be arrays in memory: {input: images, "labels": classes}. The result is as that of finetune.

    made = lacuna.train("cifar-resnet20", "cifar-10-batches-bin", "net.onnx", epochs=90)
    made.training.top1"""),
    "compare": ("compare", "model, other", "Record", """
Both networks run on the same inputs. `values` has a row for each value that both compute, in the networks' order: `error` is
the difference by the value's own size. A value is apart where that is more than `tolerance`.

    result = lacuna.compare("net.onnx", "net-24.onnx")
    apart = [value.name for value in result.values if value.error > result.tolerance]"""),
    "data": ("data", "kind, source", "Record", """
"imagenet" writes the images of a folder as TFRecords to the folder `output`; the Record has `train` and `validation`. "synthetic"
draws images for the input of a network; the Record has `images`, an array, or None where `output` names a .npy file for them.

    images = lacuna.data("synthetic", "net.onnx", samples=64).images"""),
}

# What comes before keywords: {name: (type, default, what help says)}. An option of that name is no keyword, too.
OPERANDS = {
    "model": ("Source", None, "a path, bytes, an onnx.ModelProto or a lacuna.Model{changed}"),
    "other": ("Source | None", "None", "the network to compare with; None with `against_ort`: the same one"),
    "path": ("str | os.PathLike", None, "a pack"),
    "arch": ("str", None, "{help}"),
    "kind": ('Literal["imagenet", "synthetic"]', None, "which data"),
    "source": ("Source", None, "imagenet: a folder with its archives or their files; synthetic: the network, as anything that Model takes"),
}

# Said in the place of the command's help: of an option, or of VERB.OPTION.
WORDS = {
    "output": "a file for the new network; without it, `report.model` has the network",
    "plot.output": "the drawing; the ending says its format: .svg, .pdf, .png or .dot",
    "pack.output": "the pack",
    "unpack.output": "the ONNX file, byte for byte what was packed",
    "check.target": "names of hardware or runtimes, such as \"tensorrt\": what each makes of every layer",
    "calibration": "inputs to fit masks and weights on, without labels: a path (a folder of images, .npy, .npz), an array, "
                   "{name: array}, an iterable of these, or \"synthetic\"; None: as \"synthetic\" where the network takes "
                   "what can be drawn",
    "input_shape": "sizes that the file leaves open: {name: (1, 3, 224, 224)}",
    "calibration_constant": "numbers that every element of an input is, where the data have no array of it: {name: 1}",
    "no_calibration": "True: prune by magnitude; without it, and without `calibration`, a network that takes images, token "
                      "ids, sounds or scaled numbers is calibrated on synthetic ones",
    "prune.calibration_samples": "how many samples of `calibration`, chosen by seed; an eighth of them judges the result. Of synthetic images "
                                 "32 to 512 by default, fewer for larger networks",
    "pattern": "\"2:4\" or (2, 4): at most two of every four input channels stay; any N:M with 1 <= N < M <= 64. \"64:2:8\": and 64 output "
               "channels share four of the eight",
    "json": "a file for the report as JSON; `report.json()` is the same as a dict",
    "target": "names of hardware or runtimes, such as \"tensorrt\": only what they take as sparse is pruned",
    "assume": "operators that pass channel orders through, such as [\"MyOp=same\"]",
    "against": "the original network (a path, bytes, a ModelProto or a Model), to verify that this is it, reordered and masked",
    "fold": "store a computed weight as one tensor: True wherever it can be, False nowhere, None where nothing else reads its parts",
    "plan": "ask which nodes the engine would run fast: `report.plan`, `report.plan_nodes`",
    "max_memory": "how many bytes the work may plan: a number, or a text such as \"16G\"",
    "input": "the array of each input, or the .npy file that holds it: {name: array}",
    "against_ort": "ONNX Runtime's library, a path: it runs `other`, or `model` itself",
    "data.output": "imagenet: the folder of the shards, made if need be; synthetic: a .npy file for the array of images",
    "data.force": "replace the shards of another conversion in `output`, or the file",
    "train.sparse": "prune the fresh weights before the first step, and keep what is zero at zero",
    "data": "labelled images: a path, {input: images, \"labels\": classes}, or an iterable of such batches",
    "trace": "a file: what the last 3 steps did, for chrome://tracing or Perfetto",
    "boundaries": "epochs at which the rate falls, such as [30, 60, 80]; the schedule is then piecewise",
    "curve": "a .svg file: the loss over the number of layers pruned",
}
# Keywords of functions that do long work, and that no option of the command has.
PROGRESS = ("a function that gets (what, done, total) as the work goes on, or True for a bar (of tqdm, if it is installed)")
