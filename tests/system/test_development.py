"""`hubbub up --dev` as a developer runs it: own reports are counted at once, catalogs are taken."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from hubbub.client.state_inspection import peek
from hubbub.errors import HubbubError
from hubbub.errors.message_words import PROTECTS_NOBODY
from tests.interfaces.browser import Watched, chromium
from tests.support import asking, web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, output_of
from tests.support.development_server import Developing, developing
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough


def _metric(name: str) -> str:
    values = ["light", "dark", "system"]
    return metric_toml(name, mechanism="grr", epsilon=2.0, values=values, min_batch=1000)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Developing]:
    with developing(tmp_path_factory.mktemp("up"), catalog_toml(_metric("theme"))) as server:
        yield server


def test_development_counts_a_single_report_and_every_interface_warns(
    up: Developing, capsys: Capture
) -> None:
    up.report("theme", "dark", "first device")
    result = eventually(lambda: asking.estimate(up.endpoints, "theme"), although=(HubbubError,))
    assert (result.reports, result.notice) == (1, PROTECTS_NOBODY)
    assert up.said.startswith(PROTECTS_NOBODY)
    page = up.endpoints.page
    for path in ("", "metric?name=theme", "pipeline"):
        assert (
            f'<aside class="notice" aria-label="What these numbers are">{PROTECTS_NOBODY}'
            in web.get(page + path).text
        )
    for path in ("estimates", "top", "trend"):
        answer = web.get(f"{page}v1/metrics/theme/{path}").json()
        assert answer["notice"] == PROTECTS_NOBODY, path
    output = output_of(capsys, "top", "theme", "--home", str(up.folder / ".hubbub"))
    assert output.startswith(PROTECTS_NOBODY)


def test_reports_are_watched_as_they_come_decoded(up: Developing) -> None:
    watching = subprocess.Popen(
        [sys.executable, "-m", "hubbub.cli", "watch", "--every", "0.2"],
        cwd=up.folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout
    assert watching.stdout.readline() == f"{PROTECTS_NOBODY}\n"
    arrivals = f"{up.endpoints.page}v1/arrivals"
    largest = max(
        (arrival["number"] for arrival in web.get(arrivals).json()["arrivals"]), default=0
    )
    up.report("theme", "light", "third device")
    [sent] = peek(up.folder / "third device").payloads
    value, sure = sent.meanings()[0]
    expected = f"epsilon 2.000  {sent.payload.hex()}  {value} {sure:.1%}, "
    assert any(expected in line for line in iter(watching.stdout.readline, ""))
    watching.send_signal(signal.SIGINT)
    watching.communicate()
    # What an earlier device told may have been the same payload: theirs comes after it.
    [last] = eventually(lambda: web.get(f"{arrivals}?after={largest}").json()["arrivals"])
    page = web.get(arrivals).json()
    assert (page["notice"], page["arrivals"][-1]) == (PROTECTS_NOBODY, last)
    assert last["payload"] == sent.payload.hex()
    assert web.get(f"{arrivals}?after={last['number']}").json()["arrivals"] == []


def test_the_page_shows_reports_as_they_come(up: Developing) -> None:
    with chromium() as browser, Watched(browser) as watched:
        page = watched.open(f"{up.endpoints.page}pipeline")
        assert page.inner_text(".notice") == PROTECTS_NOBODY
        page.wait_for_selector("#arrivals caption")
        rows = page.locator("#arrivals tbody tr")
        before = rows.count()
        up.report("theme", "system", "fourth device")
        expect(rows).to_have_count(before + 1)
        assert page.locator("#arriving").is_visible()
        cells = rows.first.locator("td").all_inner_texts()
        assert cells[1] == "theme"
        assert cells[3] == "2.000"
        assert sorted(re.findall(r"[a-z]+", cells[5])) == ["dark", "light", "system"]


def test_a_changed_catalog_is_loaded_while_up_runs_or_the_former_stays(up: Developing) -> None:
    path = up.folder / "metrics.toml"
    text = path.read_text() + _metric("font")
    path.write_text(text)
    eventually(lambda: "metrics.toml: loaded, 2 metrics" in up.said)
    up.report("font", "dark", "second device")
    eventually(lambda: asking.estimate(up.endpoints, "font").reports == 1, although=(HubbubError,))
    path.write_text(text.replace('"system"', '"auto"'))
    eventually(lambda: "refused, so the previous catalog stays in use" in up.said)
    listed = web.get(f"{up.endpoints.page}v1/metrics").json()["metrics"]
    assert [metric["name"] for metric in listed] == ["theme", "font"]


def test_replaced_certificates_are_named_with_the_devices_needs(
    up: Developing, tmp_path: Path
) -> None:
    assert "certificates" not in up.said
    others = shutil.ignore_patterns("tls", "redis-*", "lock")
    shutil.copytree(up.folder / ".hubbub", tmp_path / ".hubbub", ignore=others)
    with developing(tmp_path, catalog_toml(_metric("theme"), _metric("font"))) as again:
        assert ".hubbub/tls had no certificates: new ones were made" in again.said
