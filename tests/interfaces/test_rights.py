"""Rights: of a metric that somebody may not see, nothing tells them that it exists."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.message import Message

from hubbub.aggregator.access.access_file import read_access
from hubbub.aggregator.access.access_setup import access_of
from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.access.grpc_door import GrpcDoor
from hubbub.aggregator.access.rights import Role
from hubbub.aggregator.access.tokens import Tokens, add_token, read_tokens
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.answers import PipelineStatus, ReportCounts
from hubbub.aggregator.query.cache import CoalescedRead
from hubbub.aggregator.query.caller_view import caller_view
from hubbub.aggregator.releases.releasing import Releases
from hubbub.aggregator.releases.service import ReleasesService
from hubbub.aggregator.service import QueryService
from hubbub.cli.certificate_authorities import write_certificates
from hubbub.cli.local.ports import free_port
from hubbub.cli.main import main
from hubbub.cli.terminal.service_client import Endpoints, ask, release
from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.runtime import Server, TlsFolder
from hubbub.wire.v1 import services_pb2 as wire
from hubbub.wire.v1.services_pb2_grpc import (
    add_QueryServicer_to_server,
    add_ReleasesServicer_to_server,
)
from tests.support import web
from tests.support.bundles import metric_text
from tests.support.fakes import MemoryReleaseLog
from tests.support.pages import page_of
from tests.support.waiting import HANG_SECONDS

BUDGET: Final = "[budget]\nepsilon_per_year = 5\npurposes = { report = 1.0 }\n"
CATALOG: Final = f'shuffler = "127.0.0.1:1"\n{BUDGET}' + "".join(
    [
        metric_text("theme"),
        metric_text("hidden"),
        # What is seen goes on from what is not.
        metric_text("colour", more='supersedes = "hidden"'),
    ]
)
HELD: Final = {name: {0: 500, 1: 900} for name in ("theme", "hidden", "colour")}
ACCESS: Final = """
[groups.some]
metrics = ["theme", "col*"]
certificates = ["ana@example.org"]
[groups.part]
metrics = ["col*"]
[groups.theme]
role = "publisher"
metrics = ["theme"]
[groups.all]
role = "publisher"
metrics = ["*"]
certificates = ["spiffe://example.org/ben"]
"""
ALL: Final = wire.Range(epochs="all")
QUESTIONS: Final = [
    *("", "/estimates", "/top", "/compare", "/trend", "/commands", "/export"),
    "/cross?rows=a&columns=b",
    "/estimates?tier=1",
    "/breakdown?by=os",
]


@dataclass
class House:
    address: str
    tokens: dict[str, str]
    audit: Path
    query: QueryEngine

    def ask(self, who: str, path: str, method: str = "get", **more: Any) -> Any:
        headers = {"authorization": f"Bearer {self.tokens[who]}"}
        return getattr(web, method)(f"{self.address}{path}", headers=headers, **more)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("rights")
    tokens, access = folder / "tokens.json", folder / "access.toml"
    access.write_text(ACCESS)
    now = time.time()
    people: list[tuple[str, Role, list[str]]] = [
        ("some", "viewer", ["some"]),
        ("all", "publisher", ["all"]),
        ("part", "publisher", ["part", "theme"]),
        ("none", "admin", ["gone"]),
        ("old", "admin", []),
        ("less", "viewer", ["all"]),
    ]
    secrets = {
        who: add_token(tokens, who, role, 1, now, groups=groups) for who, role, groups in people
    }
    made: list[House] = []

    def opened(address: str, query: QueryEngine) -> dict[str, Any]:
        made.append(House(address, secrets, folder / "audit.jsonl", query))
        audit = AuditTrail(
            folder / "audit.jsonl", lambda: set(query.collected.bundle.streams), time.time
        )
        return {"access": access_of(tokens, read_access(access)), "audit": audit}

    with page_of(folder, CATALOG, HELD, opened=opened, earlier={"hidden": 1}):
        yield made[0]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_hidden_metric_is_answered_as_one_that_does_not_exist(home: House, question: str) -> None:
    hidden = home.ask("some", f"/v1/metrics/hidden{question}")
    unknown = home.ask("some", f"/v1/metrics/absent{question}")
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.text.replace("hidden", "absent") == unknown.text
    if "tier" not in question:
        assert home.ask("all", f"/v1/metrics/hidden{question}").status_code != 404


def test_nothing_that_is_listed_names_a_hidden_metric(home: House) -> None:
    for path in (
        *("/v1/metrics", "/v1/status", "/v1/marks", "/v1/arrivals", "/metrics", "/v1/me"),
        *("/v1/metrics/colour", "/v1/metrics/colour/trend?epochs=all", "/v1/metrics/absent"),
    ):
        answer = home.ask("some", path)
        assert answer.status_code in {200, 404}, path
        assert "hidden" not in answer.text, path
    assert [one["name"] for one in home.ask("some", "/v1/metrics").json()["metrics"]] == [
        *("theme", "colour")
    ]
    assert home.ask("all", "/v1/metrics/colour/trend?epochs=all").json()["joined"] == ["hidden"]
    assert home.ask("some", "/v1/metrics/colour/trend?epochs=all").json()["joined"] == []


def test_the_law_is_added_up_over_what_is_seen(home: House) -> None:
    some: dict[str, Any] = home.ask("some", "/v1/status").json()
    whole: dict[str, Any] = home.ask("old", "/v1/status").json()
    assert {one["stream"] for one in some["windows"]} == {"theme", "colour"}
    assert (some["total"]["counted"], whole["total"]["counted"]) == (2800, 4200)
    assert set(some) == set(whole) == set(PipelineStatus.__slots__)


@pytest.mark.parametrize("off", [True, False])
def test_whether_hidden_windows_balance_is_not_told(home: House, off: bool) -> None:
    terms: dict[str, Any] = dict.fromkeys((one.name for one in fields(ReportCounts)), 0)
    seen, hidden = (
        ReportCounts(**terms | {"stream": name, "date": None, "balanced": balanced})
        for name, balanced in (("theme", True), ("hidden", not off))
    )

    async def law() -> PipelineStatus:
        return PipelineStatus(complete=True, balanced=not off, total=hidden, windows=[seen, hidden])

    async def body() -> PipelineStatus:
        whole = home.query.collected, CoalescedRead(law)
        return await caller_view(*whole, "theme".__eq__, {})[1].get()

    told = asyncio.run(body())
    assert (told.balanced, told.total.balanced, told.windows) == (True, True, [seen])


def test_answers_are_those_that_everybody_gets(home: House) -> None:
    path = "/v1/metrics/theme/estimates"
    assert home.ask("some", path).json() == home.ask("old", path).json()


def test_viewers_store_nothing_and_overwrite_nothing(home: House) -> None:
    day, strings = {"date": "2024-10-04"}, {"candidates": ["a", "b"]}
    stored = {
        "/v1/candidates/shared": strings,
        "/v1/marks/all": day,
        "/v1/marks/own": day | {"metric": "theme"},
    }
    for path, body in stored.items():
        assert home.ask("all", path, "put", json=body).status_code == 200, path
    try:
        before = [home.ask("all", path).json() for path in ("/v1/candidates/shared", "/v1/marks")]
        # "less" sees every metric, as a viewer.
        for who, (path, body) in product(("some", "less"), stored.items()):
            for refused in (
                home.ask(who, path, "put", json=body),
                home.ask(who, f"{path}new", "put", json=body),
                home.ask(who, path, "delete"),
            ):
                assert (refused.status_code, "role publisher" in refused.text) == (403, True), path
        after = [home.ask("less", path).json() for path in ("/v1/candidates/shared", "/v1/marks")]
        assert after == before
    finally:
        for path in stored:
            assert home.ask("all", path, "delete").status_code == 204, path


def test_a_publisher_of_one_metric_writes_marks_of_that_metric_alone(home: House) -> None:
    day = {"date": "2024-10-04"}
    assert home.ask("all", "/v1/marks/launch", "put", json=day | {"metric": "hidden"}).is_success
    assert home.ask("all", "/v1/marks/colours", "put", json=day | {"metric": "colour"}).is_success
    try:
        # The name tells nothing of the hidden metric, which keeps its own mark.
        own = home.ask("part", "/v1/marks/launch", "put", json=day | {"metric": "theme"})
        assert own.status_code == 200
        assert home.ask("part", "/v1/marks/launch", "delete").status_code == 204
        assert home.ask("part", "/v1/marks/launch", "delete").status_code == 404
        assert home.ask("part", "/v1/marks/colours", "delete").status_code == 403
        other = home.ask("part", "/v1/marks/colours", "put", json=day | {"metric": "colour"})
        assert other.status_code == 403
        kept = [mark["name"] for mark in home.ask("all", "/v1/marks").json()["marks"]]
        assert kept == ["colours", "launch"]
    finally:
        for name in ("launch", "colours"):
            home.ask("all", f"/v1/marks/{name}", "delete")


def test_marks_of_a_hidden_metric_are_neither_seen_nor_written_over(home: House) -> None:
    mark = {"date": "2024-10-04", "text": "first", "metric": "hidden"}
    assert home.ask("all", "/v1/marks/launch", "put", json=mark).status_code == 200
    try:
        assert home.ask("some", "/v1/marks").json() == {"marks": []}
        for name in ("launch", "absent"):
            assert home.ask("part", f"/v1/marks/{name}", "delete").status_code == 404
        assert home.ask("part", "/v1/marks/other", "put", json=mark).status_code == 404
        [kept] = home.ask("all", "/v1/marks").json()["marks"]
        assert kept["text"] == "first"
    finally:
        home.ask("all", "/v1/marks/launch", "delete")


def test_who_is_in_no_group_there_is_may_ask_for_nothing(home: House) -> None:
    for path in ("/v1/metrics", "/v1/metrics/theme", "/metrics", "/v1/tokens", "/v1/me"):
        assert home.ask("none", path).status_code == 403, path


def test_a_token_has_no_higher_role_than_its_own_or_its_groups(home: House) -> None:
    ask = {"metric": "theme", "query": "count", "value": "dark", "by": "me"}
    assert home.ask("less", "/v1/releases", "post", json=ask).status_code == 403
    assert home.ask("some", "/v1/releases", "post", json=ask).status_code == 403
    assert home.ask("all", "/v1/releases", "post", json=ask).status_code == 400, "no release"
    assert home.ask("all", "/v1/tokens").status_code == 403
    listed = {one["name"]: one["groups"] for one in home.ask("old", "/v1/tokens").json()}
    assert (listed["some"], listed["old"]) == (["some"], [])


def test_what_a_purpose_has_left_is_shown_to_callers_who_see_all_metrics(home: House) -> None:
    left = {}
    for who in ("all", "part"):
        [purpose] = home.ask(who, "/v1/releases").json()["purposes"]
        left[who] = purpose["epsilon"], purpose["epsilon_left"]
    assert left == {"all": (5, 5), "part": (5, None)}


def test_another_bundle_is_seen_through_the_same_rights(home: House) -> None:
    bundle = home.query.collected.bundle
    home.ask("some", "/v1/metrics")
    home.query.use(bundle)
    assert home.ask("some", "/v1/metrics").json()["total"] == 2


def test_the_audit_has_every_question_and_nothing_that_was_typed(home: House) -> None:
    home.ask("some", "/v1/metrics/hidden/estimates")
    home.ask("some", "/v1/metrics/theme/estimates?find=PRIVATE&epochs=all")
    home.ask("all", "/v1/candidates/mine", "put", json={"candidates": ["PRIVATE", "TOO"]})
    home.ask("some", "/v1/PRIVATE PRIVATE")
    web.get(f"{home.address}/v1/metrics")
    web.get(f"{home.address}/static/shell.js")
    text = home.audit.read_text()
    assert "PRIVATE" not in text
    lines = [json.loads(line) for line in text.splitlines()][-5:]
    found = [(one["who"], one["question"], one["status"]) for one in lines]
    assert found == [
        ("some", "/v1/metrics/NAME/estimates", 404),
        ("some", "/v1/metrics/NAME/estimates", 200),
        ("all", "/v1/candidates/NAME", 200),
        ("some", "other", 404),
        (None, "/v1/metrics", 401),
    ]
    assert (lines[0]["metric"], lines[1]["asked"]) == ("hidden", {"epochs": "all"})
    assert lines[2]["candidates"] == 2


def test_nothing_is_answered_whose_line_cannot_be_written(home: House) -> None:
    moved = home.audit.with_suffix(".kept")
    home.audit.rename(moved)
    home.audit.mkdir()
    try:
        refused = home.ask("some", "/v1/metrics")
        assert (refused.status_code, "cannot be written" in refused.text) == (503, True)
        assert "theme" not in refused.text
    finally:
        home.audit.rmdir()
    assert home.ask("some", "/v1/metrics").status_code == 200, "a file moved away is begun anew"
    assert home.audit.read_text().count("\n") == 1


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Certificates by who shows them: of services, of people, of a company's own authority."""
    made = tmp_path_factory.mktemp("certificates")
    write_certificates(made / "tls", {}, made / "kept")
    found = {"analyst": str(made / "tls"), "service": str(made / "tls")}
    for who in ("ana@example.org", "eve@example.org"):
        folder, kept = str(made / who), str(made / "kept")
        assert main(["keys", "analyst", folder, "--name", who, "--authorities", kept]) == 0
        found[who] = folder
    return found


