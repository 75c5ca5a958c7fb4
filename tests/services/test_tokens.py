"""Tokens on the whole path: issuer, devices with accounts, both doors, and who has no account."""

import asyncio
import random
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from hubbub.bundles import read_bundle
from hubbub.bundles.encoding import to_text
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.main import main
from hubbub.client import Client, FolderState, MemoryState, Outcome, TryAgain, transport_to
from hubbub.client.testing import FakeClock
from hubbub.client.transport.contract import SealedReport
from hubbub.client.transport.issuer_connection import ask_issuer
from hubbub.conservation import Window, balances, sum_terms
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import free_port
from hubbub.installation.local_run import ACCOUNT_KEY, ACCOUNTS, LocalRun, Ports
from hubbub.issuer.accounts import Accounts, add_account
from hubbub.issuer.issuing import allow
from hubbub.keys.issuer_and_gateway_keys import GATEWAY_KEY, make_gateway_key, read_gateway
from hubbub.programs.issuer_key_file import read_token_key
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler.http_door import OhttpGateway, read_gateway_keys
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.shards import places
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.shuffler.token_checks import Paid, Redeemer, refuse_untaken
from hubbub.tokens import poprf
from hubbub.wire.v1.services_pb2 import (
    Reason,
    SubmitRequest,
    SubmitResponse,
    TokenRequest,
    TokenResponse,
    WantedTokens,
)
from tests.conftest import CatalogFiles
from tests.services.test_guards import serving_front
from tests.services.test_http_door import open_door
from tests.support.bundles import metric_text
from tests.support.catalogs import catalog_of
from tests.support.client_parts import fetch_tokens, send_once, store_reports
from tests.support.commands import output_of, refusal_of
from tests.support.issuer_server import Issuance, IssuerHouse
from tests.support.law_terms import total_counts
from tests.support.moment import today
from tests.support.relay_process import Relay
from tests.support.waiting import HANG_SECONDS, eventually
from tests.support.web import post
from tests.system.test_examples import _load

_CATALOG = """
shuffler = "127.0.0.1:1"
tokens = { issuer = "http://127.0.0.1:1" }
""" + metric_text("theme").replace("min_batch = 100", "min_batch = 20")
_NO_TOKEN, _SPENT = Reason.REASON_NO_TOKEN, Reason.REASON_TOKEN_SPENT


@pytest.fixture
def run(tmp_path: Path) -> Iterator[LocalRun]:
    with LocalRun(tmp_path / "home", catalog_of(_CATALOG), Ports.free()) as running:
        yield running


@pytest.fixture
def house(catalog_files: CatalogFiles, redis_url: str, tmp_path: Path) -> Iterator[IssuerHouse]:
    issuer_house = IssuerHouse(catalog_files, tmp_path)
    with issuer_house.serving(redis_url):
        yield issuer_house


def _reasons(response: SubmitResponse) -> dict[int, int]:
    return {refusal.index: refusal.reason for refusal in response.refused}


def _paid(house: IssuerHouse, tokens: list[Issuance], stream: str, epoch: int) -> SubmitRequest:
    reports = [house.report(stream, epoch) for _ in tokens]
    spent = [token.minted.token(r.sealed) for token, r in zip(tokens, reports, strict=True)]
    return SubmitRequest(reports=reports, tokens=spent)


def _client(run: LocalRun, account: str, folder: Path) -> Client:
    options: Any = {"state_dir": folder, "account": account, "hold_seconds": 0.0}
    return Client.from_bundle(run.bundle_path, **options)


