# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in the pages of docs runs, in the order of its page, on a network of a few kilobytes."""
import re
import shutil

import numpy
import pytest

import lacuna

PAGES = {"docs/how-to/python.md": 9}
ELSEWHERE = {"docs/start.md": "test_snippets.py", "docs/how-to/keras.md": "test_keras.py", "docs/how-to/pytorch.md": "test_torch.py",
             "docs/how-to/migrate.md": "test_torch.py", "docs/how-to/huggingface.md": "test_folders.py",
             "docs/how-to/onnxruntime.md": "test_provider.py"}
QUICK = {"effort": "fast", "verify": False}


def test_the_start_page_runs(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lacuna-demo").mkdir()
    for name in ("digits.onnx", "digits.csv.gz"):
        shutil.copy(root / "examples/digits" / name, "lacuna-demo")
    original = lacuna.prune
    faster = {**QUICK, "permute": False, "calibration_samples": 16, "score": "wanda"}
    monkeypatch.setattr(lacuna, "prune", lambda *given, **keywords: original(*given, **keywords, **faster))
    found = blocks((root / "docs/start.md").read_text())
    assert len(found) == 1
    exec(compile(found[0], "start.md", "exec"), {})  # pylint: disable=exec-used
    holds, top1 = capsys.readouterr().out.split()
    assert holds == "True" and float(top1) > 80


def test_every_page_is_run_by_a_test(root):
    """A page with Python is in one of the tables above, and the test that is named there reads it."""
    pages = [*sorted((root / "docs").rglob("*.md")), *filter(lambda page: page.exists(), [root / "README.md", root / "python/README.md"])]
    found = {str(page.relative_to(root)) for page in pages if blocks(page.read_text())} - {"python/README.md"}  # which says what the start says
    assert found == {*PAGES, *ELSEWHERE}
    for page, test in ELSEWHERE.items():
        assert page in (root / "python/tests" / test).read_text(), page


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("page, at_least", PAGES.items(), ids=PAGES)
def test_a_page_runs(page, at_least, root, digits, images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(digits, "net.onnx")
    known = {"images": images[:16], "labels": numpy.arange(16) % 10}
    found = blocks((root / page).read_text())
    assert len(found) >= at_least
    original = lacuna.prune
    monkeypatch.setattr(lacuna, "prune", lambda *given, **keywords: original(*given, **{**QUICK, **keywords}))
    for block in found:
        exec(compile(block, page, "exec"), known)  # pylint: disable=exec-used
    assert "8 of 10 layers are pruned 2:4" in capsys.readouterr().out
