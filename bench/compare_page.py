# SPDX-License-Identifier: Apache-2.0
"""What bench/compare.py shows of its cells: tables (the same on the terminal and in bench/notes/speed.md; a short one in
docs/explain/speed.md), charts, and the figures that the ledger keeps. Reads nothing but the results; bench/README.md has their fields."""
import pathlib

import chart
import ledger
from compare_models import NETWORKS
from compare_worker import ENGINES, LABELS, SPARSE_SETTINGS
from page import fill

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE, NOTES, CHARTS = TOP / "docs/explain/speed.md", TOP / "bench/notes/speed.md", TOP / "docs/explain/speed"
SLOW_BELOW = 0.95  # of the fastest peer's speed: below it a row says what costs
NOTE = "Speed as a multiple of the fastest other engine's; longer is faster"
COLOURS = {"lacuna": "a", "onnxruntime": "b", "openvino": "c", "deepsparse": "d"}


def weights_of(cell):
    return cell.get("weights", "dense")


def place_of(cell):
    return weights_of(cell) != "dense", cell["dtype"] != "f32", list(NETWORKS).index(cell["network"]), cell["batch"]


def measured(cell):
    """{engine: result} of the engines that answered rightly."""
    return {engine: one for engine, one in cell["engines"].items() if "min_ms" in one}


def field_of(cell):
    """The time that counts: the least in f32, the median in bf16."""
    return "min_ms" if cell["dtype"] == "f32" else "median_ms"


def ratio(cell):
    """Lacuna's speed as a multiple of the fastest peer's, or None."""
    found = measured(cell)
    peers = [one[field_of(cell)] for engine, one in found.items() if not engine.startswith("lacuna")]
    return min(peers) / found["lacuna"][field_of(cell)] if peers and "lacuna" in found else None


def is_slower(cell):
    found = ratio(cell)
    return found is not None and found < SLOW_BELOW


def engines_of(cells):
    return [engine for engine in ENGINES if any(engine in cell["engines"] for cell in cells)]


def name_of(cell):
    return NETWORKS[cell["network"]][0]


def digits(value, n):
    """At least n digits, and never an exponent."""
    return f"{value:.0f}" if abs(value) >= 10 ** (n - 1) else f"{value:.{n}g}"


def milliseconds(one):
    if one is None:
        return ""
    if "error" in one:
        return "–"
    return f"{digits(one['min_ms'], 4)} ({digits(one['median_ms'], 4)})"


def ratio_text(cell):
    found = ratio(cell)
    return f"{found:.2f} ×" if found else "–"


def line_of(cell):
    """A cell in one line, for the terminal."""
    times = ", ".join(f"{LABELS[engine]} {milliseconds(one)}" for engine, one in cell["engines"].items())
    where = f"{name_of(cell)}, {cell['batch']}, {cell['dtype']}, {weights_of(cell)}"
    return f"{where}: {times} ms; {ratio_text(cell)} ({cell['seconds']:.0f} s)"


