# SPDX-License-Identifier: Apache-2.0
"""Masks over blocks of several rows, and scores that somebody else gives: against plain definitions in NumPy, on weights
whose axes have every order that ONNX has (Conv, grouped Conv, ConvTranspose, Gemm with and without transB, MatMul)."""
import itertools
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
DIGITS = TOP / "examples/digits/digits.onnx"
ALL = ("--no-permute", "--all-sizes")


def lacuna(*words, ok=True):
    done = subprocess.run([LACUNA, *words], capture_output=True, text=True)
    assert (done.returncode == 0) == ok, done.stderr
    return done.stdout if ok else done.stderr


def weights_of(path):
    return {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(path).graph.initializer}


# ---- A network with every kind of weight ----

def make_model(path, seed=0, sizes=(12, 10)):
    """`sizes`: input and output channels; those of the odd layers leave blocks unfilled."""
    rng = np.random.default_rng(seed)
    c, k = sizes

    def tensor(name, *shape):
        return onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)

    stored = [tensor("conv", k, c, 3, 3), tensor("grouped", 2 * k, c, 1, 3), tensor("transposed", 2 * c, k, 2, 2),
              tensor("transposed_groups", 2 * c, k, 2, 1), tensor("gemm", c, k), tensor("gemm_b", k, c), tensor("matmul", c, k)]
    node = onnx.helper.make_node
    nodes = [node("Conv", ["image", "conv"], ["a"], "n_conv"), node("Conv", ["wide", "grouped"], ["b"], "n_grouped", group=2),
             node("ConvTranspose", ["wide", "transposed"], ["c"], "n_transposed"),
             node("ConvTranspose", ["wide", "transposed_groups"], ["d"], "n_transposed_groups", group=2),
             node("Gemm", ["row", "gemm"], ["e"], "n_gemm"), node("Gemm", ["row", "gemm_b"], ["f"], "n_gemm_b", transB=1),
             node("MatMul", ["row", "matmul"], ["g"], "n_matmul")]
    value = onnx.helper.make_tensor_value_info
    inputs = [value("image", 1, [1, c, 4, 4]), value("wide", 1, [1, 2 * c, 4, 4]), value("row", 1, [1, c])]
    graph = onnx.helper.make_graph(nodes, "masks", inputs, [value(x, 1, None) for x in "abcdefg"], stored)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)


def matrices(name, array):
    """The weight as matrices [output channels, input channels], one a kernel position and group: views."""
    if name in ("gemm", "matmul"):
        return [array.T]
    if name == "gemm_b":
        return [array]
    groups = {"grouped": 2, "transposed_groups": 2}.get(name, 1)
    out = []
    for position in np.ndindex(array.shape[2:]):
        at = array[(slice(None), slice(None), *position)]
        if name.startswith("transposed"):
            out += [half.T for half in np.split(at, groups)]  # input channels first
        else:
            out += np.split(at, groups)
    return out


def blocks(matrix, rows, columns):
    for k in range(0, matrix.shape[0], rows):
        for c in range(0, matrix.shape[1], columns):
            yield matrix[k:k + rows, c:c + columns]


NAMES = ("conv", "grouped", "transposed", "transposed_groups", "gemm", "gemm_b", "matmul")


@pytest.fixture(scope="module", params=[(12, 10), (16, 16), (9, 7)], ids=str)
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("masks") / "model.onnx"
    make_model(path, sizes=request.param)
    return path


# ---- Definitions ----

def patterns(n, m):
    rows = [r for r in itertools.product((0, 1), repeat=m) if sum(r) == n]
    found = [np.array(p) for p in itertools.product(rows, repeat=m)]
    return np.array([p for p in found if (p.sum(0) == n).all()])


def greedy(block, n):
    keep = np.zeros(block.shape, bool)
    for at in np.argsort(-block.ravel(), kind="stable"):
        k, c = divmod(int(at), block.shape[1])
        keep[k, c] = keep[k].sum() < n and keep[:, c].sum() < n
    return keep


def shared_sum(block, n):
    sets = itertools.combinations(range(block.shape[1]), min(4, block.shape[1]))
    return max(np.sort(block[:, list(s)], 1)[:, -n:].sum() for s in sets)


# ---- Tests ----

