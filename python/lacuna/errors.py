# SPDX-License-Identifier: Apache-2.0
"""Failures of the library as exceptions: one class, and one more for each kind that Python has an exception of its own for."""


class Error(Exception):
    """A failure of the library.

    text    what was found and what was wanted, one line
    status  the kind: "BAD_SHAPE", "NOT_FOUND" ..., as docs/reference/messages.md lists them
    hint    the cure's name: "MAX_MEMORY"; "NONE" where nothing is to be said
    cure    the cure in words: "max_memory=SIZE allows more"
    """

    def __init__(self, text, status="BAD_ARGUMENT", hint="NONE", cure=""):
        super().__init__(f"{text} ({cure})" if cure else text)
        self.text, self.status, self.hint, self.cure = text, status, hint, cure

    def __reduce__(self):
        return type(self), (self.text, self.status, self.hint, self.cure)


class ValueFailed(Error, ValueError):
    """A value, a shape or a file's content is not what is wanted."""


class MissingFailed(Error, LookupError):
    """A file, a node or a name is not there."""


class FileFailed(Error, OSError):
    """Reading or writing failed."""


class ExistsFailed(Error, FileExistsError):
    """An output exists already."""


class MemoryFailed(Error, MemoryError):
    """More memory is needed than there is, or than is allowed."""


class UnsupportedFailed(Error, NotImplementedError):
    """This build, processor or engine cannot do it."""


CLASSES = {"BAD_ARGUMENT": ValueFailed, "BAD_SHAPE": ValueFailed, "BAD_VALUE": ValueFailed, "BAD_FILE": ValueFailed,
           "NOT_FOUND": MissingFailed, "IO": FileFailed, "EXISTS": ExistsFailed, "NO_MEMORY": MemoryFailed,
           "MEMORY_LIMIT": MemoryFailed, "UNSUPPORTED": UnsupportedFailed}


def failure(text, status="BAD_ARGUMENT", hint="NONE", cure=""):
    """The exception of a status."""
    return CLASSES.get(status, Error)(text, status, hint, cure)
