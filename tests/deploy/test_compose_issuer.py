"""deploy/compose/issuer.yaml: the party that issues tokens, run as the file has it.

The shuffler of another installation, run as compose.yaml has it, takes reports by its tokens.
"""

import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub.bundles import read_bundle
from hubbub.cli.main import main
from hubbub.client import Client, MemoryState, TryAgain, transport_to
from hubbub.client.transport.issuer_connection import ask_issuer
from hubbub.issuer.accounts import add_account
from hubbub.issuer.settings import parse
from tests.conftest import CATALOG
from tests.support.compose_services import (
    COMPOSE,
    Machine,
    check_schema,
    extended,
    refuse_lacking,
    until_probed,
)
from tests.support.servers import has_tls
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.thorough

WITH_TOKENS = 'tokens = { issuer = "https://127.0.0.1:7090" }\n' + CATALOG


@pytest.fixture(scope="module")
def compose_document() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def file(compose_document: dict[str, Any]) -> dict[str, Any]:
    """The issuer's, with what its Redis has of the whole one's, and no provider."""
    document = extended("issuer", compose_document)
    issuer = document["services"]["issuer"]
    issuer["command"] = [re.sub(r"\$\{\w+:-\}", "", word) for word in issuer["command"]]
    return document


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two folders, as docs/operate/tokens.md says: the issuer's party begins."""
    there, here = (tmp_path_factory.mktemp(name) / "compose" for name in ("issuer", "both"))
    assert main(["init", str(there), "--party", "issuer"]) == 0
    catalog = here.with_name("metrics.toml")
    catalog.write_text(WITH_TOKENS)
    init = ["init", str(here), "--catalog", str(catalog)]
    assert main(init) == 2, "it does not know the issuer's key"
    assert not here.exists()
    assert main([*init, "--tokens", str(there / "keys" / "tokens.pub")]) == 0
    shutil.copy(there / "keys" / "tokens.key", here / "tokens" / "tokens.key")
    shutil.copy(here / "streams.json", there / "issuer" / "streams.json")
    for end in ("pem", "key"):  # of an authority that the bundle's devices believe
        shutil.copy(here / "tls" / f"shuffler.{end}", there / "tls" / f"issuer.{end}")
    return {"issuer": there, "both": here}


def test_the_compose_file_has_hardened_services_with_exactly_their_needs(
    file: dict[str, Any], parties: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_schema(COMPOSE / "issuer.yaml")
    there = parties["issuer"]
    refuse_lacking(file, there)
    for service in file["services"].values():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    outside = [p for s in file["services"].values() for p in s["ports"] if p[:4] != "127."]
    assert outside == ["7090:7090"]
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://redis.example.org/0")
    parse(file["services"]["issuer"]["command"])
    # It has nothing that opens or signs; and of its Redis no other service has a password.
    names = {path.name for path in there.rglob("*") if path.is_file()}
    assert not names & {"operator.key", "opening.keys.json", "operator.hubbub", "shuffler.key"}
    users = (there / "redis" / "users.acl").read_text()
    assert "CHANGE-ME" not in users
    assert re.findall(r"^user (\w+)", users, re.MULTILINE) == [
        "default",
        "operator",
        "issuer",
        "viewer",
    ]


def test_a_provider_is_named_in_the_environment_of_compose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://redis.example.org/0")
    command = yaml.safe_load((COMPOSE / "issuer.yaml").read_text())["services"]["issuer"]["command"]
    environment = {"HUBBUB_OIDC": "https://id.example.org", "HUBBUB_OIDC_AUDIENCE": "app"}
    filled = [re.sub(r"\$\{(\w+):-\}", lambda name: environment[name[1]], word) for word in command]
    settings = parse(filled)
    assert (settings.provider, settings.audiences) == ("https://id.example.org", ("app",))


@pytest.fixture
def machines(
    file: dict[str, Any], compose_document: dict[str, Any], parties: dict[str, Path], tmp_path: Path
) -> Iterator[tuple[Machine, Machine]]:
    if not has_tls():
        pytest.skip("this Redis server has no TLS: install redis-server, that of Debian has")
    issuer = Machine(file, parties["issuer"], tmp_path / "issuer")
    both = Machine(compose_document, parties["both"], tmp_path / "both")
    try:
        for machine, name in ((issuer, "redis-issuer"), (both, "redis-pool")):
            machine.start(name)
            machine.until_redis_answers(name)
        issuer.start("issuer")
        both.start("shuffler")
        yield issuer, both
    finally:
        for child in (*issuer.children.values(), *both.children.values()):
            child.stop()


def test_the_compose_file_runs_and_devices_report_with_tokens(
    machines: tuple[Machine, Machine], file: dict[str, Any], parties: dict[str, Path]
) -> None:
    issuer, both = machines
    until_probed(both, "shuffler", 7070)

    def is_healthy() -> bool:
        issuer.children["issuer"].check()
        command = file["services"]["issuer"]["healthcheck"]["test"][2:]
        here = [issuer.here("issuer", word) for word in command]
        here = [re.sub(r"127\.0\.0\.1:7094", metrics, word) for word in here]
        return subprocess.run([sys.executable, *here], capture_output=True).returncode == 0  # noqa: PLW1510 asked for

    metrics = f"127.0.0.1:{issuer.ports['issuer', 7094]}"
    eventually(is_healthy)
    bundle = read_bundle(parties["both"] / "app.hubbub")
    url = f"https://127.0.0.1:{issuer.ports['issuer', 7090]}"
    transport = transport_to(f"127.0.0.1:{both.ports['shuffler', 7070]}", roots=bundle.roots)
    accounts = parties["issuer"] / "issuer" / "accounts"
    key = add_account(accounts, "ann", vouches=False)  # while it runs
    ask = ask_issuer(url, key, bundle.roots)

    def knows_ann() -> bool:
        try:
            ask(b"", HANG_SECONDS)
        except TryAgain as error:
            return "401" not in str(error)
        return True

    eventually(knows_ann, issuer.children["issuer"].log.read_text)
    with Client(bundle, MemoryState(), transport, hold_seconds=None, ask_issuer=ask) as client:
        client.report("theme", "dark")
        assert client.flush(HANG_SECONDS), client.dropped
    transport.close()
    with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=HANG_SECONDS) as answer:
        body = answer.read().decode()
    assert re.search(r'hubbub_issued_tokens_total\{outcome="issued"\} [1-9]', body)
    log = issuer.children["issuer"].log.read_text()
    assert "reloaded" in log
    assert "ann" not in log
