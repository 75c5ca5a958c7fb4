"""What tests must not hear of whoever runs them: settings, proxies, terminals, languages."""

import os
import signal
from collections.abc import Mapping, MutableMapping
from typing import Final

# As it was, for what must find its way out of here as its caller does: pip to its index.
CALLER: Final[Mapping[str, str]] = dict(os.environ)

_BEGINNINGS: Final = (
    "HUBBUB_",
    "OTEL_",
    "GRPC_",
    "GIT_",
    "LC_",
    "COVERAGE_",
    "HYPOTHESIS_",
    "CLICOLOR",
)
_NAMES: Final = frozenset(
    {
        "ALL_PROXY",
        "FTP_PROXY",
        "GRPC_PROXY",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "COLORTERM",
        "COLUMNS",
        "FORCE_COLOR",
        "LINES",
        "NO_COLOR",
        "TERM",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
        "LANG",
        "LANGUAGE",
        "PYTEST_ADDOPTS",
        "SOURCE_DATE_EPOCH",
        "MPLBACKEND",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "SSLKEYLOGFILE",
    }
)
# Of Python's own only how it stores what it compiled: the rest changes what programs say or find.
_PRESERVED: Final = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"})


def forget_the_caller(environment: MutableMapping[str, str]) -> None:
    """Leave in it what programs need to run here, and nothing that changes what they do."""
    for name in list(environment):
        of_python = name.startswith("PYTHON") and name not in _PRESERVED
        if of_python or name.startswith(_BEGINNINGS) or name.upper() in _NAMES:
            del environment[name]
    environment["LC_ALL"] = "C.UTF-8"  # file names and pipes are UTF-8, and months are in English
    # However many processors there are. A second thread of a product of matrices mostly waits for
    # the next one, and is busy while it does.
    environment["OPENBLAS_NUM_THREADS"] = "1"


def hear_interrupts() -> None:
    """Let Ctrl-C be heard: who is started behind a shell ignores it, and all whom it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
