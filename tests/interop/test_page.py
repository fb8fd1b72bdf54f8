# SPDX-License-Identifier: Apache-2.0
"""Pages of --html in headless Chromium: no error of a script, nothing wanted from a network, no text beyond the window's side at
any width, contrast in light and dark, and what readers do: sort, filter, find, go by keys. Skipped where there is no Chromium."""

import json
import os
import pathlib
import subprocess

import chromium
import onnx
import pytest
from onnx import TensorProto, helper

TOP = pathlib.Path(os.environ.get("LAC_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LACUNA = pathlib.Path(os.environ.get("LAC_BUILD_DIR", TOP / "build/release")) / "lacuna"
DIGITS, DATA = TOP / "examples/digits/digits.onnx", TOP / "examples/digits"
HOSTILE = "</script><img src=x onerror=\"document.title='caught'\"><b>&amp; ' \u2028 ]]> -->"
pytestmark = [pytest.mark.large, pytest.mark.skipif(not chromium.find(), reason="skipped: there is no Chromium")]


def lacuna(*words, code=0):
    done = subprocess.run([LACUNA, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def hostile_model(path):
    """Two layers whose names are markup."""
    weights = [helper.make_tensor(HOSTILE + name, TensorProto.FLOAT, shape, [0.25 * (k % 7) - 0.5 for k in range(shape[0] * shape[1])])
               for name, shape in (("w1", (32, 32)), ("w2", (32, 32)))]
    nodes = [helper.make_node("MatMul", ["x", weights[0].name], ["a"], name=HOSTILE + "first"),
             helper.make_node("Relu", ["a"], ["b"], name="<script>alert(1)</script>"),
             helper.make_node("MatMul", ["b", weights[1].name], ["y"], name="second\" onclick=\"alert(2)")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 32]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of each verb, with its report."""
    at = tmp_path_factory.mktemp("pages")
    hostile_model(at / "<b>hostile.onnx")
    pruned = at / "pruned.onnx"
    lacuna("prune", DIGITS, "-o", pruned, "--no-calibration", "--html", at / "prune.html", "--json", at / "prune.json", "-q")
    lacuna("check", pruned, "--target", "tensorrt", "--html", at / "check.html", "--json", at / "check.json", "-q")
    lacuna("check", DIGITS, "--html", at / "fails.html", "--json", at / "fails.json", "-q", code=1)
    lacuna("compare", DIGITS, pruned, "--html", at / "compare.html", "--json", at / "compare.json", "-q")
    lacuna("bench", pruned, "--runs", 3, "--html", at / "bench.html", "--json", at / "bench.json", "-q")
    lacuna("eval", pruned, "--data", DATA, "--html", at / "eval.html", "--json", at / "eval.json", "-q")
    lacuna("finetune", pruned, "--data", DATA, "-o", at / "tuned.onnx", "--epochs", 2, "--display-steps", 4,
           "--html", at / "finetune.html", "--json", at / "finetune.json", "-q")
    lacuna("prune", at / "<b>hostile.onnx", "-o", at / "h.onnx", "--no-calibration", "--html", at / "hostile.html",
           "--json", at / "hostile.json", "-q")
    return at


VERBS = ["prune", "check", "fails", "bench", "eval", "finetune", "hostile", "compare"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = chromium.Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


# Every element that has a text of its own, with the contrast of its colour and what is painted below it.
CONTRAST = """
(() => {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const parse = (text) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = text; pen.fillRect(0, 0, 1, 1);
    const v = [...pen.getImageData(0, 0, 1, 1).data]; return [...v.slice(0, 3), v[3] / 255]; };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const below = (element) => { for (let e = element; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c[3] > 0.99) return c; } return [255, 255, 255, 1]; };
  const bad = [];
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest('svg, script, template, noscript') || !element.checkVisibility()) continue;
    if (![...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(element), a = light(parse(style.color)), b = light(below(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (!(ratio >= 4.5)) bad.push([element.tagName, element.textContent.slice(0, 40), ratio]);
  }
  for (const text of document.querySelectorAll('#canvas .node text')) {
    const shape = text.closest('.node').querySelector('path, polygon');
    const a = light(parse(getComputedStyle(text).fill)), b = light(parse(getComputedStyle(shape).fill));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (!(ratio >= 4.5)) bad.push(['text', text.textContent, ratio]);
  }
  return bad.slice(0, 5);
})()
"""
OVERFLOW = """[...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.closest('.scroll, .canvas, nav, svg, .skip')
  && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className).slice(0, 5)"""


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_shows_without_error_overflow_or_low_contrast(pages, browser, verb, dark):
    for width in (400, 1000, 2000):
        browser.open(pages / f"{verb}.html", width, dark=dark)
        assert browser.ask("document.documentElement.dataset.ready") == "yes"
        assert browser.errors == []
        assert browser.ask("document.documentElement.scrollWidth <= innerWidth"), width
        assert browser.ask(OVERFLOW) == [], width
    assert browser.ask(CONTRAST) == []
    assert browser.ask("document.documentElement.dataset.theme") == ("dark" if dark else "light")


@pytest.mark.parametrize("verb", VERBS)
def test_embeds_the_report_of_the_verb(pages, browser, verb):
    browser.open(pages / f"{verb}.html")
    shown = json.loads(browser.ask("document.getElementById('data-report').textContent"))
    assert shown == json.loads((pages / f"{verb}.json").read_text())
    assert browser.ask("document.getElementById('command-text').textContent").startswith("lacuna ")


def said(browser):
    return browser.ask("document.getElementById('verdict').textContent")


def test_says_what_the_report_says(pages, browser):
    report = json.loads((pages / "prune.json").read_text())
    browser.open(pages / "prune.html")
    assert said(browser).startswith(f"{report['summary']['pruned']} of {report['summary']['layers']} layers hold 2:4")
    assert browser.ask("document.querySelectorAll('#layer-table tbody tr').length") == len(report["layers"])
    browser.open(pages / "fails.html")
    layers = [layer for layer in json.loads((pages / "fails.json").read_text())["layers"] if layer["eligible"]]
    assert said(browser).startswith(f"0 of {len(layers)} layers that should hold 2:4")
    report = json.loads((pages / "eval.json").read_text())
    browser.open(pages / "eval.html")
    assert f"{report['top1']:.2f} %" in said(browser)
    report = json.loads((pages / "finetune.json").read_text())
    browser.open(pages / "finetune.html")
    assert f"{report['final']['top1']:.2f} %" in said(browser)
    assert browser.ask("document.querySelectorAll('#panels figure').length") >= 3
    report = json.loads((pages / "bench.json").read_text())
    browser.open(pages / "bench.html")
    assert browser.ask("document.querySelectorAll('#layer-table tbody tr').length") == len(report["layers"])


CELLS = "[...document.querySelectorAll('#layer-table tbody tr')].map((r) => r.row.{})"


def test_sorts_and_filters(pages, browser):
    browser.open(pages / "prune.html")
    names = browser.ask(CELLS.format("name"))
    click = "document.querySelector('th[data-key=\"{}\"] button').click()"
    browser.ask(click.format("zeros"))
    zeros = browser.ask(CELLS.format("zeros"))
    assert zeros == sorted(zeros, reverse=True) and len(set(zeros)) > 1
    assert browser.ask("document.querySelector('th[data-key=\"zeros\"]').getAttribute('aria-sort')") == "descending"
    browser.ask(click.format("zeros"))
    assert browser.ask(CELLS.format("zeros")) == sorted(zeros)
    browser.ask(click.format("zeros"))
    assert browser.ask(CELLS.format("name")) == names
    browser.ask("[...document.querySelectorAll('#chips button')].find((b) => b.textContent.startsWith('Dense')).click()")
    assert set(browser.ask(CELLS.format("state"))) == {"dense"}


def test_goes_by_keys(pages, browser):
    browser.open(pages / "prune.html")
    browser.press("/")
    assert browser.ask("document.activeElement.id") == "find"
    for letter in "layer2":
        browser.press(letter)
    found = browser.ask(CELLS.format("name"))
    assert found and all("layer2" in name for name in found)
    browser.press("Escape")
    assert len(browser.ask(CELLS.format("name"))) > len(found)
    browser.ask("document.querySelector('#layer-table tbody tr').focus()")
    browser.press("ArrowDown")
    second = browser.ask("document.activeElement.row.name")
    assert second == browser.ask(CELLS.format("name"))[1]
    browser.press("Enter")
    assert second in browser.ask("document.getElementById('detail').textContent")
    assert browser.ask("document.querySelectorAll('#canvas .node.chosen').length") == 1
    browser.press("t")
    assert browser.ask("document.documentElement.dataset.theme") == "light"
    browser.press("t")
    assert browser.ask("document.documentElement.dataset.theme") == "dark"
    browser.press("?")
    assert browser.ask("document.getElementById('help').open")
    browser.press("Escape")
    assert not browser.ask("document.getElementById('help').open")
    assert browser.errors == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_the_network_by_a_figure(pages, browser, dark):
    browser.open(pages / "prune.html", dark=dark)
    fills = "[...document.querySelectorAll('#canvas .node')].map((n) => getComputedStyle(n.querySelector('path, polygon')).fill)"
    before = browser.ask(fills)
    browser.ask("(() => { const s = document.getElementById('colour'); s.value = 'kept'; s.dispatchEvent(new Event('change')); })()")
    assert browser.ask(fills) != before
    assert browser.ask("document.querySelector('#legend').textContent").count("%") == 2
    assert browser.ask(CONTRAST) == []
    browser.ask("(() => { const f = document.getElementById('node-find'); f.value = 'layer1'; f.dispatchEvent(new Event('input')); })()")
    assert 0 < browser.ask("document.querySelectorAll('#canvas .node.dim').length") < len(before)


def test_names_stay_texts(pages, browser):
    browser.open(pages / "hostile.html")
    assert browser.errors == []
    assert browser.ask("document.querySelectorAll('main img, main script, main b').length") == 0
    assert browser.ask("document.title") == "lacuna prune: <b>hostile.onnx"
    assert HOSTILE + "first" in browser.ask(CELLS.format("name"))
    browser.ask("document.querySelector('#layer-table tbody tr').click()")
    assert HOSTILE + "first" in browser.ask("document.getElementById('detail').textContent")
    assert browser.errors == []
