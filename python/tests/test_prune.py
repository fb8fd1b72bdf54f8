# SPDX-License-Identifier: Apache-2.0
"""prune, check, inspect and the others; data in every form; progress, log and Ctrl-C; what reports have."""
import copy
import logging
import os
import pickle
import signal
import threading
import time

import numpy
import pytest

import lacuna

QUICK = {"effort": "fast", "verify": False, "no_calibration": True}
FITTED = {"effort": "fast", "verify": False, "permute": False, "score": "wanda", "solve": False}


def test_data_in_every_form_is_the_same(digits, images, tmp_path):
    images = images[:16]
    numpy.save(tmp_path / "image.npy", images)
    batches = [{"image": images[at:at + 5]} for at in range(0, len(images), 5)]
    forms = [str(tmp_path / "image.npy"), images, {"image": images}, (images,), batches, iter(batches),
             [images[:7], images[7:]], images.astype(numpy.float64)]
    made = {lacuna.prune(digits, calibration=data, calibration_samples=16, **FITTED).model.to_bytes() for data in forms}
    assert len(made) == 1
    endless = (batch for _ in iter(int, 1) for batch in batches)
    report = lacuna.prune(digits, calibration=endless, calibration_samples=20, **FITTED)
    assert report.calibration.samples + report.calibration.held_back == 20
    with pytest.raises(LookupError, match="no samples"):
        lacuna.prune(digits, calibration=[], **FITTED)


def test_images_are_drawn_where_there_are_none(digits):
    drawn = lacuna.prune(digits, effort="fast", permute=False)
    named = lacuna.prune(digits, effort="fast", permute=False, calibration="synthetic")
    assert drawn.calibration.synthetic and drawn.model.to_bytes() == named.model.to_bytes()
    assert drawn.calibration.error_magnitude > drawn.calibration.outputs_error and drawn.uncalibrated is None
    plain = lacuna.prune(digits, permute=False, **{**QUICK, "verify": True})
    assert plain.calibration is None
    assert lacuna.prune(digits, permute=False, score="magnitude").model.to_bytes() == plain.model.to_bytes()
    with pytest.raises(ValueError, match="wanted one"):
        lacuna.prune(digits, calibration="synthetic", no_calibration=True)
    with pytest.raises(ValueError, match="it goes with calibration=DATA"):
        lacuna.prune(digits, calibration="synthetic", calibration_synthetic=True)


def test_labels_judge(digits, images):
    labels = numpy.arange(64) % 10
    assert lacuna.prune(digits, calibration=(images, labels), **FITTED).calibration.labelled > 0
    scored = lacuna.evaluate(digits, {"image": images, "labels": labels})
    assert scored.images == 64 and scored.top1 == lacuna.evaluate(digits, (images, labels.astype("int32"))).top1


def test_a_report_is_plain_data(digits, tmp_path):
    report = lacuna.prune(digits, tmp_path / "out.onnx", save_permutation=tmp_path / "order.json", json=tmp_path / "report.json",
                          no_calibration=True)
    assert (tmp_path / "report.json").read_text() == report.to_json() and report.json()["summary"]["pruned"] == 8
    assert report.summary.pruned == sum(layer.pruned for layer in report.layers) == 8 and report.summary.verification == "verified"
    layer = report.layer("layer1.0.conv1.weight")
    assert layer is report.layer("layer1.0.conv1") and layer.shape == (32, 32, 3, 3) and layer.dtype == "f32"
    mask, old = report.mask_of(layer.weight), lacuna.Model(digits).tensors[layer.weight]
    rows, columns = report.order_of(layer.weight, 0), report.order_of(layer.weight, 1)
    assert (report.model.tensors[layer.weight] == numpy.where(mask, old[rows][:, columns], 0)).all() and 2 * mask.sum() == mask.size
    free = [group for group in report.groups if not group.frozen]
    assert free and all(sorted(group.permutation) == list(range(group.channels)) for group in free)
    assert "8 of 10 layers are pruned 2:4" in repr(report)
    assert "<td>layer1.0.conv1</td>" in report._repr_html_()
    for other in (pickle.loads(pickle.dumps(report)), copy.copy(report)):
        assert other.summary == report.summary
    again = lacuna.permute(report.model, invert=tmp_path / "order.json")
    assert (again.model.tensors["conv1.weight"] == lacuna.Model(digits).tensors["conv1.weight"]).all()