def test_2d_best_is_the_best_of_90_patterns(model, tmp_path):
    lacuna("prune", "--no-calibration", "-q", model, "-o", tmp_path / "out.onnx", "--mask", "2d-best", *ALL)
    listed = patterns(2, 4)
    assert len(listed) == 90
    before, after = weights_of(model), weights_of(tmp_path / "out.onnx")
    for name in NAMES:
        for was, now in zip(matrices(name, before[name]), matrices(name, after[name])):
            for w, p in zip(blocks(np.abs(was), 4, 4), blocks(np.abs(now), 4, 4)):
                padded = np.zeros((4, 4))
                padded[:w.shape[0], :w.shape[1]] = w
                assert p.sum() == pytest.approx((listed * padded).sum((1, 2)).max(), abs=1e-12)
                assert ((p != 0).sum(0) <= 2).all() and ((p != 0).sum(1) <= 2).all()
                assert ((p == w) | (p == 0)).all()


def test_2d_greedy_follows_its_definition(model, tmp_path):
    lacuna("prune", "--no-calibration", "-q", model, "-o", tmp_path / "out.onnx", "--mask", "2d-greedy", "--pattern", "3:5", *ALL)
    before, after = weights_of(model), weights_of(tmp_path / "out.onnx")
    for name in NAMES:
        for was, now in zip(matrices(name, before[name]), matrices(name, after[name])):
            for w, p in zip(blocks(was, 5, 5), blocks(now, 5, 5)):
                assert (p == np.where(greedy(np.abs(w), 3), w, 0)).all()


@pytest.mark.parametrize("v, n, m", [(64, 2, 8), (4, 1, 6), (3, 3, 4), (5, 2, 9)])
def test_rows_share_the_best_four_columns(model, tmp_path, v, n, m):
    pattern = f"{v}:{n}:{m}"
    out = tmp_path / "out.onnx"
    report = json.loads(lacuna("prune", "--no-calibration", "-q", model, "-o", out, "--pattern", pattern, *ALL, "--json", "-"))
    assert report["pattern"] == pattern and report["mask"] == "1d"
    before, after = weights_of(model), weights_of(out)
    for layer in report["layers"]:
        name = layer["weight"]
        if not layer["pruned"]:
            continue
        kept = 0
        for was, now in zip(matrices(name, before[name]), matrices(name, after[name])):
            for w, p in zip(blocks(np.abs(was), v, m), blocks(np.abs(now), v, m)):
                assert (p != 0).any(0).sum() <= 4 and ((p != 0).sum(1) <= n).all()
                assert p.sum() == pytest.approx(shared_sum(w, n), abs=1e-12)
                kept += p.sum()
        assert layer["kept"] == pytest.approx(kept) and layer["total"] == pytest.approx(np.abs(before[name]).sum())
    checked = json.loads(lacuna("check", "-q", out, "--pattern", pattern, "--all-sizes", "--json", "-"))
    assert all(layer["holds_pattern"] for layer in checked["layers"] if layer["eligible"])


def test_check_sees_one_weight_outside_of_the_shared_columns(model, tmp_path):
    out = tmp_path / "out.onnx"
    lacuna("prune", "--no-calibration", "-q", model, "-o", out, "--pattern", "4:2:8", *ALL)
    network = onnx.load(out)
    for stored in network.graph.initializer:
        if stored.name != "gemm_b":
            continue
        array = onnx.numpy_helper.to_array(stored).copy()
        block = array[:4, :8]
        free = np.flatnonzero(~(block != 0).any(0))[0]
        row, used = next((k, c) for k, c in zip(*np.nonzero(block)) if (block[:, c] != 0).sum() > 1)
        block[row, free], block[row, used] = block[row, used], 0
        stored.CopyFrom(onnx.numpy_helper.from_array(array, stored.name))
    onnx.save(network, tmp_path / "moved.onnx")
    assert "n_gemm_b" in lacuna("check", "-q", tmp_path / "moved.onnx", "--pattern", "4:2:8", "--all-sizes", ok=False)
    lacuna("check", "-q", tmp_path / "moved.onnx", "--pattern", "2:8", "--all-sizes")


def test_check_says_what_holds_both_ways(model, tmp_path):
    out = tmp_path / "out.onnx"
    for mask in ("1d", "2d-greedy", "2d-best"):
        lacuna("prune", "--no-calibration", "-q", model, "-o", out, "--force", "--mask", mask, *ALL)
        report = json.loads(lacuna("check", "-q", out, "--all-sizes", "--json", "-"))
        after = weights_of(out)
        for layer in report["layers"]:
            both = all(((b != 0).sum(0) <= 2).all() for m in matrices(layer["weight"], after[layer["weight"]])
                       for b in blocks(m, 4, 4))
            assert layer["holds_pattern"] and layer["holds_pattern_both"] == both
            assert both or mask == "1d"


