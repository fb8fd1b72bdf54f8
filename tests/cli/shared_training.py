#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shared_training.py --lacuna LACUNA [--kills N]: trainings of several processes under mpirun on the digits: the numbers of
one process, and endings that nobody planned. Skipped where there is no mpirun."""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = str(TOP / "examples" / "digits")
SECONDS = 240


def environment():
    """mpirun may run as root (in a container), and what Open MPI leaks is its own."""
    sanitizer = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", ASAN_OPTIONS=sanitizer)


def rank_of(pid):
    """Which process of a group this is; None: none, or it has ended."""
    try:
        own = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    ranks = [entry.split(b"=")[1] for entry in own if entry.startswith(b"OMPI_COMM_WORLD_RANK=")]
    return int(ranks[0]) if ranks else None


def children_of(pid):
    """All processes below this one."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            child = int(path.parent.name)
            found += [child, *children_of(child)]
    return found


class Checks:
    """One method a check; names begin with check_. Every one has a folder of its own."""

    def __init__(self, args, folder):
        self.lacuna, self.kills, self.folder = args.lacuna, args.kills, folder
        self.random = random.Random(args.seed)

    def command(self, verb, *options, n=1):
        own = [self.lacuna, *verb, "--data", DIGITS, "--threads", "1", *map(str, options)]
        return ["mpirun", "-np", str(n), "--oversubscribe", "--bind-to", "none", *own] if n > 1 else own

    def run(self, *options, n=1, verb=("train", "--arch", "digits")):
        return subprocess.run(self.command(verb, *options, n=n), env=environment(), cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS, check=False)

    def works(self, *options, **more):
        run = self.run(*options, **more)
        assert run.returncode == 0, run.stderr
        return run

    def losses(self, folder):
        lines = map(json.loads, (self.folder / folder / "log.jsonl").read_text().splitlines())
        return [line["loss"] for line in lines if "lr" in line]

    def check_two_processes_are_one_with_two_batches(self):
        """20 steps under masks: the same losses, the same masks, and in f32 the same bits."""
        self.works("--steps", 30, "--batch-size", 32, "-o", "dense.onnx")
        finetune = ("finetune", "dense.onnx")
        common = ("--steps", 20, "--batch-size", 16, "--no-eval")
        self.works(*common, "--accumulate", 2, "--model-dir", "one", "-o", "one.onnx", verb=finetune)
        self.works(*common, "--model-dir", "two", "-o", "two.onnx", "--paranoid", 3, verb=finetune, n=2)
        losses = [self.losses(name) for name in ("one", "two")]
        assert losses[0] == losses[1] and len(losses[0]) == 20, losses
        for name in ("one.onnx", "two.onnx"):
            check = subprocess.run([self.lacuna, "check", name, "--json", name + ".json"], cwd=self.folder, check=False,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert check.returncode == 0, check.stdout
        tables = [json.loads((self.folder / f"{name}.onnx.json").read_text())["layers"] for name in ("one", "two")]
        zeros = [[(layer["name"], layer["zeros"]) for layer in table] for table in tables]
        assert zeros[0] == zeros[1], zeros

    def check_the_rate_follows_all_images_of_a_step(self):
        """The recipe has 0.128 a 256 images on one process, 0.1 on several; epochs stay what they are."""
        for n, rate, steps in ((1, 0.128 * 64 / 256, 22), (2, 0.1 * 128 / 256, 11), (3, 0.1 * 192 / 256, 7)):
            self.works("--recipe", "resnet-sgd", "--epochs", 1, "--warmup-epochs", 0, "--batch-size", 64, "--no-eval",
                       "--model-dir", f"run{n}", "-o", f"o{n}.onnx", n=n)
            lines = list(map(json.loads, (self.folder / f"run{n}" / "log.jsonl").read_text().splitlines()))
            assert len(lines) == steps and all(abs(line["lr"] - rate) < 1e-9 for line in lines), (n, lines[0])

    def check_the_same_bytes_every_time(self):
        common = ("--steps", 12, "--batch-size", 16, "--keep-best")
        for k, more in enumerate(((), ("--bucket", "10K"), ("--bucket", "10K"))):
            self.works(*common, *more, "-o", f"{k}.onnx", n=3)
        files = [(self.folder / f"{k}.onnx").read_bytes() for k in range(3)]
        assert files[0] == files[1] == files[2], "runs with the same options differ"

    def check_an_evaluation_counts_every_image_once(self):
        common = ("--steps", 10, "--batch-size", 25, "--eval-limit", 111, "-o", "o.onnx", "--json", "r.json")
        self.works(*common, n=3)
        final = json.loads((self.folder / "r.json").read_text())["final"]
        alone = subprocess.run([self.lacuna, "eval", "o.onnx", "--data", DIGITS, "--limit", "111", "--batch-size", "25",
                                "--threads", "1", "--json", "e.json"], cwd=self.folder, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert alone.returncode == 0, alone.stderr
        wanted = json.loads((self.folder / "e.json").read_text())
        assert all(final[key] == wanted[key] for key in ("top1", "top5", "loss")), (final, wanted)

    def start(self, *options, n=2):
        """So many processes; returns mpirun and them, once all train."""
        command = self.command(("train", "--arch", "digits"), *options, n=n)
        began = subprocess.Popen(command, env=environment(), cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        log, until = self.folder / "run" / "log.jsonl", time.monotonic() + 60
        while not (log.exists() and log.stat().st_size) and began.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        ranks = {rank_of(pid): pid for pid in children_of(began.pid)}
        return (began, *(ranks.get(rank) for rank in range(n)))

    def check_a_kill_at_any_moment(self):
        """Either process; the run ends at once, and goes on to the bits of one that nobody disturbed. One that is killed
        near the end may have written its output, which is whole then."""
        common = ("--steps", 400, "--batch-size", 16, "--no-eval", "--checkpoint-steps", 50, "-o", "o.onnx", "--timeout", 60)
        began, *_ = self.start(*common, "--model-dir", "run")
        begin = time.monotonic()
        _, said = began.communicate(timeout=SECONDS)
        length, output = time.monotonic() - begin, self.folder / "o.onnx"
        assert began.returncode == 0, f"the undisturbed run: {said}"
        wanted = output.read_bytes()
        for k in range(self.kills):
            shutil.rmtree(self.folder / "run")
            output.unlink()
            began, *pids = self.start(*common, "--model-dir", "run")
            time.sleep(self.random.uniform(0, length))
            if pids[k % 2]:
                try:
                    os.kill(pids[k % 2], signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has ended
            _, said = began.communicate(timeout=SECONDS)
            about = f"kill {k}, of process {k % 2} (pid {pids[k % 2]}), mpirun ended with {began.returncode}: {said}"
            named = f"process {k % 2} (pid {pids[k % 2]}) has died" in said or "exited on signal 9" in said
            assert named or began.returncode == 0, f"nobody says who died: {about}"
            assert output.exists() or began.returncode != 0, f"no output of a run that succeeded: {about}"
            assert not output.exists() or output.read_bytes() == wanted, f"another output: {about}"
            again = self.works(*common, "--model-dir", "run", "--recover", "--force", n=2)
            assert output.read_bytes() == wanted, f"another output after going on: {about}; then {again.stderr}"

    def check_a_death_among_three(self):
        """Process 0 says it, once, and keeps the steps that were taken; the other survivor leaves that to it."""
        began, *pids = self.start("--steps", 1000000, "--batch-size", 16, "--no-eval", "--checkpoint-steps", 100000,
                                  "-o", "o.onnx", "--model-dir", "run", "--timeout", 60, n=3)
        assert pids[2], "process 2 did not begin"
        time.sleep(0.5)
        begin = time.monotonic()
        os.kill(pids[2], signal.SIGKILL)
        _, said = began.communicate(timeout=SECONDS)
        seconds = time.monotonic() - begin
        assert began.returncode != 0 and seconds < 50, f"mpirun ended with {began.returncode} after {seconds:.1f} s: {said}"
        if "exited on signal 9" in said and "has died" not in said:
            return  # mpirun, which kills the others after a second, was faster than all
        assert said.count("lacuna: ") == 1 and f"process 2 (pid {pids[2]}) has died" in said, said
        kept = [path.name for path in (self.folder / "run").glob("checkpoint*")]
        assert len(kept) == 1, f"checkpoints {kept}: {said}"

    def check_a_process_that_hangs(self):
        for rank in (1, 0):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            began, *pids = self.start("--steps", 1000000, "--batch-size", 16, "--no-eval", "-o", "o.onnx", "--model-dir",
                                      "run", "--timeout", 3)
            begin = time.monotonic()
            assert pids[rank], f"process {rank} did not begin"
            os.kill(pids[rank], signal.SIGSTOP)
            _, said = began.communicate(timeout=SECONDS)
            seconds = time.monotonic() - begin
            assert began.returncode != 0 and f"process {rank} has not answered for 3 s" in said, said
            assert 2 < seconds < 60, f"process {rank} was missed after {seconds:.1f} s: {said}"

    def check_a_full_disk_ends_all(self):
        """The run's folder is a disk of 700 KB, which a checkpoint fills: by root in a name space of its own."""
        (self.folder / "run").mkdir()
        command = self.command(("train", "--arch", "digits"), "--steps", 20, "--batch-size", 16, "--no-eval",
                               "--checkpoint-steps", 5, "-o", "o.onnx", "--model-dir", "run", n=2)
        mounted = "mount -t tmpfs -o size=700k none run || exit 77; \"$@\"; code=$?; ls run >&2; exit $code"
        try:
            run = subprocess.run(["unshare", "-m", "sh", "-c", mounted, "sh", *map(str, command)], env=environment(),
                                 cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 timeout=SECONDS, check=False)
        except FileNotFoundError:
            return
        if run.returncode in (1, 77) and ("unshare" in run.stderr or "mount" in run.stderr):
            print(f"skipped: a full disk: {run.stderr.strip()}")
            return
        assert run.returncode != 0 and run.stderr.count("lacuna: ") == 1 and "No space left" in run.stderr, run.stderr
        assert "checkpoint-" not in run.stderr.split("lacuna: ")[1].split("\n", 1)[1], run.stderr

    def check_an_interrupt_saves(self):
        began, first, _ = self.start("--steps", 1000000, "--batch-size", 16, "--no-eval", "-o", "o.onnx", "--model-dir", "run")
        assert first, "process 0 did not begin"
        os.kill(first, signal.SIGINT)
        _, said = began.communicate(timeout=SECONDS)
        assert began.returncode != 0 and "interrupted after step" in said and "is kept" in said, said
        assert said.count("interrupted after step") == 1 and "MPI_ABORT" not in said, f"not agreed on: {said}"
        kept = [path.name for path in (self.folder / "run").glob("checkpoint*")]
        assert len(kept) == 1, f"checkpoints {kept}: {said}"

    def check_what_all_know_is_told_once(self):
        """Failures that every process has by itself: nobody is ended by force for them."""
        self.works("--steps", 1, "--batch-size", 16, "--no-eval", "--export-dir", "net")
        for text, options in (("the loss is ", ("--lr", "1e6", "-o", "o.onnx")),
                              ("nothing would be sparse", ("--sparse", "--pattern", "1:48", "--export-dir", "net"))):
            run = self.run("--steps", 30, "--batch-size", 16, "--no-eval", *options, n=2)
            assert run.returncode == 1 and run.stderr.count("lacuna: ") == 1 and text in run.stderr, f"{text}: {run.stderr}"
            assert "MPI_ABORT" not in run.stderr, f"not agreed on: {run.stderr}"

    def check_another_number_of_processes_is_refused(self):
        common = ("--steps", 6, "--batch-size", 16, "--no-eval", "-o", "o.onnx", "--model-dir", "run", "--force")
        self.works(*common, n=2)
        for n in (1, 3):
            run = self.run(*common, "--recover", n=n)
            wanted = f"made by 2 processes, but this run has {n}: wanted as many"
            assert run.returncode != 0 and run.stderr.count(wanted) == 1, run.stderr

    def check_processes_with_other_options_are_refused(self):
        own = self.command(("train", "--arch", "digits"), "--steps", 6, "--no-eval", "-o", "o.onnx")
        for option in ("--batch-size $((16 + OMPI_COMM_WORLD_RANK))", "--steps $((6 + OMPI_COMM_WORLD_RANK))",
                       "--seed $OMPI_COMM_WORLD_RANK"):
            run = subprocess.run(["mpirun", "-np", "2", "--oversubscribe", "sh", "-c", f'exec "$@" {option}', "sh", *map(str, own)],
                                 env=environment(), cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 timeout=SECONDS, check=False)
            assert run.returncode != 0 and run.stderr.count("lacuna: process 1: its options or data are not") == 1, run.stderr
            assert not (self.folder / "o.onnx").exists(), f"{option}: there is an output"

    def check_the_trace_is_whole(self):
        run = self.works("--steps", 5, "--batch-size", 16, "--no-eval", "-o", "o.onnx", "--trace", "t.json", "-v", n=2)
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        steps = [(e["pid"], e["name"]) for e in events if e["ph"] == "X" and e["tid"] == 0]
        assert sorted(steps) == [(p, f"step {s}") for p in (0, 1) for s in (3, 4, 5)], steps
        assert "sums of gradients over 2 processes: in progress for" in run.stderr, run.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lacuna", required=True)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    args.lacuna = str(pathlib.Path(args.lacuna).resolve())
    if not shutil.which("mpirun"):
        print("skipped: no mpirun")
        return
    failed, names = 0, [name for name in dir(Checks) if name.startswith("check_") and args.only in name]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                getattr(Checks(args, pathlib.Path(folder)), name)()
            except (AssertionError, subprocess.TimeoutExpired) as wrong:
                print(f"{name}: {wrong}")
                failed += 1
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
