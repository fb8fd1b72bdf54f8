# SPDX-License-Identifier: Apache-2.0
"""The command `lacuna` of the wheel: this process becomes the program that is packed in it. `lacuna prune FOLDER -o FOLDER` of a folder
of Hugging Face needs the folder's module, and so Python: it calls lacuna.prune."""
import os
import sys


def main():
    """Runs the command with this process's arguments; does not return."""
    words = sys.argv[1:]
    if words[:1] == ["prune"] and any(os.path.isfile(os.path.join(word, "config.json")) for word in words[1:]):
        sys.exit(_prune_folder(words[1:]))
    path = os.path.join(os.path.dirname(__file__), "bin", "lacuna")
    os.execv(path, ["lacuna", *sys.argv[1:]])


def keywords_of(words, kinds):
    """(arguments, keywords) of a command line, by the annotations of the function; what it has not is refused."""
    arguments, given, at = [], {}, 0
    while at < len(words):
        word, at = words[at], at + 1
        if not word.startswith("-") or word == "-":
            arguments.append(word)
            continue
        name, equals, value = ("--output" if word == "-o" else word)[2:].partition("=")
        name, negated = name.replace("-", "_"), False
        if name not in kinds and name.startswith("no_"):
            name, negated = name[3:], True
        if name not in kinds or negated and not kinds[name].startswith("bool"):
            raise ValueError(f"{word}: there is no such option of a folder")
        if kinds[name].startswith("bool"):
            given[name] = not negated
            continue
        if not equals:
            if at == len(words):
                raise ValueError(f"{word}: its value is missing")
            value, at = words[at], at + 1
        number = float if kinds[name].startswith("float") else int if kinds[name] == "int | None" else str
        given[name] = [*given.get(name, []), value] if kinds[name].startswith("Sequence[str] |") else number(value)
    return arguments, given


def _prune_folder(words):
    """The exit status: 0, 1 failed, 2 misuse."""
    from . import Error, prune  # pylint: disable=import-outside-toplevel
    try:
        (path,), given = keywords_of(words, prune.__annotations__)
    except ValueError as error:
        print(f"lacuna: {error}", file=sys.stderr)
        return 2
    try:
        print(prune(path, **given))
    except Error as error:
        print(f"lacuna: {error}", file=sys.stderr)
        return 1
    return 0
