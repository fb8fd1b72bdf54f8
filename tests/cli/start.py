#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs README.md and docs/start.md as a reader does: each command block, in order, in a folder of its own.

A block of commands is indented by four spaces. A fenced block after it is what its last commands print: each of its lines
must be printed, with any numbers; a line "..." stands for others. lacuna-demo is examples/digits here (the transcript demo
runs `lacuna demo`), net.onnx the network in it. What make is asked for must be in the Makefile.

The figures of README.md are those of docs/explain: rows of its table, and what calibration keeps.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/start.md"]
BY_PROCESSOR = "lacuna bench "  # what it prints depends on the kernels that the processor has


def blocks(text):
    """("commands" or "output", [lines]) in the page's order."""
    result, fenced, last = [], False, None
    text = re.sub(r"^```python\n.*?^```\n", "", text, flags=re.M | re.S)  # python/tests/test_snippets.py runs it
    for line in text.splitlines():
        kind = None
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            kind = "output"
        elif line.startswith("    "):
            kind = "commands"
        if kind and kind == last:
            result[-1][1].append(line)
        elif kind:
            result.append((kind, [line]))
        last = kind
    return result


def without_numbers(line):
    return " ".join(re.sub(r"\d[\d.,e+-]*", "N", line).split())


def run(commands, folder, environment):
    """(what they print, what failed)"""
    printed, failed = "", []
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.M))
    for line in "\n".join(commands).replace("\\\n", " ").splitlines():
        words = line.split("#")[0].split()
        if words[0] == "make":
            failed += [f"make has no {word}" for word in words[1:] if "=" not in word and word not in targets]
        elif words[0] != "export":
            done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
            printed += done.stdout + done.stderr
            failed += [f"{line.strip()}: {done.stderr}"] if done.returncode else []
    return printed, failed


def check(page, lacuna):
    """(passed, [what failed])"""
    passed, wrong, printed, commands = 0, [], "", []
    environment = dict(os.environ, PATH=f"{lacuna.parent}:{os.environ['PATH']}", LC_ALL="C.UTF-8", TERM="dumb")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(TOP / "examples/digits", folder / "lacuna-demo")
        shutil.copy(TOP / "examples/digits/digits.onnx", folder / "net.onnx")
        for kind, lines in blocks((TOP / page).read_text()):
            if kind == "commands":
                commands = lines
                printed, failed = run(lines, folder, environment)
            elif lines[0].startswith("{") or any(BY_PROCESSOR in command for command in commands):
                continue
            else:
                shown = {without_numbers(line) for line in printed.splitlines()}
                failed = [f"not printed: {line}" for line in lines if line != "..." and without_numbers(line) not in shown]
            passed, wrong = passed + (not failed), wrong + [f"{page}: {text}" for text in failed]
    assert passed, page
    return passed, wrong


def check_figures():
    """Figures of README.md that the page which explains them does not have."""
    readme = (TOP / "README.md").read_text()
    speed, accuracy = ((TOP / f"docs/explain/{name}.md").read_text() for name in ("speed", "without-training"))
    rows = re.findall(r"^\| .* × \|.*$", readme, re.M)
    kept = re.findall(r"^\| .* \| (\d\d\.\d\d) % \|$", readme, re.M)
    accuracy += (TOP / "docs/how-to/prune-without-data.md").read_text()
    assert rows and len(kept) == 3
    wrong = [f"README.md: no row of docs/explain/speed.md: {row}" for row in rows if row not in speed]
    return wrong + [f"README.md: {top1} is in no page that explains it" for top1 in kept if top1 not in accuracy]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    lacuna = parser.parse_args().lacuna.resolve()
    wrong = check_figures()
    passed = int(not wrong)
    for page in PAGES:
        good, bad = check(page, lacuna)
        passed, wrong = passed + good, wrong + bad
    for text in wrong:
        print(text)
    print(f"{passed} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
