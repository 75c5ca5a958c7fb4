"""Tokens on the device: asked for blindly, kept over kills, one to a report, and none is lost."""

import secrets
from collections import Counter
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from hubbub.bundles import Bundle, read_bundle
from hubbub.bundles.tokens import TokenIssuer, Tokens
from hubbub.client import Client, FolderState, MemoryState, Outcome
from hubbub.client.delivery import token_store
from hubbub.client.delivery.token_store import TokenStore
from hubbub.client.mistakes_and_counters import Diagnostics
from hubbub.client.state.contract import State
from hubbub.client.state.secret import SECRET_BYTES, DeviceMemo
from hubbub.client.state.token_wallet import Wallet
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.client.transport.contract import SealedReport, TryAgain
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.keys.operator_key import read_operator_key
from hubbub.privacy.card import card
from hubbub.shuffler.token_checks import Redeemer
from hubbub.signing.metric_changes import differences
from hubbub.signing.sign_bundle import sign_bundle
from hubbub.tokens import poprf
from hubbub.tokens.token import TOKEN_BYTES, nonce_of, token_info
from hubbub.wire.v1 import report_pb2
from hubbub.wire.v1.services_pb2 import IssuedTokens, TokenRequest, TokenResponse
from tests.support.bundles import DAY, Signed, make_signed, metric_text
from tests.support.catalogs import catalog_of
from tests.support.client_parts import fetch_tokens, send_once, store_reports
from tests.support.cover_catalog import FILLED
from tests.support.waiting import HANG_SECONDS, eventually

FIRST = 20_000
_ISSUER = "https://issuer.example.org:7090"
_LINE = f'tokens = {{ issuer = "{_ISSUER}" }}\n'
_HEAD = 'shuffler = "127.0.0.1:1"\n'


class Issuer:
    """The issuer's function, its memory of accounts left out; every question that it was asked."""

    def __init__(self) -> None:
        self.key, self.public = poprf.new_key()
        self.asked: list[bytes] = []
        self.fails = self.is_spent = False
        self.unknown: set[str] = set()
        self.forged: set[str] = set()

    def __call__(self, request: bytes, _timeout_seconds: float) -> bytes:
        self.asked.append(request)
        if self.fails:
            raise TryAgain("killed")
        response = TokenResponse()
        for stream_request in TokenRequest.FromString(request).wanted:
            if self.is_spent:
                response.issued.append(IssuedTokens())
                continue
            if stream_request.stream in self.unknown:
                response.issued.append(IssuedTokens(not_given=True))
                continue
            info = token_info(stream_request.stream, stream_request.epoch)
            evaluated, proof = poprf.blind_evaluate(self.key, stream_request.blinded, info)
            if stream_request.stream in self.forged:
                evaluated, _ = poprf.blind_evaluate(
                    poprf.new_key()[0], stream_request.blinded, info
                )
            response.issued.append(IssuedTokens(evaluated=evaluated, proof=proof))
        return response.SerializeToString()

    def takes(self, report: SealedReport) -> bool:
        fields = (report.stream, report.epoch, report.key_id, report.sealed)
        names = ("stream", "epoch", "key_id", "sealed")
        message = report_pb2.SealedReport(**dict(zip(names, fields, strict=True)))  # type: ignore[arg-type]
        return Redeemer(self.key).are_paid([(message, report.token)]) == [True]


def _issued(bundle: Bundle, issuer: Issuer) -> Bundle:
    return replace(bundle, tokens=TokenIssuer(Tokens(_ISSUER), issuer.public))


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    folder = tmp_path_factory.mktemp("plain")
    text = _HEAD + metric_text("theme").replace("reports_per_epoch = 1", "reports_per_epoch = 3")
    return make_signed(folder, text + metric_text("size"), start=FIRST * DAY)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    # One in 65,536 devices asks for the next day's tokens as a day begins: these have one moment.
    secret = b"\1" * SECRET_BYTES
    monkeypatch.setattr(token_store, "DeviceMemo", lambda _, metric: DeviceMemo(secret, metric))
    return FakeClock(float((FIRST + 3) * DAY))


def _client(
    bundle: Bundle, state: State, shuffler: FakeShuffler, issuer: Issuer, clock: FakeClock
) -> Client:
    return Client(bundle, state, shuffler, hold_seconds=None, clock=clock, ask_issuer=issuer)


