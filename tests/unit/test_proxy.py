"""A proxy between the device and the shuffler."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.signing.testing import make_bundle
from tests.conftest import CATALOG


@pytest.mark.slow
def test_a_proxy_of_the_environment_is_used(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    code = (
        "import sys; from hubbub.client import Client;"
        "client = Client.from_bundle(sys.argv[1], state_dir=sys.argv[2], shuffler=sys.argv[3],"
        " hold_seconds=0); client.report('theme', 'dark'); client.close(900)"
    )
    bundle = make_bundle(tmp_path / "metrics.toml")
    (tmp_path / "app.hubbub").write_bytes(bundle.signed)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        environment = {**os.environ, "https_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}"}
        command = [sys.executable, "-c", code, "app.hubbub", "state", "shuffler.example.org:443"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment) as app:
            try:
                connection, _ = proxy.accept()
                with connection, connection.makefile("rb") as request_file:
                    assert (
                        request_file.readline() == b"CONNECT shuffler.example.org:443 HTTP/1.1\r\n"
                    )
            finally:
                app.kill()
