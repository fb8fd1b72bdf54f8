#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The permutation search: what it reaches and in which time, against what is required and against the last time.

    bench/search.py [--build build/release] [--quick] [--only ROW]... [--json FILE] [--docs] [--record]

Runs search_bench on matrices and `lacuna prune` on trained networks, then prints every wanted line with what was
measured. --docs draws docs/explain/search/efficacy-over-time.svg and fills the tables of docs/explain/search.md and bench/notes/search.md; --record keeps the
figures in bench/ledger.json; --from FILE does both from an earlier --json instead of running anything.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import chart
import ledger
from page import fill

TOP = pathlib.Path(__file__).resolve().parent.parent
CHART = TOP / "docs/explain/search/efficacy-over-time.svg"
PAGE, NOTES = TOP / "docs/explain/search.md", TOP / "bench/notes/search.md"
DRAWN = (("reference", "128 × 64, the reference's matrix"), ("2304x256", "2304 × 256, heterogeneous"),
         ("512x1024", "512 × 1024, gaussian"))
LINES = (("assign", "a"), ("swap, restarted", "b"), ("stripes", "c"))


# ---- trained networks, through the command ----

def groups_of(lacuna, model, strategy, threads):
    """Seconds of the search and the searched groups of a model by id; strategy None: the command's own choice."""
    with tempfile.TemporaryDirectory() as folder:
        command = [lacuna, "prune", model, "-o", pathlib.Path(folder) / model.name, "-q", "--force", "--no-verify", "--no-calibration",
                   "--permute-for", "magnitude", "--json", "-", "--threads", str(threads)]
        command += ["--strategy", strategy] if strategy else []
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"  {model.name}: {done.stderr.strip()}", file=sys.stderr)
        return None
    report = json.loads(done.stdout)
    return report["summary"]["search_seconds"], {g["id"]: g for g in report["groups"] if not g["frozen"] and g["strategy"]}


def measure_model(lacuna, model, threads):
    """Every class of a network under both strategies."""
    ours, theirs = (groups_of(lacuna, model, strategy, threads) for strategy in (None, "stripes"))
    if not ours or not theirs:
        return None
    classes = [{"id": i, "channels": a["channels"], "strategy": a["strategy"], "proven": a["proven"], "kept": a["kept"],
                "efficacy": a["efficacy"], "stripes_kept": b["kept"], "stripes_efficacy": b["efficacy"],
                "stripes_fits": b["strategy"] == "stripes"}
               for i, a in ours[1].items() for b in (theirs[1][i],)]
    return {"model": model.stem, "seconds": ours[0], "stripes_seconds": theirs[0], "classes": classes}


def wanted_of_models(models):
    classes = [c for m in models for c in m["classes"]]
    small = [c for c in classes if c["channels"] == 16]
    no_worse = sum(c["kept"] >= c["stripes_kept"] for c in classes)
    return [wanted("classes of trained networks at least as good as stripes", len(classes), no_worse),
            wanted("their classes of 16 channels that are proven", len(small), sum(c["proven"] for c in small))]


def wanted(text, bound, measured):
    return {"text": text, "relation": ">=", "bound": bound, "measured": measured,
            "verdict": "yes" if measured >= bound else "no"}


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def table_of_models(models):
    """Mean efficacy by network and class size: [(network, channels, classes, stripes, ours, proven)]."""
    rows = []
    for model in models:
        for channels in sorted({c["channels"] for c in model["classes"]}):
            some = [c for c in model["classes"] if c["channels"] == channels]
            rows.append((model["model"], channels, len(some), mean(c["stripes_efficacy"] for c in some),
                         mean(c["efficacy"] for c in some), sum(c["proven"] for c in some)))
    return rows


def measure_models(arguments):
    found = sorted(arguments.models.glob("resnet*_cifar10.onnx")) if arguments.models.is_dir() else []
    if not found:
        print(f"\nno trained networks in {arguments.models}: left out")
        return []
    models = [measure_model(arguments.build / "lacuna", model, arguments.threads) for model in found]
    models = [model for model in models if model]
    if not models:
        return []
    print(f"\n{'trained network':20}{'channels':>9}{'classes':>9}{'stripes':>9}{'auto':>9}{'proven':>8}")
    for name, channels, n, stripes, ours, proven in table_of_models(models):
        print(f"{name:20}{channels:9}{n:9}{stripes:9.2f}{ours:9.2f}{proven:8}")
    for model in models:
        for c in model["classes"]:
            if c["kept"] < c["stripes_kept"]:
                print(f"{model['model']}, group {c['id']}, {c['channels']} channels: stripes {c['stripes_efficacy']:.3f}, "
                      f"{c['strategy']} {c['efficacy']:.3f}")
    return models


