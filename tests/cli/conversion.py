#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lacuna data imagenet`, killed at random moments again and again, then run to its end: the shards are those of a run that
nobody disturbed, byte for byte, and nothing else is left in the folder."""
import argparse
import io
import pathlib
import random
import signal
import subprocess
import tarfile
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
JPEGS = sorted((TOP / "tests/fixtures/data").glob("*.jpg"))
SYNSETS = ["n01440764", "n01443537", "n02099601", "n15075141"]
SHARDS, KILLS, ROUNDS, IMAGES = 24, 4, 4, 40


def member(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def make_raw(folder):
    with tarfile.open(folder / "ILSVRC2012_img_train.tar", "w") as outer:
        for synset in SYNSETS:
            data = io.BytesIO()
            with tarfile.open(fileobj=data, mode="w") as inner:
                for k in range(IMAGES):
                    member(inner, f"{synset}_{k}.JPEG", JPEGS[k % len(JPEGS)].read_bytes())
                member(inner, f"{synset}_broken.JPEG", b"\xff\xd8 broken")
            member(outer, f"{synset}.tar", data.getvalue())
    with tarfile.open(folder / "ILSVRC2012_img_val.tar", "w") as outer:
        for k in range(IMAGES):
            member(outer, f"ILSVRC2012_val_{k:08}.JPEG", JPEGS[k % len(JPEGS)].read_bytes())
    (folder / "synset_labels.txt").write_text("".join(f"{SYNSETS[k % 4]}\n" for k in range(IMAGES)))


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lacuna-imagenet"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lacuna", required=True)
    lacuna = parser.parse_args().lacuna
    rng = random.Random()
    seed = rng.randrange(1 << 32)
    rng.seed(seed)
    good = bad = killed = 0
    with tempfile.TemporaryDirectory(dir=".") as name:
        top = pathlib.Path(name)
        raw = top / "raw"
        raw.mkdir()
        make_raw(raw)

        def command(out, threads):
            return [lacuna, "data", "imagenet", "-q", raw, "-o", out, "--shards", str(SHARDS), "--val-shards", "3",
                    "--threads", str(threads)]

        begun = time.time()
        subprocess.run(command(top / "whole", 1), check=True, capture_output=True)
        seconds = time.time() - begun
        wanted = files(top / "whole")
        assert len(wanted) == SHARDS + 3 + 1, sorted(wanted)
        for round_number in range(ROUNDS):
            out = top / f"out{round_number}"
            for kill in range(KILLS):
                process = subprocess.Popen(command(out, 1 + kill % 3), stdout=subprocess.DEVNULL)
                time.sleep(rng.random() * seconds / 2)
                process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
                killed += process.wait() != 0
            subprocess.run(command(out, 2), check=True, capture_output=True)
            found = files(out)
            if found == wanted:
                good += 1
            else:
                bad += 1
                names = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
                print(f"seed {seed}, round {round_number}: other than undisturbed: {names}")
    if not killed:
        bad += 1
        print("no run was killed before its end")
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
