# SPDX-License-Identifier: Apache-2.0
"""Every operator against ONNX Runtime: one-node models, run by the plain engine and by the runtime.

A case is a line in the tables below; which operators are declared is asked of the program itself, so that an operator
without a case fails the suite.
"""

import dataclasses
import math
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_quantized_operators import CASES as QUANTIZED

# Operators that ONNX Runtime's CPU provider cannot run, with the place where they are tested instead.
EXCEPTIONS = {}

RNG = np.random.default_rng(20)
CASES = []


@dataclasses.dataclass
class Case:
    op: str
    inputs: list
    opset: int
    n_outputs: int
    stored: tuple
    tolerance: float
    attrs: dict
    reference: object = None

    def __str__(self):
        shapes = "_".join("x".join(map(str, i.shape)) or "scalar" for i in self.inputs if i is not None)
        attrs = "_".join(f"{k}={v}" for k, v in self.attrs.items()
                         if not isinstance(v, (onnx.TensorProto, onnx.GraphProto)))
        return f"{self.op}-{self.opset}-{shapes}-{attrs}".replace(" ", "").replace("/", "_")


def case(op, *inputs, opset=17, outputs=1, stored=(), tolerance=1e-5, reference=None, **attrs):
    """`stored` are the ports that become initializers; a number of outputs, or a list of flags (False: left out)."""
    CASES.append(Case(op, list(inputs), opset, outputs, tuple(stored), tolerance, attrs, reference))


def f32(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def i64s(values):
    return np.array(values, np.int64)


def fs(values):
    return np.array(values, np.float32)


def ints(*shape, low=-5, high=6, dtype=np.int64):
    return RNG.integers(low, high, shape).astype(dtype)


def bools(*shape):
    return RNG.integers(0, 2, shape).astype(bool)


# ---- Element by element ----------------------------------------------------------------------------------------

X = f32(2, 3, 4)
for name in "Abs Atan Cos Erf Exp Neg Relu Sigmoid Sin Softplus Softsign Tan Tanh Elu Selu LeakyRelu".split():
    case(name, X, opset=9 if name in ("Erf",) else 7)
for name in "Asinh Cosh Sinh Sign Ceil Floor Round Celu Mish HardSwish HardSigmoid ThresholdedRelu".split():
    case(name, X, opset={"Mish": 18, "HardSwish": 14, "Round": 11, "Celu": 12}.get(name, 10))
for name in "Acos Asin Atanh".split():
    case(name, f32(5, 3, low=-0.9, high=0.9), opset=9)
for name in "Log Sqrt Reciprocal".split():
    case(name, f32(5, 3, low=0.1, high=4), opset=13)
case("Acosh", f32(4, low=1.1, high=4), opset=9)
case("Round", fs([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4]), opset=11)
for name in ("Abs", "Neg", "Sign", "Relu"):
    case(name, ints(3, 4, dtype=np.int32), opset=14)
case("Abs", ints(7, dtype=np.int8), opset=13)
case("Elu", X, alpha=0.5)
case("Selu", X, alpha=1.5, gamma=2.0)
case("LeakyRelu", X, alpha=0.3, opset=16)
case("Celu", X, alpha=0.7)
case("HardSigmoid", f32(50, low=-6, high=6), alpha=0.3, beta=0.4)
case("HardSwish", f32(50, low=-6, high=6))
case("Softplus", fs([-800, -20, 0, 20, 800]))
case("Sigmoid", fs([-800, -20, 0, 20, 800]))
case("ThresholdedRelu", X, alpha=0.5)
case("Gelu", X, opset=20)
case("Gelu", X, opset=20, approximate="tanh")
case("Swish", X, opset=24, reference=lambda x: x / (1 + np.exp(-x)))
case("Swish", X, opset=24, alpha=0.5, reference=lambda x: x / (1 + np.exp(-0.5 * x)))
case("Not", bools(3, 4))
case("BitwiseNot", ints(3, 4, dtype=np.int32), opset=18)
SPECIAL = fs([1, np.nan, np.inf, -np.inf, -0.0])
case("IsNaN", SPECIAL, opset=9)
case("IsInf", SPECIAL, opset=10)
case("IsInf", SPECIAL, detect_negative=0, opset=10)
case("IsInf", SPECIAL, detect_positive=0, opset=20)
for name in "Relu Sigmoid Tanh Abs Sign Sqrt LeakyRelu Softplus HardSwish".split():
    case(name, SPECIAL)
case("Clip", X, opset=7, min=-0.5, max=0.7)
case("Clip", X, opset=7, max=0.7)
case("Clip", X, np.float32(-0.5), np.float32(0.5), opset=11, stored=(1, 2))
case("Clip", X, None, np.float32(0.5), opset=13)
case("Clip", X, np.float32(-0.1), opset=13)
case("Clip", ints(9, dtype=np.int32), np.int32(-2), np.int32(3), opset=12)

SHAPES = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((1,), (2, 3)), ((), (2, 2)), ((2, 0, 3), (1, 3))]
for name in "Add Sub Mul Div Max Min".split():
    for a, b in SHAPES:
        case(name, f32(*a), f32(*b, low=0.5), opset=13)
    case(name, ints(3, 4, dtype=np.int32), ints(4, low=1, dtype=np.int32), opset=13)
    case(name, ints(3, 4), ints(3, 1, low=1), opset=14)
case("Div", i64(-7, 7, -7, 7), i64(2, -2, -2, 2), opset=14)
case("Add", np.array([120, -120], np.int8), np.array([20, -20], np.int8), opset=14)
case("Mul", np.array([200, 17], np.uint8), np.array([3, 31], np.uint8), opset=14)
for name in "Max Min Sum Mean".split():
    case(name, f32(2, 3), opset=13)
    case(name, f32(2, 3), f32(3), f32(2, 1), opset=13)
case("Max", fs([1, np.nan, 2]), fs([np.nan, 1, 3]))
case("Pow", f32(3, 4, low=0.1), f32(4))
case("Pow", f32(3, 4), np.float32(2))
case("Pow", f32(3, 4), np.int64(3), opset=13)
case("Pow", ints(3, 4), i64(0, 1, 2, 3), opset=13)
case("Pow", ints(3, 4, dtype=np.int32), fs([2]), opset=15)
case("Mod", ints(20, low=-9), ints(20, low=1, high=5))
case("Mod", ints(20, low=-9), ints(20, low=-5, high=0))
case("Mod", ints(20, low=-9), ints(20, low=-5, high=0), fmod=1)
case("Mod", f32(20, low=-9, high=9), f32(20, low=0.5), fmod=1)
for name in ("And", "Or", "Xor"):
    case(name, bools(3, 4), bools(4))
    case(name, bools(3, 1), bools(1, 4), opset=7)
for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    case(name, ints(3, 4, dtype=np.int32), ints(4, dtype=np.int32), opset=18)
for name in ("Greater", "Less"):
    case(name, f32(3, 4), f32(4), opset=9)
    case(name, ints(3, 4), ints(3, 1), opset=13)
for name in ("GreaterOrEqual", "LessOrEqual"):
    case(name, f32(3, 4), f32(4), opset=12)
    case(name, ints(3, 4), ints(3, 1), opset=16)
case("Equal", ints(3, 4, low=0, high=2), ints(4, low=0, high=2), opset=7)
case("Equal", fs([1, 2, np.nan]), fs([1, 3, np.nan]), opset=13)
case("Equal", bools(6), bools(6), opset=13)
case("BitShift", ints(8, low=0, high=255, dtype=np.uint8), ints(8, low=0, high=8, dtype=np.uint8), direction="LEFT")
case("BitShift", ints(8, low=0, high=9999, dtype=np.uint32), ints(8, low=0, high=8, dtype=np.uint32), direction="RIGHT")
case("PRelu", f32(2, 3, 4, 4), f32(3, 1, 1), opset=9)
case("PRelu", f32(2, 3), f32(1), opset=16)
case("PRelu", f32(2, 3, 4), f32(2, 3, 4), opset=16)
case("Where", bools(3, 4), f32(4), f32(3, 1), opset=9)
case("Where", bools(1), ints(3, 4), ints(4), opset=16)

