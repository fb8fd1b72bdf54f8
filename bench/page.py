# SPDX-License-Identifier: Apache-2.0
"""Parts of pages that benches write: between two marks, `<!-- NAME: written by bench/BENCH --docs -->` and its end."""
import re


def fill(text, name, bench, lines):
    """The page's text with these lines between the marks of that name."""
    begin, end = f"<!-- {name}: written by bench/{bench} --docs -->", f"<!-- end of {name} -->"
    text, n = re.subn(re.escape(begin) + ".*?" + re.escape(end), lambda _: "\n".join([begin, *lines, end]), text,
                      flags=re.DOTALL)
    if n != 1:
        raise SystemExit(f"{n} parts of the page are \"{begin}\" to \"{end}\", not one")
    return text