@contextmanager
def _asking(home: House, door: GrpcDoor, tls: str | None) -> Iterator[str]:
    """The address of the same questions over gRPC."""
    address, done = f"127.0.0.1:{free_port()}", threading.Event()
    held, bundle = home.query.collected._shelf._store, home.query.collected.bundle
    query = QueryEngine(bundle, held, clock=home.query.collected.now)  # of this loop
    releases = Releases(query.collected, MemoryReleaseLog())
    served = threading.Event()

    async def serve() -> None:
        server = Server(
            address,
            [
                partial(add_QueryServicer_to_server, QueryService(query, door)),
                partial(add_ReleasesServicer_to_server, ReleasesService(releases, query, door)),
            ],
            tls=TlsFolder(Path(tls), "aggregator") if tls else None,
            callers=door.lets_in,
        )
        await server.start()
        served.set()
        await asyncio.to_thread(done.wait)
        await server.stop(0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert served.wait(HANG_SECONDS)
    try:
        yield address
    finally:
        done.set()
        thread.join(HANG_SECONDS)


def _lines(home: House, number: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in home.audit.read_text().splitlines()[-number:]]


def test_over_grpc_a_certificate_sees_what_its_groups_do_and_the_audit_has_its_questions(
    home: House, folders: dict[str, str], tmp_path: Path
) -> None:
    access = tmp_path / "access.toml"
    access.write_text(ACCESS)
    by = access_of(None, read_access(access))
    audit = AuditTrail(home.audit, lambda: set(home.query.collected.bundle.streams), time.time)
    with _asking(home, GrpcDoor(by, audit, secured=True), folders["service"]) as address:
        ana = Endpoints(address, folders["ana@example.org"])
        listed = ask(ana, "Metrics", wire.MetricsRequest())
        assert [one.name for one in listed.metrics] == ["theme", "colour"]
        questions: list[tuple[str, Callable[[str], Message]]] = [
            ("Describe", lambda metric: wire.DescribeRequest(metric=metric)),
            ("Estimate", lambda metric: wire.EstimateRequest(metric=metric)),
            ("Trend", lambda metric: wire.TrendRequest(metric=metric, range=ALL, number=3)),
        ]
        for name, question in questions:
            said = []
            for metric in ("hidden", "absent"):
                with pytest.raises(HubbubError) as caught:
                    ask(ana, name, question(metric))
                said.append(str(caught.value).replace(metric, "NAME"))
            assert said[0] == said[1], name
            assert ask(ana, name, question("theme")), name
        law = ask(ana, "Pipeline", wire.PipelineRequest())
        assert {one.stream for one in law.windows} == {"theme", "colour"}
        with pytest.raises(HubbubError, match="takes the role publisher"):
            release(ana, wire.ReleaseRequest(metric="theme", query="count", value="dark", by="me"))
        stored: list[tuple[str, Message]] = [
            ("SaveMark", wire.Mark(name="m", date="2026-01-01", metric="theme")),
            ("RemoveMark", wire.RemoveMarkRequest(name="m")),
            ("RemoveCandidates", wire.RemoveCandidatesRequest(name="m")),
            ("SaveCandidates", wire.SaveCandidatesRequest(name="m", candidates=["PRIVATE"])),
        ]
        for name, write in stored:
            with pytest.raises(HubbubError, match="takes the role publisher"):
                ask(ana, name, write)
        [*lines, _, _, _, last] = _lines(home, 7)
        lines.append(last)
        assert [(one["who"], one["by"], one["question"], one["status"]) for one in lines] == [
            ("ana@example.org", "certificate", "Query/Trend", "OK"),
            ("ana@example.org", "certificate", "Query/Pipeline", "OK"),
            ("ana@example.org", "certificate", "Releases/Release", "PERMISSION_DENIED"),
            ("ana@example.org", "certificate", "Query/SaveCandidates", "PERMISSION_DENIED"),
        ]
        assert (lines[0]["metric"], lines[0]["asked"]) == ("theme", {"number": 3, "epochs": "all"})
        assert (lines[2]["release"], lines[3]["candidates"]) == ("count", 1)
        # Of the same authority, and in no group: neither another person nor the role itself.
        for who in ("eve@example.org", "analyst"):
            with pytest.raises(HubbubError, match="not for the role"):
                ask(Endpoints(address, folders[who]), "Metrics", wire.MetricsRequest())
            [line] = _lines(home, 1)
            assert (line["who"], line["status"]) == (None, "PERMISSION_DENIED")
            assert who.removesuffix("@example.org") in line["why"]
        access.write_text(ACCESS.replace("ana@", "eve@"))
        by.use(read_access(access), None)
        with pytest.raises(HubbubError, match="not for the role"):
            ask(ana, "Metrics", wire.MetricsRequest())
        assert ask(Endpoints(address, folders["eve@example.org"]), "Metrics", wire.MetricsRequest())
        home.audit.rename(home.audit.with_suffix(".moved"))
        home.audit.mkdir()
        try:
            with pytest.raises(ServiceUnavailable, match="cannot be written"):
                ask(Endpoints(address, folders["eve@example.org"]), "Watch", wire.WatchRequest())
        finally:
            home.audit.rmdir()
    assert "PRIVATE" not in home.audit.with_suffix(".moved").read_text()


def test_while_no_certificate_is_named_the_role_analyst_sees_everything(
    home: House, folders: dict[str, str]
) -> None:
    with _asking(home, GrpcDoor(Access(), secured=True), folders["service"]) as address:
        whole = ask(Endpoints(address, folders["analyst"]), "Metrics", wire.MetricsRequest())
        assert len(whole.metrics) == 3
        with pytest.raises(HubbubError, match="not for the role"):
            ask(Endpoints(address, folders["ana@example.org"]), "Metrics", wire.MetricsRequest())
    with _asking(home, GrpcDoor(Access(), secured=False), None) as address:
        assert len(ask(Endpoints(address), "Metrics", wire.MetricsRequest()).metrics) == 3


def test_a_uri_of_a_companys_own_authority_is_in_a_group_too(tmp_path: Path) -> None:
    (tmp_path / "access.toml").write_text(ACCESS)
    access = access_of(None, read_access(tmp_path / "access.toml"))
    ben = access.certified(["Ben", "spiffe://example.org/ben"])
    assert ben is not None
    assert (ben.name, ben.role, ben.sees_all) == ("spiffe://example.org/ben", "publisher", True)
    assert access.certified(["Ben"]) is None
    assert access.certified([]) is None


def test_tokens_of_before_groups_see_everything(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "tokens.json"
    secret = add_token(path, "old", "viewer", 1, time.time())
    assert "groups" not in path.read_text(), "an older hubbub reads it too"
    found = Tokens(path).find(secret)
    assert found is not None
    assert found.caller({}).sees_all
    assert main(["keys", "token", str(path), "--name", "new", "--group", "some"]) == 0
    assert [one.groups for one in read_tokens(path)] == [(), ("some",)]
    capsys.readouterr()
    assert main(["keys", "token", str(path)]) == 0
    assert "everything" in capsys.readouterr().out
