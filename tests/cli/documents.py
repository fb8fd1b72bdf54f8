#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each line of ours in docs/how-to and docs/reference, in the page's order, on the digits: DATA is their folder, net.onnx the network
trained on them. What would be long or need another network is changed first: the network is --arch digits, one epoch or
two steps, one thread. What a fenced block shows is printed by one of them, with any numbers. And the pages name what there
is: all words of cli/like.def, functions of the library's list; a block of C is a part of the example program. walk.py runs resnet50.md, engine.py write-an-engine.md, launch.py what starts mpirun.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
DIGITS = TOP / "examples/digits"
LENGTH = {"--epochs": "1", "-e": "1", "--num_iter": "1", "-s": "2", "--steps": "2"}
HOW_TO = TOP / "docs/how-to"
SCRIPTS = "from-reference-scripts.md"
ELSEWHERE = ("resnet50.md", "write-an-engine.md", "several-machines.md", "bench.md", "huggingface.md")  # bench.md: a synopsis, and minutes of measuring; huggingface.md: folders of another library
PAGES = [page for page in sorted([*HOW_TO.glob("*.md"), *(TOP / "docs/reference").glob("*.md")]) if page.name not in ELSEWHERE]
OTHER_LIBRARIES = ("onnxruntime.md",)  # its C needs headers of ONNX Runtime, which no package brings
FOLDERS = {"DATA": str(DIGITS), "cifar-10-batches-bin": str(DIGITS)}


def commands(page):
    return [line.strip() for line in page.read_text().splitlines() if line.startswith("    lacuna ")]


def blocks(page):
    """[(language, text)] of the fenced blocks."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S)


def shown(page):
    """Lines of the fenced blocks that name no language."""
    return [line for language, block in blocks(page) if not language for line in block.splitlines()]


def without_numbers(line):
    return " ".join(re.sub(r"\d[\d.,e+-]*", "N", line).split())


def set_length(words):
    """One epoch, two steps."""
    for k, word in enumerate(words):
        name, equal, _ = word.partition("=")
        if name not in LENGTH:
            continue
        if equal:
            words[k] = f"{name}={LENGTH[name]}"
        else:
            words[k + 1] = LENGTH[name]
    return words


def on_digits(line):
    words = shlex.split(line, comments=True)
    for name, folder in FOLDERS.items():
        words = [word.replace(name, folder) for word in words]
    verb = words[1]
    if verb in ("train", "finetune"):
        words = set_length(words)
        timed = any(word.partition("=")[0] in LENGTH for word in words)
        words += [] if timed else ["--epochs", "1"]
        words += ["--arch", "digits"] if verb == "train" else []
    if verb in ("train", "finetune", "prune", "bench"):
        words += ["--threads", "1"]
    if verb == "bench" and "--time" not in words:
        words += ["--time", "1"]
    return words


def run(page, lacuna):
    """(passed, failed)"""
    passed, failed, printed = 0, 0, ""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(DIGITS / "digits.onnx", pathlib.Path(folder) / "net.onnx")
        for line in commands(page):
            words = [str(lacuna)] + on_digits(line)[1:]
            done = subprocess.run(words, cwd=folder, env={**os.environ, "XDG_CACHE_HOME": folder}, capture_output=True, text=True,
                                  timeout=300)
            good = done.returncode == 0 or (done.returncode == 1 and "--target" in words and words[1] == "check")
            passed, failed = passed + good, failed + (not good)
            printed += done.stdout + done.stderr
            if not good:
                print(f"{page.name}: {line}\n  as {shlex.join(words)}\n  {done.stderr}")
    there = {without_numbers(line) for line in printed.splitlines()}
    for line in shown(page) if page.parent == HOW_TO else []:
        if without_numbers(line) not in there:
            failed += 1
            print(f"{page.name}: no command prints {line}")
    return passed, failed


def check_names():
    """Names that a document lacks, or has and no one else."""
    wrong = []
    scripts = (HOW_TO / SCRIPTS).read_text()
    for words in re.findall(r'^LAC_LIKE\(\w+, "([^"]+)"', (TOP / "cli/like.def").read_text(), re.M):
        wrong += [f"{word} of cli/like.def is not in it" for word in words.split("|") if f"`{word}`" not in scripts]
    known = set((TOP / "src/lacuna.symbols").read_text().split())
    known |= set(re.findall(r"\blac_\w+", "".join(path.read_text() for path in (TOP / "include/lacuna").glob("*.h"))))
    for page in PAGES:
        wrong += [f"{page.name}: {name} is unknown" for name in re.findall(r"`(lac_\w+)", page.read_text()) if name not in known]
    example = "".join(path.read_text() for path in sorted((TOP / "examples").glob("*.c")))
    for page in PAGES:
        if page.name in OTHER_LIBRARIES:
            continue
        wrong += [f"{page.name}: not in examples/*.c: {block}" for language, block in blocks(page)
                  if language == "c" and page.parent == HOW_TO and block not in example]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    lacuna = parser.parse_args().lacuna.resolve()
    os.environ.update(TERM="dumb", LC_ALL="C.UTF-8")
    passed = failed = 0
    for page in PAGES:
        good, bad = run(page, lacuna)
        passed, failed = passed + good, failed + bad
    wrong = check_names()
    for text in wrong:
        print(text)
    print(f"{passed + (not wrong)} passed, {failed + bool(wrong)} failed")
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
