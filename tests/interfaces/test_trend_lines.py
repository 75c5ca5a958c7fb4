"""The line through a trend's days, its step and its weekdays: told and drawn by every face."""

from pathlib import Path

import matplotlib as mpl
import pytest
from playwright.sync_api import Browser, expect

from hubbub.cli.terminal.answer_tables import show_trend
from hubbub.epochs import epoch_date
from hubbub.errors import BadParameter
from hubbub.notebook import connect
from tests.interfaces.browser import Watched
from tests.support import web
from tests.support.bundles import DAY
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.pages import EPOCH, page_of

pytestmark = pytest.mark.thorough

mpl.use("Agg")
CATALOG = catalog_toml(
    metric_toml(
        "theme",
        period="30d",
        report_on="one day",
        mechanism="rr",
        epsilon=4.0,
        values=["light", "dark"],
    ),
    shuffler="shuffler.example.org:443",
)
DAYS, STEP = 42, 20
WEEK = (0, 0, 0, 0, 0, 200, 200)


def _counts_on(day: int) -> dict[int, int]:
    """2,000 people; from one day on 30 in 100 more of them, and on weekends 10 more."""
    dark = 400 + 600 * (day >= STEP) + WEEK[(EPOCH - DAYS + 1 + day + 3) % 7]
    return {0: 2000 - dark, 1: dark}


TRUE_COUNTS = {"theme": [_counts_on(day) for day in range(DAYS)]}
DATE = epoch_date(EPOCH - DAYS + 1 + STEP, DAY)


def test_every_interface_shows_line_step_and_weekdays(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with page_of(tmp_path, CATALOG, TRUE_COUNTS) as address:
        response = web.get(
            f"{address}/v1/metrics/theme/trend", params={"epochs": "all", "value": "dark"}
        ).json()
        [series] = response["series"]
        points = series["points"]
        [step] = series["shifts"]
        assert step["date"] == DATE
        assert step["low"] <= 0.3 <= step["high"]
        assert response["false_alarm"] == 0.01
        assert [effect > 0 for effect in series["weekdays"]] == [False] * 5 + [True] * 2
        truth = [_counts_on(day)[1] / 2000 for day in range(DAYS)]
        covered = [
            point["line_low"] <= true <= point["line_high"]
            for point, true in zip(points, truth, strict=True)
        ]
        assert sum(covered) >= 0.8 * DAYS
        assert all(
            point["line_high"] - point["line_low"] < point["high"] - point["low"]
            for point in points
        )
        answer = connect(address).trend("theme", epochs="all", values=["dark"])
        assert answer.document["series"] == response["series"]
        assert f"on {DATE}" in answer._repr_html_()
        lines = [list(line.get_ydata()) for line in answer.plot().get_lines()]
        assert lines == [[point["line"] for point in points], [point["share"] for point in points]]
        with pytest.raises(BadParameter, match='; did you mean "dark"'):
            connect(address).trend("theme", epochs="all", values=["drak"])
        compared = web.get(f"{address}/v1/metrics/theme/compare")
        assert compared.status_code == 409
        assert "needs two periods of 30d that accept no more" in compared.json()["detail"]
        show_trend(response)
        output = capsys.readouterr().out
        assert f"on {DATE}" in output
        assert "dark: weekdays differ: Mon -" in output
        with Watched(browser, clean=False) as watched:
            page = watched.open(f"{address}/metric?name=theme&epochs=all")
            expect(page.locator("#steps")).to_contain_text("dark: a step of +3")
            expect(page.locator("#steps")).to_contain_text(f"on {DATE}")
            expect(page.locator("#steps")).to_contain_text("dark: weekdays differ: Mon -")
            assert page.locator("#trend circle.raw").count() == 2 * DAYS
            assert page.locator("#trend g.mark").count() == 2
            expect(page.locator("#compared")).to_contain_text("needs two periods of 30d")
            page.click("a:has-text('Metrics')")
            expect(page.locator("#metrics .answer")).to_contain_text("dark")
            assert watched.errors
            assert all("409" in error for error in watched.errors)


@pytest.mark.parametrize(
    ("when", "days", "verdict"),
    [
        ("change", 2, "Raised: theme, 2024-09-25: since 2024-09-24 "),
        ("share of dark below 0.1", 2, "Not raised: theme, 2024-09-25: dark "),
        ("change", 1, "Not judged yet: it needs closed, readable epochs"),
    ],
)
def test_the_page_of_a_metric_shows_the_verdict_of_its_alert(
    browser: Browser, tmp_path: Path, when: str, days: int, verdict: str
) -> None:
    more = f'values = ["light", "dark"]\nalert = {{ when = "{when}", confidence = 0.9 }}'
    catalog = catalog_toml(metric_toml("theme", more, mechanism="rr", epsilon=4.0))
    counts = {"theme": [{0: 1800, 1: 200}, {0: 200, 1: 1800}][:days]}
    with (
        page_of(tmp_path, catalog, counts, earlier={"theme": 9}) as address,
        Watched(browser) as watched,
    ):
        alert = watched.open(f"{address}/metric?name=theme").locator("#alert")
        assert alert.inner_text().startswith(f'Alert "{when}" with 90% confidence. {verdict}')
        assert ("bad" in (alert.get_attribute("class") or "")) == verdict.startswith("Raised")
