#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is printed on a terminal keeps to its width, from 40 columns on; a pipe gets everything."""
import argparse
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unicodedata

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = str(TOP / "examples/digits/digits.onnx")
IMAGES = str(TOP / "examples/digits")
RESULTS = []


def expect(sentence, held, detail=""):
    RESULTS.append(bool(held))
    if not held:
        print(f"{sentence}: {detail}")


def cells(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def on_terminal(words, columns, folder, stream, **extra):
    """What a command writes to a terminal of so many columns; `stream` (1 or 2) is the terminal, the other a pipe."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **extra}
    streams = {"stdout": slave if stream == 1 else subprocess.DEVNULL,
               "stderr": slave if stream == 2 else subprocess.PIPE}
    done = subprocess.Popen(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, **streams)
    os.close(slave)
    told = []
    if done.stderr:
        drain = threading.Thread(target=lambda: told.append(done.stderr.read()))
        drain.start()
    chunks = []
    try:
        while chunk := os.read(master, 1 << 16):
            chunks.append(chunk)
    except OSError:  # the other end is closed
        pass
    os.close(master)
    done.wait(timeout=300)
    if done.stderr:
        drain.join()
    return done.returncode, b"".join(chunks).decode().replace("\r\n", "\n")


def commands(lacuna):
    """Every verb that prints a table or sentences, by what its status is to be."""
    return [
        (0, [lacuna, "prune", "--no-calibration", "-q", "--force", "-o", "out.onnx", DIGITS]),
        (0, [lacuna, "permute", "-q", "--force", "-o", "permuted.onnx", DIGITS]),
        (0, [lacuna, "check", "-q", "--show", "12", "out.onnx"]),
        (1, [lacuna, "check", "-q", "--show", "3", DIGITS]),
        (0, [lacuna, "inspect", "-q", DIGITS]),
        (0, [lacuna, "inspect", "-q", "--why", "layer3.0.conv2", DIGITS]),
        (0, [lacuna, "pack", "-q", "--force", "-o", "out.lac", "out.onnx"]),
        (0, [lacuna, "bench", "-q", "--runs", "3", "--time", "0", DIGITS]),
        (0, [lacuna, "eval", "-q", "--data", IMAGES, DIGITS]),
        (0, [lacuna, "help"]),
        *[(0, [lacuna, "help", verb])
          for verb in re.findall(r"^LAC_VERB\((\w+),", (TOP / "cli/verbs.def").read_text(), re.M)],
    ]


def check_widths(lacuna, folder):
    for columns in (40, 60, 80, 132):
        for status, words in commands(lacuna):
            what = f"{' '.join(words[1:])} at {columns} columns"
            code, text = on_terminal(words, columns, folder, 1)
            expect(f"{what}: status {status}", code == status, code)
            expect(f"{what} prints something", text.strip())
            long = [line for line in text.splitlines() if cells(line) > columns]
            expect(f"{what}: no line is longer", not long, long)
            expect(f"{what}: no line ends with spaces", not re.search(r" $", text, re.M), text)


def check_nothing_is_lost(lacuna, folder):
    """Folded or not, every number and remark is there; a pipe and --wide have every name, too."""
    words = [lacuna, "check", "-q", "out.onnx"]
    piped = subprocess.run(words, cwd=folder, capture_output=True, text=True).stdout
    narrow = on_terminal(words, 40, folder, 1)[1]
    for word in set(piped.split()):
        expect(f"check at 40 columns still says {word}", word in narrow or "." in word, narrow)
    expect("names are cut in the middle", "layer3.…ample.0" in narrow or "…" in narrow, narrow)
    expect("--wide is as long as a pipe", on_terminal([*words, "--wide"], 40, folder, 1)[1] == piped)
    ascii_only = on_terminal(words, 40, folder, 1, LC_ALL="C")[1]
    expect("a locale without UTF-8 gets ...", "..." in ascii_only and ascii_only.isascii(), ascii_only)
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=dict(os.environ, COLUMNS="40")).stdout
    expect("COLUMNS does not cut what goes to a pipe", told == piped)
    unsized = on_terminal(words, 0, folder, 1, COLUMNS="50")[1]
    expect("COLUMNS counts where the terminal does not know", max(map(cells, unsized.splitlines())) in range(40, 51))
    expect("a terminal below 40 columns is taken for one of 40", on_terminal(words, 20, folder, 1)[1] == narrow)


def check_wide_characters(lacuna, folder):
    """A name of characters two cells wide is cut between characters, and counted in cells."""
    name = "重み" * 20
    (pathlib.Path(folder) / "wide.onnx").write_bytes(one_layer(name))
    for columns in (40, 41, 60):
        text = on_terminal([lacuna, "inspect", "-q", "wide.onnx"], columns, folder, 1)[1]
        expect(f"wide names at {columns} columns", max(map(cells, text.splitlines())) <= columns, text)
        expect(f"wide names at {columns} columns are cut", "重…" in text or "み…" in text, text)
    piped = subprocess.run([lacuna, "inspect", "-q", "wide.onnx"], cwd=folder, capture_output=True).stdout.decode()
    expect("a pipe gets the whole name", name in piped, piped)


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def one_layer(name):
    """A 1 x 1 convolution of 8 channels as an ONNX file, its node called `name`."""
    def value(label):
        dims = b"".join(field(1, field(1, n)) for n in (1, 8, 4, 4))
        return field(1, label) + field(2, field(1, field(1, 1) + field(2, dims)))
    node = field(1, "x") + field(1, "w") + field(2, "y") + field(3, name) + field(4, "Conv")
    weight = b"".join(field(1, n) for n in (8, 8, 1, 1)) + field(2, 1) + field(8, "w")
    weight += field(9, struct.pack("<64f", *range(64)))
    graph = field(1, node) + field(2, "g") + field(5, weight) + field(11, value("x")) + field(12, value("y"))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def check_bar(lacuna, folder):
    """Each state of the progress bar fits one line; only there may the cursor go back."""
    words = [lacuna, "finetune", DIGITS, "--data", IMAGES, "-o", "tuned.onnx", "--force", "--no-eval", "--epochs"]
    for columns, epochs in (40, "4"), (60, "4"), (80, "4"), (132, "16"):
        code, text = on_terminal([*words, epochs], columns, folder, 2)
        expect(f"finetune at {columns} columns ends well", code == 0, text)
        states = re.split(r"[\r\n]|\x1b\[K", text)
        bars = [state for state in states if re.search(r"\[[#.]+\] +\d+%", state)]
        expect(f"there is a bar at {columns} columns", bars, text)
        long = [state for state in states if cells(state) > columns - ("[" in state and "%" in state)]
        expect(f"the bar and the log fit {columns} columns", not long, long)
    expect("a long job's bar tells the time left", any(re.search(r"%.*, [0-9]+ s left", bar) for bar in bars), bars)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lacuna", required=True)
    lacuna = os.path.abspath(parser.parse_args().lacuna)
    with tempfile.TemporaryDirectory() as folder:
        check_widths(lacuna, folder)
        check_nothing_is_lost(lacuna, folder)
        check_wide_characters(lacuna, folder)
        check_bar(lacuna, folder)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


sys.exit(main())
