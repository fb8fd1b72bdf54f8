# SPDX-License-Identifier: Apache-2.0
"""Arrays, images and their preparation against NumPy and Pillow, by the test tool data_main.

Networks and data in ../shared are used where they are: they show that all steps from a photograph to a network's
input give the accuracies that others measured.
"""
import pathlib
import pickle
import subprocess

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from PIL import Image

from built import tool_path

TOP = pathlib.Path(__file__).resolve().parents[2]
SHARED = TOP.parent / "shared"
FIXTURES = sorted((TOP / "tests/fixtures/data").glob("*.jpg"))
PHOTOGRAPHS = sorted((SHARED / "data/imagenet-sample").glob("*/*.JPEG"))
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def data_main(*words):
    return subprocess.run([tool_path("data_main"), *map(str, words)], capture_output=True, text=True)


def run(*words):
    done = data_main(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refuse(*words):
    done = data_main(*words)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    return done.stderr


# ---- Arrays ----

SHAPES = [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 4, 5), (1, 2, 1, 3, 1, 2, 1, 2)]
TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


def numbers(kind, shape):
    values = np.random.default_rng(1).integers(0, 2**63, size=shape, dtype=np.uint64).reshape(shape)
    most = {"?": 2, "f2": 2048}.get(kind, 2**63)
    return (values % most).astype(kind)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_type_order_and_version_is_read_and_written_as_numpy_does(kind, version, tmp_path):
    for shape in SHAPES:
        for order in "<>":
            for fortran in (False, True):
                array = numbers(kind, shape).astype(np.dtype(kind).newbyteorder(order))
                if fortran:
                    array = np.asfortranarray(array) if array.ndim else array
                with open(tmp_path / "in.npy", "wb") as file:
                    np.lib.format.write_array(file, array, version=version)
                run("npy", tmp_path / "in.npy", tmp_path / "out.npy")
                np.save(tmp_path / "want.npy", np.array(array, dtype=np.dtype(kind).newbyteorder("<"), order="C"))
                assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "want.npy").read_bytes()


def test_bf16_is_written_as_ml_dtypes_has_it_written(tmp_path):
    array = np.random.default_rng(2).standard_normal((3, 1000)).astype("f4")
    np.save(tmp_path / "in.npy", array)
    run("bf16", tmp_path / "in.npy", tmp_path / "out.npy")
    want = (array.view("u4") & 0xFFFF0000).view("f4").astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "want.npy", want)
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "want.npy").read_bytes()
    run("npy", tmp_path / "out.npy", tmp_path / "again.npy")
    assert (tmp_path / "again.npy").read_bytes() == (tmp_path / "want.npy").read_bytes()


@pytest.mark.parametrize("array", [np.zeros(3, "c8"), np.array(["a"]), np.array([{}]), np.zeros(2, "f4,i4"),
                                   np.zeros(2, "M8[s]"), np.zeros([1] * 9)],
                         ids=["complex", "text", "object", "records", "date", "nine axes"])
def test_other_arrays_are_refused(array, tmp_path):
    np.save(tmp_path / "in.npy", array)
    assert "in.npy: " in refuse("npy", tmp_path / "in.npy", tmp_path / "out.npy")
    assert not (tmp_path / "out.npy").exists()


# ---- CIFAR, pickled ----

class Python2Pickler(pickle._Pickler):
    """What Python 2 wrote: bytes are its texts, so that NumPy's arrays and lists look as in CIFAR's files."""
    dispatch = dict(pickle._Pickler.dispatch)

    def save_bytes(self, value):
        code = b"U" + bytes([len(value)]) if len(value) < 256 else b"T" + len(value).to_bytes(4, "little")
        self.write(code + value)
        self.memoize(value)

    def save_text(self, value):
        self.save_bytes(value.encode())

    dispatch[bytes], dispatch[str] = save_bytes, save_text


def pickled(path, value):
    with open(path, "wb") as file:
        Python2Pickler(file, 2).dump(value)


