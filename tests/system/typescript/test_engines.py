"""Every engine that is here seals what Python opens, draws as it should, and has its floats."""

import base64
import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from playwright.sync_api import Page
from scipy.stats import chi2

from hubbub.sealing.hpke import filler_info, open_sealed, seal_info
from tests.interfaces.browser import HANG_MS, chromium
from tests.interfaces.browser_drivers import DRIVEN, driven
from tests.interfaces.tab import Tab
from tests.support.node import ROOT, needs_node, run
from tests.system.typescript.pages import FALSE_ALARM, served

VECTORS = ROOT / "tests/proofs/vectors"
REPORTS, DRAWS = 500, 200_000
DRAW_ARGUMENTS = {"epsilon": 1.0, "categories": 5, "value": 3}
STREAM, EPOCH = "theme", 20_000
KEY = X25519PrivateKey.from_private_bytes(bytes([3]) * 32)
# Chromium has the engine of Node.
ENGINES = ["node", pytest.param("chromium", marks=pytest.mark.thorough), *DRIVEN]

pytestmark = needs_node


class _Node:
    """The same module that pages load, in Node."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ask(self, what: str, *arguments: Any) -> Any:
        script = f'const own = await import("{self._folder / "engine.js"}");'
        script += f"console.log(JSON.stringify(await own.{what}(...{json.dumps(arguments)})));"
        return json.loads(run("node", "--input-type=module", "-e", script))


class _Page:
    def __init__(self, page: Page | Tab) -> None:
        self._page = page

    def ask(self, what: str, *arguments: Any) -> Any:
        script = "async (told) => (await import('/engine.js'))." + what + "(...told)"
        return self._page.evaluate(script, list(arguments))


@pytest.fixture(scope="module", params=ENGINES)
def engine(
    request: pytest.FixtureRequest, site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[_Node | _Page]:
    run(
        "node_modules/.bin/esbuild",
        "tests/engine.ts",
        "--bundle",
        "--splitting",
        "--format=esm",
        "--target=es2022",
        "--log-level=warning",
        f"--outdir={site}",
    )
    if request.param == "node":
        yield _Node(site)
        return
    with ExitStack() as ends:
        page: Page | Tab
        if request.param == "chromium":
            page = ends.enter_context(chromium()).new_page()
            page.set_default_timeout(HANG_MS)
        else:
            folder = tmp_path_factory.mktemp(request.param)
            page = ends.enter_context(driven(request.param, folder))
        page.goto(ends.enter_context(served(site)))
        yield _Page(page)


def _fits(counts: Counter[int]) -> None:
    """Chi-square against the probabilities of the mechanism."""
    keep = math.exp(DRAW_ARGUMENTS["epsilon"])
    whole = keep + DRAW_ARGUMENTS["categories"] - 1
    draws = counts.total()
    assert set(counts) <= set(range(int(DRAW_ARGUMENTS["categories"])))
    chances = [(keep if at == DRAW_ARGUMENTS["value"] else 1) / whole for at in range(5)]
    total = sum((counts[at] - draws * p) ** 2 / (draws * p) for at, p in enumerate(chances))
    assert total < chi2.isf(FALSE_ALARM / 10, len(chances) - 1)  # of 500, somewhat more often


def test_python_opens_every_report_and_they_are_as_random_as_they_say(
    engine: _Node | _Page,
) -> None:
    key = base64.b64encode(KEY.public_key().public_bytes_raw()).decode()
    bound = {"key": key, "stream": STREAM, "epoch": EPOCH, "what": "report"}
    reports = [
        base64.b64decode(text) for text in engine.ask("sealed", DRAW_ARGUMENTS, bound, REPORTS)
    ]
    assert len(set(reports)) == REPORTS
    info = seal_info(STREAM, EPOCH)
    payloads = [open_sealed(report, KEY, info) for report in reports]
    assert {len(payload) for payload in payloads} == {1}
    _fits(Counter(payload[0] for payload in payloads))
    [filler] = engine.ask("sealed", DRAW_ARGUMENTS, {**bound, "what": "filler"}, 1)
    assert len(open_sealed(base64.b64decode(filler), KEY, filler_info(STREAM, EPOCH))) == 1


def test_draws_have_their_exact_probabilities(engine: _Node | _Page) -> None:
    counts = engine.ask("drawn", DRAW_ARGUMENTS, DRAWS)
    assert sum(counts) == DRAWS
    _fits(Counter(dict(enumerate(counts))))


@pytest.mark.parametrize("name", ["vector.codes", "more/vector.codes.seed", "more/directions"])
def test_a_javascript_engine_randomizes_vectors_exactly_as_python_does(
    engine: _Node | _Page, name: str
) -> None:
    document = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
    samples = [
        payload if isinstance(payload, list) else [*payload.values()]
        for payload in document["payloads"]
    ]
    key = base64.b64encode(bytes.fromhex(document["key"])).decode()
    codes = engine.ask("randomized", document["parameters"], key, [sample[0] for sample in samples])
    assert [base64.b64decode(payload).hex() for payload in codes] == [
        payload[1] for payload in samples
    ]


def test_a_javascript_engine_reports_to_models_exactly_as_python_does(
    engine: _Node | _Page,
) -> None:
    people = json.loads((VECTORS / "more/directions.json").read_text("utf-8"))["gradients"]
    results = engine.ask("taught", people)
    assert results == [[person["gradient"], person["to_judge"]] for person in people]
