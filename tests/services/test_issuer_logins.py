"""Accounts that are logins at a real provider of OpenID Connect: whom its tokens are about."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from hubbub.client import Client, MemoryState, transport_to
from hubbub.client.testing import FakeClock
from hubbub.client.transport.issuer_connection import ask_by_app
from hubbub.errors import AccessRefused, BadParameter, KeysUnusable, ServiceUnavailable
from hubbub.installation.child_process import free_port
from hubbub.issuer.issuing import Subjects
from hubbub.issuer.settings import parse
from hubbub.runtime.oidc_tokens import ProviderKeys
from hubbub.shuffler.token_checks import Redeemer
from tests.conftest import CatalogFiles
from tests.services.test_guards import serving_front
from tests.support.issuer_server import IssuerHouse
from tests.support.moment import now, today
from tests.support.node import needs_node
from tests.support.oidc import CLIENT, Provider, provider
from tests.support.waiting import HANG_SECONDS
from tests.support.web import post
from tests.system.test_examples import _load

pytestmark = pytest.mark.thorough

AUDIENCE: Final = "urn:hubbub-issuer"
APP: Final = "http://127.0.0.1:1"


class _Clock:
    """This machine's, moved ahead."""

    ahead = 0.0

    def __call__(self) -> float:
        return now() + self.ahead


@contextmanager
def _issuer(
    catalog_files: CatalogFiles, redis_url: str, folder: Path, address: str, clock: _Clock
) -> Iterator[IssuerHouse]:
    """One whose accounts are those of a provider at this address."""
    keys = ProviderKeys(address, None, clock)
    subjects = Subjects(address, keys, (CLIENT, AUDIENCE))
    house = IssuerHouse(catalog_files, folder)
    with house.serving(redis_url, subjects=subjects):
        yield house


@pytest.fixture(scope="module")
def logins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with provider(tmp_path_factory.mktemp("provider"), APP) as login_provider:
        yield login_provider


def _issuer_reply(house: IssuerHouse, token: str) -> tuple[int, str]:
    """What the issuer answers who shows this, and why."""
    _, request = house.question({("theme", today()): 1})
    headers = {"authorization": f"Bearer {token}"}
    answer = post(f"{house.url}/v1/tokens", content=request, headers=headers)
    is_refused = answer.status_code != 200
    return answer.status_code, answer.json()["detail"] if is_refused else ""


@needs_node
def test_the_subject_of_a_provider_token_is_an_account(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path, logins: Provider
) -> None:
    """One for each person, however often they log in; and keys are accounts as before."""
    with _issuer(catalog_files, redis_url, tmp_path, logins.issuer, _Clock()) as house:
        tokens = [logins.id_token("ana"), logins.id_token("bo"), logins.script_token(AUDIENCE)]
        tokens.append(house.account("ana"))
        counts = [len(house.mint(token, "theme", today(), 1)) for token in tokens]
        assert counts == [1, 1, 1, 1]
        again = [logins.id_token("ana"), logins.script_token(AUDIENCE)]
        assert [len(house.mint(token, "theme", today(), 1)) for token in again] == [0, 0]
        assert house.app is not None
        assert house.app.counts == {"issued": 6}


@needs_node
def test_a_foreign_expired_or_unsigned_login_token_is_refused(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path, logins: Provider
) -> None:
    clock = _Clock()
    with _issuer(catalog_files, redis_url, tmp_path, logins.issuer, clock) as house:
        token = logins.id_token("ana")
        head, body, signature = token.split(".")
        unsigned = f"eyJhbGciOiJub25lIn0.{body}."
        wrong = {
            logins.script_token("urn:somebody-else"): 'for another audience, "urn:somebody-else"',
            unsigned: "not signed by the provider",
            f"{head}.{body[:-4]}AAAA.{signature}": "not signed by the provider",
            f"{head}.{body}.": "not signed by the provider",
            "a.b.c": "not signed by the provider",
            token.replace(".", ""): "not the key of an account",
        }
        for bad_token, why in wrong.items():
            status, detail = _issuer_reply(house, bad_token)
            assert (status, why in detail) == (401, True), detail
        clock.ahead = 600 + 3600
        status, detail = _issuer_reply(house, token)
        assert (status, "the token expired" in detail) == (401, True), detail
        clock.ahead = 0
        with provider(tmp_path, APP) as other:  # which signs by the same key
            status, detail = _issuer_reply(house, other.id_token("ana"))
        assert (status, "the token's issuer is not" in detail) == (401, True), detail
        assert house.app is not None
        assert house.app.tokens["issued"] == 0
        assert _issuer_reply(house, token) == (200, ""), "none of that has used anything up"


