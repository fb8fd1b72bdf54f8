#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""option_fields.py INCLUDE -o FILE: a line OPTION_FIELD(struct, field) for every field of every options struct of the public
headers, for tests/unit/api_option_fields.c, which nobody then has to tell of a new one."""
import argparse
import pathlib
import re

STRUCT = re.compile(r"^typedef struct (lac_\w*options|lac_calibration|lac_quantization) \{\n(.*?)^\} \1;", re.M | re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
RUN = "lac_run_options"  # is part of other structs, in which its fields are walked


def names(body):
    """(type, name) of one struct's fields."""
    for declaration in COMMENT.sub("", body).split(";"):
        text = " ".join(declaration.split())
        function = re.search(r"\(\*(\w+)\)", text)
        if function:
            yield "", function[1]
            continue
        for part in text.split(",") if text else ():
            yield text.split()[0], re.sub(r"\[.*", "", part.split()[-1]).lstrip("*")


def fields(body, run):
    for kind, name in names(body):
        if kind != RUN:
            yield name
        else:
            yield from (f"{name}.{inner}" for _, inner in names(run) if not inner.startswith("reserved"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("-o", required=True, type=pathlib.Path)
    args = parser.parse_args()
    structs = [found for path in sorted(args.include.glob("lacuna/*.h")) for found in STRUCT.findall(path.read_text())]
    run = next(body for name, body in structs if name == RUN)
    lines = [f"OPTION_FIELD({name}, {field})\n" for name, body in structs if name != RUN for field in fields(body, run)]
    args.o.write_text("".join(lines))


main()
