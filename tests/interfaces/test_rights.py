"""Rights: of a metric that somebody may not see, nothing tells them that it exists."""

import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from hubbub.aggregator.access.access_file import read_access
from hubbub.aggregator.access.audit_trail import AuditTrail, Seen
from hubbub.aggregator.access.callers import access_of
from hubbub.aggregator.access.tokens import Role, Tokens, add_token, read_tokens
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.conservation_law import PipelineStatus, ReportCounts, visible_status
from hubbub.cli.main import main
from hubbub.errors import ServiceUnavailable
from tests.support import web
from tests.support.bundles import metric_text
from tests.support.commands import output_of
from tests.support.pages import page_of

BUDGET: Final = "[budget]\nepsilon_per_year = 5\npurposes = { report = 1.0 }\n"
CATALOG: Final = f'shuffler = "127.0.0.1:1"\n{BUDGET}' + "".join(
    [
        metric_text("theme"),
        metric_text("hidden"),
        # What is seen goes on from what is not.
        metric_text("colour", more='supersedes = "hidden"'),
    ]
)
TRUE_COUNTS: Final = {name: {0: 500, 1: 900} for name in ("theme", "hidden", "colour")}
ACCESS: Final = """
[groups.some]
metrics = ["theme", "col*"]
[groups.part]
metrics = ["col*"]
[groups.theme]
role = "publisher"
metrics = ["theme"]
[groups.all]
role = "publisher"
metrics = ["*"]
"""
QUESTIONS: Final = [
    "",
    "/estimates",
    "/top",
    "/compare",
    "/trend",
    "/commands",
    "/export",
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

    def ask(self, token_name: str, path: str, method: str = "get", **more: Any) -> Any:
        headers = {"authorization": f"Bearer {self.tokens[token_name]}"}
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
        token_name: add_token(tokens, token_name, role, 1, now, groups=groups)
        for token_name, role, groups in people
    }
    houses: list[House] = []

    def access_options(address: str, query: QueryEngine) -> dict[str, Any]:
        houses.append(House(address, secrets, folder / "audit.jsonl", query))
        audit = AuditTrail(
            folder / "audit.jsonl", lambda: set(query.collected.bundle.streams), time.time
        )
        return {"access": access_of(tokens, read_access(access)), "audit": audit}

    with page_of(folder, CATALOG, TRUE_COUNTS, opened=access_options, earlier={"hidden": 1}):
        yield houses[0]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_hidden_metric_is_answered_as_one_that_does_not_exist(home: House, question: str) -> None:
    hidden = home.ask("some", f"/v1/metrics/hidden{question}")
    unknown = home.ask("some", f"/v1/metrics/absent{question}")
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.text.replace("hidden", "absent") == unknown.text
    if "tier" not in question:
        assert home.ask("all", f"/v1/metrics/hidden{question}").status_code != 404


def test_no_list_names_a_hidden_metric(home: House) -> None:
    for path in (
        "/v1/metrics",
        "/v1/status",
        "/v1/marks",
        "/v1/arrivals",
        "/metrics",
        "/v1/me",
        "/v1/metrics/colour",
        "/v1/metrics/colour/trend?epochs=all",
        "/v1/metrics/absent",
    ):
        answer = home.ask("some", path)
        assert answer.status_code in {200, 404}, path
        assert "hidden" not in answer.text, path
    assert [metric["name"] for metric in home.ask("some", "/v1/metrics").json()["metrics"]] == [
        "theme",
        "colour",
    ]
    assert home.ask("all", "/v1/metrics/colour/trend?epochs=all").json()["joined"] == ["hidden"]
    assert home.ask("some", "/v1/metrics/colour/trend?epochs=all").json()["joined"] == []


def test_limited_callers_see_the_law_of_their_metrics_only(home: House) -> None:
    some: dict[str, Any] = home.ask("some", "/v1/status").json()
    whole: dict[str, Any] = home.ask("old", "/v1/status").json()
    assert {window["stream"] for window in some["windows"]} == {"theme", "colour"}
    assert (some["total"]["counted"], whole["total"]["counted"]) == (2800, 4200)
    assert set(some) == set(whole) == set(PipelineStatus.__slots__)


