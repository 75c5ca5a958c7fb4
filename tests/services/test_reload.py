"""Changed files are taken into use whole or not at all, under load, and SIGHUP ends nothing."""

import asyncio
import logging
import os
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.aggregator.__main__ import check_fits, check_follows
from hubbub.aggregator.access.tokens import add_token, remove_token
from hubbub.authoring import Catalog
from hubbub.bundles import Bundle
from hubbub.cli.commands.demo import close_epochs
from hubbub.client import Client, MemoryState, transport_to
from hubbub.errors import BadParameter, BundleRefused, KeysUnusable
from hubbub.fields.rules import Interval
from hubbub.installation.certificate_authorities import renew_certificates, write_certificates
from hubbub.installation.keys_and_bundles import OPERATORS, build_bundle, make_keys
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.programs.option_parsing import option, options
from hubbub.runtime.clocks import Clock
from hubbub.runtime.reloading import Reloader, Take
from hubbub.runtime.service_options import read_limits
from hubbub.shuffler.stream_table import StreamTable, read_stream_table
from tests.conftest import CatalogFiles
from tests.support import web
from tests.support.law_terms import total_counts
from tests.support.prometheus_scrape import scraped
from tests.support.waiting import HANG_SECONDS, eventually, eventually_async


class Looks(Clock):
    """A clock whose waits pass at once; it counts them."""

    number = 0

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        del seconds
        self.number += 1
        await asyncio.sleep(0)
        return event.is_set()


async def _looks(clock: Looks, number: int) -> None:
    until = clock.number + number
    await eventually_async(lambda: clock.number >= until)


async def test_files_are_read_after_they_changed_and_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"
    path.write_text("1")
    texts: list[str] = []
    counts: Counter[str] = Counter()

    def read() -> Take:
        text = path.read_text()
        if text == "bad":
            raise BadParameter("file: bad; write a good one")

        def take() -> Mapping[str, Any]:
            texts.append(text)
            return {"file": text}

        return take

    with caplog.at_level(logging.INFO, "hubbub.runtime"):
        clock = Looks()
        reloader = Reloader(lambda: [path], read, counts, clock)
        task = asyncio.create_task(reloader.run())
        await _looks(clock, 5)
        assert texts == []
        path.write_text("22")
        await _looks(clock, 5)
        assert texts == ["22"]
        path.write_text("bad")
        await _looks(clock, 5)
        assert (texts, counts["refused"]) == (["22"], 1)  # once, and not at every look
        reloader.reload()
        await _looks(clock, 3)
        assert counts["refused"] == 2
        path.unlink()
        os.mkfifo(path)  # nobody writes to it: to open it would take for ever
        await _looks(clock, 5)
        assert counts["refused"] == 3
        path.unlink()
        os.utime(tmp_path)
        path.write_text("333")
        await _looks(clock, 5)
        assert texts == ["22", "333"]
        task.cancel()
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        "reloaded",
        *["not reloaded, the former files stay in use: file: bad; write a good one"] * 2,
        f"not reloaded, the former files stay in use: {path}: is not a file; create one",
        "reloaded",
    ]
    assert counts == {"taken": 2, "refused": 3}


async def test_a_file_named_later_by_another_is_watched_from_then_on(tmp_path: Path) -> None:
    """Also where the naming was refused, as the named file was not there yet."""
    first, named = tmp_path / "first", tmp_path / "named"
    first.write_text("")
    texts: list[str] = []
    counts: Counter[str] = Counter()

    def read() -> Take:
        try:
            text = named.read_text() if first.read_text() else "none"
        except OSError as error:
            raise BadParameter("named: cannot be read") from error

        def take() -> Mapping[str, Any]:
            texts.append(text)
            return {}

        return take

    clock = Looks()
    reloader = Reloader(lambda: [first, named][: 1 + bool(first.read_text())], read, counts, clock)
    task = asyncio.create_task(reloader.run())
    await _looks(clock, 3)
    first.write_text("named")
    await _looks(clock, 5)
    assert (texts, counts["refused"]) == ([], 1)
    for text in ("one", "other two"):
        named.write_text(text)
        await _looks(clock, 5)
    assert texts == ["one", "other two"]
    first.write_text("")
    await _looks(clock, 5)
    assert texts == ["one", "other two", "none"]
    task.cancel()


