#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of verbs and options, and everything that is made from them or speaks of them, say the same."""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
RESULTS = []


def expect(sentence, held, detail=""):
    RESULTS.append(bool(held))
    if not held:
        print(f"{sentence}: {detail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lacuna", required=True)
    lacuna = parser.parse_args().lacuna

    def output(*words):
        return subprocess.run([lacuna, *words], capture_output=True, text=True, check=True).stdout

    verbs = re.findall(r"^LAC_VERB\((\w+),", (TOP / "cli/verbs.def").read_text(), re.M)
    ids = re.findall(r"^LAC_OPTION\(\w+, (\w+),", (TOP / "cli/options.def").read_text(), re.M)
    known = {name.replace("_", "-") for name in ids}
    examples = re.findall(r'^LAC_EXAMPLE\((\w+), "(.*?)",', (TOP / "cli/verbs.def").read_text(), re.M)
    titles = re.findall(r'^LAC_GROUP\("(.*)"\)', (TOP / "cli/options.def").read_text(), re.M)
    reference = (TOP / "docs/reference/options.md").read_text()
    everything = output("help")
    for verb in verbs:
        page, manual = output("help", verb), output("help", "--man", verb)
        expect(f"help lists {verb}", re.search(rf"^  {verb}\b", everything, re.M) is not None)
        expect(f"{verb} --help is help {verb}", output(verb, "--help") == page)
        expect(f"the reference has {verb}", f"\n## {verb}\n" in reference)
        shown = set(re.findall(r"^  (?:-\w, |    )--(?:\[no-\])?([a-z0-9-]+)", page, re.M))
        expect(f"{verb} shows options of the table", shown <= known, shown - known)
        in_manual = {name.replace("\\-", "-")
                     for name in re.findall(r"^(?:\\fB\\-\w\\fR, )?\\fB\\-\\-(?:\\fR\[\\fBno\\-\\fR\]\\fB)?([a-z0-9\\-]+?)\\fR",
                                            manual, re.M)}
        expect(f"{verb}: manual and help have the same options", shown == in_manual, shown ^ in_manual)
        expect(f"{verb}: lines of help fit 80 columns", max(map(len, page.splitlines())) <= 80)
        own = [command for of, command in examples if of == verb]
        expect(f"{verb} has two examples or three", len(own) in (2, 3), own)
        for command in own:
            expect(f"help and manual show {command}", command.split()[1] in page and
                   command.replace("-", "\\-") in manual)
            words = [lacuna, *shlex.split(command)[1:]]
            done = subprocess.run([*words, "--help"], capture_output=True, text=True)
            expect(f"the parser takes {command}", done.returncode == 0, done.stderr)
        headed = re.findall(r"^(\S.*):\n  +-", page, re.M)
        expect(f"{verb}: options stand below titles of the table, each once and in its order",
               headed == [title for title in titles if title in headed] != [], headed)
        expect(f"{verb}: the manual has the same titles", headed == re.findall(r"^\.SS (.*)", manual, re.M))
        strange = re.findall(rf"\b({'|'.join(verbs)}): ", page[page.index(headed[0]):page.index("Examples:")])
        expect(f"{verb}: its options are told in no words of other verbs", not strange, strange)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=manual, capture_output=True, text=True)
            expect(f"{verb}: the manual page is good roff", not done.stderr, done.stderr)
    for shell in ("bash", "zsh", "fish"):
        script = output("help", "--completion", shell)
        expect(f"{shell} completion knows every verb", all(re.search(rf"\b{verb}\b", script) for verb in verbs))
        for value in ("cifar-resnet20", "resnext50_32x4d", "assign+swap", "resnet-lars", "adamw"):
            expect(f"{shell} completion knows the value {value}", value in script)
        if shutil.which(shell):
            done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
            expect(f"{shell} reads its completion script", done.returncode == 0, done.stderr)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


sys.exit(main())