# ---- Convolutions ------------------------------------------------------------------------------------------------

case("Conv", f32(2, 3, 9), f32(4, 3, 3), opset=7)
case("Conv", f32(2, 3, 9, 8), f32(4, 3, 3, 3), f32(4))
case("Conv", f32(2, 3, 9, 8), f32(4, 3, 3, 3), f32(4), opset=22)
case("Conv", f32(1, 2, 5, 6, 7), f32(3, 2, 2, 3, 2), f32(3), pads=[0, 1, 1, 1, 0, 1], strides=[1, 2, 1])
case("Conv", f32(2, 4, 17, 19), f32(6, 4, 3, 2), f32(6), pads=[2, 1, 0, 3], strides=[2, 3], dilations=[2, 1])
case("Conv", f32(2, 6, 8, 8), f32(9, 2, 3, 3), f32(9), group=3, pads=[1, 1, 1, 1])
case("Conv", f32(2, 6, 8, 8), f32(6, 1, 3, 3), f32(6), group=6, pads=[1, 1, 1, 1])
case("Conv", f32(2, 6, 8, 9), f32(6, 1, 3, 5), group=6, pads=[1, 2, 1, 2], strides=[2, 2])
case("Conv", f32(2, 3, 8, 8), f32(9, 1, 3, 3), f32(9), group=3, pads=[1, 1, 1, 1])
case("Conv", f32(1, 3, 12, 12), f32(6, 1, 3, 3), group=3, dilations=[2, 3], strides=[1, 2])
case("Conv", f32(1, 2, 4, 5, 6), f32(2, 1, 3, 3, 3), group=2, pads=[1] * 6)
case("Conv", f32(1, 300, 20, 20), f32(40, 300, 1, 1), f32(40), tolerance=1e-4)
case("Conv", f32(1, 1, 5, 5), f32(7, 1, 3, 3), f32(7), pads=[4, 4, 4, 4])
case("Conv", f32(3, 2, 40, 3), f32(13, 2, 5, 3), kernel_shape=[5, 3])
for pad in ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"):
    for stride in (1, 2, 3):
        case("Conv", f32(1, 2, 10, 11), f32(3, 2, 3, 4), auto_pad=pad, strides=[stride, stride])
        case("MaxPool", f32(1, 2, 10, 11), kernel_shape=[3, 4], auto_pad=pad, strides=[stride, stride])
        case("AveragePool", f32(1, 2, 10, 11), kernel_shape=[3, 4], auto_pad=pad, strides=[stride, stride])
