"""Strings to look for: the catalog's own, lists saved by name, and those of a question."""

import asyncio
import gzip
import json
import re
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import hubbub.notebook
from hubbub.aggregator.query.candidates import (
    CandidateLists,
)
from hubbub.authoring import read_catalog
from hubbub.bundles import read_bundle
from hubbub.cli.main import main
from hubbub.errors import BadParameter, CatalogInvalid, StoreFull, StoreUnavailable, UnknownList
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.interfaces.running_aggregator import STRINGS, House
from tests.support import web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.pages import page_of

CATALOG = catalog_toml(
    metric_toml(
        "page",
        owner="owner@example.org",
        mechanism="cms",
        epsilon=4.0,
        domain="string",
        hashes=16,
        width=64,
        candidates="pages.txt.gz",
        lifetime_epsilon=500.0,
    )
)
TRUE_COUNTS: Any = {"often.example": 9000, "seldom.example": 3000}
LISTED = ["often.example", "seldom.example", "never.example"]


def _packed(folder: Path) -> None:
    lines = "\n".join([*LISTED, "", LISTED[0]])
    (folder / "pages.txt.gz").write_bytes(gzip.compress(lines.encode()))


def test_the_catalogs_own_are_looked_for_and_stay_with_the_operator(tmp_path: Path) -> None:
    _packed(tmp_path)
    with page_of(tmp_path, CATALOG, {"page": TRUE_COUNTS}) as page:
        url = f"{page}/v1/metrics/page/estimates"
        response = web.get(url, params={"order": "listed"}).json()
        assert [value["value"] for value in response["values"]] == LISTED
        assert response["lists"] == ["catalog"]
        for question in ("top", "trend"):
            assert web.get(f"{page}/v1/metrics/page/{question}").json()["lists"] == ["catalog"]
        assert (
            'hubbub_estimate{metric="page",value="often.example"}'
            in web.get(f"{page}/metrics").text
        )
        more = {"candidates": ["more.example"]}
        alone = web.post(url, json=more).json()
        assert (alone["total"], alone["lists"]) == (1, ["given"])
        both = web.post(url, params={"list": "catalog"}, json=more).json()
        assert (both["total"], both["lists"]) == (4, ["catalog", "given"])
        connection = hubbub.notebook.connect(page)
        assert connection.estimates("page").document["values"] == response["values"]
        assert len(connection.estimates("page", candidates=["x"], lists=["catalog"])) == 4


