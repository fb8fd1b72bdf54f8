# SPDX-License-Identifier: Apache-2.0
"""TFRecords against the package tfrecord: its files are read here, and ours there, with equal bytes."""
import io
import struct
import subprocess
import tarfile

import numpy as np
import pytest
import tfrecord
from PIL import Image
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from built import build_dir
from test_data import SHARED, refuse, run, scenery

PHOTOGRAPHS, NETWORK = SHARED / "data/imagenet-sample", SHARED / "models/efficientnet_lite0.onnx"
SYNSETS = {0: "n01440764", 207: "n02099601", 999: "n15075141"}


def jpeg(width, height, seed):
    file = io.BytesIO()
    scenery(width, height, seed).save(file, "jpeg", quality=90)
    return file.getvalue()


def write_theirs(path, rows):
    writer = tfrecord.TFRecordWriter(str(path))
    for encoded, label, synset in rows:
        writer.write({"image/encoded": (encoded, "byte"), "image/class/label": (label + 1, "int"),
                      "image/class/synset": (synset.encode(), "byte"), "image/height": (1, "int"),
                      "image/object/bbox/xmin": ([0.5, 0.25], "float")})
    writer.close()


@pytest.mark.parametrize("with_synsets", [False, True])
def test_their_records_are_read_here(with_synsets, tmp_path):
    rows = [(jpeg(40 + k, 50, k), label, SYNSETS[label] if with_synsets else "")
            for k, label in enumerate([207, 0, 999, 207, 0])]
    write_theirs(tmp_path / "train-00000-of-00002", rows[:3])
    write_theirs(tmp_path / "train-00001-of-00002", rows[3:])
    lines = run("set", tmp_path, "train", "-").splitlines()
    assert lines[0] == "5 images, 1000 classes"
    assert lines[1:] == [f"{k}\t{label}\t{synset or '-'}" for k, (_, label, synset) in enumerate(rows)]
    for k, (encoded, _, _) in enumerate(rows):
        run("decoded", tmp_path, "train", k, tmp_path / "image.npy")
        assert (np.load(tmp_path / "image.npy") == np.asarray(Image.open(io.BytesIO(encoded)))).all()


def test_a_label_of_another_synset_is_refused(tmp_path):
    write_theirs(tmp_path / "train-00000-of-00001", [(jpeg(9, 9, 0), 1, SYNSETS[0])])
    assert "label 2, but n01440764 is 1" in refuse("set", tmp_path, "train", "-")


# ---- What is written here ----

def stored(image, **how):
    file = io.BytesIO()
    image.save(file, **how)
    return file.getvalue()


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """(what was there by name: bytes and class, the folder of shards)"""
    top = tmp_path_factory.mktemp("imagenet")
    there = {}
    kinds = [{"format": "jpeg", "quality": 85}, {"format": "jpeg", "quality": 95, "progressive": True}, {"format": "png"},
             {"format": "webp", "lossless": True}]
    for k in range(40):
        label = sorted(SYNSETS)[k % 3]
        image = scenery(30 + k, 45, k).convert("CMYK" if k % 9 == 0 and k % 4 < 2 else "RGB")
        there[f"{SYNSETS[label]}_{k}.JPEG"] = (stored(image, **kinds[k % 4]), label)
    for name, (data, label) in there.items():
        folder = top / "raw/img_train" / SYNSETS[label]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (top / "raw/imagenet_metadata.txt").write_text("n01440764\ttench, Tinca tinca\n")
    subprocess.run([build_dir() / "lacuna", "data", "imagenet", "-q", top / "raw", "-o", top / "out", "--shards", "5"],
                   check=True, capture_output=True)
    return there, top / "out"