case("ConvTranspose", f32(2, 3, 7), f32(3, 4, 3), f32(4))
case("ConvTranspose", f32(2, 3, 5, 6), f32(3, 4, 3, 3), opset=7)
case("ConvTranspose", f32(2, 3, 5, 6), f32(3, 4, 3, 2), f32(4), strides=[2, 3], pads=[1, 0, 1, 1], output_padding=[1, 2])
case("ConvTranspose", f32(2, 3, 5, 6), f32(3, 4, 3, 2), strides=[3, 2], dilations=[2, 2], pads=[1, 2, 0, 1])
case("ConvTranspose", f32(2, 6, 5, 6), f32(6, 2, 3, 3), f32(6), group=3, strides=[2, 2])
case("ConvTranspose", f32(2, 4, 5, 6), f32(4, 1, 3, 3), f32(4), group=4, strides=[2, 2])
case("ConvTranspose", f32(1, 2, 3, 4, 5), f32(2, 3, 2, 3, 2), f32(3), strides=[2, 1, 2])
case("ConvTranspose", f32(1, 2, 4, 4), f32(2, 3, 3, 3), output_shape=[8, 9], strides=[2, 2])
case("ConvTranspose", f32(1, 2, 4, 4), f32(2, 3, 3, 3), output_shape=[8, 8], strides=[2, 2], auto_pad="SAME_UPPER")
case("ConvTranspose", f32(1, 2, 4, 4), f32(2, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER")
case("ConvTranspose", f32(1, 2, 4, 4), f32(2, 3, 3, 3), strides=[2, 2], auto_pad="SAME_LOWER")
case("ConvTranspose", f32(1, 2, 4, 4), f32(2, 3, 3, 3), strides=[2, 2], auto_pad="VALID")

# ---- Matrix products ---------------------------------------------------------------------------------------------

case("Gemm", f32(3, 5), f32(5, 4), f32(4), opset=7)
case("Gemm", f32(3, 5), f32(5, 4), f32(3, 1), alpha=0.5, beta=2.0, opset=9)
case("Gemm", f32(5, 3), f32(4, 5), f32(3, 4), transA=1, transB=1)
case("Gemm", f32(3, 5), f32(4, 5), transB=1, opset=11)
case("Gemm", f32(5, 3), f32(5, 4), np.float32(3), transA=1, alpha=-1.0, opset=13)
case("Gemm", f32(1, 700), f32(130, 700), f32(1, 130), transB=1, tolerance=1e-4)
MATMULS = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((7, 1, 3, 4), (2, 4, 5)), ((4,), (4, 5)),
           ((3, 4), (4,)), ((4,), (4,)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((3, 4), (2, 4, 5)), ((1, 3, 4), (5, 4, 2)),
           ((2, 0, 4), (4, 3)), ((60, 300), (300, 101))]
for a, b in MATMULS:
    case("MatMul", f32(*a), f32(*b), opset=9, tolerance=1e-4)

case("Einsum", f32(2, 3), f32(3, 4), equation="ij,jk->ik", opset=12)
case("Einsum", f32(2, 3, 4), f32(2, 5, 4), equation="bid,bjd->bij")
case("Einsum", f32(2, 3, 4), f32(4, 5), equation="...d,de")
case("Einsum", f32(2, 1, 3, 4), f32(1, 5, 4, 2), equation="...ij,...jk->...ik")
case("Einsum", f32(3, 3), equation="ii")
case("Einsum", f32(3, 3), equation="ii->i")
case("Einsum", f32(3, 4), equation="ba")
case("Einsum", f32(2), f32(3), f32(4), equation="i,j,k->kij")
case("Einsum", f32(2, 3), equation="Ab->")

# ---- Normalizations ----------------------------------------------------------------------------------------------

POSITIVE = dict(low=0.5, high=2.0)
for opset in (7, 9, 14, 15):
    case("BatchNormalization", f32(2, 3, 4, 5), f32(3), f32(3), f32(3), f32(3, **POSITIVE), opset=opset)
case("BatchNormalization", f32(6, 3), f32(3), f32(3), f32(3), f32(3, **POSITIVE), epsilon=1e-2)
case("BatchNormalization", f32(2, 3, 5), f32(3), f32(3), f32(3), f32(3, **POSITIVE), epsilon=1e-2)
case("BatchNormalization", f32(4, 3, 5, 5), f32(3), f32(3), f32(3), f32(3, **POSITIVE), outputs=3, training_mode=1,
     momentum=0.8, opset=15)
case("InstanceNormalization", f32(2, 3, 4, 5), f32(3), f32(3), opset=7)
case("InstanceNormalization", f32(2, 3, 40), f32(3), f32(3), epsilon=1e-2)
case("LayerNormalization", f32(2, 3, 8), f32(8), f32(8))
case("LayerNormalization", f32(2, 3, 8), f32(8))
case("LayerNormalization", f32(2, 3, 4, 5), f32(3, 4, 5), f32(3, 4, 5), axis=1, epsilon=1e-3)
case("LayerNormalization", f32(2, 3, 8), f32(8), f32(8), axis=-1, outputs=3)


def group_norm(x, scale, bias, groups, epsilon=1e-5):
    parts = x.reshape(x.shape[0], groups, -1).astype(np.float64)
    y = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + epsilon)
    per = [1, -1] + [1] * (x.ndim - 2)
    spread = x.shape[1] // scale.size
    return y.reshape(x.shape) * np.repeat(scale, spread).reshape(per) + np.repeat(bias, spread).reshape(per)


case("GroupNormalization", f32(2, 6, 4, 5), f32(6), f32(6), num_groups=3, opset=21)
case("GroupNormalization", f32(2, 6, 4, 5), f32(3), f32(3), num_groups=3, opset=18,
     reference=lambda x, s, b: group_norm(x, s, b, 3))
case("LpNormalization", f32(2, 3, 4), opset=7)
case("LpNormalization", f32(2, 3, 4), p=1, axis=1)
case("LRN", f32(2, 7, 3, 4), size=3, opset=7)
case("LRN", f32(2, 7, 3, 4), size=5, alpha=0.3, beta=0.6, bias=2.0)
for name in ("Softmax", "LogSoftmax", "Hardmax"):
    for axis in (0, 1, 2):
        case(name, f32(2, 3, 4), axis=axis, opset=7)
        case(name, f32(2, 3, 4), axis=axis, opset=13)
    case(name, f32(2, 3, 4), opset=11)
    case(name, f32(2, 3, 4), opset=13)
    case(name, f32(2, 3, 4), axis=-2, opset=13)
case("Softmax", fs([[1000, 1001], [-1000, -999]]))
case("Hardmax", fs([[1, 2, 2], [3, 3, 3]]), opset=13)

# ---- Pools -------------------------------------------------------------------------------------------------------

case("MaxPool", f32(2, 3, 9), kernel_shape=[3], opset=7)
case("MaxPool", f32(2, 3, 9, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], opset=8)
case("MaxPool", f32(2, 3, 9, 8), kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1, dilations=[2, 3], opset=10)
case("MaxPool", f32(2, 3, 9, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], outputs=2)
case("MaxPool", f32(2, 3, 9, 8), kernel_shape=[3, 3], strides=[2, 2], outputs=2, storage_order=1)
case("MaxPool", f32(1, 2, 5, 6, 7), kernel_shape=[2, 3, 2], strides=[1, 2, 3], outputs=2)
case("MaxPool", ints(1, 2, 6, 6, dtype=np.int8), kernel_shape=[2, 2], opset=12)
case("MaxPool", ints(1, 2, 6, 6, low=0, dtype=np.uint8), kernel_shape=[2, 2], opset=12)
case("AveragePool", f32(2, 3, 9), kernel_shape=[3], opset=7)
for count in (0, 1):
    case("AveragePool", f32(2, 3, 9, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], count_include_pad=count)
    case("AveragePool", f32(2, 3, 10, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=count,
         ceil_mode=1, opset=19)
    case("AveragePool", f32(2, 3, 11, 9), kernel_shape=[3, 3], dilations=[2, 2], pads=[1, 1, 1, 1],
         count_include_pad=count, opset=19)
for size in range(5, 12):
    for stride in (2, 3):
        case("MaxPool", f32(1, 1, size, size), kernel_shape=[2, 2], strides=[stride] * 2, pads=[1] * 4, ceil_mode=1)
        case("AveragePool", f32(1, 1, size, size), kernel_shape=[3, 3], strides=[stride] * 2, pads=[1] * 4, ceil_mode=1,
             opset=19)
case("LpPool", f32(2, 3, 9, 8), kernel_shape=[3, 2], opset=7)
case("LpPool", f32(2, 3, 9, 8), kernel_shape=[3, 2], p=3, strides=[2, 1], pads=[1, 1, 0, 0], opset=11)
case("LpPool", f32(2, 3, 9, 8), kernel_shape=[3, 2], p=1, dilations=[2, 2], opset=18)
for name in ("GlobalAveragePool", "GlobalMaxPool"):
    case(name, f32(2, 3, 4, 5), opset=7)
    case(name, f32(2, 3, 7))
    case(name, f32(1, 2, 3, 4, 5))
case("GlobalLpPool", f32(2, 3, 4, 5), opset=7)
case("GlobalLpPool", f32(2, 3, 4, 5), p=3)

# ---- Reductions --------------------------------------------------------------------------------------------------

REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
for name in REDUCTIONS:
    op, data = "Reduce" + name, f32(2, 3, 4, 5, low=0.2)
    old = 12 if name == "Sum" else 13
    case(op, data, opset=7)
    case(op, data, axes=[1], opset=old)
    case(op, data, axes=[0, 2], keepdims=0, opset=11)
    case(op, data, axes=[-1, -2], opset=old)
    case(op, data, axes=[3, 0], keepdims=0, opset=old)
    new = 13 if name == "Sum" else 18
    case(op, data, i64(1, 3), opset=new)
    case(op, data, i64(-1), opset=new, keepdims=0, stored=(1,))
    case(op, data, opset=new, keepdims=0)
    case(op, data, i64s([]), opset=new)
    if name not in ("LogSum", "LogSumExp"):
        case(op, ints(3, 4, dtype=np.int32), i64(1), opset=new)
for name in ("Sum", "Max", "Mean", "Prod", "Min"):
    case("Reduce" + name, f32(2, 3, low=0.2), i64s([]), opset=18, noop_with_empty_axes=1)
    case("Reduce" + name, f32(2, 3, low=0.2), opset=18, noop_with_empty_axes=1)
case("ReduceLogSumExp", fs([[1000, 1001], [-1000, -999]]), i64(1), opset=18)
case("ReduceMax", ints(2, 3), i64(0), opset=18)

# ---- Resampling --------------------------------------------------------------------------------------------------

EMPTY = fs([])
case("Upsample", f32(1, 2, 3, 4), fs([1, 1, 2, 3]), opset=9, stored=(1,))
case("Upsample", f32(1, 2, 3, 4), fs([1, 1, 2, 2]), opset=9, mode="linear", stored=(1,))
case("Upsample", f32(1, 2, 3, 4), opset=7, scales=[1.0, 1.0, 2.0, 3.0])
case("Upsample", f32(1, 2, 3, 4), opset=7, scales=[1.0, 1.0, 2.0, 2.0], mode="linear")
for mode in ("nearest", "linear"):
    case("Resize", f32(1, 2, 3, 4), fs([1, 1, 2, 2]), opset=10, mode=mode, stored=(1,))
    case("Resize", f32(1, 2, 8, 9), fs([1, 1, 0.5, 0.6]), opset=10, mode=mode, stored=(1,))
# With the corners aligned, a size that is not whole is cut down by ONNX Runtime and kept by the standard's node tests
# (test_node_cases.py), which hold us.
WHOLE = [[1, 1, 2, 2], [1, 1, 2, 3]]
PLACES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
for place in PLACES:
    for scales in ([1, 1, 2, 2], [1, 1, 0.6, 0.7], [1, 1, 2.3, 1.7]):
        for mode in ("linear", "cubic") if place != "align_corners" or scales in WHOLE else ():
            case("Resize", f32(1, 2, 6, 7), EMPTY, fs(scales), opset=11, mode=mode, stored=(1, 2),
                 coordinate_transformation_mode=place)
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        for scales in ([1, 1, 2, 3], [1, 1, 0.5, 0.6]) if place != "align_corners" else WHOLE:
            case("Resize", f32(1, 2, 6, 7), EMPTY, fs(scales), opset=13, stored=(1, 2), mode="nearest",
                 coordinate_transformation_mode=place, nearest_mode=rounding)
    case("Resize", f32(1, 2, 6, 7), None, None, i64(1, 2, 9, 4), opset=13, mode="linear", stored=(3,),
         coordinate_transformation_mode=place)
    case("Resize", f32(1, 2, 6, 7), None, None, i64(1, 2, 9, 4), opset=18, mode="cubic", stored=(3,), exclude_outside=1,
         cubic_coeff_a=-0.5, coordinate_transformation_mode=place)
case("Resize", f32(1, 2, 6, 7), EMPTY, EMPTY, i64(1, 2, 12, 21), opset=11, mode="nearest", stored=(1, 2, 3),
     coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor")
case("Resize", f32(1, 1, 6, 7), fs([0, 0, 0.2, 0.3, 1, 1, 0.8, 0.9]), None, i64(1, 1, 4, 5), opset=13, mode="linear",
     stored=(1, 3), coordinate_transformation_mode="tf_crop_and_resize")
case("Resize", f32(1, 1, 6, 7), fs([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7]), None, i64(1, 1, 4, 5), opset=13, mode="linear",
     stored=(1, 3), coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)
case("Resize", f32(1, 2, 6, 7), None, fs([1.5, 1.7]), opset=18, mode="linear", stored=(2,), axes=[2, 3])
for mode in ("linear", "cubic"):
    for outside in (0, 1):
        case("Resize", f32(1, 1, 9, 11), None, fs([1, 1, 0.5, 0.4]), opset=18, mode=mode, stored=(2,), antialias=1,
             exclude_outside=outside)
    case("Resize", f32(1, 1, 9, 11), None, fs([1, 1, 1.5, 0.4]), opset=18, mode=mode, stored=(2,), antialias=1)
case("Resize", f32(1, 2, 6, 7), None, None, i64(9, 10), opset=18, mode="linear", stored=(3,), axes=[2, 3],
     keep_aspect_ratio_policy="not_larger")
case("Resize", f32(1, 2, 6, 7), None, None, i64(9, 10), opset=18, mode="linear", stored=(3,), axes=[2, 3],
     keep_aspect_ratio_policy="not_smaller")
case("Resize", f32(1, 2, 6, 7), None, fs([1, 1, 1.3, 0.7]), opset=19, mode="linear", stored=(2,),
     coordinate_transformation_mode="half_pixel_symmetric")

# ---- Moving data -------------------------------------------------------------------------------------------------

case("Identity", X)
case("Dropout", X, opset=7)
case("Dropout", X, np.float32(0.3), opset=13)
for to in (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.DOUBLE):
    case("Cast", X, to=to, opset=13)
case("Cast", X, to=TensorProto.FLOAT16, opset=13, tolerance=1e-3)
case("Cast", ints(2, 3), to=TensorProto.FLOAT, opset=9)
case("Cast", ints(2, 3, low=0, high=300), to=TensorProto.UINT8, opset=9)
case("Cast", bools(4), to=TensorProto.FLOAT, opset=13)
case("CastLike", X, i64(1), opset=15)
case("Concat", f32(2, 3), f32(2, 4), axis=1)
case("Concat", f32(2, 3), f32(1, 3), f32(4, 3), axis=-2, opset=11)
case("ConstantOfShape", i64(2, 3), opset=9)
case("ConstantOfShape", i64(2, 3), opset=9, value=helper.make_tensor("v", TensorProto.INT64, [1], [7]))
case("Shape", X, opset=13)
case("Shape", X, start=1, end=-1, opset=15)
case("Size", X, opset=13)
case("Reshape", X, i64(4, -1), opset=7)
case("Reshape", X, i64(0, -1), stored=(1,), opset=13)
case("Reshape", f32(0, 3), i64(3, 0), allowzero=1, opset=14)
case("Flatten", X, axis=2, opset=9)
case("Flatten", X, axis=-1, opset=13)
case("Flatten", X, axis=0, opset=9)
case("Squeeze", f32(1, 3, 1), opset=7)
case("Squeeze", f32(1, 3, 1), axes=[0], opset=11)
case("Squeeze", f32(1, 3, 1), i64(-1), opset=13)
case("Unsqueeze", f32(3, 4), axes=[0, 3], opset=7)
case("Unsqueeze", f32(3, 4), axes=[-1], opset=11)
case("Unsqueeze", f32(3, 4), i64(1, -1), opset=13)
case("Transpose", X)
case("Transpose", X, perm=[1, 2, 0])
case("Split", f32(2, 7), split=[3, 4], axis=1, outputs=2, opset=7)
case("Split", f32(4, 6), outputs=2, opset=11)
case("Split", f32(2, 7), i64(3, 4), axis=1, outputs=2, opset=13)
case("Split", f32(2, 7), axis=-1, num_outputs=3, outputs=3, opset=18)
case("Slice", X, starts=[0, 1], ends=[1, 3], axes=[1, 2], opset=7)
case("Slice", X, starts=[-2], ends=[9999], opset=9)
case("Slice", X, i64(1, 3), i64(3, -9), i64(1, 2), i64(1, -1), opset=10)
case("Slice", X, i64(-1), i64(-100), i64(0), i64(-1), opset=13)
case("Slice", X, i64(0, 0, 0), i64(2, 3, 4), None, i64(1, 2, 3), opset=13)
case("Gather", X, i64(0, 2, 1), axis=1, opset=7)
case("Gather", X, np.int64(-1), axis=2, opset=13)
case("Gather", X, i64s([[0, 1], [1, 0]]), opset=11)
case("GatherElements", X, ints(2, 3, 2, low=0, high=3), axis=2, opset=13)
case("GatherND", X, i64s([[0, 1], [1, 2]]), opset=12)
case("GatherND", X, i64s([[1], [2]]), batch_dims=1, opset=13)
case("ScatterElements", X, ints(1, 3, 2, low=0, high=2), f32(1, 3, 2), axis=0, opset=11)
case("ScatterND", X, i64s([[0, 1], [1, 2]]), f32(2, 4), opset=11)
case("Pad", X, pads=[0, 1, 2, 1, 0, 0], opset=7)
case("Pad", X, pads=[0, 1, 2, 1, 0, 0], mode="reflect", opset=7)
case("Pad", X, i64(0, 1, -1, 1, 0, 0), np.float32(3), opset=11)
case("Pad", X, i64(0, 1, 2, 1, 0, 0), mode="edge", opset=13)
case("Pad", X, i64(1, 2), None, i64(1), opset=18)
case("Pad", X, i64(0, 1, 1, 0, 2, 1), mode="wrap", opset=19)
case("Expand", f32(3, 1), i64(2, 1, 4), opset=8)
case("Tile", X, i64(1, 2, 3), opset=7)
case("Range", np.int64(2), np.int64(11), np.int64(3), opset=11)
case("Range", np.float32(1), np.float32(-1), np.float32(-0.5), opset=11)
case("DepthToSpace", f32(1, 8, 2, 3), blocksize=2, opset=7)
case("DepthToSpace", f32(1, 8, 2, 3), blocksize=2, mode="CRD", opset=11)
case("DepthToSpace", f32(1, 8, 2, 3), blocksize=2, mode="DCR", opset=13)
case("SpaceToDepth", f32(1, 2, 4, 6), blocksize=2, opset=7)
case("NonZero", bools(3, 4), opset=9)
case("OneHot", i64(0, 2, -1), np.int64(3), fs([0, 1]), opset=11)
case("OneHot", i64(0, 2), np.int64(3), fs([-1, 1]), axis=0, opset=11)
case("TopK", f32(3, 7), i64(3), outputs=2, opset=10)
case("TopK", f32(3, 7), i64(2), outputs=2, opset=11, axis=0, largest=0)
case("TopK", f32(3, 7), k=3, outputs=2, opset=7)
for name in ("ArgMax", "ArgMin"):
    case(name, X, axis=1, opset=7)
    case(name, X, axis=-1, keepdims=0, opset=13)
    case(name, fs([[1, 1, 0, 0]]), axis=1, select_last_index=1, opset=12)
case("CumSum", X, np.int64(1), opset=11)
case("CumSum", X, np.int64(2), exclusive=1, reverse=1, opset=14)
case("EyeLike", f32(3, 4), k=1, opset=9)
case("Trilu", f32(4, 5), opset=14)
case("Trilu", f32(2, 4, 5), np.int64(-1), upper=0, opset=14)
case("ReverseSequence", f32(4, 3, 2), i64(1, 4, 2), opset=10)
case("QuantizeLinear", f32(3, 4), np.float32(0.02), np.uint8(100), opset=10)
case("QuantizeLinear", f32(3, 4), f32(4, low=0.01, high=0.1), np.zeros(4, np.int8), axis=1, opset=13)
case("DequantizeLinear", ints(3, 4, low=0, dtype=np.uint8), np.float32(0.02), np.uint8(3), opset=10)
case("DequantizeLinear", ints(3, 4, dtype=np.int8), f32(3, low=0.01, high=0.1), axis=0, opset=13)

# ---- Layers that are one operator -------------------------------------------------------------------------------

for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    for direction, n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        w, r, b = f32(n, gates * 3, 4), f32(n, gates * 3, 3), f32(n, 2 * gates * 3)
        case(op, f32(5, 2, 4), w, r, opset=14, outputs=2, direction=direction, hidden_size=3)
        case(op, f32(5, 2, 4), w, r, b, np.array([5, 3], np.int32), f32(n, 2, 3), opset=14, outputs=2,
             direction=direction, hidden_size=3)
case("LSTM", f32(3, 2, 4), f32(1, 8, 4), f32(1, 8, 2), f32(1, 16), None, f32(1, 2, 2), f32(1, 2, 2), f32(1, 6), opset=7,
     outputs=3, hidden_size=2, clip=0.5)
case("LSTM", f32(3, 2, 4), f32(1, 8, 4), f32(1, 8, 2), opset=7, outputs=3, hidden_size=2, input_forget=1)
case("GRU", f32(3, 2, 4), f32(1, 6, 4), f32(1, 6, 2), f32(1, 12), opset=7, outputs=2, hidden_size=2, linear_before_reset=1)
case("RNN", f32(3, 2, 4), f32(1, 2, 4), f32(1, 2, 2), opset=7, outputs=2, hidden_size=2, activations=["LeakyRelu"],
     activation_alpha=[0.2])
case("GRU", f32(3, 2, 4), f32(1, 6, 4), f32(1, 6, 2), opset=7, outputs=2, hidden_size=2,
     activations=["HardSigmoid", "ScaledTanh"], activation_alpha=[0.3, 0.8], activation_beta=[0.4, 1.2])
case("RMSNormalization", f32(2, 3, 4), f32(4), opset=23)
case("RMSNormalization", f32(2, 3, 4), f32(3, 4), opset=23, axis=1, epsilon=0.1)
case("MeanVarianceNormalization", f32(2, 3, 4, 5), opset=13)
case("MeanVarianceNormalization", f32(2, 3, 4), opset=13, axes=[1, 2])
case("Attention", f32(2, 3, 4, 8), f32(2, 3, 6, 8), f32(2, 3, 6, 5), opset=23)
case("Attention", f32(2, 4, 24), f32(2, 6, 12), f32(2, 6, 10), f32(4, 6), opset=23, q_num_heads=4, kv_num_heads=2, scale=0.3)
case("Attention", f32(2, 3, 4, 8), f32(2, 3, 4, 8), f32(2, 3, 4, 8), opset=23, is_causal=1, softcap=2.0)
case("RotaryEmbedding", f32(2, 3, 4, 8), f32(10, 4), f32(10, 4), ints(2, 4, low=0, high=10), opset=23)
case("RotaryEmbedding", f32(2, 4, 24), f32(2, 4, 2), f32(2, 4, 2), opset=23, num_heads=3, rotary_embedding_dim=4, interleaved=1)
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        case("GridSample", f32(2, 3, 5, 4), f32(2, 3, 3, 2, low=-1.5, high=1.5), opset=16, mode=mode, padding_mode=padding,
             align_corners=1, tolerance=1e-4)
case("GridSample", f32(1, 2, 4, 5), f32(1, 3, 3, 2), opset=16)
case("GridSample", f32(1, 2, 3, 4, 5), f32(1, 2, 3, 3, 3), opset=20)
REGIONS = fs([[0.5, 1.2, 5.1, 6.3], [2.0, 0.0, 3.4, 2.5], [1.0, 1.0, 1.2, 1.3]])
case("RoiAlign", f32(2, 3, 8, 7), REGIONS, i64(0, 1, 1), opset=10, output_height=3, output_width=2, sampling_ratio=2)
case("RoiAlign", f32(2, 3, 8, 7), REGIONS, i64(0, 1, 1), opset=16, output_height=2, output_width=2, spatial_scale=0.8)
case("DeformConv", f32(2, 4, 6, 5), f32(3, 4, 3, 2), f32(2, 12, 3, 3), f32(3), f32(2, 6, 3, 3), opset=19,
     strides=[2, 2], pads=[1, 0, 0, 1], tolerance=1e-4)
case("DeformConv", f32(1, 4, 5, 5), f32(6, 2, 2, 2), f32(1, 16, 3, 3), opset=19, group=2, offset_group=2, dilations=[2, 2],
     kernel_shape=[2, 2], tolerance=1e-4)
case("AffineGrid", f32(2, 2, 3), i64(2, 3, 4, 5), opset=20, stored=(1,))
case("AffineGrid", f32(2, 3, 4), i64(2, 3, 4, 5, 2), opset=20, stored=(1,), align_corners=1)
BOXES = fs([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]])
case("NonMaxSuppression", BOXES, fs([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]]), i64(3), fs([0.5]), fs([0.0]), opset=11)
case("NonMaxSuppression", BOXES, f32(1, 2, 6, low=0, high=1), i64(4), fs([0.3]), opset=11, center_point_box=1)
case("CausalConvWithState", f32(2, 3, 5), f32(3, 1, 4), f32(3), opset=27,
     reference=lambda x, w, b: np.stack([[np.convolve(x[n, c], w[c, 0, ::-1])[:5] + b[c] for c in range(3)] for n in range(2)]))
case("SwiGLU", X, f32(2, 3, 4), opset=28, alpha=0.7, reference=lambda a, b: a / (1 + np.exp(-0.7 * a)) * b)

# ---- Losses, integers, signals and what else there is ----------------------------------------------------------

for reduction in ("none", "sum", "mean"):
    case("NegativeLogLikelihoodLoss", f32(3, 5, 2), ints(3, 2, low=0, high=5), f32(5, low=0.1), opset=13, reduction=reduction)
    case("SoftmaxCrossEntropyLoss", f32(4, 5), ints(4, low=0, high=5), opset=13, outputs=2, reduction=reduction)
case("NegativeLogLikelihoodLoss", f32(4, 5), i64(0, 2, 4, 2), opset=13, ignore_index=2)
BYTES = ints(3, 4, low=0, high=256, dtype=np.uint8)
case("DynamicQuantizeLinear", f32(3, 4), opset=11, outputs=3)
case("MatMulInteger", BYTES, ints(4, 2, low=0, high=256, dtype=np.uint8), np.uint8(12), np.uint8(100), opset=10)
case("QLinearMatMul", BYTES, np.float32(0.02), np.uint8(12), ints(4, 2, low=0, high=256, dtype=np.uint8), np.float32(0.03),
     np.uint8(100), np.float32(0.1), np.uint8(120), opset=10)
IMAGE = ints(1, 2, 5, 4, low=0, high=256, dtype=np.uint8)
case("ConvInteger", IMAGE, ints(3, 2, 3, 3, low=0, high=256, dtype=np.uint8), np.uint8(7), opset=10, pads=[1, 1, 1, 1])
case("QLinearConv", IMAGE, np.float32(0.02), np.uint8(12), ints(3, 2, 3, 3, dtype=np.int8), fs([0.03, 0.02, 0.01]),
     np.zeros(3, np.int8), np.float32(0.1), np.uint8(120), ints(3, dtype=np.int32), opset=10)
case("Shrink", X, opset=9, lambd=0.8, bias=0.3)
case("CumProd", X, np.int64(1), opset=26, reference=lambda x, axis: np.cumprod(x, axis=axis))
case("CumProd", X, np.int64(-1), opset=26, reverse=1, reference=lambda x, axis: np.cumprod(x[..., ::-1], axis=axis)[..., ::-1])
case("BitCast", X, opset=26, to=TensorProto.INT32, reference=lambda x: x.view(np.int32))
case("CenterCropPad", f32(5, 8, 3), i64(6, 5, 3), opset=18, stored=(1,))
case("CenterCropPad", f32(5, 8, 3), i64(10, 1), opset=18, stored=(1,), axes=[-2, 2])
case("Compress", X, np.array([True, False, True]), opset=11, axis=1)
case("Compress", X, np.array([False, True, True, False, True]), opset=11)
case("Unique", fs([2, 1, 1, 3, 4, 3]), opset=11, outputs=4)
case("Unique", fs([2, 1, 1, 3, 4, 3]), opset=11, outputs=4, sorted=0)
case("Unique", fs([[1, 0, 0], [1, 0, 0], [2, 3, 4]]), opset=11, outputs=4, axis=0)
case("Scatter", f32(3, 4), ints(2, 4, low=0, high=3), f32(2, 4), opset=9)
case("TensorScatter", f32(2, 3, 6, 4), f32(2, 3, 2, 4), i64(1, 3), opset=24)
case("TensorScatter", f32(2, 6), f32(2, 3), i64(5, 4), opset=24, axis=1, mode="circular",
     reference=lambda x, u, at: np.stack([[u[n, (k - at[n]) % 6] if (k - at[n]) % 6 < 3 else x[n, k] for k in range(6)]
                                          for n in range(2)]))
case("Det", f32(2, 4, 4), opset=11)
case("Col2Im", f32(2, 12, 9), i64(4, 4), i64(2, 2), opset=18, stored=(1, 2))
case("Col2Im", f32(1, 8, 9), i64(5, 5), i64(2, 2), opset=18, stored=(1, 2), strides=[2, 2], pads=[0, 0, 1, 1])
case("DFT", f32(2, 6, 1), opset=17, axis=1)
case("DFT", f32(2, 6, 2), np.int64(5), opset=17, axis=1, inverse=1)
case("DFT", f32(2, 7, 1), opset=17, axis=1, onesided=1)
for name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    case(name, np.int64(9), opset=17, stored=(0,))
    case(name, np.int64(8), opset=17, stored=(0,), periodic=0)
case("STFT", f32(2, 16, 1), np.int64(4), f32(8), np.int64(8), opset=17)
case("STFT", f32(2, 16, 1), np.int64(3), f32(7), opset=17, onesided=0)
case("MaxUnpool", fs([[[[1, 2], [3, 4]]]]), np.array([[[[5, 7], [13, 15]]]]), opset=11, kernel_shape=[2, 2], strides=[2, 2])
case("MaxUnpool", fs([[[[5, 6], [7, 8]]]]), np.array([[[[5, 7], [13, 15]]]]), i64(1, 1, 5, 5), opset=11, kernel_shape=[2, 2],
     strides=[2, 2], stored=(2,), reference=lambda x, at, shape: np.pad(
         np.put_along_axis(y := np.zeros(16, np.float32), at.ravel(), x.ravel(), 0) or y.reshape(1, 1, 4, 4),
         [(0, 0), (0, 0), (0, 1), (0, 1)]))
case("SpaceToDepth", f32(1, 2, 4, 4), opset=28, blocksize=2, mode="CRD",
     reference=lambda x: x.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(1, 8, 2, 2))
case("BitShift", ints(9, low=-99, high=99, dtype=np.int32), ints(9, low=0, high=9, dtype=np.int32), opset=28, direction="RIGHT",
     reference=lambda x, n: x >> n)

# ---- ONNX Runtime's own --------------------------------------------------------------------------------------------


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def conv_of_onnxruntime(x, w, b, **attrs):
    """Conv on images whose channels come last, which ONNX Runtime has for f16 on some machines only."""
    c = Case("Conv", [np.moveaxis(x, -1, 1), w, b], 17, 1, (), 0, attrs)
    return np.moveaxis(expected(c, *make_model(c))[0], 1, -1)


def matmul_n_bits(a, b, scales, zeros, bias, bits, block):
    """[N, blocks, bytes], the lowest bits of a byte first."""
    n, n_blocks, _ = b.shape
    numbers = (b[..., None] >> (np.arange(8 // bits) * bits)) & (2 ** bits - 1)
    weight = (numbers.reshape(n, n_blocks, -1)[..., :block] - zeros.reshape(n, n_blocks, 1).astype(np.float64))
    weight = (weight * scales.reshape(n, n_blocks, 1)).reshape(n, -1)[:, :a.shape[-1]]
    return a @ weight.T + bias


def i32(*values):
    return np.array(values, np.int32)


case("com.microsoft.Gelu", X)
case("com.microsoft.QuickGelu", X)
case("com.microsoft.QuickGelu", X, alpha=0.7)
case("com.microsoft.FastGelu", X)
case("com.microsoft.FastGelu", X, f32(4))
case("com.microsoft.BiasGelu", X, f32(4))
case("com.microsoft.BiasAdd", X, f32(4), f32(2, 3, 4), reference=lambda x, b, skip: x + b + skip)
case("com.microsoft.BiasSplitGelu", f32(2, 3, 8), f32(8), reference=lambda x, b: (x + b)[..., :4] * gelu((x + b)[..., 4:]))
for dtype, zero in ((np.uint8, 100), (np.int8, -7), (np.uint16, 30000), (np.int16, -300)):
    case("com.microsoft.QuantizeLinear", f32(3, 4), np.float32(0.02), dtype(zero))
    case("com.microsoft.QuantizeLinear", f32(3, 4), f32(3, low=0.001, high=0.1), np.full(3, zero, dtype), axis=0)
    case("com.microsoft.DequantizeLinear", ints(3, 4, low=0, high=99, dtype=dtype), np.float32(0.02), dtype(zero))
    case("com.microsoft.DequantizeLinear", ints(3, 4, low=0, high=99, dtype=dtype), f32(4, low=0.001, high=0.1),
         np.full(4, zero, dtype), axis=1)
case("com.microsoft.DequantizeLinear", ints(3, 4, low=-999, high=999, dtype=np.int32), np.float32(0.02))
case("SimplifiedLayerNormalization", X, f32(4))
case("SimplifiedLayerNormalization", X, f32(3, 4), axis=1, epsilon=0.1)
for skip in ((2, 3, 4), (1, 3, 4), (3, 4)):
    case("com.microsoft.SkipLayerNormalization", X, f32(*skip), f32(4), f32(4), f32(4), epsilon=1e-3)
    case("com.microsoft.SkipSimplifiedLayerNormalization", X, f32(*skip), f32(4), f32(4), epsilon=1e-3)
case("com.microsoft.SkipLayerNormalization", X, f32(2, 3, 4), f32(4), outputs=[True, False, False, True])
case("com.microsoft.SkipSimplifiedLayerNormalization", X, f32(2, 3, 4), f32(4), outputs=[True, False, False, True])
IDS, KINDS = ints(2, 5, low=0, high=7, dtype=np.int32), ints(2, 5, low=0, high=2, dtype=np.int32)
TABLES = (f32(7, 4), f32(9, 4), f32(2, 4), f32(4), f32(4))
case("com.microsoft.EmbedLayerNormalization", IDS, KINDS, *TABLES, ints(2, 5, low=0, high=2, dtype=np.int32), outputs=3)
case("com.microsoft.EmbedLayerNormalization", IDS, None, TABLES[0], TABLES[1], None, *TABLES[3:], outputs=[True, True, True],
     epsilon=1e-5)
case("com.microsoft.EmbedLayerNormalization", IDS, KINDS, *TABLES, None, ints(2, 5, low=0, high=9, dtype=np.int32), outputs=2)
for activation in ("Relu", "Tanh", "Sigmoid"):
    case("com.microsoft.FusedConv", f32(2, 6, 8, 8), f32(9, 2, 3, 3), f32(9), group=3, pads=[1, 1, 1, 1], activation=activation)
for activation, params in (("LeakyRelu", [0.3]), ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.3, 0.4])):
    case("com.microsoft.FusedConv", f32(2, 6, 8, 8), f32(6, 1, 3, 3), f32(6), group=6, activation=activation,
         activation_params=params)
case("com.microsoft.FusedConv", f32(2, 6, 8, 8), f32(8, 6, 3, 3), f32(8), f32(2, 8, 6, 6), activation="Relu")
case("com.microsoft.FusedConv", f32(2, 3, 9), f32(4, 3, 3), f32(4), activation="Relu")
case("com.microsoft.NhwcFusedConv", f32(2, 8, 9, 6), f32(8, 6, 3, 3), f32(8), f32(2, 8, 9, 8), pads=[1, 1, 1, 1],
     activation="Relu", reference=lambda x, w, b, z: np.maximum(conv_of_onnxruntime(x, w, b, pads=[1, 1, 1, 1]) + z, 0))
for activation in ("Relu", "Sigmoid", "Tanh", "Softsign", "Softplus"):
    case("com.microsoft.FusedGemm", f32(3, 5), f32(5, 4), f32(4), activation=activation)
for activation in ("LeakyRelu", "Elu", "HardSigmoid", "ThresholdedRelu", "Selu"):
    case("com.microsoft.FusedGemm", f32(3, 5), f32(5, 4), f32(4), activation=activation, activation_alpha=0.4,
         activation_beta=0.7, activation_gamma=1.2)
case("com.microsoft.FusedGemm", f32(5, 3), f32(4, 5), f32(3, 4), transA=1, transB=1, alpha=0.5, beta=2.0, activation="LeakyRelu",
     activation_alpha=0.4)
case("com.microsoft.FusedMatMul", f32(2, 3, 4), f32(4, 5), alpha=0.5)
case("com.microsoft.FusedMatMul", f32(4, 3), f32(5, 4), transA=1, transB=1)
case("com.microsoft.FusedMatMul", f32(2, 3, 4), f32(2, 5, 4), transB=1, alpha=0.25)
case("com.microsoft.FusedMatMul", f32(7, 2, 4, 3), f32(2, 4, 5), transA=1)
case("com.microsoft.FusedMatMul", f32(3, 2, 6, 4), f32(2, 6, 4, 5), transBatchA=1)
case("com.microsoft.FusedMatMul", f32(2, 6, 3, 4), f32(4, 2, 6, 5), transBatchB=1)
case("com.microsoft.FusedMatMul", f32(4, 2, 6, 3), f32(5, 2, 6, 4), transBatchA=1, transBatchB=1, transA=1, transB=1)
case("com.microsoft.FusedMatMul", f32(4), f32(4, 5), transA=1)
PACKED = (f32(2, 5, 8), f32(8, 36), f32(36))
case("com.microsoft.Attention", *PACKED, num_heads=3)
case("com.microsoft.Attention", PACKED[0], PACKED[1], None, num_heads=2, unidirectional=1)
case("com.microsoft.Attention", PACKED[0], f32(8, 32), f32(32), num_heads=2, qkv_hidden_sizes=[12, 12, 8], scale=0.3)
case("com.microsoft.Attention", *PACKED, i32(3, 5), num_heads=3)
case("com.microsoft.Attention", *PACKED, i32(3, 5, 1, 0), num_heads=3)
KEPT = np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 1]], np.int32)
case("com.microsoft.Attention", *PACKED, KEPT, num_heads=3, mask_filter_value=-3.0)
case("com.microsoft.Attention", *PACKED, np.tile(KEPT[:, None], (1, 5, 1)), None, f32(2, 1, 5, 5), num_heads=3, unidirectional=1)
case("com.microsoft.Attention", *PACKED, None, f32(2, 2, 3, 4, 4), num_heads=3, outputs=2, unidirectional=1)
case("com.microsoft.Attention", *PACKED, None, None, num_heads=3, outputs=2)
QUERIES, KEYS, VALUES = f32(2, 4, 12), f32(2, 5, 12), f32(2, 5, 6)
case("com.microsoft.MultiHeadAttention", QUERIES, KEYS, VALUES, num_heads=3)
case("com.microsoft.MultiHeadAttention", QUERIES, KEYS, VALUES, f32(30), num_heads=3, scale=0.2)
case("com.microsoft.MultiHeadAttention", QUERIES, KEYS, VALUES, f32(30), KEPT, f32(2, 3, 4, 5), num_heads=3)
case("com.microsoft.MultiHeadAttention", QUERIES, KEYS, VALUES, None, i32(3, 5), num_heads=3, mask_filter_value=-2.0)
case("com.microsoft.MultiHeadAttention", KEYS, KEYS, KEYS, f32(36), num_heads=2, unidirectional=1)
case("com.microsoft.MultiHeadAttention", QUERIES, f32(2, 3, 5, 4), f32(2, 3, 5, 4), f32(36), num_heads=3)
case("com.microsoft.MultiHeadAttention", KEYS, KEYS, KEYS, f32(36), None, None, f32(2, 3, 4, 4), f32(2, 3, 4, 4), num_heads=3,
     outputs=3, unidirectional=1)