def plain(score, n, m):
    keep = np.zeros(score.shape, bool)
    for s, k in zip(blocks(score, len(score), m), blocks(keep, len(keep), m)):
        best = np.argsort(-s, 1, kind="stable")[:, :n]
        np.put_along_axis(k, best, True, 1)
    return keep


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int16"])
def test_masks_are_those_of_given_scores(model, tmp_path, dtype):
    before = weights_of(model)
    rng = np.random.default_rng(5)
    scores = {name: rng.integers(0, 50, w.shape).astype(dtype) for name, w in before.items()}
    np.savez_compressed(tmp_path / "s.npz", **scores)
    out = tmp_path / "out.onnx"
    report = json.loads(lacuna("prune", "-q", model, "-o", out, *ALL, "--score", tmp_path / "s.npz", "--json", "-"))
    after = weights_of(out)
    layers = {layer["weight"]: layer for layer in report["layers"]}
    for name in NAMES:
        kept = 0
        for was, now, score in zip(*(matrices(name, x[name]) for x in (before, after, scores))):
            keep = plain(score.astype(np.float64), 2, 4)
            assert (now == np.where(keep, was, 0)).all()
            kept += score[keep].astype(np.float64).sum()
        assert layers[name]["kept"] == pytest.approx(np.abs(after[name]).sum())
        assert layers[name]["score_kept"] == pytest.approx(kept)
        assert layers[name]["score_total"] == pytest.approx(scores[name].astype(np.float64).sum())


def test_given_scores_follow_their_channels(tmp_path):
    """In a network whose channels move: what is kept is what the scores want, wherever it is now."""
    before = weights_of(DIGITS)
    rng = np.random.default_rng(6)
    np.savez(tmp_path / "s.npz", **{name: rng.random(w.shape, np.float32) for name, w in before.items() if w.ndim > 1})
    kept = {}
    for how in ("--no-permute", "--permute"):
        out = tmp_path / f"out{how}.onnx"
        report = json.loads(lacuna("prune", "-q", DIGITS, "-o", out, how, "--score", tmp_path / "s.npz", "--no-solve",
                                   "--json", "-"))
        kept[how] = sum(layer["score_kept"] for layer in report["layers"] if layer["pruned"])
        after = weights_of(out)
        for layer in report["layers"]:
            if layer["pruned"]:
                assert layer["kept"] == pytest.approx(np.abs(after[layer["weight"]]).sum())
    assert kept["--permute"] > kept["--no-permute"]
    lacuna("check", "-q", tmp_path / "out--permute.onnx", "--against", DIGITS)


def test_what_scores_are_refused(model, tmp_path):
    before = weights_of(model)
    good = {name: np.ones(w.shape, np.float32) for name, w in before.items()}
    path = tmp_path / "s.npz"

    def refusal(**changed):
        np.savez(path, **{k: v for k, v in {**good, **changed}.items() if v is not None})
        out = tmp_path / "no.onnx"
        text = lacuna("prune", "-q", model, "-o", out, *ALL, "--score", path, ok=False)
        assert not out.exists()
        return text

    assert "it has no scores for the weight gemm_b: wanted an array of that name" in refusal(gemm_b=None)
    assert "s.npz: gemm_b: scores of shape" in refusal(gemm_b=good["gemm_b"].T[:-1])
    bad = good["gemm"].copy()
    bad[2, 3] = np.nan
    assert f"gemm[{2 * bad.shape[1] + 3}]: a score of" in refusal(gemm=bad)
    bad[2, 3] = -1
    assert "a score of -1, wanted a finite number of 0 or more" in refusal(gemm=bad)


def test_random_scores_depend_on_seed_and_name_alone(model, tmp_path):
    def masks(*options):
        lacuna("prune", "-q", model, "-o", tmp_path / "out.onnx", "--force", *ALL, "--score", "random", *options)
        return {name: w != 0 for name, w in weights_of(tmp_path / "out.onnx").items()}

    first = masks("--seed", "3", "--threads", "1")
    for name, again in masks("--seed", "3", "--threads", "3").items():
        assert (first[name] == again).all()
    assert (first["conv"] == masks("--seed", "3", "--include", "^conv$")["conv"]).all()
    assert (first["conv"] != masks("--seed", "4")["conv"]).any()
    share = np.mean([keep[..., 0].mean() for keep in matrices("conv", first["conv"])])  # no column is favoured
    assert 0.1 < share < 0.9