def test_every_report_goes_with_a_token_of_its_own(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    for value in ("dark", "light", "dark"):
        assert client.report("theme", value) is Outcome.QUEUED
    client.report("size", "dark")
    assert client.flush(HANG_SECONDS)
    reports = shuffler.reports()
    assert len(reports) == 4
    assert all(len(report.token) == TOKEN_BYTES for report in reports)
    assert len({nonce_of(report.token) for report in reports}) == 4
    assert all(issuer.takes(report) for report in reports)
    # Of another report, stream or epoch it is none.
    first, other = reports[:2]
    assert not issuer.takes(replace(first, sealed=other.sealed))
    assert not issuer.takes(replace(first, stream="another"))
    assert not issuer.takes(replace(first, epoch=first.epoch + 1))
    assert not issuer.takes(replace(first, token=first.token[:-1] + bytes([first.token[-1] ^ 1])))
    assert not issuer.takes(replace(first, token=first.token[:-1]))


def test_token_requests_are_the_same_for_every_device(
    plain: Signed, issuer: Issuer, clock: FakeClock
) -> None:
    bundle = _issued(plain.bundle, issuer)
    shapes = set()
    for values in ((), ("dark",), ("dark", "light", "dark")):
        client = _client(bundle, MemoryState(), FakeShuffler(), issuer, clock)
        for value in values:
            client.report("theme", value)
        client.report("size", "dark")
        client.flush(HANG_SECONDS)
        requests = TokenRequest.FromString(issuer.asked[-1]).wanted
        shapes.add(tuple((request.stream, len(request.blinded)) for request in requests))
    assert shapes == {(("size", 1), ("theme", 3))}


def test_a_device_killed_before_the_answer_asks_the_same_again(
    plain: Signed, issuer: Issuer, clock: FakeClock, tmp_path: Path
) -> None:
    bundle, shuffler = _issued(plain.bundle, issuer), FakeShuffler()
    first = FolderState(tmp_path / "state")
    client = _client(bundle, first, shuffler, issuer, clock)
    client.report("theme", "dark")
    store_reports(client)
    issuer.fails = True
    fetch_tokens(client, HANG_SECONDS)
    assert client.waiting == 1
    first.close()
    issuer.fails = False
    second = FolderState(tmp_path / "state")
    assert _client(bundle, second, shuffler, issuer, clock).flush(HANG_SECONDS)
    assert len(issuer.asked) == 2
    assert issuer.asked[0] == issuer.asked[1]
    assert [issuer.takes(report) for report in shuffler.reports()] == [True]
    # Once there are tokens, nothing is left by which they were blinded.
    assert second.wallet(lambda wallet: wallet.pending) == {}
    second.close()


def test_a_flush_asks_a_failing_issuer_again_until_its_timeout(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    client.report("theme", "dark")
    issuer.fails = True
    start = clock.monotonic()
    assert not client.flush(5)
    assert len(issuer.asked) > 1
    assert clock.monotonic() - start <= 5
    assert client.waiting == 1

    def recover(seconds: float) -> None:
        issuer.fails = False
        clock.advance(seconds)

    clock.sleep = recover  # type: ignore[method-assign]
    assert client.flush(HANG_SECONDS)
    assert [issuer.takes(report) for report in shuffler.reports()] == [True]


def test_a_report_that_is_sent_again_has_the_same_token_over_a_restart(
    plain: Signed, issuer: Issuer, clock: FakeClock, tmp_path: Path
) -> None:
    bundle = _issued(plain.bundle, issuer)
    reports: list[SealedReport] = []
    for turn in range(3):
        state = FolderState(tmp_path / "state")
        shuffler = FakeShuffler(*([TryAgain("killed")] * 100))
        client = _client(bundle, state, shuffler, issuer, clock)
        if not turn:
            client.report("theme", "dark")
        store_reports(client)
        fetch_tokens(client, HANG_SECONDS)
        send_once(client, HANG_SECONDS)
        reports += shuffler.reports()
        state.close()
        clock.advance(100)
    assert len(reports) == 3
    assert len({(report.sealed, report.token) for report in reports}) == 1


def test_an_issuer_cannot_mark_a_report_by_another_key(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    shuffler, public = FakeShuffler(), issuer.public
    bundle = _issued(plain.bundle, issuer)
    key = issuer.key
    issuer.key, _ = poprf.new_key()
    client = _client(bundle, state, shuffler, issuer, clock)
    client.report("theme", "dark")
    assert not client.flush(1)
    assert (client.waiting, client.dropped, shuffler.reports()) == (1, {}, [])
    issuer.key = key
    clock.advance(1000)
    assert client.flush(HANG_SECONDS)
    assert bundle.tokens is not None
    assert bundle.tokens.public == public
    assert [issuer.takes(report) for report in shuffler.reports()] == [True]


def test_another_key_of_the_issuers_loses_no_report_that_waits(
    plain: Signed, state: State, clock: FakeClock
) -> None:
    """Tokens of the former are none to the shuffler any more, also those that reports have."""
    former, other = Issuer(), Issuer()
    refusing = FakeShuffler(*[dict.fromkeys(range(3), "refused_no_token")] * 50)
    client = _client(_issued(plain.bundle, former), state, refusing, former, clock)
    client.report("theme", "dark")
    client.report("theme", "light")
    assert not client.flush(1)
    assert (client.waiting, client.dropped) == (2, {})
    shuffler = FakeShuffler()
    client = _client(_issued(plain.bundle, other), state, shuffler, other, clock)
    client.report("theme", "dark")
    assert client.flush(HANG_SECONDS)
    assert client.dropped == {}
    assert [other.takes(report) for report in shuffler.reports()] == [True] * 3
    assert len({nonce_of(report.token) for report in shuffler.reports()}) == 3


def test_a_request_under_the_former_key_is_repeated_under_the_new_one(
    plain: Signed, state: State, clock: FakeClock
) -> None:
    """An account has its tokens once: another question would be answered with none."""
    former, other = Issuer(), Issuer()
    client = _client(_issued(plain.bundle, former), state, FakeShuffler(), other, clock)
    client.report("theme", "dark")
    assert not client.flush(1)
    shuffler = FakeShuffler()
    client = _client(_issued(plain.bundle, other), state, shuffler, other, clock)
    assert client.flush(HANG_SECONDS)
    assert len(set(other.asked)) == 1
    assert [other.takes(report) for report in shuffler.reports()] == [True]


def test_a_wrong_proof_delays_only_the_reports_of_its_stream(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    issuer.forged = {"size"}
    client.report("size", "dark")
    client.report("theme", "dark")
    eventually(lambda: not client.flush(0.5) and shuffler.reports())
    assert (client.waiting, client.dropped) == (1, {})
    [sent] = shuffler.reports()
    assert sent.stream == "theme"
    issuer.forged = set()
    clock.advance(1000)
    assert client.flush(HANG_SECONDS)
    assert [report.stream for report in shuffler.reports()] == ["theme", "size"]
    assert all(issuer.takes(report) for report in shuffler.reports())
    # Those of the next epoch may be due by now: the device draws when.
    bodies = [TokenRequest.FromString(body).wanted for body in issuer.asked]
    own = [
        own_wants for wants in bodies if (own_wants := [w for w in wants if w.epoch == sent.epoch])
    ]
    first, *again = own
    size = [want.blinded for want in first if want.stream == "size"]
    assert again
    assert all([want.blinded for want in wants] == size for wants in again), "the same, and no more"


def test_a_refused_token_loses_no_report(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    wrong = {0: "refused_no_token"}
    shuffler = FakeShuffler(wrong, wrong)
    client = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    client.report("theme", "dark")
    assert client.flush(HANG_SECONDS)
    assert client.dropped == {}
    reports = shuffler.reports()
    assert len({report.token for report in reports}) == 1
    assert len({report.sealed for report in reports}) == 1


def test_a_token_used_by_another_report_is_replaced(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    """As after a state that was put back."""
    spent = {0: "refused_token_spent"}
    shuffler = FakeShuffler(spent, spent)
    client = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    client.report("theme", "dark")
    assert client.flush(HANG_SECONDS)
    assert client.dropped == {}
    assert len({report.token for report in shuffler.reports()}) == 3
    client = _client(_issued(plain.bundle, issuer), state, FakeShuffler(spent), issuer, clock)
    client.report("size", "dark")
    assert not client.flush(2)
    assert client.waiting == 1
    clock.advance(3 * DAY)
    client.flush(HANG_SECONDS)
    assert (client.waiting, client.dropped) == (0, {"expired": 1})


def test_an_account_without_tokens_left_still_reports_for_other_epochs(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    issuer.is_spent = True
    client.report("theme", "dark")
    assert not client.flush(1)
    questions = len(issuer.asked)
    assert not client.flush(1)
    assert len(issuer.asked) == questions, "it is not asked again and again"
    issuer.is_spent = False
    clock.advance(DAY)
    client.report("theme", "light")
    client.flush(1)
    assert [report.epoch for report in shuffler.reports()] == [FIRST + 4]
    clock.advance(2 * DAY)
    client.flush(1)
    assert client.dropped == {"expired": 1}


def test_a_stream_unknown_to_the_issuer_delays_no_other(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    shuffler = FakeShuffler()
    client = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    issuer.unknown = {"size"}
    client.report("size", "dark")
    client.report("theme", "dark")
    client.flush(1)
    assert [report.stream for report in shuffler.reports()] == ["theme"]
    questions = len(issuer.asked)
    client.flush(1)
    assert (client.waiting, len(issuer.asked)) == (1, questions), "it is not asked again and again"
    issuer.unknown = set()
    again = _client(_issued(plain.bundle, issuer), state, shuffler, issuer, clock)
    assert again.flush(HANG_SECONDS), "an issuer that learns of it by the next start gives them"


def test_fillers_have_tokens_as_reports_have(
    tmp_path: Path, issuer: Issuer, clock: FakeClock
) -> None:
    signed = make_signed(tmp_path, FILLED.replace("sampling = 0.5\n", ""), start=FIRST * DAY)
    shuffler, state = FakeShuffler(), MemoryState()
    client = _client(_issued(signed.bundle, issuer), state, shuffler, issuer, clock)
    client.flush(HANG_SECONDS)
    clock.advance(DAY)
    client.flush(HANG_SECONDS)
    reports = shuffler.reports()
    assert Counter(report.stream for report in reports) == dict.fromkeys(signed.bundle.streams, 1)
    assert all(issuer.takes(report) for report in reports)


@pytest.mark.slow
def test_the_moment_of_asking_is_anywhere_in_the_epoch_before(
    plain: Signed, issuer: Issuer
) -> None:
    """4,000 devices over 10 tenths of a day: within 5.6 sigma each, a false alarm in 2e7."""
    bundle, devices, tenths = _issued(plain.bundle, issuer), 4000, 10
    counts: Counter[int] = Counter()
    epoch = FIRST + 9
    for _ in range(devices):
        state = MemoryState(secrets.token_bytes(SECRET_BYTES))
        tokens = TokenStore(bundle, state, issuer, clock=FakeClock(), diagnostics=Diagnostics(None))
        moment = tokens._moment("day", epoch)
        assert moment == tokens._moment("day", epoch)
        assert (epoch - 1) * DAY <= moment < epoch * DAY
        counts[int(tenths * (moment - (epoch - 1) * DAY) / DAY)] += 1
    expected = devices / tenths
    sigma = sqrt(expected * (1 - 1 / tenths))
    assert all(abs(counts[tenth] - expected) <= 5.6 * sigma for tenth in range(tenths))


def test_a_child_requests_tokens_although_its_parent_did_at_the_fork(
    plain: Signed, issuer: Issuer, clock: FakeClock
) -> None:
    clock.set((FIRST + 4) * DAY - 1.0)
    bundle = _issued(plain.bundle, issuer)
    tokens = TokenStore(bundle, MemoryState(), issuer, clock=clock, diagnostics=Diagnostics(None))
    with tokens.lock.hold():  # of a thread of the parent, which the child does not have
        tokens.fetch(HANG_SECONDS)
        assert not issuer.asked
        tokens.lock.after_fork_in_child()
        tokens.fetch(HANG_SECONDS)
    assert len(issuer.asked) == 1


def test_tokens_are_there_before_the_epoch_that_they_are_of(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    bundle, shuffler = _issued(plain.bundle, issuer), FakeShuffler()
    client = _client(bundle, state, shuffler, issuer, clock)
    clock.set((FIRST + 4) * DAY - 1.0)
    fetch_tokens(client, HANG_SECONDS)
    [body] = issuer.asked
    assert {want.epoch for want in TokenRequest.FromString(body).wanted} == {FIRST + 4}
    clock.advance(1000)
    client.report("theme", "dark")
    issuer.fails = True  # nobody need be asked
    assert client.flush(HANG_SECONDS)
    assert [issuer.takes(report) for report in shuffler.reports()] == [True]


def test_forgetting_leaves_no_token(
    plain: Signed, state: State, issuer: Issuer, clock: FakeClock
) -> None:
    client = _client(_issued(plain.bundle, issuer), state, FakeShuffler(), issuer, clock)
    client.report("theme", "dark")
    client.flush(HANG_SECONDS)
    assert state.wallet(lambda wallet: wallet.periods)
    client.disable(forget=True)
    assert state.wallet(lambda wallet: wallet.periods) == set()


def test_the_ledger_names_the_issuer_and_what_it_sees(
    plain: Signed, issuer: Issuer, clock: FakeClock
) -> None:
    bundle = _issued(plain.bundle, issuer)
    client = _client(bundle, MemoryState(), FakeShuffler(), issuer, clock)
    assert client.ledger().tokens == _ISSUER
    sentences = card(catalog_of(_LINE + _HEAD + metric_text("theme"))).sentences
    assert any("can link a token to its account" in sentence for sentence in sentences)


def test_invalid_wallet_data_gives_an_empty_wallet() -> None:
    wallet = Wallet()
    requests = wallet.ask({("theme", 7, "key"): [(b"n" * 16, b"b" * 32)]})
    assert list(Wallet.load(wallet.data()).pending.values()) == list(requests.values())
    for wrong in (None, b"", b"{", b"[]", b"7", "text", 7, b'{"free": [["theme", "x", []]]}'):
        assert Wallet.load(wrong) == Wallet()
    for wrong in (b'{"pending": [["theme", 7, ["00"]]]}', b'{"spending": [[1, "s", 2, []]]}'):
        assert Wallet.load(wrong) == Wallet()


def test_a_catalog_names_an_issuer_and_the_bundle_contains_its_key(
    tmp_path: Path, issuer: Issuer, plain: Signed
) -> None:
    catalog = catalog_of(_LINE + _HEAD + metric_text("theme"))
    assert catalog.tokens == Tokens(_ISSUER)
    bundle = _issued(plain.bundle, issuer)
    path = tmp_path / "app.hubbub"
    path.write_bytes(sign_bundle(bundle, read_operator_key(plain.keys)))
    assert read_bundle(path).tokens == bundle.tokens
    assert b'"version":3' in path.read_bytes(), "an SDK that knows no tokens refuses it"
    [change] = [
        difference
        for difference in differences(plain.bundle, read_bundle(path))
        if difference.field == "tokens"
    ]
    assert (change.before, change.after.split(",")[0]) == ("none", _ISSUER)


@pytest.mark.parametrize(
    ("line", "metric", "problem"),
    [
        ('tokens = { issuer = "ftp://x" }', "", "issuer must be https://HOST"),
        ('tokens = { issuer = "http://issuer.example.org:80" }', "", "issuer must be https://HOST"),
        ("tokens = { devices = 2 }", "", "issuer"),
        (_LINE.replace(" }", ", devices = 0 }"), "", "devices must be"),
        (_LINE, "sampling = 0.5", '"sampling": cannot be combined with tokens'),
        (
            _LINE,
            'period = "30d"\nreport_on = "one day"',
            '"report_on": cannot be combined with tokens',
        ),
        (_LINE, "discover = 0.2\nother = true", '"discover": cannot be combined with tokens'),
    ],
)
def test_an_invalid_tokens_field_is_refused_with_its_line(
    line: str, metric: str, problem: str
) -> None:
    with pytest.raises(CatalogInvalid, match=problem):
        catalog_of(f"{line}\n{_HEAD}{metric_text('theme', more=metric)}")


def test_a_bundle_with_sampling_and_tokens_is_refused(plain: Signed, issuer: Issuer) -> None:
    sampled = {name: replace(metric, sampling=0.5) for name, metric in plain.bundle.metrics.items()}
    with pytest.raises(BadParameter, match="cannot be combined with tokens"):
        replace(_issued(plain.bundle, issuer), metrics=sampled)


def test_more_tokens_than_a_device_can_ask_for_at_once_are_refused(
    plain: Signed, issuer: Issuer
) -> None:
    theme = plain.bundle.metrics["theme"]
    full = replace(theme, limits=replace(theme.limits, reports_per_epoch=1000))
    four = {name: replace(full, name=name) for name in ("one", "two", "three", "four")}
    issued = replace(_issued(plain.bundle, issuer), metrics=four)
    one_more = replace(theme, name="five", limits=replace(theme.limits, reports_per_epoch=1))
    with pytest.raises(BadParameter, match="reports_per_epoch makes 4001 tokens together"):
        replace(issued, metrics={**four, "five": one_more})
    hourly = replace(one_more, epoch="hour")
    assert replace(issued, metrics={**four, "five": hourly}).streams.keys() > four.keys()


def test_an_app_without_a_valid_account_is_refused(
    plain: Signed, issuer: Issuer, tmp_path: Path
) -> None:
    path = tmp_path / "app.hubbub"
    path.write_bytes(sign_bundle(_issued(plain.bundle, issuer), read_operator_key(plain.keys)))
    with pytest.raises(
        BadParameter,
        match=r"give account=KEY, an account's key at https\S+ \(or HUBBUB_ACCOUNT\)",
    ):
        Client.from_bundle(path, state_dir=tmp_path / "state")
    number: Any = 7
    with pytest.raises(BadParameter, match="account is not understood; give the key of an account"):
        Client.from_bundle(path, state_dir=tmp_path / "state", account=number)
