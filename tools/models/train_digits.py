#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: torch onnx onnxscript numpy
"""Trains the small residual network of `lacuna demo` on the digits data and exports it to ONNX.

    train_digits.py DIGITS.csv.gz OUT.onnx [--seed N] [--epochs N]

Images 1437.. (the last 20 %) are the test split and are never trained on.
Prints the accuracy dense, after one-shot 2:4 pruning by magnitude, and after the same with a simple channel
permutation, so that a change of recipe shows what it does to the demo.
"""
import argparse
import copy
import gzip

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

N_TRAIN = 1437


def read(path):
    """pixels / 16 as [n, 1, 8, 8], labels; the label is the last column."""
    with gzip.open(path, "rt") as f:
        table = np.loadtxt(f, delimiter=",", dtype=np.float32)
    return torch.from_numpy(table[:, :64].reshape(-1, 1, 8, 8) / 16), torch.from_numpy(table[:, 64]).long()


def conv_bn(i, o, k, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, k, stride, k // 2, bias=False), nn.BatchNorm2d(o))


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.conv2 = conv_bn(i, o, 3, stride), conv_bn(o, o, 3)
        self.shortcut = conv_bn(i, o, 1, stride) if i != o or stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.conv2(F.relu(self.conv1(x))) + self.shortcut(x))


class Digits(nn.Module):
    def __init__(self, widths):
        super().__init__()
        a, b, c = widths
        self.stem = conv_bn(1, a, 3)
        self.stage1, self.stage2, self.stage3 = Block(a, a, 1), Block(a, b, 2), Block(b, c, 2)
        self.pool, self.flatten, self.fc = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10)

    def forward(self, x):
        x = self.stage3(self.stage2(self.stage1(F.relu(self.stem(x)))))
        return self.fc(self.flatten(self.pool(x)))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item() * 100


def bent(x):
    """Each image turned, sheared, scaled and moved a little."""
    n = len(x)
    angle, shear = torch.empty(2, n).uniform_(-0.2, 0.2)
    sx, sy = torch.empty(2, n).uniform_(0.85, 1.15)
    tx, ty = torch.empty(2, n).uniform_(-0.25, 0.25)  # half an image is 1: a pixel is 0.25
    c, s = angle.cos(), angle.sin()
    theta = torch.stack([sx * c, shear - s, tx, s, sy * c, ty], 1).reshape(n, 2, 3)
    return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)


def train(x, y, widths, seed, epochs, decay, rate, batch=64):
    torch.manual_seed(seed)
    model = Digits(widths)
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, weight_decay=decay, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, epochs * (N_TRAIN // batch), pct_start=0.2)
    for _ in range(epochs):
        model.train()
        order = torch.randperm(N_TRAIN)
        for i in range(N_TRAIN // batch):
            pick = order[i * batch:(i + 1) * batch]
            optimizer.zero_grad()
            F.cross_entropy(model(bent(x[pick])), y[pick], label_smoothing=0.05).backward()
            optimizer.step()
            schedule.step()
    return model


def untie_betas(model):
    """The two betas of a residual sum have the same gradient and would stay equal, and the exporter would
    merge them into one tensor: move a little from one to the other, which changes nothing."""
    for block in (model.stage2, model.stage3):
        delta = 0.05 * torch.randn_like(block.conv2[1].bias.data)
        block.conv2[1].bias.data += delta
        block.shortcut[1].bias.data -= delta


def kept(rows):
    """[n, columns] magnitudes: what 2:4 keeps."""
    groups = rows.reshape(len(rows), -1, 4)
    return np.sort(groups, 2)[:, :, 2:].sum()


def find_order(rows, rng, rounds=4000):
    """Column order by random improving swaps."""
    order = np.arange(rows.shape[1])
    for _ in range(rounds):
        a, b = rng.integers(0, len(order), 2)
        if a // 4 == b // 4:
            continue
        pair = np.r_[a // 4 * 4:a // 4 * 4 + 4, b // 4 * 4:b // 4 * 4 + 4]
        new = order.copy()
        new[[a, b]] = order[[b, a]]
        if kept(rows[:, new[pair]]) > kept(rows[:, order[pair]]):
            order = new
    return order


def as_rows(w):
    return np.abs(w.numpy()).reshape(len(w), w.shape[1], -1).transpose(0, 2, 1).reshape(-1, w.shape[1])


def prune(model, permute):
    """2:4 on every eligible layer. Layers that read the same channels share their order."""
    model, rng = copy.deepcopy(model), np.random.default_rng(0)
    m = dict(model.named_modules())
    readers = [["stage1.conv1.0", "stage2.conv1.0", "stage2.shortcut.0"], ["stage3.conv1.0", "stage3.shortcut.0"], ["fc"],
               ["stage1.conv2.0"], ["stage2.conv2.0"], ["stage3.conv2.0"]]
    for names in readers:
        weights = [m[n].weight.data for n in names if m[n].weight.shape[1] % 16 == 0 and len(m[n].weight) % 8 == 0]
        if not weights:
            continue
        rows = np.concatenate([as_rows(w) for w in weights])
        order = find_order(rows, rng) if permute else np.arange(rows.shape[1])
        for w in weights:  # masking in the new order equals permuting, masking and permuting back
            r = as_rows(w)[:, order].reshape(-1, 4)
            low = np.argsort(-r, axis=1, kind="stable")[:, 2:]
            mask = np.ones_like(r)
            np.put_along_axis(mask, low, 0, 1)
            back = np.empty((len(r) * 4 // len(order), len(order)), np.float32)
            back[:, order] = mask.reshape(back.shape)
            back = back.reshape(w.shape[0], -1, w.shape[1]).transpose(0, 2, 1).reshape(w.shape)
            w.mul_(torch.from_numpy(back))
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("output")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--widths", type=int, nargs=3, default=[32, 32, 64])
    parser.add_argument("--decay", type=float, default=5e-4)
    parser.add_argument("--rate", type=float, default=0.1)
    args = parser.parse_args()
    torch.set_num_threads(2)
    x, y = read(args.data)
    model = train(x, y, args.widths, args.seed, args.epochs, args.decay, args.rate)
    test = x[N_TRAIN:], y[N_TRAIN:]
    print(f"seed {args.seed}: {4 * sum(p.numel() for p in model.parameters()) / 1e3:.0f} kB, "
          f"test accuracy dense {accuracy(model, *test):.2f}, 2:4 {accuracy(prune(model, False), *test):.2f}, "
          f"permuted 2:4 {accuracy(prune(model, True), *test):.2f} %", flush=True)
    untie_betas(model)
    model.eval()
    torch.onnx.export(model, (x[:1],), args.output, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False, opset_version=17, input_names=["image"], output_names=["scores"],
                      dynamic_axes={"image": {0: "N"}, "scores": {0: "N"}})


if __name__ == "__main__":
    main()
