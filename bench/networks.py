#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks in use: what may be permuted and pruned in each, whether the result is the same, and what it takes.

    bench/networks.py [--python PYTHON] [--build build/release] [--only TEXT] [--effort fast] [--keep DIR] [--again]
                      [--json FILE] [--from FILE] [--no-run] [--causes] [--docs]

PYTHON has what bench/requirements-networks.txt names. bench/networks_make.py says which networks there are; to these come
the skeletons of tests/fixtures/zoo that Keras, tf2onnx and Paddle wrote. For each: `inspect`; `prune`, with verification;
`check` of the result, against the original, which must count what prune counted; `permute`, and the outputs of ONNX Runtime
before and after it (bench/networks_agree.py). --json keeps what was found after every network, --from takes what an earlier
run kept and measures what is missing there (--again: all that --only names). --causes prints what stays in place, by cause;
--docs writes the tables of docs/reference/networks.md and bench/notes/networks.md.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from page import fill

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE, NOTES = TOP / "docs/reference/networks.md", TOP / "bench/notes/networks.md"
ZOO = ("densenet121_tf", "efficientnet_b0_keras", "efficientnet_b0_tf", "mobilenet_v2_keras", "mobilenet_v2_paddle",
       "mobilenet_v2_tf", "resnet50_keras", "resnet50_paddle", "resnet50_tf", "resnet20_qdq")
TOLERANCE = 1e-3  # of ONNX Runtime's outputs, relative to the largest: float32 sums in another order, layer after layer
FLIPPED = 0.02  # of its integers: indices of scores that are nearly equal
AT_ONCE = 8  # networks that are made by one process, and then measured
FLOOR = 1e-6      # what float32 loses of a probability near 0


class Failed(Exception):
    """A step failed; the text is its own."""


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][-300:] if lines else "no word"


