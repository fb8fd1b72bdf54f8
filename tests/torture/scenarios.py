# SPDX-License-Identifier: Apache-2.0
"""The commands that are tried, each with its inputs and outputs, and what an undisturbed run of each writes."""
import fnmatch
import pathlib
import shutil
import subprocess
import tempfile
import time

from attempt import contents


class Scenario:
    """arguments: of the command, paths inside its folder; inputs: files of the stage that are copied there; outputs: the
    names it writes; holds: patterns of further names that it may leave, whatever happens (a run's own folder)."""

    def __init__(self, name, arguments, inputs, outputs=(), holds=(), force=False):
        self.name, self.inputs, self.outputs, self.holds = name, inputs, list(outputs), list(holds)
        self.force, self.may_misuse = force, False
        self.has_data = any(given.endswith(".bin") for given in inputs)
        self.arguments = [*arguments, "-q"] + (["--force"] if force else [])

    def fill(self, stage, folder):
        for name in self.inputs:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            source = stage.folder / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        if self.force:
            for name in self.outputs:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(b"an old file\n")

    def may_hold(self, name):
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.holds)


class Stage:
    """The inputs of all scenarios, made once."""

    def __init__(self, lacuna, top, base):
        self.lacuna, self.top, self.base = lacuna, top, base
        self.folder = base / "stage"
        self.folder.mkdir()
        self.known, self.times = {}, {}
        self.make()

    def call(self, *arguments):
        subprocess.run([str(self.lacuna), *arguments, "-q"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def make(self):
        shutil.copy(self.top / "examples/digits/digits.onnx", self.folder / "m.onnx")
        (self.folder / "data").mkdir()
        shutil.copy(self.top / "examples/digits/digits.csv.gz", self.folder / "data")
        self.call("prune", "--no-calibration", "m.onnx", "-o", "pruned.onnx", "--save-permutation", "order.json")
        self.call("pack", "pruned.onnx", "-o", "m.pack")
        make_external(self.folder / "m.onnx", self.folder / "big.onnx", "big.bin")
        make_array(self.folder / "x.npy", (4, 1, 8, 8))

    def scenarios(self, force=False):
        def of(name, arguments, inputs, outputs=(), holds=()):
            return Scenario(name, arguments, inputs, outputs, holds, force)

        few = ["--effort", "fast", "--threads", "2"]
        run = ["--batch-size", "64", "--steps", "6", "--checkpoint-steps", "3", "--threads", "1", "--eval-steps", "3"]
        folder = ["run", "run/*"]
        all_of = [
            of("prune", ["prune", "--no-calibration", "m.onnx", "-o", "o.onnx", "--plot", "p.svg", "--json", "r.json", "--save-permutation", "s.json",
                         *few], ["m.onnx"], ["o.onnx", "p.svg", "r.json", "s.json"]),
            of("prune external", ["prune", "--no-calibration", "big.onnx", "-o", "o.onnx", *few], ["big.onnx", "big.bin"], ["o.onnx", "o.data"]),
            of("prune pack", ["prune", "--no-calibration", "m.pack", "-o", "o.onnx", "--no-permute", *few], ["m.pack"], ["o.onnx"]),
            of("permute", ["permute", "m.onnx", "-o", "o.onnx", "--apply", "order.json"], ["m.onnx", "order.json"], ["o.onnx"]),
            of("plot", ["plot", "m.onnx", "-o", "p.png"], ["m.onnx"], ["p.png"]),
            of("pack", ["pack", "pruned.onnx", "-o", "o.pack", "--json", "r.json"], ["pruned.onnx"], ["o.pack", "r.json"]),
            of("unpack", ["unpack", "m.pack", "-o", "o.onnx"], ["m.pack"], ["o.onnx"]),
            of("infer", ["infer", "m.onnx", "--input", "image=x.npy", "-o", "out", "--threads", "2"], ["m.onnx", "x.npy"],
               ["out/scores.npy"], ["out"]),
            of("eval", ["eval", "m.onnx", "--data", "data", "--predictions", "y.npy", "--json", "r.json", "--threads", "2"],
               ["m.onnx", "data"], ["y.npy", "r.json"]),
            of("finetune", ["finetune", "m.onnx", "--data", "data", "-o", "o.onnx", "--model-dir", "run", *run], ["m.onnx", "data"],
               ["o.onnx"], folder),
        ]
        if not force:
            all_of += [
                of("check", ["check", "pruned.onnx", "--against", "m.onnx", "--json", "r.json"], ["pruned.onnx", "m.onnx"], ["r.json"]),
                of("inspect", ["inspect", "m.onnx", "--json", "r.json"], ["m.onnx"], ["r.json"]),
                of("bench", ["bench", "m.onnx", "--runs", "3", "--json", "r.json", "--plot", "p.svg"], ["m.onnx"], [],
                   ["r.json", "p.svg"]),
                of("train", ["train", "--arch", "digits", "--data", "data", "-o", "o.onnx", "--model-dir", "run", *run], ["data"],
                   ["o.onnx"], folder),
            ]
        return all_of

    def readers(self):
        """Scenarios whose inputs may be cut: each names what it reads first."""
        return [s for s in self.scenarios() if s.name not in ("train", "bench")]

    def trainings(self):
        run = ["--batch-size", "32", "--steps", "200", "--checkpoint-steps", "10", "--threads", "1", "--model-dir", "run"]
        return [Scenario("train", ["train", "--arch", "digits", "--data", "data", "-o", "o.onnx", *run], ["data"], ["o.onnx"], ["run", "run/*"]),
                Scenario("finetune", ["finetune", "m.onnx", "--data", "data", "-o", "o.onnx", *run], ["m.onnx", "data"], ["o.onnx"],
                         ["run", "run/*"])]

    def reference(self, scenario):
        """{name: bytes} that an undisturbed run writes."""
        key = tuple(scenario.arguments)
        if key not in self.known:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="reference-", dir=self.base))
            scenario.fill(self, folder)
            begin = time.time()
            done = subprocess.run([str(self.lacuna), *scenario.arguments], cwd=folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
            if done.returncode:
                raise SystemExit(f"{scenario.name}: {done.stderr}")
            self.times[key] = time.time() - begin
            inputs = {name for given in scenario.inputs for name in [given, *[f"{given}/{f}" for f in
                      (contents(self.folder / given) if (self.folder / given).is_dir() else ())]]}
            self.known[key] = {name: data for name, data in contents(folder).items()
                               if name not in inputs or name in scenario.outputs}
            shutil.rmtree(folder)
        return self.known[key]

    def seconds(self, scenario):
        self.reference(scenario)
        return self.times[tuple(scenario.arguments)]

    def sizes(self, scenario):
        return {name: len(data) for name, data in self.reference(scenario).items()}


def make_array(path, shape):
    """A .npy file of zeros and ones without NumPy."""
    n = 1
    for size in shape:
        n *= size
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (117 - len(head)) + b"\n"
    values = b"".join(b"\0\0\x80\x3f" if k % 3 else b"\0\0\0\0" for k in range(n))
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + values)


