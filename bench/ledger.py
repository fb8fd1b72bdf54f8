#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What benches measured before: bench/ledger.json, one entry a recorded run.

    bench/ledger.py [--bench NAME] [--record]        the last entries; or take in the figures of a JSON file
    bench/ledger.py FILE.json [--build build/release] [--record]

A bench gives its figures as {name: figure(value, unit)}; `report` prints the change against the last entry of the same
machine model and bench, and adds an entry only when told to. The schema is in bench/README.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent
LEDGER = TOP / "bench/ledger.json"
# Units of which less is better; of all others (%, x, G/s) more is.
LESS = {"s", "ms", "us", "ns", "MB"}
# What two runs of the same program differ by: no change is reported below it.
NOISE_SPEED, NOISE_EFFICACY = 0.05, 0.005


def figure(value, unit):
    """A measured number. unit: s ms us ns MB (less is better) or %, x, G/s (more is)."""
    return {"value": float(f"{value:.4g}"), "unit": unit}


def text_of(one):
    value, unit = one["value"], one["unit"]
    if unit == "s" and value < 0.9995:
        value, unit = 1e3 * value, "ms"
    return f"{value:.4g} {unit}"


def processor():
    try:
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.lower().startswith(("model name", "cpu model")):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def output_of(*command):
    """The first line that a command prints, or nothing where it cannot run."""
    try:
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip().split("\n")[0]


def cache_value(build, name):
    """A variable of the build folder's CMake cache."""
    try:
        found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1] if found else ""


def circumstances(build):
    """Where and with what a run was made."""
    build = pathlib.Path(build)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": {"cpu": processor(), "cores": len(os.sched_getaffinity(0)), "architecture": platform.machine()},
        "compiler": output_of(cache_value(build, "CMAKE_C_COMPILER") or "cc", "--version"),
        "build": cache_value(build, "CMAKE_BUILD_TYPE"),
        "version": cache_value(build, "CMAKE_PROJECT_VERSION"),
        "commit": output_of("git", "describe", "--always", "--dirty=+"),
    }


def read():
    try:
        return json.loads(LEDGER.read_text())
    except FileNotFoundError:
        return {"schema": 1, "entries": []}


def text_of_entry(entry):
    """An entry with one line per figure, so that a diff shows what changed."""
    head = json.dumps({key: value for key, value in entry.items() if key != "figures"}, ensure_ascii=False)
    lines = [f"   {json.dumps(name, ensure_ascii=False)}: {json.dumps(one)}" for name, one in entry["figures"].items()]
    return f"  {head[:-1]}, \"figures\": {{\n" + ",\n".join(lines) + "\n  }}"


def write(ledger):
    entries = ",\n".join(text_of_entry(entry) for entry in ledger["entries"])
    temporary = LEDGER.with_suffix(".part")
    temporary.write_text(f'{{"schema": {ledger["schema"]}, "entries": [\n{entries}\n]}}\n', encoding="utf-8")
    temporary.replace(LEDGER)


def last_entry(ledger, bench, cpu):
    for entry in reversed(ledger["entries"]):
        if entry["bench"] == bench and entry["machine"]["cpu"] == cpu:
            return entry
    return None


def change_of(name, now, was):
    """A line about a figure that changed, or None."""
    if not was["value"]:
        return None if not now["value"] else f"{name}: {text_of(now)}, was {text_of(was)}"
    part = now["value"] / was["value"] - 1
    if abs(part) <= (NOISE_EFFICACY if now["unit"] == "%" else NOISE_SPEED):
        return None
    worse = (part > 0) == (now["unit"] in LESS)
    return f"{name}: {text_of(now)}, was {text_of(was)} ({100 * part:+.3g} %){' worse' if worse else ''}"


def report(bench, figures, here, record=False):
    """Prints what changed since the last entry of this machine model; adds an entry if `record`. here: circumstances."""
    ledger = read()
    before = last_entry(ledger, bench, here["machine"]["cpu"])
    if before:
        known = {name: one for name, one in figures.items() if name in before["figures"]}
        lines = [change_of(name, one, before["figures"][name]) for name, one in known.items()]
        lines = [line for line in lines if line]
        print(f"\nagainst {before['date']}, {before['commit']}, {before['compiler']}:")
        for line in lines:
            print(f"  {line}")
        print(f"  {len(known) - len(lines)} of {len(known)} figures as before, {len(figures) - len(known)} new")
    else:
        print(f"\nno entry for {bench} on {here['machine']['cpu']} yet; --record makes one")
    if record:
        ledger["entries"].append({"bench": bench, **here, "figures": figures})
        write(ledger)
        print(f"recorded {len(figures)} figures in {LEDGER.relative_to(TOP)}")


def show(bench):
    for entry in read()["entries"]:
        if bench in (None, entry["bench"]):
            print(f"{entry['date']}  {entry['bench']:8} {entry['commit']:12} {entry['machine']['cpu']}, "
                  f"{entry['machine']['cores']} cores, {len(entry['figures'])} figures")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=pathlib.Path, help='{"bench": NAME, "figures": {NAME: {"value", "unit"}}}')
    parser.add_argument("--bench", help="only entries of this bench")
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--record", action="store_true", help="add an entry to the ledger")
    arguments = parser.parse_args()
    if not arguments.file:
        show(arguments.bench)
        return
    measured = json.loads(arguments.file.read_text())
    figures = {name: figure(one["value"], one["unit"]) for name, one in measured["figures"].items()}
    report(measured["bench"], figures, circumstances(arguments.build), arguments.record)


if __name__ == "__main__":
    main()
