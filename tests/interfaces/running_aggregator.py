"""An aggregator's own process over a real Redis, with two weeks of totals drawn from their law."""

import asyncio
import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import numpy as np

from hubbub.aggregator.learning_rounds import FinishedRound, Rounds
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.analysis.families import draw
from hubbub.authoring import Catalog, read_catalog
from hubbub.catalog import Metric, conditions_in
from hubbub.conservation import Window
from hubbub.installation.child_process import free_port
from hubbub.installation.running_endpoints import Endpoints
from hubbub.runtime.redis.client import connect_redis
from tests.support import web
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import metric_toml, model_toml
from tests.support.moment import far_from_midnight
from tests.support.servers import redis_server
from tests.support.waiting import eventually

HOSTILE = [
    "plain",
    "<script>window.hurt = 1</script>",
    '"><img src=x onerror="window.hurt = 1">',
    "\u202egnp.exe\u202c \u2028\u0007\u001b[2J",
    "=HYPERLINK(1)",
    "x" * 1000,
    "mean",
]
THEMES = ["light", "dark", "system", "contrast"]
STRINGS = ["often.example", "seldom.example", "never.example"]
HEAD = """
shuffler = "127.0.0.1:1"
[budget]
epsilon_per_year = 1000
purposes = { tests = 1.0 }
"""


def house_metric(name: str, mechanism: str, epsilon: float, more: str) -> str:
    """A metric that is reported by all devices of a house."""
    return metric_toml(
        name,
        more,
        description=f"What {name} is asked for",
        owner="desktop@example.org",
        mechanism=mechanism,
        epsilon=epsilon,
        min_batch=1000,
    )


BREAKDOWN = """
[metrics.crashed.breakdown]
os = ["linux", "macos", "haiku"]
version = { 2 = "2.*", old = "*" }
"""
OF_MODELS: dict[str, Any] = {"min_batch": 20, "epsilon": 4.0, "begins": date(2099, 1, 1)}
OF_JUDGED = {**OF_MODELS, "rounds": 3, "held_out": 0.2}
MODEL = model_toml("churn", description="People that leaves", rounds=4, **OF_MODELS)
JUDGED = model_toml("stays", description="People that stay, judged", **OF_JUDGED)
OF_CLASSES = model_toml(
    "tariff",
    description="The tariff that is taken",
    kind="softmax",
    classes=["none", "month", "year"],
    **OF_JUDGED,
)
# Of a model that began long ago: where columns lie, and three steps.
_FIRST = 4_070_908_800 // 3600  # of 2099
TAUGHT = [
    FinishedRound(
        number=0,
        epoch=_FIRST,
        reports=90,
        noise=0.1,
        rate=0.0,
        centre=[0.5, 0.6, 0.4],
        weights=[0.0] * 4,
        outer="",
        at=1,
    ),
    *(
        FinishedRound(
            number=number,
            epoch=_FIRST + 2 * number,
            reports=200,
            noise=0.11,
            rate=6.0,
            centre=[0.5, 0.6, 0.4],
            weights=[-0.5 * number, 0.4, -0.4, 0.1],
            outer="",
            at=number,
        )
        for number in (1, 2, 3)
    ),
]
# Of eight bins: hardly anybody has the label in the first four, and most in the last three.
WAS_JUDGED = FinishedRound(
    number=4,
    epoch=_FIRST + 8,
    reports=220,
    noise=0.0,
    rate=0.0,
    centre=[0.5, 0.6, 0.4],
    weights=TAUGHT[-1].weights,
    outer="",
    at=4,
    judged=(30, 3, 27, 4, 25, 5, 20, 3, 10, 10, 4, 21, 3, 26, 4, 25),
)
# Of two contrasts of three classes; the likeliest is a person's in three cases of four.
CLASSES_TAUGHT = [
    replace(
        finished_round,
        weights=[*finished_round.weights, 0.2, 0.3 * finished_round.number, -0.3, 0.1],
    )
    for finished_round in TAUGHT
]
CLASSES_JUDGED = replace(
    WAS_JUDGED,
    weights=CLASSES_TAUGHT[-1].weights,
    judged=(18, 12, 12, 18, 10, 20, 8, 22, 6, 24, 5, 25, 3, 27, 2, 28),
    reports=240,
)
CATALOG = HEAD + "".join(
    house_metric(name, mechanism, epsilon, more)
    for name, mechanism, epsilon, more in (
        (
            "theme",
            "unary.oue",
            1.0,
            (
                f"values = {json.dumps(THEMES)}\ntiers = [0.5]\n"
                'release = { mechanism = "laplace", epsilon = 1.0 }'
            ),
        ),
        ("hostile", "grr", 3.0, f"values = {json.dumps(HOSTILE)}"),
        (
            "launches",
            "wave",
            2.0,
            'domain = "number"\nlow = 0\nhigh = 24\nbuckets = 12\nunit = "h"',
        ),
        ("seconds", "mean.piecewise", 1.0, 'domain = "number"\nlow = 0\nhigh = 600\nunit = "s"'),
        ("homepage", "cms", 3.0, 'domain = "string"\nhashes = 16\nwidth = 64'),
        (
            "profile",
            "pairs",
            4.0,
            'parts = { theme = ["light", "dark"], country = ["de", "fr", "it"], new = ["y", "n"] }',
        ),
        ("unheard", "rr", 1.0, 'values = ["no", "yes"]'),
        ("crashed", "rr", 2.0, 'values = ["no", "yes"]\n' + BREAKDOWN),
    )
)
CATALOG += MODEL + JUDGED + OF_CLASSES
LISTED = len(re.findall(r"^\[(?:metrics|models)\.\w+\]$", CATALOG, re.MULTILINE))
"""How many metrics and models it has."""
SMALL = HEAD + house_metric("theme", "grr", 3.0, f"values = {json.dumps(THEMES)}")
"""A catalog of one metric, whose totals are drawn in a fraction of the time."""
DAYS = 14
PEOPLE = 20_000


