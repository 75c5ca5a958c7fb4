"""The whole path with real processes: two Redis servers, TLS, mixing, sealing, opening, queries."""

import asyncio
import math
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import grpc
import numpy as np
import pytest
import redis
from scipy.stats import binom

from hubbub.aggregator.store.redis import RedisStore
from hubbub.authoring import Catalog, read_catalog
from hubbub.bundles import Bundle, key_at
from hubbub.catalog import epoch_at, epoch_start
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.main import main
from hubbub.client import Client, MemoryState, Outcome, Transport, transport_to
from hubbub.client.testing import FakeClock, coins
from hubbub.conservation import Window, balances, sum_terms
from hubbub.errors import BundleRefused, HubbubError, ServiceUnavailable, StateUnusable
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.privacy.crowd_guarantees import amplified_of
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.tls import TlsFolder
from hubbub.sealing.hpke import seal, seal_info
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Batch, Reason, StatusRequest, SubmitRequest
from hubbub.wire.v1.stubs_and_handlers import stub
from tests.conftest import CatalogFiles
from tests.support.asking import estimate, metrics
from tests.support.cover_catalog import FILLED, STREAMS
from tests.support.law_terms import report_counts, total_counts
from tests.support.moment import now
from tests.support.prometheus_scrape import scraped
from tests.support.waiting import HANG_SECONDS, eventually

# A theme for each test, since an epoch that one test has closed takes no reports of another.
THEMES = ("flagged", "refused", "redis_away")


@pytest.fixture(scope="module")
def shared(
    catalog_files: CatalogFiles, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalRun]:
    metrics = dict(catalog_files.bundle.metrics)
    metrics |= {name: replace(metrics["theme"], name=name) for name in THEMES}
    home = tmp_path_factory.mktemp("pipeline") / "home"
    with LocalRun(home, Catalog(shuffler="127.0.0.1:1", metrics=metrics), Ports.free()) as running:
        yield running


@pytest.fixture
def run(shared: LocalRun) -> LocalRun:
    """Services that other tests use too, with no report pooled or in flight."""
    close_epochs(shared.shuffler_redis)
    _wait(shared, pooled=0, in_flight=0)
    return shared


@pytest.fixture
def own_run(catalog_files: CatalogFiles, tmp_path: Path) -> Iterator[LocalRun]:
    """Services that the test may stop, kill or change."""
    catalog = Catalog(shuffler="127.0.0.1:1", metrics=dict(catalog_files.bundle.metrics))
    with LocalRun(tmp_path / "home", catalog, Ports.free()) as running:
        yield running


def _transport(run: LocalRun) -> Transport:
    return transport_to(run.bundle.shuffler, roots=run.bundle.roots)


def _submit(run: LocalRun, request: SubmitRequest) -> Any:
    """Any request at all, past the client."""
    credentials = grpc.ssl_channel_credentials((run.bundle.roots or "").encode())
    with grpc.secure_channel(run.bundle.shuffler, credentials) as channel:
        return stub("Shuffler", channel).Submit(request, timeout=HANG_SECONDS)


def _report(run: LocalRun, metric: str, values: list[str], seed: str | None = None) -> None:
    """One device per value; with a seed their coins fall the same way every time."""
    fixed = None if seed is None else coins(seed)
    transport = _transport(run)
    for value in values:
        client = Client(run.bundle, MemoryState(), transport, hold_seconds=None, coins=fixed)
        assert client.report(metric, value) is Outcome.QUEUED
        assert client.flush(HANG_SECONDS)
        assert client.dropped == {}
    transport.close()


def _terms(run: LocalRun) -> dict[str, int]:
    return total_counts(run.endpoints)


def _wait(
    run: LocalRun, before: Mapping[str, int] = MappingProxyType({}), **expected: int
) -> dict[str, int]:
    """The terms once they are as expected, less those before."""
    terms: dict[str, int] = {}

    def is_expected() -> bool:
        terms.update({term: n - before.get(term, 0) for term, n in _terms(run).items()})
        return expected.items() <= terms.items() and balances(terms)

    eventually(is_expected, lambda: f"{terms} should be {expected}")
    return terms


def _sealed(bundle: Bundle, metric: str, payload: bytes, epoch: int | None = None) -> SealedReport:
    entry = bundle.metric(metric)
    epoch = epoch_at(now(), entry.epoch) if epoch is None else epoch
    key = key_at(bundle.keys, epoch_start(epoch, entry.epoch))
    assert key is not None
    info = seal_info(metric, epoch)
    return SealedReport(
        stream=metric, epoch=epoch, key_id=key.id, sealed=seal(payload, key.half("x25519"), info)
    )


