"""Floor 4. The `hubbub` command: the one place that sees every role."""

import importlib.util
import os
import sys

__all__ = ["run"]

_NEEDED = ("rich", "redis", "numpy", "grpc_health")


def run() -> int:
    """The `hubbub` command. Says what to install where only the client is."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(  # noqa: T201 to whoever typed the command
            f"hubbub: the command needs {', '.join(missing)}: pip install 'hubbub[all]'",
            file=sys.stderr,
        )
        return 2
    # gRPC's own lines about a taken port say less than our error does.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from hubbub.cli.main import main  # noqa: PLC0415 what it imports may not be installed

    return main(sys.argv[1:])