@pytest.mark.parametrize("off", [True, False])
def test_the_balance_of_hidden_windows_is_not_shown(off: bool) -> None:
    terms: dict[str, Any] = dict.fromkeys((field.name for field in fields(ReportCounts)), 0)
    visible, hidden = (
        ReportCounts(**terms | {"stream": name, "date": None, "balanced": balanced})
        for name, balanced in (("theme", True), ("hidden", not off))
    )

    law = PipelineStatus(complete=True, balanced=not off, total=hidden, windows=[visible, hidden])
    result = visible_status(law, "theme".__eq__)
    assert (result.balanced, result.total.balanced, result.windows) == (True, True, [visible])


def test_limited_callers_get_the_same_answers(home: House) -> None:
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
        for token_name, (path, body) in product(("some", "less"), stored.items()):
            for refused in (
                home.ask(token_name, path, "put", json=body),
                home.ask(token_name, f"{path}new", "put", json=body),
                home.ask(token_name, path, "delete"),
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
        response = home.ask("part", "/v1/marks/launch", "put", json=day | {"metric": "theme"})
        assert response.status_code == 200
        assert home.ask("part", "/v1/marks/launch", "delete").status_code == 204
        assert home.ask("part", "/v1/marks/launch", "delete").status_code == 404
        assert home.ask("part", "/v1/marks/colours", "delete").status_code == 403
        other = home.ask("part", "/v1/marks/colours", "put", json=day | {"metric": "colour"})
        assert other.status_code == 403
        names = [mark["name"] for mark in home.ask("all", "/v1/marks").json()["marks"]]
        assert names == ["colours", "launch"]
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
        [first_mark] = home.ask("all", "/v1/marks").json()["marks"]
        assert first_mark["text"] == "first"
    finally:
        home.ask("all", "/v1/marks/launch", "delete")


def test_a_caller_of_an_unknown_group_may_request_nothing(home: House) -> None:
    for path in ("/v1/metrics", "/v1/metrics/theme", "/metrics", "/v1/tokens", "/v1/me"):
        assert home.ask("none", path).status_code == 403, path


def test_a_token_has_no_higher_role_than_its_own_or_its_groups(home: House) -> None:
    ask = {"metric": "theme", "query": "count", "value": "dark", "by": "me"}
    assert home.ask("less", "/v1/releases", "post", json=ask).status_code == 403
    assert home.ask("some", "/v1/releases", "post", json=ask).status_code == 403
    assert home.ask("all", "/v1/releases", "post", json=ask).status_code == 400, "no release"
    assert home.ask("all", "/v1/tokens").status_code == 403
    listed = {token["name"]: token["groups"] for token in home.ask("old", "/v1/tokens").json()}
    assert (listed["some"], listed["old"]) == (["some"], [])


def test_only_callers_who_see_all_metrics_see_the_remaining_budget_of_a_purpose(
    home: House,
) -> None:
    remaining = {}
    for token_name in ("all", "part"):
        [purpose] = home.ask(token_name, "/v1/releases").json()["purposes"]
        remaining[token_name] = purpose["epsilon"], purpose["epsilon_left"]
    assert remaining == {"all": (5, 5), "part": (5, None)}


def test_rights_apply_to_a_reloaded_bundle(home: House) -> None:
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
    entries = [(line["who"], line["question"], line["status"]) for line in lines]
    assert entries == [
        ("some", "/v1/metrics/NAME/estimates", 404),
        ("some", "/v1/metrics/NAME/estimates", 200),
        ("all", "/v1/candidates/NAME", 200),
        ("some", "other", 404),
        (None, "/v1/metrics", 401),
    ]
    assert (lines[0]["metric"], lines[1]["asked"]) == ("hidden", {"epochs": "all"})
    assert lines[2]["candidates"] == 2


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "unread pipe"])
def test_a_request_that_the_audit_cannot_record_is_not_answered(
    home: House, make: Callable[[Path], None]
) -> None:
    moved = home.audit.with_suffix(".kept")
    home.audit.rename(moved)
    make(home.audit)
    try:
        refused = home.ask("some", "/v1/metrics")
        assert (refused.status_code, "cannot be written" in refused.text) == (503, True)
        assert "theme" not in refused.text
    finally:
        home.audit.rename(moved.with_suffix(f".{make.__name__}"))
    assert home.ask("some", "/v1/metrics").status_code == 200, "a file moved away is begun anew"
    assert home.audit.read_text().count("\n") == 1