def test_values_become_estimates_near_the_truth(run: LocalRun) -> None:
    """240 devices whose coins are fixed: of others one in twenty is found a little unusual."""
    before = _terms(run)
    truth = {"light": 120, "dark": 90, "system": 30}
    values = [value for value, number in truth.items() for _ in range(number)]
    _report(run, "theme", values, seed="near the truth")
    assert _wait(run, before, acknowledged=240)["pooled"] >= 20, "a reserve stays in an open pool"
    with pytest.raises(HubbubError, match='metric "crashed": no report is counted yet'):
        estimate(run.endpoints, "crashed")
    close_epochs(run.shuffler_redis)
    _wait(run, before, counted=240, pooled=0, in_flight=0)
    estimates = estimate(run.endpoints, "theme")
    assert estimates.reports == 240
    assert (estimates.honest_p_value, list(estimates.findings)) == (1, [])
    assert estimates.mechanism == "unary.oue"
    assert 0.999 < estimates.epsilon <= 1.0
    # Every batch had the minimum at least; what the crowd adds is worked out for the smallest.
    mechanism: Any = run.bundle.metric("theme").randomizer
    assert 20 <= estimates.shuffled.reports <= 240
    assert estimates.shuffled.epsilon == amplified_of(mechanism, estimates.shuffled.reports).epsilon
    assert (estimates.shuffled.delta, "honest" in estimates.shuffled.assumption) == (1e-8, True)
    counts = np.arange(241)
    for value in estimates.values:
        assert abs(value.estimate - truth[value.value]) < 6 * value.stderr
        # Of the number of holders at the end, so few supports are a doubt of 2.5%.
        if value.high < 240:
            p, q = float(mechanism.channel.p), float(mechanism.channel.q)
            supports = round(value.estimate * (p - q) + 240 * q)
            doubts = [
                np.convolve(binom.pmf(counts, holders, p), binom.pmf(counts, 240 - holders, q))
                for holders in (math.floor(value.high), math.floor(value.high) + 1)
            ]
            most, least = (law[: supports + 1].sum() for law in doubts)
            assert least / 1.01 <= 0.025 <= most * 1.01
        assert 0 <= value.low < value.high
        assert abs(value.share - value.estimate / 240) < 1e-12
    today = epoch_at(now(), "day")
    assert list(estimate(run.endpoints, "theme", [today, 1]).epochs) in (
        [today],
        [today - 1],
    )
    assert estimate(run.endpoints, "theme", last="7d").reports == 240
    by_name = {metric.name: metric for metric in metrics(run.endpoints).metrics}
    assert [epoch.epoch for epoch in by_name["theme"].epochs] == list(estimates.epochs)
    assert list(by_name["editor"].epochs) == []
    late = _submit(run, SubmitRequest(reports=[_sealed(run.bundle, "theme", b"\1")]))
    [refusal] = late.refused
    assert refusal.reason == Reason.REASON_EXPIRED, "a closed window takes no more"


