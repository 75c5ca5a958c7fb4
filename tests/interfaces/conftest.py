"""One house and one browser for all tests of the faces: what they ask changes nothing in it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from hubbub.aggregator.access.tokens import add_token
from tests.interfaces.browser import Watched, chromium, new_context
from tests.interfaces.running_aggregator import House, house


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the browser come last: from its start on Playwright has a loop in this thread."""
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as chrome:
        yield chrome


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Where most pages are opened, one after another: a context of its own would take longer."""
    new = new_context(browser)
    yield new
    new.close()


@pytest.fixture
def watched(context: BrowserContext) -> Iterator[Watched]:
    """A page that is without errors at the end of the test."""
    with Watched(context) as new_page:
        yield new_page


@pytest.fixture
def unchecked(browser: Browser) -> Iterator[Watched]:
    """A page that may have errors, such as of a request that is refused."""
    with Watched(browser, clean=False) as new_page:
        yield new_page


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("house")
    files = ("--totals", str(folder / "files"), "--estimates", str(folder / "files"))
    with house(folder, "--http-rate", "0", "--kept-epochs", "1", *files) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Path]]:
    """A house that asks for tokens, with the file of them."""
    folder = tmp_path_factory.mktemp("guarded")
    path = folder / "tokens.json"
    add_token(path, "somebody else", "viewer", 1, time.time())
    options = ("--http-rate", "0", "--http-origin", "https://board.example")
    with house(folder / "house", "--http-tokens", str(path), *options) as running:
        yield running, path
