"""A proxy between the device and the shuffler."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from hubbub.client.testing import make_bundle
from tests.conftest import CATALOG


def test_a_proxy_of_the_environment_is_used(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    code = (
        "import sys; from hubbub.client import Client;"
        "client = Client.from_bundle(sys.argv[1], state_dir=sys.argv[2], shuffler=sys.argv[3],"
        " hold_seconds=0); client.report('theme', 'dark'); client.close(3)"
    )
    made = make_bundle(tmp_path / "metrics.toml")
    (tmp_path / "app.hubbub").write_bytes(made.signed)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        heard: list[bytes] = []

        def listen() -> None:
            connection, _ = proxy.accept()
            with connection:
                heard.append(connection.recv(1000))

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        subprocess.run(
            [sys.executable, "-c", code, "app.hubbub", "state", "shuffler.example.org:7070"],
            cwd=tmp_path,
            env={**os.environ, "https_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}"},
            timeout=60,
            check=True,
        )
        listening.join(10)
    assert heard[0].startswith(b"CONNECT shuffler.example.org:7070 ")
