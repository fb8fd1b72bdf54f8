# SPDX-License-Identifier: Apache-2.0
"""Every option of the command is a keyword, or is named with what does the same; and it does what the option does."""
import inspect
import subprocess

import pytest

import lacuna
from lacuna import _table, keywords, library

# Verbs without a function, and what does the same.
NO_FUNCTION = {"infer": "Session.run", "compare": "the command", "train": "the command", "data": "the command", "run": "the command", "archs": "the command", "recipes": "the command",
               "demo": "the command", "help": "help()", "version": "__version__"}


def test_no_verb_is_missing():
    assert {spec[0] for spec in keywords.FUNCTIONS.values()} | set(NO_FUNCTION) == set(_table.OPTIONS)


@pytest.mark.parametrize("name", keywords.FUNCTIONS)
def test_no_option_is_missing(name):
    verb, first, _, _, *fixed = keywords.FUNCTIONS[name]
    parameters = set(inspect.signature(getattr(lacuna, name)).parameters)
    wanted = set(_table.OPTIONS[verb]) - set(keywords.ELSEWHERE) - set(*fixed)
    assert parameters == wanted | {first, "progress"}


@pytest.mark.parametrize("verb", sorted({spec[0] for spec in keywords.FUNCTIONS.values()}))
def test_every_option_has_a_field(verb):
    """A keyword is a field of one of the library's structs, or is handled by name."""
    placed = {option for fields in keywords.FIELDS.values() for option in fields}
    placed |= keywords.EVERYWHERE | keywords.HANDLED.get(verb, set()) | set(keywords.ELSEWHERE)
    assert set(_table.OPTIONS[verb]) <= placed


def test_fields_are_those_of_the_header():
    for struct, fields in keywords.FIELDS.items():
        assert set(fields.values()) <= {name for name, _ in library.ffi.typeof(struct).fields}, struct


def test_help_names_every_keyword():
    for name in keywords.FUNCTIONS:
        function = getattr(lacuna, name)
        for parameter in inspect.signature(function).parameters:
            assert f"{parameter}:" in function.__doc__, (name, parameter)


def test_help_says_what_choices_there_are():
    text = lacuna.prune.__doc__
    assert '"fast", "normal" or "best": how long to search' in text and '"1d", "2d-greedy" or "2d-best"' in text
    assert "Returns lacuna.Report." in text and "=DATA" not in text.replace("calibration=DATA", "") and "Returns" not in lacuna.plot.__doc__


# What the command is given, and what the function is; together every option of prune and permute that changes the file.
SAME = [
    ("prune", "--pattern 1:4 --seed 3 --effort fast --threads 1", {"pattern": "1:4", "seed": 3, "effort": "fast", "threads": 1}),
    ("prune", "--no-calibration --pattern 64:2:8 --all-sizes --no-verify --max-memory 1G",
     {"no_calibration": True, "pattern": "64:2:8", "all_sizes": True, "verify": False, "max_memory": "1G"}),
    ("prune", "--no-calibration --mask 2d-greedy --no-permute --padding --include layer[12] --exclude conv2",
     {"no_calibration": True, "mask": "2d-greedy", "permute": False, "padding": True, "include": "layer[12]", "exclude": "conv2"}),
    ("prune", "--permute-for magnitude --strategy swap --score random --target tensorrt --target cusparselt:f16 --lenient",
     {"permute_for": "magnitude", "strategy": "swap", "score": "random", "target": ["tensorrt", "cusparselt:f16"], "lenient": True}),
    ("prune", "--calibration {root}/examples/digits --calibration-samples 16 --calibration-copies 1 --score wanda --no-solve "
     "--keep-dense 2 --effort fast",
     {"calibration": "{root}/examples/digits", "calibration_samples": 16, "calibration_copies": 1, "score": "wanda",
      "solve": False, "keep_dense": 2, "effort": "fast"}),
    ("prune", "--calibration {root}/examples/digits --calibration-samples 16 --score magnitude --no-permute --quantize qdq-int8 "
     "--quantize-range minmax --quantize-activations int8 --recalibrate",
     {"calibration": "{root}/examples/digits", "calibration_samples": 16, "score": "magnitude", "permute": False,
      "quantize": "qdq-int8", "quantize_range": "minmax", "quantize_activations": "int8", "recalibrate": True}),
    ("prune", "--calibration synthetic --calibration-samples 8 --score ria --no-permute --mean 1,1,1 --std 9,9,9 --refine-steps 1",
     {"calibration": "synthetic", "calibration_samples": 8, "score": "ria", "permute": False, "mean": (1, 1, 1), "std": "9,9,9",
      "refine_steps": 1}),
    ("permute", "--input-shape image=1x1x8x8 --fold --time-limit 0",
     {"input_shape": {"image": (1, 1, 8, 8)}, "fold": True, "time_limit": 0}),
]


def test_finetune_is_the_verb(root, digits, command, tmp_path):
    there, here = tmp_path / "there.onnx", tmp_path / "here.onnx"
    words = "--steps 2 --batch-size 32 --lr 0.01 --effort fast --no-verify --no-eval --threads 1"
    subprocess.run([command, "finetune", "-q", digits, "--data", root / "examples/digits", "-o", there, *words.split()], check=True)
    made = lacuna.finetune(digits, root / "examples/digits", here, steps=2, batch_size=32, lr=0.01, effort="fast", verify=False,
                           eval=False, threads=1, json=tmp_path / "run.json")
    assert here.read_bytes() == there.read_bytes() and made.training.steps == 2 and made.pruning.summary.pruned == 8
    assert "finetune" in (tmp_path / "run.json").read_text()


@pytest.mark.parametrize("verb, words, given", SAME, ids=[words[:24] for _, words, _ in SAME])
def test_a_keyword_is_the_option(verb, words, given, root, digits, command, tmp_path):
    there, here = tmp_path / "there.onnx", tmp_path / "here.onnx"
    subprocess.run([command, verb, "-q", digits, "-o", there, *words.format(root=root).split()], check=True, capture_output=True)
    given = {name: value.format(root=root) if isinstance(value, str) else value for name, value in given.items()}
    getattr(lacuna, verb)(digits, here, **given)
    assert here.read_bytes() == there.read_bytes()
