"""Runs a program whose clock is stepped: python stepped_clock.py OFFSET_FILE PROGRAM ARGUMENTS.

The file holds the seconds by which its time.time() is wrong, and may be changed while it runs.
"""

import os
import runpy
import sys
import time


def step_by(path: str) -> None:
    right = time.time

    def wrong() -> float:
        try:
            with open(path, encoding="ascii") as file:  # noqa: PTH123 asked for every moment
                return right() + float(file.read() or 0)
        except (OSError, ValueError):
            return right()

    time.time = wrong


if __name__ == "__main__":
    offset_file, program, *arguments = sys.argv[1:]
    step_by(offset_file)
    sys.argv = [program, *arguments]
    if os.path.isfile(program):  # noqa: PTH113 as above
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
