#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""two_hosts.py --lacuna LACUNA --checks COMM_MAIN: two processes on two hosts (link.py), 1 Gbit/s and 1 ms apart: the checks
of a group, a training whose result has the bytes of one on a single host, and a cable that is pulled. Skipped where hosts
cannot be made: without root, mpirun, ip netns, or netem and TUN devices."""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import link

TOP = pathlib.Path(__file__).resolve().parents[2]
DIGITS = TOP / "examples/digits"
SECONDS = 300
RESULTS = []


def expect(sentence, held, detail=""):
    RESULTS.append(bool(held))
    if not held:
        print(f"failed: {sentence}: {detail}")


def environment_of(hosts=None):
    own = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1",
           "ASAN_OPTIONS": "detect_leaks=0"}  # Open MPI's own
    return {**(hosts.environment() if hosts else os.environ), **own}


def start(command, hosts=None, **more):
    return subprocess.run([str(word) for word in command], env={**environment_of(hosts), **more}, capture_output=True,
                          text=True, timeout=SECONDS, check=False)


def train(lacuna, folder, *more):
    return [lacuna, "train", "--arch", "digits", "--data", DIGITS, "-o", folder / "net.onnx", "--model-dir", folder / "run",
            "--threads", "1", "--batch-size", "64", "--json", folder / "result.json", *more]


def on_one_host(command):
    return ["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none", *command]


def losses(folder):
    lines = [json.loads(line) for line in (folder / "run/log.jsonl").read_text().splitlines()]
    return [(line["step"], line["loss"]) for line in lines if "lr" in line]


def check_group(hosts, checks):
    done = start(hosts.mpirun("hostname"), hosts)
    expect("mpirun starts a process on each host", sorted(done.stdout.split()) == sorted(hosts.names), done)
    for progress in ("poll", "thread"):
        done = start(hosts.mpirun(checks, options=("-x", "LAC_COMM")), hosts, LAC_COMM=progress)
        expect(f"the group's checks hold between hosts ({progress})", done.stdout.count(": right") == 2, done)


def check_training(hosts, lacuna, folder):
    one, two = folder / "one", folder / "two"
    one.mkdir(), two.mkdir()
    done = start(on_one_host(train(lacuna, one, "--epochs", "2")))
    expect("two processes train on one host", done.returncode == 0, done)
    done = start(hosts.mpirun(*train(lacuna, two, "--epochs", "2")), hosts)
    expect("two processes train on two hosts", done.returncode == 0, done)
    if RESULTS[-2:] == [True, True]:
        expect("with the same losses", losses(one) == losses(two), (losses(one)[:3], losses(two)[:3]))
        same = (one / "net.onnx").read_bytes() == (two / "net.onnx").read_bytes()
        expect("to a network of the same bytes", same)
        result = json.loads((two / "result.json").read_text())
        expect("as two processes", result["processes"] == 2, result)


def wait_until(held, seconds):
    end = time.monotonic() + seconds
    while not held() and time.monotonic() < end:
        time.sleep(0.1)
    return held()


def check_cut(hosts, lacuna, folder):
    """The last check: the link stays down. mpirun itself waits on for the host that it cannot reach, and is ended."""
    log, said = folder / "run/log.jsonl", folder / "said"
    words = hosts.mpirun(*train(lacuna, folder, "--epochs", "1000", "--no-eval", "--checkpoint-steps", "20", "--timeout", "5"))
    with open(said, "w", encoding="utf-8") as out:
        mpirun = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, env=environment_of(hosts))
    goes = wait_until(lambda: mpirun.poll() is not None or log.exists() and log.read_text().count("\n") > 30, 60)
    expect("a training goes on between hosts", goes and mpirun.poll() is None, said.read_text())
    hosts.cut()
    expect("a pulled cable ends it on both", wait_until(lambda: not hosts.running("lacuna"), 60), said.read_text())
    hosts.end_all()
    mpirun.wait()
    expect("which says why", re.search("answer.* for 5 s", said.read_text()), said.read_text())
    kept = list((folder / "run").glob("checkpoint-*.lac"))
    expect("checkpoints stay", kept, said.read_text())
    done = start(on_one_host(train(lacuna, folder, "--recover", "--steps", "200", "--no-eval")))
    expect("and two processes go on from them", kept and done.returncode == 0, done)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    parser.add_argument("--checks", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the hosts go
    lacuna, checks = arguments.lacuna.resolve(), arguments.checks.resolve()
    why = link.why_not(lacuna.parent)
    if why:
        print(f"skipped: {why}\n0 passed, 0 failed")
        return 0
    with tempfile.TemporaryDirectory() as temporary, link.Hosts(lacuna.parent) as hosts:
        print(f"link: {hosts.kind}, {hosts.rate:g} Gbit/s, {hosts.delay:g} ms")
        folder = pathlib.Path(temporary)
        check_group(hosts, checks)
        check_training(hosts, lacuna, folder)
        (folder / "cut").mkdir()
        check_cut(hosts, lacuna, folder / "cut")
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return RESULTS.count(False) > 0


if __name__ == "__main__":
    sys.exit(main())