@dataclass(frozen=True)
class House:
    """Where it is, and what the truth was: per metric, how many hold each value on every day."""

    signed: Signed
    redis_url: str
    page: str
    today: int
    truth: Mapping[str, Mapping[Any, int]]
    metrics: str = ""

    @property
    def endpoints(self) -> Endpoints:
        return Endpoints(page=self.page)

    @property
    def files(self) -> Path:
        """Where its totals and estimates are, where it was told to write them."""
        return self.signed.path.parent / "files"


def _crashed(parameters: Mapping[str, list[str]]) -> dict[Any, int]:
    """In old versions more; and of haiku there are too few."""
    many = {"linux": 6000, "macos": 4000, "haiku": 20}.get(parameters.get("os", [""])[0], 50)
    yes = many * (3 if parameters.get("version") == ["old"] else 1) // 10
    return {0: many - yes, 1: yes}


def truth_of(metric: Metric, day: int) -> dict[Any, int]:  # noqa: PLR0911 a metric each
    """What people hold on a day: the first value loses what the second wins."""
    moved = 300 * day
    match metric.base_name:
        case "theme":
            return dict(enumerate([9000 - moved, 7000 + moved, 3000, 1000]))
        case "hostile":
            return dict(enumerate([8000, 5000, 3000, 2000, 1300, 500, 200]))
        case "profile":  # theme and country go together; who is new is of no matter to either
            counts = [3000, 1500, 500, 1000, 2000, 2000]
            return {2 * place + new: n for place, n in enumerate(counts) for new in (0, 1)}
        case "crashed":
            return _crashed(conditions_in(metric.name))
        case "launches":
            return {1.0: 12_000, 7.0: 6000, 20.0: 2000}
        case "seconds":
            return {30.0: 15_000, 400.0: 5000}
        case _:
            return {"often.example": 14_000, "seldom.example": 4000, "else.example": 2000}


Held = Mapping[str, Mapping[Any, int]]
"""Of some metrics, how many hold each value on every day."""