case("com.microsoft.RotaryEmbedding", f32(2, 4, 24), ints(2, 4, low=0, high=10), f32(10, 4), f32(10, 4))
case("com.microsoft.RotaryEmbedding", f32(2, 4, 24), i64(3), f32(10, 4), f32(10, 4), interleaved=1)
case("com.microsoft.RotaryEmbedding", f32(2, 3, 4, 8), ints(2, 4, low=0, high=10), f32(10, 4), f32(10, 4))
case("com.microsoft.RotaryEmbedding", f32(2, 4, 24), ints(2, 4, low=0, high=10), f32(10, 2), f32(10, 2), num_heads=3,
     rotary_embedding_dim=4)
GROUPED = (f32(2, 5, 32), f32(2, 5, 16), f32(2, 5, 16))
ANGLES = (f32(12, 8), f32(12, 8))
case("com.microsoft.GroupQueryAttention", *GROUPED, None, None, i32(4, 4), i32(5), num_heads=4, kv_num_heads=2, outputs=3)
case("com.microsoft.GroupQueryAttention", f32(2, 5, 128), None, None, None, None, i32(4, 4), i32(5), *ANGLES, num_heads=4,
     kv_num_heads=2, do_rotary=1, softcap=2.0, outputs=3)
case("com.microsoft.GroupQueryAttention", f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32), f32(2, 2, 6, 16), f32(2, 2, 6, 16),
     i32(6, 6), i32(7), *ANGLES, num_heads=4, kv_num_heads=2, do_rotary=1, rotary_interleaved=1, local_window_size=3, scale=0.3,
     outputs=3)