def test_the_apps_bundle_contains_no_candidates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _packed(tmp_path)
    catalog = tmp_path / "metrics.toml"
    catalog.write_text(CATALOG)
    keys, out = str(tmp_path / "keys"), tmp_path / "app.hubbub"
    assert main(["keys", "new", keys]) == 0
    assert main(["catalog", "check", str(catalog)]) == 0
    assert "page: looks for 3 candidate strings" in capsys.readouterr().out
    build = ["catalog", "build", str(catalog), "--keys", keys, "--out", str(out)]
    assert main([*build, "--streams", str(tmp_path / "streams.json")]) == 0
    assert b"example" not in out.read_bytes().replace(b"owner@example.org", b"")
    app, operator = read_bundle(out), read_bundle(tmp_path / "operator.hubbub")
    assert app.metrics["page"].candidates == ()
    assert operator.metrics["page"].candidates == tuple(LISTED)
    assert (app.serial, app.operator, app.history) == (
        operator.serial,
        operator.operator,
        operator.history,
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('candidates = "nowhere.txt"', "cannot be read: No such file"),
        ("candidates = []", "must be the path of a text file"),
        ("candidates = 7", "must be the path of a text file"),
        ('candidates = ["a", "a"]', "twice"),
    ],
)
def test_impossible_candidates_are_named_with_their_line(
    setting: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "metrics.toml"
    text = CATALOG.replace('candidates = "pages.txt.gz"', setting)
    path.write_text(text)
    line = text.splitlines().index(setting) + 1
    where = f':{line}: metric "page", field "candidates": '
    with pytest.raises(CatalogInvalid, match=f"{where}.*{message}"):
        read_catalog(path)
    listed = CATALOG.replace('"cms"', '"grr"').replace('domain = "string"', 'values = ["a", "b"]')
    path.write_text(listed.replace("hashes = 16\nwidth = 64\n", ""))
    with pytest.raises(CatalogInvalid, match="is for mechanisms over strings, and grr is not"):
        read_catalog(path)


@pytest.mark.parametrize("backend", ["memory", "redis"])
async def test_lists_are_saved_by_name(home: House, backend: str) -> None:
    async def body(lists: CandidateLists, spoil: Callable[[], Awaitable[None]]) -> None:
        assert await lists.saved() == []
        candidate_list = await lists.save("mine", ["b", "a", "b"])
        assert (candidate_list.name, candidate_list.total, candidate_list.saved) == (
            "mine",
            2,
            1000,
        )
        assert await lists.find("mine") == ("b", "a")
        assert (await lists.save("mine", ["c"], add=True)).total == 3
        await lists.save("anyone.s", ["é\N{SNOWMAN}"], add=True)
        assert [one_list.name for one_list in await lists.saved()] == [
            "anyone.s",
            "mine",
        ]
        await lists.save("mine", ["c"])
        assert await lists.find("mine") == ("c",)
        for name in ("Mine", "", "catalog", "given", "a/b", "a" * 99):
            with pytest.raises(BadParameter, match="a list's name must match"):
                await lists.save(name, ["a"])
            with pytest.raises(UnknownList, match=r"; there are: anyone\.s, mine"):
                await lists.find(name)
        with pytest.raises(UnknownList, match='; did you mean "mine"'):
            await lists.find("mime")
        for strings, message in (([], "it needs 1 to"), ([""], "empty"), (["\x1b"], "control")):
            with pytest.raises(BadParameter, match=message):
                await lists.save("other", strings)
        await spoil()
        for name in ("mine", "anyone.s"):
            await lists.remove(name)
        with pytest.raises(UnknownList, match="; none is saved; save one with"):
            await lists.remove("mine")

    if backend == "memory":
        await body(CandidateLists(MemoryServer(), lambda: 1000.0), lambda: asyncio.sleep(0))
        return
    server = await connect_redis(home.redis_url)
    lists = CandidateLists(server, lambda: 1000.0)

    async def spoil() -> None:
        await server.ask("HSET", "aggregator:candidates", "mine", b"\x1f\x8bnothing")
        with pytest.raises(StoreUnavailable, match="save it again"):
            await lists.find("mine")
        await server.ask("HSET", "aggregator:candidate_lists", "torn", b"{")
        assert [candidate_list.name for candidate_list in await lists.saved()] == [
            "anyone.s",
            "mine",
        ]
        await server.ask("HDEL", "aggregator:candidate_lists", "torn")

    await body(lists, spoil)
    await server.close()


async def test_saved_lists_never_use_the_half_of_redis_for_reports(redis_url: str) -> None:
    server = await connect_redis(redis_url)
    [node] = await server.info("memory")
    await server.ask("CONFIG", "SET", "maxmemory", 2 * int(node["used_memory"]) + 200_000)
    try:
        lists = CandidateLists(server, lambda: 1000.0)
        await lists.save("small", ["a"])
        with pytest.raises(StoreFull, match="for reports"):
            await lists.save("large", [secrets.token_hex(400) for _ in range(2000)])
        assert [candidate_list.name for candidate_list in await lists.saved()] == ["small"]
    finally:
        await server.ask("CONFIG", "SET", "maxmemory", 0)
        await server.close()


def test_a_saved_list_is_asked_for_by_name_from_every_face(
    home: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--url", home.page]
    file, url = tmp_path / "pages.txt", f"{home.page}/v1/candidates"
    file.write_text("\n".join(STRINGS[:2]))

    def command(*words: str, code: int = 0) -> str:
        assert main([*words, *where]) == code
        output = capsys.readouterr()
        return output.out if code == 0 else output.err

    assert "pages: 2 strings; look for them with --list pages" in command(
        "candidates", "add", "pages", str(file)
    )
    file.write_text(STRINGS[2])
    assert "pages: 3 strings" in command("candidates", "add", "pages", str(file))
    assert command("candidates", "show", "pages").split() == STRINGS
    assert "pages" in command("candidates", "list")
    assert web.get(f"{url}/pages").json() == {"name": "pages", "total": 3, "candidates": STRINGS}
    output = command("query", "homepage", "--list", "pages")
    assert 'looked for: 3 strings of the list "pages"' in output
    file.write_text("\n".join(STRINGS))
    by_name, by_file = (
        json.loads(command("query", "homepage", *words, "--format", "json"))["values"]
        for words in (["--list", "pages"], ["--candidates", str(file)])
    )
    assert by_name == by_file
    http = web.get(
        f"{home.page}/v1/metrics/homepage/estimates", params={"list": "pages", "order": "listed"}
    ).json()
    assert http["values"] == by_name
    put = web.put(f"{url}/short", json={"candidates": STRINGS[:1]})
    assert (put.status_code, put.json()["total"]) == (200, 1)
    assert [entry["name"] for entry in web.get(url).json()["lists"]] == ["pages", "short"]
    assert web.delete(f"{url}/short").status_code == 204
    assert web.get(f"{url}/short").json()["title"] == "UnknownList"
    for words, wrong in (
        (["query", "homepage"], "its catalog has no candidates: pass the .*saved list .pages."),
        (["query", "homepage", "--list", "pagez"], 'called "pagez"; there are: pages'),
        (["query", "theme", "--list", "pages"], "not over strings"),
        (["candidates", "add", "catalog", str(file)], "must match"),
        (["candidates", "add", "x", "nowhere.txt"], "FILE nowhere.txt: cannot be read"),
    ):
        assert re.search(wrong, command(*words, code=2))
    assert "removed" in command("candidates", "remove", "pages")
    assert "none is saved; save one with" in command("candidates", "remove", "pages", code=2)


def test_strings_that_nobody_holds_are_not_detected(
    home: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "strings.txt"
    for strings, is_quiet in (
        ("a.invalid\nc.invalid\n", True),
        ("often.example\na.invalid\n", False),
    ):
        file.write_text(strings)
        for question in ("top", "query"):
            words = (question, "homepage", "--candidates", str(file))
            assert main([*words, "--url", home.page]) == 0
            assert ("no value is detected" in capsys.readouterr().out) is is_quiet
