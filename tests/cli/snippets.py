#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""snippets.py --cc CC: each block of C in docs compiles against the public headers, after declarations of what it takes for
granted; "..." stands for a reader's own code. What docs/how-to shows is a part of the example program (documents.py).
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ["stdio.h", "stdlib.h", *sorted(f"lacuna/{path.name}" for path in TOP.glob("include/lacuna/*.h"))]
# What a reader has before a block: a name is declared unless the block does so itself.
GIVEN = {"err": "lac_error err = {0}", "model": "lac_model *model = NULL", "report": "lac_report *report = NULL",
         "options": "lac_options options = lac_options_default()", "pruning": "lac_options pruning = lac_options_default()",
         "engine": "lac_engine *engine = NULL", "inputs": "const void *const *inputs = NULL", "outputs": "void *const *outputs = NULL",
         "group": "lac_process_group *group = NULL", "mask": "lac_mask *mask = NULL", "result": "lac_train_result result = LAC_SIZED(lac_train_result)",
         "session": "lac_session *session = NULL", "pixels": "float *pixels = NULL", "n": "int64_t n = 1", "size": "size_t size = 0",
         "labels": "int64_t *labels = NULL", "store": "FILE *store = NULL",
         "read_row": "lac_status (*read_row)(void *, const char *, int64_t, void *, lac_error *) = NULL"}


def blocks():
    """[(page, line, text)]"""
    for page in sorted(set(TOP.glob("docs/**/*.md")) - set(TOP.glob("docs/how-to/*.md"))):
        text = page.read_text()
        for found in re.finditer(r"^```c\n(.*?)^```", text, re.M | re.S):
            yield page.relative_to(TOP), text.count("\n", 0, found.start()) + 2, found[1]


def program(block):
    includes = "".join(f"#include <{header}>\n" for header in HEADERS)
    block = re.sub(r"^\s*\.\.\.$", "", block, flags=re.M)
    if re.match(r"static |#include", block):
        return includes + block
    given = [f"  {text};\n" for name, text in GIVEN.items()
             if re.search(rf"\b{name}\b", block) and not re.search(rf"^lac_\w+ \*?{name}\b", block, re.M)]
    return f"{includes}void snippet(void);\nvoid snippet(void) {{\n{''.join(given)}  {{\n{block}  }}\n  goto out;\nout:;\n}}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", required=True)
    compiler = parser.parse_args().cc
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for page, line, block in blocks():
            source = pathlib.Path(folder) / "snippet.c"
            source.write_text(program(block))
            done = subprocess.run([compiler, "-std=c17", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused", "-I", TOP / "include", source],
                                  capture_output=True, text=True, check=False)
            passed, failed = passed + (done.returncode == 0), failed + (done.returncode != 0)
            if done.returncode:
                print(f"{page}:{line}\n{done.stderr}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
