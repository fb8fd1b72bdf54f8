#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/how-to/resnet50.md, on a small stand-in: few photographs, small crops, two steps.

The lines are taken from the document, so that they are what a reader types; only sizes are added. The photographs are those of
an ImageNet sample next to the repository where there is one, else the little images of tests/fixtures.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SAMPLE = TOP.parent / "shared/data/imagenet-sample"
SMALL = {"train": "--crop 32 --resize 40 --batch-size 8 --eval-limit 8 --threads 2 --effort fast".split(),
         "eval": "--crop 32 --resize 40 --limit 8".split(),
         "bench": "--runs 3 --time 1".split()}
INSTEAD = {"--dtype": None, "--epochs": None, "--schedule": None}  # two steps, in f32, on every machine
RESULTS = []


def expect(sentence, held, detail=""):
    RESULTS.append(bool(held))
    if not held:
        print(f"{sentence}: {detail}")


def photographs():
    """(class, file) of a few, of five classes of ImageNet."""
    if SAMPLE.is_dir():
        folders = sorted(folder for folder in SAMPLE.iterdir() if folder.is_dir())[:5]
        return [(folder.name, next(folder.iterdir())) for folder in folders]
    fixtures = TOP / "tests/fixtures/data"
    names = ["colour.jpg", "subsampled.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg"]
    wordnet = ["n01440764", "n01530575", "n01601694", "n01641577", "n01682714"]
    return [(where, fixtures / name) for where, name in zip(wordnet, names)]


def make_raw(raw):
    """The layout of extracted archives: every photograph eight times for training, twice for evaluation."""
    labels = []
    for synset, file in photographs():
        folder = raw / "img_train" / synset
        folder.mkdir(parents=True)
        for copy in range(8):
            shutil.copy(file, folder / f"{synset}_{copy}.JPEG")
        for _ in range(2):
            labels.append(synset)
            (raw / "img_val").mkdir(exist_ok=True)
            shutil.copy(file, raw / f"img_val/ILSVRC2012_val_{len(labels):08d}.JPEG")
    (raw / "synset_labels.txt").write_text("\n".join(labels) + "\n")


def commands():
    lines = (TOP / "docs/how-to/resnet50.md").read_text().splitlines()
    return [line.split() for line in lines if line.startswith("    lacuna ")]


def made_small(words):
    """The same command, two steps long."""
    kept, at = [], 0
    while at < len(words):
        if words[at] in INSTEAD:
            at += 2
            continue
        kept.append(words[at])
        at += 1
    verb = kept[1]
    kept += SMALL.get(verb, [])
    if verb == "train":
        kept += ["--steps", "2"]
    if verb == "data":
        kept += ["--shards", "2", "--val-shards", "1"]
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    lacuna = parser.parse_args().lacuna.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_raw(folder / "raw")
        out = {}
        for words in commands():
            small = made_small(words)
            done = subprocess.run([lacuna, *small[1:]], cwd=folder, capture_output=True, text=True)
            expect(" ".join(small), done.returncode == 0, done.stderr[-500:])
            out[" ".join(words[1:2] + ["sparse"] * ("--sparse" in words))] = done
        expect("the dense network is written", (folder / "net/model.onnx").is_file())
        expect("the sparse network is written", (folder / "net/sparse/model.onnx").is_file())
        expect("what pruning took is evaluated first", "after pruning, before training" in out["train sparse"].stderr)
        expect("the table says which layers hold the pattern", "53/54" in out["train sparse"].stdout,
               out["train sparse"].stdout[-300:])
        log = [json.loads(line) for line in (folder / "sparse-run/log.jsonl").read_text().splitlines()]
        expect("the log has two steps", [row["step"] for row in log if "lr" in row] == [1, 2], log)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    sys.exit(not all(RESULTS))


if __name__ == "__main__":
    main()
