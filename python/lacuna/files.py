# SPDX-License-Identifier: Apache-2.0
"""Texts of the library, and files of them."""
import contextlib
import os

from . import arrays
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


@contextlib.contextmanager
def arrays_on_disk(given):
    """{name: path of a .npy file} of {name: array or path}; files of arrays are there within the block."""
    import tempfile  # pylint: disable=import-outside-toplevel # with them `import lacuna` would be slow

    import numpy  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
        paths = {}
        for at, (name, value) in enumerate(given.items()):
            paths[name] = value
            if not isinstance(value, (str, os.PathLike)):
                paths[name] = os.path.join(folder, f"{at}.npy")
                numpy.save(paths[name], arrays.as_numpy(value))
        yield paths