@pytest.mark.thorough
def test_totals_that_honest_reports_cannot_make_are_flagged(
    run: LocalRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fake reports that support no value at all."""

    before = _terms(run)
    _report(run, "flagged", ["dark"] * 60)
    for _ in range(3):
        fakes = [_sealed(run.bundle, "flagged", b"\0") for _ in range(200)]
        _submit(run, SubmitRequest(reports=fakes))
    close_epochs(run.shuffler_redis)
    _wait(run, before, counted=660)
    estimates = estimate(run.endpoints, "flagged")
    assert estimates.honest_p_value < 1e-6
    assert any("reports support" in finding for finding in estimates.findings)
    assert main(["query", "flagged", "--home", str(run.home)]) == 0
    assert "NOT ONLY FROM HONEST REPORTS" in capsys.readouterr().out


@pytest.mark.thorough
def test_strings_are_found_among_candidates(run: LocalRun) -> None:
    before = _terms(run)
    _report(run, "homepage", ["a.example"] * 150 + ["b.example"] * 20)
    close_epochs(run.shuffler_redis)
    _wait(run, before, counted=170)
    estimates = estimate(
        run.endpoints, "homepage", candidates=["b.example", "a.example", "c.example"]
    )
    assert [value.value for value in estimates.values] == ["b.example", "a.example", "c.example"]
    assert estimates.values[1].detected
    with pytest.raises(HubbubError, match="pass the strings to look for"):
        estimate(run.endpoints, "homepage")
    with pytest.raises(HubbubError, match='metric "nothing" is not in the bundle'):
        estimate(run.endpoints, "nothing")


@pytest.mark.thorough
def test_killed_services_lose_nothing_and_count_nothing_twice(own_run: LocalRun) -> None:
    """At SIGTERM both end by themselves. Then SIGKILL of the aggregator, with which its opening
    processes end, since they hold the private keys; with batches in flight, of the shuffler and
    both Redis servers. Everything starts again after each."""
    _report(own_run, "theme", ["dark"] * 30)
    for child in reversed(own_run.children):
        child.process.terminate()
        assert child.process.wait() == 0
    own_run.stop()
    with own_run:
        before = _terms(own_run)
        assert before["acknowledged"] == 30
        _report(own_run, "theme", ["dark"] * 60)
        eventually(lambda: _terms(own_run)["counted"] > before["counted"])
        aggregator = own_run.children[0].process
        children = Path(f"/proc/{aggregator.pid}/task/{aggregator.pid}/children")
        openers = children.read_text().split() if children.exists() else []
        assert len(openers) >= 2 or not children.exists()
        aggregator.kill()
        aggregator.wait()

        def alive() -> list[str]:
            return [pid for pid in openers if Path(f"/proc/{pid}/exe").exists()]

        eventually(lambda: not alive(), alive)
        _report(own_run, "theme", ["dark"] * 40)
        with redis.Redis.from_url(own_run.shuffler_redis) as pool:
            flying = eventually(lambda: pool.keys("shuffler:batch:*"))
        assert len(flying) >= 1
        own_run.children[1].process.kill()
        own_run.children[1].process.wait()
        with pytest.raises(ServiceUnavailable, match="aggregator ended with code -9"):
            own_run.check()
        for server in own_run.redis_servers:
            server.child.process.kill()
            server.child.process.wait()
    with own_run:
        with redis.Redis.from_url(own_run.shuffler_redis) as pool:
            assert {key for key in flying if pool.exists(key)} <= set(flying)
        close_epochs(own_run.shuffler_redis)
        terms = _wait(own_run, acknowledged=130, counted=130, pooled=0, in_flight=0)
        assert terms["duplicate"] == terms["withheld"] == 0
        estimates = estimate(own_run.endpoints, "theme")
        assert estimates.reports == 130


@pytest.mark.thorough
def test_a_batch_delivered_again_and_reports_sent_again_change_no_total(own_run: LocalRun) -> None:
    bundle = own_run.bundle
    honest = [
        _sealed(bundle, "theme", bundle.metric("theme").randomizer.layout.encode(n % 8))  # type: ignore[attr-defined]
        for n in range(40)
    ]
    batch = Batch(
        batch_id=secrets.token_bytes(16),
        stream="theme",
        epoch=honest[0].epoch,
        key_id=honest[0].key_id,
        sealed=[report.sealed for report in honest],
    )
    other = Batch()
    other.CopyFrom(batch)
    other.batch_id = secrets.token_bytes(16)
    credentials = TlsFolder(own_run.home / "tls", "shuffler").channel_credentials("aggregator")
    with grpc.secure_channel(f"127.0.0.1:{own_run.ports.ingest}", credentials) as channel:
        ingest = stub("Ingest", channel)
        assert not ingest.Apply(batch).already_applied
        first = estimate(own_run.endpoints, "theme")
        assert ingest.Apply(batch).already_applied
        assert not ingest.Apply(other).already_applied
        again = estimate(own_run.endpoints, "theme")
        assert first == again
        terms = _terms(own_run)
        assert (terms["counted"], terms["duplicate"]) == (40, 40)

        def rejected(**changes: object) -> dict[str, int]:
            changed = Batch()
            changed.CopyFrom(batch)
            changed.batch_id = secrets.token_bytes(16)
            del changed.sealed[:]
            changed.sealed.extend(changes.pop("sealed", batch.sealed))  # type: ignore[arg-type]
            for name, value in changes.items():
                setattr(changed, name, value)
            before = _reasons(own_run)
            ingest.Apply(changed)
            after = _reasons(own_run)
            return {r: n - before.get(r, 0) for r, n in after.items() if n != before.get(r, 0)}

        fresh = [_sealed(bundle, "theme", b"\1").sealed for _ in range(3)]
        padded = _sealed(bundle, "theme", b"\xff").sealed
        assert rejected(sealed=[fresh[0][:-1]]) == {"rejected:wrong_length": 1}
        assert rejected(sealed=[padded]) == {"rejected:bad_payload": 1}
        assert rejected(sealed=[bytes(49)]) == {"rejected:not_opened": 1}
        assert rejected(sealed=fresh[:1], key_id=13) == {"rejected:wrong_key": 1}
        assert rejected(sealed=fresh[:1], epoch=batch.epoch - 9) == {"rejected:expired": 1}
        assert rejected(sealed=fresh[:1], epoch=batch.epoch + 1) == {"rejected:not_opened": 1}
        assert rejected(sealed=fresh[:1], stream="crashed", epoch=epoch_at(now(), "hour")) == {
            "rejected:not_opened": 1
        }
        assert rejected(sealed=[fresh[0], fresh[0], fresh[1]]) == {"counted": 2, "duplicate": 1}
        for wrong in ({"stream": "nothing"}, {"batch_id": b"short"}):
            with pytest.raises(grpc.RpcError):
                rejected(**wrong)


def _reasons(run: LocalRun) -> Mapping[str, int]:
    """What the aggregator counted, by term and reason, as its store has it."""

    async def counts() -> Mapping[Window, Mapping[str, int]]:
        server = await connect_redis(run.aggregator_redis)
        try:
            return await RedisStore(server).report_counts()
        finally:
            await server.close()

    reasons: Counter[str] = Counter()
    for terms in asyncio.run(counts()).values():
        reasons.update(terms)
    return reasons


@pytest.mark.thorough
def test_the_shuffler_refuses_what_could_carry_an_identity(run: LocalRun) -> None:
    before = _terms(run)
    good = _sealed(run.bundle, "refused", b"\1")
    marked = SealedReport.FromString(good.SerializeToString() + b"\x9a\x06\x04user")
    other_key = SealedReport()
    other_key.CopyFrom(good)
    other_key.key_id = 7
    answer = _submit(run, SubmitRequest(reports=[marked, good, other_key]))
    assert [(r.index, r.reason) for r in answer.refused] == [
        (0, Reason.REASON_UNKNOWN_FIELD),
        (2, Reason.REASON_WRONG_KEY),
    ]
    smuggled = SubmitRequest.FromString(b"\x9a\x06\x04user")
    for request in (smuggled, SubmitRequest(reports=[good] * 1001)):
        with pytest.raises(grpc.RpcError) as caught:
            _submit(run, request)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.RpcError):
        _submit(run, SubmitRequest(reports=[SealedReport(sealed=bytes(5 << 20))]))
    assert _wait(run, before, acknowledged=1)["pooled"] == 1


def test_only_certificates_of_the_authority_are_served(run: LocalRun, tmp_path: Path) -> None:
    from hubbub.installation.certificate_authorities import write_certificates

    strangers = tmp_path / "strangers"
    write_certificates(strangers, {})
    (strangers / "ca.pem").write_bytes((run.home / "tls" / "ca.pem").read_bytes())
    credentials = TlsFolder(strangers, "shuffler").channel_credentials("aggregator")
    with grpc.secure_channel(f"127.0.0.1:{run.ports.ingest}", credentials) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            stub("Ingest", channel).Apply(Batch(), timeout=HANG_SECONDS)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_certificate_is_valid_only_for_its_own_role(run: LocalRun) -> None:
    """Batches come from the shuffler, questions from analysts."""
    ingest = f"127.0.0.1:{run.ports.ingest}"

    def apply(channel: grpc.Channel) -> None:
        stub("Ingest", channel).Apply(Batch(), timeout=HANG_SECONDS)

    def status(channel: grpc.Channel) -> None:
        stub("Operator", channel).Status(StatusRequest(), timeout=HANG_SECONDS)

    for role, service, address, call in (
        ("analyst", "aggregator", ingest, apply),
        ("redis", "aggregator", ingest, apply),
        ("redis", "shuffler", run.shuffler_status, status),
    ):
        credentials = TlsFolder(run.home / "tls", role).channel_credentials(service)
        with grpc.secure_channel(address, credentials) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                call(channel)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED, role


@pytest.mark.thorough
def test_tiers_travel_as_streams_of_their_own_and_are_answered_together(run: LocalRun) -> None:
    before = _terms(run)
    transport = _transport(run)
    for n in range(75):
        client = Client(run.bundle, MemoryState(), transport, hold_seconds=None)
        client.prefer((None, 1.5, 0.5)[n % 3])
        assert client.report("crashed", "yes") is Outcome.QUEUED
        assert client.flush(HANG_SECONDS)
    transport.close()
    close_epochs(run.shuffler_redis)
    _wait(run, before, acknowledged=75, counted=75)
    epochs = [epoch_at(now(), "hour")]
    for name, reports in (("crashed", 75), ("crashed/0.5", 25), ("crashed/1", 25)):
        assert estimate(run.endpoints, name, epochs).reports == reports
    by_name = {metric.name: metric for metric in metrics(run.endpoints).metrics}
    assert "crashed/1" not in by_name
    assert {epoch.epoch for epoch in by_name["crashed"].epochs} <= set(epochs)


@pytest.mark.thorough
def test_redis_away_is_waited_out(run: LocalRun) -> None:
    """The shuffler's Redis stopped: nothing is acknowledged; it goes on: nothing was lost."""
    import signal

    server = run.redis_servers[0].child.process
    before = _terms(run)
    transport = _transport(run)
    client = Client(run.bundle, MemoryState(), transport, hold_seconds=None)
    client.report("redis_away", "dark")
    server.send_signal(signal.SIGSTOP)

    def shuffler_has_it() -> bool:
        return scraped(run, run.ports.shuffler_metrics)["", "hubbub_unwritten_reports"] == 1

    with ThreadPoolExecutor(1) as aside:
        flushed = aside.submit(client.flush, HANG_SECONDS)
        try:
            eventually(shuffler_has_it)
            assert not flushed.done()
            assert client.waiting == 1
        finally:
            server.send_signal(signal.SIGCONT)
        assert flushed.result()
    _wait(run, before, acknowledged=1, pooled=1)
    transport.close()


@pytest.mark.thorough
def test_a_folder_in_use_and_a_changed_metric_are_refused(run: LocalRun, tmp_path: Path) -> None:
    catalog = Catalog(shuffler="", metrics=dict(run.bundle.metrics))
    with (
        pytest.raises(StateUnusable, match="is in use by another hubbub"),
        LocalRun(run.home, catalog, Ports.free()),
    ):
        pass
    ports = run.ports
    with (
        pytest.raises(
            ServiceUnavailable, match=rf"port {ports.shuffler} of 127\.0\.0\.1 is in use"
        ),
        LocalRun(tmp_path / "other", catalog, ports),
    ):
        pass
    shutil.copytree(run.home, tmp_path / "home", ignore=shutil.ignore_patterns("redis-*", "lock"))
    changed = {**run.bundle.metrics, "theme": replace(run.bundle.metric("theme"), epsilon=0.5)}
    with (
        pytest.raises(BundleRefused, match="epsilon changed under an old name"),
        LocalRun(tmp_path / "home", Catalog(shuffler="", metrics=changed), Ports.free()),
    ):
        pass


@pytest.mark.thorough
@pytest.mark.parametrize("switched_off", [False, True])
def test_fillers_hide_what_a_device_has_and_are_a_term_of_the_law(
    tmp_path: Path, switched_off: bool
) -> None:
    """40 devices, half of whose people decline one metric: every stream gets 40 all the same.

    Also of a catalog that says `cover` no more, which these devices do not know yet.
    """
    source = tmp_path / "metrics.toml"
    source.write_text(FILLED)
    with LocalRun(tmp_path / "home", read_catalog(source), Ports.free()) as run:
        bundle = run.bundle
        if switched_off:
            source.write_text(FILLED.replace("cover = true", ""))
            run.take(read_catalog(source))
        assert run.bundle.cover is not switched_off
        transport, counts = _transport(run), dict.fromkeys(("asked", "crash"), 0)
        for number in range(40):
            clock = FakeClock(now() - 86_400)
            client = Client(
                bundle, MemoryState(), transport, hold_seconds=None, clock=clock, strict=True
            )
            client.prefer(1.0 if number % 2 else 0.1)
            client.flush(HANG_SECONDS)
            clock.advance(86_400)
            assert client.flush(HANG_SECONDS)
            payloads = client.ledger().payloads
            assert {payload.fate for payload in payloads} == {"sent"}
            for payload in payloads:
                counts[payload.metric] += not payload.is_filler
        transport.close()
        assert counts["crash"] == 20
        close_epochs(run.shuffler_redis)
        counted = sum(counts.values())
        _wait(run, acknowledged=160, counted=counted, fillers=160 - counted, rejected=0)
        by_window = report_counts(run.endpoints)
        each = {stream: sum_terms([terms]) for (stream, _), terms in by_window.items()}
        assert [each[name]["acknowledged"] for name in STREAMS] == [40] * 4
        assert (each["crash"]["counted"], each["crash/1"]["counted"]) == (0, 20)
        assert estimate(run.endpoints, "crash/1").reports == 20
