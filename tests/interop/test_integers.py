# SPDX-License-Identifier: Apache-2.0
"""Integers at the ends of their types against ONNX Runtime, on both engines.

A double holds integers up to 2^53 only, an int64 only half of what a uint64 may be. Every operator that takes integers is
run on the largest, the smallest, and neighbors that would be equal as doubles, in every integer type that the runtime has
the operator for. The answer has to be the runtime's to the last bit. What the runtime computes in double, or leaves to the
processor, is compared with values that NumPy and Python compute. The fast engine gets all inputs but the first as stored
tensors. It may refuse what has no shape before it runs, and nothing else.

`python tests/interop/test_integers.py INFER_MAIN plain cpu` prints every case that is not right.
"""

import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

ALL = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
WIDE = (np.int32, np.int64, np.uint32, np.uint64)
CASES = []


@dataclasses.dataclass
class Case:
    name: str
    nodes: list
    inputs: dict  # by name
    stored: tuple  # names of inputs that are initializers
    opset: int
    want: object = None  # where the runtime is no judge

    def __str__(self):
        return self.name


def ends(dtype):
    """Both ends, their neighbors, what is near 2^53 where there is such a number, and a few small ones: 16 of them."""
    info = np.iinfo(dtype)
    some = [info.max, info.min, info.max - 1, info.min + 1, 0, 1, 7, 3, info.max // 2 + 1, info.max // 2, info.max // 3,
            min(2**53 + 1, info.max), min(2**53, info.max), min(2**53 + 3, info.max), min(1234567890123456789, info.max), 100]
    return np.array(some, dtype)


def at_odds(dtype):
    """Numbers to go with ends(): none is 0, and some are of the other sign."""
    info = np.iinfo(dtype)
    some = [1, info.max, 2, 3, info.max, 7, info.max - 1, 5, 2, 10, 3, 2, info.max, 100, 10, 9]
    if info.min < 0:
        some[3], some[6], some[13] = -3, info.min, -7
    return np.array(some, dtype)


def wrapped(values, dtype):
    return np.array([v & (2**64 - 1) for v in values], np.uint64).astype(dtype)


def held(values, dtype):
    info = np.iinfo(dtype)
    return np.array([min(max(v, int(info.min)), int(info.max)) for v in values], dtype)


def case(op, *inputs, opset=18, outputs=1, stored=(), nodes=None, want=None, label="", **attrs):
    names = [f"x{at}" if value is not None else "" for at, value in enumerate(inputs)]
    made = nodes or [helper.make_node(op, names, [f"y{at}" for at in range(outputs)], **attrs)]
    values = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True) if name}
    kinds = "_".join(str(value.dtype) for value in list(values.values())[:2])
    text = "_".join([op, *([label] if label else []), str(opset), kinds, *(f"{k}={v}" for k, v in attrs.items())])
    CASES.append(Case(text.replace(" ", ""), made, values, tuple(names[at] for at in stored), opset, want))


def i64(*values):
    return np.array(values, np.int64)


# ---- Arithmetic -------------------------------------------------------------------------------------------------

