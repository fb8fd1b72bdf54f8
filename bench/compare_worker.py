# SPDX-License-Identifier: Apache-2.0
"""An engine in a process of its own, that bench/compare.py starts, commands and stops.

A waiting worker is stopped (SIGSTOP) and goes on in its next time slice (SIGCONT): engines whose threads spin between two runs
keep doing so, which makes them fast, and still take nothing from the others. The time a stopped worker has used is counted all
the same, so that a run can say that it was none.
"""
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
ENGINES = {"lacuna": "Lacuna", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "deepsparse": "DeepSparse"}
BF16_ENGINES = ("lacuna", "openvino")
# How a network that is pruned 2:4 is run: (engine, its file, its environment).
SPARSE_SETTINGS = {"lacuna": ("lacuna", "2:4", {}), "lacuna dense": ("lacuna", "2:4", {"LAC_SPARSE": "0"}),
               **{engine: (engine, "dense", {}) for engine in ENGINES if engine != "lacuna"},
               **{f"{engine} 2:4": (engine, "2:4", {}) for engine in ENGINES if engine != "lacuna"}}
LABELS = {**ENGINES, "lacuna dense": "Lacuna (dense kernels)",
          **{f"{engine} 2:4": f"{name} (2:4)" for engine, name in ENGINES.items() if engine != "lacuna"}}
TICK = 1 / os.sysconf("SC_CLK_TCK")
TIMEOUT = 300.0  # seconds for an answer, beyond the time that was ordered
HABITS = {"lacuna": {"GOMP_SPINCOUNT": "1000"}}  # as cli/spin_count.c sets it for the command


class Failed(Exception):
    """An engine did not answer; the text says why, in one line."""


def command_of(engine, build, path, dtype, threads):
    arguments = [path, path.parent, dtype, threads]
    if engine == "lacuna":
        return [build / "bench/engine_worker", *arguments]
    venv = TOP / f"build/venv-{'deepsparse' if engine == 'deepsparse' else 'bench'}"
    missing = venv / "missing.txt"
    if missing.exists():
        raise Failed(" ".join(missing.read_text().split()))
    if not (venv / "bin/python").exists():
        raise Failed(f"{venv.relative_to(TOP)} is not there: run bench/environment")
    return [venv / "bin/python", TOP / "bench/peer_worker.py", engine, *arguments]


class Process:
    """Any program that takes orders by lines and answers by lines of JSON, the first of them unasked."""

    def __init__(self, command, timeout=TIMEOUT, **environment):
        self.errors = tempfile.TemporaryFile()
        self.rest, self.noise, self.idle_s, self.used_s, self.since = b"", [], 0.0, 0.0, None
        self.process = subprocess.Popen([str(part) for part in command], bufsize=0, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, env={**os.environ, **environment})
        try:
            self.start = self.answer(timeout)
        except BaseException:
            self.close()
            raise
        self.hold()

    def stat(self):
        """State and processor seconds used, of all threads."""
        try:
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return "Z", 0.0
        return fields[0], (int(fields[11]) + int(fields[12])) * TICK

    def hold(self):
        self.process.send_signal(signal.SIGSTOP)
        for _ in range(100):
            if self.stat()[0] in "TZ":
                break
            time.sleep(0.001)
        self.since = time.monotonic(), self.stat()[1]

    def go_on(self):
        if self.since:
            self.idle_s += time.monotonic() - self.since[0]
            self.used_s += self.stat()[1] - self.since[1]
            self.since = None
        self.process.send_signal(signal.SIGCONT)

    def ask(self, order, timeout=TIMEOUT):
        self.go_on()
        try:
            self.process.stdin.write(order.encode() + b"\n")
        except OSError:
            pass  # the answer will be missing, and say why
        answer = self.answer(timeout)
        self.hold()
        return answer

    def answer(self, timeout):
        """The next line that is JSON; other lines (banners, profiles) are kept as noise."""
        end = time.monotonic() + timeout
        while True:
            while b"\n" in self.rest:
                line, _, self.rest = self.rest.partition(b"\n")
                if line.startswith(b"{"):
                    return self.parse(line)
                self.noise.append(line.decode(errors="replace"))
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise Failed(f"no answer in {timeout:.0f} s")
            more = os.read(self.process.stdout.fileno(), 1 << 20)
            if not more:
                raise Failed(self.last_words())
            self.rest += more

    @staticmethod
    def parse(line):
        try:
            return json.loads(line)
        except ValueError:
            raise Failed(f"not an answer: {line[:80]!r}") from None

    def last_words(self):
        code = self.process.wait()
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][-200:] if lines else f"ended with status {code}"

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class Worker(Process):
    """An engine that infers."""

    def __init__(self, engine, build, path, dtype, threads, extra=(), **environment):
        habits = {name: value for name, value in HABITS.get(engine, {}).items() if name not in os.environ}
        super().__init__([*command_of(engine, build, path, dtype, threads), *extra],
                         **{**habits, "NM_DISABLE_ANALYTICS": "1", **environment})

    def run(self, seconds):
        """Milliseconds of each run."""
        return self.ask(f"run {seconds:.4f}", TIMEOUT + seconds)["ms"]
