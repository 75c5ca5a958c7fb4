"""Floor 4. The `hubbub` command: the one place that sees every role."""

import os
import signal
import sys

__all__ = ["run"]


def run() -> int:
    """Runs the `hubbub` command; returns its exit code."""
    # Imports take a tenth of a second, in which Ctrl-C must not print a traceback.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    import hubbub.runtime  # noqa: F401, PLC0415 sets what gRPC and OpenBLAS read when they load
    from hubbub.cli.main import main  # noqa: PLC0415 after the handler
    from hubbub.programs.standard_streams import run_program  # noqa: PLC0415 as above

    return run_program(lambda: main(sys.argv[1:]))
