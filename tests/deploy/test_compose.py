"""deploy/compose: its schema, and what it says run for real, in the places that it says.

No container engine is needed: every service is started as the file has it, with a folder in the
place of a container's root and ports of this machine in the place of its network. What only an
engine could show is that images build and start, and that the networks are apart.
"""

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from hubbub.authoring import Catalog, read_catalog
from hubbub.bundles import read_bundle
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.main import main
from hubbub.client import Client, MemoryState, transport_to
from hubbub.conservation import balances
from hubbub.errors import KeysUnusable
from hubbub.installation.new_installation import BOTH, initialise
from hubbub.installation.running_endpoints import Endpoints
from hubbub.shuffler.stream_table import read_stream_table
from tests.conftest import CATALOG
from tests.support.compose_services import (
    COMPOSE,
    ROOT,
    Machine,
    check_schema,
    extended,
    refuse_lacking,
    until_probed,
)
from tests.support.law_terms import total_counts
from tests.support.moment import far_from_midnight
from tests.support.node import needs_node
from tests.support.oidc import SECRET, provider
from tests.support.servers import has_tls
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.thorough

PEOPLE = 60


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of deploy/, with what `hubbub init` makes in deploy/compose."""
    deploy = tmp_path_factory.mktemp("installation") / "deploy"
    shutil.copytree(ROOT / "deploy", deploy, ignore=shutil.ignore_patterns("hubbub"))
    folder = deploy / "compose"
    (folder / "metrics.toml").write_text(CATALOG)
    assert main(["init", str(folder), "--catalog", str(folder / "metrics.toml")]) == 0
    return folder


def test_the_file_is_a_compose_file() -> None:
    check_schema(COMPOSE / "compose.yaml")


def test_every_file_that_it_names_is_there_after_init(
    document: dict[str, Any], installed: Path
) -> None:
    files = [entry["file"] for kind in ("configs", "secrets") for entry in document[kind].values()]
    for service in document["services"].values():
        files += service.get("env_file", [])
        files += [volume.split(":")[0] for volume in service.get("volumes", [])]
        for kind in ("configs", "secrets"):
            for used in service.get(kind, []):
                assert used["source"] in document[kind], used
    for file in files:
        assert (installed / file).exists(), file
    # Of the variables it needs, those without a default are in .env.
    needed = set(re.findall(r"\$\{(\w+):\?", (COMPOSE / "compose.yaml").read_text()))
    env = (installed / ".env").read_text()
    assert needed == {"HUBBUB_USER"} == set(re.findall(r"^(\w+)=", env, re.MULTILINE))
    assert not re.search(r"=0:", env), "nothing runs as root"
    assert "CHANGE-ME" not in (installed / "redis" / "users.acl").read_text()


def test_secrets_are_readable_to_their_owner_alone(
    document: dict[str, Any], installed: Path
) -> None:
    for name, secret in document["secrets"].items():
        assert (installed / secret["file"]).stat().st_mode & 0o077 == 0, name
    for name in ("shuffler.env", "aggregator.env", "keys/operator.key"):
        assert (installed / name).stat().st_mode & 0o077 == 0, name
    everywhere = json.dumps(document)
    assert "operator.key" not in everywhere, "the key that signs bundles stays out"


def test_every_service_is_hardened_and_reaches_what_it_must(document: dict[str, Any]) -> None:
    services = document["services"]
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["user"].startswith("${HUBBUB_USER"), name
        assert "no-new-privileges:true" in service["security_opt"], name
    together = {
        frozenset((service, other))
        for service in services
        for other in services
        if service != other
        and set(services[service]["networks"]) & set(services[other]["networks"])
    }
    ours = {"redis-pool", "redis-totals", "shuffler", "aggregator"}
    assert {pair for pair in together if pair <= ours} == {
        frozenset({"shuffler", "redis-pool"}),
        frozenset({"aggregator", "redis-totals"}),
        frozenset({"shuffler", "aggregator"}),
    }
    # To the outside only what devices need; the rest to this machine.
    outside = [p for s in services.values() for p in s.get("ports", []) if p[:4] != "127."]
    assert outside == ["7070:7070", "7077:7077"]


def test_prometheus_alerts_reach_a_receiver(document: dict[str, Any], tmp_path: Path) -> None:
    prometheus = yaml.safe_load((COMPOSE / "prometheus.yml").read_text())
    [manager] = prometheus["alerting"]["alertmanagers"]
    assert manager["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    services = document["services"]
    assert set(services["alertmanager"]["networks"]) & set(services["prometheus"]["networks"])
    settings = yaml.safe_load((COMPOSE / "alertmanager.yml").read_text())
    receivers = {receiver["name"] for receiver in settings["receivers"]}
    routes = [settings["route"], *settings["route"]["routes"]]
    assert {route["receiver"] for route in routes} == receivers
    if shutil.which("promtool"):
        rules = tmp_path / "prometheus.yml"
        text = (COMPOSE / "prometheus.yml").read_text()
        alerts = str(ROOT / "deploy" / "prometheus" / "alerts.yml")
        rules.write_text(text.replace("/etc/prometheus/alerts.yml", alerts))
        done = subprocess.run(
            ["promtool", "check", "config", "--syntax-only", str(rules)], check=False
        )
        assert done.returncode == 0
    if amtool := shutil.which("amtool"):
        subprocess.run([amtool, "check-config", str(COMPOSE / "alertmanager.yml")], check=True)


@pytest.fixture
def machine(document: dict[str, Any], installed: Path, tmp_path: Path) -> Iterator[Machine]:
    if not has_tls():
        pytest.skip("this Redis server has no TLS: install redis-server, that of Debian has")
    far_from_midnight()
    machine = Machine(document, installed, tmp_path / "machine")
    try:
        for name in ("redis-pool", "redis-totals"):
            machine.start(name)
        for name in ("redis-pool", "redis-totals"):
            machine.until_redis_answers(name)
        for name in ("shuffler", "aggregator"):
            machine.start(name)
        yield machine
    finally:
        for child in machine.children.values():
            child.stop()


@needs_node
def test_the_compose_file_runs(machine: Machine, installed: Path) -> None:
    for name, inner in (("shuffler", 7070), ("aggregator", 7071)):
        until_probed(machine, name, inner)
    # Devices report, with the bundle that init made.
    bundle = read_bundle(installed / "app.hubbub")
    front = f"127.0.0.1:{machine.ports['shuffler', 7070]}"
    transport = transport_to(front, roots=bundle.roots)
    for _ in range(PEOPLE):
        client = Client(bundle, MemoryState(), transport, hold_seconds=None)
        client.report("theme", "dark")
        assert client.flush(HANG_SECONDS)
    transport.close()
    # The pool's Redis is killed, and starts as the file has it: nothing is gone.
    machine.children["redis-pool"].process.kill()
    machine.children["redis-pool"].process.wait()
    machine.children["redis-pool"].start()
    machine.until_redis_answers("redis-pool")
    where = Endpoints(
        page=f"https://127.0.0.1:{machine.ports['aggregator', 7076]}",
        token=(installed / "passwords" / "analyst.token").read_text().strip(),
        authority=str(installed / "tls" / "ca.pem"),
    )
    url = (machine.root("shuffler"), (installed / "shuffler.env").read_text().strip())
    close_epochs(machine.here("shuffler", url[1].partition("=")[2]))

    def counted() -> bool:
        terms = total_counts(where)
        return terms["counted"] == PEOPLE and balances(terms)

    eventually(counted)
    # Prometheus gets what its configuration asks for, with the certificate and the token of it.
    scraped = yaml.safe_load((COMPOSE / "prometheus.yml").read_text())["scrape_configs"]
    for job in scraped:
        context = ssl.create_default_context(cafile=str(installed / "tls" / "ca.pem"))
        headers = {}
        if "cert_file" in job["tls_config"]:
            tls = installed / "tls"
            context.load_cert_chain(tls / "analyst.pem", tls / "analyst.key")
        if "authorization" in job:
            token = (installed / "passwords" / "prometheus.token").read_text()
            headers["Authorization"] = f"Bearer {token}"
        [target] = job["static_configs"][0]["targets"]
        name, _, inner = target.partition(":")
        address = f"{job['scheme']}://127.0.0.1:{machine.ports[name, int(inner)]}/metrics"
        with httpx2.Client(verify=context, timeout=HANG_SECONDS) as scraper:
            answer = scraper.get(address, headers=headers)
            assert answer.status_code == 200
            assert "hubbub_" in answer.text
            assert not headers or scraper.get(address).status_code == 401
    _until_a_login_is_asked_for(machine, installed)


def _until_a_login_is_asked_for(machine: Machine, installed: Path) -> None:
    """The lines of access.toml that init made are filled in while it runs, as they say."""
    access_file = installed / "access" / "access.toml"
    page = f"https://127.0.0.1:{machine.ports['aggregator', 7076]}"
    context = ssl.create_default_context(cafile=str(installed / "tls" / "ca.pem"))
    with (
        provider(machine.home, page) as login_provider,
        httpx2.Client(verify=context, timeout=HANG_SECONDS) as browser,
    ):
        (installed / "access" / "oidc.secret").write_text(SECRET)
        text = re.sub("^#(?!cert| )", "", access_file.read_text(), flags=re.MULTILINE)
        text = text.replace("https://hubbub.example.org", page).replace('"analysts"', '"telemetry"')
        text = text.replace("https://id.example.org/realms/company", login_provider.issuer)
        text = text.replace("client =", f'audience = "{page}"\nclient =')
        access_file.write_text(text)
        problem: dict[str, Any] = {}

        def asks() -> bool:
            problem.update(browser.get(f"{page}/v1/metrics").json())
            return "login" in problem

        eventually(asks, machine.children["aggregator"].log.read_text)
        login = browser.get(f"{page}/login")
        assert (login.status_code, login.headers["location"].split("/auth?")[0]) == (
            303,
            login_provider.issuer,
        )
        headers = {"Authorization": f"Bearer {login_provider.script_token(page)}"}
        assert browser.get(f"{page}/v1/metrics/theme", headers=headers).status_code == 200
    lines = machine.children["aggregator"].log.read_text().splitlines()
    audit = [json.loads(line) for line in lines if '"hubbub.audit"' in line]
    entries = [
        (entry["who"], entry["by"], entry["status"]) for entry in audit if entry.get("metric")
    ]
    assert entries == [("robot", "script", 200)]


def test_services_of_a_development_installation_get_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    folder = tmp_path / "made"
    assert main(["init", str(folder), "--dev", "--catalog", str(tmp_path / "metrics.toml")]) == 0
    output = capsys.readouterr().out
    assert output.startswith("DEVELOPMENT: this installation protects nobody")
    assert "ready to run" not in output, "the services have to be started first"
    for role in ("shuffler", "aggregator"):
        assert (folder / f"{role}.env").read_text().endswith("\nHUBBUB_DEV=1\n")
    assert read_stream_table(folder / "streams.json").development
    assert read_bundle(folder / "app.hubbub").development


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    catalog: Catalog = read_catalog(tmp_path / "metrics.toml")
    initialise(tmp_path / "a", BOTH, ["aggregator.example.org"], catalog=catalog)
    with pytest.raises(KeysUnusable, match="nothing is overwritten"):
        initialise(tmp_path / "a", BOTH, [], catalog=catalog)
    (tmp_path / "b").write_text("a file")
    with pytest.raises(KeysUnusable):
        initialise(tmp_path / "b", BOTH, [], catalog=catalog)


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two folders, as docs/operate/two-parties.md says: the shuffler's party begins."""
    there, here = (tmp_path_factory.mktemp(name) / "compose" for name in ("there", "here"))
    catalog = here.with_name("metrics.toml")
    catalog.write_text(CATALOG)
    init = ["init", str(there), "--party", "shuffler", "--host", "shuffler=reports.example.org"]
    assert main([*init, "--peer", "counts.example.net:7071"]) == 0
    init = ["init", str(here), "--party", "aggregator", "--catalog", str(catalog)]
    init += ["--host", "aggregator=counts.example.net", "--peer", "reports.example.org:7173"]
    assert main([*init, "--trust", str(there / "tls" / "ca.pem")]) == 0
    assert main(["keys", "trust", str(there / "tls"), str(here / "tls" / "ca.pem")]) == 0
    shutil.copy(here / "streams.json", there / "streams.json")
    return {"shuffler": there, "aggregator": here}


