"""The examples run, as they stand."""

import importlib.util
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
from openfeature import api as openfeature
from openfeature.exception import ErrorCode

from hubbub.bundles.model_state import ModelState
from hubbub.client import Client, MemoryState, Outcome
from hubbub.client.testing import FakeClock, FakeServer, FakeShuffler
from hubbub.client.testing.memory_clients import Captured
from hubbub.client.testing.pytest_plugin import hubbub_reports
from hubbub.keys.operator_key import read_operator_key
from hubbub.signing.sign_bundle import sign_models
from hubbub.signing.testing import make_bundle
from tests.conftest import CATALOG
from tests.support.bundles import DAY, make_signed
from tests.support.moment import now
from tests.support.programs import run_program
from tests.unit.test_experiments import CATALOG as TRIED

__all__ = ["hubbub_reports"]

EXAMPLES = Path(__file__).parents[2] / "examples"
LEARN = EXAMPLES.parent / "docs" / "learn.md"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def app_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle, and the settings of both web apps, where they look."""
    start = (int(now()) // DAY - 14) * DAY
    monkeypatch.setenv("HUBBUB_BUNDLE", str(make_signed(tmp_path, CATALOG, start=start).path))
    monkeypatch.setenv("PERSONS", str(tmp_path / "persons.sqlite3"))
    monkeypatch.setenv("PERSONS_KEY", "ab" * 32)
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")


@pytest.mark.usefixtures("app_bundle")
def test_the_flask_app_counts_each_visitor_once(hubbub_reports: Captured) -> None:
    app = _load("flask_app").create_app()
    ann, bob = app.test_client(), app.test_client()
    for browser, theme in ((ann, "dark"), (bob, "light"), (ann, "light")):
        assert browser.post(f"/theme/{theme}").text == theme
    assert hubbub_reports.values("theme") == ["dark", "light"]
    assert hubbub_reports.reports.pop().outcome is Outcome.ALREADY_REPORTED
    eve = app.test_client()
    assert eve.post("/no").text == "nothing is sent of you"
    eve.post("/theme/dark")
    assert hubbub_reports.reports.pop().outcome is Outcome.DISABLED


@pytest.mark.usefixtures("app_bundle")
def test_the_django_app_counts_each_visitor_once(
    hubbub_reports: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "django_app", _load("django_app"))
    from django.test import Client as Browser

    ann, bob, eve = Browser(), Browser(), Browser()
    for browser, theme in ((ann, "dark"), (bob, "light"), (ann, "light")):
        assert browser.post(f"/theme/{theme}").content.decode() == theme
    assert hubbub_reports.values("theme") == ["dark", "light"]
    assert hubbub_reports.reports.pop().outcome is Outcome.ALREADY_REPORTED
    assert eve.post("/no").status_code == 200
    eve.post("/theme/dark")
    assert hubbub_reports.reports.pop().outcome is Outcome.DISABLED
    assert eve.get("/theme/dark").status_code == 405


def test_each_device_of_the_documented_model_reports_once(tmp_path: Path) -> None:
    match = re.search(r"```toml\n(\[models.churn\].*?)```", LEARN.read_text(), re.DOTALL)
    assert match
    begins = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp())
    catalog = f'shuffler = "127.0.0.1:1"\n{match[1]}'
    signed = make_signed(tmp_path, catalog, start=begins - 28 * DAY)
    model = signed.bundle.metrics["churn"].model
    assert model
    example, shuffler, clock = _load("teach_churn"), FakeShuffler(), FakeClock(begins + 60)
    waiting = every = example.devices(60, signed.bundle, shuffler, clock)
    for number in range(model.last_round + 1):
        clock.set(begins + 2 * DAY * number + 60)
        if number:
            edges = [0.1 * at for at in range(7)] if number > model.rounds else []
            state = ModelState(number - 1, (0.5, 0.5, 0.5), (0.1,) * 4, tuple(edges))
            key = read_operator_key(signed.keys)
            shuffler.models = sign_models({"churn": state}, key)
        example.tell(waiting)
        waiting = example.tell(waiting)
        assert len(every) - len(waiting) == len(shuffler.reports())
    assert waiting == []


@pytest.mark.usefixtures("app_bundle")
def test_the_fastapi_app_counts_each_account_once(hubbub_reports: Captured) -> None:
    from fastapi.testclient import TestClient

    with TestClient(_load("fastapi_app").app) as browser:
        for account, theme in (("ann", "dark"), ("bob", "light"), ("ann", "light")):
            assert browser.post(f"/{account}/theme/{theme}").json() == theme
        assert hubbub_reports.values("theme") == ["dark", "light"]
        browser.post("/eve/no")
        browser.post("/eve/theme/dark")
    assert hubbub_reports.reports[-1].outcome is Outcome.DISABLED


def test_the_desktop_app_shows_lessens_stops_and_starts(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    with FakeServer() as server:
        bundle = make_bundle(tmp_path / "metrics.toml", shuffler=server.address)
    (tmp_path / "app.hubbub").write_bytes(bundle.signed)
    choices = ["what left", "less", "as designed", "stop", "start", "stop and forget", "what left"]
    done = run_program(
        sys.executable,
        str(EXAMPLES / "desktop_app.py"),
        input="\n".join(choices) + "\n",
        cwd=tmp_path,
        env={**os.environ, "HUBBUB_STATE_DIR": str(tmp_path / "state")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "theme: queued"
    assert [line for line in done.stdout.splitlines() if line.startswith("done: ")] == [
        f"done: {choice}" for choice in choices
    ]


def test_the_whole_protocol_as_one_function_answers_near_the_truth() -> None:
    """2,000 people; each of three values within 6 standard errors: a false alarm in 1e8."""
    module = _load("protocol")
    themes = ["light"] * 1200 + ["dark"] * 600 + ["system"] * 200
    answer = module.protocol(themes, module.THEMES, 2.0)
    assert answer.reports == 2000
    for value, true in zip(answer.values, (1200, 600, 200), strict=True):
        assert abs(value.estimate - true) <= 6 * value.stderr


def test_the_openfeature_provider_gives_flags_the_value_of_the_arm(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(TRIED)
    bundle = make_bundle(tmp_path / "metrics.toml").bundle
    values = {"new_menu": {"control": False, "new": True}, "other": {"control": 1}}
    flags, texts = set(), {"new_menu": {"control": "list", "new": "ribbon"}}
    for number in range(9):
        state = MemoryState(number.to_bytes(32, "big"))
        clock = FakeClock(bundle.keys[1].start + 100.0)
        client = Client(bundle, state, FakeShuffler(), hold_seconds=None, clock=clock, strict=False)
        module = _load("openfeature_provider")
        openfeature.set_provider(module.Arms(client, values))
        details = openfeature.get_client().get_boolean_details("new_menu", False)  # noqa: FBT003 as OpenFeature has it
        assert details.variant == client.arm("new_menu")
        assert details.value is (details.variant == "new")
        flags.add(details.value)
        missing = openfeature.get_client().get_integer_details("other", 7)
        assert (missing.value, missing.error_code) == (7, ErrorCode.FLAG_NOT_FOUND)
        wrong = openfeature.get_client().get_string_details("new_menu", "7")
        assert (wrong.value, wrong.error_code) == ("7", ErrorCode.TYPE_MISMATCH)
        openfeature.set_provider(module.Arms(client, texts))
        shown = openfeature.get_client().get_string_value("new_menu", "list")
        assert shown == texts["new_menu"][client.arm("new_menu")]
    openfeature.clear_providers()
    assert flags == {False, True}
