#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training by two processes of one thread each: against one process, two that do not know of each other, and PyTorch.

    bench/processes.py [--build build/release] [--only scaling|busy|hidden] [--network NETWORK] [--rounds N] [--quick]
                       [--torch PYTHON] [--json FILE] [--tables] [--docs] [--record]

scaling: images a second of one process, of two under mpirun and of two runs at the same time, alternating. busy: two processes
of Lacuna and of PyTorch (DistributedDataParallel, gloo), alternating, while another program keeps the first core busy. hidden:
what share of its sums a training overlaps with backward, on two hosts with 1 Gbit/s between them (tests/hosts; needs root).
Steps are those of log.jsonl, without the first ones. --docs writes the table of docs/explain/scaling.md. It needs a quiet machine of
two cores or more; --quick only shows that all works.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

import ledger
import scaling
from page import fill
from scaling_model import Cluster, gigabits, simulate

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/hosts"))
import link  # noqa: E402  the hosts of the tests

PAGE = TOP / "docs/explain/scaling.md"
SHARED = TOP.parent / "shared/data"
NAMES = {"cifar-resnet56": "CIFAR ResNet-56", "resnet50": "ResNet-50"}
BATCH = {"cifar-resnet56": 128, "resnet50": 16}
STEPS = {"cifar-resnet56": 24, "resnet50": 8}
QUICK = {"cifar-resnet56": (16, 5), "resnet50": (2, 4)}  # batch and steps
HIDDEN_BATCH = 32
WANTED = {("cifar-resnet56", "one"): 1.8, ("resnet50", "one"): 1.7, "pair": 0.95, "busy": 0.8}
SKIPPED = 2  # first steps of a run
MEAN = 0.1  # what a step weighs in the log's running mean
SECONDS = 1800


class Failed(Exception):
    """A run failed; the text says which, and its last lines."""


# ---- data ----

def noise_for_cifar(folder):
    """CIFAR's files with noise in them: 2000 images."""
    folder.mkdir()
    rng = random.Random(1)
    for name in [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]:
        (folder / name).write_bytes(b"".join(bytes([k % 10]) + rng.randbytes(3072) for k in range(400)))


def copies_of_photographs(folder):
    """Two classes of 160 photographs each."""
    for name in ("colour", "subsampled"):
        (folder / name).mkdir(parents=True)
        for k in range(160):
            shutil.copy(TOP / f"tests/fixtures/data/{name}.jpg", folder / name / f"{k}.jpg")


def data_of(network, temporary):
    """Photographs and CIFAR next to the repository where they are, else random images of their shape."""
    name, make = ("imagenet-sample", copies_of_photographs) if network == "resnet50" else \
                 ("cifar-10-batches-bin", noise_for_cifar)
    if (SHARED / name).is_dir():
        return SHARED / name
    if not (temporary / name).exists():
        make(temporary / name)
    return temporary / name


# ---- runs ----

def train_command(arguments, network, batch, steps, folder, temporary):
    return [str(arguments.build / "lacuna"), "train", "--arch", network, "--data", str(data_of(network, temporary)),
            "--batch-size", str(batch), "--steps", str(steps), "--threads", "1", "--no-eval",
            "--model-dir", str(folder / "run"), "-o", str(folder / "net.onnx"), "--json", str(folder / "result.json"), "-q"]


def seconds_of_steps(folder, images):
    """Of each step: the log has a running mean of them, as images a second."""
    lines = [json.loads(line) for line in (folder / "run/log.jsonl").read_text().splitlines()]
    means = [images / line["images_per_second"] for line in lines if "lr" in line]
    return means[:1] + [before + (now - before) / MEAN for before, now in zip(means, means[1:])]


def start(command, environment=None):
    one = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**(environment or os.environ), **one})


def finish(process):
    """What it said."""
    said, _ = process.communicate(timeout=SECONDS)
    if process.returncode:
        raise Failed(f"{process.args[0]} ended with {process.returncode}: {said[-1500:]}")
    return said


def images_per_second(times, images):
    return images / statistics.median(times[min(SKIPPED, len(times) - 1):])


def run_one(arguments, network, batch, steps, folder, temporary):
    finish(start(train_command(arguments, network, batch, steps, folder, temporary)))
    return images_per_second(seconds_of_steps(folder, batch), batch)


