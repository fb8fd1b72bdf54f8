#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py --to FOLDER [--library FILE] [--command FILE]: the package `lacuna`, whole, in FOLDER/lacuna.

Its modules are copied; what the C sources say is made from them:
    _abi.py    the declarations of include/lacuna, after `cc -E`, for cffi's ABI mode
    _verbs.py  the functions prune, check ... with a keyword for each option of cli/options.def
    _fields.pyi  the fields of reports, for those who check types
    _table.py  the options of each verb, and the cures of errors
"""
import argparse
import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
import command_table  # noqa: E402  pylint: disable=wrong-import-position

TYPES = {"SWITCH": "bool", "FLAG": "bool", "COUNT": "int", "TEXT": "str", "FILE": "str | os.PathLike", "CHOICE": "str", "LIST": "Sequence[str]",
         "NUMBER": "int", "PLACES": "int", "SECONDS": "float", "REAL": "float", "SIZE": "int | str"}
KEYWORD_TYPES = {"calibration": "Data", "input": "Mapping", "data": "Data", "against": "Source", "input_shape": "Mapping | Sequence[str]", "calibration_constant": "Mapping | Sequence[str]",
                 "batch": "int", "pattern": "str | tuple[int, ...]", "boundaries": "Sequence[float] | str", "mean": "Sequence[float] | str", "std": "Sequence[float] | str"}
HEAD = '''# Made by python/generate.py from cli/verbs.def, cli/options.def and cli/hint.c; change these, not this file.
"""The functions of the command's verbs; keywords are its options."""
from __future__ import annotations

from . import verbs

TYPE_CHECKING = False  # the module typing is for those who check types
if TYPE_CHECKING:
    import os
    from typing import Literal, Mapping, Sequence

    from .report import Record, Report
    from .types import Data, Progress, Source