# ---- what was measured, seen from different sides ----

def samples(row, algorithm, limited=None):
    """The samples of an algorithm of a row; limited: only those with a time limit, or only those without."""
    return [s for s in row.get("methods", []) if s["method"] == algorithm
            and (limited is None or limited == (s["limit"] is not None))]


def ended(row, algorithm):
    """A deterministic algorithm's own end: the first run that took clearly less than it was given."""
    return next((s for s in samples(row, algorithm) if s["limit"] is None or s["seconds"] < 0.8 * s["limit"]), None)


def figures_of(results):
    """All that the ledger keeps: {name: figure}."""
    out = {}
    for row in results["rows"]:
        for s in row.get("methods", []):
            if s["limit"] is not None and s["method"] in ("assign", "swap, restarted"):
                out[f"{row['row']}: {s['method']} in {chart.seconds_text(s['limit'])}"] = ledger.figure(s["efficacy"], "%")
            elif s["effort"]:
                out[f"{row['row']}: {s['effort']} effort"] = ledger.figure(s["efficacy"], "%")
                out[f"{row['row']}: {s['effort']} effort, time"] = ledger.figure(s["seconds_least"], "s")
        for algorithm in ("stripes", "exact", "swap"):
            end = ended(row, algorithm)
            if end:
                out[f"{row['row']}: {algorithm}"] = ledger.figure(end["efficacy"], "%")
                out[f"{row['row']}: {algorithm}, time"] = ledger.figure(end["seconds_least"], "s")
        faster = times_faster(row)
        if faster:
            out[f"{row['row']}: assign reaches what stripes does, times faster"] = ledger.figure(faster, "x")
        for run in row.get("network_methods", []):
            name = f"ResNet-50 search: {run['method']}, {run['threads']} thread{'s' * (run['threads'] > 1)}"
            out[name] = ledger.figure(run["seconds_least"], "s")
            out[f"{name}, mean efficacy"] = ledger.figure(run["efficacy"], "%")
    for name, channels, _, stripes, ours, _ in table_of_models(results.get("models", [])):
        out[f"{name}, {channels} channels"] = ledger.figure(ours, "%")
        out[f"{name}, {channels} channels: stripes"] = ledger.figure(stripes, "%")
    return out


def times_faster(row):
    """stripes' time over the least time in which assign is as good."""
    end = ended(row, "stripes")
    as_good = [s["seconds"] for s in samples(row, "assign") if end and s["efficacy"] >= end["efficacy"]]
    return end["seconds"] / min(as_good) if as_good else None


def all_wanted(results):
    return [(row["row"], w) for row in results["rows"] for w in row["wanted"]] + \
           [("trained", w) for w in results.get("models_wanted", [])]


def print_wanted(results):
    lines = all_wanted(results)
    print(f"\n{'row':14}{'wanted':68}{'bound':>12}{'measured':>11}")
    for row, w in lines:
        print(f"{row:14}{w['text']:68}{w['relation'] + ' %.5g' % w['bound']:>12}{w['measured']:11.5g}  {w['verdict']}")
    held = sum(w["verdict"] == "yes" for _, w in lines)
    near = sum(w["verdict"] == "near" for _, w in lines)
    print(f"{held} of {len(lines)} hold, {near} nearly (2 % of an efficacy, 10 % of a time)")


# ---- the page ----

def curve(row, algorithm, colour):
    found = [s for s in samples(row, algorithm) if not s["effort"] and s["efficacy"] > 0]
    points = {round(s["seconds"], 9): s["efficacy"] for s in found}
    ends = algorithm == "stripes" and ended(row, algorithm) is not None
    return {"name": algorithm.replace("swap, restarted", "swap"), "colour": colour, "points": sorted(points.items()), "ended": ends}


def draw_chart(results):
    rows = {row["row"]: row for row in results["rows"]}
    panels = []
    for name, title in DRAWN:
        if name not in rows:
            return None
        lines = [curve(rows[name], algorithm, colour) for algorithm, colour in LINES]
        panels.append({"title": title, "lines": [line for line in lines if line["points"]]})
    return chart.draw(panels, "Efficacy in percent over the time of the search, one core; dotted: it has ended by itself")


def cell(one):
    return f"{one['efficacy']:.2f} in {chart.seconds_text(float('%.2g' % one['seconds']))}" if one else "–"


