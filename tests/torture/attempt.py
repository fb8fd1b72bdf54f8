# SPDX-License-Identifier: Apache-2.0
"""One run of the command in a folder of its own under some trouble, and what has to hold afterwards."""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

# What a report says of time, of memory as found, and of its own files differs from run to run.
TIMES = re.compile(rb'("[a-z_]*(?:seconds|_ms|per_second|gflops|share|min|median)": )[^,\n}]*')
LEFTOVER = re.compile(r"\.lacuna-")


def tidy(name, data):
    return TIMES.sub(rb"\1T", data) if name.endswith(".json") else data


def contents(folder):
    """{path inside: bytes} of the files below folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Attempt:
    """env: added to the environment; limits: of setrlimit; stdout: /dev/full, "closed pipe" or "closed"; cut: this input
    may change; killed: it may end by SIGKILL, and then temporary files of ours may stay."""

    def __init__(self, stage, scenario, env=None, limits=None, stdout=None, killed=False, cut=None, count=False, timeout=240):
        self.stage, self.scenario, self.limits, self.stdout = stage, scenario, limits or {}, stdout
        self.killed, self.cut, self.timeout = killed, cut, timeout
        self.env = dict(os.environ, LC_ALL="C.UTF-8", **(env or {}))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="try-", dir=stage.base))
        self.problems, self.end, self.count = [], "", 0
        self.counted = self.folder.with_suffix(".count") if count else None
        if count:
            self.env["LAC_FAULT_COUNT"] = str(self.counted)

    def set_limits(self):
        for kind, value in self.limits.items():
            resource.setrlimit(kind, (value, value))

    def start(self, arguments):
        stdout, end = subprocess.DEVNULL, None
        command = [str(self.stage.lacuna), *arguments]
        if self.stdout == "/dev/full":
            stdout = open("/dev/full", "wb")
        elif self.stdout == "closed pipe":
            end, stdout = os.pipe()
            os.close(end)
        elif self.stdout == "closed":
            command = ["/bin/sh", "-c", 'exec "$0" "$@" >&-', *command]
        return subprocess.Popen(command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
                                stderr=subprocess.PIPE, preexec_fn=self.set_limits if self.limits else None)

    def run(self):
        self.scenario.fill(self.stage, self.folder)
        before = contents(self.folder)
        process = self.start(self.scenario.arguments)
        try:
            stderr = process.communicate(timeout=self.timeout)[1]
            self.judge(process.returncode, stderr.decode(errors="replace"), before)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.end = "hung"
            self.problems.append(f"no end after {self.timeout} s")
        if self.counted:
            self.count = int(self.counted.read_text()) if self.counted.exists() else 0
            self.counted.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self

    def judge(self, code, stderr, before):
        if code == 127 and "error while loading shared libraries" in stderr:
            self.end = "not even loaded"  # the limit ended the loader: nothing of ours has run
            return
        self.end = f"ended {code}" if code >= 0 else signal.Signals(-code).name
        if code < 0 and not (self.killed and code == -signal.SIGKILL):
            if self.stdout and code == -signal.SIGPIPE:
                pass  # what a pipe's writer gets unless it is ignored
            else:
                self.problems.append(f"signal {self.end}: {stderr[-300:]}")
        if code > 1 and not (code == 2 and self.scenario.may_misuse):
            self.problems.append(f"status {code}: {stderr[-300:]}")
        lines = [line for line in stderr.splitlines() if line and not line.startswith("warning: ")]
        if code == 1 and len(lines) != 1:
            self.problems.append(f"{len(lines)} lines on standard error: {stderr[:300]!r}")
        if code == 0 and lines:
            self.problems.append(f"done, but it says {stderr[:300]!r}")
        if code == 1 and LEFTOVER.search(stderr):
            self.problems.append(f"names a temporary file: {stderr!r}")
        self.judge_files(code, before)

    def is_whole(self, code, name, data):
        """Other bytes than those of an undisturbed run, but all of them."""
        if code == 0 and name.endswith(".png"):  # where a font cannot be opened, another is drawn with
            return data.startswith(b"\x89PNG") and data.endswith(b"IEND\xaeB`\x82")
        return self.killed and self.is_first_version(name)

    def is_first_version(self, name):
        """A model with data of its own that was just being replaced (base/file_set.h): not the bytes of the end, but it
        finds its new data by their second name. Old data, or a part of new ones, would not hold the pattern."""
        if not self.scenario.has_data:
            return False
        done = subprocess.run([str(self.stage.lacuna), "check", "-q", name], cwd=self.folder, capture_output=True)
        return done.returncode == 0

    def judge_files(self, code, before):
        after, outputs = contents(self.folder), self.scenario.outputs
        wanted = {name: tidy(name, data) for name, data in self.stage.reference(self.scenario).items()}
        for name, data in before.items():
            if name not in outputs and name != self.cut and after.get(name) != data:
                self.problems.append(f"the input {name} {'changed' if name in after else 'is gone'}")
        for name, data in after.items():
            if name in before and name not in outputs:
                continue
            if self.scenario.may_hold(name):
                continue
            if name not in wanted:
                if not (self.killed and LEFTOVER.search(name)):
                    self.problems.append(f"{name} is left")
            elif tidy(name, data) == wanted[name]:
                if code == 1 and before.get(name) != data:
                    self.problems.append(f"failed, but {name} was written")
            elif before.get(name) != data:
                if not self.is_whole(code, name, data):
                    self.problems.append(f"{name} is neither old nor new")
            elif code == 0:
                self.problems.append(f"done, but {name} is the old one")
        for name in outputs:
            if name in before and name not in after:
                self.problems.append(f"the old {name} is gone")
            if code == 0 and name in wanted and name not in after:
                self.problems.append(f"done, but {name} is missing")
        for path in self.folder.rglob("*"):
            if path.is_dir() and not any(path.iterdir()) and not self.killed and not self.scenario.may_hold(path.name):
                self.problems.append(f"the empty folder {path.name} is left")

    def recover(self, share):
        """Kills a training after a share of its time, goes on with --recover, compares with the undisturbed result."""
        self.scenario.fill(self.stage, self.folder)
        seconds = self.stage.seconds(self.scenario)
        process = self.start(self.scenario.arguments)
        time.sleep(share * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        what = f"{self.scenario.name} killed after {share * seconds:.2f} s"
        if process.returncode == 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            return "done before", what, []
        process = self.start([*self.scenario.arguments, "--recover"])
        stderr = process.communicate(timeout=self.timeout)[1].decode(errors="replace")
        self.killed = True  # what the killed run left may be there, if it had no name of ours
        if process.returncode:
            self.problems.append(f"--recover: status {process.returncode}: {stderr[-300:]}")
        else:
            wanted = self.stage.reference(self.scenario)
            for name in self.scenario.outputs:
                path = self.folder / name
                if not path.exists() or tidy(name, path.read_bytes()) != tidy(name, wanted[name]):
                    self.problems.append(f"{name} is not what the undisturbed run wrote")
            left = [p for p in contents(self.folder) if LEFTOVER.search(p)]
            if left:
                self.problems.append(f"left by the dead run: {left}")
        shutil.rmtree(self.folder, ignore_errors=True)
        return "recovered", what, self.problems
