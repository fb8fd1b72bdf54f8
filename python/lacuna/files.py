# SPDX-License-Identifier: Apache-2.0
"""Texts of the library, and files of them."""
import contextlib
import os

from .errors import failure
from .library import call, ffi, lib, text


def write_text(path, content, force):
    """Writes a text whole or not at all."""
    path = os.fspath(path)
    if os.path.lexists(path) and not force:
        raise failure(f"{path}: it exists already", "EXISTS", "FORCE", "force=True replaces it")
    unfinished = f"{path}.{os.getpid()}.tmp"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(unfinished, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)


def json_text(function, *arguments):
    """The text of one of the library's JSON functions."""
    made = ffi.new("char **")
    call(function, *arguments, made)
    try:
        return text(made[0])
    finally:
        lib.lac_text_free(made[0])
