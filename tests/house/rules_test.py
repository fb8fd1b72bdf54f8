#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of the house refuse what they are there to refuse: each rule is tried on texts that break it and on some that do not."""
import importlib.machinery
import importlib.util
import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def tool(name):
    """A script of tools/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def a_subject_names_its_room_and_says_what_to_do():
    complaints = tool("check_commits").complaints
    for subject in ("graph: add an operator", "engine/cpu: skip ports", "cli, docs: name it", "tests: feed both engines",
                    "onnx: README says what is read", "kernel/sparse: embed the table"):
        assert not list(complaints(subject, "Why.")), subject
    for subject in ("add an operator", "graph: Add an operator", "graph: added an operator", "graph: adding an operator",
                    "graph: add an operator.", "graph:add an operator", "Graph: add an operator", "graph: " + "a" * 60):
        assert list(complaints(subject, "Why.")), subject
    assert list(complaints("graph: add an operator", "\n"))


def a_header_counts_what_it_declares():
    count = tool("check_size").n_declared
    text = """#define F(x) g(x);
typedef int callback(int n); /* not_this(one); */
typedef struct s { int (*also)(int n); } s;
_Static_assert(sizeof(s) > 0, "so");
enum { N = 1 };
int one(int a,
        int b);
static inline int two(int n) {
  return one(n, n);
}
const s *three(void);
"""
    assert count(text) == 3, count(text)


def a_short_file_is_a_splinter_but_for_tables():
    is_splinter, here = tool("check_size").is_splinter, pathlib.Path("/nowhere")
    function = ["void f(void) {", "  g();", "}"]
    assert is_splinter(here / "f.c", function)
    assert not is_splinter(here / "f.c", function * 5)
    assert not is_splinter(here / "f_none.c", function) and not is_splinter(here / "f_isa.c", function)
    assert not is_splinter(here / "f.c", ["static const row rows[] = {", "    {1},", "};"] + function)
    assert not is_splinter(here / "relu.c", ["const laci_op laci_op_relu = {.name = 0};"])


def a_word_that_is_gone_is_found_whole():
    rows = list(tool("check_words").read_list("# a head\nsheet / sheets | slice | gone\nway | algorithm | going | src\n"))
    assert [row[5] for row in rows] == [("sheet", "sheets"), ("way",)]
    assert [row[3:5] for row in rows] == [(True, ()), (False, ("src",))]
    pattern = rows[0][1]
    for text in ("a sheet", "n_sheets", "Sheets of it", "sheet."):
        assert pattern.search(text), text
    for text in ("worksheet", "sheeted"):
        assert not pattern.search(text), text


def an_engine_is_named_in_one_place():
    rooms = tool("check_rooms")
    complaints = lambda where, text: list(rooms.name_complaints(rooms.TOP / where, text))
    assert complaints("src/api/run/infer.c", 'return strcmp(name, "plain") == 0;')
    assert not complaints("src/engine/engine.h", '#define LACI_ENGINE_FAST "cpu"')
    assert not complaints("src/report/bench.c", 'add(w, object, "plain", json_boolean(true));')
    assert not complaints("src/api/run/infer.c", 'say("plain text");')


def a_page_of_the_reference_reads_c():
    text = tool("c_text.py")
    source = text.without_comments('f("a, /* no */", (b), \'"\'); /* f(1) */ // f(2)\n#define f(x) g(x)\n')
    assert [given for given, *_ in text.calls(source, "f")] == [['"a, /* no */"', "(b)", "'\"'"]], source
    assert text.strings('is ? "a %s" : "b" "c"') == ["a %s", "bc"]
    assert text.strings('"%" PRId64 " of " NAME', {"NAME": '"n"'}) == ["%d of n"]
    assert text.shown("%-*.3f of %s: 5 %%") == "… of …: 5 %"
    assert text.integer_set("(ON(a) | b) & ~ON(a)", {"a": 1, "b": 2}) == 2


def main():
    tests = [test for name, test in globals().items() if callable(test) and name.startswith(("a_", "an_", "no_", "what_"))]
    for test in tests:
        test()
    assert tests
    print(f"{len(tests)} rules hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
