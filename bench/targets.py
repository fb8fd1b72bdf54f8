#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA cuSPARSELt says of masks that `check --target cusparselt` takes and of planted faults, and what layers gain.

    bench/targets.py [--build build/release] [--json FILE] [--from FILE] [--docs]

Needs a GPU with sparse Tensor Cores and a build with -DLAC_CUSPARSELT=DIR. --docs writes the part of bench/notes/targets.md and
the gains of src/target/list (build and tests/unit/target_docs --update afterwards); --from: of an earlier run's --json.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import page

TOP = pathlib.Path(__file__).resolve().parent.parent
GAINS = TOP / "src/target/list/cusparselt_gains.h"
KINDS = ("f16", "bf16", "i8")
LAUNCH_US = 15  # products that take less wait for their launches: what they take says nothing

# Networks of the tests with random weights, and how they are pruned.
CASES = {
    "ResNet-50, 2:4": ("resnet50_ts", []),
    "ResNet-50, 1:2": ("resnet50_ts", ["--pattern", "1:2"]),
    "ResNet-50, 2:4 in both directions": ("resnet50_ts", ["--mask", "2d-greedy"]),
    "ViT-B/16, 2:4": ("vit_b_16_ts", []),
    "ViT-B/16, 1:4": ("vit_b_16_ts", ["--pattern", "1:4"]),
    "BERT base, 2:4": ("bert_base_ts", []),
}


def make_models(build, folder):
    """Paths by name of the case."""
    models = {}
    for number, (name, (fixture, options)) in enumerate(CASES.items()):
        dense, pruned = folder / "dense.onnx", folder / f"{number}.onnx"
        subprocess.run([build / "tests/tools/fill_model", TOP / f"tests/fixtures/zoo/{fixture}.onnx", dense, "1"], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([build / "lacuna", "prune", dense, "-o", pruned, "--no-permute", "--no-calibration", "--quiet", *options], check=True,
                       stdout=subprocess.DEVNULL)
        models[name] = pruned
    return models


def run(build):
    with tempfile.TemporaryDirectory() as folder:
        models = make_models(build, pathlib.Path(folder))
        done = subprocess.run([build / "bench/cusparselt_bench", "--times", *models.values()], stdout=subprocess.PIPE, text=True)
        if not done.stdout:
            raise SystemExit("cusparselt_bench failed")
        told = json.loads(done.stdout)
        told["models"] = {name: told["models"][str(path)] for name, path in models.items()}
        return told


# ---- The page ----

def version_text(told):
    return f"0.{told['cusparselt'] // 100}.{told['cusparselt'] % 100}"


def mask_lines(told):
    lines = [f"`bench/targets.py` on an {told['device']} with cuSPARSELt {version_text(told)}: `cusparseLtSpMMAPruneCheck2` and "
             "`check --target cusparselt` on the same masks, each as f16, bf16, int8 (2:4) and f32 (1:2) where our rules take the "
             "layer. The faults are in matrices stored row-major and column-major.", "",
             "| masks | both take | both refuse | they differ |", "|---|---|---|---|"]
    for name, of in [*told["models"].items(), *((f"matrices, {name}", of) for name, of in told["faults"].items())]:
        lines.append(f"| {name} | {of['both_take']} | {of['both_refuse']} | {len(of['differences'])} |")
    lines += ["", "Least powers of two whose odd multiples it plans a product for:", "",
              "| type | input channels | output channels |", "|---|---|---|"]
    return lines + [f"| {name} | {of['in']} | {of['out']} |" for name, of in told["least_multiples"].items()]


def says_something(row):
    return row["outcome"] == "measured" and min(row["dense_us"], row["sparse_us"]) >= LAUNCH_US


def time_cell(row):
    if row["outcome"] != "measured":
        return row["outcome"]
    if not says_something(row):
        return "–"
    return f"{row['dense_us']:.0f} / {row['sparse_us']:.0f} µs, **{row['gain']:.2f}**"


def time_lines(told):
    found = {(row["network"], row["layer"], row["inputs"], row["type"]): row for row in told["times"]}
    places = list(dict.fromkeys(key[:3] for key in found if any(says_something(found[*key[:3], kind]) for kind in KINDS)))
    few = {True: 0, False: 0}
    for row in told["times"]:
        few[says_something(row)] += 1
    lines = ["Dense by the fastest of cuBLASLt's sixteen proposals, sparse by what cuSPARSELt's own search finds; both gave the same "
             f"bits in all {few[True] + few[False]} products. Medians of nine alternating rounds; gain: dense over sparse. Products of "
             f"less than {LAUNCH_US} µs wait for their launches: {few[False]} of them, all of one input among them, are left out.", "",
             "| network | layer | channels | inputs | f16 | bf16 | int8 |", "|---|---|---|---|---|---|---|"]
    for network, layer, inputs in sorted(places, key=lambda place: (place[2], places.index(place))):
        rows = [found[network, layer, inputs, kind] for kind in KINDS]
        cells = " | ".join(map(time_cell, rows))
        lines.append(f"| {network} | {layer} | {rows[0]['in']} -> {rows[0]['out']} | {inputs} | {cells} |")
    return lines


def gain_rows(told):
    rows = {}
    for row in filter(says_something, told["times"]):
        for op in ["Conv"] if row["network"] == "ResNet-50" else ["Gemm", "MatMul"]:
            rows[op, row["type"], row["in"], row["out"]] = row["gain"]
    return rows


def write_gains(told):
    many = max(row["inputs"] for row in told["times"])
    lines = ["/* SPDX-License-Identifier: Apache-2.0",
             " * Written by bench/targets.py: what layers of ResNet-50 and ViT-B/16 gain. */",
             "#ifndef LACI_TARGET_LIST_CUSPARSELT_GAINS_H", "#define LACI_TARGET_LIST_CUSPARSELT_GAINS_H", "",
             '#include "target/target.h"', "", f'#define OF "a product for {many} inputs, {told["device"]}"',
             "static const laci_target_gain gains[] = {"]
    lines += [f'    {{"{op}", "{kind}", 1, {n_in}, {n_out}, {gain:.2f}, OF, "bench"}},'
              for (op, kind, n_in, n_out), gain in gain_rows(told).items()]
    GAINS.write_text("\n".join([*lines, "};", "#undef OF", "", "#endif", ""]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--json", type=pathlib.Path, help="keeps what was measured")
    parser.add_argument("--from", dest="earlier", type=pathlib.Path, help="what an earlier run kept")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    told = json.loads(args.earlier.read_text()) if args.earlier else run(args.build)
    if args.json:
        args.json.write_text(json.dumps(told, indent=1) + "\n")
    lines = [*mask_lines(told), "", *time_lines(told)]
    print("\n".join(lines))
    for of in [*told["models"].values(), *told["faults"].values()]:
        print("".join(f"DIFFERS: {text}\n" for text in of["differences"][:20]), end="")
    if args.docs:
        notes = TOP / "bench/notes/targets.md"
        notes.write_text(page.fill(notes.read_text(), "cusparselt", "targets.py", lines))
        write_gains(told)
    return told["differences"] > 0


if __name__ == "__main__":
    raise SystemExit(main())
