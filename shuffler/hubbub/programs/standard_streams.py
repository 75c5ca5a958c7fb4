"""Handles a program's closed or full standard streams, and the resulting exit status."""

import contextlib
import errno
import gc
import io
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import TextIO

from hubbub.errors.message_words import visible_lines
from hubbub.programs.atomic_write import refusal_with_remedy


def run_program(program: Callable[[], int]) -> int:
    """Runs a program to its end, and returns its exit status.

    It is 2, with a message, where the system refuses a file, or what the program wrote to standard
    output was lost. A reader that ends early is no failure.
    """
    _reopen_closed()
    former: TextIOWrapper = sys.stdout  # type: ignore[assignment]  # as Python opens it
    # Buffered even with PYTHONUNBUFFERED: the buffer keeps unwritten text, so that the last flush
    # fails as well if argparse or others dropped the error. Letters that its encoding lacks are
    # escaped, as on standard error.
    sys.stdout = TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "w", closefd=False)),
        encoding=former.encoding,
        errors="backslashreplace",
        line_buffering=former.line_buffering or former.write_through,
    )
    status, refused = 0, None
    try:
        status = program()
    except SystemExit as end:  # argparse, after it printed help or an error
        status = end.code if isinstance(end.code, int) else 0
    except OSError as error:
        refused = error
    lost = _drop_if_lost(sys.stdout)
    if refused and not lost and not isinstance(refused, BrokenPipeError):
        problem = f"{refused.filename or 'a file'}: {refusal_with_remedy(refused)}"
        status = complain(problem)
    if lost and not isinstance(lost, BrokenPipeError):
        why = "is closed" if lost.errno == errno.EBADF else lost.strerror
        status = complain(
            f"standard output: {why}; send it to a file with room, a pipe, or /dev/null"
        )
    _drop_if_lost(sys.stderr)
    # The interpreter's last collection visits every object of every module: a fifth to a third of
    # a short program's processor time, for memory that the system frees anyway.
    gc.freeze()
    return status


def complain(message: str, program: str = "hubbub") -> int:
    """Prints why a program ends, where anybody can read it, and returns the exit status 2."""
    with contextlib.suppress(OSError):
        print(f"{program}: {visible_lines(message)}", file=sys.stderr)  # noqa: T201 to the person who started it
    return 2


def _reopen_closed() -> None:
    """Open the streams that the caller closed: the next file would take their numbers.

    Input is empty. Output fails once something is written, as the caller gave it no place. Errors
    are dropped.
    """
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 of a number, to the end
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 as above
    sys.stderr = sys.stderr or open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 as above


def _drop_if_lost(stream: TextIO) -> OSError | None:
    """Flushes a stream; returns why it could not, and sends Python's last flush to /dev/null."""
    try:
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None
