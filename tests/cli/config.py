#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --print-config writes, --config reads as the same run: every option of every verb; and files of no sense end with a
message, however they are damaged."""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tools"))
import command_table  # noqa: E402  pylint: disable=wrong-import-position

# A value of each kind, that no YAML may take for something else.
VALUES = {"TEXT": "yes", "FILE": "a b: \"c\" #d\\", "LIST": "x=y, z", "NUMBER": "18446744073709551615", "PLACES": "7",
          "SECONDS": "0.1", "REAL": "1e-300", "SIZE": "3G"}
OF_LINE = {"config", "print-config", "help", "like"}  # how the command line is read
TRAINING = {"boundaries": "1,2.5", "mean": "1,2,3", "std": "1,2,3", "schedule": "piecewise", "recipe": "cifar", "arch": "digits",
            "pattern": "1:4", "mask": "1d"}
LIMITED = {"SIZE": "3M", "NUMBER": "7", "REAL": "0.25", "SECONDS": "2.5"}  # what trainings check at once
RESULTS = []


def expect(sentence, held, detail=""):
    RESULTS.append(bool(held))
    if not held:
        print(f"{sentence}: {detail}")


def words_of(option, trains):
    """The words of the command line for this option, with a value."""
    name, kind = option["name"], option["kind"]
    if trains and name == "augment":  # a policy changes images further
        return ["--augment"]
    if kind in ("SWITCH", "FLAG", "COUNT"):
        return [f"--no-{name}" if kind == "SWITCH" and option["initial"] == "yes" else f"--{name}"] * (3 if kind == "COUNT" else 1)
    value = option["argument"].split("|")[0] if kind == "CHOICE" else VALUES[kind]
    if trains:
        value = TRAINING.get(name, LIMITED.get(kind, value))
    return [f"--{name}={value}"] * (2 if kind == "LIST" else 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lacuna", required=True)
    lacuna = pathlib.Path(parser.parse_args().lacuna).resolve()

    def run(*words):
        return subprocess.run([lacuna, *words], capture_output=True, text=True, cwd=folder)

    with tempfile.TemporaryDirectory() as folder:
        file, other = pathlib.Path(folder, "c.yaml"), pathlib.Path(folder, "c.json")
        verbs = command_table.verbs()
        options = command_table.options([verb["id"] for verb in verbs])
        for at, verb in enumerate(verbs):
            name, own = verb["id"], [o for _, o in options if o["verbs"] & 1 << at and o["help"] and o["name"] not in OF_LINE]
            if name in ("run", "archs", "recipes", "help", "version"):
                continue
            trains = name in ("train", "finetune")
            only_one = {"steps", "eval-steps", "keep-masks", "resnet-size", "resnext", "eval"} if trains else set()
            words = [word for o in own if o["name"] not in only_one for word in words_of(o, trains)]
            operands = ["a", "- b"][:len(verb["operands"].split())]
            first = run(name, *words, "--print-config", "--", *operands)
            expect(f"{name} writes all its options", first.returncode == 0, first.stderr)
            missing = [o["name"] for o in own if f"{o['name']}:" not in first.stdout]
            expect(f"{name}: each option is there", not missing, missing)
            left = [line for line in first.stdout.split("# The settings")[0].splitlines()
                    if line.startswith("# ") and ":" in line and line[2:].split(":")[0] not in only_one
                    and not line.startswith("# lacuna")]
            expect(f"{name}: what was given is no comment", not left, left)
            file.write_text(first.stdout)
            second = run(name, "--config", "c.yaml", "--print-config")
            expect(f"{name} reads what it writes", first.stdout == second.stdout, second.stderr or second.stdout)
            defaults = run(name, "--print-config")
            file.write_text(defaults.stdout)
            again = run(name, "--config", "c.yaml", "--print-config")
            expect(f"{name}: defaults are given by nobody", defaults.stdout == again.stdout, again.stderr)

        # The same in JSON.
        values = {"operands": ["net.onnx"], "output": "a\"b\\\n", "refine": 0.1, "max_drop": 1e-7, "threads": 3, "verbose": 2,
                  "assume": ["p=same", "q=same"], "verify": False, "no-calibration": True, "pattern": None}
        other.write_text(json.dumps(values, indent=1))
        read = run("prune", "--config", "c.json", "--print-config")
        file.write_text(read.stdout)
        expect("JSON is read", all(line in read.stdout.splitlines() for line in
               ('output: "a\\"b\\\\\\x0a"', "refine: 0.1", "max-drop: 1e-07", "no-calibration: true", "verbose: 2",
                "verify: false", '# pattern: "2:4"')), read.stdout + read.stderr)
        expect("and YAML says the same", run("prune", "--config", "c.yaml", "--print-config").stdout == read.stdout)

        # Damage: a message of one line, or a file that still means something.
        random.seed(1)
        for source in (file, other):
            whole = source.read_bytes()
            for _ in range(10):
                damaged = bytearray(whole)
                for _ in range(random.randint(1, 4)):
                    place = random.randrange(len(damaged))
                    damaged[place:place + random.randint(0, 3)] = random.choice(
                        [b"", b"\n", b"[", b"{", b"&a ", b"*a", b"\"", b": ", b"- ", b"\xff", b"\t", b"! ", b"%", b"? ", b"|\n"])
                source.write_bytes(damaged)
                done = subprocess.run([lacuna, "prune", "--config", source.name, "--print-config"], capture_output=True, cwd=folder)
                lines = done.stderr.count(b"\n")
                expect("a damaged file ends with one line, or is read", done.returncode in (0, 1, 2) and
                       lines == (done.returncode != 0), (done, bytes(damaged)))
            source.write_bytes(whole)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


sys.exit(main())
