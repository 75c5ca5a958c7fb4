"""The documentation as a site: it builds strictly, is whole, and asks nothing of another host."""

import importlib
import json
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from docs.site.__main__ import CONFIGURATION, main
from docs.site.gather import PROJECT
from hubbub.installation.child_process import free_port
from tests.interfaces.browser import chromium
from tests.support import web

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
# What a page loads by itself, and from where; a link that somebody follows is not among it.
LOADED = {
    ("audio", "src"),
    ("embed", "src"),
    ("iframe", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("input", "src"),
    ("link", "href"),
    ("object", "data"),
    ("script", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("video", "poster"),
    ("video", "src"),
}


class Page(HTMLParser):
    """What a page of the site says of itself: its links, what it loads, its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if (tag, name) in LOADED:
                self.loaded.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    return folder


@pytest.fixture(scope="module")
def address(out: Path) -> Iterator[str]:
    """Where `make docs` shows the site, until Ctrl-C."""
    port, log = free_port(), out / "requests.log"
    url = f"http://127.0.0.1:{port}/"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "docs.site", "--out", str(out), "--port", str(port)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == f"{url} until Ctrl-C\n", log.read_text()
        assert not log.read_text()
        yield url
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


@pytest.fixture(scope="module")
def site(out: Path, address: str) -> Path:
    assert address
    return out / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html")}


def _nav(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from [value] if isinstance(value, str) else _nav(value)


def test_every_page_has_one_place_in_the_navigation() -> None:
    named = [*_nav(tomllib.loads(CONFIGURATION.read_text())["project"]["nav"])]
    page_names = {
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    }
    decisions = {name for name in page_names if re.match(r"decisions/\d{4}-", name)}
    assert sorted(named) == sorted((page_names - decisions) | set(PROJECT.values()))


def test_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    assert len(pages) > 60
    for name, page in pages.items():
        if name == "404.html":  # shown at any address
            continue
        for link in page.links:
            target, anchor = urldefrag(urljoin(f"http://site/{name}", link))
            parts = urlsplit(target)
            if parts.netloc != "site":
                continue
            to = unquote(parts.path).lstrip("/")
            to = f"{to}index.html" if not to or to.endswith("/") else to
            assert (site / to).is_file(), f"{name}: {link}"
            if anchor and to in pages and not anchor.startswith("__"):
                assert unquote(anchor) in pages[to].anchors, f"{name}: {link}"


def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert [url for url in page.loaded if "//" in url] == [], name
    for style in site.rglob("*.css"):
        text = style.read_text()
        matches = re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*", text)
        assert matches == [], style
    # The theme's script fetches libraries from elsewhere for these alone.
    for path in site.rglob("*.html"):
        assert not re.search(r'class="[^"]*\b(mermaid|glightbox|pyodide)\b', path.read_text()), path


def test_broken_links_end_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gather_broken_links(pages: Path) -> None:
        pages.mkdir()
        wrong = "[a page](nowhere.md) and [a part](index.md#nothing)"
        (pages / "index.md").write_text(f"# Documentation\n\n{wrong}\n")

    monkeypatch.setattr("docs.site.__main__.gather", gather_broken_links)
    monkeypatch.setattr("sys.argv", ["docs.site", "--build", "--out", str(tmp_path)])
    assert main() == 1
    output = capsys.readouterr().err
    assert "page does not exist" in output
    assert "anchor does not exist" in output


@pytest.mark.parametrize("package", ["client", "notebook", "mechanisms"])
def test_every_public_name_is_in_the_reference(package: str, pages: dict[str, Page]) -> None:
    module = importlib.import_module(f"hubbub.{package}")
    page = pages[f"reference/python-{package}/index.html"]
    for name in module.__all__:
        assert f"hubbub.{package}.{name}" in page.anchors


def test_the_docs_search_finds_pages_and_no_source(site: Path) -> None:
    items = json.loads((site / "search.json").read_text())["items"]
    assert any("conservation law" in json.dumps(item) for item in items)
    assert len({item["location"].partition("#")[0] for item in items}) > 50
    assert not [item["location"] for item in items if item["location"].startswith("source/")]


def test_the_docs_site_loads_nothing_from_other_hosts_and_its_search_works(address: str) -> None:
    with chromium() as browser:
        page = browser.new_page()
        urls: list[str] = []
        console_lines: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        page.on("console", lambda message: console_lines.append(message.text))
        for name in ("", "architecture/", "client/", "operate/services/"):
            page.goto(address + name)
            page.wait_for_load_state("networkidle")
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("hyperplane")
        page.get_by_text(re.compile(r"^\d+ results$")).wait_for()
    assert [url for url in urls if not url.startswith((address, "data:", "blob:"))] == []
    assert console_lines == []


def test_the_docs_are_served_on_this_machine(address: str) -> None:
    page = web.get(address)
    assert page.status_code == 200
    assert "Where to start" in page.text
