"""HAProxy on this machine, as docs/operate/proxy.md configures it."""

import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from hubbub.cli.local.child_process import Child
from hubbub.cli.local.ports import free_port
from tests.support.waiting import eventually

_PAGE: Final = Path(__file__).parents[2] / "docs/operate/proxy.md"
# Debian's is where the PATH of a user does not look.
_BINARY: Final = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
CONFIGURATIONS: Final = re.findall(r"```haproxy\n(.*?)```", _PAGE.read_text(), re.DOTALL)
"""Of the page: with the PROXY protocol, and with X-Forwarded-For."""
_SHUFFLER: Final = _PAGE.read_text().partition("server shuffler ")[2].split()[0]
_TICKETS: Final = re.findall(r"```ini\n(.*?)```", _PAGE.read_text(), re.DOTALL)

needs_haproxy = pytest.mark.skipif(_BINARY is None, reason="no haproxy: install haproxy")


@contextmanager
def haproxy(folder: Path, configuration: str, shuffler_port: int) -> Iterator[int]:
    """One before this port, with the certificates of this folder: where it listens."""
    assert _BINARY
    port = free_port()
    here = {
        ":443": f"127.0.0.1:{port}",
        _SHUFFLER: f"127.0.0.1:{shuffler_port}",
        "/etc/haproxy/": f"{folder}/",
    }
    for there, instead in here.items():
        assert there in configuration
        configuration = configuration.replace(there, instead)
    pair = [(folder / name).read_text() for name in ("shuffler.pem", "shuffler.key")]
    (folder / "reports.pem").write_text("".join(pair))
    path = folder / "haproxy.cfg"
    path.write_text(configuration)
    [no_tickets] = _TICKETS
    openssl = folder / "openssl.cnf"
    openssl.write_text(no_tickets)
    command = [_BINARY, "-db", "-f", str(path)]
    child = Child("haproxy", command, {"OPENSSL_CONF": str(openssl)}, folder / "haproxy.log")

    def listens() -> bool:
        child.check()
        socket.create_connection(("127.0.0.1", port)).close()
        return True

    try:
        eventually(listens, child._log.read_text, although=(ConnectionError,))
        yield port
    finally:
        child.stop()
