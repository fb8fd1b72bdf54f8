# SPDX-License-Identifier: Apache-2.0
"""Every change that RandAugment and TrivialAugment draw, at every magnitude and sign, against torchvision's: the same bytes."""
import numpy as np
import pytest
from PIL import Image

from test_data import run

pytestmark = pytest.mark.torch

POLICIES = {"randaugment": "RandAugment", "trivialaugment": "TrivialAugmentWide"}
# Wide, tall, square, and too small for a neighbourhood of 3 x 3.
SIZES = [(45, 32), (31, 64), (32, 32), (2, 5), (1, 1), (224, 224)]


def draw(kind, width, height):
    """Noise, a smooth image with few levels, or one of a single colour."""
    rng = np.random.default_rng(width * 1000 + height)
    if kind == "noise":
        return rng.integers(0, 256, (height, width, 3), np.uint8)
    if kind == "flat":
        return np.full((height, width, 3), (17, 200, 90), np.uint8)
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return np.stack([60 + x * 90 // width, 30 + y * 200 // height, 128 + (x + y) % 7], -1).astype(np.uint8)


def wanted_images(policy, image):
    """Each change in torchvision's order, [31, 2] images of it."""
    import torch
    from torchvision.transforms import autoaugment
    width, height = image.size
    made = getattr(autoaugment, POLICIES[policy])()
    space = made._augmentation_space(31, (height, width)) if policy == "randaugment" else made._augmentation_space(31)
    for name, (magnitudes, signed) in space.items():
        values = magnitudes.expand(31) if magnitudes.ndim == 0 else magnitudes
        for value in values.to(torch.float64).tolist():
            for sign in (1.0, -1.0 if signed else 1.0):
                yield name, sign * value, np.asarray(
                    autoaugment._apply_op(image, name, sign * value, made.interpolation, made.fill))


@pytest.mark.parametrize("kind", ["noise", "smooth", "flat"])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_change(tmp_path, policy, kind):
    for width, height in SIZES:
        if (width, height) == (224, 224) and kind != "noise":
            continue
        Image.fromarray(draw(kind, width, height)).save(tmp_path / "in.png")
        run("policy", tmp_path / "in.png", policy, tmp_path / "out.npy")
        found = np.load(tmp_path / "out.npy").reshape(-1, height, width, 3)
        wanted = list(wanted_images(policy, Image.open(tmp_path / "in.png")))
        assert len(wanted) == len(found) == 14 * 31 * 2
        for (name, value, image), mine in zip(wanted, found):
            assert (image == mine).all(), f"{name} {value} of {width} x {height}: {(image != mine).sum()} bytes differ"
