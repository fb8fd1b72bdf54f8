# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face with random weights: pruned by function and command, they load with from_pretrained and hold 2:4."""
import json
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import lacuna  # noqa: E402  pylint: disable=wrong-import-position
from lacuna import command as command_line  # noqa: E402  pylint: disable=wrong-import-position
from lacuna import folders  # noqa: E402  pylint: disable=wrong-import-position

pytestmark = pytest.mark.torch
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
IMAGE = {"image_size": 32, "patch_size": 8}
KINDS = {
    "BertForSequenceClassification": ("BertConfig", {**SMALL, "vocab_size": 64, "max_position_embeddings": 32}, 12),
    "DistilBertForMaskedLM": ("DistilBertConfig", {"dim": 64, "hidden_dim": 128, "n_layers": 2, "n_heads": 4, "vocab_size": 64,
                                                   "max_position_embeddings": 32}, 12),
    "ViTForImageClassification": ("ViTConfig", {**SMALL, **IMAGE}, 12),
    "DeiTForImageClassification": ("DeiTConfig", {**SMALL, **IMAGE}, 12),
    "ResNetForImageClassification": ("ResNetConfig", {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [1, 1]}, 5),
    "ConvNextForImageClassification": ("ConvNextConfig", {"hidden_sizes": [32, 64], "depths": [1, 1], "num_stages": 2,
                                                          "image_size": 32}, 5),
}


def saved(name, folder):
    config, sizes, _ = KINDS[name]
    torch.manual_seed(0)
    module = getattr(transformers, name)(getattr(transformers, config)(**sizes))
    module.save_pretrained(folder)
    (folder / "vocab.txt").write_text("[PAD]\n")
    return module


def holds(weight):
    """Two zeros in every four input channels, at least."""
    return bool(((weight.detach().movedim(1, -1).reshape(-1, 4) == 0).sum(1) >= 2).all())


@pytest.mark.parametrize("name", KINDS)
def test_a_folder_is_pruned(name, tmp_path):
    dense = saved(name, tmp_path / "dense")
    report = lacuna.prune(tmp_path / "dense", tmp_path / "sparse", effort="fast")
    module, info = getattr(transformers, name).from_pretrained(tmp_path / "sparse", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    weights = dict(module.named_parameters())
    assert len(report.masks) >= KINDS[name][2] and all(holds(weights[key]) for key in report.masks)
    assert {key: value.shape for key, value in dense.named_parameters()} == {key: value.shape for key, value in weights.items()}
    assert (tmp_path / "sparse/config.json").read_text() == (tmp_path / "dense/config.json").read_text()
    assert (tmp_path / "sparse/vocab.txt").exists() and report.difference < 1e-4


def test_the_page_runs(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    saved("BertForSequenceClassification", tmp_path / "bert-base")
    found = re.findall(r"^```python\n(.*?)^```", (root / "docs/how-to/huggingface.md").read_text(), re.M | re.S)
    assert len(found) == 1
    exec(compile(found[0], "huggingface.md", "exec"), {})  # pylint: disable=exec-used
    assert "pruned 2:4" in capsys.readouterr().out and (tmp_path / "bert-base-24/config.json").exists()


def test_weights_of_torch_and_half_precision(tmp_path):
    module = saved("BertForSequenceClassification", tmp_path / "dense").half()
    module.save_pretrained(tmp_path / "dense")
    torch.save(module.state_dict(), tmp_path / "dense/pytorch_model.bin")
    (tmp_path / "dense/model.safetensors").unlink()
    report = folders.prune(tmp_path / "dense", tmp_path / "sparse", effort="fast", permute=False)
    found = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "sparse", dtype="auto")
    assert found.dtype == torch.float16 and report.masks and all(holds(found.get_parameter(key)) for key in report.masks)


def test_a_folder_by_the_command(tmp_path):
    saved("ViTForImageClassification", tmp_path / "dense")
    program = "import sys; from lacuna.command import main; main()"
    words = ["prune", "dense", "-o", "sparse", "--effort", "fast", "--pattern=1:4", "--no-permute", "--json", "report.json"]
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "pruned 1:4" in done.stdout and json.loads((tmp_path / "report.json").read_text())["summary"]["pruned"] >= 12
    assert (tmp_path / "sparse/model.safetensors").exists()
    again = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "exists already" in again.stderr
    for wrong in (["--colour", "red"], ["--pattern"], ["--no-pattern"], ["dense"]):
        done = subprocess.run([sys.executable, "-c", program, *words[:2], *wrong], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stderr.startswith("lacuna: "), wrong


def test_words_are_keywords():
    kinds = lacuna.prune.__annotations__
    given = command_line.keywords_of(["in", "--seed=3", "--target", "a", "--target", "b", "--time-limit", "1.5", "--no-verify"], kinds)
    assert given == (["in"], {"seed": 3, "target": ["a", "b"], "time_limit": 1.5, "verify": False})


def test_what_is_refused(tmp_path):
    saved("ViTForImageClassification", tmp_path / "dense")
    with pytest.raises(lacuna.Error, match="has no name"):
        lacuna.prune(tmp_path / "dense")
    with pytest.raises(NotImplementedError, match="takes no quantize"):
        lacuna.prune(tmp_path / "dense", tmp_path / "out", quantize="qdq-int8")
    with pytest.raises(lacuna.Error, match="the folder that is read"):
        folders.prune(tmp_path / "dense", tmp_path / "dense", force=True)
    config = json.loads((tmp_path / "dense/config.json").read_text())
    (tmp_path / "dense/config.json").write_text(json.dumps({**config, "architectures": ["NoSuchNet"]}))
    with pytest.raises(NotImplementedError, match="the architecture NoSuchNet"):
        lacuna.prune(tmp_path / "dense", tmp_path / "out")
    assert not (tmp_path / "out").exists()
