#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models whose large tensors stay in their files: the same bytes as in memory, memory that does not grow with the model,
and nothing left where a run is killed.

    large.py --lacuna build/release/lacuna [--huge [--folder FOLDER]]

--huge: 3 GB of f16, permuted, pruned and verified, and the shape of a 7-billion-parameter decoder in a sparse file; needs
20 GB of disk. What a run may take is a limit of the system (RLIMIT_DATA): private memory that is written to, so that pages
of files are not in it.
"""
import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import large_model

MIB = 1 << 20
STREAMED = 72  # MiB: less than four times the small model, so that it is streamed


def fail(text):
    sys.exit(f"large.py: {text}")


class Runner:
    def __init__(self, lacuna, folder):
        self.lacuna, self.folder = str(lacuna), folder
        self.spills = folder / "spills"
        self.spills.mkdir()

    def start(self, arguments, data_mib=None):
        def limit():
            if data_mib:
                resource.setrlimit(resource.RLIMIT_DATA, (data_mib * MIB, data_mib * MIB))
        return subprocess.Popen([self.lacuna, *map(str, arguments)], preexec_fn=limit, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=dict(os.environ, TMPDIR=str(self.spills)))

    def run(self, arguments, data_mib=None):
        process = self.start(arguments, data_mib)
        out, err = process.communicate(timeout=7200)
        return process.returncode, out, err

    def call(self, arguments, data_mib=None):
        status, out, err = self.run(arguments, data_mib)
        if status:
            fail(f"{' '.join(map(str, arguments))}: status {status}\n{err}")
        return out + err

    def expect_no_spill(self, when):
        if os.listdir(self.spills):
            fail(f"{when}: leaves {os.listdir(self.spills)} among temporary files")


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in (".onnx", ".bin", ".data")}


def report_of(path):
    report = json.loads(path.read_text())
    for name in [n for n in report["summary"] if n.endswith("_seconds")]:
        del report["summary"][name]
    report.pop("prediction", None)  # of a run with these threads
    return report


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def same_as_in_memory(runner, folder, model):
    """prune, permute and back, check: once in memory, once streamed with other numbers of threads."""
    wanted = None
    for memory, threads in ("4G", 2), (f"{STREAMED}M", 1), (f"{STREAMED}M", 3):
        out = fresh(folder / "out")
        rest = ["--max-memory", memory, "--threads", threads]
        runner.call(["prune", "--no-calibration", model, "-o", out / "p.onnx", "--effort", "fast", "--json", out / "p.json", "--save-permutation",
                     out / "order.json", *rest])
        pruned = {name: data for name, data in contents(out).items()}
        runner.call(["permute", model, "-o", fresh(out / "a") / "a.onnx", "--apply", out / "order.json", *rest])
        runner.call(["permute", out / "a" / "a.onnx", "-o", fresh(out / "b") / "b.onnx", "--invert", out / "order.json", *rest])
        runner.call(["check", out / "p.onnx", "--json", out / "c.json", *rest])
        checked, report = report_of(out / "c.json"), report_of(out / "p.json")
        found = (pruned, contents(out / "a"), contents(out / "b"), checked, report)
        wanted = wanted or found
        for name, was, now in zip(("pruned", "permuted", "inverted", "checked", "reported"), wanted, found):
            if was != now:
                fail(f"{name}: --max-memory {memory}, {threads} threads give something else")
        original = [data for name, data in contents(model.parent).items() if name.endswith(".bin")]
        if [data for name, data in contents(out / "b").items() if not name.endswith(".onnx")] != original:
            fail("applied and inverted, the weights are others")
        if not all(layer["holds_pattern"] for layer in checked["layers"] if layer["eligible"]):
            fail("what was pruned does not hold the pattern")
    runner.expect_no_spill("prune")


def inspects_and_plots(runner, folder, model):
    for memory, measured in ("4G", True), (f"{STREAMED}M", False):
        runner.call(["inspect", model, "--json", folder / "i.json", "--force", "--max-memory", memory])
        if json.loads((folder / "i.json").read_text())["summary"].get("measured", True) != measured:
            fail(f"inspect --max-memory {memory}: measured is not {measured}")
    runner.call(["plot", model, "-o", folder / "p.dot", "--max-memory", f"{STREAMED}M"])
    status, _, err = runner.run(["prune", "--no-calibration", model, "-o", folder / "no.onnx", "--max-memory", "2M"])
    if status != 1 or "weight (stored)" not in err or (folder / "no.onnx").exists():
        fail(f"--max-memory 2M: status {status}: {err}")


def least_data(runner, arguments, low, high):
    """MiB with which it is done, to 2."""
    while high - low > 2:
        middle = (low + high) // 2
        if runner.run(arguments, middle)[0] == 0:
            high = middle
        else:
            low = middle
    return high


def memory_stays(runner, folder):
    """Three times the blocks: hardly more memory than for one, streamed; in memory it does not fit there."""
    models = []
    for blocks in 3, 9:
        made = fresh(folder / f"blocks{blocks}")
        size = large_model.Decoder(512, 1408, 8, blocks).save(made)
        models.append((made / "m.onnx", size))
    out = folder / "grown.onnx"

    def prune(model, memory):
        return ["prune", "--no-calibration", model, "-o", out, "--force", "--no-permute", "--threads", 1, "--max-memory", memory]

    least = least_data(runner, prune(models[0][0], "60M"), 8, 400)
    grown, n = models[1]
    status, _, err = runner.run(prune(grown, "60M"), least + 6)
    if status:
        fail(f"{n >> 20} MiB, streamed, do not fit where a third does: {least + 6} MiB\n{err}")
    if runner.run(prune(grown, "4G"), least + 6)[0] == 0:
        fail("the limit of memory limits nothing")


def dies_without_trace(runner, folder, model):
    """Killed at moments all through the run; and ended, as Ctrl-C does."""
    out = fresh(folder / "killed")
    arguments = ["prune", "--no-calibration", model, "-o", out / "o.onnx", "--no-permute", "--threads", 2, "--max-memory", f"{STREAMED}M"]
    start = time.monotonic()
    runner.call(arguments)
    whole, finished = time.monotonic() - start, sorted(os.listdir(out))
    for sign in signal.SIGKILL, signal.SIGTERM:
        for part in range(1, 9):
            fresh(out)
            process = runner.start(arguments)
            time.sleep(whole * part / 9)
            process.send_signal(sign)
            process.communicate()
            left = os.listdir(out)
            odd = [name for name in left if not re.fullmatch(r"\.lacuna-[-0-9a-f]+\.tmp", name)]
            if process.returncode and (odd if sign == signal.SIGKILL else left) and sorted(odd) != finished:
                fail(f"{sign.name} at {part}/9: leaves {left}")
            runner.expect_no_spill(f"{sign.name} at {part}/9")
    fresh(out)
    process = runner.start(arguments)
    time.sleep(whole / 2)
    process.kill()
    process.communicate()
    runner.call(arguments + ["--force"])  # takes away what a killed one left
    if [name for name in os.listdir(out) if name.startswith(".")]:
        fail(f"the next run leaves {os.listdir(out)}")


# ---- Huge ----

def timed(runner, what, arguments, data_mib=None):
    start = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = runner.start(arguments, data_mib)
    peak = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, *(int(n) for n in re.findall(r"RssAnon:\s+(\d+)", status)), 0)
        except (OSError, ValueError, TypeError):
            pass
        time.sleep(0.05)
    out, err = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        fail(f"{what}: status {process.returncode}\n{err}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{what}: {time.monotonic() - start:.1f} s, {used:.1f} s of processors, {peak >> 10} MiB of its own at most", flush=True)
    return out + err


def three_gigabytes(runner, folder):
    made = fresh(folder / "three")
    hidden, inner, blocks = 2048, 5504, 30
    size = large_model.Decoder(hidden, inner, 16, blocks, n_files=2).save(made)
    largest = 2 * blocks * (3 * hidden * hidden + 2 * hidden * inner)  # all that reads the sum of the blocks
    out = fresh(folder / "three-out")
    text = timed(runner, f"prune, {size / 1e9:.2f} GB", ["prune", "--no-calibration", made / "m.onnx", "-o", out / "o.onnx", "--effort", "fast",
                  "--time-limit", 60],
                 min(1024, largest // MIB + 1024))
    if "verified" not in text:
        fail("not verified")
    text = timed(runner, "check", ["check", out / "o.onnx"], 1024)
    shutil.rmtree(made)
    shutil.rmtree(out)


def seven_billion(runner, folder):
    made = fresh(folder / "seven")
    size = large_model.Decoder(4096, 11008, 32, 32, vocabulary=32000, filled=1 << 18).save(made)
    timed(runner, f"inspect, {size / 1e9:.2f} GB", ["inspect", made / "m.onnx"], 1024)
    out = fresh(folder / "seven-out")
    timed(runner, "prune --no-permute", ["prune", "--no-calibration", made / "m.onnx", "-o", out / "o.onnx", "--no-permute"], 2048)
    data = [path for path in out.iterdir() if path.suffix == ".bin" or path.suffix == ".data"]
    if sum(path.stat().st_size for path in data) != size:
        fail("the data are of another size")
    taken = sum(path.stat().st_blocks * 512 for path in data)
    print(f"written: {size / 1e9:.2f} GB, {taken / 1e9:.2f} GB of disk", flush=True)
    if taken > size / 10:
        fail("zeros were written")
    timed(runner, "check", ["check", out / "o.onnx"], 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    parser.add_argument("--huge", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path, help="where files go (a new folder in it)")
    parser.add_argument("--only", help="of --huge: three or seven")
    given = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lacuna-large-", dir=given.folder))
    try:
        runner = Runner(given.lacuna.resolve(), folder)
        if given.huge:
            if given.only != "seven":
                three_gigabytes(runner, folder)
            if given.only != "three":
                seven_billion(runner, folder)
            return
        made = fresh(folder / "model")
        size = large_model.Decoder(256, 704, 4, 12, n_files=2).save(made)
        assert size > STREAMED * MIB // 4, size
        model = made / "m.onnx"
        same_as_in_memory(runner, folder, model)
        inspects_and_plots(runner, folder, model)
        memory_stays(runner, folder)
        dies_without_trace(runner, folder, model)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
