#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# requirements: requirements-networks.txt openvino
"""int8 networks of ONNX Runtime's quantizer: Lacuna against ONNX Runtime and OpenVINO on the same files, interleaved.

    bench/int8.py [--build build/release] [--batches 1,16] [--seconds 4] [--threads N] [--keep DIR] [--only TEXT] [--json FILE]

A network is made once in DIR: exported, pruned 2:4 by `lacuna prune` for the rows that say so, and quantized: QDQ, per channel, with
inputs of normal numbers; for transformers also dynamically. Weights are random but for EfficientNet-Lite0's (../shared), so that
only times are measured. Each engine is a process of its own, which the others find stopped (compare_worker.py). A row has the
least and the middle time of all runs, and the middle one of the ratios of slices that follow each other: the fastest other engine's
time over Lacuna's on the same file, and Lacuna's dense int8 file over its 2:4 one.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from compare_worker import HABITS, Process
from ort import with_batch
from peer_quantizer import quantize

TOP = pathlib.Path(__file__).resolve().parent.parent
WORKER, LITE0 = TOP / "bench/peer_worker.py", TOP.parent / "shared/models/efficientnet_lite0.onnx"
ENGINES = {"lacuna": "Lacuna", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
IMAGES = ("resnet50", "mobilenet_v2", "vit_b_16")
WORDS = {"bert_base": {}, "minilm_l6": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}}
PRUNED = ("resnet50", "vit_b_16", "bert_base")
SAMPLES, TOKENS = 4, 128


# ---- The networks ----

def export(name, path):
    """Writes the network in floats, with random weights."""
    import torch
    torch.manual_seed(0)
    if name in IMAGES:
        import torchvision
        network, inputs, names = getattr(torchvision.models, name)(weights=None), (torch.randn(1, 3, 224, 224),), ["x"]
    else:
        import transformers

        class Words(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.network = transformers.BertModel(transformers.BertConfig(**WORDS[name], attn_implementation="eager"))

            def forward(self, ids, mask):
                return self.network(input_ids=ids, attention_mask=mask).last_hidden_state

        network, names = Words(), ["ids", "mask"]
        inputs = (torch.randint(0, 30000, (1, TOKENS)), torch.ones(1, TOKENS, dtype=torch.long))
    # Reshapes of the other exports fix the batch.
    axes = {n: {0: "batch"} for n in names} if name in ("resnet50", "mobilenet_v2") else None
    torch.onnx.export(network.eval(), inputs, str(path), input_names=names, opset_version=17, dynamo=False, dynamic_axes=axes)


def feeds_of(path):
    rng = np.random.default_rng(0)
    network = onnx.load(path, load_external_data=False)
    for _ in range(SAMPLES):
        yield {port.name: rng.integers(0, 2, sizes) if port.type.tensor_type.elem_type == onnx.TensorProto.INT64
               else rng.standard_normal(sizes).astype(np.float32)
               for port in network.graph.input
               for sizes in [[size.dim_value or 1 for size in port.type.tensor_type.shape.dim]]}


def make(args, name, kind):
    """The quantized file; what is there already is kept."""
    floats, pruned = args.keep / f"{name}.onnx", args.keep / f"{name}-24.onnx"
    path = args.keep / f"{name}-{kind.replace(':', '').replace(' ', '-')}.onnx"
    if path.exists():
        return path
    if not floats.exists():
        if name == "efficientnet_lite0":
            shutil.copy(LITE0, floats)
        else:
            export(name, floats)
    if kind.startswith("2:4") and not pruned.exists():
        words = [args.build / "lacuna", "prune", floats, "-o", pruned, "--no-calibration", "--no-solve", "--no-permute", "--no-verify"]
        subprocess.run([*map(str, words), "--score", "magnitude"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    source = pruned if kind.startswith("2:4") else floats
    quantize(source, path, None if kind == "dynamic" else feeds_of(source))
    return path


def is_batch_open(path):
    sizes = onnx.load(path, load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    return not sizes[0].HasField("dim_value")


# ---- Measuring ----

def begin(args, engine, path):
    threads = args.threads or len(os.sched_getaffinity(0))
    words = [args.build / "bench/engine_worker"] if engine == "lacuna" else [sys.executable, WORKER, engine]
    return Process([*words, path, path.parent, "f32", threads], **HABITS.get(engine, {}))


def measure(args, files, batch):
    """Slices of milliseconds by (kind, engine); an engine that fails is told and left out."""
    slices, workers = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for kind, file in files.items():
                own = pathlib.Path(folder) / kind.replace(":", "").replace(" ", "-")
                own.mkdir()
                path = with_batch(file, batch, own)
                for engine in ENGINES:
                    try:
                        workers[kind, engine] = begin(args, engine, path)
                    except Exception as why:  # an engine's own words
                        print(f"{file.name}: {ENGINES[engine]}: {str(why)[:160]}", file=sys.stderr)
            for worker in workers.values():  # not counted
                worker.ask(f"run {args.slice:.4f}")
            for _ in range(max(3, round(args.seconds / args.slice))):
                for key, worker in workers.items():
                    slices.setdefault(key, []).append(worker.ask(f"run {args.slice:.4f}")["ms"])
        finally:
            for worker in workers.values():
                worker.close()
    return slices


def ratio(of, to):
    """The middle one of the ratios of slices that follow each other."""
    return statistics.median(statistics.median(a) / statistics.median(b) for a, b in zip(of, to))


def report(name, batch, slices):
    rows = []
    for kind in dict.fromkeys(kind for kind, _ in slices):
        own = {engine: slices[kind, engine] for engine in ENGINES if (kind, engine) in slices}
        row = {"network": name, "batch": batch, "kind": kind}
        for engine, of in own.items():
            runs = [ms for one in of for ms in one]
            row[engine] = {"min_ms": min(runs), "median_ms": statistics.median(runs), "runs": len(runs)}
        peers = {engine: statistics.median(ms for one in of for ms in one) for engine, of in own.items() if engine != "lacuna"}
        if peers and "lacuna" in own:
            row["fastest"] = min(peers, key=peers.get)
            row["of_fastest"] = ratio(own[row["fastest"]], own["lacuna"])
        if kind == "2:4 qdq" and ("qdq", "lacuna") in slices and "lacuna" in own:
            row["of_dense"] = ratio(slices["qdq", "lacuna"], own["lacuna"])
        rows.append(row)
        times = " ".join(f"{row[e]['min_ms']:9.2f}/{row[e]['median_ms']:<9.2f}" if e in row else f"{'-':>19}" for e in ENGINES)
        ratios = " ".join(f"{row[key]:6.2f}" if key in row else f"{'':6}" for key in ("of_fastest", "of_dense"))
        print(f"{name:20} {batch:3} {kind:8} {times} {ratios}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--batches", default="1")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--slice", type=float, default=0.4)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path, default=TOP / "build/int8")
    parser.add_argument("--only", default="", help="networks whose name has this text")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    args.build, rows = args.build.resolve(), []
    args.keep.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    print(f"{'network':20} {'n':>3} {'file':8} " + " ".join(f"{name + ', least/middle':>19}" for name in ENGINES.values()) + "  /peer /dense")
    names = [*IMAGES, *(["efficientnet_lite0"] if LITE0.exists() else []), *WORDS]
    for name in [name for name in names if args.only in name]:
        kinds = ["qdq", *(["2:4 qdq"] if name in PRUNED else []), *(["dynamic"] if name in WORDS else [])]
        files = {kind: make(args, name, kind) for kind in kinds}
        batches = map(int, args.batches.split(","))
        for batch in [batch for batch in batches if batch == 1 or is_batch_open(files["qdq"])]:
            rows += report(name, batch, measure(args, files, batch))
    means = [row["of_fastest"] for row in rows if "of_fastest" in row]
    if means:
        print(f"mean of the fastest other engine's time over Lacuna's: {statistics.geometric_mean(means):.2f}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
