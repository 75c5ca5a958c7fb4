"""What all pages are tested with: one `hubbub up --dev`, one site, one browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.interfaces.browser import HANG_MS, chromium
from tests.support.catalogs import metric_toml
from tests.support.development_server import Developing, developing
from tests.support.moment import far_from_midnight
from tests.support.node import install, run
from tests.system.typescript.pages import door_of, served

RUNS = """
shuffler = "127.0.0.1:1"

[runs]
shuffler = "Example Foundation, Oslo"
aggregator = "Example Ltd, Dublin"
"""
LIE_SELDOM = 'mechanism = "grr"\nepsilon = 4.0'
LIE_OFTEN = 'mechanism = "grr"\nepsilon = 1.0'
STAYS = 'mechanism = "long.grr"\nepsilon = 1.001\npermanent_epsilon = 2.0'
BITS = 'mechanism = "unary.oue"\nepsilon = 1.0'
THEMES, LETTERS = ["light", "dark", "system"], ["a", "b", "dark"]
QUESTION = ("One of many", ["a", "b", "c", "d"], 1, BITS)
# One for each test that counts, so that none counts another's.
METRICS = {
    "theme": ("Colour theme", THEMES, 1, LIE_SELDOM),
    "electron": ("Colour theme, of windows", THEMES, 1, LIE_SELDOM),
    "stays": ("A value that stays", LETTERS, 3, STAYS),
    "many": ("A value", LETTERS, 100, LIE_OFTEN),
    "left": ("A value", LETTERS, 1, LIE_OFTEN),
    "heap": ("A value", LETTERS, 1000, LIE_OFTEN),
    **{f"question_{number}": QUESTION for number in range(5)},
    "reopened": ("A value", LETTERS, 3, LIE_OFTEN),
    "service": ("A value", LETTERS, 2, LIE_OFTEN),
    "cached": ("A value", LETTERS, 2, LIE_OFTEN),
    "old_webkit": ("A value", LETTERS, 1, LIE_OFTEN),
    **{
        f"{name}_{engine}": fields
        for engine in ("chromium", "firefox", "webkit")
        for name, fields in {
            "page": ("A value", LETTERS, 20, LIE_OFTEN),
            "raced": ("A value", LETTERS, 1, LIE_OFTEN),
            "killed": ("A value", LETTERS, 3, LIE_OFTEN),
            "full": ("A value", LETTERS, 3, LIE_OFTEN),
            "left": ("A value", LETTERS, 1, LIE_OFTEN),
            "worker": ("A value", LETTERS, 1, LIE_OFTEN),
        }.items()
    },
}

VECTOR = metric_toml(
    "scores",
    kind="vector",
    coordinates=["speed", "ease", "looks"],
    max_length=2.0,
    words=128,
    books=512,
    mechanism="vector.codes",
    epsilon=6.0,
    min_batch=1000,
    lifetime_epsilon=1000.0,
)


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    install()
    (folder / "loaded").write_text(run("node", "bundle.js", str(folder)))
    # With an icon, or the first page of a browser requests one that is not there.
    head = "<!doctype html><html lang=en><title>An app</title><link rel=icon href=data:,>"
    (folder / "index.html").write_text(head)
    return folder


@pytest.fixture(scope="package")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Developing]:
    catalog = RUNS + VECTOR
    for name, (description, values, reports, more) in METRICS.items():
        catalog += metric_toml(
            name,
            more,
            description=description,
            values=values,
            min_batch=1000,
            reports_per_epoch=reports,
            lifetime_epsilon=1000.0,
        )
    with developing(tmp_path_factory.mktemp("up"), catalog) as server:
        yield server


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    # Of what outlives a page a context's `ignore_https_errors` says nothing.
    with chromium("--ignore-certificate-errors") as chrome:
        yield chrome


@pytest.fixture(scope="package")
def origin(site: Path, up: Developing) -> Iterator[str]:
    shutil.copy(up.bundle, site / "app.hubbub")
    with served(site) as address:
        yield address


@pytest.fixture
def door(up: Developing) -> str:
    far_from_midnight()  # all tests of pages together may take longer
    return door_of(up)


@pytest.fixture
def device(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has seen nothing."""
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(HANG_MS)
    yield context
    context.close()