def test_pickles_of_cifar_hold_what_python_reads_in_them(tmp_path):
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (300, 3072), dtype="u1")
    labels = rng.integers(0, 10, 300).tolist()
    pickled(tmp_path / "test_batch", {"batch_label": "testing batch 1 of 1", "labels": labels, "data": pixels,
                                      "filenames": [f"{k}.png" for k in range(300)]})
    pickled(tmp_path / "batches.meta", {"num_cases_per_batch": 300, "num_vis": 3072,
                                        "label_names": [f"kind {k}" for k in range(10)]})
    with open(tmp_path / "test_batch", "rb") as file:
        there = pickle.load(file, encoding="bytes")
    assert (there[b"data"] == pixels).all() and there[b"labels"] == labels
    lines = run("set", tmp_path, "test", "-").splitlines()
    assert lines[0] == "300 images, 10 classes"
    assert lines[1:] == [f"{k}\t{label}\tkind {label}" for k, label in enumerate(labels)]
    run("batches", tmp_path, "test", 64, 0, 2, 0, 1, tmp_path / "x.npy", tmp_path / "y.npy")
    assert (np.load(tmp_path / "x.npy") == pixels.reshape(-1, 3, 32, 32)).all()
    assert np.load(tmp_path / "y.npy").tolist() == labels


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_pickles_that_could_run_something_are_refused(protocol, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    with open(tmp_path / "test_batch", "wb") as file:
        pickle.dump({"labels": [0], "data": Trap()}, file, protocol)
    if protocol > 1:  # others do not look like one of CIFAR's
        assert "test_batch: " in refuse("set", tmp_path, "test", "-")
    assert not (tmp_path / "sprung").exists()


# ---- Images ----

def decoded(path, tmp_path):
    run("image", path, tmp_path / "image.npy")
    return np.load(tmp_path / "image.npy")


def wanted(path):
    return np.asarray(Image.open(path).convert("RGB"))


def scenery(width, height, seed=0):
    """Smooth hills and some noise, in colour."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [127 + 90 * np.sin(x / (5 + 3 * c) + c) * np.cos(y / (9 - c)) for c in range(3)]
    return Image.fromarray(np.clip(np.stack(waves, -1) + rng.normal(0, 15, (height, width, 3)), 0, 255).astype("u1"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_kind_of_jpeg_is_decoded_as_pillow_does(path, tmp_path):
    assert (decoded(path, tmp_path) == wanted(path)).all()


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_odd_sizes_are_decoded_as_pillow_does(mode, progressive, subsampling, tmp_path):
    path = tmp_path / "a.jpg"
    for width, height in [(1, 1), (17, 9), (63, 65), (200, 3)]:
        scenery(width, height).convert(mode).save(path, quality=80, subsampling=subsampling, progressive=progressive)
        assert (decoded(path, tmp_path) == wanted(path)).all()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA"])
def test_every_mode_of_png_is_decoded_as_pillow_does(mode, tmp_path):
    for width, height in [(1, 1), (17, 9), (200, 3)]:
        image = scenery(width, height).convert("RGB" if mode == "PA" else mode)
        if mode in ("LA", "RGBA"):
            image.putalpha(Image.linear_gradient("L").resize((width, height)))
        transparent = {}
        if mode == "PA":
            image, transparent = image.quantize(13), {"transparency": bytes(range(0, 130, 10))}
        path = tmp_path / "a.JPEG"  # the name says nothing
        image.save(path, "png", **transparent)
        assert (decoded(path, tmp_path) == wanted(path)).all()


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("lossless", [False, True])
def test_webp_is_decoded_as_pillow_does(mode, lossless, tmp_path):
    for width, height in [(1, 1), (17, 9), (63, 65)]:
        image = scenery(width, height)
        if mode == "RGBA":
            image.putalpha(Image.linear_gradient("L").resize((width, height)))
        image.save(tmp_path / "a.webp", lossless=lossless, exact=True)
        # Pillow has a libwebp of its own, which may round the colours of lossy files by one.
        apart = decoded(tmp_path / "a.webp", tmp_path).astype(int) - wanted(tmp_path / "a.webp")
        assert np.abs(apart).max() <= (0 if lossless else 1)


def prepared(path, resize, height, width, tmp_path):
    run("prepare", path, resize, height, width, tmp_path / "x.npy")
    return np.load(tmp_path / "x.npy")


def pixels_by_pillow(image, resize, height, width):
    """Resize and CenterCrop as torchvision defines them, on Pillow images."""
    w, h = image.size
    new = (resize, int(resize * h / w)) if w <= h else (int(resize * w / h), resize)
    if resize:  # across, then down: from version 13 on Pillow itself takes very tall images in the opposite order
        across = image.resize((new[0], h), Image.Resampling.BILINEAR)
        image = across.resize(new, Image.Resampling.BILINEAR)
    left, top = int(round((image.width - width) / 2.0)), int(round((image.height - height) / 2.0))
    return np.asarray(image.crop((left, top, left + width, top + height)))


def test_two_passes_are_pillows_one_for_images_of_usual_shape():
    for width, height in [(500, 375), (375, 500), (64, 48), (640, 427)]:
        image = scenery(width, height)
        new = (256, int(256 * height / width)) if width <= height else (int(256 * width / height), 256)
        whole = image.resize(new, Image.Resampling.BILINEAR)
        assert (np.asarray(whole) == pixels_by_pillow(image, 256, new[1], new[0])).all()


def compare(path, resize, height, width, tmp_path):
    got = prepared(path, resize, height, width, tmp_path)
    want = pixels_by_pillow(Image.open(path).convert("RGB"), resize, height, width)
    levels = got.transpose(1, 2, 0) * STD + MEAN
    assert np.abs(levels - want).max() < 1e-3, "not the same grey levels"
    assert (got == ((want.astype(np.float32) - MEAN) / STD).transpose(2, 0, 1)).all()


@pytest.mark.parametrize("size", [(500, 375), (375, 500), (256, 256), (333, 257), (97, 1200), (64, 48), (40, 41), (1, 300)],
                         ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("recipe", [(256, 224, 224), (232, 225, 223), (33, 33, 20), (64, 64, 64), (7, 1, 1)],
                         ids=lambda recipe: "-".join(map(str, recipe)))
def test_images_are_prepared_as_pillow_does(size, recipe, tmp_path):
    path = tmp_path / "a.jpg"
    scenery(*size).save(path, quality=90)
    compare(path, *recipe, tmp_path)


def test_without_resizing_only_the_middle_is_cut(tmp_path):
    path = tmp_path / "a.jpg"
    for width, height in [(32, 32), (33, 35), (40, 37)]:
        scenery(width, height).save(path)
        compare(path, 0, 32, 30, tmp_path)


@pytest.mark.skipif(not PHOTOGRAPHS, reason="no photographs here")
def test_photographs_are_prepared_as_pillow_does(tmp_path):
    for path in PHOTOGRAPHS:
        compare(path, 256, 224, 224, tmp_path)


# ---- The part that training looks at ----

def part(path, sample, side, tmp_path):
    """Left, top, width, height, and its pixels after resizing."""
    place = [int(word) for word in run("part", path, 5, sample, side, tmp_path / "p.npy").split()]
    return place, np.load(tmp_path / "p.npy").transpose(1, 2, 0)


def expect_part_as_by_pillow(path, sample, side, tmp_path):
    (left, top, width, height), got = part(path, sample, side, tmp_path)
    whole = Image.open(path).convert("RGB").crop((left, top, left + width, top + height))
    across = whole.resize((side, height), Image.Resampling.BILINEAR)  # as in pixels_by_pillow
    assert (got == np.asarray(across.resize((side, side), Image.Resampling.BILINEAR))).all(), f"{path} sample {sample}"
    assert np.abs(got - np.asarray(whole.resize((side, side), Image.Resampling.BILINEAR))).max() <= 1


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_parts_are_cropped_and_resized_as_pillow_does(subsampling, tmp_path):
    path = tmp_path / "a.jpg"
    for size in [(500, 375), (375, 500), (97, 400), (40, 41)]:
        scenery(*size).save(path, quality=90, subsampling=subsampling)
        for sample in range(6):
            expect_part_as_by_pillow(path, sample, 224 if sample % 2 else 99, tmp_path)


@pytest.mark.skipif(not PHOTOGRAPHS, reason="no photographs here")
def test_parts_of_photographs_are_too(tmp_path):
    for sample, path in enumerate(PHOTOGRAPHS):
        expect_part_as_by_pillow(path, sample, 224, tmp_path)


@pytest.mark.skipif(not PHOTOGRAPHS, reason="no photographs here")
def test_parts_of_large_photographs_come_smaller_and_nearly_the_same(tmp_path):
    path = tmp_path / "a.jpg"
    for sample, photograph in enumerate(PHOTOGRAPHS[:3]):
        image = Image.open(photograph).convert("RGB")
        image.resize((4 * image.width, 4 * image.height), Image.Resampling.BICUBIC).save(path, quality=92)
        (left, top, width, height), got = part(path, sample, 56, tmp_path)
        whole = Image.open(path).crop((left, top, left + width, top + height))
        want = np.asarray(whole.resize((56, 56), Image.Resampling.BILINEAR)).astype(np.float32)
        wrong = np.abs(got - want)  # up to seven of a thousand pixels at each edge are left out
        assert wrong.mean() < 1 and np.quantile(wrong, 0.99) <= 5


def apart(a, b):
    """Kolmogorov's and Smirnov's distance of two samples."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    return np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max()


def expect_alike(ours, theirs, width, height):
    """Below the 0.1 % point of the distance of two samples of one distribution."""
    limit = 1.95 * np.sqrt(1 / len(ours) + 1 / len(theirs))
    rng = np.random.default_rng(1)
    for name, measure in {"area": lambda r: r[:, 2] * r[:, 3], "aspect": lambda r: np.log(r[:, 2] / r[:, 3]),
                          "left": lambda r: (r[:, 0] + rng.random(len(r))) / (width - r[:, 2] + 1),
                          "top": lambda r: (r[:, 1] + rng.random(len(r))) / (height - r[:, 3] + 1)}.items():
        assert apart(measure(ours.astype(float)), measure(theirs.astype(float))) < limit, name


def draws(width, height, n, tmp_path):
    run("draws", 11, width, height, n, tmp_path / "d.npy")
    return np.load(tmp_path / "d.npy")


def reference_draws(width, height, n):
    """The rule once more, for many images at once."""
    rng = np.random.default_rng(2)
    rows = []
    while len(rows) < n:
        area = width * height * rng.uniform(0.08, 1)
        aspect = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            rows.append((rng.integers(0, width - w + 1), rng.integers(0, height - h + 1), w, h))
    return np.array(rows)


@pytest.mark.parametrize("size", [(500, 375), (333, 500), (224, 224)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_parts_are_drawn_by_the_rule(size, tmp_path):
    expect_alike(draws(*size, 100000, tmp_path), reference_draws(*size, 20000), *size)


@pytest.mark.torch
def test_parts_are_drawn_as_torchvision_does(tmp_path):
    import torch
    from torchvision.transforms import RandomResizedCrop
    for width, height in [(500, 375), (60, 200)]:
        image = torch.zeros(3, height, width)
        torch.manual_seed(3)
        theirs = [RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(100000)]
        theirs = np.array(theirs)[:, [1, 0, 3, 2]]  # top, left, height, width
        expect_alike(draws(width, height, 100000, tmp_path), theirs, width, height)


# ---- Sets, batches, metrics ----

def listing(folder, part="test", classes="-"):
    head, *rows = run("set", folder, part, classes).splitlines()
    return head, [row.split("\t") for row in rows]


def test_folders_are_listed_in_pythons_order(tmp_path):
    files = {"b": ["2.jpg", "10.jpg", "a.JPEG"], "a": ["ä.jpg", "z.jpg"], "B": ["x.Jpeg", ".hidden.jpg", "note.txt"], "c d": ["1.jpe"]}
    for name, members in files.items():
        (tmp_path / name).mkdir()
        for member in members:
            scenery(9, 9).save(tmp_path / name / member, "jpeg")
    head, rows = listing(tmp_path)
    assert head == "7 images, 4 classes"
    assert [(int(label), name) for _, label, name in rows] == \
        [(k, name) for k, name in enumerate(sorted(files)) for member in files[name] if member not in (".hidden.jpg", "note.txt")]


def test_wordnet_ids_are_imagenets_classes(tmp_path):
    table = SHARED / "models/imagenet_classes.txt"
    if not table.exists():
        pytest.skip("no list of classes here")
    ids = [line.split("\t")[1] for line in table.read_text().splitlines()]
    for name in ids:
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.jpg").symlink_to(FIXTURES[0])
    head, rows = listing(tmp_path)
    assert head == "1000 images, 1000 classes" and [row[1:] for row in rows] == [[str(k), name] for k, name in enumerate(ids)]


def write_cifar10(folder, n):
    rng = np.random.default_rng(5)
    records = rng.integers(0, 256, (n, 3073), dtype=np.uint8)
    records[:, 0] %= 10
    (folder / "test_batch.bin").write_bytes(records.tobytes())
    return records


def batches(folder, tmp_path, batch, limit, threads, mean="-", std="-", part="test"):
    run("batches", folder, part, batch, limit, threads, mean, std, tmp_path / "x.npy", tmp_path / "labels.npy")
    return np.load(tmp_path / "x.npy"), np.load(tmp_path / "labels.npy")


def test_batches_of_cifar_hold_what_the_file_holds(tmp_path):
    records = write_cifar10(tmp_path, 103)
    want = (records[:, 1:].reshape(-1, 3, 32, 32).astype("f4") - MEAN[:, None, None]) / STD[:, None, None]
    for batch, threads, limit in [(1, 1, 0), (7, 3, 0), (103, 2, 0), (500, 1, 0), (10, 2, 25)]:
        x, labels = batches(tmp_path, tmp_path, batch, limit, threads)
        n = limit or 103
        assert (x == want[:n]).all() and (labels == records[:n, 0]).all()


def test_metrics_are_numpys(tmp_path):
    rng = np.random.default_rng(6)
    logits = np.round(rng.standard_normal((500, 20)) * 4).astype("f4")  # many ties
    labels = rng.integers(0, 20, 500).astype("i4")
    np.save(tmp_path / "z.npy", logits)
    np.save(tmp_path / "y.npy", labels)
    top1, top5, loss = map(float, run("metrics", tmp_path / "z.npy", tmp_path / "y.npy").split())
    order = np.argsort(-logits, axis=1, kind="stable")
    z = logits.astype("f8")
    each = np.log(np.exp(z).sum(1)) - z[np.arange(500), labels]
    assert top1 == 100 * np.mean(order[:, 0] == labels)
    assert top5 == pytest.approx(100 * np.mean((order[:, :5] == labels[:, None]).any(1)), abs=1e-12)
    assert loss == pytest.approx(each.mean(), rel=1e-12)


def answers(model, x, batch):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: x[k:k + batch]})[0] for k in range(0, len(x), batch)])