case("com.microsoft.GroupQueryAttention", *GROUPED, None, None, i32(4, 4), i32(5), None, None, None, f32(2, 4, 5, 5), f32(4),
     num_heads=4, kv_num_heads=2, outputs=3)
case("com.microsoft.GroupQueryAttention", *GROUPED, None, None, i32(4, 4), i32(5), num_heads=4, kv_num_heads=2, smooth_softmax=1,
     outputs=3)
NIBBLES = ints(6, 2, 16, low=0, high=256, dtype=np.uint8)
case("com.microsoft.MatMulNBits", f32(3, 48), NIBBLES, f32(12), K=48, N=6, bits=4, block_size=32, tolerance=1e-3)
case("com.microsoft.MatMulNBits", f32(2, 3, 64), NIBBLES, f32(12), ints(6, 1, low=0, high=256, dtype=np.uint8), None, f32(6),
     K=64, N=6, bits=4, block_size=32, tolerance=1e-3)
case("com.microsoft.MatMulNBits", f32(3, 32), ints(6, 2, 16, low=0, high=256, dtype=np.uint8), f32(12), f32(6, 2), None, f32(6),
     K=32, N=6, bits=8, block_size=16,
     reference=lambda a, b, s, z, _, bias: matmul_n_bits(a, b, s, z, bias, 8, 16))