def spent(words, folder, limit):
    """Exit status, outputs and what it took: seconds, processor seconds, MB at most."""
    began = time.monotonic()
    with open(folder / "out.txt", "w+", encoding="utf-8") as out, open(folder / "err.txt", "w+", encoding="utf-8") as err:
        with subprocess.Popen([str(word) for word in words], stdout=out, stderr=err) as child:
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    child.returncode = os.waitstatus_to_exitcode(status)
                    break
                if time.monotonic() - began > limit:
                    child.kill()
                time.sleep(0.01)
        out.seek(0)
        err.seek(0)
        return {"status": child.returncode, "out": out.read(), "err": err.read(), "seconds": time.monotonic() - began,
                "processor_seconds": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def lacuna(self, *words, wanted=(0,)):
        run = spent([self.args.build / "lacuna", *words], self.folder, self.args.limit)
        if run["status"] not in wanted:
            raise Failed(f"{words[0]}: exit {run['status']}: {last_line(run['err'])}")
        return run

    def make(self, names, kept):
        """KEPT/NAME/model.onnx for those that are not there."""
        missing = [name for name in names if not (kept / folder_of(name) / "inputs.npz").exists()]
        for name in [name for name in missing if name.startswith("zoo/")]:
            (kept / folder_of(name)).mkdir(parents=True, exist_ok=True)
            run = spent([self.args.build / "tests/tools/fill_model", TOP / f"tests/fixtures/zoo/{name.split('/')[1]}.onnx",
                         kept / folder_of(name) / "model.onnx", "1"], self.folder, self.args.limit)
            if run["status"] != 0:
                raise Failed(f"{name}: {last_line(run['err'])}")
        others = [name for name in missing if not name.startswith("zoo/")]
        if others:
            spent([self.args.python, TOP / "bench/networks_make.py", kept, *others], self.folder, 3600)

    def agree(self, model, permuted):
        words = [self.args.python, TOP / "bench/networks_agree.py", model, permuted, model.parent / "inputs.npz"]
        run = spent(words, self.folder, 4 * self.args.limit)
        if run["status"] != 0:
            raise Failed(f"ONNX Runtime: {last_line(run['err'])}")
        return json.loads(run["out"])

    def look(self, model):
        """All columns of one network."""
        found = {"size_mb": sum(file.stat().st_size for file in model.parent.glob("model.onnx*")) / 1e6}
        inspect = self.lacuna("inspect", model, "--json", "-", "-q")
        report = json.loads(inspect["out"])
        summary = report["summary"]
        found |= {field: summary[field] for field in ("layers", "eligible", "permuted", "groups")}
        found |= {"inspect_processor_seconds": inspect["processor_seconds"],
                  "stays": {layer["name"]: layer["reason"] for layer in report["layers"]
                            if layer["eligible"] and not layer["searchable"]},
                  "frozen": [[group["cause"], group["channels"], len(group["consumers"]), len(group["producers"])]
                             for group in report["groups"] if group["frozen"]]}
        pruned, permuted = self.folder / "pruned.onnx", self.folder / "permuted.onnx"
        prune = self.lacuna("prune", model, "-o", pruned, "--force", "--no-calibration", "--effort", self.args.effort, "--json", "-", "-q")
        report = json.loads(prune["out"])
        summary = report["summary"]
        layers = [layer for layer in report["layers"] if layer["pruned"]]
        total = sum(layer["total"] for layer in layers) or 1.0
        planning = summary["total_seconds"] - summary["search_seconds"] - summary["proof_seconds"]
        found |= {"pruned": summary["pruned"], "verified": report["verification"]["state"], "compared": summary["values_compared"],
                  "skipped": summary["values_skipped"], "proof": summary["proof"], "worst_ratio": summary["worst_ratio"],
                  "kept_identity": sum(layer["kept_identity"] for layer in layers) / total,
                  "kept": sum(layer["kept"] for layer in layers) / total, "planning_seconds": planning,
                  "seconds": prune["seconds"], "processor_seconds": prune["processor_seconds"], "peak_mb": prune["peak_mb"]}
        check = self.lacuna("check", pruned, "--against", model, "--no-verify", "-q", "--json", "-", wanted=(0, 1))
        found |= {"check": check["status"], "counted_otherwise": counted_otherwise(report, json.loads(check["out"]))}
        self.lacuna("permute", model, "-o", permuted, "--force", "--effort", self.args.effort, "--no-verify", "-q")
        found["runtime"] = self.agree(model, permuted)
        return found

    def measure(self, name, kept):
        place = kept / folder_of(name)
        if (place / "failed.txt").exists():
            raise Failed(f"not made: {' '.join((place / 'failed.txt').read_text().split())[:200]}")
        if not (place / "model.onnx").exists():
            raise Failed("not made")
        return self.look(place / "model.onnx")


def counted_otherwise(said, seen):
    """Layers of which check does not say what prune said."""
    fields = ("name", "eligible", "pruned", "zeros", "elements", "holds_pattern")
    pairs = list(zip(said["layers"], seen["layers"]))
    missing = [] if len(said["layers"]) == len(seen["layers"]) else ["number of layers"]
    return missing + [a["name"] for a, b in pairs if [a[field] for field in fields] != [b[field] for field in fields]]


def folder_of(name):
    return name.replace("/", "--")


def all_names(args):
    made = subprocess.run([str(args.python), str(TOP / "bench/networks_make.py"), "--list"], capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        raise Failed(f"networks_make.py: {last_line(made.stderr)}")
    return [*made.stdout.split(), *(f"zoo/{name}/{name.split('_')[-1]}" for name in ZOO)]


def measure(args, results):
    names = [name for name in all_names(args) if any(part in name for part in args.only.split(","))]
    names = [name for name in names if args.again or name not in results or "failed" in results[name]]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, pathlib.Path(folder))
        for first in range(0, len(names), AT_ONCE):
            kept = args.keep or pathlib.Path(folder) / f"models{first}"
            bench.make(names[first:first + AT_ONCE], kept)
            for name in names[first:first + AT_ONCE]:
                try:
                    results[name] = bench.measure(name, kept)
                    print(f"{name}: {line_of(results[name])}", flush=True)
                except Failed as failed:
                    results[name] = {"failed": str(failed)}
                    print(f"{name}: FAILED: {failed}", flush=True)
                if args.json:
                    args.json.write_text(json.dumps(results, indent=1) + "\n")
            if not args.keep:
                shutil.rmtree(kept)


# ---- the page ----

def agrees(found):
    runtime = found["runtime"]
    return runtime["error"] <= TOLERANCE * runtime["scale"] + FLOOR and runtime["flipped"] <= FLIPPED


def line_of(found):
    cells = [found[field] for field in ("layers", "eligible", "permuted", "pruned")]
    return (f"{cells}, kept {100 * found['kept_identity']:.1f} -> {100 * found['kept']:.1f} %, "
            f"planning {found['planning_seconds']:.2f} s, {found['seconds']:.1f} s, {found['peak_mb']:.0f} MB, "
            f"verified {found['verified']} ({found['skipped']} skipped), check {found['check']}"
            f"{' COUNTS OTHERWISE ' + ' '.join(found['counted_otherwise'][:3]) if found.get('counted_otherwise') else ''}, "
            f"{'agrees' if agrees(found) else 'DIFFERS'} {found['runtime']}")


def verification(found):
    if not found["proof"]:
        return "nothing moved"
    part = "" if found["verified"] == "verified" else f"**{found['verified']}**, "
    return f"{part}{found['compared']} values" + (f", {found['skipped']} skipped" if found["skipped"] else "")


def network_lines(results):
    lines = ["| network | from | layers | eligible | permuted | pruned | kept, file's order | searched | planning s | "
             "all s | cpu s | peak MB | verified | ONNX Runtime | check |", "|---|---|" + "--:|" * 10 + "---|---|--:|"]
    for name, found in results.items():
        library, network, exporter = name.split("/")
        if "failed" in found:
            continue
        runtime = found["runtime"]
        lines.append(f"| {network} | {library}, {exporter} | {found['layers']} | {found['eligible']} | {found['permuted']} | "
                     f"{found['pruned']} | {100 * found['kept_identity']:.1f} % | {100 * found['kept']:.1f} % | "
                     f"{found['inspect_processor_seconds']:.2f} | {found['seconds']:.1f} | {found['processor_seconds']:.1f} | "
                     f"{found['peak_mb']:.0f} | {verification(found)} | "
                     f"{runtime['error'] / max(runtime['scale'], 1e-30):.0e} | {found['check']} |")
    return lines


def pruned_lines(results):
    """What a reader looks a network up for."""
    lines = ["| network | from | layers | eligible | permuted | pruned | kept |", "|---|---|" + "--:|" * 5]
    for name, found in results.items():
        library, network, exporter = name.split("/")
        if "failed" not in found:
            lines.append(f"| {network} | {library}, {exporter} | {found['layers']} | {found['eligible']} | {found['permuted']} | "
                         f"{found['pruned']} | {100 * found['kept']:.1f} % |")
    return lines


def by_cause(results):
    """Cause -> networks -> layers that could be pruned whose input channels stay in place."""
    causes = {}
    for name, found in results.items():
        for reason in found.get("stays", {}).values():
            where = causes.setdefault(reason or "?", {})
            where[name] = where.get(name, 0) + 1
    return causes


def plain_cause(reason):
    """Without the names of one network: what stays in place, and for what kind of reason."""
    text = (reason or "?").removeprefix("its input channels stay in place: ")
    head, _, tail = text.rpartition(": ")
    if text.endswith("is an output of the network"):
        return "an output of the network"
    if text.endswith("is an input of the network"):
        return "an input of the network"
    return tail if head else text


def cause_lines(results):
    found = {}
    for reason, where in by_cause(results).items():
        cause = found.setdefault(plain_cause(reason), {})
        for name, n in where.items():
            cause[name] = cause.get(name, 0) + n
    lines = ["| cause | layers | networks |", "|---|--:|---|"]
    for cause, where in sorted(found.items(), key=lambda item: -sum(item[1].values())):
        short = dict.fromkeys(name.split("/")[1] for name in where)
        lines.append(f"| {cause} | {sum(where.values())} | {', '.join(short)} |")
    return lines


def failure_lines(results):
    failed = [f"- {name}: {found['failed']}" for name, found in results.items() if "failed" in found]
    return failed or ["None."]


def print_causes(results):
    for cause, where in sorted(by_cause(results).items(), key=lambda item: -sum(item[1].values())):
        some = ", ".join(f"{name} {n}" for name, n in list(where.items())[:6])
        print(f"{sum(where.values()):5} {cause}\n      {len(where)} networks: {some}")


def write_page(results):
    text = fill(PAGE.read_text(), "pruned", "networks.py", pruned_lines(results))
    PAGE.write_text(fill(text, "causes", "networks.py", cause_lines(results)))
    notes = fill(NOTES.read_text(), "networks", "networks.py", network_lines(results))
    NOTES.write_text(fill(notes, "not measured", "networks.py", failure_lines(results)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--python", type=pathlib.Path, default=pathlib.Path(sys.executable))
    parser.add_argument("--only", default="", help="only networks whose name has one of these in it, a,b,c")
    parser.add_argument("--effort", default="fast")
    parser.add_argument("--limit", type=int, default=300, help="seconds that one run of the command may take")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder that keeps the models for the next run")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    parser.add_argument("--no-run", action="store_true", help="only what --from has")
    parser.add_argument("--causes", action="store_true")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    results = json.loads(args.earlier.read_text()) if args.earlier else {}
    try:
        if not args.no_run:
            measure(args, results)
    except Failed as failed:
        sys.exit(f"networks.py: {failed}")
    if args.causes:
        print_causes(results)
    if args.docs:
        write_page(results)


if __name__ == "__main__":
    main()
