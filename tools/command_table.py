# SPDX-License-Identifier: Apache-2.0
"""The command's own tables, cli/verbs.def, cli/options.def and cli/hint.c, as Python has them: for the pages of tools/reference
and for the keywords of the package in python/."""
import pathlib
import re

import c_text

TOP = pathlib.Path(__file__).resolve().parent.parent


def read(name):
    return c_text.without_comments((TOP / name).read_text())


def text_of(raw):
    return "".join(c_text.strings(raw))


def literal(raw):
    return text_of(raw) if raw != "NULL" else None


def verbs():
    """[{"id", "operands", "summary", "description", "examples"}], in the order of verbs.def."""
    text, found = read("cli/verbs.def"), {}
    for (verb, operands, _, _, summary, description), *_ in c_text.calls(text, "LAC_VERB"):
        paragraphs = re.sub(r"\\n\\n", '" "¶', description)
        found[verb] = {"id": verb, "operands": text_of(operands), "summary": text_of(summary),
                       "description": text_of(paragraphs).replace("¶", "\n\n"), "examples": []}
    for (verb, command, meaning), *_ in c_text.calls(text.replace("#define LAC_EXAMPLE", ""), "LAC_EXAMPLE"):
        if verb in found:
            found[verb]["examples"].append((text_of(command), text_of(meaning)))
    return list(found.values())


def options(ids):
    """[(group, {"kind", "name", "letter", "initial", "verbs", "argument", "help", "words"})]"""
    text = (TOP / "cli/options.def").read_text()
    known = {name: 1 << at for at, name in enumerate(ids)}
    known["ALL_VERBS"] = (1 << len(ids)) - 1
    known = c_text.integer_sets(text, known)
    found, group, text = [], "", c_text.without_comments(text)
    for given, begin, _ in c_text.calls(text, "LAC_GROUP|LAC_OPTION|LAC_WORDS"):
        macro = text[begin:].split("(")[0].strip()
        if macro == "LAC_GROUP":
            group = text_of(given[0])
        elif macro == "LAC_OPTION":
            kind, name, letter, argument, initial, which, helps = given
            found.append((group, {"kind": kind, "id": name, "name": name.replace("_", "-"), "letter": letter.strip("'"),
                                  "argument": literal(argument), "initial": literal(initial),
                                  "verbs": c_text.integer_set(which, known), "help": text_of(helps), "words": []}))
        else:
            name, which, argument, helps = given
            row = next(option for _, option in found if option["id"] == name)
            row["words"].append((c_text.integer_set(which, known), literal(argument), text_of(helps)))
    return found


def words_of_hints():
    """What the command adds for each hint."""
    text = (TOP / "cli/hint.c").read_text()
    known = c_text.macros(text)
    words = {name[6:]: "".join(c_text.strings(value, known)).strip(" ;").replace("%", "FILE")
             for name, value in known.items() if name.startswith("WORDS_")}
    return {name: re.sub(r"^\((.*)\)$", r"\1", text) for name, text in words.items()}