@pytest.mark.parametrize("party", ["shuffler", "aggregator"])
def test_each_of_two_parties_has_a_file_and_all_that_it_names(
    party: str, parties: dict[str, Path], document: dict[str, Any]
) -> None:
    check_schema(COMPOSE / f"{party}.yaml")
    party_file = extended(party, document)
    refuse_lacking(party_file, parties[party])
    # Beside what the whole installation is told, where the other party is; nothing else.
    command, both = (
        set(compose_file["services"][party]["command"]) for compose_file in (party_file, document)
    )
    [dialled], [within] = command - both, both - command
    assert dialled.split("=")[0] == within.split("=")[0]
    assert dialled.split("=")[1].startswith("${HUBBUB_PEER:?")
    outside = [p for s in party_file["services"].values() for p in s["ports"] if p[:4] != "127."]
    open_to_all = ["7070:7070", "7077:7077"] if party == "shuffler" else []
    assert outside == [*open_to_all, {"shuffler": "7173:7073", "aggregator": "7071:7071"}[party]]


def test_neither_party_has_files_of_the_other(parties: dict[str, Path]) -> None:
    there, here = parties["shuffler"], parties["aggregator"]
    assert "HUBBUB_PEER=counts.example.net:7071" in (there / ".env").read_text()
    assert "HUBBUB_PEER=reports.example.org:7173" in (here / ".env").read_text()
    assert not (there / "keys").exists(), "who sees addresses has no key that opens"
    for folder, user, other in (
        (there, "shuffler", "aggregator"),
        (here, "aggregator", "shuffler"),
    ):
        assert not (folder / "tls" / f"{other}.key").exists()
        users = (folder / "redis" / "users.acl").read_text()
        assert (f"user {user} " in users, f"user {other} " in users) == (True, False)
        assert "CHANGE-ME" not in users
        assert not (folder / f"{other}.env").exists()
    read_stream_table(there / "streams.json")
    assert (read_bundle(here / "app.hubbub").roots or "-") in (there / "tls/ca.pem").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--peer", "a.example.org:1"], "need --party shuffler"),
        (["--party", "shuffler"], "needs --peer HOST:PORT"),
        (
            ["--party", "shuffler", "--peer", "a.example.org:1", "--dev"],
            "--dev cannot be combined with --party",
        ),
        (["--party", "aggregator", "--peer", "a.example.org:1"], "needs --trust CA.PEM"),
    ],
)
def test_an_incomplete_party_is_refused(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "folder"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()
