"""Floor 4. The `hubbub` command: the one place that sees every role."""

import os
import signal
import sys

__all__ = ["run"]


def run() -> int:
    """Runs the `hubbub` command; returns its exit code."""
    # Imports take a tenth of a second, in which Ctrl-C must not print a traceback.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # Before they are loaded: our error about a taken port is clearer than gRPC's lines, and
    # OpenBLAS's threads wait for each other longer than our small matrices take.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from hubbub.cli.main import main  # noqa: PLC0415 after the handler
    from hubbub.programs.standard_streams import run_program  # noqa: PLC0415 as above

    return run_program(lambda: main(sys.argv[1:]))