def body(inputs, outputs, *nodes):
    """A body: "name type" of inputs and outputs, "outputs = Op(inputs)" of nodes, with their attributes after them."""
    def info(text):
        name, kind = text.split()  # counts and conditions are scalars, which ONNX Runtime wants to hear
        return helper.make_tensor_value_info(name, getattr(TensorProto, kind), None if kind == "FLOAT" else [])

    made = []
    for text, attrs in nodes:
        left, right = text.split(" = ")
        op, names = right.rstrip(")").split("(")
        made.append(helper.make_node(op, names.split(", ") if names else [], left.split(", "), **attrs))
    return helper.make_graph(made, "body", [info(i) for i in inputs], [info(o) for o in outputs])


for taken in (True, False):
    case("If", np.array(taken), opset=13,
         then_branch=body([], ["a FLOAT"], ("a = Constant()", {"value_floats": [1.0, 2.0]})),
         else_branch=body([], ["b FLOAT"], ("c = Cast(in0)", {"to": TensorProto.FLOAT}), ("d = Constant()", {"value_float": 4.0}),
                          ("b = Add(c, d)", {})))


def count(*slices):
    return body(["i INT64", "go BOOL", "h FLOAT"], ["on BOOL", "t FLOAT", *slices], ("f = Cast(i)", {"to": TensorProto.FLOAT}),
                ("t = Add(h, f)", {}), ("u = Identity(t)", {}), ("most = Constant()", {"value_float": 9.0}),
                ("m = ReduceMax(t)", {"keepdims": 0}), ("on = Less(m, most)", {}))