def table_of_matrices(results):
    limits = (0.002, 0.01, 0.1, 1.0, 10.0)
    heads = [f"assign, {chart.seconds_text(limit)}" for limit in limits]
    lines = ["| matrix | stripes | swap | " + " | ".join(heads) + " | exact |", "|---" * (len(limits) + 4) + "|"]
    for row in results["rows"]:
        if "methods" not in row:
            continue
        splits = ended(row, "stripes")
        name = f"{row['rows']} × {row['columns']} {row['weights']}" + f", {row['pattern']}" * (row["pattern"] != "2:4")
        by_limit = {s["limit"]: s for s in samples(row, "assign", limited=True)}
        cells = [f"{by_limit[limit]['efficacy']:.2f}" if limit in by_limit else "" for limit in limits]
        proven = ended(row, "exact")
        lines.append(f"| {name} | {cell(splits)} | {cell(ended(row, 'swap'))} | " + " | ".join(cells)
                     + f" | {cell(proven) if proven else ''} |")
    return lines


def table_of_networks(results):
    lines = ["| network | classes | stripes | Lacuna | |", "|---" * 5 + "|"]
    for row in results["rows"]:
        runs = {(r["method"], r["threads"]): r for r in row.get("network_methods", [])}
        stripes = runs.get(("stripes", 1))
        for (algorithm, threads), run in runs.items():
            if algorithm == "stripes":
                continue
            rival = f"{stripes['efficacy']:.2f} in {stripes['seconds_least']:.3g} s" if stripes else "–"
            lines.append(f"| ResNet-50, heterogeneous weights | {row['classes']} | {rival} | {run['efficacy']:.2f} in "
                         f"{run['seconds_least']:.3g} s | {algorithm}, {threads} thread{'s' * (threads > 1)} |")
    for name, channels, n, stripes, ours, proven in table_of_models(results.get("models", [])):
        note = "all proven" if proven == n else f"{proven} proven" if proven else ""
        lines.append(f"| {name}, {channels} channels | {n} | {stripes:.2f} | {ours:.2f} | {note} |")
    return lines


def write_docs(results):
    here = results["circumstances"]
    page = PAGE.read_text()
    page = fill(page, "machine", "search.py", [f"{here['machine']['cpu']} ({results['cpu']}), {here['compiler']}, {here['date']}."])
    NOTES.write_text(fill(NOTES.read_text(), "matrices", "search.py", table_of_matrices(results)))
    PAGE.write_text(fill(page, "networks", "search.py", table_of_networks(results)))
    svg = draw_chart(results)
    if svg:
        CHART.parent.mkdir(exist_ok=True)
        CHART.write_text(svg)
    print(f"wrote {PAGE.relative_to(TOP)}, {NOTES.relative_to(TOP)}" + (f", {CHART.relative_to(TOP)}" if svg else "; rows for the chart are missing"))


# ---- the command line ----

def measure(arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "search.json"
        command = [arguments.build / "bench/search_bench", "--json", out, "--threads", str(arguments.threads)]
        command += ["--quick"] * arguments.quick
        for row in arguments.only:
            command += ["--only", row]
        subprocess.run(command, check=True)
        results = json.loads(out.read_text())
    results["circumstances"] = ledger.circumstances(arguments.build)
    if not arguments.only:
        results["models"] = measure_models(arguments)
        results["models_wanted"] = wanted_of_models(results["models"]) if results["models"] else []
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--models", type=pathlib.Path, default=TOP.parent / "shared/models", help="folder of trained networks")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="under a minute: fewer seeds, no large matrices")
    parser.add_argument("--only", action="append", default=[], metavar="ROW", help="search_bench --list names them")
    parser.add_argument("--from", type=pathlib.Path, dest="earlier", metavar="FILE", help="results of an earlier --json")
    parser.add_argument("--json", type=pathlib.Path, help="keep all results")
    parser.add_argument("--docs", action="store_true", help="write the tables and the chart of docs/explain/search.md")
    parser.add_argument("--record", action="store_true", help="add an entry to bench/ledger.json")
    arguments = parser.parse_args()
    results = json.loads(arguments.earlier.read_text()) if arguments.earlier else measure(arguments)
    print_wanted(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    if arguments.docs:
        write_docs(results)
    bench = "search-quick" if results["quick"] else "search"
    ledger.report(bench, figures_of(results), results["circumstances"], arguments.record)


if __name__ == "__main__":
    main()