def test_limits_of_a_file_are_checked_as_those_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "limits.toml"

    @options
    class Limits:
        peer_rate: float = option("", within=Interval(0, 10))
        max_pool: int = option("", within=Interval(1, 10))

    names = ["peer_rate", "max_pool"]
    path.write_text("peer_rate = 2.5\nmax_pool = 3\n")
    assert read_limits(path, names, Limits) == {"peer_rate": 2.5, "max_pool": 3}
    for wrong, why in {
        "max_pool = 2.5": r"max_pool is not a whole number in \[1, 10\]",
        "max_pool = true": "max_pool is not a whole number",
        "peer_rate = nan": "peer_rate is not a number in",
        "pool = 1": "'pool' is not a limit; there are peer_rate, max_pool",
        "= 1": "cannot be read as TOML",
    }.items():
        path.write_text(wrong)
        with pytest.raises(BadParameter, match=why):
            read_limits(path, names, Limits)


def test_a_reload_that_does_not_fit_the_counted_reports_is_refused(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    here = Path("operator.hubbub")
    bundle = catalog_files.bundle
    check_follows(replace(bundle, serial=bundle.serial + 1), bundle, here)
    with pytest.raises(BundleRefused, match="is older than the bundle in use"):
        check_follows(bundle, replace(bundle, serial=bundle.serial + 1), here)
    with pytest.raises(BundleRefused, match="signed by another operator"):
        check_follows(replace(bundle, operator=bytes(32), handovers=()), bundle, here)
    theme = replace(bundle.metrics["theme"], epsilon=0.5)
    with pytest.raises(BundleRefused, match="epsilon changed under an old name"):
        check_follows(replace(bundle, metrics={"theme": theme}, history={}), bundle, here)
    now = bundle.keys[0].start
    check_fits(bundle, catalog_files.opening, now, here)
    with pytest.raises(KeysUnusable, match="has no key"):
        check_fits(bundle, catalog_files.opening[1:], now, here)
    make_keys(tmp_path / "others")
    others = replace(catalog_files.opening[0], private=bytes(range(32)))
    with pytest.raises(KeysUnusable, match="is not in the bundle"):
        check_fits(bundle, [others, *catalog_files.opening[1:]], now, here)
    table = read_stream_table(catalog_files.streams)
    table.check_follows(table)
    longer = {
        name: replace(stream, sealed_bytes=stream.sealed_bytes + 1)
        for name, stream in table.streams.items()
    }
    with pytest.raises(
        BadParameter, match="has another length, epoch, mix or number of dummies than before"
    ):
        StreamTable(longer, table.keys).check_follows(table)


class Crowd:
    """Devices that report one after the other, from a thread, until they are stopped."""

    def __init__(self, bundle: Bundle) -> None:
        self.sent = 0
        self._ended = threading.Event()
        self._bundle = bundle
        self._thread = threading.Thread(target=self._report)
        self._thread.start()

    def more(self, number: int) -> None:
        """Wait until so many more have reported."""
        until = self.sent + number
        eventually(lambda: self.sent >= until)

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _report(self) -> None:
        while not self._ended.is_set():
            _report_once(self._bundle, "theme", "dark")
            self.sent += 1


def _report_once(bundle: Bundle, metric: str, value: str) -> None:
    transport = transport_to(bundle.shuffler, roots=bundle.roots)
    client = Client(bundle, MemoryState(), transport, hold_seconds=None)
    client.report(metric, value)
    assert client.flush(HANG_SECONDS)
    transport.close()


class Limited(LocalRun):
    """With a file of limits for each service, and one of tokens."""

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        more = ["--limits", str(self.home / f"{role}.toml")]
        if role == "aggregator":
            more += ["--http-tokens", str(self.home / "tokens.json")]
        super()._service(role, *arguments, *more, redis_url=redis_url)


def _certificates(run: LocalRun) -> list[str]:
    """The certificates that the doors of gRPC and the page's show to who connects now."""
    ports = run.ports
    return [
        ssl.get_server_certificate(("127.0.0.1", port)) for port in (ports.shuffler, ports.http)
    ]


@pytest.mark.thorough
def test_every_reloadable_file_is_reloaded_under_load(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    theme = catalog_files.bundle.metrics["theme"]
    catalog, home = Catalog(shuffler="127.0.0.1:1", metrics={"theme": theme}), tmp_path / "home"
    write_certificates(home / "tls", {}, tmp_path / "kept")
    for role in ("shuffler", "aggregator"):
        (home / f"{role}.toml").write_text("")
    secret = add_token(home / "tokens.json", "ana", "viewer", 1, time.time())
    other = add_token(home / "tokens.json", "ben", "viewer", 1, time.time())
    with Limited(home, catalog, Ports.free()) as run:
        crowd = Crowd(run.bundle)
        try:
            crowd.more(1)
            _wait_for_reload(run, _hung_up, lambda: _hang_up(run))
            crowd.more(3)

            more = replace(
                run._catalog, metrics={"theme": theme, "mood": replace(theme, name="mood")}
            )
            before = {name: (home / name).read_bytes() for name in (OPERATORS, "streams.json")}
            newer: list[Bundle] = []
            _wait_for_reload(
                run, lambda log: log.count(" streams 2"), lambda: newer.append(_build(run, more))
            )
            contents = {name: (home / name).read_bytes() for name in before}
            _report_once(newer[0], "mood", "light")
            crowd.more(3)

            # Neither is the other: a bundle that is older, a table that is none.
            def spoil() -> None:
                (home / OPERATORS).write_bytes(before[OPERATORS])
                (home / "streams.json").write_text("{")
                _hang_up(run)

            _wait_for_reload(run, _hung_up, spoil)
            assert "not reloaded, the former" in (home / "log" / "shuffler.log").read_text()
            _report_once(newer[0], "mood", "light")
            crowd.more(3)
            for name in (OPERATORS, "streams.json"):
                (home / name).write_bytes(contents[name])
            _certificates_limits_and_tokens(run, crowd, tmp_path / "kept", secret)
        finally:
            crowd.stop()
        metrics = scraped(run, run.ports.shuffler_metrics)
        assert metrics["", 'hubbub_reloads_total{outcome="taken"}'] >= 5
        assert metrics["", 'hubbub_reloads_total{outcome="refused"}'] >= 1
        close_epochs(run.shuffler_redis)

        def law() -> dict[str, int]:
            return dict(total_counts(replace(run.endpoints, token=other)))

        eventually(lambda: not law()["pooled"] + law()["in_flight"])
        terms = law()
        assert terms["acknowledged"] == crowd.sent + 2
        assert terms["counted"] == crowd.sent  # the two of "mood" are fewer than its minimum
        assert terms["withheld"] == 2
        run.check()  # nobody ended


def _certificates_limits_and_tokens(
    run: LocalRun, crowd: Crowd, authorities: Path, secret: str
) -> None:
    # By the same authorities: who connects from now on is shown the new ones.
    former = _certificates(run)
    renew_certificates(run.home / "tls", authorities, {})
    _wait_for_reload(run, _hung_up, lambda: _hang_up(run))
    eventually(lambda: not set(_certificates(run)) & set(former))
    crowd.more(3)
    # A limit that lets nobody in, and then as before: devices wait, and nothing is lost.
    limits = run.home / "shuffler.toml"
    limits.write_text("max_pool = 1\n")
    _wait_for_reload(run, _hung_up, lambda: _hang_up(run))
    no_room = ("", 'hubbub_throttled_calls_total{reason="no_room"}')
    eventually(lambda: scraped(run, run.ports.shuffler_metrics).get(no_room, 0) > 0)
    limits.write_text("")
    _wait_for_reload(run, _hung_up, lambda: _hang_up(run))
    crowd.more(3)
    # A token that is taken back lets nobody in any more.
    headers = {"authorization": f"Bearer {secret}"}
    law = f"{run.endpoints.page}v1/status"
    assert web.get(law, headers=headers).status_code == 200
    remove_token(run.home / "tokens.json", "ana")
    eventually(lambda: web.get(law, headers=headers).status_code == 401)
    crowd.more(3)


def _hung_up(log: str) -> int:
    return log.count("why SIGHUP")


def _hang_up(run: LocalRun) -> None:
    for child in run.children:
        child.process.send_signal(signal.SIGHUP)


def _build(run: LocalRun, catalog: Catalog) -> Bundle:
    return build_bundle(
        catalog,
        run.home / "keys",
        out=run.bundle_path,
        streams=run.home / "streams.json",
        previous=run.bundle_path,
        roots=(run.home / "tls" / "ca.pem").read_text(),
    )


def _wait_for_reload(run: LocalRun, count: Callable[[str], int], act: Callable[[], None]) -> None:
    """Do something, and wait until both services said so once more."""
    logs = [run.home / "log" / f"{role}.log" for role in ("shuffler", "aggregator")]
    before = [count(log.read_text()) for log in logs]
    act()
    eventually(lambda: [count(log.read_text()) for log in logs] > before)
    for log, number in zip(logs, before, strict=True):
        eventually(lambda log=log, number=number: count(log.read_text()) > number)  # type: ignore[misc]