def table_of_times(cells):
    engines = engines_of(cells)
    heads = ["network", "batch", *(ENGINES[e] for e in engines), "against the fastest", "difference"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---" + "|---:" * (len(engines) + 2) + "|"]
    for cell in cells:
        ours = cell["engines"].get("lacuna", {})
        off = f"{ours['difference']:.1e}" if "difference" in ours else "–"
        times = [milliseconds(cell["engines"].get(e)) for e in engines]
        lines.append("| " + " | ".join([name_of(cell), str(cell["batch"]), *times, ratio_text(cell), off]) + " |")
    return lines


def gain(cell):
    """The speed of a pruned network as a multiple of Lacuna's own dense kernels', or None."""
    found, field = measured(cell), field_of(cell)
    return found["lacuna dense"][field] / found["lacuna"][field] if {"lacuna", "lacuna dense"} <= found.keys() else None


def table_of_sparse(cells):
    if not cells:
        return ["Not measured."]
    settings = [setting for setting in SPARSE_SETTINGS if any(setting in cell["engines"] for cell in cells)]
    heads = ["network", "batch", "type", *(LABELS[setting] for setting in settings), "against our dense kernels", "against the fastest"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|---" + "|---:" * (len(settings) + 2) + "|"]
    for cell in cells:
        times = [milliseconds(cell["engines"].get(setting)) for setting in settings]
        lines.append("| " + " | ".join([name_of(cell), str(cell["batch"]), cell["dtype"], *times, gain_text(cell), ratio_text(cell)]) + " |")
    return lines


def gain_text(cell):
    return f"{gain(cell):.2f} ×" if gain(cell) else "–"


def table_of_gains(cells):
    """What pruning gains: a row a network and type, the time that counts and two ratios for each batch."""
    batches, rows = sorted({cell["batch"] for cell in cells}), {}
    for cell in cells:
        ours = cell["engines"].get("lacuna", {})
        time = digits(ours[field_of(cell)], 4) if field_of(cell) in ours else "–"
        rows.setdefault((name_of(cell), cell["dtype"]), {})[cell["batch"]] = [time, gain_text(cell), ratio_text(cell)]
    heads = [head for batch in batches for head in (f"batch {batch}: ms", "against dense", "against the fastest")]
    lines = ["| network | type | " + " | ".join(heads) + " |", "|---|---" + "|---:" * len(heads) + "|"]
    for (name, dtype), found in rows.items():
        values = [value for batch in batches for value in found.get(batch, ["", "", ""])]
        lines.append(f"| {name} | {dtype} | " + " | ".join(values) + " |")
    return lines


def loss_text(row):
    ours, theirs = row["lacuna_ms"], row["openvino_ms"]
    return f"{row['kind']} +{digits(ours - theirs, 2)} ms ({digits(ours, 3)}, {digits(theirs, 3)})"


def table_of_losses(cells):
    slower = [cell for cell in cells if is_slower(cell)]
    if not slower:
        return [f"No cell is below {SLOW_BELOW} × the fastest peer."]
    lines = ["| network | batch | type | | what costs: Lacuna's loss (its time, OpenVINO's) |", "|---" * 5 + "|"]
    for cell in slower:
        what = "; ".join(loss_text(row) for row in cell["losses"]) or "not known: only one side can be measured by operator"
        lines.append(f"| {name_of(cell)} | {cell['batch']} | {cell['dtype']} | {ratio_text(cell)} | {what} |")
    return lines


def table_of_starts(cells):
    """First answers and memory; a fresh process an engine."""
    cells = [cell for cell in cells if cell["dtype"] == "f32" and cell["batch"] == 1]
    engines = engines_of(cells)
    heads = [*(f"{ENGINES[e]}, s" for e in engines), *(f"{ENGINES[e]}, MB" for e in engines)]
    lines = ["| network | " + " | ".join(heads) + " |", "|---" + "|---:" * len(heads) + "|"]
    for cell in cells:
        found = measured(cell)
        seconds = [f"{found[e]['answer_s']:.3g}" if e in found else "–" for e in engines]
        memory = [f"{found[e]['peak_mb'] - found[e]['base_mb']:.0f}" if e in found else "–" for e in engines]
        lines.append("| " + " | ".join([name_of(cell), *seconds, *memory]) + " |")
    return lines


def failures(cells):
    """Why an engine has no time, the same reason once."""
    found = {}
    for cell in cells:
        for engine, one in cell["engines"].items():
            if "error" in one:
                pruned = "" if weights_of(cell) == "dense" else f", {weights_of(cell)}"
                where = f"{name_of(cell)} ({cell['batch']}, {cell['dtype']}{pruned})"
                found.setdefault((LABELS[engine], one["error"]), []).append(where)
    lines = []
    for (engine, why), places in found.items():
        where = "everywhere" if len(places) == len(cells) else ", ".join(places)
        lines.append(f"- {engine}, {where}: {why}")
    return lines or ["Every engine answered rightly in every cell."]


def machine_line(results, cells):
    here, versions, waiting = results["circumstances"], {}, 0.0
    for cell in cells:
        for engine, one in measured(cell).items():
            if engine in ENGINES:
                versions[ENGINES[engine]] = one["version"]
            waiting = max(waiting, one["idle_share"])
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    commits = " and ".join(sorted({cell["commit"] for cell in cells}))
    return (f"{here['machine']['cpu']}, {here['threads']} threads, {here['compiler']}, {here['date']}, commit {commits}. "
            f"{names}. Processor time that waiting engines took: {100 * waiting:.1g} % at most.")


def of_weights(results, is_dense):
    return [cell for cell in results["cells"] if (weights_of(cell) == "dense") == is_dense]


def of_dtype(results, dtype):
    return [cell for cell in of_weights(results, True) if cell["dtype"] == dtype]


def text(results):
    """All tables."""
    lines = [machine_line(results, results["cells"])]
    for dtype in ("f32", "bf16"):
        cells = of_dtype(results, dtype)
        if cells:
            lines += ["", f"{dtype}: least (median) of the runs, ms", *table_of_times(cells)]
    dense, sparse = of_weights(results, True), of_weights(results, False)
    if sparse:
        lines += ["", "2:4: least (median) of the runs, ms", *table_of_sparse(sparse)]
    lines += ["", *table_of_losses(dense), "", "first answer and peak memory, f32, batch 1",
              *table_of_starts(dense), "", *failures(results["cells"])]
    return lines


# ---- the page, the ledger ----

def bars_of(cells):
    """A row a network: every engine's speed, the fastest peer's as 1."""
    rows = []
    for cell in cells:
        found, field = measured(cell), field_of(cell)
        peers = [one[field] for engine, one in found.items() if engine != "lacuna"]
        if peers:
            bars = [{"name": text, "colour": COLOURS[engine], "value": min(peers) / found[engine][field]}
                    for engine, text in ENGINES.items() if engine in found]
            rows.append({"name": name_of(cell), "bars": bars})
    return rows


def draw_charts(results):
    """{file name: SVG} of the element types that have rows."""
    out = {}
    for dtype in ("f32", "bf16"):
        cells = of_dtype(results, dtype)
        panels = [{"title": f"batch {batch}, {dtype}", "rows": bars_of([c for c in cells if c["batch"] == batch])}
                  for batch in sorted({cell["batch"] for cell in cells})]
        panels = [panel for panel in panels if panel["rows"]]
        if panels:
            seen = set().union(*map(measured, cells))
            names = [(text, COLOURS[engine]) for engine, text in ENGINES.items() if engine in seen]
            out[f"{dtype}.svg"] = chart.draw_bars(panels, names, NOTE)
    return out


def write_docs(results):
    notes, parts = NOTES.read_text(), {}
    dense, sparse = of_weights(results, True), of_weights(results, False)
    if dense:
        parts |= {"machine": [machine_line(results, dense)], "f32": table_of_times(of_dtype(results, "f32")),
                  "bf16": table_of_times(of_dtype(results, "bf16")), "losses": table_of_losses(dense),
                  "starts": table_of_starts(dense), "failures": failures(dense)}
    if sparse:
        machine = machine_line(results, sparse)
        parts["sparse"] = [machine, "", *table_of_sparse(sparse), "", *failures(sparse)]
        PAGE.write_text(fill(PAGE.read_text(), "gains", "compare.py", [machine, "", *table_of_gains(sparse)]))
    for name, lines in parts.items():
        notes = fill(notes, name, "compare.py", lines)
    NOTES.write_text(notes)
    CHARTS.mkdir(exist_ok=True)
    for name, svg in draw_charts(results).items():
        (CHARTS / name).write_text(svg)
    print(f"wrote {PAGE.relative_to(TOP)}, {NOTES.relative_to(TOP)} and {CHARTS.relative_to(TOP)}")


def figures_of(results):
    """What the ledger keeps of a run."""
    out = {}
    for cell in results["cells"]:
        ours, name = measured(cell).get("lacuna"), f"{cell['network']}, batch {cell['batch']}, {cell['dtype']}"
        if weights_of(cell) != "dense":
            name += f", {weights_of(cell)}"
        if not ours:
            continue
        if gain(cell):
            out[f"{name}: against our dense kernels"] = ledger.figure(gain(cell), "x")
        out[name] = ledger.figure(ours[field_of(cell)], "ms")
        if ratio(cell):
            out[f"{name}: against the fastest"] = ledger.figure(ratio(cell), "x")
        if cell["dtype"] == "f32" and cell["batch"] == 1 and weights_of(cell) == "dense":
            out[f"{cell['network']}: first answer"] = ledger.figure(ours["answer_s"], "s")
            out[f"{cell['network']}: peak memory"] = ledger.figure(ours["peak_mb"], "MB")
    return out