def test_an_audit_line_cut_by_a_full_disk_is_removed_and_the_answer_refused(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"{}\n")
    audit = AuditTrail(path, set, time.time)
    state = {"caller": None, "seen": Seen()}
    scope = {"method": "GET", "path": "/v1/metrics", "state": state}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (13, limits[1]))
    try:
        with pytest.raises(ServiceUnavailable, match="No space left"):
            audit.note(scope, "127.0.0.1", 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"{}\n"


def _lines(home: House, number: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in home.audit.read_text().splitlines()[-number:]]


def test_a_command_with_a_token_sees_what_its_groups_do_and_the_audit_has_its_questions(
    home: House,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HUBBUB_TOKEN", home.tokens["some"])

    def command(*words: str) -> tuple[int, str]:
        code = main([*words, "--url", home.address])
        output = capsys.readouterr()
        return code, output.out or output.err

    listed = json.loads(command("metrics", "--format", "json")[1])["metrics"]
    assert [entry["name"] for entry in listed] == ["theme", "colour"]
    for words in (["query"], ["trend", "-n", "3"], ["top"], ["compare"]):
        refused = [command(words[0], metric, *words[1:]) for metric in ("hidden", "absent")]
        assert [code for code, _ in refused] == [2, 2]
        texts = [
            text.replace(metric, "NAME")
            for (_, text), metric in zip(refused, ("hidden", "absent"), strict=True)
        ]
        assert texts[0] == texts[1], words
    assert command("trend", "theme", "-n", "3")[0] == 0
    [trend] = _lines(home, 1)
    assert (trend["who"], trend["by"], trend["status"]) == ("some", "token", 200)
    assert (trend["metric"], trend["question"]) == ("theme", "/v1/metrics/NAME/trend")
    assert trend["asked"].items() >= {"number": "3", "epochs": "all"}.items()
    windows = json.loads(command("status", "--format", "json")[1])["windows"]
    assert {window["stream"] for window in windows} == {"theme", "colour"}
    strings = tmp_path / "strings.txt"
    strings.write_text("PRIVATE\n")
    for words in (
        ["release", "theme", "count", "--value", "dark"],
        ["mark", "add", "m", "--on", "2026-01-01", "--metric", "theme"],
        ["mark", "remove", "m"],
        ["candidates", "remove", "m"],
        ["candidates", "add", "m", str(strings)],
    ):
        code, output = command(*words)
        assert (code, "needs the role publisher" in output) == (2, True), words
    *_, last = _lines(home, 1)
    assert (last["status"], last["candidates"]) == (403, 1)
    assert "PRIVATE" not in home.audit.read_text()
    monkeypatch.delenv("HUBBUB_TOKEN")
    code, output = command("metrics")
    assert (code, "HUBBUB_TOKEN" in output, output.count("\n")) == (2, True, 1)


def test_tokens_of_before_groups_see_everything(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "tokens.json"
    secret = add_token(path, "old", "viewer", 1, time.time())
    assert "groups" not in path.read_text(), "an older hubbub reads it too"
    record = Tokens(path).find(secret)
    assert record is not None
    assert record.caller({}).sees_all
    assert main(["keys", "token", str(path), "--name", "new", "--group", "some"]) == 0
    assert [read_token.groups for read_token in read_tokens(path)] == [(), ("some",)]
    capsys.readouterr()
    assert "everything" in output_of(capsys, "keys", "token", str(path))
