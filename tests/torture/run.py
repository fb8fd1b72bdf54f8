#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py --build BUILD [--asan BUILD] [--clang BUILD] [--only PART] [--scale X] [--docs]: what a hostile world does to the command.

Every try runs the command in a folder of its own and looks at four things afterwards: it ended by itself with status 0 or
1 (a kill of ours aside); a failure is one line on standard error; each output is whole (the bytes of an undisturbed run)
or, where the run failed, what was there before; nothing else is left in the folder, and no input has changed.

Parts: sweep (every operator at ranks, sizes and attributes that nobody would write, under clang's sanitizers), mutants
(damaged networks through every verb, under sanitizers), faults (calls to the system fail one by one),
kills (at each of these calls, and at random moments of a training), full (disks and pipes), limits (memory, processes,
file sizes, descriptors), cuts (files that shrink while they are read). --scale 1 takes minutes. The last line counts.
--docs writes the table into docs/explain/robustness.md.
"""
import argparse
import collections
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import scenarios
from attempt import Attempt

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
KINDS = ["malloc", "mmap", "open", "read", "write", "fsync", "rename", "close", "truncate", "thread", "fork"]
TIMEOUT_S = 240


class Part:
    """Counts of one kind of trouble."""

    def __init__(self, name):
        self.name, self.ends, self.wrong, self.begun = name, collections.Counter(), [], time.time()

    def add(self, end, what, problems):
        self.ends[end] += 1
        if problems:
            self.wrong.append((what, problems))
            print(f"WRONG {self.name}: {what}: {'; '.join(problems)}", flush=True)

    def row(self):
        ends = ", ".join(f"{n} {end}" for end, n in sorted(self.ends.items()))
        return f"| {self.name} | {sum(self.ends.values())} | {ends} | {len(self.wrong)} |"


def spread(n, most):
    """At most `most` of 1..n: the first ones, the last ones, and evenly between."""
    if n <= most:
        return range(1, n + 1)
    ends = most // 4
    step = (n - 2 * ends) / max(1, most - 2 * ends)
    between = [ends + 1 + int(step * k) for k in range(most - 2 * ends)]
    return sorted(set(list(range(1, ends + 1)) + between + list(range(n - ends + 1, n + 1))))


class Torture:
    def __init__(self, args):
        self.args, self.lacuna = args, args.build / "lacuna"
        self.faults = args.build / "tests" / "torture" / "libfaults.so"
        self.random = random.Random(args.seed)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="torture-"))
        self.stage = scenarios.Stage(self.lacuna, TOP, self.base)
        self.parts = []

    def part(self, name):
        self.parts.append(Part(name))
        return self.parts[-1]

    def attempt(self, scenario, **how):
        return Attempt(self.stage, scenario, timeout=TIMEOUT_S, **how)

    def most(self, n):
        return max(1, int(n * self.args.scale))

    # ---- Operators ----

    def sweep(self):
        build = self.args.clang or self.args.build
        part = self.part("every operator, odd ports and attributes" + (", clang's sanitizers" if self.args.clang else ""))
        n, jobs = self.most(50000), len(os.sched_getaffinity(0))
        env = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=0")
        firsts = [k * n // jobs for k in range(jobs + 1)]
        runs = [subprocess.Popen([build / "tests/torture/sweep_main", str(self.args.seed), str(first), str(end - first)],
                                 env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for first, end in zip(firsts, firsts[1:])]
        for run in runs:
            out, err = run.communicate()
            *faults, counts = out.splitlines() or ["1 lost"]
            for word in counts.split(", "):
                part.ends[word.split()[1]] += int(word.split()[0])
            part.wrong += [("sweep", [line]) for line in faults or (["it gave up"] if run.returncode else [])]
            if run.returncode:
                print("\n".join(faults), err[-6000:], flush=True)

    # ---- Damaged networks ----

    def mutants(self):
        build = self.args.asan or self.args.build
        part = self.part("damaged networks, every verb" + (", sanitizers" if self.args.asan else ""))
        folder = self.args.keep or self.base / "mutants"
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted(HERE.glob("networks/*.onnx")) + [TOP / "examples/digits/digits.onnx"]
        n, jobs = self.most(6000), len(os.sched_getaffinity(0))
        env = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:hard_rss_limit_mb=6000:detect_leaks=0")
        runs = [subprocess.Popen([build / "tests/torture/damage_main", str(self.args.seed), str(k * n // jobs), str(n // jobs),
                                  folder, *files], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for k in range(jobs)]
        for run in runs:
            out, err = run.communicate()
            counts = {end: int(n) for n, end in (word.split() for word in out.split(", "))} if out else {"lost": 1}
            for end, n in counts.items():
                part.ends[end] += n
            for line in err.splitlines():
                if line.startswith("mutant") or not out:
                    part.wrong.append(("mutant", [line]))
            if run.returncode:
                print(err[-6000:], flush=True)

    # ---- One call fails, or the process dies there ----

    def count(self, scenario, kind):
        tried = self.attempt(scenario, env=self.fault(kind, "0?"), count=True)
        return tried.run().count

    def fault(self, kind, what):
        return {"LAC_FAULT": f"{kind}:{what}", "LD_PRELOAD": str(self.faults)}

    def try_points(self, part, most, marks, force):
        for scenario in self.stage.scenarios(force=force):
            for kind in KINDS:
                n = self.count(scenario, kind)
                for at in spread(n, self.most(most[kind == "malloc"])):
                    for mark in marks:
                        tried = self.attempt(scenario, env=self.fault(kind, f"{at}{mark}"), killed="!" in mark)
                        end = tried.run().end
                        part.add(end, f"{scenario.name}{' --force' if force else ''} {kind}:{at}{mark}", tried.problems)

    def faults_part(self):
        part = self.part("a call fails, or it and all later ones of its kind")
        self.try_points(part, (6, 40), ("", "+"), False)
        self.try_points(part, (6, 10), ("",), True)

    def kills(self):
        part = self.part("killed at a call that changes files")
        for force in (False, True):
            for scenario in self.stage.scenarios(force=force):
                for kind in ("write", "fsync", "rename", "close", "open"):
                    for at in spread(self.count(scenario, kind), self.most(8)):
                        tried = self.attempt(scenario, env=self.fault(kind, f"{at}!"), killed=True)
                        end = tried.run().end
                        part.add(end, f"{scenario.name}{' --force' if force else ''} {kind}:{at}!", tried.problems)
        self.recovered()

    def recovered(self):
        part = self.part("trainings killed at random, then recovered")
        for scenario in self.stage.trainings():
            for _ in range(self.most(6)):
                tried = self.attempt(scenario, killed=True)
                part.add(*tried.recover(self.random.random()))

    # ---- Full disks and pipes ----

    def full(self):
        part = self.part("full disks, full and closed standard output")
        for scenario in self.stage.scenarios() + self.stage.scenarios(force=True):
            for stdout in ("/dev/full", "closed pipe", "closed"):
                tried = self.attempt(scenario, stdout=stdout)
                part.add(tried.run().end, f"{scenario.name} > {stdout}", tried.problems)
            largest = max(self.stage.sizes(scenario).values(), default=0)
            for share in (0, .01, .3, .6, .9, .999):
                tried = self.attempt(scenario, limits={resource.RLIMIT_FSIZE: int(largest * share)})
                part.add(tried.run().end, f"{scenario.name} files <= {int(largest * share)}", tried.problems)

    # ---- Limits of the process ----

    def limits(self):
        part = self.part("limits: memory, processes, descriptors")
        for scenario in self.stage.scenarios():
            for mega in [20, 40, 60, 80, 100, 130, 160, 200, 250, 300, 400, 600, 900, 1500][::max(1, int(1 / self.args.scale))]:
                tried = self.attempt(scenario, limits={resource.RLIMIT_AS: mega << 20})
                part.add(tried.run().end, f"{scenario.name} ulimit -v {mega} MB", tried.problems)
            for n in (3, 4, 5, 6, 8, 12, 20):
                tried = self.attempt(scenario, limits={resource.RLIMIT_NOFILE: n})
                part.add(tried.run().end, f"{scenario.name} ulimit -n {n}", tried.problems)
            for mark in ("1+", "1"):
                for kind in ("thread", "fork"):
                    tried = self.attempt(scenario, env=self.fault(kind, mark))
                    part.add(tried.run().end, f"{scenario.name} no {kind} {mark}", tried.problems)

    # ---- Files that shrink ----

    def cuts(self):
        part = self.part("files cut while they are read")
        for scenario in self.stage.readers():
            for cut in scenario.inputs:
                n = sum(self.count(scenario, kind) for kind in ("open", "read", "mmap"))
                for at in spread(n, self.most(10)):
                    for share in (0, .5, .99):
                        tried = self.attempt(scenario, env={"LD_PRELOAD": str(self.faults), "LAC_CUT": f"{at}:{share}:{cut}"},
                                             cut=cut)
                        part.add(tried.run().end, f"{scenario.name}: {cut} to {share} at read {at}", tried.problems)

    def run(self):
        parts = {"sweep": self.sweep, "mutants": self.mutants, "faults": self.faults_part, "kills": self.kills, "full": self.full,
                 "limits": self.limits, "cuts": self.cuts}
        for name, body in parts.items():
            if self.args.only in (None, name):
                begun = len(self.parts)
                body()
                for part in self.parts[begun:]:
                    print(part.row(), f"{time.time() - part.begun:.0f} s", flush=True)
        shutil.rmtree(self.base, ignore_errors=True)


def write_docs(parts):
    path = TOP / "docs/explain/robustness.md"
    text = path.read_text()
    begin, end = "<!-- counts: make torture -->\n", "<!-- end -->"
    head, rest = text.split(begin)
    table = "| trouble | tries | how they ended | wrong |\n|---|---|---|---|\n" + "\n".join(p.row() for p in parts) + "\n"
    path.write_text(head + begin + table + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--asan", type=pathlib.Path)
    parser.add_argument("--clang", type=pathlib.Path, help="a build with clang's sanitizers, which see more")
    parser.add_argument("--only", choices=["sweep", "mutants", "faults", "kills", "full", "limits", "cuts"])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for mutants that were taken wrongly")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    torture = Torture(args)
    torture.run()
    if args.docs:
        write_docs(torture.parts)
    wrong = sum(len(part.wrong) for part in torture.parts)
    tries = sum(sum(part.ends.values()) for part in torture.parts)
    print(f"{tries - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
