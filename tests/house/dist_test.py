#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A release has the same bytes twice, holds what is needed to build it, and lists every library that README.md names."""
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
RESULTS = []


def expect(sentence, held, detail=""):
    RESULTS.append(bool(held))
    if not held:
        print(f"{sentence}: {detail}")


def main():
    if subprocess.run(["git", "-C", TOP, "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        print("dist: skipped, this is no checkout of git")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        folders = [pathlib.Path(folder, name) for name in "ab"]
        for to in folders:
            subprocess.run([TOP / "tools/dist", "--to", to], check=True, stdout=subprocess.DEVNULL)
        first, second = [{path.name: path.read_bytes() for path in to.iterdir()} for to in folders]
        expect("two releases of a commit are equal", first == second, [name for name in first if first[name] != second.get(name)])
        sums = dict(reversed(line.split("  ")) for line in first["SHA256SUMS"].decode().splitlines())
        expect("SHA256SUMS has the sum of every other file", sums == {
            name: hashlib.sha256(text).hexdigest() for name, text in first.items() if name != "SHA256SUMS"}, sums)
        packed = next(to for to in folders[0].iterdir() if to.name.endswith(".tar.gz"))
        with tarfile.open(packed) as tar:
            held = {name.partition("/")[2] for name in tar.getnames()}
        missing = {"CMakeLists.txt", "LICENSE", "README.md", "cli/main.c", "debian/control", "Dockerfile", "tools/setup"} - held
        expect("the archive holds the sources", not missing, missing)
        expect("and nothing that was built", not [name for name in held if name.startswith("build")])
        bill = json.loads(next(text for name, text in first.items() if name.endswith(".spdx.json")))
        listed = {package["name"].lower() for package in bill["packages"]}
        table = (TOP / "README.md").read_text().split("## What it stands on")[1].split("\n## ")[0]
        rows = [row.split("|")[1].split("(")[0].strip() for row in table.splitlines() if row.startswith("| ")][1:]
        ours = ("cffi", "scikit-build-core", "cmocka")  # the Python package and tests are not in what is built
        absent = [row for row in rows if not row.startswith(ours) and row.lower() not in listed]
        expect("the bill lists every library of README.md", not absent, absent)
        ids = {package["SPDXID"] for package in bill["packages"]} | {"SPDXRef-DOCUMENT"}
        expect("relations are between what is listed", all(
            {relation["spdxElementId"], relation["relatedSpdxElement"]} <= ids for relation in bill["relationships"]))
        notes = first["NOTES.md"].decode()
        expect("notes are the newest section", notes.startswith("# Lacuna ") and "\n## " not in notes and len(notes) > 100, notes[:80])
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


sys.exit(main())