def run_pair(arguments, network, batch, steps, folder, temporary):
    """Two that do not know of each other."""
    folders = [folder / "a", folder / "b"]
    for one in folders:
        one.mkdir()
    runs = [start(train_command(arguments, network, batch, steps, one, temporary)) for one in folders]
    for run in runs:
        finish(run)
    return sum(images_per_second(seconds_of_steps(one, batch), batch) for one in folders)


def run_two(arguments, network, batch, steps, folder, temporary):
    finish(start(["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none",
                  *train_command(arguments, network, batch, steps, folder, temporary)]))
    return images_per_second(seconds_of_steps(folder, 2 * batch), 2 * batch)


def run_torch(arguments, network, batch, steps, *_):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ranks = [start([arguments.torch, TOP / "bench/processes_peer.py", network, batch, steps, 1, "channels_last", rank, 2, port])
             for rank in range(2)]
    said = [finish(rank) for rank in ranks]
    times = json.loads(next(line for line in said[0].splitlines() if line.startswith('{"version"')))
    arguments.torch_version = times["version"]
    return images_per_second(times["seconds"], 2 * batch)


@contextlib.contextmanager
def busy_core():
    """A program that never rests, on the first core."""
    first = min(os.sched_getaffinity(0))
    spin = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{first}])\nwhile True: pass"])
    try:
        yield
    finally:
        spin.kill()
        spin.wait()


def alternate(arguments, network, methods):
    """{method: images a second of each round}"""
    batch, steps = QUICK[network] if arguments.quick else (BATCH[network], STEPS[network])
    found, rng = {method: [] for method in methods}, random.Random(network)
    for _ in range(arguments.rounds):
        order = list(methods)
        rng.shuffle(order)
        for method in order:
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary) / "run"
                folder.mkdir()
                found[method].append(methods[method](arguments, network, batch, steps, folder, pathlib.Path(temporary)))
            print(f"{network}, {method}: {found[method][-1]:.2f} images/s", flush=True)
    return {"network": network, "batch": batch, "steps": steps, "images_per_second": found}


def measure_hidden(arguments):
    batch, steps = (2, 4) if arguments.quick else (HIDDEN_BATCH, 6)
    why = link.why_not(arguments.build)
    if why:
        return {"missing": why}
    with tempfile.TemporaryDirectory() as temporary, link.Hosts(arguments.build) as hosts:
        folder = pathlib.Path(temporary)
        finish(start(hosts.mpirun(*train_command(arguments, "resnet50", batch, steps, folder, folder)), hosts.environment()))
        result = json.loads((folder / "result.json").read_text())
        if result["hidden"] is None:
            raise Failed(f"a training by {result['processes']} processes says nothing of sums")
        speed = images_per_second(seconds_of_steps(folder, 2 * batch), 2 * batch)
        return {"network": "resnet50", "batch": batch, "link": f"{hosts.kind}, {hosts.rate:g} Gbit/s, {hosts.delay:g} ms",
                "rate_gbit": hosts.rate, "delay_ms": hosts.delay, "percent": 100 * result["hidden"], "images_per_second": speed}


def measure(arguments):
    results = {"schema": 1, "circumstances": ledger.circumstances(arguments.build), "quick": arguments.quick,
               "rounds": arguments.rounds}
    if "scaling" in arguments.only:
        results["scaling"] = [alternate(arguments, network, {"one": run_one, "two": run_two, "pair": run_pair})
                              for network in arguments.network]
    if "busy" in arguments.only:
        with busy_core():
            results["busy"] = [alternate(arguments, network, {"two": run_two, "torch": run_torch})
                               for network in arguments.network]
        results["torch"] = arguments.torch_version
    if "hidden" in arguments.only:
        results["hidden"] = measure_hidden(arguments)
    return results


# ---- showing ----

def ratio(cell, method, to):
    """(median, least, most) over the rounds."""
    rounds = [a / b for a, b in zip(cell["images_per_second"][method], cell["images_per_second"][to])]
    return statistics.median(rounds), min(rounds), max(rounds)


def row(what, cell, method, to, wanted):
    speeds = cell["images_per_second"]
    middle, least, most = ratio(cell, method, to)
    return (f"| {NAMES[cell['network']]}, {cell['batch']} | {what} | {statistics.median(speeds[method]):.2f} "
            f"| {statistics.median(speeds[to]):.2f} | {middle:.2f} ({least:.2f} to {most:.2f}) | {wanted} |")


