# SPDX-License-Identifier: Apache-2.0
"""ImageNet's archives through the package, whose library loads libarchive when the first archive is read."""
import ctypes
import io
import pathlib
import subprocess
import sys
import tarfile

import pytest

import lacuna

CLASSES = ("n01440764", "n02099601")
TEXT = "cannot be loaded"  # of the error where libarchive is missing; a library that links it has no such text


def tar_of(members):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return made.getvalue()


@pytest.fixture(scope="module")
def archives(root, tmp_path_factory):
    """(a folder with an archive of archives, a folder with the same files)"""
    packed, plain = (tmp_path_factory.mktemp(name) for name in ("packed", "plain"))
    files = {synset: {f"{synset}_{k}.JPEG": (root / "tests/fixtures/data" / name).read_bytes()
                      for k, name in enumerate(("colour.jpg", "grey.jpg", "progressive.jpg"))} for synset in CLASSES}
    (packed / "ILSVRC2012_img_train.tar").write_bytes(tar_of({f"{synset}.tar": tar_of(its) for synset, its in files.items()}))
    for synset, its in files.items():
        (plain / "img_train" / synset).mkdir(parents=True)
        for name, data in its.items():
            (plain / "img_train" / synset / name).write_bytes(data)
    return packed, plain


def has_libarchive():
    try:
        return bool(ctypes.CDLL("libarchive.so.13"))
    except OSError:
        return False


@pytest.mark.skipif(not has_libarchive(), reason="no libarchive")
def test_archives_and_folders_give_the_same_shards(archives, tmp_path):
    made = [lacuna.data("imagenet", raw, tmp_path / str(at), shards=2) for at, raw in enumerate(archives)]
    assert [(result.train.images, result.train.shards) for result in made] == [(6, 2), (6, 2)]
    shards = sorted(path.name for path in (tmp_path / "0").glob("train-*"))
    assert len(shards) == 2 and all((tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes() for name in shards)
    again = lacuna.data("imagenet", archives[0], tmp_path / "0", shards=2)
    assert again.train.kept == 2


def test_a_missing_libarchive_is_named_with_its_cure(archives, tmp_path):
    library = next((pathlib.Path(lacuna.__file__).parent / "lib").glob("liblacuna.so*"))
    if TEXT.encode() not in library.read_bytes():
        pytest.skip("this library links libarchive")
    (tmp_path / "libarchive.so.13").write_text("no library")
    code = f"import lacuna; lacuna.data('imagenet', {str(archives[0])!r}, {str(tmp_path / 'out')!r}, shards=2)"
    run = subprocess.run([sys.executable, "-c", code], env={"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
                         capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "ILSVRC2012_img_train.tar: libarchive, which reads it, cannot be loaded" in run.stderr
    assert "libarchive13" in run.stderr and not list(tmp_path.glob("out/train-*"))
