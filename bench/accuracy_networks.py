# SPDX-License-Identifier: Apache-2.0
"""What accuracy.py asks of networks other than CIFAR's: EfficientNet-Lite0 on photographs, a network of BERT's shape, and what
calibrating a network of ResNet-50's shape costs. Each has rows (name -> options of `prune`), a run, and the lines of its table."""
import array
import json
import os
import pathlib
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent
SCORES = ("magnitude", "wanda", "ria", "sparsegpt", "obs", "alps")
PREPARED = {"lite0": ["--mean", "127,127,127", "--std", "128,128,128"]}
PHOTOGRAPHS = 1024
POINTWISE = ["--all-sizes", "--exclude", "Gemm"]  # blocks of four channels, whatever Tensor Cores ask of sizes


def report(bench, name):
    return json.loads((bench.folder / name).read_text())


# ---- EfficientNet-Lite0 ----

def answers(path):
    """The place of the largest element of each row of a .npy of f32, as `eval --predictions` writes it."""
    raw = path.read_bytes()
    begin = 10 + int.from_bytes(raw[8:10], "little")
    columns = int(raw[10:begin].decode().split("shape")[1].split("(")[1].split(")")[0].split(",")[1])
    logits = array.array("f", raw[begin:])
    rows = (logits[at:at + columns] for at in range(0, len(logits), columns))
    return [max(range(columns), key=row.__getitem__) for row in rows]


def photographs_told(bench, file):
    bench.lacuna("eval", file, "--data", bench.args.data / "imagenet-sample", *PREPARED["lite0"], "--resize", "256", "--crop", "224",
                 "--predictions", "told.npy", "--json", "eval.json", "--force")
    return report(bench, "eval.json")["top1"], answers(bench.folder / "told.npy")


def lite0_methods():
    data = ["--calibration-samples", "100", "--resize", "256", "--crop", "224", *PREPARED["lite0"]]
    methods = {"magnitude, no data": []}
    methods.update({f"{score}, solved": ["--score", score, *data] for score in SCORES})
    methods["alps, solved, 4 copies of each"] = ["--score", "alps", *data, "--calibration-copies", "4"]
    return methods


def lite0(bench, options):
    model = bench.args.models / "efficientnet_lite0.onnx"
    data = ["--calibration", bench.args.data / "imagenet-sample"] if options else ["--no-calibration", "--no-solve"]
    spent = bench.lacuna("prune", model, "--no-permute", *POINTWISE, *options, *data, "-o", "pruned.onnx", "--force")
    dense, expected = photographs_told(bench, model)
    top1, told = photographs_told(bench, "pruned.onnx")
    same = sum(a == b for a, b in zip(expected, told))
    return {**spent, "top1": top1, "top1_dense": dense, "agreement": 100 * same / len(told),
            **bench.axis("pruned.onnx", "2:4", POINTWISE)}


def lite0_lines(found):
    lines = ["| masks and weights | top-1 of 100 | answers as the dense network's | processor s | zeros hold 2:4 |", "|---|---|---|---|---|"]
    if found:
        lines.append(f"| dense | {next(iter(found.values()))[0]['top1_dense']:.0f} | 100 | | |")
    for method, (run, *_) in found.items():
        lines.append(f"| {method} | {run['top1']:.0f} | {run['agreement']:.0f} | {run['processor_seconds']:.0f} | {run['hold']} of {run['eligible']} |")
    return lines


# ---- a network of BERT's shape ----

def bert_methods():
    return {f"{score}, {kind}": ["--score", score, *more] for kind, more in (("not solved", ["--no-solve"]), ("solved", []))
            for score in SCORES}


def bert(bench, options):
    if not (bench.folder / "bert.onnx").exists():
        subprocess.run([bench.args.peer, TOP / "bench/accuracy_bert.py", "bert.onnx", "tokens.npy"], cwd=bench.folder, check=True)
    spent = bench.lacuna("prune", "bert.onnx", "--no-permute", *options, "--calibration", "tokens.npy", "-o", "pruned.onnx",
                         "--json", "prune.json", "--force")
    return {**spent, "error": report(bench, "prune.json")["calibration"]["outputs_error"], **bench.axis("pruned.onnx")}


def bert_lines(found):
    lines = ["| masks and weights | squared error of the outputs, in percent of their square | processor s | zeros hold 2:4 |", "|---|---|---|---|"]
    for method, (run, *_) in found.items():
        lines.append(f"| {method} | {100 * run['error']:.3f} | {run['processor_seconds']:.0f} | {run['hold']} of {run['eligible']} |")
    return lines


# ---- a network of ResNet-50's shape ----

def resnet50_methods():
    return {f"alps, solved, {PHOTOGRAPHS} photographs": ["--score", "alps"]}


def linked_photographs(bench):
    """As many as asked for, of a hundred: their content does not change the cost."""
    folder, n = bench.folder / "photographs", 0
    found = sorted((bench.args.data / "imagenet-sample").glob("n*/*"))
    while n < PHOTOGRAPHS:
        for file in found[:PHOTOGRAPHS - n]:
            (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
            os.symlink(file.resolve(), folder / file.parent.name / f"{n}{file.suffix}")
            n += 1
    return folder


def resnet50(bench, options):
    fill = [bench.args.build / "tests/tools/fill_model", TOP / "tests/fixtures/zoo/resnet50_ts.onnx", "resnet50.onnx", "1"]
    subprocess.run(fill, cwd=bench.folder, check=True, stdout=subprocess.DEVNULL)
    spent = bench.lacuna("prune", "resnet50.onnx", "--no-permute", *options, "--calibration", linked_photographs(bench),
                         "--calibration-samples", PHOTOGRAPHS, "-o", "pruned.onnx", "--json", "prune.json", "--force")
    told = report(bench, "prune.json")["calibration"]
    return {**spent, "error": told["outputs_error"], "file_bytes": told["file_bytes"], **bench.axis("pruned.onnx")}


def resnet50_lines(found):
    lines = ["| what | minutes | minutes of processors | peak memory | in temporary files | zeros hold 2:4 |", "|---|---|---|---|---|---|"]
    for method, (run, *_) in found.items():
        lines.append(f"| {method} | {run['seconds'] / 60:.1f} | {run['processor_seconds'] / 60:.1f} | {run['peak_bytes'] / 1e9:.2f} GB |"
                     f" {run['file_bytes'] / 1e9:.2f} GB | {run['hold']} of {run['eligible']} |")
    return lines


PARTS = {"lite0": (lite0_methods, lite0, lite0_lines), "bert": (bert_methods, bert, bert_lines),
         "resnet50": (resnet50_methods, resnet50, resnet50_lines)}