def measured(model, x, labels, batch, tmp_path):
    np.save(tmp_path / "z.npy", answers(model, x, batch))
    return list(map(float, run("metrics", tmp_path / "z.npy", tmp_path / "labels.npy").split()))


def test_a_network_on_photographs_is_as_good_as_others_measured(tmp_path):
    model = SHARED / "models/efficientnet_lite0.onnx"
    if not model.exists() or len(PHOTOGRAPHS) != 100:
        pytest.skip("no network and photographs here")
    x, labels = batches(SHARED / "data/imagenet-sample", tmp_path, 8, 0, 2, mean=127, std=128)
    top1, top5, _ = measured(model, x, labels, 1, tmp_path)
    assert (top1, top5) == (pytest.approx(89, abs=1), pytest.approx(99, abs=1))


def test_a_network_on_cifar_is_as_good_as_others_measured(tmp_path):
    model, folder = SHARED / "models/resnet20_cifar10.onnx", SHARED / "data/cifar-10-batches-bin"
    if not model.exists() or not folder.exists():
        pytest.skip("no network and images here")
    x, labels = batches(folder, tmp_path, 100, 2000, 2)
    assert np.bincount(labels, minlength=10).min() > 100
    assert measured(model, x, labels, 100, tmp_path)[0] == pytest.approx(91.73, abs=1.5)