@pytest.mark.slow
def test_reports_with_tokens_are_counted_and_those_without_are_not(
    run: LocalRun, tmp_path: Path
) -> None:
    names = (add_account(run.home / ACCOUNTS, f"p{n}", vouches=False) for n in range(24))
    keys = [(run.home / ACCOUNT_KEY).read_text(), *names]
    run.children[1].reload()
    eventually(lambda: "why SIGHUP" in (run.home / "log" / "issuer.log").read_text())
    for number, key in enumerate(keys):
        with _client(run, key, tmp_path / f"device{number}") as client:
            assert client.report("theme", "dark") is Outcome.QUEUED
            assert client.flush(HANG_SECONDS), client.dropped
    for number, key in enumerate(("nobody's", keys[1])):  # and a second device of an account
        with _client(run, key, tmp_path / f"fake{number}") as client:
            client.report("theme", "dark")
            assert not client.flush(1)
            assert (client.waiting, client.dropped) == (1, {})
    close_epochs(run.shuffler_redis)
    terms: dict[str, int] = {}

    def is_counted() -> bool:
        terms.update(total_counts(run.endpoints))
        return terms.get("counted") == 25 and balances(terms)

    eventually(is_counted, lambda: terms)
    assert terms["acknowledged"] == 25


async def test_a_report_without_a_token_of_its_stream_and_epoch_is_refused(
    house: IssuerHouse, redis_url: str
) -> None:
    """At both doors, which have one admission."""
    epoch, key = today(), house.account("one")
    [theme_token] = house.mint(key, "theme", epoch, 1)
    [next_day] = house.mint(key, "theme", epoch + 1, 1)
    homepage = house.mint(key, "homepage", epoch, 100)
    report = house.report("theme", epoch)
    tokens = [
        b"",
        bytes(32),
        theme_token.minted.token(report.sealed)[:-1],
        next_day.minted.token(report.sealed),
        homepage[0].minted.token(report.sealed),
        theme_token.minted.token(b"another report"),
    ]
    redeemer = Redeemer(house.key)
    async with open_door(house.made, redis_url, redeemer=redeemer) as door:
        front = door.front
        request = SubmitRequest(reports=[report] * len(tokens), tokens=tokens)
        for send in (front.send, door.send):
            assert _reasons(await send(request)) == dict.fromkeys(range(6), _NO_TOKEN)
            bare = SubmitRequest(reports=[report])
            assert _reasons(await send(bare)) == {0: _NO_TOKEN}
        answer = await door.ask(
            body=SubmitRequest(reports=[report], tokens=tokens).SerializeToString()
        )
        assert (answer.status, answer.headers["hubbub-refused"]) == (400, "for-good")
        good = SubmitRequest(reports=[report], tokens=[theme_token.minted.token(report.sealed)])
        assert not (await front.send(good)).refused
        assert front.admission.counts == {"no_token": 14, "taken": 1}


async def test_no_token_is_accepted_with_two_reports(house: IssuerHouse, redis_url: str) -> None:
    epoch, key = today(), house.account("one")
    [token] = house.mint(key, "theme", epoch, 1)
    reports = [house.report("theme", epoch) for _ in range(40)]
    async with serving_front(house.made, redis_url, redeemer=Redeemer(house.key)) as front:
        all_at_once = (
            SubmitRequest(reports=[report], tokens=[token.minted.token(report.sealed)])
            for report in reports
        )
        answers = await asyncio.gather(*(front.send(request) for request in all_at_once))
        winners = [n for n, answer in enumerate(answers) if not answer.refused]
        assert len(winners) == 1
        reasons = {reason for answer in answers for reason in _reasons(answer).values()}
        assert reasons == {_SPENT}
        first = reports[winners[0]]
        again = SubmitRequest(reports=[first], tokens=[token.minted.token(first.sealed)])
        for _ in range(3):
            assert not (await front.send(again)).refused, "the same report is acknowledged"
        both = [first, reports[winners[0] - 1]]
        sent = [token.minted.token(report.sealed) for report in both]
        answer = await front.send(SubmitRequest(reports=both, tokens=sent))
        assert _reasons(answer) == {1: _SPENT}
        [terms] = (await front.pool.report_counts()).values()
        assert (terms["acknowledged"], terms["pooled"]) == (1, 1)
        counts = front.admission.counts
        assert counts == {"taken": 5, "token_spent": 40}


