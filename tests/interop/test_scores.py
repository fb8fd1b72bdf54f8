# SPDX-License-Identifier: Apache-2.0
"""Scores of calibrated masks against their published definitions, in NumPy.

Each is written from its paper (and, where the paper leaves something open, from its authors' code: SparseGPT's and
ALPS's updates, RIA's exponent of 1/2), on whole matrices and in double, for a layer y = W x with inputs x as columns of
X. All take the damping of SparseGPT, 1 % of the mean of diag(X X'). Columns are taps times channels; N:M blocks are
along the channels of a tap.
"""

import subprocess

import numpy as np
import pytest

DAMPING = 0.01
# rows, taps, channels, N, M
SHAPES = [(8, 1, 16, 2, 4), (6, 9, 8, 2, 4), (5, 4, 12, 1, 4), (6, 3, 16, 4, 8), (7, 3, 6, 2, 4), (16, 9, 16, 2, 4)]
SEEDS = [1, 2, 3]


class Layer:
    """A layer with correlated inputs: X_d as the dense network has them, X as the pruned one does."""

    def __init__(self, shape, seed, asymmetric):
        rng = np.random.default_rng([seed, *shape])
        self.rows, self.taps, self.channels, self.n, self.m = shape
        self.columns = self.taps * self.channels
        self.positions = 6 * self.columns
        mixing = rng.normal(size=(self.columns, self.columns // 2 + 1))
        hidden = rng.normal(size=(self.columns // 2 + 1, self.positions))
        noise = rng.normal(size=(self.columns, self.positions))
        self.x = np.maximum(mixing @ hidden / 3 + 0.5 * noise, 0) * rng.uniform(0.3, 2, (self.columns, 1))
        self.x_dense = self.x + 0.2 * rng.normal(size=self.x.shape) * self.x.std() if asymmetric else self.x
        self.w = rng.standard_t(4, size=(self.rows, self.columns))
        self.h = self.x @ self.x.T
        self.k = self.x_dense @ self.x.T
        self.damping = DAMPING * np.mean(np.diag(self.h))
        eye = np.eye(self.columns)
        self.a = self.h + self.damping * eye
        self.g = self.w @ (self.k + self.damping * eye)
        self.asymmetric = asymmetric
        # The weights that SparseGPT and ExactOBS prune: the minimum without a mask, W itself in the symmetric form.
        self.start = self.g @ np.linalg.inv(self.a) if asymmetric else self.w

    def blocks(self):
        """First and last column (exclusive) of every block."""
        for tap in range(self.taps):
            for first in range(0, self.channels, self.m):
                yield tap * self.channels + first, tap * self.channels + min(first + self.m, self.channels)

    def keep_largest(self, score):
        mask = np.zeros(score.shape, bool)
        for first, last in self.blocks():
            order = np.argsort(-score[..., first:last], axis=-1, kind="stable")[..., : self.n]
            np.put_along_axis(mask[..., first:last], order, True, axis=-1)
        return mask


def magnitude(layer):
    mask = layer.keep_largest(np.abs(layer.w))
    return mask, layer.w * mask


def wanda(layer):
    mask = layer.keep_largest(np.abs(layer.w) * np.linalg.norm(layer.x, axis=1))
    return mask, layer.w * mask


def ria(layer):
    size = np.abs(layer.w)
    relative = size / size.sum(axis=0, keepdims=True) + size / size.sum(axis=1, keepdims=True)
    mask = layer.keep_largest(relative * np.linalg.norm(layer.x, axis=1) ** 0.5)
    return mask, layer.w * mask


def sparsegpt(layer):
    upper = np.linalg.cholesky(np.linalg.inv(layer.a)).T
    w, mask = layer.start.copy(), np.ones(layer.w.shape, bool)
    ends = dict(layer.blocks())
    for column in range(layer.columns):
        if column in ends:
            here = slice(column, ends[column])
            worth = np.zeros(w.shape)
            worth[:, here] = w[:, here] ** 2 / np.diag(upper)[here] ** 2
            mask[:, here] = layer.keep_largest(worth)[:, here]
        kept = np.where(mask[:, column], w[:, column], 0)
        error = (w[:, column] - kept) / upper[column, column]
        w[:, column:] -= np.outer(error, upper[column, column:])
        w[:, column] = kept
    return mask, w


def obs(layer):
    block_of = np.zeros(layer.columns, int)
    for number, (first, last) in enumerate(layer.blocks()):
        block_of[first:last] = number
    weights, masks = layer.start.copy(), np.ones(layer.w.shape, bool)
    for w, mask in zip(weights, masks):
        inverse = np.linalg.inv(layer.a)
        while True:
            crowded = np.bincount(block_of, weights=mask)[block_of] > layer.n
            if not (crowded & mask).any():
                break
            loss = np.where(crowded & mask, w**2 / np.diag(inverse), np.inf)
            p = np.argmin(loss)
            w -= w[p] / inverse[p, p] * inverse[p]
            inverse -= np.outer(inverse[:, p], inverse[p]) / inverse[p, p]
            mask[p], w[p] = False, 0
            inverse[p], inverse[:, p] = 0, 0
            inverse[p, p] = 1
            w[~mask] = 0
    return masks, weights


def alps(layer):
    norm = np.sqrt(np.diag(layer.a))
    h, g, dense = layer.a / np.outer(norm, norm), layer.g / norm, layer.w * norm
    values, vectors = np.linalg.eigh(h)
    mask = before = layer.keep_largest(np.abs(dense))
    first = dense * mask
    d, v, rho, started = first, np.zeros_like(dense), 0.1, False
    for step in range(1, 301):
        b = (g - v + rho * d) @ (vectors / (values + rho)) @ vectors.T
        d = b + v / rho
        mask = layer.keep_largest(np.abs(d))
        d = d * mask
        v = v + rho * (b - d)
        if step % 3:
            continue
        change = np.sum(mask != before) / np.sum(mask)
        before = mask
        started = started or change > 0.005
        if started and change == 0:
            break
        if started:
            rho *= 1.3 if change > 0.1 else 1.2 if change > 0.005 else 1.1
        else:
            rho, d, v = rho / 5, first, np.zeros_like(dense)
    return mask, d / norm


def solve(layer, mask):
    out = np.zeros(layer.w.shape)
    for row, kept in enumerate(mask):
        s = np.flatnonzero(kept)
        out[row, s] = np.linalg.solve(layer.a[np.ix_(s, s)], layer.g[row, s])
    return out


def saliency(layer, name):
    by_itself = {
        "magnitude": lambda: np.abs(layer.w),
        "wanda": lambda: np.abs(layer.w) * np.linalg.norm(layer.x, axis=1),
        "ria": lambda: (
            np.abs(layer.w) / np.abs(layer.w).sum(axis=0) + np.abs(layer.w) / np.abs(layer.w).sum(axis=1)[:, None]
        )
        * np.linalg.norm(layer.x, axis=1) ** 0.5,
    }
    return by_itself.get(name, lambda: np.abs(layer.start) / np.sqrt(np.diag(np.linalg.inv(layer.a))))()


def output_error(layer, w):
    return np.sum((layer.w @ layer.x_dense - w @ layer.x) ** 2)


def run(tool, folder, layer, name):
    """mask, weights that the score leaves, solved weights, saliency, errors of both weights."""
    np.save(folder / "weight.npy", layer.w)
    np.save(folder / "h.npy", layer.h)
    if layer.asymmetric:
        np.save(folder / "k.npy", layer.k)
    energy = np.sum((layer.w @ layer.x_dense) ** 2)
    arguments = [layer.channels, layer.n, layer.m, layer.positions, DAMPING, energy]
    done = subprocess.run(
        [tool("fit_main"), str(folder), name, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    arrays = [np.load(folder / f"{array}.npy") for array in ("mask", "left", "solved", "saliency")]
    return *arrays, [float(word) for word in done.stdout.split()]


DEFINITIONS = {
    "magnitude": magnitude, "wanda": wanda, "ria": ria, "sparsegpt": sparsegpt, "obs": obs, "alps": alps
}  # fmt: skip


@pytest.mark.parametrize("asymmetric", [False, True], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("name", DEFINITIONS)
def test_score_is_its_definition(tool, tmp_path, name, shape, seed, asymmetric):
    layer = Layer(shape, seed, asymmetric)
    mask, left, solved, worth, errors = run(tool, tmp_path, layer, name)
    wanted_mask, wanted_left = DEFINITIONS[name](layer)
    assert np.array_equal(mask, wanted_mask)
    # The steps of ALPS are taken in float32: the mask is the same, and its own weights nearly so.
    tolerance = 2e-3 if name == "alps" else 1e-9
    assert np.abs(left - wanted_left).max() <= tolerance * np.abs(wanted_left).max()
    wanted_solved = solve(layer, wanted_mask)
    assert np.abs(solved - wanted_solved).max() <= 1e-8 * np.abs(wanted_solved).max()
    assert np.allclose(worth, saliency(layer, name), rtol=1e-9, atol=1e-12)
    for found, weights in zip(errors, (left, solved)):
        assert np.isclose(found, output_error(layer, weights), rtol=1e-9)
