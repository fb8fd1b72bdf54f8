#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How docs/how-to/several-machines.md starts a training on many nodes: lines of mpirun, and examples/slurm/train.sbatch, which is run by bash
with stand-ins of srun and scontrol on the digits. The Kubernetes example is in tests/interop/test_launch.py."""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE, SBATCH = TOP / "docs/how-to/several-machines.md", TOP / "examples/slurm/train.sbatch"
DIGITS = TOP / "examples/digits"
# Options of sbatch(1) and what their values look like.
SBATCH_OPTIONS = {"job-name": r"[\w-]+", "nodes": r"\d+", "ntasks-per-node": r"\d+", "cpus-per-task": r"\d+", "exclusive": "",
                  "time": r"(\d+-)?\d+:\d\d:\d\d", "signal": r"(B:|R:|RB:)?[A-Z]+\d?@\d+", "requeue": "",
                  "open-mode": "append|truncate", "output": r"\S+"}
# Of mpirun(1), Open MPI, and how many words follow.
MPIRUN_OPTIONS = {"-np": 1, "--hostfile": 1, "--map-by": 1, "--bind-to": 1, "-x": 1, "--mca": 2, "--allow-run-as-root": 0}
SRUN = """#!/bin/sh
echo "$*" > srun-said
while [ "$1" != lacuna ]; do shift; done
shift 2
model= exported=
while [ $# -gt 0 ]; do
  case $1 in
    --model-dir) model=$2; shift;;
    --export-dir) exported=$2; shift;;
  esac
  shift
done
exec "$LACUNA" train --arch digits --data "$DIGITS" --model-dir "$model" --export-dir "$exported" --recover \\
  --steps "$STEPS" --no-eval --threads 1
"""
SCONTROL = """#!/bin/sh
echo "$*" > scontrol-said
"""
RESULTS = []


def expect(sentence, held, detail=""):
    RESULTS.append(bool(held))
    if not held:
        print(f"failed: {sentence}: {detail}")


def understood(lacuna, words):
    """What `lacuna train` says to a command's words without training."""
    return subprocess.run([str(lacuna), *words[1:], "--print"], capture_output=True, text=True, timeout=60, check=False)


def without_options(words):
    """(the command that mpirun starts, options that it does not know)"""
    words, unknown = words[1:], []
    while words and words[0].startswith("-"):
        if words[0] not in MPIRUN_OPTIONS:
            unknown.append(words[0])
        del words[:1 + MPIRUN_OPTIONS.get(words[0], 0)]
    return words, unknown


def check_page(lacuna):
    lines = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    ")]
    runs = [shlex.split(line) for line in lines if line.startswith("mpirun ")]
    expect("the page starts mpirun", len(runs) >= 2, lines)
    for words in runs:
        command, unknown = without_options(words)
        expect("mpirun has the options", not unknown, unknown)
        done = understood(lacuna, command)
        expect(f"lacuna takes {shlex.join(command)}", command[0] == "lacuna" and done.returncode == 0, done.stderr)
    files = [word for line in lines if line.startswith(("sbatch ", "kubectl ")) for word in line.split() if "/" in word]
    expect("the page names both examples", len(files) == 2 and all((TOP / file).is_file() for file in files), files)


def check_two(lacuna):
    """The page's first line, on the digits."""
    if not shutil.which("mpirun"):
        print("skipped: no mpirun")
        return
    line = next(line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    mpirun "))
    command, _ = without_options(shlex.split(line))
    words = shlex.split(line)[:-len(command)] + [str(lacuna), *command[1:]]
    words = [{"DATA": str(DIGITS), "cifar-resnet20": "digits"}.get(word, word) for word in words]
    own = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
           "ASAN_OPTIONS": "detect_leaks=0"}  # Open MPI's own
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*words, "--epochs", "1"], cwd=folder, env={**os.environ, **own}, capture_output=True, text=True,
                              timeout=300, check=False)
        expect("two processes train", done.returncode == 0 and (pathlib.Path(folder) / "net.onnx").exists(), done.stderr[-800:])


def check_sbatch_text(lacuna):
    done = subprocess.run(["bash", "-n", str(SBATCH)], capture_output=True, text=True, check=False)
    expect("bash can read the script", done.returncode == 0, done.stderr)
    text = SBATCH.read_text()
    asked = re.findall(r"^#SBATCH (.*)$", text, re.M)
    for option in asked:
        name, _, value = option.removeprefix("--").partition("=")
        known = option.startswith("--") and name in SBATCH_OPTIONS
        expect(f"sbatch has {option}", known and re.fullmatch(SBATCH_OPTIONS[name], value), option)
    expect("options come before commands", text.rindex("#SBATCH") < text.index("\nset "))
    command = re.search(r"^srun (.*?) &$", text.replace("\\\n", " "), re.M)[1]
    words = shlex.split(re.sub(r'"?\$SLURM_CPUS_PER_TASK"?', "8", command).replace("$data", "DATA").replace("$run", "run"))
    done = understood(lacuna, words[words.index("lacuna"):])
    expect("lacuna takes the script's command", done.returncode == 0, done.stderr)


def start_job(lacuna, folder, steps):
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LACUNA": str(lacuna), "DIGITS": str(DIGITS),
                   "STEPS": str(steps), "SLURM_CPUS_PER_TASK": "8", "SLURM_JOB_ID": "77"}
    return subprocess.Popen(["bash", str(SBATCH), str(DIGITS)], cwd=folder, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def check_job(lacuna):
    """Its time is over, it goes back into the queue, goes on and ends."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "bin").mkdir()
        for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        log, begin = folder / "resnet50-run/log.jsonl", time.monotonic()
        job = start_job(lacuna, folder, 1000000)
        while job.poll() is None and time.monotonic() - begin < 60 and not (log.exists() and log.stat().st_size > 100):
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        said, _ = job.communicate(timeout=60)
        requeued = folder / "scontrol-said"
        expect("a job whose time is over goes back into the queue",
               requeued.exists() and requeued.read_text() == "requeue 77\n", said[-800:])
        expect("with a checkpoint", list((folder / "resnet50-run").glob("checkpoint-*.lac")), said[-800:])
        words = (folder / "srun-said").read_text().split() if (folder / "srun-said").exists() else []
        expect("srun gets the cores of a task", "--cpus-per-task=8" in words, words)
        requeued.unlink(missing_ok=True)
        done = max((int(re.search(r'"step": (\d+)', line)[1]) for line in log.read_text().splitlines()), default=0)
        job = start_job(lacuna, folder, done + 5)
        said, _ = job.communicate(timeout=120)
        expect("goes on and ends", job.returncode == 0 and (folder / "resnet50-run-net/model.onnx").exists(), said[-800:])
        expect("and stays out of the queue", not requeued.exists())
        job = start_job("/bin/false", folder, 1)
        job.communicate(timeout=60)
        expect("a job that fails stays out, too, with its status", job.returncode == 1 and not requeued.exists())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lacuna", type=pathlib.Path, required=True)
    lacuna = parser.parse_args().lacuna.resolve()
    os.environ.update(TERM="dumb", LC_ALL="C.UTF-8")
    check_page(lacuna)
    check_two(lacuna)
    check_sbatch_text(lacuna)
    check_job(lacuna)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 1 if False in RESULTS else 0


if __name__ == "__main__":
    sys.exit(main())