for T in ALL:
    x, b = ends(T), at_odds(T)
    for name in ("Add", "Sub", "Mul", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        case(name, x, b)
        case(name, x, x[::-1].copy(), label="reversed")
    for name in ("Min", "Max"):
        case(name, x, b)
        case(name, x, b, x[::-1].copy(), label="three")
        case(name, x, label="one")
    safe = b.copy()
    safe[safe == -1] = 2
    case("Div", x, np.where(safe == 0, 1, safe).astype(T))
    case("Div", np.full(1, np.iinfo(T).max, T), x[x != 0], label="of_largest")
    case("Mod", x, safe)
    case("Mod", x, safe, fmod=1)
    for name in ("Abs", "Neg", "Sign", "BitwiseNot", "Identity", "Relu"):
        case(name, x)
    for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        case(name, x, b)
    case("Clip", x, T(3), T(np.iinfo(T).max - 1))
    case("Clip", x, T(np.iinfo(T).min + 1), T(np.iinfo(T).max), label="whole")
    case("Clip", x, None, T(np.iinfo(T).max - 1), label="above")
    case("Sum", x, b)
    case("Pow", x, np.array(2, T))
    powers = [int(base) ** (at % 4) for at, base in enumerate(b)]  # the runtime goes through double
    case("Pow", b, np.array([0, 1, 2, 3] * 4, T), label="of", want=[wrapped(powers, T)])
    if np.iinfo(T).bits >= 32:
        case("Shrink", np.array([9, 3, 100, 5, 6, 4], T), lambd=5.0, bias=1.0, opset=9)
        shrunk = [v + 1 if v < -5 else v - 1 if v > 5 else 0 for v in map(int, x)]
        case("Shrink", x, lambd=5.0, bias=1.0, opset=9, label="ends", want=[np.array(shrunk, T)])
    if np.iinfo(T).min == 0:
        bits = np.array([0, 1, np.iinfo(T).bits - 1, 3] * 4, T)
        case("BitShift", x, bits, direction="LEFT")
        case("BitShift", x, bits, direction="RIGHT")

# ---- Moves -------------------------------------------------------------------------------------------------------

for T in ALL:
    x, square = ends(T), ends(T).reshape(4, 4)
    flags = np.arange(16) % 3 == 0
    case("Where", flags, x, at_odds(T))
    case("Gather", square, i64(3, 0, -1), axis=1)
    case("GatherElements", square, np.array([[3, 0, 1, 2]] * 4, np.int64), axis=1)
    case("GatherND", square, np.array([[0, 1], [3, 3]], np.int64))
    case("ScatterElements", square, np.array([[3, 0]], np.int64), np.array([[np.iinfo(T).max, np.iinfo(T).min]], T), axis=1)
    case("ScatterND", square, np.array([[0, 1], [3, 3]], np.int64), np.array([np.iinfo(T).max, np.iinfo(T).max - 1], T))
    for how in ("add", "mul", "min", "max"):
        case("ScatterElements", square, np.array([[3, 0]], np.int64), np.array([[np.iinfo(T).max, 2]], T), axis=1, reduction=how)
        case("ScatterND", square, np.array([[0, 1], [3, 3]], np.int64), np.array([np.iinfo(T).max, 3], T), reduction=how)
    case("Slice", x, i64(1), i64(2**63 - 1), i64(0), i64(2))
    case("Slice", x, i64(2**63 - 1), i64(-2**63), i64(0), i64(-1), label="backwards")
    case("Slice", x, i64(-2**63), i64(2**63 - 1), i64(0), i64(2**63 - 1), label="huge_step")
    case("Pad", square, i64(1, 0, 0, 2), np.array(np.iinfo(T).max - 1, T))
    case("Pad", square, i64(1, 0, 0, 2), np.array(np.iinfo(T).min, T), label="smallest")
    case("Concat", x, at_odds(T), axis=0)
    case("Reshape", x, i64(2, -1))
    case("Transpose", square, perm=[1, 0])
    case("Expand", x, i64(3, 16))
    case("Tile", square, i64(2, 1))
    case("Split", x, i64(4, 12), outputs=2)
    case("Squeeze", x.reshape(1, 16), i64(0))
    case("Unsqueeze", x, i64(0))
    case("Flatten", square)
    case("DepthToSpace", x.reshape(1, 4, 2, 2), blocksize=2)
    case("SpaceToDepth", x.reshape(1, 1, 4, 4), blocksize=2)
    case("ReverseSequence", square, i64(1, 2, 3, 4), batch_axis=0, time_axis=1)
    case("Trilu", square, opset=14)
    case("Compress", x, flags, axis=0)
    case("NonZero", x)
    case("OneHot", np.array([0, 2, -1], T if np.iinfo(T).min < 0 else np.int64), np.array(4, np.int64),
         np.array([np.iinfo(T).max - 1, np.iinfo(T).max], T))
    case("EyeLike", square)
    case("ConstantOfShape", i64(2, 2), value=helper.make_tensor("v", helper.np_dtype_to_tensor_dtype(np.dtype(T)), [1], [int(np.iinfo(T).max)]))
    case("Range", T(np.iinfo(T).max - 7), T(np.iinfo(T).max), T(2))
    case("Range", T(np.iinfo(T).min), T(np.iinfo(T).max), T(np.iinfo(T).max // 3), label="whole")
    case("Dropout", x, opset=13)

# ---- Orders and sums ---------------------------------------------------------------------------------------------

for T in ALL:
    x, square = ends(T), ends(T).reshape(4, 4)
    near = np.array([np.iinfo(T).max - 2, np.iinfo(T).max, np.iinfo(T).max - 1, np.iinfo(T).max], T)
    low = np.array([np.iinfo(T).min + 2, np.iinfo(T).min, np.iinfo(T).min + 1, np.iinfo(T).min], T)
    for name in ("ArgMax", "ArgMin"):
        case(name, near, axis=0)
        case(name, low, axis=0, label="low")
        case(name, square, axis=1, select_last_index=1, keepdims=0)
    for largest in (0, 1):
        case("TopK", x, i64(5), outputs=2, largest=largest, axis=0)
        case("TopK", near, i64(3), outputs=2, largest=largest, axis=0, label="near")
    for sort in (0, 1):
        case("Unique", np.concatenate([x, x[::-1]]), outputs=4, sorted=sort)
    for name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2",
                 "ReduceLogSum", "ReduceLogSumExp"):
        small = np.arange(1, 17).reshape(4, 4).astype(T)
        axes = (i64(1),) if name == "ReduceSum" else ()
        attrs = {} if axes else {"axes": [1]}
        case(name, small, *axes, opset=13, label="small", **attrs)
        if name == "ReduceSum":
            sums = [sum(map(int, row)) for row in square]
            case(name, square, *axes, opset=13, want=[held(sums, T).reshape(4, 1)] if T in WIDE else None)
        elif name in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare"):
            case(name, square, *axes, opset=13, **attrs)
            if not axes:
                case(name, square, i64(1), opset=18, label="axes")
    for name in ("CumSum",):
        case(name, x, np.array(0, np.int64), opset=14)
        case(name, x, np.array(0, np.int64), opset=14, exclusive=1, reverse=1)
    case("MatMul", square, at_odds(T).reshape(4, 4), opset=13)
    case("MatMul", (square // 7).astype(T), np.ones((4, 4), T), opset=13, label="ones")
    case("Gemm", square, at_odds(T).reshape(4, 4), np.ones(4, T), opset=13)
    case("Einsum", square, at_odds(T).reshape(4, 4), equation="ij,jk->ik", opset=12)
    case("MaxPool", x.reshape(1, 1, 16), kernel_shape=[2], opset=12)
    case("Resize", x.reshape(1, 1, 4, 4), None, np.array([1, 1, 2, 2], np.float32), mode="nearest", opset=13)
    case("Upsample", x.reshape(1, 1, 4, 4), np.array([1, 1, 2, 2], np.float32), mode="nearest", opset=9)

for a in (np.int8, np.uint8):
    for b in (np.int8, np.uint8):
        # where a processor has no VNNI, the runtime adds pairs of such products in 16 bits
        left, right = ends(a).reshape(4, 4), ends(b).reshape(4, 4)
        sums = left.astype(np.int32) @ right.astype(np.int32)
        case("MatMulInteger", left, right, opset=13, want=[sums])
        lifted = (left.astype(np.int32) - 100) @ (right.astype(np.int32) - 3)
        case("MatMulInteger", left, right, a(100), b(3), opset=13, label="zero", want=[lifted])
    case("ConvInteger", ends(np.uint8).reshape(1, 1, 4, 4), ends(a)[:4].reshape(1, 1, 2, 2), opset=13)

# ---- From one type to another -------------------------------------------------------------------------------------

for T in ALL:
    kind = {np.dtype(t): helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in (*ALL, np.bool_, np.float32, np.float64, np.float16)}
    for to in (*ALL, np.bool_, np.float32):
        case("Cast", ends(T), to=kind[np.dtype(to)])
    case("CastLike", ends(T), np.zeros(1, np.int32), opset=15)
    fits = np.array([0.0, -0.0, 0.5, 1.5, 2.5, 100.99, -0.9, float(np.iinfo(T).max // 2)], np.float32)
    case("Cast", fits, to=kind[np.dtype(T)], label="fits")
    case("Cast", fits.astype(np.float64), to=kind[np.dtype(T)], label="fits")

# ---- What numbers steer --------------------------------------------------------------------------------------------

r = np.random.default_rng(3)
center, half = r.uniform(10, 90, (1, 30, 2)), r.uniform(2, 20, (1, 30, 2))
BOXES = np.concatenate([center - half, center + half], 2).astype(np.float32)
SCORES = r.uniform(0, 1, (1, 3, 30)).astype(np.float32)
for most in (0, 5, 300, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -1, -2**63):
    case("NonMaxSuppression", BOXES, SCORES, i64(most), np.array([0.5], np.float32), label=str(most))
for threshold in (np.nan, np.inf, -np.inf):
    case("NonMaxSuppression", BOXES, SCORES, i64(2**63 - 1), np.array([0.5], np.float32), np.array([threshold], np.float32), label=f"score_{threshold}")
TEN = np.arange(10, dtype=np.float32)
for start, end in ((0, 2**63 - 1), (-2**63, 2**63 - 1), (2**63 - 1, -2**63), (2**53 + 1, 2**53 + 3)):
    for step in (1, 3, 2**63 - 1, -1, -2**63 + 1):
        for stored in ((), (1, 2, 3, 4)):
            case("Slice", TEN, i64(start), i64(end), i64(0), i64(step), stored=stored, label=f"{start}_{end}",
                 want=[TEN[start:end:step]])  # backwards, the runtime reads the largest end as the smallest
case("Slice", TEN, i64(0), i64(2**63 - 1), nodes=[
    helper.make_node("Min", ["x2", "x2"], ["e"]), helper.make_node("Slice", ["x0", "x1", "e"], ["y0"])], label="computed_end")
for sign in (1, -1):
    case("Range", np.int64(0), np.int64(sign * 6 * 10**17), np.int64(sign * 10**17), label=f"by_large_{sign}")
    case("Range", np.int64(-sign * (2**63 - 1)), np.int64(sign * (2**63 - 1)), np.int64(sign * 2**62), label=f"over_all_{sign}")
case("TopK", TEN, i64(10), outputs=2, axis=0, label="all")
case("Trilu", TEN.reshape(2, 5), np.array(2**63 - 1, np.int64), opset=14, label="far_above")
case("Trilu", TEN.reshape(2, 5), np.array(-2**63, np.int64), opset=14, label="far_below")
case("Trilu", TEN.reshape(2, 5), np.array(2**63 - 1, np.int64), opset=14, upper=0, label="far_lower")

# ---- What does not fit: the nearest that does, NaN is 0 -------------------------------------------------------------

FAR = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30], np.float32)
for T in ALL:
    info = np.iinfo(T)
    case("Cast", FAR, to=helper.np_dtype_to_tensor_dtype(np.dtype(T)), label="far",
         want=[np.array([0, info.max, info.min, info.max, info.min], T)])
case("Resize", TEN[:4].reshape(1, 1, 4), None, np.array([1, 1, 2], np.float32), opset=13, label="usual")


# ---- Running ---------------------------------------------------------------------------------------------------------


def model_of(made):
    info = helper.make_tensor_value_info
    kind = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in made.inputs.items()}
    outputs = [name for name in made.nodes[-1].output if name]
    graph = helper.make_graph(
        made.nodes, "g",
        [info(name, kind[name], value.shape) for name, value in made.inputs.items() if name not in made.stored],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(made.inputs[name], name) for name in made.stored])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", made.opset)])
    model.ir_version = 8
    return onnx.shape_inference.infer_shapes(model)


def answer_of(made, model):
    """The runtime's outputs, or None where it has no such operator."""
    if made.want is not None:
        return made.want
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {name: value for name, value in made.inputs.items() if name not in made.stored})
    except Exception:  # not implemented, or not in the standard: each has a class of its own
        return None


def compare(got, want):
    if len(got) != len(want):
        return f"{len(got)} outputs, {len(want)} wanted"
    for at, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return f"output {at}: {a.dtype} {a.tolist()}, wanted {b.dtype} {b.tolist()}"
    return ""


def as_stored(made):
    return dataclasses.replace(made, stored=tuple(list(made.inputs)[1:]))


def run_all(tool, engine, folder):
    """[(case, "" or what is wrong)] of those with an answer."""
    lines, judged = [], []
    for at, made in enumerate(CASES if engine == "plain" else map(as_stored, CASES)):
        try:
            model = model_of(made)
        except onnx.shape_inference.InferenceError:  # no such operator for the type
            continue
        want = answer_of(made, model)
        if want is None:
            continue
        place = pathlib.Path(folder) / str(at)
        place.mkdir()
        onnx.save(model, place / "m.onnx")
        fields = [str(place / "m.onnx"), str(place / "out")]
        for name, value in made.inputs.items():
            if name in made.stored:
                continue
            np.save(place / f"{name}.npy", value)
            fields.append(f"{name}={place / name}.npy")
        lines.append("\t".join(fields))
        judged.append((made, want, place / "out", [output.name for output in model.graph.output]))
    done = subprocess.run([str(tool), engine], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    answers = done.stdout.splitlines()
    assert done.returncode == 0 and len(answers) == len(judged), done.stderr or answers[-1:]
    found = []
    for (made, want, out, names), answer in zip(judged, answers, strict=True):
        if answer != "ok":
            may = engine != "plain" and "is not known from the inputs' shapes" in answer
            found.append((made, "" if may else answer))
        else:
            found.append((made, compare([np.load(out / f"{name}.npy") for name in names], want)))
    return found


@pytest.mark.parametrize("engine", ["plain", "cpu"])
def test_integers_at_the_ends_of_their_types_are_the_runtimes(engine, tool, tmp_path):
    found = run_all(tool("infer_main"), engine, tmp_path)
    assert len(found) > 800
    wrong = [f"{made}: {why[:300]}" for made, why in found if why]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    tool = pathlib.Path(sys.argv[1])
    for engine in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            found = run_all(tool, engine, folder)
        bad = [(str(c), why) for c, why in found if why]
        print(engine, len(CASES), "cases", len(found), "judged", len(bad), "not right")
        for name, why in bad:
            print(" ", name, "::", why[:300])
