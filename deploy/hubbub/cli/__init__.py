"""Floor 4. The `hubbub` command: the one place that sees every role."""

import os
import sys

from hubbub.cli.main import main

__all__ = ["run"]


def run() -> int:
    """The `hubbub` command."""
    # gRPC's own lines about a taken port say less than our error does.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return main(sys.argv[1:])
