#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs are short, listed and linked: at most 1,500 words outside docs/reference, each in docs/README.md (a
decision in docs/decisions/README.md), and no relative link of any page is broken, nor the heading that it names."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
DOCS, MOST_WORDS = TOP / "docs", 1500
ELSEWHERE = [TOP / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]


def n_words(text):
    """What has a letter or a digit; the bars of tables have none."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


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


def main():
    it_refuses_what_it_is_there_to_refuse()
    pages = sorted(DOCS.rglob("*.md"))
    decisions = [page for page in pages if page.parent.name == "decisions"]
    wrong = []
    for page in pages + ELSEWHERE + sorted((TOP / "bench").rglob("*.md")):
        text, name = page.read_text(), page.relative_to(TOP)
        wrong += [f"{name}: {complaint}" for complaint in broken(page, text)]
        if page in pages and page.parent.name != "reference" and n_words(text) > MOST_WORDS:
            wrong.append(f"{name}: {n_words(text)} words, at most {MOST_WORDS} outside docs/reference")
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