for trips in (1, 4, None):  # a trip count, or the condition alone
    case("Loop", None if trips is None else np.int64(trips), np.array(True), f32(2, 3), opset=13, outputs=2, body=count("u FLOAT"))
case("Loop", np.int64(0), np.array(True), f32(2, 3), opset=13, body=count())
case("Loop", np.int64(5), np.array(False), f32(2), opset=13, body=count())
case("Loop", i64(3), None, f32(1, 2), opset=13, body=body(
    ["i INT64", "go BOOL", "h FLOAT"], ["on BOOL", "t FLOAT"], ("on = Identity(go)", {}), ("t = Concat(h, h)", {"axis": 0})))
SUM = body(["h FLOAT", "p FLOAT"], ["t FLOAT", "u FLOAT"], ("t = Add(h, p)", {}), ("u = Mul(t, p)", {}))
for axis, direction, to, back in ((0, 0, 0, 0), (1, 0, 0, 1), (-1, 1, 1, 0), (0, 1, -1, 1)):
    case("Scan", f32(4, 4), f32(4, 4, 4), opset=11, outputs=2, body=SUM, num_scan_inputs=1, scan_input_axes=[axis],
         scan_input_directions=[direction], scan_output_axes=[to], scan_output_directions=[back])


# ---- Running -----------------------------------------------------------------------------------------------------


