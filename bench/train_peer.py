# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/train.py: the same network, batch, optimizer and update, and the orders of train_worker.c.

    train_peer.py ARCH BATCH f32|bf16 THREADS channels_last|contiguous

bf16 is PyTorch's own: autocast forward, weights in float32. ImageNet's networks come from torchvision, CIFAR's are written here
as the library builds them (shortcuts of padding).
"""
import ctypes
import json
import resource
import signal
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3x3 convolutions; where the size changes, every other pixel and channels of zeros go round them."""

    def __init__(self, before, after):
        super().__init__()
        self.stride, self.zeros = after // before, (after - before) // 2
        self.conv1 = nn.Conv2d(before, after, 3, self.stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.stride > 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.zeros, self.zeros))
        return functional.relu(y + x, inplace=True)


class CifarResnet(nn.Module):
    def __init__(self, depth):
        super().__init__()
        widths = [16 << stage for stage in range(3) for _ in range((depth - 2) // 6)]
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(*(Block(before, after) for before, after in zip([16, *widths], widths)))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        return self.fc(self.blocks(x).mean((2, 3)))


def network_of(arch):
    """The network, and the image's side."""
    if arch.startswith("cifar-resnet"):
        return CifarResnet(int(arch.removeprefix("cifar-resnet"))), 32
    import torchvision
    return getattr(torchvision.models, arch)(), 224


class Training:
    def __init__(self, arch, batch, dtype, layout):
        memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
        torch.manual_seed(1)
        network, side = network_of(arch)
        self.network = network.to(memory_format=memory).train()
        self.images = (2 * torch.rand(batch, 3, side, side) - 1).to(memory_format=memory)
        self.labels = torch.arange(batch) % self.network.fc.out_features
        self.bf16 = dtype == "bf16"
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            scores = self.network(self.images)
        loss = functional.cross_entropy(scores.float(), self.labels)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def run_for(training, seconds):
    wall, cpu, begin = [], [], time.monotonic()
    while not wall or time.monotonic() - begin < seconds:
        start = time.monotonic(), time.process_time()
        training.step()
        wall.append(round(1e3 * (time.monotonic() - start[0]), 3))
        cpu.append(round(1e3 * (time.process_time() - start[1]), 3))
    return {"ms": wall, "cpu_ms": cpu}


def main():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # a stopped worker does not see its parent's end
    arch, batch, dtype, threads, layout = sys.argv[1:]
    torch.set_num_threads(int(threads))
    begin = time.monotonic()
    training = Training(arch, int(batch), dtype, layout)
    planned = time.monotonic()
    loss = training.step()
    print(json.dumps({"version": torch.__version__, "plan_s": planned - begin, "first_s": time.monotonic() - planned,
                      "loss": loss}), flush=True)
    for line in sys.stdin:
        order, _, number = line.strip().partition(" ")
        if order == "run":
            answer = run_for(training, float(number))
        elif order == "memory":
            answer = {"peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}
        else:
            break
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
