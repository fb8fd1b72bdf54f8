# SPDX-License-Identifier: Apache-2.0
"""Reads C as text, as far as tools/reference needs it: calls with their arguments, and strings.

No preprocessor and no compiler is asked, so that a page can be made before anything is built.
"""
import re

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|[A-Za-z_]\w*|\s+|.', re.S)
# A string, a character or a comment; what a match can begin with comes first, which makes the search fast.
COMMENT = re.compile(r"""["'/](?:(?<=")(?:\\.|[^"\\\n])*"|(?<=')(?:\\.|[^'\\\n])+'|(?<=/)\*.*?\*/|(?<=/)/[^\n]*)""", re.S)
CONVERSION = re.compile(r"%[-+ #0]*[\d*]*(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXfFeEgGcsp]")
ESCAPES = {"n": " ", "t": " ", '"': '"', "\\": "\\", "'": "'", "0": ""}


def without_comments(text):
    """The text with each comment replaced by a blank; strings stay."""
    return COMMENT.sub(lambda found: " " if found[0][0] == "/" else found[0], text)


def arguments(text, at):
    """The arguments of the call whose opening parenthesis is at `at`, as text, and where the call ends."""
    found, depth, begin = [], 0, at + 1
    for token in TOKEN.finditer(text, at):
        word = token[0]
        if word in "([{":
            depth += 1
        elif word in ")]}":
            depth -= 1
        if depth == 0 or depth == 1 and word == ",":
            found.append(text[begin:token.start()].strip())
            begin = token.end()
        if depth == 0:
            return found, token.end()
    raise ValueError("a call without an end: " + text[at:at + 60])


def calls(text, name):
    """(arguments, begin, end) of every call of `name`, a pattern; `text` has no comments."""
    for found in re.finditer(rf"(?<![\w#])(?:{name})\s*\(", text):
        if not re.search(r"#\s*define\s+$", text[max(0, found.start() - 20):found.start()]):
            given, end = arguments(text, found.end() - 1)
            yield given, found.start(), end


def macros(text):
    """The #defines that are strings, one after the other, by their names."""
    joined = text.replace("\\\n", " ")
    found = re.findall(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+((?:"(?:\\.|[^"\\\n])*"|\w+|[ \t])+)$', joined, re.M)
    return {name: value for name, value in found if '"' in value}


def unescaped(literal):
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), literal[1:-1])


def strings(expression, known=None):
    """What a string expression may be: one text, or one for each branch of a condition; [] where none is written in it."""
    texts, now = [], None
    for token in TOKEN.finditer(expression):
        word = token[0]
        if word.isspace():
            continue
        if word.startswith('"'):
            now = (now or "") + unescaped(word)
        elif word.startswith("PRI"):
            now = (now or "") + "d"
        elif known and word in known:
            now = (now or "") + "".join(strings(known[word], known))
        else:
            texts, now = texts + ([now] if now is not None else []), None
    return texts + ([now] if now is not None else [])


def shown(format_text):
    """A printf format as a reader sees it: what is put in is "..."."""
    return re.sub("…+", "…", CONVERSION.sub("…", format_text.replace("%%", "\0"))).replace("\0", "%").strip()


def integer_sets(text, known):
    """Names of integer sets, `#define MODELS (ON(prune) | ON(check))`, added to `known` as numbers."""
    for name, value in re.findall(r"^#define (\w+) (\(.*\))$", text, re.M):
        known[name] = integer_set(value, known)
    return known


def integer_set(expression, known):
    """A set as an integer, of names in `known`, with ON(), |, & and ~."""
    if not re.fullmatch(r"[\w\s()|&~]+", expression):
        raise ValueError("no set: " + expression)
    words = re.sub(r"ON\((\w+)\)", r"\1", expression)
    return eval(words, {"__builtins__": {}}, known)  # pylint: disable=eval-used