@needs_node
def test_the_provider_may_rotate_its_keys(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    """What the former one signed holds while it is among them; the new one is looked up once."""
    first, second = (
        RSAKey.generate_key(2048, {"kid": name, "use": "sig", "alg": "RS256"})
        for name in ("first", "second")
    )

    def with_keys(port: int, *keys: RSAKey) -> Any:
        jwks = KeySet([*keys]).as_dict(private=True)
        return provider(tmp_path, APP, port=port, jwks=jwks)

    clock, port = _Clock(), free_port()
    with _issuer(catalog_files, redis_url, tmp_path, f"http://127.0.0.1:{port}", clock) as house:
        with with_keys(port, first) as login_provider:
            old = login_provider.id_token("ana")
            assert _issuer_reply(house, old) == (200, "")
        with with_keys(port, second, first) as login_provider:
            new = login_provider.id_token("bo")
            clock.ahead = 11  # it asks for keys no more than every ten seconds
            assert [_issuer_reply(house, token) for token in (new, old)] == [(200, "")] * 2
        with with_keys(port, second):
            clock.ahead = 30
            answers = [_issuer_reply(house, token) for token in (new, old)]
            assert answers == [(200, "")] * 2, "keys are known for an hour"
        with with_keys(port, first) as other:  # which is asked for no key that it had before
            stolen = other.id_token("eve")
        with with_keys(port, second):
            clock.ahead = 3700 - 60
            status, detail = _issuer_reply(house, stolen)
            assert (status, "no key of the provider signed" in detail) == (401, True), detail


@needs_node
async def test_while_the_provider_is_away_reports_wait_and_then_go(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    """Asked as examples/login_tokens.py does it."""
    port = free_port()
    with provider(tmp_path, APP, port=port) as login_provider:
        token = login_provider.id_token("ana")

    def devices(house: IssuerHouse, shuffler: str) -> None:
        ask = _load("login_tokens").asking(house.url, lambda: token)
        transport = transport_to(shuffler, roots=None, insecure=True)
        clock = FakeClock()
        options: Any = {"hold_seconds": None, "ask_issuer": ask_by_app(ask), "clock": clock}
        with Client(house.bundle, MemoryState(), transport, **options) as client:
            client.report("theme", "dark")
            assert not client.flush(1)
            assert (client.waiting, client.dropped) == (1, {})
            status, detail = _issuer_reply(house, token)
            assert (status, "does not answer as one" in detail) == (503, True), detail
            clock.advance(600)  # who has no tokens asks again at most so much later
            issuers_clock.ahead = 11  # the issuer asks the provider no more than every ten seconds
            with provider(tmp_path, APP, port=port):
                assert client.flush(HANG_SECONDS)

    address, issuers_clock = f"http://127.0.0.1:{port}", _Clock()
    with _issuer(catalog_files, redis_url, tmp_path, address, issuers_clock) as house:
        async with serving_front(house.made, redis_url, redeemer=Redeemer(house.key)) as front:
            await asyncio.to_thread(devices, house, front.address)
            assert front.admission.counts == {"taken": 1}


@pytest.mark.parametrize("fails", [False, True], ids=["slow", "failing"])
async def test_unknown_key_ids_cause_one_request_to_the_provider_in_ten_seconds(
    *, fails: bool
) -> None:
    issuer, key = "https://id.example.org", RSAKey.generate_key(2048, {"kid": "own"})
    header = {"alg": "RS256", "kid": "made up"}
    token = jwt.encode(header, {"sub": "eve"}, RSAKey.generate_key(2048, {"kid": "made up"}))
    urls: list[str] = []

    class Keys(ProviderKeys):
        async def ask(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
            assert headers is None
            urls.append(url)
            await asyncio.sleep(0)  # others ask meanwhile
            if fails:
                raise self.down(OSError())
            endpoints = dict.fromkeys(
                ("authorization_endpoint", "token_endpoint", "jwks_uri"), f"{issuer}/keys"
            )
            return dict(
                KeySet([key]).as_dict()
                if url.endswith("/keys")
                else {"issuer": issuer, **endpoints}
            )

    clock = _Clock()

    async def flood(keys: ProviderKeys) -> None:
        answers = await asyncio.gather(
            *(keys.open_token(token) for _ in range(60)), return_exceptions=True
        )
        assert {type(answer) for answer in answers} == {
            ServiceUnavailable if fails else AccessRefused
        }

    keys = Keys(issuer, None, clock)
    await flood(keys)
    assert len(urls) == (1 if fails else 2), "the description, and the keys"
    await flood(keys)
    assert len(urls) == (1 if fails else 2)
    clock.ahead += 11
    await flood(keys)
    assert len(urls) == (2 if fails else 3)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "there are no accounts"),
        (["--oidc", "https://id.example.org"], "without --oidc-audience"),
        (
            ["--oidc", "http://id.example.org", "--oidc-audience", "app"],
            "not an address of a provider",
        ),
        (["--oidc", "id.example.org", "--oidc-audience", "app"], "not an address of a provider"),
        (["--accounts", "accounts", "--oidc-audience", "app"], "--oidc-audience and --oidc-roots"),
    ],
)
def test_an_issuer_with_missing_or_conflicting_accounts_does_not_start(
    more: list[str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1:1/0")
    needed = ["--insecure", "--streams", "streams.json", "--token-key", "tokens.key"]
    with pytest.raises(BadParameter, match=why):
        parse([*needed, *more])


def test_an_invalid_authority_file_of_a_provider_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeysUnusable, match="no authorities"):
        ProviderKeys("https://id.example.org", tmp_path / "none.pem", now)