'''
TABLE = '''# Made by python/generate.py from cli/verbs.def, cli/options.def and cli/hint.c; change these, not this file.
"""What helps after a failure, by lac_hint, the options of each verb, and the library's name."""
HINTS = {hints}
OPTIONS = {options}
LIBRARY = {library!r}
'''


def declarations(compiler):
    """The public headers after a preprocessor, without the C library's, whose types cffi knows."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdbool.h", "stddef.h", "stdint.h"):
            (pathlib.Path(empty) / name).touch()
        include = HERE.parent / "include"
        return subprocess.run([compiler, "-E", "-P", "-nostdinc", "-DLAC_DECLARATIONS_ONLY", f"-I{include}", f"-I{empty}",
                               include / "lacuna/lacuna.h"], check=True, capture_output=True, text=True).stdout


def field_type(kind, name, names):
    """What Python has of a field of a C type, by the rules of report.py."""
    if kind.kind == "enum":
        return "str"
    if kind.kind == "struct":
        return kind.cname.removeprefix("struct ")
    if kind.kind == "array":
        return "str" if kind.item.cname == "char" else "tuple[int, ...]"
    if kind.kind == "pointer":
        item = kind.item
        if item.cname == "char":
            return "str | None" if name in ("reason", "cause") else "str"
        counted = f"n_{name}" in names or name in ("permutation", "plan_nodes")
        if item.kind == "primitive":
            return "list[int] | None" if counted else "Any"
        inner = item.item if item.kind == "pointer" else item
        inner = "str" if inner.cname == "char" else inner.cname.removeprefix("struct ") if inner.kind == "struct" and inner.fields else "Any"
        return f"list[{inner}]" if counted or item.kind == "pointer" else f"{inner} | None"
    return {"_Bool": "bool", "float": "float", "double": "float"}.get(kind.cname, "int") if kind.kind == "primitive" else "Any"


def write_fields(path, ffi, root="lac_report"):
    """The fields of a report and of all that it holds, for those who check types."""
    todo, seen, classes = [root], [root], []
    while todo:
        struct = todo.pop(0)
        kind = ffi.typeof(struct)
        names = [name for name, _ in kind.fields]
        counts = {name for name in names if name.startswith("n_") and name[2:] in names}
        rows = [(name, field_type(info.type, name, names)) for name, info in kind.fields if name not in counts | {"size", "reserved"}]
        classes.append(f"class {struct}:\n" + "".join(f"    {name}: {its}\n" for name, its in rows))
        for _, its in rows:
            for found in re.findall(r"lac_\w+", its):
                if found not in seen:
                    seen.append(found)
                    todo.append(found)
    path.write_text("# Made by python/generate.py from include/lacuna; change these, not this file.\nfrom typing import Any\n\n" + "\n".join(classes))


def write_abi(path, compiler):
    import cffi  # pylint: disable=import-outside-toplevel
    ffi = cffi.FFI()
    ffi.cdef(declarations(compiler))
    write_fields(path.parent / "_fields.pyi", ffi)
    ffi.set_source("lacuna._abi", None)
    with contextlib.redirect_stdout(None):
        ffi.emit_python_code(str(path))


def keywords_module():
    spec = importlib.util.spec_from_file_location("keywords", HERE / "lacuna/keywords.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_python(text, ids):
    """A text of the command with keywords for its options: `--no-verify` is verify=False, `--crop N` is crop=N."""
    if "tf2onnx" in text or "lacuna " in text:
        return text

    def keyword(found):
        name = found[2].replace("-", "_")
        if name not in ids:
            return found[0]
        return f"{name}=False" if found[1] else f"{name}={found[4]}" if found[4] else name
    return re.sub(r"--(no-)?([a-z][a-z0-9-]*[a-z0-9])( ([A-Z][A-Z,]*))?(?![\w=])", keyword, text).replace("no-no-", "")


def rows_of(verb, at, table, words):
    """[(group, option, help)] of a verb's options that are keywords."""
    ids = {option["id"] for _, option in table}
    for group, option in table:
        if not option["verbs"] & 1 << at or not option["help"]:
            continue
        helps = option["help"]
        for which, _, its_help in option["words"]:
            helps = its_help if which & 1 << at else helps
        own = words.get(f"{verb}.{option['id']}") or words.get(option["id"])
        yield group, option, own or in_python(helps, ids)


def kind_of(option):
    kind = KEYWORD_TYPES.get(option["id"], TYPES[option["kind"]])
    if option["kind"] == "CHOICE" and "." not in option["argument"]:
        kind = "Literal[" + ", ".join(f'"{word}"' for word in option["argument"].split("|")) + "]"
    return kind + " | None"


def choices_of(option):
    """The words that an option's keyword takes, before its help; an empty text where any value will do."""
    if option["kind"] != "CHOICE" or "." in option["argument"]:
        return ""
    *others, last = (f'"{word}"' for word in option["argument"].split("|"))
    return f"{', '.join(others)} or {last}: " if others else ""


def operand_text(name, keywords):
    """A parameter before the keywords."""
    kind, default, _ = keywords.OPERANDS[name]
    return f"{name}: {kind}" + (f" = {default}" if default else "")


def function_text(name, spec, at, table, keywords):
    verb, operands, returns, about = spec
    operands = operands.split(", ")
    rows = list(rows_of(verb, at, table, keywords.WORDS))
    taken = [row for row in rows if row[1]["id"] not in keywords.ELSEWHERE and row[1]["id"] not in operands]
    summary = next(row for row in command_table.verbs() if row["id"] == verb)["summary"]
    leading = [row for name in ("data", "output") for row in taken if row[1]["id"] == name]
    others = [row for row in taken if row not in leading]
    parameters = [operand_text(name, keywords) for name in operands] + [f"{row[1]['id']}: {kind_of(row[1])} = None" for row in leading]
    parameters += ["*"] + [f"{row[1]['id']}: {kind_of(row[1])} = None" for row in others]
    parameters += ["progress: Progress | None = None"]
    groups = dict.fromkeys(row[0] for row in taken)
    doc = [summary[0].upper() + summary[1:] + ("" if summary.endswith("?") else "."), *([about.rstrip()] if about.strip() else [])]
    doc += [""] if operands else []
    for operand in operands:
        helps = next((row[2] for row in rows if row[1]["id"] == operand), "")
        changed = "; a Model is changed in place." if verb != "compare" else ""
        doc += textwrap.wrap(f"{operand}: {keywords.OPERANDS[operand][2].format(help=helps, changed=changed)}", 110, subsequent_indent="    ")
    for group in groups:
        doc += ["", group + ":"]
        for its_group, option, helps in taken:
            if its_group == group:
                initial = f" ({option['initial']})" if option["initial"] not in (None, "no", "yes") else ""
                initial = {"yes": " (True)", "no": " (False)"}.get(option["initial"], initial)
                initial = "" if option["id"] == "fold" else initial
                doc += textwrap.wrap(f"{option['id']}: {choices_of(option)}{helps}{initial}", 110, initial_indent="    ", subsequent_indent="        ")
    doc += ["", "progress: " + keywords.PROGRESS]
    if returns != "None":
        doc += ["", f"Returns lacuna.{returns}. A keyword that is None is as if it was not given; a failure raises lacuna.Error."]
    body = "\n".join("    " + line if line else "" for line in "\n".join(doc).split("\n")).strip()
    given = ", ".join(f"{row[1]['id']}={row[1]['id']}" for row in taken)
    lines = [f"    {text}," for text in parameters]
    call = textwrap.wrap(f"{', '.join(operands)}, {given}, progress=progress", 100, subsequent_indent=" " * 8, break_long_words=False)
    docstring = body.replace("\\", "\\\\").replace('"""', "'''")
    return (f"\n\ndef {name}(\n" + "\n".join(lines) + f") -> {returns}:\n    \"\"\"{docstring}\n    \"\"\"\n"
            f"    return verbs.{name}({chr(10).join(call)})\n")


