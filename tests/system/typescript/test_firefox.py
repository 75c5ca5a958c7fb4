"""client/typescript in a page of Firefox, against `hubbub up --dev`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interfaces.firefox import Firefox, firefox, needs_firefox
from tests.support.developing import Developing
from tests.support.node import needs_node
from tests.system.typescript.pages import OPEN, REPORT, counted

REPORTS = 20

pytestmark = [needs_node, needs_firefox]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Firefox]:
    with firefox(tmp_path) as own:
        yield own


def test_reports_of_firefox_are_opened_and_its_limits_outlive_the_page(
    page: Firefox, up: Developing, origin: str, door: str
) -> None:
    for said in ("queued", "already_reported"):
        page.goto(origin)
        page.evaluate(OPEN, door)
        told = [page.evaluate(REPORT, ["foxes", "dark"]) for _ in range(REPORTS)]
        assert told == [said] * REPORTS
        assert page.evaluate("() => client.flush()") is True
        assert page.evaluate("() => client.dropped") == {}
    counted(up, "foxes", REPORTS)
