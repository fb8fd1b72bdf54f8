# SPDX-License-Identifier: Apache-2.0
"""The command `lacuna` of the wheel: this process becomes the program that is packed in it."""
import os
import sys


def main():
    """Runs the command with this process's arguments; does not return."""
    path = os.path.join(os.path.dirname(__file__), "bin", "lacuna")
    os.execv(path, ["lacuna", *sys.argv[1:]])
