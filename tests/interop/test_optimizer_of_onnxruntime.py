# SPDX-License-Identifier: Apache-2.0
"""Networks as ONNX Runtime's optimizers leave them: small transformers and convolutions are built here, fused by
onnxruntime.transformers and by the runtime's own graph optimization, and go through the whole pipeline. What the runtime
computes stays the same when channels change places, and each layer that should be planned is."""
import collections
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
HIDDEN, HEADS, TOKENS, WORDS, INNER, BLOCKS = 64, 4, 8, 50, 128, 2


class Net:
    """Nodes one after the other, as an exporter of PyTorch writes them."""

    def __init__(self, seed=0):
        self.rng, self.nodes, self.stored, self.count = np.random.default_rng(seed), [], {}, 0

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def op(self, kind, *inputs, outputs=1, **attrs):
        made = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, name=f"{kind}_{self.count}", **attrs))
        return made[0] if outputs == 1 else made

    def weight(self, *shape, around=0.0, scale=None):
        name = f"w{len(self.stored)}"
        scale = scale or 1 / np.sqrt(shape[0])
        self.stored[name] = (around + scale * self.rng.standard_normal(shape)).astype(np.float32)
        return name

    def const(self, values, dtype=np.int64):
        name = f"c{len(self.stored)}"
        self.stored[name] = np.array(values, dtype)
        return name

    def linear(self, x, n_in, n_out):
        return self.op("Add", self.op("MatMul", x, self.weight(n_in, n_out)), self.weight(n_out, scale=0.1))

    def norm(self, x, n=HIDDEN):
        return self.op("LayerNormalization", x, self.weight(n, around=1, scale=0.2), self.weight(n, scale=0.2), axis=-1,
                       epsilon=1e-5)

    def gelu(self, x):
        half = self.op("Mul", x, self.op("Add", self.op("Erf", self.op("Div", x, self.const(np.sqrt(2), np.float32))),
                                         self.const(1, np.float32)))
        return self.op("Mul", half, self.const(0.5, np.float32))

    def heads(self, x, perm):
        return self.op("Transpose", self.op("Reshape", x, self.const([0, 0, HEADS, HIDDEN // HEADS])), perm=perm)

    def attention(self, x, mask=None):
        q = self.heads(self.linear(x, HIDDEN, HIDDEN), [0, 2, 1, 3])
        k = self.heads(self.linear(x, HIDDEN, HIDDEN), [0, 2, 3, 1])
        v = self.heads(self.linear(x, HIDDEN, HIDDEN), [0, 2, 1, 3])
        scores = self.op("Div", self.op("MatMul", q, k), self.const(np.sqrt(HIDDEN // HEADS), np.float32))
        if mask:
            scores = self.op("Add", scores, mask)
        y = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", y, self.const([0, 0, HIDDEN])), HIDDEN, HIDDEN)

    def sum_and_norm(self, x, y):
        """The normalized sum of both, and the sum."""
        made = [self.name(), self.name()]
        self.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [x, y, self.weight(HIDDEN, around=1, scale=0.2)],
                                           [made[0], "", "", made[1]], name=f"norm_{self.count}", domain="com.microsoft",
                                           epsilon=1e-5))
        return made

    def model(self, inputs, output, shape, checked=True):
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(v, n) for n, v in self.stored.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                                  ir_version=8)
        if checked: # ONNX's checker knows nothing of operators that only the runtime has
            onnx.checker.check_model(model)
        return model


def bert():
    net = Net(1)
    shape = [1, TOKENS]
    ids, kinds, kept = "input_ids", "token_type_ids", "attention_mask"
    mask = net.op("Cast", net.op("Unsqueeze", net.op("Unsqueeze", kept, net.const([1])), net.const([2])), to=TensorProto.FLOAT)
    mask = net.op("Mul", net.op("Sub", net.const(1, np.float32), mask), net.const(-10000, np.float32))
    words = net.op("Gather", net.weight(WORDS, HIDDEN, scale=1), ids)
    kind = net.op("Gather", net.weight(2, HIDDEN, scale=1), kinds)
    places = net.op("Gather", net.weight(32, HIDDEN, scale=1), net.const([list(range(TOKENS))]))
    x = net.norm(net.op("Add", net.op("Add", words, kind), places))
    for _ in range(BLOCKS):
        x = net.norm(net.op("Add", net.attention(x, mask), x))
        inner = net.gelu(net.linear(x, HIDDEN, INNER))
        x = net.norm(net.op("Add", net.linear(inner, INNER, HIDDEN), x))
    y = net.linear(x, HIDDEN, 10)
    model = net.model([(n, TensorProto.INT64, shape) for n in (ids, kinds, kept)], y, [1, TOKENS, 10])
    rng = np.random.default_rng(2)
    kept_tokens = np.ones(shape, np.int64)
    kept_tokens[:, TOKENS - 2:] = 0
    return model, {ids: rng.integers(0, WORDS, shape), kinds: rng.integers(0, 2, shape), kept: kept_tokens}


def vit():
    net = Net(3)
    x = net.op("Conv", "image", net.weight(HIDDEN, 3, 4, 4, scale=0.2), net.weight(HIDDEN, scale=0.1), strides=[4, 4])
    x = net.op("Transpose", net.op("Reshape", x, net.const([0, HIDDEN, -1])), perm=[0, 2, 1])
    x = net.op("Add", x, net.weight(1, 16, HIDDEN, scale=1))
    for _ in range(BLOCKS):
        x = net.op("Add", net.attention(net.norm(x)), x)
        x = net.op("Add", net.linear(net.gelu(net.linear(net.norm(x), HIDDEN, INNER)), INNER, HIDDEN), x)
    x = net.norm(x)
    y = net.linear(net.op("ReduceMean", x, axes=[1], keepdims=0), HIDDEN, 10)
    model = net.model([("image", TensorProto.FLOAT, [1, 3, 16, 16])], y, [1, 10])
    return model, {"image": np.random.default_rng(4).standard_normal((1, 3, 16, 16)).astype(np.float32)}


def rms(net, x):
    mean = net.op("ReduceMean", net.op("Pow", x, net.const(2, np.float32)), axes=[-1], keepdims=1)
    root = net.op("Sqrt", net.op("Add", mean, net.const(1e-5, np.float32)))
    scaled = net.op("Mul", x, net.op("Div", net.const(1, np.float32), root))
    return net.op("Mul", net.weight(HIDDEN, around=1, scale=0.2), scaled)


def gated():
    """The blocks of Llama, without rotation: normalized by the root mean square, inner layers gated."""
    net = Net(5)
    x = net.op("Gather", net.weight(WORDS, HIDDEN, scale=1), "input_ids")
    for _ in range(BLOCKS):
        x = net.op("Add", x, net.attention(rms(net, x)))
        h = rms(net, x)
        gate, up = (net.op("MatMul", h, net.weight(HIDDEN, INNER)) for _ in range(2))
        inner = net.op("Mul", net.op("Mul", gate, net.op("Sigmoid", gate)), up)
        x = net.op("Add", x, net.op("MatMul", inner, net.weight(INNER, HIDDEN)))
    y = net.op("MatMul", rms(net, x), net.weight(HIDDEN, WORDS))
    model = net.model([("input_ids", TensorProto.INT64, [1, TOKENS])], y, [1, TOKENS, WORDS])
    return model, {"input_ids": np.random.default_rng(6).integers(0, WORDS, (1, TOKENS))}


def residual():
    """Convolutions with sums and functions after them, and a product of transposed values."""
    net = Net(7)
    conv = lambda x, n_in, n_out, k: net.op("Conv", x, net.weight(n_out, n_in, k, k, scale=0.1), net.weight(n_out, scale=0.1),
                                            pads=[k // 2] * 4)
    x = net.op("Relu", conv("image", 3, 32, 3))
    for _ in range(BLOCKS):
        x = net.op("Relu", net.op("Add", conv(net.op("Relu", conv(x, 32, 48, 1)), 48, 32, 3), x))
        x = net.op("LeakyRelu", conv(x, 32, 32, 3), alpha=0.2)
    flat = net.op("Reshape", net.op("GlobalAveragePool", x), net.const([0, 32]))
    y = net.op("Relu", net.op("Gemm", flat, net.weight(64, 32), net.weight(64, scale=0.1), transB=1))
    y = net.op("Gemm", y, net.weight(16, 64), net.weight(16, scale=0.1), transB=1)
    model = net.model([("image", TensorProto.FLOAT, [1, 3, 12, 12])], y, [1, 16])
    return model, {"image": np.random.default_rng(8).standard_normal((1, 3, 12, 12)).astype(np.float32)}


def cached():
    """Llama's decoder as ONNX Runtime's model builder writes it: queries of two heads share one of keys, both are rotated, and
    a cache comes in and goes out."""
    net = Net(9)
    size, past = 16, 3
    net.stored["cos"], net.stored["sin"] = (net.rng.uniform(-1, 1, (32, size // 2)).astype(np.float32) for _ in range(2))
    x, caches = net.op("Gather", net.weight(WORDS, HIDDEN, scale=1), "input_ids"), []
    skip = x
    h = net.op("SimplifiedLayerNormalization", x, net.weight(HIDDEN, around=1, scale=0.2), axis=-1, epsilon=1e-5, stash_type=1)
    for block in range(BLOCKS):
        cache = [f"past_key_{block}", f"past_value_{block}"]
        q, k, v = (net.op("MatMul", h, net.weight(HIDDEN, n)) for n in (HIDDEN, HIDDEN // 2, HIDDEN // 2))
        y, *present = net.op("GroupQueryAttention", q, k, v, *cache, "seqlens_k", "total", "cos", "sin", outputs=3,
                             domain="com.microsoft", num_heads=HEADS, kv_num_heads=HEADS // 2, do_rotary=1)
        caches.append((cache, present))
        for n_in, n_out in ((HIDDEN, INNER), (INNER, None)):
            if n_out:
                y = net.op("MatMul", y, net.weight(HIDDEN, HIDDEN))
            else:
                gate, up = (net.op("MatMul", h, net.weight(HIDDEN, INNER)) for _ in range(2))
                y = net.op("Mul", net.op("Mul", gate, net.op("Sigmoid", gate)), up)
                y = net.op("MatMul", y, net.weight(INNER, HIDDEN))
            h, skip = net.sum_and_norm(skip, y)
    y = net.op("MatMul", h, net.weight(HIDDEN, WORDS))
    kv = [1, HEADS // 2, past, size]
    inputs = [("input_ids", TensorProto.INT64, [1, 1]), ("seqlens_k", TensorProto.INT32, [1]), ("total", TensorProto.INT32, [1])]
    inputs += [(name, TensorProto.FLOAT, kv) for cache, _ in caches for name in cache]
    model = net.model(inputs, y, [1, 1, WORDS], checked=False)
    model.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, HEADS // 2, past + 1, size])
                              for _, present in caches for n in present)
    rng = np.random.default_rng(10)
    fed = {"input_ids": np.array([[7]]), "seqlens_k": np.array([past], np.int32), "total": np.array([past + 1], np.int32)}
    fed.update({n: rng.standard_normal(kv).astype(np.float32) for cache, _ in caches for n in cache})
    return model, fed


def fuse(model, path, family):
    """onnxruntime.transformers where a family of transformers is named, else the runtime at its highest level."""
    if family == "built":
        onnx.save(model, path)
        return
    if family:
        plain = path.with_suffix(".plain.onnx")
        onnx.save(model, plain)
        options = FusionOptions(family.partition("+")[0])
        options.use_multi_head_attention = family.endswith("+heads")
        family = family.partition("+")[0]
        done = optimizer.optimize_model(str(plain), model_type=family, num_heads=HEADS, hidden_size=HIDDEN, opt_level=0,
                                        optimization_options=options)
        done.save_model_to_file(str(path))
        return
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(path, fed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, fed)[0]


def lacuna(*arguments):
    done = subprocess.run([LACUNA, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# network, family for onnxruntime.transformers (None: the runtime alone): operators that must have come, layers that are pruned,
# those whose input channels move (values of a cache do not), groups of channels that move
CASES = [
    (bert, "bert", {"Attention": 2, "SkipLayerNormalization": 4, "BiasGelu": 2}, 8, 8, 11),
    (bert, None, {"FusedMatMul": 2, "SkipLayerNormalization": 5, "Gelu": 2}, 12, 12, 11),
    (vit, "vit", {"Attention": 2, "SkipLayerNormalization": 4, "BiasGelu": 2}, 8, 8, 11),
    (vit, "vit+heads", {"MultiHeadAttention": 2, "SkipLayerNormalization": 4, "BiasGelu": 2}, 12, 12, 11),
    (vit, None, {"FusedMatMul": 2, "SkipLayerNormalization": 1, "Gelu": 2}, 12, 12, 11),
    (gated, "bert", {"SimplifiedLayerNormalization": 1, "SkipSimplifiedLayerNormalization": 4}, 14, 14, 11),
    (gated, None, {"SimplifiedLayerNormalization": 5, "FusedMatMul": 2, "QuickGelu": 2}, 14, 14, 11),
    (residual, None, {"FusedConv": 5, "FusedGemm": 1}, 8, 8, 6),
    (cached, "built", {"GroupQueryAttention": 2, "SkipSimplifiedLayerNormalization": 4}, 14, 12, 3),
]


@pytest.mark.parametrize("build, family, wanted, n_pruned, n_permuted, n_groups", CASES,
                         ids=[f"{c[0].__name__}-{c[1] or 'runtime'}" for c in CASES])
def test_what_optimizers_write_is_planned(build, family, wanted, n_pruned, n_permuted, n_groups, tmp_path):
    model, fed = build()
    fused, permuted, pruned = (tmp_path / f"{x}.onnx" for x in ("fused", "permuted", "pruned"))
    fuse(model, fused, family)
    found = collections.Counter(n.op_type for n in onnx.load(fused).graph.node if n.op_type in wanted)
    assert found == wanted
    before = run(fused, fed)
    lacuna("permute", "-q", "-o", permuted, fused)
    after = run(permuted, fed)
    assert np.abs(after - before).max() <= 1e-4 * np.abs(before).max()
    summary = json.loads(lacuna("prune", "--no-calibration", "--no-solve", "-q", "-o", pruned, "--json", "-", fused))["summary"]
    assert (summary["pruned"], summary["permuted"], summary["groups"]) == (n_pruned, n_permuted, n_groups)
    assert summary["max_abs_error"] <= 1e-9 * summary["max_abs_output"]
    lacuna("check", "-q", "--against", fused, pruned)


@pytest.mark.parametrize("domain, name", [("com.microsoft", "BiasDropout"), ("my.domain", "Foreign")])
def test_an_operator_that_nobody_knows_is_assumed(domain, name, tmp_path):
    net = Net(11)
    x = net.op("MatMul", "x", net.weight(16, 32))
    y = net.op("MatMul", net.op(name, x, domain=domain), net.weight(32, 16))
    model = net.model([("x", TensorProto.FLOAT, [2, 16])], y, [2, 16], checked=False)
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model, path)

    def moved(*options):
        report = json.loads(lacuna("permute", "-q", "--force", "-o", out, "--json", "-", *options, path))
        return [layer["permuted"] for layer in report["layers"]]

    assert moved() == [[], []]
    assert moved("--assume", f"{domain}.{name}=same") == moved("--assume", f"{name}=same") == [["K"], ["C"]]
    wrong = subprocess.run([LACUNA, "permute", "--force", "-o", out, "--assume", f"other.{name}=same", path],
                           capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and "the network has no such node" in wrong.stderr
