"""An issuer behind real HTTP, before a real Redis; and devices of a test that ask it by hand."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hubbub.bundles import Bundle
from hubbub.bundles.tokens import TokenIssuer, Tokens
from hubbub.client.transport.issuer_connection import ask_issuer
from hubbub.installation.child_process import free_port
from hubbub.issuer.accounts import Accounts, add_account
from hubbub.issuer.issuing import Subjects, TokensApp, read_issued_streams
from hubbub.runtime.http.connection_limit import OpenConnections
from hubbub.runtime.http.server import HttpDoor
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.sealing.hpke import seal, seal_info
from hubbub.signing.sign_bundle import stream_table
from hubbub.tokens import poprf
from hubbub.tokens.token import Minted, new_nonce, token_info
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import TokenRequest, TokenResponse, WantedTokens
from tests.conftest import CatalogFiles
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS

DAY = 86_400


@dataclass(frozen=True)
class Issuance:
    """What an issuer saw of a token, and what became of it."""

    blinded: bytes
    minted: Minted


class IssuerHouse:
    """A made catalog with an issuer of its own."""

    def __init__(self, catalog_files: CatalogFiles, folder: Path, *, devices: int = 1) -> None:
        self.key, self.public = poprf.new_key()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        tokens = TokenIssuer(Tokens(self.url, devices), self.public)
        self.bundle: Bundle = replace(catalog_files.bundle, tokens=tokens)
        folder.mkdir(exist_ok=True)
        streams = folder / "issued.json"
        streams.write_text(stream_table(self.bundle))
        self.made = replace(catalog_files, bundle=self.bundle, streams=streams, folder=folder)
        self.accounts = folder / "accounts"
        self.app: TokensApp | None = None

    def account(self, name: str, *, vouches: bool = False) -> str:
        key = add_account(self.accounts, name, vouches=vouches)
        if self.app:
            self.app.use(read_issued_streams(self.made.streams), Accounts(self.accounts))
        return key

    @contextmanager
    def serving(
        self,
        redis_url: str,
        limiter: Limiter | None = None,
        subjects: Subjects | None = None,
        *,
        anew: bool = True,
    ) -> Iterator[None]:
        """In a thread of its own, on its own loop. anew: what accounts had is forgotten first."""
        self.accounts.touch()
        started, ended = threading.Event(), threading.Event()
        failed: list[BaseException] = []

        async def body() -> None:
            server = await connect_redis(redis_url)
            for key in await server.client.keys("issuer:*") if anew else ():
                await server.client.delete(key)
            streams = read_issued_streams(self.made.streams)
            options: Any = {"limiter": Limiter(0, 1) if limiter is None else limiter, "clock": now}
            options["subjects"] = subjects
            accounts = Accounts(self.accounts)
            self.app = TokensApp(streams, accounts, server, self.key, **options)
            door = HttpDoor(
                f"127.0.0.1:{self.port}",
                self.app,
                tls=None,
                connections=OpenConnections((), Counter(), most=1000, max_per_address=1000),
            )
            await door.start()
            started.set()
            await asyncio.to_thread(ended.wait)
            await door.stop(1)
            await server.close()

        def run() -> None:
            try:
                asyncio.run(body())
            except BaseException as error:
                failed.append(error)
                raise
            finally:
                started.set()

        thread = threading.Thread(target=run)
        thread.start()
        started.wait(HANG_SECONDS)
        try:
            assert not failed
            yield
        finally:
            ended.set()
            thread.join()

    def ask(self, key: str, wanted: Mapping[tuple[str, int], int]) -> TokenResponse:
        """What an account is answered that wants so many tokens of streams in epochs."""
        return TokenResponse.FromString(self.send(key, self.question(wanted)[1]))

    def mint(self, key: str, stream: str, epoch: int, number: int) -> list[Issuance]:
        """So many tokens of a stream in an epoch, as far as the issuer gives them."""
        [drawn], request = self.question({(stream, epoch): number})
        [issued] = TokenResponse.FromString(self.send(key, request)).issued
        if not issued.evaluated:
            return []
        drawn = drawn[: len(issued.evaluated)]
        info = token_info(stream, epoch)
        arguments = (issued.evaluated, issued.proof, self.public, info)
        outputs = poprf.finalize(drawn, *arguments)
        return [
            Issuance(blinded.element, Minted(nonce, output))
            for (nonce, blinded), output in zip(drawn, outputs, strict=True)
        ]

    def report(self, stream: str, epoch: int) -> SealedReport:
        key = self.bundle.keys[0]
        size = self.bundle.streams[stream].randomizer.layout.payload_bytes
        sealed = seal(bytes(size), key.half("x25519"), seal_info(stream, epoch))
        return SealedReport(stream=stream, epoch=epoch, key_id=key.id, sealed=sealed)

    def question(
        self, wanted: Mapping[tuple[str, int], int]
    ) -> tuple[list[list[tuple[bytes, poprf.Blinded]]], bytes]:
        drawn = [
            [
                (nonce, poprf.blind(nonce, poprf.new_blind()))
                for nonce in (new_nonce() for _ in range(number))
            ]
            for number in wanted.values()
        ]
        request = TokenRequest(
            wanted=[
                WantedTokens(stream=stream, epoch=epoch, blinded=[b.element for _, b in of])
                for (stream, epoch), of in zip(wanted, drawn, strict=True)
            ]
        )
        return drawn, request.SerializeToString()

    def send(self, key: str, request: bytes) -> bytes:
        return ask_issuer(self.url, key, None)(request, HANG_SECONDS)
