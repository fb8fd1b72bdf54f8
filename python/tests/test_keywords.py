# SPDX-License-Identifier: Apache-2.0
"""Every option of the command is a keyword, or is named with what does the same; and it does what the option does."""
import gc
import inspect
import subprocess
import weakref

import numpy
import pytest

import lacuna
from lacuna import _table, keywords, library, samples

# Verbs without a function, and what does the same.
NO_FUNCTION = {"infer": "Session.run", "run": "the command", "archs": "the command", "recipes": "the command",
               "demo": "the command", "help": "help()", "version": "__version__"}


def test_no_verb_is_missing():
    assert {spec[0] for spec in keywords.FUNCTIONS.values()} | set(NO_FUNCTION) == set(_table.OPTIONS)


@pytest.mark.parametrize("name", keywords.FUNCTIONS)
def test_no_option_is_missing(name):
    verb, operands, _, _ = keywords.FUNCTIONS[name]
    parameters = set(inspect.signature(getattr(lacuna, name)).parameters)
    wanted = set(_table.OPTIONS[verb]) - set(keywords.ELSEWHERE)
    assert parameters == wanted | {*operands.split(", "), "progress"}


@pytest.mark.parametrize("verb", sorted({spec[0] for spec in keywords.FUNCTIONS.values()}))
def test_every_option_has_a_field(verb):
    """A keyword is a field of one of the library's structs, or is handled by name."""
    placed = {option for fields in keywords.FIELDS.values() for option in fields}
    placed |= {name for spec in keywords.FUNCTIONS.values() if spec[0] == verb for name in spec[1].split(", ")}
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
    ("prune", "--no-calibration --quantize dynamic-int8", {"no_calibration": True, "quantize": "dynamic-int8"}),
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


def test_train_is_the_verb(root, command, tmp_path):
    there, here = tmp_path / "there.onnx", tmp_path / "here.onnx"
    words = "--steps 3 --batch-size 32 --seed 5 --no-eval --threads 1 --no-verify --effort fast --sparse"
    subprocess.run([command, "train", "-q", "--arch", "digits", "--data", root / "examples/digits", "-o", there, *words.split()], check=True)
    made = lacuna.train("digits", root / "examples/digits", here, steps=3, batch_size=32, seed=5, eval=False, threads=1, verify=False,
                        effort="fast", sparse=True, json=tmp_path / "run.json", plot=tmp_path / "net.dot")
    assert here.read_bytes() == there.read_bytes() and made.training.steps == 3 and made.training.recipe == "cifar"
    assert made.pruning.summary.pruned > 0 and (tmp_path / "net.dot").exists()
    text = (tmp_path / "run.json").read_text()
    assert '"train"' in text and '"digits"' in text


def test_train_takes_arrays_and_weights(images, tmp_path):
    labels = numpy.arange(64) % 7
    first = lacuna.train("digits", {"image": images, "labels": labels}, tmp_path / "net.onnx", steps=2, batch_size=16, eval=False)
    second = lacuna.train("digits", {"image": images, "labels": labels}, pretrained=tmp_path / "net.onnx", eval_only=True)
    assert first.training.steps == 2 and first.pruning is None and second.training.evaluated
    assert [len(lacuna.Session(made.model).run(None, {"image": images})[0][0]) for made in (first, second)] == [7, 7]
    with pytest.raises(lacuna.Error, match="fresh weights say nothing"):
        lacuna.train("digits", {"image": images, "labels": labels}, eval_only=True)
    with pytest.raises(lacuna.Error, match="digitz"):
        lacuna.train("digitz", {"image": images, "labels": labels})


def test_samples_live_as_long_as_what_is_kept(digits, images):
    made, kept = samples.lac_samples(images, lacuna.Model(digits))
    alive = weakref.ref(made)
    struct = library.sized("lac_eval_options")
    struct.from_memory = made
    del made
    gc.collect()
    assert alive() is not None and struct.from_memory.n_arrays == 1
    kept.clear()
    gc.collect()
    assert alive() is None


def test_compare_is_the_verb(digits, images, command, tmp_path):
    lacuna.prune(digits, tmp_path / "pruned.onnx", no_calibration=True, permute=False, effort="fast")
    numpy.save(tmp_path / "x.npy", images[:2])
    subprocess.run([command, "compare", "-q", digits, tmp_path / "pruned.onnx", "--input", f"image={tmp_path / 'x.npy'}", "--tolerance", "0.01",
                    "--json", tmp_path / "there.json"], check=True, capture_output=True)
    for at, given in enumerate((images[:2], tmp_path / "x.npy")):
        made = lacuna.compare(digits, tmp_path / "pruned.onnx", input={"image": given}, tolerance=0.01, json=tmp_path / f"{at}.json",
                              plot=tmp_path / f"{at}.svg")
        assert (tmp_path / f"{at}.json").read_text() == (tmp_path / "there.json").read_text() and (tmp_path / f"{at}.svg").exists()
        assert made.given and any(value.error > made.tolerance for value in made.values)
    assert not any(value.error > 0 for value in lacuna.compare(digits, lacuna.Model(digits)).values)
    with pytest.raises(lacuna.Error, match="other is missing"):
        lacuna.compare(digits)


def test_data_is_the_verb(digits, command, tmp_path):
    subprocess.run([command, "data", "-q", "synthetic", digits, "-o", tmp_path / "there.npy", "--samples", "6", "--seed", "2"], check=True,
                   capture_output=True)
    assert lacuna.data("synthetic", digits, tmp_path / "here.npy", samples=6, seed=2).images is None
    images = lacuna.data("synthetic", digits, samples=6, seed=2).images
    assert (tmp_path / "here.npy").read_bytes() == (tmp_path / "there.npy").read_bytes()
    assert (images == numpy.load(tmp_path / "there.npy")).all() and images.shape == (6, 1, 8, 8)
    with pytest.raises(lacuna.Error, match="it exists already"):
        lacuna.data("synthetic", digits, tmp_path / "here.npy", samples=6)
    with pytest.raises(lacuna.Error, match="shards=4: it goes with 'imagenet'"):
        lacuna.data("synthetic", digits, shards=4)
    with pytest.raises(lacuna.Error, match="wanted imagenet or synthetic"):
        lacuna.data("cifar", digits)