@pytest.mark.slow
async def test_an_attacker_with_few_accounts_sends_no_more_reports_than_tokens(
    house: IssuerHouse, redis_url: str
) -> None:
    """5 accounts of 100 reports an epoch, by every way that the issuer leaves open."""
    accounts, number, epoch = 5, 100, today()
    keys = [house.account(f"a{n}") for n in range(accounts)]
    chance = random.Random(7)
    tokens: list[Issuance] = []
    for key in keys * 3:  # and again, by other questions
        tokens += house.mint(key, "homepage", epoch, number)
    for key in keys:
        for more in (number + 1, number - 1, 2 * number):
            tokens += house.mint(key, "homepage", epoch, more)
        for late in (epoch - 3, epoch + 3):
            assert not house.mint(key, "homepage", late, number)
    hoarded = [token for key in keys for token in house.mint(key, "homepage", epoch + 1, number)]
    assert len(tokens) == accounts * number
    attempts = [*tokens, *tokens, *hoarded]
    chance.shuffle(attempts)
    async with serving_front(house.made, redis_url, redeemer=Redeemer(house.key)) as front:
        for first in range(0, len(attempts), 500):
            part = attempts[first : first + 500]
            await front.send(_paid(house, part, "homepage", epoch))
        [terms] = (await front.pool.report_counts()).values()
        assert terms["acknowledged"] == accounts * number


def _matched(blinds: list[bytes], spent: list[bytes]) -> int:
    """How many of what was spent are matched with what the issuer evaluated for it.

    By all that could be common: the closest of all that is left, in bits.
    """
    right, remaining = 0, dict(enumerate(blinds))
    for place, token_hash in enumerate(spent):
        guess = min(
            remaining,
            key=lambda n: (int.from_bytes(remaining[n]) ^ int.from_bytes(token_hash)).bit_count(),
        )
        right += guess == place
    return right


def _elements_of(issued: list[Issuance]) -> list[bytes]:
    """Of each spent nonce what issuer and shuffler can work out: the element that it would be."""
    return [poprf.hash_to_group(token.minted.nonce) for token in issued]


@pytest.mark.thorough
def test_issuer_and_shuffler_together_guess_the_owner_of_a_token_at_chance(
    house: IssuerHouse,
) -> None:
    """300 devices: who guesses is right once, on average; 10 or more times in 1e7 trials or so."""
    epoch = today()
    issued = [house.mint(house.account(f"d{n}"), "theme", epoch, 1)[0] for n in range(300)]
    matches = _matched([token.blinded for token in issued], _elements_of(issued))
    assert matches < 10
    # Every question fits every token: whoever looks for the blind finds one for each pair.
    assert len({token.blinded for token in issued}) == 300


@pytest.mark.thorough
def test_without_blinding_the_same_matching_finds_everybody(
    house: IssuerHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poprf, "new_blind", lambda: (1).to_bytes(32, "little"))
    epoch = today()
    issued = [house.mint(house.account(f"d{n}"), "theme", epoch, 1)[0] for n in range(100)]
    assert _matched([token.blinded for token in issued], _elements_of(issued)) == 100


