#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden tests of the command: tests/cli/golden/*.txt are transcripts.

    # a sentence says what the test shows
    $ shell commands, run in a folder of the test's own; lacuna is the program under test
    a line of standard output
    ! a line of standard error
    = 2                                 (the status, where it is not 0)

A test goes from its # line to the next one. $SRC is the repository. In the output the repository's path becomes $SRC,
and what differs from run to run (seconds) becomes S (TIME, N). --update writes what the program does now; review the diff.
"""
import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
COUNT = re.compile(r"^(\d+/\d+) layers? .*(?:is|are) pruned", re.M)
SHARED = {"--pattern": 1, "--mask": 1, "--include": 1, "--exclude": 1, "--target": 1, "--input-shape": 1, "--assume": 1,
          "--all-sizes": 0, "--recurrent": 0, "--padding": 0, "--lenient": 0}  # options of prune that check has, too, and their values
VARIABLE = [(re.compile(r"\b\d+\.\d+ s\b"), "S s"), (re.compile(r'(_seconds": )[0-9.e+-]+'), r"\1S"),
            (re.compile(r"\bin \d+:\d\d:\d\d\b"), "in TIME"), (re.compile(r"(on average )[0-9.]+"), r"\1N"),
            (re.compile(r"\b[0-9.]+ images a second"), "N images a second"),
            (re.compile(r"(differ by at most )\S+( of )"), r"\1E\2"),
            # what depends on the processor: predictions by its figures
            (re.compile(r"^predicted with .*times as fast.*$", re.M), "predicted TIMES"),
            (re.compile(r"^\d+ of \d+ pruned layers? will run as sparse.*$", re.M), "LAYERS will run as sparse")]


def split_tests(text):
    """[lines] of each test; what is before the first # line is the file's own comment."""
    tests = []
    for line in text.splitlines():
        if line.startswith("# "):
            tests.append([line])
        elif tests:
            tests[-1].append(line)
    return tests


# Where standard error is no terminal, progress is a line every few seconds: on a slow machine only.
PROGRESS = re.compile(r"^[a-z ]+: \d+%.*$")


def tidy(text):
    text = text.replace(str(TOP), "$SRC")
    for pattern, by in VARIABLE:
        text = pattern.sub(by, text)
    return [line for line in text.splitlines() if not PROGRESS.match(line)]


def run_test(lines, lacuna):
    """The transcript as the program makes it now."""
    env = dict(os.environ, SRC=str(TOP), PATH=f"{lacuna.parent}:{os.environ['PATH']}", LC_ALL="C.UTF-8", TERM="dumb")
    result = [lines[0]]
    with tempfile.TemporaryDirectory() as folder:
        for command in (line[2:] for line in lines if line.startswith("$ ")):
            done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, timeout=300)
            difference = counts_differ(command, done.stdout.decode(errors="replace"), folder, env)
            result.append("$ " + command)
            result += tidy(done.stdout.decode(errors="replace"))
            result += [f"! {line}".rstrip() for line in tidy(done.stderr.decode(errors="replace"))]
            if done.returncode:
                result.append(f"= {done.returncode}")
            if difference:
                result.append(difference)
    return result + [""]


def counts_differ(command, stdout, folder, env):
    """What prune said of the file that it wrote, check has to say: the difference, or None."""
    calls = re.findall(r"lacuna prune ([^|;&>$`]*)", command)
    said = COUNT.search(stdout)
    if len(calls) != 1 or not said or "-o " not in calls[0]:
        return None
    words = shlex.split(calls[0])
    output = words[words.index("-o") + 1]
    if not output.endswith(".onnx") or not (pathlib.Path(folder) / output).exists():
        return None
    options = []
    for at, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name in SHARED:
            options += words[at:at + 1 + (0 if equals else SHARED[name])]
    done = subprocess.run(["lacuna", "check", output, *options], cwd=folder, env=env, capture_output=True, timeout=300)
    seen = COUNT.search(done.stdout.decode(errors="replace"))
    if seen and seen[1] == said[1]:
        return None
    return f"prune says {said[1]} layers are pruned, check says {seen[1] if seen else done.stderr.decode()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME", help="the transcripts of golden/NAME.txt")
    args = parser.parse_args()
    passed = failed = 0
    paths = [path for path in sorted(HERE.glob("golden/*.txt")) if args.only in ("", path.stem)]
    if not paths:
        parser.error(f"--only {args.only}: found no golden/{args.only}.txt")
    for path in paths:
        text = path.read_text()
        head = text[:text.index("\n# ") + 1] if not text.startswith("# ") else ""
        want = split_tests(text)
        got = [run_test(lines, args.lacuna.resolve()) for lines in want]
        if args.update:
            path.write_text(head + "\n".join(line for test in got for line in test))
            print(f"{path.name}: {len(got)} tests written")
            continue
        for a, b in zip(want, got):
            a, b = [[line.rstrip() for line in x if line.strip()] for x in (a, b)]
            if a == b:
                passed += 1
                continue
            failed += 1
            print("\n".join(difflib.unified_diff(a, b, f"{path.name}: want", f"{path.name}: got", lineterm="", n=9)))
    if not args.update:
        print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