def test_check_inspect_plot_pack(digits, tmp_path):
    out, packed = tmp_path / "out.onnx", tmp_path / "out.lac"
    lacuna.prune(digits, out, verify=False, no_calibration=True, solve=False)
    assert lacuna.check(out, against=digits, target="tensorrt").holds_pattern and not lacuna.check(digits).holds_pattern
    with pytest.raises(lacuna.Error):
        other = lacuna.Model(digits)
        other.tensors["fc.weight"] = 2 * other.tensors["fc.weight"]
        lacuna.check(out, against=other)
    assert "may change places" in lacuna.inspect(digits, why="layer1.0.conv1")
    assert lacuna.inspect(digits, plan=True, engine="cpu").plan.n_fast > 20
    lacuna.plot(digits, tmp_path / "net.dot")
    assert "digraph" in (tmp_path / "net.dot").read_text()
    assert lacuna.pack(out, packed).n_packed == 8
    lacuna.unpack(packed, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == out.read_bytes()
    timed = lacuna.bench(packed, batch=2, runs=3, threads=1, json=tmp_path / "bench.json")
    assert timed.batch == 2 and timed.layers and (tmp_path / "bench.json").stat().st_size > 100


def test_quantize(digits, images):
    report = lacuna.quantize(digits, calibration=images, quantize_range="minmax", **FITTED)
    assert report.quantization.range == "minmax" and any(layer.weight for layer in report.quantization.layers)


def test_quantize_at_run_time(digits, images):
    report = lacuna.quantize(digits, quantize="dynamic-int8", no_calibration=True)
    found = report.quantization
    assert found.format == "dynamic-int8" and found.range is None and found.n_quantized == 1 and not found.values
    assert "there are no samples" in found.outputs_reason
    report = lacuna.prune(digits, quantize="dynamic-int8", calibration=images, **FITTED)
    assert report.quantization.outputs_error < 1e-3
    with pytest.raises(ValueError, match="quantize_range='mse': it goes with quantize=\"qdq-int8\""):
        lacuna.prune(digits, quantize="dynamic-int8", quantize_range="mse", no_calibration=True)
    with pytest.raises(ValueError, match="wanted qdq-int8 or dynamic-int8"):
        lacuna.prune(digits, quantize="int4", no_calibration=True)


def test_progress_and_log(digits, caplog):
    seen = []
    with caplog.at_level(logging.DEBUG, "lacuna"):
        lacuna.prune(digits, progress=lambda what, done, total: seen.append((what, done, total)), no_calibration=True)
    assert ("verification", 1, 1) in seen and {record.levelno for record in caplog.records} >= {logging.INFO, logging.DEBUG}
    lacuna.prune(digits, progress=True, **QUICK)

    def refuse(*_):
        raise KeyError("no more")
    with pytest.raises(KeyError, match="no more"):
        lacuna.prune(digits, progress=refuse)


def test_jobs_of_two_threads_have_their_own_progress(digits):
    seen = {}

    def work(seed):
        mine = seen[seed] = []
        lacuna.prune(digits, seed=seed, progress=lambda *event: mine.append((threading.get_ident(), *event)), **QUICK)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len({event[0] for event in events}) == 1 for events in seen.values())


def test_ctrl_c_ends_the_work(digits):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what it leaves in the background with SIGINT ignored
    pressed = []

    def press(*_):
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)  # any thread may get the signal; this one sees it by then
    with pytest.raises(KeyboardInterrupt):
        lacuna.prune(digits, strategy="swap", time_limit=60, no_calibration=True, progress=press)
    assert lacuna.prune(digits, **QUICK).summary.pruned == 8, "an interrupt ends one job, not the next one"