def test_our_records_are_read_there_with_equal_bytes(converted):
    there, out = converted
    names = []
    for shard in sorted(out.glob("train-*")):
        for row in tfrecord.tfrecord_loader(str(shard), None):
            name = bytes(row["image/filename"]).decode()
            data, label = there[name]
            encoded = bytes(row["image/encoded"])
            image, kept = Image.open(io.BytesIO(data)), Image.open(io.BytesIO(encoded))
            names.append(name)
            assert row["image/class/label"] == [label + 1] and bytes(row["image/class/synset"]).decode() == SYNSETS[label]
            assert bytes(row["image/class/text"]) == (b"tench, Tinca tinca" if label == 0 else b"")
            assert (row["image/width"], row["image/height"]) == ([image.width], [image.height])
            assert row["image/channels"] == [3] and bytes(row["image/colorspace"]) == b"RGB"
            assert bytes(row["image/format"]) == b"JPEG"
            if image.format == "JPEG" and image.mode != "CMYK":
                assert encoded == data
            else:
                assert (kept.format, kept.mode) == ("JPEG", "RGB")
                theirs = stored(image.convert("RGB"), format="jpeg", quality=100, subsampling=2)
                apart = np.asarray(kept).astype(int) - np.asarray(Image.open(io.BytesIO(theirs)))
                assert np.abs(apart).max() <= 2
    assert sorted(names) == sorted(there)  # each once
    assert names != sorted(there)


def test_every_checksum_is_tensorboards(converted):
    _, out = converted
    for shard in sorted(out.glob("train-*")):
        data, at = shard.read_bytes(), 0
        while at < len(data):
            length, = struct.unpack_from("<Q", data, at)
            assert struct.unpack_from("<I", data, at + 8)[0] == masked_crc32c(data[at:at + 8])
            assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc32c(data[at + 12:at + 12 + length])
            at += length + 16


def test_our_records_are_read_here(converted):
    there, out = converted
    lines = run("set", out, "train", "-").splitlines()
    assert lines[0] == "40 images, 1000 classes"
    found = sorted(int(line.split("\t")[1]) for line in lines[1:])
    assert found == sorted(label for _, label in there.values())


@pytest.mark.skipif(not PHOTOGRAPHS.exists() or not NETWORK.exists(), reason="the photographs are not here")
def test_photographs_are_recognized_in_records_as_in_folders(tmp_path):
    """From archives of photographs to an accuracy: training and validation images are the same ones here."""
    raw, labels = tmp_path / "raw", []
    raw.mkdir()
    with tarfile.open(raw / "ILSVRC2012_img_train.tar", "w") as train, tarfile.open(raw / "ILSVRC2012_img_val.tar", "w") as val:
        for folder in sorted(path for path in PHOTOGRAPHS.iterdir() if path.is_dir()):
            inner = io.BytesIO()
            with tarfile.open(fileobj=inner, mode="w") as archive:
                for path in sorted(folder.iterdir()):
                    archive.add(path, path.name)
                    labels.append(folder.name)
                    val.add(path, f"ILSVRC2012_val_{len(labels):08}.JPEG")
            info = tarfile.TarInfo(f"{folder.name}.tar")
            info.size = len(inner.getvalue())
            inner.seek(0)
            train.addfile(info, inner)
    (raw / "synset_labels.txt").write_text("\n".join(labels) + "\n")

    def lacuna(*words):
        done = subprocess.run([build_dir() / "lacuna", *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert lacuna("data", "imagenet", "-q", raw, "-o", tmp_path / "out", "--shards", 8, "--val-shards", 3) == \
        "train: 100 images in 8 shards\nvalidation: 100 images in 3 shards\n"
    result = lacuna("eval", "-q", NETWORK, "--data", tmp_path / "out", "--mean", "127,127,127", "--std", "128,128,128")
    assert result == lacuna("eval", "-q", NETWORK, "--data", PHOTOGRAPHS, "--mean", "127,127,127", "--std", "128,128,128")
    lacuna("train", "-q", "--arch", "resnet18", "--data", tmp_path / "out", "--steps", 2, "--batch-size", 4, "--crop", 32,
           "--resize", 36, "--no-eval", "-o", tmp_path / "net.onnx")
