"""A trend over a renamed metric on the page: both names' points, and what was not asked."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from hubbub.epochs import epoch_date
from tests.interfaces.browser import Watched
from tests.support.bundles import DAY
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.pages import EPOCH, page_of

pytestmark = pytest.mark.thorough

FIELDS: dict[str, Any] = {"description": "Colour theme", "mechanism": "grr", "epsilon": 4.0}
CATALOG = catalog_toml(
    metric_toml("theme", values=["light", "dark"], **FIELDS),
    metric_toml("theme_2", values=["light", "dark", "sepia"], supersedes="theme", **FIELDS),
    shuffler="shuffler.example.org:443",
)


def test_the_page_joins_a_renamed_metric_and_marks_unlisted_values(
    browser: Browser, tmp_path: Path
) -> None:
    truths = {"theme": {0: 700, 1: 300}, "theme_2": {0: 600, 1: 300, 2: 100}}
    with (
        page_of(tmp_path, CATALOG, truths, earlier={"theme": 1}) as address,
        Watched(browser) as watched,
    ):
        page = watched.open(f"{address}/metric?name=theme_2")
        expect(page.locator("#legend span")).to_have_text(
            ["light", "dark", f"sepia (not asked in {epoch_date(EPOCH - 1, DAY)})"]
        )
        expect(page.locator("#legend")).to_contain_text("with the reports of theme")
        points = [page.locator(f"#trend g.s{place} circle").count() for place in range(3)]
        assert points == [2, 2, 1]
        page = watched.open(f"{address}/metric?name=theme")
        expect(page.locator("#legend span")).to_have_count(0)  # one epoch has no line
        assert "with the reports of" not in page.inner_text("#legend")
