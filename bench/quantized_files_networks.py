# SPDX-License-Identifier: Apache-2.0
"""Small networks of many kinds for bench/quantized_files.py, with random weights, and the inputs they are run on.

A network is a torch module in evaluation mode, and a function that draws inputs. Scales and statistics of normalizations differ from
channel to channel.
"""
import torch
from torch import nn
from torch.nn import functional


def conv(n_in, n_out, kernel=3, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(n_out)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    """A ResNet: sums, strides, MaxPool, a mean over pixels."""

    def __init__(self):
        super().__init__()
        self.stem, self.pool = conv(3, 16), nn.MaxPool2d(3, 2, 1)
        self.a1, self.a2 = conv(16, 16), conv(16, 16, act=None)
        self.b1, self.b2, self.short = conv(16, 32, stride=2), conv(32, 32, act=None), conv(16, 32, 1, 2, act=None)
        self.mean, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(32, 10)

    def forward(self, image):
        x = self.pool(self.stem(image))
        x = functional.relu(x + self.a2(self.a1(x)))
        x = functional.relu(self.b2(self.b1(x)) + self.short(x))
        return self.head(torch.flatten(self.mean(x), 1))


class Mobile(nn.Module):
    """Depthwise windows between 1x1 convolutions, Relu6, and one gate of squeeze-and-excitation."""

    def __init__(self, act=nn.ReLU6):
        super().__init__()
        self.stem = conv(3, 16, stride=2, act=act)
        self.wide, self.depth, self.narrow = conv(16, 48, 1, act=act), conv(48, 48, 5, 1, 48, act=act), conv(48, 16, 1, act=None)
        self.squeeze, self.excite = nn.Conv2d(48, 12, 1), nn.Conv2d(12, 48, 1)
        self.last, self.head = conv(16, 64, 1, act=act), nn.Linear(64, 10)

    def forward(self, image):
        x = self.stem(image)
        y = self.depth(self.wide(x))
        gate = functional.hardsigmoid(self.excite(functional.relu(self.squeeze(functional.adaptive_avg_pool2d(y, 1)))))
        return self.head(self.last(x + self.narrow(y * gate)).mean((2, 3)))


class Hourglass(nn.Module):
    """Resized and transposed convolutions, Concat of skips, LeakyRelu, PRelu, AveragePool, Sigmoid."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2 = conv(3, 16, act=lambda: nn.LeakyReLU(0.1)), conv(16, 32, stride=2, act=lambda: nn.PReLU(32))
        self.pool, self.deep = nn.AvgPool2d(2), conv(32, 32, groups=4)
        self.up1, self.mix1 = nn.ConvTranspose2d(32, 32, 2, 2), conv(64, 16)
        self.mix2, self.out = conv(32, 16, act=nn.Hardswish), nn.Conv2d(16, 2, 1)

    def forward(self, image):
        first = self.down1(image)
        second = self.down2(first)
        x = self.up1(self.deep(self.pool(second)))
        x = functional.interpolate(self.mix1(torch.cat([x, second], 1)), scale_factor=2, mode="nearest")
        return torch.sigmoid(self.out(self.mix2(torch.cat([x, first], 1))))


class Detector(nn.Module):
    """Heads at two sizes, whose results are permuted, flattened, joined and decoded; bilinear Resize, channels shuffled and split."""

    def __init__(self):
        super().__init__()
        self.stem, self.next, self.left = conv(3, 16, stride=2, act=nn.SiLU), conv(16, 32, stride=2, act=nn.SiLU), conv(16, 16, act=nn.SiLU)
        self.lateral, self.head1, self.head2 = nn.Conv2d(32, 32, 1), nn.Conv2d(32, 9, 3, padding=1), nn.Conv2d(32, 9, 3, padding=1)
        self.top = conv(16, 32, 1)

    def forward(self, image):
        x = self.stem(image)
        deep = self.next(x)
        one, two = deep.chunk(2, 1)
        deep = torch.cat([self.left(one), two], 1)
        n, c, h, w = deep.shape
        deep = self.lateral(deep.reshape(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))
        fine = self.top(x) + functional.interpolate(deep, scale_factor=2, mode="bilinear", align_corners=False)
        heads = [self.head1(fine), self.head2(functional.max_pool2d(deep, 5, 1, 2))]
        rows = torch.cat([head.permute(0, 2, 3, 1).reshape(n, -1, 9) for head in heads], 1)
        return torch.cat([torch.exp(0.1 * rows[..., :4]), torch.sigmoid(rows[..., 4:])], -1)


class Words(nn.Module):
    """An encoder of two blocks with attention of four heads, LayerNorm, Gelu and a classifier."""

    def __init__(self, width=64):
        super().__init__()
        self.embed, self.place = nn.Embedding(100, width), nn.Parameter(torch.randn(12, width))
        self.blocks = nn.ModuleList([nn.ModuleDict({name: nn.Linear(*size) for name, size in {
            "q": (width, width), "k": (width, width), "v": (width, width), "o": (width, width), "up": (width, 2 * width),
            "down": (2 * width, width)}.items()}) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(4)])
        self.head = nn.Linear(width, 5)

    def forward(self, ids):
        x = self.embed(ids) + self.place
        for at, block in enumerate(self.blocks):
            q, k, v = (block[name](x).reshape(x.shape[0], 12, 4, -1).transpose(1, 2) for name in "qkv")
            mixed = torch.softmax(q @ k.transpose(2, 3) * 0.25, -1) @ v
            x = self.norms[2 * at](x + block["o"](mixed.transpose(1, 2).reshape(x.shape)))
            x = self.norms[2 * at + 1](x + block["down"](functional.gelu(block["up"](x))))
        return self.head(torch.tanh(x[:, 0]))


class Sequence(nn.Module):
    """Convolutions along one axis, then an LSTM or a GRU of two directions, and a product."""

    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(8, 32, 5, padding=2), nn.ELU(), nn.MaxPool1d(2))
        self.recurrent, self.head = kind(32, 24, bidirectional=True, batch_first=True), nn.Linear(48, 7)

    def forward(self, signal):
        x, _ = self.recurrent(self.conv(signal).transpose(1, 2))
        return self.head(x)


def layers():
    """An MLP with the functions that quantizers may take into a product."""
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 64), nn.Sigmoid(), nn.Linear(64, 32),
                         nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 10), nn.Softmax(-1))


def pictures(size):
    return lambda n: {"image": torch.randn(n, 3, size, size)}


def torchvision(name):
    def make():
        import torchvision.models
        options = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
        return getattr(torchvision.models, name)(weights=None, num_classes=20, **options)
    return make


NETWORKS = {
    "residual": (Residual, pictures(32)), "mobile": (Mobile, pictures(32)), "mobile-hard": (lambda: Mobile(nn.Hardswish), pictures(32)),
    "hourglass": (Hourglass, pictures(32)), "detector": (Detector, pictures(32)), "mlp": (layers, lambda n: {"x": torch.randn(n, 3, 16)}),
    "words": (Words, lambda n: {"ids": torch.randint(0, 100, (n, 12))}),
    "lstm": (Sequence, lambda n: {"signal": torch.randn(n, 8, 20)}), "gru": (lambda: Sequence(nn.GRU), lambda n: {"signal": torch.randn(n, 8, 20)}),
    **{name: (torchvision(name), pictures(64)) for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x1_0", "googlenet",
                                                            "efficientnet_b0", "convnext_tiny")},
}
SAMPLES = 8


def vary(module):
    """Channels of different size, as trained networks have."""
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.LayerNorm)):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, 0, 0.3)
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.running_var, 0.5, 1.5)
            nn.init.normal_(part.running_mean, 0, 0.2)


def network(name):
    """The module, and its samples by the name of its input."""
    torch.manual_seed(len(name))
    build, draw = NETWORKS[name]
    module = build()
    vary(module)
    samples = draw(SAMPLES)
    if any(isinstance(part, nn.BatchNorm2d) for part in module.modules()):
        module.train()
        with torch.no_grad():
            for _ in range(3):
                module(*samples.values())  # statistics of what the layers see
    return module.eval(), samples