def table(results):
    yield "| network, batch of a process | two processes against | images/s | images/s | ratio | wanted |"
    yield "|---|---|---|---|---|---|"
    for cell in results.get("scaling", []):
        yield row("one process", cell, "two", "one", WANTED[cell["network"], "one"])
        yield row("two runs side by side", cell, "two", "pair", WANTED["pair"])
    for cell in results.get("busy", []):
        yield row("PyTorch's two, both next to a busy core", cell, "two", "torch", WANTED["busy"])


def expected_to_hide(hidden):
    """By the model, of a step of the measured length, in percent."""
    work = scaling.resnet50(hidden["images_per_second"] / 2, hidden["batch"], "measured")
    there = Cluster(2, between=gigabits(hidden["rate_gbit"]), between_latency=1e-3 * hidden["delay_ms"])
    return 100 * simulate(work, there)["hidden"]


def lines_below(results):
    hidden, here = results.get("hidden"), results["circumstances"]
    if hidden and "percent" in hidden:
        yield (f"Two hosts ({hidden['link']}), ResNet-50, batch {hidden['batch']}: {hidden['percent']:.1f} % of the sums are "
               f"hidden by backward, {hidden['images_per_second']:.2f} images/s; the model expects "
               f"{expected_to_hide(hidden):.1f} %.")
    elif hidden:
        yield f"Two hosts: not measured, {hidden['missing']}."
    torch = f"PyTorch {results['torch']}; " if "torch" in results else ""
    yield (f"{here['machine']['cpu']}, {here['machine']['cores']} cores, a thread a process, f32, medians of {results['rounds']} "
           f"rounds; {torch}Lacuna {here['commit']}, {here['date']}.")


def figures_of(results):
    out = {}
    for cell in results.get("scaling", []):
        for to in ("one", "pair"):
            out[f"{cell['network']}: two processes to {to}"] = ledger.figure(ratio(cell, "two", to)[0], "x")
    for cell in results.get("busy", []):
        out[f"{cell['network']}: times PyTorch's speed, busy"] = ledger.figure(ratio(cell, "two", "torch")[0], "x")
    if "percent" in results.get("hidden", {}):
        out["sums hidden"] = ledger.figure(results["hidden"]["percent"], "%")
    return out


def parse():
    kinds = ["scaling", "busy", "hidden"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--torch", type=pathlib.Path, default=TOP / "build/venv-torch/bin/python",
                        help="a Python with torch and torchvision (default: that of make check-torch)")
    parser.add_argument("--only", action="append", choices=kinds, help="default: all three")
    parser.add_argument("--network", action="append", choices=list(NAMES), help="default: both")
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 1")
    parser.add_argument("--quick", action="store_true", help="small batches, few steps: does all of it work?")
    parser.add_argument("--json", type=pathlib.Path, help="keep the results there")
    parser.add_argument("--tables", action="store_true", help="measure nothing: show, write or record what --json holds")
    parser.add_argument("--docs", action="store_true", help="write the table of docs/explain/scaling.md")
    parser.add_argument("--record", action="store_true", help="add an entry to bench/ledger.json")
    arguments = parser.parse_args()
    if arguments.tables and not (arguments.json and arguments.json.exists()):
        parser.error("--tables wants --json FILE of an earlier run")
    if arguments.quick and (arguments.docs or arguments.record):
        parser.error("--quick measures nothing worth keeping")
    arguments.only, arguments.network = arguments.only or kinds, arguments.network or list(NAMES)
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 5)
    arguments.build = arguments.build.resolve()
    return arguments


def main():
    arguments = parse()
    try:
        results = json.loads(arguments.json.read_text()) if arguments.tables else measure(arguments)
    except Failed as why:
        raise SystemExit(str(why)) from None
    if arguments.json and not arguments.tables:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    lines = [*table(results), "", *lines_below(results)]
    print("\n" + "\n".join(lines))
    if arguments.docs:
        PAGE.write_text(fill(PAGE.read_text(), "measured", "processes.py", lines))
    ledger.report("processes", figures_of(results), results["circumstances"], arguments.record)


if __name__ == "__main__":
    main()