async def _fill(signed: Signed, url: str, today: int, held_of: Held) -> None:
    chance = np.random.default_rng(7)
    server = await connect_redis(url)
    store = RedisStore(server)
    for finished_round in TAUGHT:
        await Rounds(server).write("churn", finished_round)
        await Rounds(server).write("stays", finished_round)
    await Rounds(server).write("stays", WAS_JUDGED)
    for finished_round in (*CLASSES_TAUGHT, CLASSES_JUDGED):
        await Rounds(server).write("tariff", finished_round)
    for name in signed.bundle.streams:
        metric = signed.bundle.metric(name)
        if metric.base_name == "unheard" or metric.model:
            continue
        scale = 10 if metric.tier else 1  # few choose a tier
        for day in range(DAYS):
            every = held_of.get(metric.base_name) or truth_of(metric, day)
            counts = {value: n // scale for value, n in every.items()}
            totals = draw(metric.randomizer, list(counts), list(counts.values()), chance)
            window = Window(name, today - DAYS + 1 + day)
            counted = WindowTotals(
                cells=np.array(totals.cells),
                counted=totals.reports,
                batch_reports=1000,
                at=int(time.time()) - 60,
            )
            # Restored: the tags of so many reports would take longer than all else here.
            await store.restore(window, counted)
    await server.close()


Fill = Callable[[Signed, str, int, Held], Coroutine[Any, Any, None]]


@contextmanager
def house(
    folder: Path,
    *options: str,
    secure: Path | None = None,
    catalog: str = CATALOG,
    truths: Held = MappingProxyType({}),
    reader: Callable[[Path], Catalog] = read_catalog,
    fill: Fill = _fill,
) -> Iterator[House]:
    """All of it, with these options for the aggregator, until the end of the block.

    secure: the authority of its certificate, where its page is served over TLS. catalog: another
    than this one's, with what people hold of its metrics. reader: how it is read. fill: what puts
    the totals into Redis.
    """
    far_from_midnight(30)  # beside other jobs all faces take a quarter of an hour
    folder.mkdir(exist_ok=True)
    today = int(time.time()) // DAY
    signed = make_signed(folder, catalog, start=(today - 21) * DAY, reader=reader)
    with redis_server(folder / "redis") as port:
        url = f"redis://127.0.0.1:{port}/0"
        with ThreadPoolExecutor(1) as apart:  # Playwright has a loop in this thread
            apart.submit(asyncio.run, fill(signed, url, today, truths)).result()
        names = ("--listen", "--metrics-listen", "--http-listen")
        listen = [f"127.0.0.1:{free_port()}" for _ in names]
        command = [sys.executable, "-m", "hubbub.aggregator", "--processes", "1", "--insecure"]
        # To answer for every epoch before anyone asks takes longer than most tests' questions.
        command += ["--bundle", str(signed.path), "--kept-epochs", "0"]
        command += ["--keys", str(signed.keys / "opening.keys.json")]
        command += [part for pair in zip(names, listen, strict=True) for part in pair]
        environment = {**os.environ, "HUBBUB_REDIS_URL": url}
        with (folder / "aggregator.log").open("ab") as log:
            process = subprocess.Popen([*command, *options], env=environment, stderr=log)
        page = f"http{'s' if secure else ''}://{listen[2]}"
        trust = ssl.create_default_context(cafile=secure)
        try:

            def is_ready() -> bool:
                assert process.poll() is None, (folder / "aggregator.log").read_text()
                return web.get(f"{page}/ready", verify=trust).status_code == 200

            eventually(is_ready, although=(httpx2.TransportError,))
            truth = {
                name: truth_of(metric, DAYS - 1) for name, metric in signed.bundle.metrics.items()
            }
            yield House(signed, url, page, today, truth, listen[1])
        finally:
            process.terminate()
            assert process.wait() == 0
        assert "Traceback" not in (folder / "aggregator.log").read_text()


def wait_for_token(home: House, token: str) -> None:
    """Wait until the aggregator, which looks once a second, has read a new token."""
    headers = {"authorization": f"Bearer {token}"}
    eventually(lambda: web.get(f"{home.page}/v1/metrics", headers=headers).status_code == 200)
