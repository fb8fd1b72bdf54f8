#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""option_fields.py INCLUDE -o FILE: a line OPTION_FIELD(struct, field) for every field of every options struct of the public
headers, for tests/unit/api_option_fields.c, which nobody then has to tell of a new one."""
import argparse
import pathlib
import re

STRUCT = re.compile(r"^typedef struct (lac_\w*options|lac_calibration|lac_quantization) \{\n(.*?)^\} \1;", re.M | re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
NESTED = re.compile(r"^lac_(train_)?options\s")


def fields(body):
    """Names of one struct's fields; structs inside are of a kind that is walked for itself."""
    for declaration in COMMENT.sub("", body).split(";"):
        text = " ".join(declaration.split())
        if text and not NESTED.match(text):
            for part in text.split(","):
                yield re.sub(r"\[.*", "", part.split()[-1]).lstrip("*")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("-o", required=True, type=pathlib.Path)
    args = parser.parse_args()
    lines = [f"OPTION_FIELD({name}, {field})\n" for path in sorted(args.include.glob("lacuna/*.h"))
             for name, body in STRUCT.findall(path.read_text()) for field in fields(body)]
    args.o.write_text("".join(lines))


main()
