#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs are short, listed and linked.

A page has at most 1,500 words outside docs/reference, README.md at most 450 outside its tables and code: three minutes read
aloud. A sentence has at most 25 words in README.md and the start page, 30 in others and in the comments of public headers. Tables,
code and what tools/reference writes do not count. Each page is in docs/README.md (a decision in docs/decisions/README.md). No
relative link of any page is broken, nor the heading that it names."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
DOCS, MOST_WORDS = TOP / "docs", 1500
ELSEWHERE = [TOP / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md",
                                     "examples/digits/README.md")]
READ_ALOUD, SHORT, LONG = 450, 25, 30  # words of README.md; of a sentence there and in the start page; of any other sentence
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")


def n_words(text):
    """What has a letter or a digit; the bars of tables have none."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def paragraphs(text):
    """Its paragraphs and items of lists, a line each, without headings, tables, code and comments."""
    text = re.sub(r"^```.*?^```|<!--.*?-->", "\n", text, flags=re.M | re.S)
    found, in_list = [""], False
    for line in text.splitlines():
        if not line.strip() or line.startswith(("#", "|", "![")):
            found.append("")
        elif ITEM.match(line) or found[-1] or in_list or not line.startswith("    "):
            if ITEM.match(line):
                found.append("")
            found[-1] += " " + line.strip()
        in_list = bool(ITEM.match(line)) or in_list and (not line or line.startswith(" "))
    return [re.sub(r"\]\([^)]*\)", "]", paragraph).strip() for paragraph in found if paragraph]


def sentences(text):
    """Those of its paragraphs. What is quoted as code is one word, with or without stops in it."""
    for paragraph in paragraphs(text):
        paragraph = re.sub(r"`[^`]*`", "Code", paragraph)
        yield from re.split(r"(?<=[.!?])(?<!e\.g\.)[*)\"]*\s+(?=[^a-z]|lac_|docs/)", paragraph)


def too_long(page, text):
    """Sentences of a page that nobody reads in one breath, and a page that nobody reads aloud."""
    start = page in (TOP / "README.md", DOCS / "start.md")
    if text.startswith("<!-- Made by tools/reference"):
        return
    for sentence in sentences(text):
        if n_words(sentence) > (SHORT if start else LONG):
            yield f"{n_words(sentence)} words in a sentence, at most {SHORT if start else LONG}: {sentence[:60]}..."
    words = sum(n_words(paragraph) for paragraph in paragraphs(text))
    if page == TOP / "README.md" and words > READ_ALOUD:
        yield f"{words} words to read aloud, at most {READ_ALOUD}"
    elif page.suffix == ".md" and page.parent.name != "reference" and n_words(text) > MOST_WORDS:
        yield f"{n_words(text)} words, at most {MOST_WORDS} outside docs/reference"


def comments(text):
    """The comments of a header as a page: a paragraph of its own for what is indented or follows an empty line."""
    found = []
    for comment in re.findall(r"/\*+<?(?: SPDX\S+ \S+)?(.*?)\*/", text, re.S):
        found += [re.sub(r"^\s*\*(?: (?=\S))?", "", line).rstrip() for line in comment.splitlines()] + [""]
    return "\n".join(line if line.startswith("  ") else line.strip() for line in found).replace("\n  ", "\n\n")


def targets(text):
    """What links of the text name; the code of a program has none."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(text):
    """The names of headings as links write them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in heads]
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in plain}


def broken(page, text):
    """Links of a page that lead nowhere."""
    for target in targets(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            yield f"{target} is not there"
        elif anchor and there.suffix == ".md" and anchor not in anchors(text if there == page else there.read_text()):
            yield f"{target}: no such heading"


def unlisted(index, pages):
    """Pages that an index does not link."""
    listed = {(index.parent / target.partition("#")[0]).resolve() for target in targets(index.read_text())}
    return [page for page in pages if page not in listed and page != index]


def it_refuses_what_it_is_there_to_refuse():
    assert n_words("| a word | 1.5 | - |") == 3
    here = DOCS / "README.md"
    assert not list(broken(here, "[a](start.md) [b](https://nowhere.example) [c](#a-head)\n# A `head`\n"))
    assert list(broken(here, "[a](nowhere.md)")) and list(broken(here, "[a](start.md#nowhere)"))
    assert list(broken(here, "[a](#nowhere)\n# A head")) and not list(broken(here, "```c\nx[1](nowhere)\n```\n"))
    assert unlisted(here, [here / "nowhere.md"])
    start, long = DOCS / "start.md", "word " * 26 + "end. "
    assert list(too_long(start, long)) and not list(too_long(here, long)) and list(too_long(here, long[:-5] + long))
    assert not list(too_long(start, "One. " * 26)) and not list(too_long(start, "Run `a b. c`. " * 26 + f"\n\n    {long}\n"))
    assert not list(too_long(start, f"| {long} |\n\n```\n{long}\n```\n- {long[:40]}\n- {long[:80]}\n  end."))
    assert list(too_long(start, f"- {long[:40]}\n  {long[:100]}"))
    header = comments(f"/** {long[:80]}\n *  x  {long[:80]} */\nint a; /* {long[:80]} */")
    assert not list(too_long(here, header)) and list(too_long(here, comments(f"/** {long[:80]}\n * {long} */")))
    assert list(too_long(TOP / "README.md", "One. " * 451)) and list(too_long(start, "One. " * 1501))


def main():
    it_refuses_what_it_is_there_to_refuse()
    pages = sorted(DOCS.rglob("*.md"))
    decisions = [page for page in pages if page.parent.name == "decisions"]
    wrong = []
    notes = [TOP / "CHANGELOG.md", *sorted((TOP / "bench/notes").glob("*.md"))]
    for page in pages + ELSEWHERE + notes:
        text, name = page.read_text(), page.relative_to(TOP)
        wrong += [f"{name}: {complaint}" for complaint in broken(page, text)]
        wrong += [f"{name}: {complaint}" for complaint in (too_long(page, text) if page not in notes else [])]
    for header in sorted((TOP / "include/lacuna").glob("*.h")):
        wrong += [f"{header.relative_to(TOP)}: {complaint}" for complaint in too_long(header, comments(header.read_text()))]
    wrong += [f"{page.relative_to(TOP)} is not in docs/README.md" for page in
              unlisted(DOCS / "README.md", [page for page in pages if page not in decisions])]
    wrong += [f"{page.relative_to(TOP)} is not in docs/decisions/README.md" for page in
              unlisted(DOCS / "decisions/README.md", decisions)]
    for complaint in wrong:
        print(complaint)
    print(f"{len(pages)} pages, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
