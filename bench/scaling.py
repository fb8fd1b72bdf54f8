#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How training on many nodes scales, by the model of scaling_model.py: tables, charts and the published figures.

    bench/scaling.py [--docs]                             the tables; --docs writes docs/explain/scaling.md, bench/notes/scaling.md and charts
    bench/scaling.py --measure BUILD [--threads N]        measures ResNet-50's step here, into bench/scaling.json
    bench/scaling.py --nodes 64 --link 25 [--images 300] [--batch 32] [--per-node 1] [--algorithm direct] [--bucket 4]
                     [--wire f32|bf16] [--latency US] [--jitter SHARE]           one case

The step of one process is the measured one; other speeds are that step, faster. See docs/explain/scaling.md.
"""
import argparse
import json
import os
import pathlib
import statistics
from dataclasses import replace

import chart
import ledger
import scaling_model as model
from compare_worker import HABITS, Failed, Process
from page import fill
from scaling_model import MIB, Cluster, gigabits, simulate

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE, NOTES = TOP / "docs/explain/scaling.md", TOP / "bench/notes/scaling.md"
CHARTS, MEASURED = TOP / "docs/explain/scaling", TOP / "bench/scaling.json"
LINKS = {10: "a", 25: "b", 100: "c", 200: "d"}  # Gbit/s of a node, and colours
COLOURS = {"direct": "a", "ring": "b", "tree": "c", "halving": "d", "hierarchical": "e"}
SHORT = {"hierarchical": "inside first"}  # what fits next to a chart
NODES = [8, 16, 32, 64, 128, 256, 512, 1024]

JITTER = 0.01  # standard deviation of a process's step in tables and charts: all wait for the last

# What other programs published for ResNet-50 in bf16, batch 256 a card, LARS: images a second of one card and of eight.
ONE_CARD, EIGHT_CARDS = 1554.0, 11801.0
# The server of these cards: seven of a card's ten ports of 100 Gbit/s lead to the seven others, one each.
SERVER = Cluster(1, 8, inside=gigabits(700), inside_latency=5e-6, sums=500e9)


def measured():
    return json.loads(MEASURED.read_text())


def resnet50(images, batch, name):
    """ResNet-50 at so many images a second, its parts in the measured proportions."""
    shares, step = measured()["shares"], batch / images
    backward = [step * share for share in shares["backward"]]
    return model.resnet50(name, batch, step * shares["forward"], backward, step * shares["update"])


def card():
    return resnet50(ONE_CARD, 256, "card")


def cases():
    """{key: (title, step of a process, cluster of one node)}"""
    here = measured()
    speed, cores = here["batch"] / here["step_s"], here["threads"]
    return {"small": (f"{cores} cores, batch 32: {speed:.1f} images/s", resnet50(speed, 32, "small"),
                      Cluster(1, jitter=JITTER)),
            "large": (f"64 such cores, batch 256: {64 / cores * speed:.0f} images/s",
                      resnet50(64 / cores * speed, 256, "large"), Cluster(1, sums=20e9, jitter=JITTER)),
            "short": (f"64 such cores, batch 32: {64 / cores * speed:.0f} images/s",
                      resnet50(64 / cores * speed, 32, "short"), Cluster(1, sums=20e9, jitter=JITTER)),
            "cards": (f"8 cards, batch 256 each: {8 * ONE_CARD:.0f} images/s", card(), replace(SERVER, between_latency=5e-6, jitter=JITTER))}


def algorithm_of(cluster):
    return "hierarchical" if cluster.per_node > 1 else "direct"


# ---- the published figures ----

def solve(low, high, images_of):
    """The x between low and high at which images_of(x), which rises, is what eight cards do."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if images_of(middle) < EIGHT_CARDS else (low, middle)
    return (low + high) / 2


def explanations():
    """[(text, step, cluster, overlap)]: what would make of one card's speed that of eight, one thing at a time."""
    work = card()

    def images(overlap=True, **changed):
        return simulate(work, replace(SERVER, **changed), overlap=overlap)["images"]

    not_overlapped = solve(1e8, 1e12, lambda rate: images(False, inside=rate))
    hidden = solve(1e8, 1e12, lambda rate: images(inside=rate))
    latency = solve(-1.0, 0.0, lambda minus: images(inside_latency=-minus))
    jitter = solve(-1.0, 0.0, lambda minus: images(jitter=-minus))
    lost = solve(-1.0, 0.0, lambda minus: simulate(slower(work, -minus), SERVER)["images"])
    return [(f"nothing hidden, {8e-9 * not_overlapped:.0f} Gbit/s a card instead of 700", work,
             replace(SERVER, inside=not_overlapped), False),
            (f"hidden by backward, {8e-9 * hidden:.1f} Gbit/s a card", work, replace(SERVER, inside=hidden), True),
            (f"hidden, {-1e3 * latency:.1f} ms of latency", work, replace(SERVER, inside_latency=-latency), True),
            (f"hidden, cards whose steps differ by {-100 * jitter:.1f} % (standard deviation)", work,
             replace(SERVER, jitter=-jitter), True),
            (f"hidden, {-1e3 * lost:.1f} ms more in each card's step: images, launching", slower(work, -lost), SERVER, True)]


