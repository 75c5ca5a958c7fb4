"""Floor 4. The `hubbub` command: the one place that sees every role."""

import os
import sys

from hubbub.cli.main import main
from hubbub.programs.standard_streams import run_program

__all__ = ["run"]


def run() -> int:
    """Runs the `hubbub` command; returns its exit code."""
    # Our error about a taken port is clearer than gRPC's lines.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return run_program(lambda: main(sys.argv[1:]))