# ---- Moving a model's tensors to a file next to it: just enough of the wire format ----

def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def fields(data):
    """(number, wire type, value, bytes of the whole field) of each field of a message."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        begin, key = at, number()
        if key & 7 == 0:
            value = number()
        elif key & 7 == 2:
            n = number()
            value = data[at:at + n]
            at += n
        else:
            n = 8 if key & 7 == 1 else 4
            value = data[at:at + n]
            at += n
        yield key >> 3, key & 7, value, data[begin:at]


def block(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def make_external(source, target, data_name):
    """raw_data (9) of the graph's (7) initializers (5) become external_data (13), data_location (14) = 1."""
    stored, model = bytearray(), b""
    for field, _, value, whole in fields(source.read_bytes()):
        if field != 7:
            model += whole
            continue
        graph = b""
        for inner, _, tensor, part in fields(value):
            raw = next((v for f, _, v, _ in fields(tensor) if f == 9), b"") if inner == 5 else b""
            if not raw:
                graph += part
                continue
            entries = {"location": data_name, "offset": str(len(stored)), "length": str(len(raw))}
            moved = b"".join(w for f, _, _, w in fields(tensor) if f != 9)
            moved += b"".join(block(13, block(1, k.encode()) + block(2, v.encode())) for k, v in entries.items())
            stored += raw
            graph += block(5, moved + varint(14 << 3) + varint(1))
        model += block(7, graph)
    target.write_bytes(model)
    (target.parent / data_name).write_bytes(stored)
