"""Attacks on tokens, and accidents: none is spent twice, and no report is lost that could go."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client, FolderState, transport_to
from hubbub.client.testing import FakeClock
from hubbub.client.transport.contract import SealedReport as Sent
from hubbub.client.transport.contract import TryAgain
from hubbub.client.transport.issuer_connection import ask_issuer
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import free_port
from hubbub.keys.issuer_and_gateway_keys import GATEWAY_KEY, make_gateway_key, read_gateway
from hubbub.runtime.tls import TlsFolder
from hubbub.shuffler.http_door import OhttpGateway, read_gateway_keys
from hubbub.shuffler.token_checks import Redeemer
from hubbub.tokens import poprf
from hubbub.tokens.token import Minted, new_nonce, token_info
from hubbub.wire.v1.services_pb2 import Reason, SubmitRequest, SubmitResponse, TokenResponse
from tests.conftest import CatalogFiles
from tests.services.test_guards import Front, serving_front
from tests.services.test_http_door import open_door
from tests.support.client_parts import fetch_tokens, send_once, store_reports
from tests.support.issuer_server import DAY, Issuance, IssuerHouse
from tests.support.moment import today
from tests.support.relay_process import Relay
from tests.support.servers import redis_server
from tests.support.waiting import HANG_SECONDS

_SPENT, _NO_TOKEN = Reason.REASON_TOKEN_SPENT, Reason.REASON_NO_TOKEN


def _paid(house: IssuerHouse, tokens: Sequence[Minted], epoch: int) -> SubmitRequest:
    """A report of its own for each token."""
    reports = [house.report("homepage", epoch) for _ in tokens]
    spent = [token.token(report.sealed) for token, report in zip(tokens, reports, strict=True)]
    return SubmitRequest(reports=reports, tokens=spent)


def _minted(issued: Sequence[Issuance]) -> list[Minted]:
    return [token.minted for token in issued]


def _issued_for(house: IssuerHouse, epoch: int) -> Minted:
    """A token that was issued for an epoch while that was open."""
    nonce = new_nonce()
    return Minted(nonce, poprf.evaluate(house.key, nonce, token_info("homepage", epoch)))


def test_an_issuer_that_dies_before_its_answer_gives_the_same_tokens_once_it_is_back(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    """And none to whoever takes the moment to ask for others."""
    house, epoch = IssuerHouse(catalog_files, tmp_path), today()
    key = house.account("one")
    drawn, request = house.question({("homepage", epoch): 5})
    with house.serving(redis_url):
        house.send(key, request)  # it counted that, and nobody heard the answer
    with house.serving(redis_url, anew=False):
        assert not house.mint(key, "homepage", epoch, 5)
        [issued] = TokenResponse.FromString(house.send(key, request)).issued
        evaluation = (issued.evaluated, issued.proof, house.public, token_info("homepage", epoch))
        assert len(poprf.finalize(drawn[0], *evaluation)) == 5


async def test_the_same_tokens_at_both_doors_at_once_take_one_report_each(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    house, epoch = IssuerHouse(catalog_files, tmp_path), today()

    def refused(answers: Sequence[SubmitResponse]) -> list[set[int]]:
        return [{refusal.index for refusal in answer.refused} for answer in answers]

    key = house.account("one")
    async with open_door(house.made, redis_url, redeemer=Redeemer(house.key)) as door:
        with house.serving(redis_url):
            issued = await asyncio.to_thread(house.mint, key, "homepage", epoch, 60)
        request, other = (_paid(house, _minted(issued), epoch) for _ in range(2))
        answers = await asyncio.gather(door.front.send(request), door.send(other))
        reasons = {refusal.reason for answer in answers for refusal in answer.refused}
        assert reasons == {_SPENT}
        first, second = refused(answers)
        assert first ^ second == set(range(60))
        assert not first & second
        [terms] = (await door.front.pool.report_counts()).values()
        assert (terms["acknowledged"], terms["pooled"]) == (60, 60)


async def test_a_token_in_fifty_requests_at_once_takes_one_report_for_each_redis(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    """Of two shufflers that share a Redis; also after the Redis was killed and is back."""
    house, epoch = IssuerHouse(catalog_files, tmp_path), today()
    redeemer = Redeemer(house.key)

    async def accepted_number(token: Minted, *fronts: Front) -> int:
        requests = [_paid(house, [token], epoch) for _ in range(50)]
        doors = [fronts[number % len(fronts)] for number in range(50)]
        answers = await asyncio.gather(*map(Front.send, doors, requests))
        reasons = [refusal.reason for answer in answers for refusal in answer.refused]
        assert set(reasons) == {_SPENT}
        return 50 - len(reasons)

    with ExitStack() as servers:
        kept: Any = {"appendonly": "yes", "appendfsync": "always"}
        port = servers.enter_context(redis_server(tmp_path / "redis", **kept))

        def restarted() -> None:
            servers.close()
            servers.enter_context(redis_server(tmp_path / "redis", port, **kept))

        url = f"redis://127.0.0.1:{port}"
        async with (
            serving_front(house.made, url, redeemer=redeemer) as first,
            serving_front(house.made, url, redeemer=redeemer) as second,
            serving_front(house.made, redis_url, redeemer=redeemer) as apart,
        ):
            token = _issued_for(house, epoch)
            assert await accepted_number(token, first, second) == 1
            assert await accepted_number(token, apart) == 1, (
                "what is spent is known to one Redis alone"
            )
            await asyncio.to_thread(restarted)
            assert await accepted_number(token, first, second) == 0
            assert await accepted_number(_issued_for(house, epoch), second, first) == 1
            [terms] = (await first.pool.report_counts()).values()
            assert (terms["acknowledged"], terms["pooled"]) == (2, 2)


async def test_a_token_that_was_spent_directly_is_spent_through_a_relay_too(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    house, epoch = IssuerHouse(catalog_files, tmp_path), today()
    write_certificates(tmp_path / "tls", {})
    make_gateway_key(tmp_path / "tls")
    token = _issued_for(house, epoch)
    keys = read_gateway_keys(tmp_path / "tls" / GATEWAY_KEY)
    more: Any = {"redeemer": Redeemer(house.key), "gateway": OhttpGateway(keys, ())}
    tls = TlsFolder(tmp_path / "tls", "shuffler")
    async with open_door(house.made, redis_url, tls=tls, **more) as door:
        relay = Relay(tmp_path / "tls", f"https://127.0.0.1:{door.port}", free_port())
        assert not (await door.front.send(_paid(house, [token], epoch))).refused

        def relayed() -> None:
            other = house.report("homepage", epoch)
            with relay.running():
                way = relay.transport(read_gateway(tmp_path / "tls"))
                sent = [
                    Sent(
                        stream=other.stream,
                        epoch=other.epoch,
                        key_id=other.key_id,
                        sealed=other.sealed,
                        token=token.token(other.sealed),
                    )
                ]
                assert way.submit(sent, HANG_SECONDS).results == ["refused_token_spent"]
                way.close()

        await asyncio.to_thread(relayed)


@pytest.mark.parametrize(
    ("days", "reason"),
    [(0, None), (-1, None), (-3, Reason.REASON_EXPIRED), (3, Reason.REASON_NOT_YET)],
    ids=["its own", "in its grace", "when it is closed", "long before"],
)
async def test_a_token_is_valid_while_its_epoch_is_open(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path, days: int, reason: int | None
) -> None:
    """And what is refused for its time has spent no token."""
    house, epoch = IssuerHouse(catalog_files, tmp_path), today() + days
    token = _issued_for(house, epoch)
    async with serving_front(house.made, redis_url, redeemer=Redeemer(house.key)) as front:
        answer = await front.send(_paid(house, [token], epoch))
        assert [refusal.reason for refusal in answer.refused] == (
            [] if reason is None else [reason]
        )
        spent = await front.pool.server.client.keys("shuffler:spent*")
        assert len(spent) == (1 if reason is None else 0)
        other = await front.send(_paid(house, [_issued_for(house, epoch - 1)], epoch))
        wrong = _NO_TOKEN if reason is None else reason
        assert [refusal.reason for refusal in other.refused] == [wrong], "one of the epoch before"


async def test_reports_wait_while_the_issuer_changes_its_key_and_then_leave(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    """The key changes between the asking for a token and its spending, at the edge of an epoch."""
    former, other = (IssuerHouse(catalog_files, tmp_path / name) for name in ("former", "other"))
    state = FolderState(tmp_path / "device")
    clock = FakeClock(today() * DAY - 0.5)  # tokens of the day to come are asked for by then

    def device(house: IssuerHouse, address: str) -> Client:
        transport = transport_to(address, roots=None, insecure=True)
        options: Any = {"hold_seconds": None, "clock": clock}
        ask = ask_issuer(house.url, house.account(f"one{house.port}"), None)
        return Client(house.bundle, state, transport, ask_issuer=ask, **options)

    def devices(address: str) -> None:
        with former.serving(redis_url):
            client = device(former, address)
            client.report("theme", "dark")
            store_reports(client)
            fetch_tokens(client, HANG_SECONDS)
            clock.advance(1)
            client.report("theme", "light")
            store_reports(client)
            fetch_tokens(client, HANG_SECONDS)
            send_once(client, HANG_SECONDS)
            assert (client.waiting, client.dropped) == (2, {})
        with other.serving(redis_url):
            client = device(other, address)
            assert client.flush(HANG_SECONDS), client.dropped
            assert client.dropped == {}
        state.close()

    async with serving_front(other.made, redis_url, redeemer=Redeemer(other.key)) as front:
        await asyncio.to_thread(devices, front.address)
        assert front.admission.counts["taken"] == 2
        [counts, another] = (await front.pool.report_counts()).values()
        assert counts["acknowledged"] + another["acknowledged"] == 2


async def test_an_account_removed_during_an_epoch_gets_no_more_tokens(
    catalog_files: CatalogFiles, redis_url: str, tmp_path: Path
) -> None:
    house, epoch = IssuerHouse(catalog_files, tmp_path), today()
    with house.serving(redis_url):
        key = house.account("one")
        tokens = _minted(house.mint(key, "homepage", epoch, 3))
        house.accounts.write_text("")
        house.account("another")
        with pytest.raises(TryAgain, match="issuer_http_401"):
            house.mint(key, "homepage", epoch + 1, 3)
    async with serving_front(house.made, redis_url, redeemer=Redeemer(house.key)) as front:
        assert not (await front.send(_paid(house, tokens, epoch))).refused