def write_verbs(folder):
    keywords, verbs = keywords_module(), [verb["id"] for verb in command_table.verbs()]
    table = command_table.options(verbs)
    ids = {option["id"] for _, option in table}
    hints = {name: in_python(text, ids) for name, text in command_table.words_of_hints().items()}
    options = {verb: sorted(option["id"] for _, option in table if option["verbs"] & 1 << at and option["help"])
               for at, verb in enumerate(verbs)}
    filled = TABLE.format(hints=dictionary(hints), options=dictionary(options), library=library_name())
    (folder / "_table.py").write_text(filled)
    functions = [function_text(name, spec, verbs.index(spec[0]), table, keywords) for name, spec in keywords.FUNCTIONS.items()]
    (folder / "_verbs.py").write_text(HEAD + "".join(functions))


def library_name():
    """The shared library's soname, under which the package and the provider for ONNX Runtime find it."""
    version = (HERE.parent / "include/lacuna/version.h").read_text()
    major, minor = (re.search(rf"define LAC_VERSION_{part} (\d+)", version)[1] for part in ("MAJOR", "MINOR"))
    return f"liblacuna.so.{major}.{minor}"


def dictionary(rows):
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in rows.items()) + "}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, help="liblacuna.so, which the package then loads")
    parser.add_argument("--command", type=pathlib.Path, help="the command `lacuna`")
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    args = parser.parse_args()
    to = args.to / "lacuna"
    shutil.copytree(HERE / "lacuna", to, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "_abi.py", "_fields.pyi", "_table.py", "_verbs.py"))
    write_abi(to / "_abi.py", args.cc)
    write_verbs(to)
    for source, folder, name in ((args.library, "lib", library_name()), (args.command, "bin", "lacuna")):
        if source:
            (to / folder).mkdir(exist_ok=True)
            link = to / folder / name
            link.unlink(missing_ok=True)
            link.symlink_to(source.resolve())


if __name__ == "__main__":
    main()