def element_type(array):
    return helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)


def make_model(c):
    names = ["" if value is None else f"in{port}" for port, value in enumerate(c.inputs)]
    kept = [True] * c.n_outputs if isinstance(c.n_outputs, int) else c.n_outputs
    outputs = [f"out{k}" for k in range(sum(kept))]
    domain, _, op = c.op.rpartition(".")
    left = iter(outputs)
    node = helper.make_node(op, names, [next(left) if there else "" for there in kept], name="node", domain=domain, **c.attrs)
    values = {f"in{p}": np.asarray(v) for p, v in enumerate(c.inputs) if v is not None}
    stored = {f"in{p}" for p in c.stored if c.inputs[p] is not None}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, element_type(v), v.shape) for n, v in values.items() if n not in stored],
        [onnx.ValueInfoProto(name=n) for n in outputs],
        [numpy_helper.from_array(values[n], n) for n in values if n in stored],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", c.opset), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=10)
    fed = {n: v for n, v in values.items() if n not in stored}
    return model, fed


def expected(c, model, fed):
    if c.reference:
        return [c.reference(*[np.asarray(v) for v in c.inputs])]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    del typed.graph.output[:]
    typed.graph.output.extend(onnx.ValueInfoProto(name=n) for n in model.graph.node[0].output if n)
    session = ort.InferenceSession(typed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, fed)


def compare(got, want, tolerance):
    want = np.asarray(want)
    assert got.shape == want.shape
    if not np.issubdtype(want.dtype, np.floating):
        np.testing.assert_array_equal(got.astype(want.dtype), want)
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
    scale = max(1.0, float(np.abs(want[finite]).max(initial=0)))
    worst = float(np.abs(got[finite] - want[finite]).max(initial=0))
    assert worst <= tolerance * scale, f"off by {worst} at scale {scale}"


@pytest.mark.parametrize("c", CASES, ids=str)
def test_operator_computes_what_onnxruntime_computes(c, tool, tmp_path):
    model, fed = make_model(c)
    want = expected(c, model, fed)
    given, found = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    found.mkdir()
    onnx.save(model, tmp_path / "model.onnx")
    for name, value in fed.items():
        np.save(given / f"{name}.npy", value)
    command = [str(tool("plain_main")), str(tmp_path / "model.onnx"), str(given), str(found)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for k, value in enumerate(want):
        compare(np.load(found / f"out{k}.npy"), value, c.tolerance)


def test_every_declared_operator_has_a_case(tool):
    done = subprocess.run([str(tool("plain_main")), "--ops"], capture_output=True, text=True, check=True)
    declared = set(done.stdout.split())
    tested = {c.op for c in CASES} | set(EXCEPTIONS)
    quantized = {f"com.microsoft.{op}" for op, _, _ in QUANTIZED.values()}
    assert declared - tested - quantized == set()
    # the standard's operators answer for these two
    shared = {f"com.microsoft.{name}" for name in ("QuantizeLinear", "DequantizeLinear")}
    assert tested - declared - shared == set(), "cases for operators that are not declared"
