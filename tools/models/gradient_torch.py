#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: torch numpy onnx
"""Losses, gradients and running statistics of small networks in PyTorch, float64, training mode.

    gradient_torch.py OUT_DIR [--resnet20 MODEL.onnx --cifar DIR]

Writes OUT_DIR/NAME.txt, one array a line: `name shape = numbers`, where name is x, labels, loss, p/TENSOR (a parameter or
statistic before the step), g/TENSOR (its gradient) or u/TENSOR (a statistic after it). Shape is 2x3, s for a scalar.
tests/unit/graph_gradient_networks.c has the same networks and compares. resnet20.txt holds the loss alone, and for each
parameter its gradient's sum and sum of squares: the images and weights come from elsewhere.
"""
import argparse
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    shape, classes = (3, 4, 5, 5), 3

    def __init__(self):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(4, 3, 1, bias=False), nn.BatchNorm2d(3)
        self.c2, self.n2 = nn.Conv2d(3, 3, 3, 2, 1, bias=False), nn.BatchNorm2d(3)
        self.c3, self.n3 = nn.Conv2d(3, 8, 1, bias=False), nn.BatchNorm2d(8)
        self.cs, self.ns = nn.Conv2d(4, 8, 1, 2, bias=False), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, self.classes)

    def forward(self, x):
        y = F.relu(self.n1(self.c1(x)))
        y = F.relu(self.n2(self.c2(y)))
        y = F.relu(self.n3(self.c3(y)) + self.ns(self.cs(x)))
        return self.fc(y.mean((2, 3)))


class Mobile(nn.Module):
    shape, classes = (2, 3, 8, 8), 4

    def __init__(self):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(3, 4, 3, 1, 1, bias=False), nn.BatchNorm2d(4, momentum=0.25)
        self.c2, self.n2 = nn.Conv2d(4, 4, 3, 2, 1, groups=4, bias=False), nn.BatchNorm2d(4, eps=1e-3)
        self.s1, self.s2 = nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1)
        self.c3 = nn.Conv2d(4, 6, 1)
        self.fc = nn.Linear(24, self.classes)

    def forward(self, x):
        y = F.hardswish(self.n1(self.c1(x)))
        y = F.relu6(self.n2(self.c2(y)) * 4)
        gate = F.hardsigmoid(self.s2(F.relu(self.s1(F.adaptive_avg_pool2d(y, 1)))))
        y = F.max_pool2d(self.c3(y * gate), 3, 2, 1)
        return self.fc(y.flatten(1))


class Attention(nn.Module):
    shape, classes = (2, 3, 8, 8), 5

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, 4)
        self.place = nn.Parameter(torch.empty(1, 4, 8))
        self.l1, self.l2, self.l3 = nn.LayerNorm(8), nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)
        self.fc = nn.Linear(8, self.classes)

    def forward(self, x):
        n = x.shape[0]
        x = self.patch(x).flatten(2).transpose(1, 2) + self.place
        q, k, v = self.qkv(self.l1(x)).reshape(n, 4, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = torch.softmax(q @ k.transpose(2, 3) / 2, -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(n, 4, 8))
        x = x + self.down(F.gelu(self.up(self.l2(x))))
        return self.fc(self.l3(x).mean(1))


def line(name, array):
    array = np.asarray(array, dtype=np.float64)
    shape = "x".join(map(str, array.shape)) or "s"
    return f"{name} {shape} = " + " ".join("%.17g" % v for v in array.reshape(-1)) + "\n"


def is_statistic(name):
    return name.endswith(("running_mean", "running_var"))


def small(network, seed):
    """A network with random parameters, one step; the text of its file."""
    torch.manual_seed(seed)
    net = network().double().train()
    with torch.no_grad():
        for name, p in list(net.named_parameters()) + list(net.named_buffers()):
            if p.is_floating_point():
                p.copy_(torch.rand_like(p) + 0.5 if name.endswith("var") else torch.randn_like(p) * 0.4)
    x = torch.randn(network.shape, dtype=torch.float64)
    labels = torch.softmax(torch.randn(network.shape[0], network.classes, dtype=torch.float64), 1)
    text = line("x", x) + line("labels", labels)
    for name, p in list(net.named_parameters()) + list(net.named_buffers()):
        if p.is_floating_point():
            text += line("p/" + name, p.detach())
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    text += line("loss", loss.detach())
    text += "".join(line("g/" + name, p.grad) for name, p in net.named_parameters())
    text += "".join(line("u/" + name, p) for name, p in net.named_buffers() if is_statistic(name))
    return text


def resnet20_forward(p, x):
    """The CIFAR ResNet with zero-padded shortcuts, from its tensors by name; statistics in p are updated."""

    def norm(y, at):
        return F.batch_norm(y, p[at + ".running_mean"], p[at + ".running_var"], p[at + ".weight"], p[at + ".bias"], True)

    x = F.relu(norm(F.conv2d(x, p["conv1.weight"], padding=1), "bn1"))
    for stage in range(1, 4):
        for block in range(3):
            at, stride = f"layer{stage}.{block}.", 2 if stage > 1 and block == 0 else 1
            y = F.relu(norm(F.conv2d(x, p[at + "conv1.weight"], stride=stride, padding=1), at + "bn1"))
            y = norm(F.conv2d(y, p[at + "conv2.weight"], padding=1), at + "bn2")
            if stride == 2:
                more = x.shape[1] // 2
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more, more))
            x = F.relu(x + y)
    return F.linear(x.mean((2, 3)), p["linear.weight"], p["linear.bias"])


def resnet20(model, folder, n_images=16):
    import onnx
    from onnx import numpy_helper

    stored = onnx.load(model).graph.initializer
    p = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()).double() for t in stored}
    p = {name: t for name, t in p.items() if "." in name and t.dim()}
    raw = np.fromfile(pathlib.Path(folder) / "data_batch_1.bin", np.uint8, n_images * 3073).reshape(n_images, 3073)
    mean, std = ([np.reshape(v, (3, 1, 1)) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    x = torch.from_numpy((raw[:, 1:].reshape(-1, 3, 32, 32) / 255.0 - mean) / std)
    params = [name for name in p if not is_statistic(name)]
    for name in params:
        p[name].requires_grad_()
    loss = F.cross_entropy(resnet20_forward(p, x), torch.from_numpy(raw[:, 0].astype(np.int64)))
    loss.backward()
    text = line("loss", loss.detach())
    for name in params:
        g = p[name].grad
        text += line("g/" + name, [g.sum(), (g * g).sum()])
    return text + "".join(line("u/" + name, [p[name].sum(), (p[name] ** 2).sum()]) for name in p if is_statistic(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--resnet20")
    parser.add_argument("--cifar")
    options = parser.parse_args()
    for seed, network in enumerate((Bottleneck, Mobile, Attention)):
        (options.out / f"{network.__name__.lower()}.txt").write_text(small(network, seed))
    if options.resnet20:
        (options.out / "resnet20.txt").write_text(resnet20(options.resnet20, options.cifar))


if __name__ == "__main__":
    main()
