#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of the search's kernels by instruction set: kernel_bench's table, and its change against bench/ledger.json.

    bench/kernels.py [--build build/release] [--ms 50] [--json FILE] [--record]

Kept are the fastest variant's speed and how many times faster than scalar code it is.
"""
import argparse
import json
import pathlib
import re
import subprocess

import ledger

TOP = pathlib.Path(__file__).resolve().parent.parent
SPEED = re.compile(r"([\d.]+) ns +([\d.]+) G/s")


def run(program, milliseconds):
    """The table's lines, shown as they come."""
    lines = []
    with subprocess.Popen([program, str(milliseconds)], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    if process.returncode:
        raise SystemExit(f"{program} failed")
    return lines


def read_table(lines):
    """[{name, variant: G/s ...}]; the first line names the variants, slowest first."""
    variants = lines[0].split()[1:]
    rows = []
    for line in lines[1:]:
        speeds = [float(speed) for _, speed in SPEED.findall(line)]
        name = re.sub(r" +", " ", SPEED.sub("", line)).strip()
        if len(speeds) != len(variants):
            raise SystemExit(f"kernel_bench: not a row of {len(variants)} variants: {line}")
        rows.append({"name": name, **dict(zip(variants, speeds))})
    return variants, rows


def figures_of(variants, rows):
    out = {}
    for row in rows:
        best = variants[-1]
        out[f"{row['name']}, {best}"] = ledger.figure(row[best], "G/s")
        if len(variants) > 1 and row[variants[0]] > 0:
            out[f"{row['name']}, {best} over {variants[0]}"] = ledger.figure(row[best] / row[variants[0]], "x")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--ms", type=float, default=50, help="milliseconds for each figure")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="add an entry to bench/ledger.json")
    arguments = parser.parse_args()
    variants, rows = read_table(run(arguments.build / "bench/kernel_bench", arguments.ms))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    ledger.report("kernel", figures_of(variants, rows), ledger.circumstances(arguments.build), arguments.record)


if __name__ == "__main__":
    main()