def slower(work, seconds):
    return replace(work, forward=work.forward + seconds)


def table_of_published():
    yield "| what is assumed | images/s of eight | efficiency |"
    yield "|---|---|---|"
    yield f"| *published* | *{EIGHT_CARDS:.0f}* | *{EIGHT_CARDS / 8 / ONE_CARD:.3f}* |"
    for text, overlap in (("documented links, hidden by backward", True), ("documented links, nothing hidden", False)):
        found = simulate(card(), SERVER, overlap=overlap)
        yield f"| {text} | {found['images']:.0f} | {found['efficiency']:.3f} |"
    for text, work, cluster, overlap in explanations():
        found = simulate(work, cluster, overlap=overlap)
        yield f"| {text} | {found['images']:.0f} | {found['images'] / 8 / ONE_CARD:.3f} |"


# ---- tables and charts ----

def table_of(key):
    title, work, cluster = cases()[key]
    yield f"| {title} | " + " | ".join(f"{link} Gbit/s" for link in LINKS) + " |"
    yield "|---|" + "---|" * len(LINKS)
    for nodes in NODES:
        cells = []
        for link in LINKS:
            found = simulate(work, replace(cluster, nodes=nodes, between=gigabits(link)), algorithm_of(cluster))
            cells.append(f"{found['images']:,.0f}, {100 * found['efficiency']:.1f} %, {100 * found['hidden']:.0f} %")
        yield f"| {nodes} nodes | " + " | ".join(cells) + " |"


def table_of_algorithms():
    names = list(COLOURS)
    yield "| 25 Gbit/s, nodes | of | " + " | ".join(names) + " |"
    yield "|---|---|" + "---|" * len(names)
    for key, called in (("short", "64 cores, batch 32"), ("cards", "8 cards")):
        _, work, cluster = cases()[key]
        for nodes in (8, 64, 1024):
            there = replace(cluster, nodes=nodes, between=gigabits(25))
            found = [simulate(work, there, name)["efficiency"] for name in names]
            yield f"| {nodes} | {called} | " + " | ".join(f"{100 * one:.1f} %" for one in found) + " |"


def lines_of(work, clusters, algorithm):
    return [(cluster.nodes, 100 * simulate(work, cluster, algorithm)["efficiency"]) for cluster in clusters]


def panel(title, lines):
    return {"title": title, "lines": lines, "range": (0, 100), "ticks": [(n, str(n)) for n in NODES]}


def chart_of_links():
    panels = []
    for key in ("large", "short", "cards"):
        title, work, cluster = cases()[key]
        panels.append(panel(title, [
            {"name": f"{link} Gbit/s", "colour": colour,
             "points": lines_of(work, [replace(cluster, nodes=n, between=gigabits(link)) for n in NODES],
                                algorithm_of(cluster))} for link, colour in LINKS.items()]))
    return chart.draw(panels, "Efficiency in % over the number of nodes, by each node's link and speed; ResNet-50, f32 on the "
                              "wire, sums hidden by backward")


def chart_of_algorithms():
    panels = []
    for key in ("short", "cards"):
        title, work, cluster = cases()[key]
        panels.append(panel(title, [
            {"name": SHORT.get(name, name), "colour": colour,
             "points": lines_of(work, [replace(cluster, nodes=n, between=gigabits(25)) for n in NODES], name)}
            for name, colour in COLOURS.items()]))
    return chart.draw(panels, "Efficiency in % over the number of nodes, by algorithm, 25 Gbit/s a node; ResNet-50")


