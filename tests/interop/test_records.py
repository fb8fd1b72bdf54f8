# SPDX-License-Identifier: Apache-2.0
"""TFRecords against the package tfrecord: its files are read here, and ours there, with equal bytes."""
import io

import numpy as np
import pytest
import tfrecord
from PIL import Image

from test_data import refuse, run, scenery

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