def test_an_account_has_tokens_for_the_catalogs_number_of_devices(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    house = IssuerHouse(catalog_files, tmp_path, devices=2)
    with house.serving(redis_url):
        key, epoch = house.account("one"), today()
        counts = [len(house.mint(key, "theme", epoch, 1)) for _ in range(4)]
        assert counts == [1, 1, 0, 0]
        other = house.account("other")
        assert len(house.mint(other, "theme", epoch, 1)) == 1
        assert house.app is not None
        assert house.app.tokens == {"issued": 3, "refused": 2, "not_given": 0}


def test_the_same_question_has_the_same_tokens_as_often_as_it_is_asked(house: IssuerHouse) -> None:
    key, epoch = house.account("one"), today()
    drawn, request = house.question({("theme", epoch): 1})
    outputs: set[bytes] = set()
    for _ in range(3):
        [issued] = TokenResponse.FromString(house.send(key, request)).issued
        evaluation = (issued.evaluated, issued.proof, house.public)
        outputs.add(*poprf.finalize(drawn[0], *evaluation, b"hubbub/1 token|theme|%d" % epoch))
    assert len(outputs) == 1


def test_unknown_accounts_and_invalid_requests_are_refused(house: IssuerHouse) -> None:
    key, epoch = house.account("one"), today()
    backend = house.account("server", vouches=True)
    for wrong, status in (("", 401), ("x" * 43, 401), (backend, 401)):
        with pytest.raises(TryAgain, match=f"issuer_http_{status}"):
            house.mint(wrong, "theme", epoch, 1)
    for stream in ("nothing", "theme/1"):
        assert not house.mint(key, stream, epoch, 1)
    for element in (b"\xff" * 32, bytes(32), bytes(31), b"", b"x" * 70_000, bytes(31) + b"\x80"):
        stream_request = WantedTokens(stream="theme", epoch=epoch, blinded=[element])
        with pytest.raises(TryAgain, match="issuer_http_400"):
            house.send(key, TokenRequest(wanted=[stream_request]).SerializeToString())
    for request in (b"\xff", b"\x0a\x02\x50\x01"):
        with pytest.raises(TryAgain, match="issuer_http_400"):
            house.send(key, request)
    with pytest.raises(TryAgain, match=r"issuer_http_413|unavailable"):
        house.send(key, bytes(2 << 20))
    assert len(house.mint(key, "theme", epoch, 1)) == 1, "none of that has used anything up"


def test_an_issuer_answers_each_stream_separately(house: IssuerHouse) -> None:
    """A bundle with a metric that was retired, and one whose reports_per_epoch is less by now."""
    key, epoch = house.account("one"), today()
    drawn, request = house.question({("gone", epoch): 1, ("theme", epoch): 3})
    gone, theme = TokenResponse.FromString(house.send(key, request)).issued
    assert gone.not_given
    assert (len(theme.evaluated), theme.not_given) == (1, False)
    evaluation = (theme.evaluated, theme.proof, house.public, b"hubbub/1 token|theme|%d" % epoch)
    assert len(poprf.finalize(drawn[1][:1], *evaluation)) == 1
    assert not house.mint(key, "theme", epoch, 1), "it has had them"


def test_a_request_is_answered_by_the_streams_at_its_beginning(
    house: IssuerHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reload while Redis remembers the first epoch's tokens concerns the next request."""
    key, epoch = house.account("one"), today()
    app = house.app
    assert app is not None
    streams = app._streams

    async def reloaded(*arguments: Any, **options: Any) -> list[bool]:
        app.use(replace(streams, streams={}), Accounts(house.accounts))
        return await allow(*arguments, **options)

    monkeypatch.setattr("hubbub.issuer.issuing.allow", reloaded)
    numbers = {("theme", epoch): 1, ("theme", epoch + 1): 1}
    assert [len(issued.evaluated) for issued in house.ask(key, numbers).issued] == [1, 1]
    assert [issued.not_given for issued in house.ask(key, numbers).issued] == [True, True]


def test_tokens_are_charged_to_an_address_or_to_the_account_that_a_backend_names(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    house, epoch = IssuerHouse(catalog_files, tmp_path), today()
    account, backend = house.account("one"), house.account("server", vouches=True)
    _, request = house.question({("homepage", epoch): 100})

    def ask(key: str, named: str = "") -> int:
        headers = {"Authorization": f"Bearer {key}", "Hubbub-Account": named}
        return post(f"{house.url}/v1/tokens", content=request, headers=headers).status_code

    with house.serving(redis_url, Limiter(1e-6, 50)):
        answers = [ask(backend, named) for named in ("7", "8", "7", "9", "a/b")]
        assert answers == [200, 200, 429, 200, 401]
        assert [ask(account) for _ in range(2)] == [200, 429]
        assert ask("nobody's") == 429


def test_an_account_cannot_have_the_name_of_a_backends_account(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="without spaces and /"):
        add_account(tmp_path / "accounts", "a/b", vouches=True)
    (tmp_path / "accounts").write_text(f"a/b {'0' * 64}\n")
    with pytest.raises(KeysUnusable, match="an account's name has a /"):
        Accounts(tmp_path / "accounts")


async def test_an_apps_own_server_asks_for_its_people(
    house: IssuerHouse, monkeypatch: pytest.MonkeyPatch, redis_url: str
) -> None:
    monkeypatch.setenv("ISSUER", house.url)
    monkeypatch.setenv("ISSUER_KEY", house.account("server", vouches=True))
    people = {"Basic YW5uOg==": "7041", "Basic Ym9iOg==": "1199"}
    server: FlaskClient = _load("token_backend").create_app(people).test_client()

    def devices(address: str) -> None:
        for login in (*people, "Basic ZXZlOg=="):

            def ask(request: bytes, _seconds: float, authorization: str = login) -> bytes:
                headers = {"Authorization": authorization}
                answer = server.post("/tokens", data=request, headers=headers)
                if answer.status_code != 200:
                    raise TryAgain("app")
                return bytes(answer.data)

            transport = transport_to(address, roots=None, insecure=True)
            more: Any = {"hold_seconds": None, "ask_issuer": ask, "clock": FakeClock()}
            with Client(house.bundle, MemoryState(), transport, **more) as client:
                client.report("theme", "dark")
                if login in people:
                    assert client.flush(HANG_SECONDS)
                else:
                    assert not client.flush(1)

    async with serving_front(house.made, redis_url, redeemer=Redeemer(house.key)) as front:
        await asyncio.to_thread(devices, front.address)
        assert front.admission.counts == {"taken": 2}


@pytest.mark.thorough
async def test_each_report_is_accepted_once_although_devices_end_at_any_moment(
    house: IssuerHouse, redis_url: str, tmp_path: Path
) -> None:
    """4 accounts of 10 reports: half of all answers are lost, and each device lives a moment."""
    devices, number, lives = 4, 10, 400

    def live(address: str, seed: int) -> None:
        chance = random.Random(seed)
        answered = ask_issuer(house.url, house.account(f"a{seed}"), None)

        def ask(request: bytes, seconds: float) -> bytes:
            answer = answered(request, seconds)
            if chance.random() < 0.5:
                raise TryAgain("killed")
            return answer

        for life in range(lives):
            state = FolderState(tmp_path / f"device{seed}")
            way = _Broken(transport_to(address, roots=None), chance)
            client = Client(house.bundle, state, way, hold_seconds=None, ask_issuer=ask)
            if life < number:
                assert client.report("homepage", f"string {life}") is Outcome.QUEUED
            store_reports(client)
            fetch_tokens(client, HANG_SECONDS)
            send_once(client, HANG_SECONDS)
            waiting = client.waiting
            state.close()
            way.close()
            if life >= number and not waiting:
                return
        raise AssertionError(waiting)

    async with open_door(house.made, redis_url, redeemer=Redeemer(house.key)) as door:
        address = f"http://127.0.0.1:{door.port}"
        for member in range(devices):
            await asyncio.to_thread(live, address, member)
        terms = sum_terms((await door.front.pool.report_counts()).values())
        assert (terms["acknowledged"], terms["pooled"]) == (devices * number, devices * number)
        assert not door.front.admission.counts["token_spent"]
        assert not door.front.admission.counts["no_token"]


async def test_a_token_goes_through_a_relay_with_its_report(
    house: IssuerHouse, redis_url: str, tmp_path: Path
) -> None:
    write_certificates(tmp_path / "tls", {})
    make_gateway_key(tmp_path / "tls")
    [token] = house.mint(house.account("one"), "theme", today(), 1)
    tls = TlsFolder(tmp_path / "tls", "shuffler")
    keys = read_gateway_keys(tmp_path / "tls" / GATEWAY_KEY)
    more: Any = {"redeemer": Redeemer(house.key), "gateway": OhttpGateway(keys, ())}
    async with open_door(house.made, redis_url, tls=tls, **more) as door:
        relay = Relay(tmp_path / "tls", f"https://127.0.0.1:{door.port}", free_port())

        def send_over_relay() -> None:
            with relay.running():
                way = relay.transport(read_gateway(tmp_path / "tls"))
                report = house.report("theme", today())
                plain = SealedReport(
                    stream=report.stream,
                    epoch=report.epoch,
                    key_id=report.key_id,
                    sealed=report.sealed,
                )
                sent = [replace(plain, token=token.minted.token(report.sealed)), plain]
                results = way.submit(sent, HANG_SECONDS).results
                assert results == [None, "refused_no_token"]
                way.close()

        await asyncio.to_thread(send_over_relay)


class _Broken:
    """A way to the shuffler that breaks half of the time, after the reports have arrived."""

    def __init__(self, way: Any, chance: random.Random) -> None:
        self._way, self._chance = way, chance

    def submit(self, reports: Any, timeout_seconds: float) -> Any:
        answer = self._way.submit(reports, timeout_seconds)
        if self._chance.random() < 0.5:
            raise TryAgain("killed")
        return answer

    def close(self) -> None:
        self._way.close()


def _pairs(number: int, nonce: bytes | None = None) -> list[Paid]:
    draw = secrets.token_bytes
    return [Paid(nonce or draw(16), draw(16), draw(60)) for _ in range(number)]


@pytest.mark.parametrize("former", [1, 4, 8])
async def test_a_window_keeps_the_shards_it_began_with_so_no_token_is_spent_in_two(
    server: RedisServer, former: int
) -> None:
    """Shufflers are started anew with another --shards, one by one, while an epoch is open."""
    window, paid = Window("theme", 7), _pairs(40)
    others = [Paid(pair.nonce, secrets.token_bytes(16), pair.sealed[::-1]) for pair in paid]
    first = Pool(server, former)
    assert not await first.add({window: paid}, {window})
    for shards in (8, 2, 1, 5):
        pool = Pool(server, shards)
        assert await pool.add({window: others}, {window}) == frozenset(others)
        assert not await pool.add({window: paid}, {window}), "the same is acknowledged"
        assert await first.add({window: others}, {window}) == frozenset(others)
        assert (await pool.report_counts())[window]["acknowledged"] == 40
        assert (await pool.shards()).get(window, 1) == former
        await pool.add({Window("theme", 8 + shards): _pairs(40)}, {Window("theme", 8 + shards)})
        assert (await pool.shards()).get(Window("theme", 8 + shards), 1) == shards


async def test_shufflers_that_begin_a_window_at_once_have_one_number_of_shards(
    server: RedisServer,
) -> None:
    window, paid = Window("theme", 7), _pairs(60)
    pools = [Pool(server, shards) for shards in (1, 2, 3, 5, 8, 13)]
    marked = [[Paid(p.nonce, bytes([n]) * 16, p.sealed) for p in paid] for n in range(6)]
    results = await asyncio.gather(
        *(pool.add({window: of}, {window}) for pool, of in zip(pools, marked, strict=True))
    )
    assert sum(60 - len(refused) for refused in results) == 60
    assert (await pools[0].report_counts())[window]["acknowledged"] == 60


async def test_a_token_is_spent_once_over_all_shards_and_after_its_window_was_archived(
    server: RedisServer,
) -> None:
    pool, window = Pool(server, shards=8), Window("theme", 7)
    for pair in (*_pairs(20), *_pairs(20, b"n" * 16)):
        await pool.add({window: [pair]}, {window})
    terms = (await pool.report_counts())[window]
    assert terms["acknowledged"] == 21
    everything = _pairs(3000)
    assert await pool.add({window: everything}) == frozenset()
    assert await pool.add({window: everything}) == frozenset()
    others = [Paid(pair.nonce, secrets.token_bytes(16), pair.sealed) for pair in everything]
    assert await pool.add({window: others}) == frozenset(others)
    assert (await pool.report_counts())[window]["acknowledged"] == 3021
    spent = [place.key("shuffler:spent") for place in places(window, 8)]
    assert await server.client.exists(*spent)
    await pool.archive(window, 8)
    assert await pool.add({window: others}) == frozenset(others)
    lifetimes = [await server.client.ttl(key) for key in spent if await server.client.exists(key)]
    assert all(0 < seconds <= 6 * 3600 for seconds in lifetimes)
    assert lifetimes


async def test_a_token_that_is_checked_while_its_window_closes_is_refused(
    house: IssuerHouse, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    epoch = today()
    tokens = house.mint(house.account("one"), "theme", epoch, 1)
    redeemer = Redeemer(house.key)
    async with serving_front(house.made, redis_url, redeemer=redeemer) as front:
        are_paid = redeemer.are_paid

        def closing(pairs: Any) -> list[bool]:
            front.admission._mixer.closed = frozenset({Window("theme", epoch)})
            return are_paid(pairs)

        monkeypatch.setattr(redeemer, "are_paid", closing)
        answer = await front.send(_paid(house, tokens, "theme", epoch))
        assert _reasons(answer) == {0: Reason.REASON_EXPIRED}
        assert not await front.pool.report_counts()


def test_a_shuffler_without_the_key_does_not_start(house: IssuerHouse) -> None:
    table = read_stream_table(house.made.streams)
    with pytest.raises(BadParameter, match="--token-key named no key"):
        refuse_untaken(table, None)
    refuse_untaken(table, Redeemer(house.key))


def test_an_issuers_key_is_made_once_and_its_public_half_is_signed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = tmp_path / "keys"
    assert main(["keys", "new", str(keys)]) == 0
    source = tmp_path / "metrics.toml"
    source.write_text(_CATALOG)
    build = ["catalog", "build", str(source), "--keys", str(keys)]
    build += ["--out", str(tmp_path / "app.hubbub"), "--streams", str(tmp_path / "streams.json")]
    assert "hubbub keys" in refusal_of(capsys, *build)
    assert main(["keys", "issuer", str(keys)]) == 0
    assert main(["keys", "issuer", str(keys)]) == 2
    assert main(build) == 0
    key = read_token_key(keys / "tokens.key")
    (tmp_path / "odd.pub").write_text(to_text(bytes([1] * 32)))  # no point, as most scalars
    capsys.readouterr()
    for private in (keys / "tokens.key", tmp_path / "odd.pub", tmp_path / "none.pub"):
        command = [
            "init",
            str(tmp_path / "made"),
            "--catalog",
            str(source),
            "--tokens",
            str(private),
        ]
        assert str(private) in refusal_of(capsys, *command)
    assert not (tmp_path / "made" / "app.hubbub").exists()
    assert main(["init", str(tmp_path), "--party", "issuer", "--catalog", str(source)]) == 2
    assert "the issuer's party builds none: leave it out" in capsys.readouterr().err
    tokens = read_bundle(tmp_path / "app.hubbub").tokens
    assert tokens
    assert poprf.public_of(key) == tokens.public
    assert read_stream_table(tmp_path / "streams.json").streams["theme"].tokens == 1
    accounts = tmp_path / "accounts"
    output = output_of(capsys, "keys", "account", str(accounts), "--name", "ann").splitlines()[-1]
    assert output not in accounts.read_text()
    assert main(["keys", "account", str(accounts), "--name", "ann"]) == 2
    (tmp_path / "other").write_text("no key\n")
    with pytest.raises(KeysUnusable, match="hubbub keys issuer"):
        read_token_key(tmp_path / "other")
