#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and peak memory of a whole `lacuna prune` on ResNet-50 (random heavy-tailed weights), a table and JSON.

    bench/pipeline.py [--build build/release] [--runs 3] [--json FILE] [--record]

The bounds it is measured against: 6 s on two cores, 2.5 times the file plus 100 MB. Prints the change against
bench/ledger.json; --record adds an entry to it.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time

import ledger

TOP = pathlib.Path(__file__).resolve().parent.parent
NETWORKS = ("resnet50_ts", "mobilenet_v2_ts", "vgg16_bn_ts")


def measure(lacuna, model, out):
    """Seconds, peak MB and the report of one prune."""
    begin = time.monotonic()
    process = subprocess.Popen([lacuna, "prune", "-q", "--force", "--no-calibration", model, "-o", out, "--json", "-"],
                               stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{model}: lacuna prune failed")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, json.loads(text)


def figures_of(rows):
    """What the ledger keeps of a run."""
    out = {}
    for row in rows:
        name = row["network"]
        out[f"{name}: prune, least"] = ledger.figure(row["min_s"], "s")
        out[f"{name}: search"] = ledger.figure(row["search_s"], "s")
        out[f"{name}: verification"] = ledger.figure(row["verification_s"], "s")
        out[f"{name}: peak memory"] = ledger.figure(row["peak_mb"], "MB")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="add an entry to bench/ledger.json")
    parser.add_argument("network", nargs="*", default=NETWORKS)
    arguments = parser.parse_args()
    rows = []
    print(f"{platform.machine()}, {os.cpu_count()} cores")
    print(f"{'network':18}{'file MB':>9}{'min s':>8}{'median s':>10}{'search s':>10}{'verify s':>9}{'peak MB':>9}{'bound MB':>10}")
    with tempfile.TemporaryDirectory() as temporary:
        model, out = pathlib.Path(temporary) / "model.onnx", pathlib.Path(temporary) / "out.onnx"
        for name in arguments.network:
            subprocess.run([arguments.build / "tests/tools/fill_model", TOP / f"tests/fixtures/zoo/{name}.onnx", model, "1"],
                           check=True)
            size = model.stat().st_size / 1e6
            runs = [measure(arguments.build / "lacuna", model, out) for _ in range(arguments.runs)]
            seconds = sorted(run[0] for run in runs)
            search, verification = (min(run[2]["summary"][f"{part}_seconds"] for run in runs) for part in ("search", "proof"))
            row = {"network": name, "file_mb": size, "min_s": seconds[0], "median_s": seconds[len(seconds) // 2],
                   "search_s": search, "verification_s": verification,
                   "peak_mb": max(run[1] for run in runs), "bound_mb": 2.5 * size + 100}
            rows.append(row)
            print(f"{name:18}{size:9.1f}{row['min_s']:8.2f}{row['median_s']:10.2f}{row['search_s']:10.2f}"
                  f"{row['verification_s']:9.2f}{row['peak_mb']:9.0f}{row['bound_mb']:10.0f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")
    ledger.report("pipeline", figures_of(rows), ledger.circumstances(arguments.build), arguments.record)


if __name__ == "__main__":
    main()
