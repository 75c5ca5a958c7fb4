"""deploy/compose/relay.yaml: a third party's, run as the file has it before a running shuffler."""

import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub.client import Client, Outcome
from hubbub.installation.child_process import Child, free_port
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.compose_services import COMPOSE, check_schema
from tests.support.development_server import developing
from tests.support.waiting import HANG_SECONDS, eventually
from tests.system.typescript.pages import counted, door_of

pytestmark = pytest.mark.thorough

FILE = COMPOSE / "relay.yaml"
CATALOG = catalog_toml(
    metric_toml(
        "theme", mechanism="grr", epsilon=4.0, values=["light", "dark", "system"], min_batch=1000
    )
)


@pytest.fixture(scope="module")
def service() -> dict[str, Any]:
    document = yaml.safe_load(FILE.read_text())
    [(name, relay)] = document["services"].items()
    assert name == "relay"
    files = {kind: document[kind] for kind in ("configs", "secrets")}
    return {**relay, "files": files}


def test_the_file_is_a_compose_file_of_a_hardened_service(service: dict[str, Any]) -> None:
    check_schema(FILE)
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    # To the outside its own door alone.
    assert [port for port in service["ports"] if not port.startswith("127.")] == ["7080:7080"]
    # It has a certificate and its key, and nothing of either other party.
    assert set(service["files"]["secrets"]) == {"relay-key"}
    assert set(service["files"]["configs"]) == {"relay-certificate"}


def test_the_compose_file_runs_and_the_relay_forwards_reports(
    service: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "up").mkdir()
    with developing(tmp_path / "up", CATALOG) as up:
        ports = {7080: free_port(), 7081: free_port()}
        tls = tmp_path / "etc/hubbub/tls"
        tls.mkdir(parents=True)
        certificates = up.folder / ".hubbub" / "tls"
        for kind, end in (("configs", "pem"), ("secrets", "key")):
            [used] = service[kind]
            shutil.copy(certificates / f"shuffler.{end}", tmp_path / used["target"].lstrip("/"))

        def local_path(word: str) -> str:
            word = re.sub(r"\$\{HUBBUB_GATEWAY:[^}]*\}", door_of(up), word)
            for inner, outer in ports.items():
                word = re.sub(rf"(0\.0\.0\.0|127\.0\.0\.1):{inner}\b", f"127.0.0.1:{outer}", word)
            return word.replace("/etc/hubbub", f"{tmp_path}/etc/hubbub")

        command = [sys.executable, *service["entrypoint"][1:], *map(local_path, service["command"])]
        # What a shuffler of a development shows no system knows.
        environment = {"PATH": os.environ["PATH"], "SSL_CERT_FILE": str(certificates / "ca.pem")}
        relay = Child("relay", command, environment, tmp_path / "relay.log")
        try:
            eventually(lambda: "started" in (tmp_path / "relay.log").read_text())
            probe = [sys.executable, *service["healthcheck"]["test"][2:]]
            subprocess.run([local_path(word) for word in probe], check=True)
            url = f"https://127.0.0.1:{ports[7080]}"
            with Client.from_bundle(up.bundle, state_dir=tmp_path / "device", relay=url) as client:
                assert client.report("theme", "dark") is Outcome.QUEUED
            counted(up, "theme", 1)
            metrics = f"http://127.0.0.1:{ports[7081]}/metrics"
            with urllib.request.urlopen(metrics, timeout=HANG_SECONDS) as answer:
                assert re.search(rb"hubbub_relayed_requests_total\{.*\} 1", answer.read())
        finally:
            relay.stop()
