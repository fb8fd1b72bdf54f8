#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are cut in place while a verb reads them, in one run after each of its reads.

    cut.py --lacuna LACUNA --faults LIBRARY [--only WORD] [--shares 0,.5,.99]

The library (tests/torture/faults.c) cuts a model, its external data or a pack just after the k-th call that reads the
file or asks for its size, for k = 1, 2 ... until the verb is through before it comes to that. Every run has to end with
status 0 and what an undisturbed run writes, or with status 1, one line and no file left; never by a signal. A share is
how much of the file stays; of several, k takes one after the other, and with --each every one.
"""
import argparse
import collections
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DIGITS = HERE.parent.parent / "examples" / "digits"
MOST = 2000  # reads of one file

# verb and arguments; the files that are cut; what is compared after a run that was not stopped
CASES = [
    ("prune --no-calibration m.onnx -o out.onnx --plot out.svg", ["m.onnx"], ["out.onnx"]),
    ("prune --no-calibration x.onnx -o out.onnx --save-permutation out.json", ["x.onnx", "x.data"], ["out.onnx", "out.data"]),
    ("prune --no-calibration y.pack -o out.onnx", ["y.pack"], ["out.onnx", "y.data"]),
    ("permute x.onnx -o out.onnx", ["x.data"], ["out.onnx", "out.data"]),
    ("check m.onnx", ["m.onnx"], []),
    ("check x.onnx --against m.onnx --json out.json", ["x.data", "m.onnx"], []),
    ("check m.pack", ["m.pack"], []),
    ("infer m.onnx --input image=a.npy -o out", ["m.onnx", "a.npy"], ["out/scores.npy"]),
    ("infer x.onnx --input image=a.npy -o out", ["x.onnx", "x.data"], ["out/scores.npy"]),
    ("infer y.pack --input image=a.npy -o out --engine plain", ["y.pack"], ["out/scores.npy"]),
    ("eval m.onnx --data data", ["m.onnx", "data/digits.csv.gz"], []),
    ("eval x.onnx --data data --json out.json", ["x.data"], []),
    ("eval y.pack --data data", ["y.pack"], []),
    ("bench x.onnx --runs 1 --threads 1 --plot out.svg --input-shape image=1x1x8x8", ["x.onnx", "x.data"], []),
    ("pack m.onnx -o out.pack", ["m.onnx"], ["out.pack"]),
    ("pack x.onnx -o out.pack", ["x.onnx", "x.data"], ["out.pack"]),
    ("unpack m.pack -o out.onnx", ["m.pack"], ["out.onnx"]),
    ("unpack y.pack -o out.onnx", ["y.pack"], ["out.onnx", "y.data"]),
    ("plot x.onnx -o out.svg", ["x.onnx", "x.data"], ["out.svg"]),
    ("inspect x.onnx --json out.json", ["x.onnx", "x.data"], []),
    ("finetune x.onnx --data data -o out.onnx --steps 2 --batch-size 16 --threads 1", ["x.data"], ["out.onnx"]),
    ("finetune m.pack --data data -o out.onnx --steps 2 --batch-size 16 --threads 1", ["m.pack"], ["out.onnx"]),
]


def array(path):
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
    head += b" " * (117 - len(head)) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<64f", *range(64)))


def make_inputs(lacuna, folder):
    """m: a pruned network in a file; x: the same with external data; m.pack, y.pack: both as packs."""
    folder.mkdir()

    def run(*words):
        subprocess.run([str(word) for word in words], cwd=folder, check=True, capture_output=True)

    run(lacuna, "prune", "--no-calibration", "-q", DIGITS / "digits.onnx", "-o", "m.onnx")
    for name in "xy":
        run(sys.executable, HERE / "external.py", "m.onnx", f"{name}.onnx", f"{name}.data")
    for name in "my":
        run(lacuna, "pack", "-q", f"{name}.onnx", "-o", f"{name}.pack")
    for name in ("y.onnx", "y.data"):
        (folder / name).unlink()
    (folder / "data").mkdir()
    shutil.copy(DIGITS / "digits.csv.gz", folder / "data")
    array(folder / "a.npy")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Cutter:
    def __init__(self, args, base):
        self.args, self.base, self.inputs = args, base, base / "inputs"
        self.ends, self.wrong = collections.Counter(), []
        make_inputs(args.lacuna, self.inputs)

    def run(self, command, cut=None):
        """(status, standard error, contents) of a run in a folder of its own, where files go to a folder of its own, too."""
        folder = self.base / "run"
        shutil.copytree(self.inputs, folder)
        (folder / "tmp").mkdir()
        env = dict(os.environ, LC_ALL="C.UTF-8", TMPDIR=str(folder / "tmp"))
        if cut:
            env.update(LD_PRELOAD=str(self.args.faults), LAC_CUT=cut)
        done = subprocess.run([str(self.args.lacuna), *command.split(), "-q"], cwd=folder, env=env, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        left = contents(folder)
        folders = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()} - {"data", "tmp"}
        shutil.rmtree(folder)
        return done.returncode, done.stderr.decode(errors="replace"), left, folders

    def judge(self, result, name, given, wanted):
        status, stderr, left, folders = result
        if status < 0:
            return f"ended by signal {-status}"
        if status == 0:
            other = [file for file in wanted if left.get(file) != wanted[file]]
            return f"done, but {other[0]} is not what it was" if other else None
        if status != 1:
            return f"status {status}: {stderr}"
        if len(stderr.splitlines()) != 1:
            return f"not one line: {stderr!r}"
        new = sorted(file for file in left if file not in given) + sorted(folders)
        changed = [file for file in given if file != name and left.get(file) != given[file]]
        return f"{new} left" if new else f"{changed} changed" if changed else None

    @staticmethod
    def is_tried(at):
        """Where tests are light: the first three reads, then one of five (of each share).""" 
        return os.environ.get("LAC_TESTS") != "light" or at <= 3 or at % 5 == 0

    def case(self, command, names, outputs):
        status, stderr, left, _ = self.run(command)
        if status:
            raise SystemExit(f"{command}: {stderr}")
        wanted, given = {file: left[file] for file in outputs}, contents(self.inputs)
        for name in names:
            for at in filter(self.is_tried, range(1, MOST)):
                shares = self.args.shares if self.args.each else [self.args.shares[at % len(self.args.shares)]]
                results = [(share, self.run(command, f"@{at}:{share}:{name}")) for share in shares]
                for share, result in results:
                    problem = self.judge(result, name, given, wanted)
                    self.ends["a signal" if result[0] < 0 else f"status {result[0]}"] += 1
                    if problem:
                        self.wrong.append(f"{command}: {name} cut to {share} after read {at}: {problem}")
                if all(result[2].get(name) == given[name] for _, result in results):
                    break
            else:
                raise SystemExit(f"{command}: {name} is read without end")
            print(f"{command}: {name}: tried to read {at}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--faults", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--only", default="", help="cases with this word")
    parser.add_argument("--shares", type=lambda text: [float(share) for share in text.split(",")], default=[0, .5, .99])
    parser.add_argument("--each", action="store_true", help="every share at every read")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        cutter = Cutter(args, pathlib.Path(base))
        for command, names, outputs in CASES:
            if args.only in command:
                cutter.case(command, names, outputs)
    print(*cutter.wrong, sep="\n")
    print(", ".join(f"{n} ended with {end}" for end, n in sorted(cutter.ends.items())), f"; {len(cutter.wrong)} wrong")
    return 1 if cutter.wrong or not cutter.ends else 0


if __name__ == "__main__":
    sys.exit(main())
