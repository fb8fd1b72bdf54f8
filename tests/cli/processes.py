#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""processes.py --lacuna LACUNA --checks COMM_MAIN: several processes under mpirun. Skipped where there is no mpirun."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 240
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx"


def environment(**more):
    """Threads of one each; mpirun may run as root (a container), and more processes than cores."""
    own = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1",
               ASAN_OPTIONS="detect_leaks=0")  # of Open MPI
    own.update(more)
    return own


def mpirun(n, *command, **more):
    """Starts n processes; returns what ended."""
    return subprocess.run(["mpirun", "-np", str(n), "--oversubscribe", *map(str, command)], env=environment(**more),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)


class Checks:
    """One method a check; names begin with check_."""

    def __init__(self, args):
        self.lacuna, self.comm_main = args.lacuna, args.checks

    def check_the_group_over_mpi(self):
        for n in (1, 2, 3, 5):
            run = mpirun(n, self.comm_main)
            assert run.returncode == 0, run.stderr
            assert run.stdout.count(": right") == n, run.stdout

    def check_a_process_that_hangs_is_named(self):
        begin = time.monotonic()
        run = mpirun(2, self.comm_main, 60, 0)
        assert run.returncode != 0 and "process 0 has not answered for 2 s" in run.stderr, run.stderr
        assert time.monotonic() - begin < 40

    def check_process_0_saves_before_all_are_ended(self):
        """Process 2 dies, or hangs; process 0 then saves for 3 s, in which process 1 must not end it. mpirun, which kills
        all a second after a death, is told to wait there."""
        for seconds, text, timeout_s in ((0, "has died", 4), (60, "process 2 has not answered for 12 s", 1)):
            run = mpirun(3, self.comm_main, seconds, 2, 3, OMPI_MCA_odls_base_sigkill_timeout=str(timeout_s))
            assert run.returncode != 0 and text in run.stderr, run.stderr
            assert "saved" in run.stdout, f"after {text}: {run.stdout} {run.stderr}"
            assert run.stderr.count("comm_main: ") == 1, f"told by several: {run.stderr}"

    def check_a_plugin_that_is_not_there_is_named(self):
        run = mpirun(2, self.comm_main, LACUNA_MPI="/nowhere/mpi.so")
        assert run.returncode == 1
        text = "mpirun started 2 processes, but the MPI plug-in cannot be used: /nowhere/mpi.so"
        assert text in run.stderr, run.stderr
        run = mpirun(2, self.lacuna, "prune", DIGITS, "-o", "/nowhere/o.onnx", LACUNA_MPI="/nowhere/mpi.so")
        assert run.returncode == 1 and run.stderr.count(text) == 1, f"not told once: {run.stderr}"

    def check_a_process_that_cannot_join_says_so(self):
        """Process 1 joins MPI, as any of its programs, and introduces itself to nobody: process 0 says who is missing,
        before it ends all."""
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "lacuna.sh")
            script.write_text('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec "$COMM_MAIN" 60\nexec "$@"\n')
            script.chmod(0o755)
            run = mpirun(2, script, self.lacuna, "prune", DIGITS, "-o", f"{folder}/o.onnx", "--timeout", 2,
                         COMM_MAIN=self.comm_main)
            assert run.returncode != 0 and "lacuna: process 1 has not answered for 2 s" in run.stderr, run.stderr

    # ---- The command ----

    def check_a_short_verb_is_done_once(self):
        for words in (["version"], ["inspect", DIGITS, "--wide"], ["check", DIGITS, "--json", "-"]):  # its pipe is a terminal
            alone = subprocess.run([self.lacuna, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            run = mpirun(3, self.lacuna, *words)
            assert run.stdout == alone.stdout and run.returncode == alone.returncode, (words, run)

    def check_prune_gives_the_bytes_of_one_process(self):
        with tempfile.TemporaryDirectory() as folder:
            wanted = self.prune(folder, 0, "prune")
            for n in (1, 2, 3):
                assert self.prune(folder, n, "prune") == wanted, n
            assert self.prune(folder, 2, "permute") == self.prune(folder, 0, "permute")

    def prune(self, folder, n, verb):
        """All that a run of n processes (0: without mpirun) says and writes, but for times."""
        out = Path(folder, f"{verb}{n}")
        out.mkdir()
        plain = ["--no-calibration"] if verb == "prune" else []
        words = [self.lacuna, verb, DIGITS, *plain, "--threads", "1", "-o", out / "net.onnx", "--save-permutation", out / "order.json",
                 "--json", out / "report.json", "--plot", out / "net.dot", "--wide"]
        run = mpirun(n, *words) if n else subprocess.run([str(w) for w in words], stdout=subprocess.PIPE,
                                                         stderr=subprocess.PIPE, text=True, check=False)
        assert run.returncode == 0, run.stderr
        report = json.loads((out / "report.json").read_text())
        for name in list(report["summary"]):
            if name.endswith("seconds"):
                del report["summary"][name]
        log = [line for line in run.stderr.splitlines() if not line.startswith("saved ")]  # names differ
        names = sorted(os.listdir(out))
        return [names, run.stdout, log, report] + [(out / name).read_bytes() for name in names if name != "report.json"]

    def check_standard_input_reaches_all(self):
        with tempfile.TemporaryDirectory() as folder:
            both = [Path(folder, name) for name in ("piped.onnx", "read.onnx")]
            with open(DIGITS, "rb") as model:
                piped = subprocess.run(["mpirun", "-np", "3", "--oversubscribe", self.lacuna, "prune", "--no-calibration", "-", "-o",
                                        both[0]],
                                       env=environment(), stdin=model, timeout=SECONDS, stdout=subprocess.PIPE, check=False)
            read = subprocess.run([self.lacuna, "prune", "--no-calibration", DIGITS, "-o", both[1]], stdout=subprocess.PIPE, check=False)
            assert piped.returncode == 0 and read.returncode == 0
            assert both[0].read_bytes() == both[1].read_bytes()

    def check_a_slow_file_is_waited_for(self):
        """Standard input takes 5 s to reach process 0; the others wait for 1 s, and 2 more."""
        with tempfile.TemporaryDirectory() as folder:
            piped = subprocess.run(["sh", "-c", f"(sleep 5; cat {DIGITS}) | mpirun -np 2 --oversubscribe {self.lacuna} prune - "
                                    f"-o {folder}/o.onnx --timeout 1"], env=environment(), timeout=SECONDS,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            assert piped.returncode == 0 and Path(folder, "o.onnx").exists(), piped.stderr

    def check_a_failure_is_told_once(self):
        with tempfile.TemporaryDirectory() as folder:
            there = Path(folder, "there.onnx")
            there.write_text("mine")
            for code, text, words in (
                    (2, "--bad: unknown option of prune", ["prune", DIGITS, "--bad"]),
                    (2, "-o FILE is missing", ["prune", DIGITS]),
                    (2, "--pattern 4:2: wanted N:M", ["prune", DIGITS, "-o", f"{folder}/x.onnx", "--pattern", "4:2"]),
                    (2, "--timeout 0: wanted more than 0 seconds", ["prune", DIGITS, "-o", f"{folder}/x.onnx", "--timeout", 0]),
                    (2, "nosuch: unknown verb", ["nosuch"]),
                    (1, "missing.onnx: cannot open", ["prune", f"{folder}/missing.onnx", "-o", f"{folder}/x.onnx"]),
                    (1, "there.onnx: it exists already", ["prune", DIGITS, "-o", there]),
                    (1, "nowhere: No such file", ["finetune", DIGITS, "--data", f"{folder}/nowhere", "-o", f"{folder}/x.onnx"]),
            ):
                run = mpirun(2, self.lacuna, *words)
                assert run.returncode == code, (words, run)
                assert run.stderr.count("lacuna: ") == 1 and text in run.stderr and "process" not in said(run), run.stderr
                assert os.listdir(folder) == ["there.onnx"] and there.read_text() == "mine"

    def check_one_process_that_fails_ends_all(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "lacuna.sh")
            script.write_text('#!/bin/sh\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then set -- $ONE; else set -- $OTHERS; fi\n'
                              'exec "$LACUNA" "$@"\n')
            script.chmod(0o755)
            good = f"prune {DIGITS} -o {folder}/x.onnx"
            for code, text, one in (
                    (1, "process 1: /nowhere/net.onnx: cannot open", f"prune /nowhere/net.onnx -o {folder}/x.onnx"),
                    (2, "process 1: --bad: unknown option", f"prune {DIGITS} -o {folder}/x.onnx --bad"),
                    (1, "1 bytes are allowed", f"prune {DIGITS} -o {folder}/x.onnx --max-memory 1"),
                    (2, "process 1: its network or options are not those of process 0", f"prune {DIGITS} -o {folder}/x.onnx --seed 7"),
                    (2, "process 1: its network or options are not those of process 0", f"permute {DIGITS} -o {folder}/x.onnx"),
            ):
                run = mpirun(3, script, LACUNA=self.lacuna, ONE=one, OTHERS=good)
                assert run.returncode == code, run
                assert run.stderr.count("lacuna: ") == 1 and text in run.stderr, run.stderr
                assert os.listdir(folder) == ["lacuna.sh"]


def said(run):
    """The command's own line, without mpirun's."""
    return "".join(line for line in run.stderr.splitlines() if line.startswith("lacuna: "))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lacuna", required=True)
    parser.add_argument("--checks", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if not shutil.which("mpirun"):
        print("skipped: no mpirun")
        return
    checks, failed = Checks(args), 0
    names = [name for name in dir(checks) if name.startswith("check_") and args.only in name]
    for name in names:
        try:
            getattr(checks, name)()
        except (AssertionError, subprocess.TimeoutExpired) as wrong:
            print(f"{name}: {wrong}")
            failed += 1
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