def write_docs():
    text, notes, here = PAGE.read_text(), NOTES.read_text(), measured()
    for key in cases():
        if key == "large":
            text = fill(text, key, "scaling.py", list(table_of(key)))
        else:
            notes = fill(notes, key, "scaling.py", list(table_of(key)))
    text = fill(text, "algorithms", "scaling.py", list(table_of_algorithms()))
    NOTES.write_text(fill(notes, "published", "scaling.py", list(table_of_published())))
    shares = here["shares"]
    text = fill(text, "step", "scaling.py", [
        f"ResNet-50, {here['dtype']}, batch {here['batch']}, {here['threads']} threads: {here['step_s']:.2f} s a step; forward "
        f"{100 * shares['forward']:.1f} %, backward {100 * sum(shares['backward']):.1f} %, update {100 * shares['update']:.1f} %. "
        f"{here['machine']['cpu']}, Lacuna {here['commit']}, {here['date']}."])
    PAGE.write_text(text)
    CHARTS.mkdir(exist_ok=True)
    (CHARTS / "links.svg").write_text(chart_of_links())
    (CHARTS / "algorithms.svg").write_text(chart_of_algorithms())
    print(f"wrote {PAGE.relative_to(TOP)}, {NOTES.relative_to(TOP)} and {CHARTS.relative_to(TOP)}")


# ---- measuring ----

def shares_of(steps, update_ms):
    """Of a step's time: {"forward", "backward": [each layer, the last one first], "update"}. A layer's backward ends with the
    gradient of its weights (the classifier's bias comes last there)."""
    forward, backward, now = 0.0, [], None
    for step in steps:
        if now is None and "Grad" not in step["op"]:
            forward += step["ms"]
            continue
        now = (now or 0.0) + step["ms"]
        if step["op"] in ("ConvGradWeight", "ReduceSum"):
            backward.append(now)
            now = 0.0
    backward[-1] += now
    whole = forward + sum(backward) + update_ms
    return {"forward": round(forward / whole, 5), "backward": [round(one / whole, 5) for one in backward],
            "update": round(update_ms / whole, 5)}


def measure(build, threads, batch=32):
    """ResNet-50's step here: the median of whole ones, shared out by the least time of each of its parts in three."""
    command = [str(build / "bench/train_worker"), "resnet50", str(batch), "f32", str(threads)]
    worker = Process(command, 900.0, **HABITS["lacuna"], OMP_NUM_THREADS=str(threads))
    try:
        whole = statistics.median(worker.ask("run 40", 900.0)["ms"])
        parts = worker.ask("steps 3", 900.0)
    finally:
        worker.close()
    found = {"network": "resnet50", "dtype": "f32", "batch": batch, "threads": threads, "step_s": round(whole / 1e3, 4),
             "shares": shares_of(parts["steps"], parts["update_ms"]), **ledger.circumstances(build)}
    MEASURED.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {MEASURED.relative_to(TOP)}: {found['step_s']} s a step")


# ---- the program ----

def one_case(arguments):
    batch = arguments.batch
    work = resnet50(arguments.images, batch, "case") if arguments.images else cases()["small"][1]
    cluster = Cluster(arguments.nodes, arguments.per_node, between=gigabits(arguments.link),
                      between_latency=1e-6 * arguments.latency, jitter=arguments.jitter)
    element = 2 if arguments.wire == "bf16" else 4
    found = simulate(work, cluster, arguments.algorithm or algorithm_of(cluster), int(arguments.bucket * MIB), element)
    print(f"{found['images']:.1f} images/s, efficiency {found['efficiency']:.4f}; a step takes {found['step']:.4f} s, sums "
          f"{found['sums']:.4f} s, {100 * found['hidden']:.1f} % of them hidden")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", action="store_true", help="write docs/explain/scaling.md, bench/notes/scaling.md and charts")
    parser.add_argument("--measure", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of --measure")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--per-node", type=int, default=1, help="processes")
    parser.add_argument("--link", type=float, default=10.0, metavar="GBIT", help="of each node")
    parser.add_argument("--latency", type=float, default=20.0, metavar="US", help="between nodes")
    parser.add_argument("--images", type=float, help="images a second of one process (default: as measured)")
    parser.add_argument("--batch", type=int, default=32, help="of one process")
    parser.add_argument("--algorithm", choices=model.ALGORITHMS)
    parser.add_argument("--bucket", type=float, default=4.0, metavar="MIB")
    parser.add_argument("--wire", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--jitter", type=float, default=0.0, help="standard deviation of a step, as a share")
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.measure:
        try:
            measure(arguments.measure.resolve(), arguments.threads)
        except Failed as why:
            raise SystemExit(str(why)) from None
    if arguments.nodes:
        one_case(arguments)
    elif arguments.docs or not arguments.measure:
        for key in cases():
            print("\n".join(table_of(key)) + "\n")
        print("\n".join(table_of_algorithms()) + "\n\n" + "\n".join(table_of_published()))
        if arguments.docs:
            write_docs()


if __name__ == "__main__":
    main()
