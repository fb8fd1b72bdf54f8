#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loader.py FOLDER: training images a processor second on one core, ours and torchvision's, alternating.

Both make 3 x 224 x 224 floats of a random part of every photograph in CLASS/NAME (8 to 100 % of the area, aspect 3/4 to 4/3,
flipped half of the time, normalized). torchvision's paths are Pillow's decoder (which may decode at a smaller scale, as
`draft` does) and torchvision.io's, each followed by the transforms of v2 on bytes. Needs torch, torchvision and Pillow
(`make check-torch` makes build/venv-torch); the best of all rounds counts.
"""
import argparse
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def paths(files):
    """Name -> function of a file."""
    import torch
    from PIL import Image
    from torchvision import io
    from torchvision.transforms import v2
    torch.set_num_threads(1)
    normalize = v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    crop = v2.RandomResizedCrop(224, antialias=True)
    flip = v2.RandomHorizontalFlip()
    to_float = v2.ToDtype(torch.float32, scale=True)

    def by_pillow(file):
        with Image.open(file) as image:
            image = flip(crop(image.convert("RGB")))
        return normalize(to_float(v2.functional.pil_to_tensor(image)))

    def by_io(file):
        image = io.decode_jpeg(io.read_file(str(file)), mode=io.ImageReadMode.RGB)
        return normalize(to_float(flip(crop(image))))

    return {"torchvision, Pillow": by_pillow, "torchvision.io": by_io}


def ours(build, folder):
    out = subprocess.run([build / "bench/loader_bench", folder, "--rounds", "1"], check=True, capture_output=True, text=True)
    return float(out.stdout.split("training ")[1].split()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build/release")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    files = sorted(file for file in args.folder.glob("*/*") if file.suffix.lower() in (".jpg", ".jpeg"))
    if not files:
        sys.exit(f"{args.folder}: no photographs, wanted CLASS/NAME.jpg")
    best = {}
    for _ in range(args.rounds):
        for name, function in paths(files).items():
            begin = time.process_time()
            for file in files:
                function(file)
            speed = len(files) / (time.process_time() - begin)
            best[name] = max(best.get(name, 0), speed)
        best["Lacuna"] = max(best.get("Lacuna", 0), ours(args.build, args.folder))
    peer = max(speed for name, speed in best.items() if name != "Lacuna")
    for name, speed in best.items():
        print(f"{name:22} {speed:7.0f} images a processor second, {speed / peer:.2f} of the faster peer")


if __name__ == "__main__":
    main()
