"""Answers of a hostile shuffler to a device: nothing is raised, or lost, or settled wrongly.

The answer's bytes go through the client's own channel, as gRPC would hand them over.
"""

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import grpc
from google.protobuf.message import DecodeError

from hubbub.client import transport_to
from hubbub.client.testing import FakeClock
from hubbub.wire.v1.services_pb2 import Refusal, SubmitRequest, SubmitResponse
from tests.conftest import CATALOG
from tests.fuzz.documents import answers_in, other_answers
from tests.fuzz.mutate import mutated, odd
from tests.fuzz.target import Target, scratch
from tests.support.bundles import DAY, make_signed
from tests.support.devices import idle_client

START = 20_000 * DAY
NOW = START + 4000.0
FLUSH_SECONDS = 5.0  # of a clock that does not wait
# The one status that may say that these bytes can never be taken.
FINAL = grpc.StatusCode.INVALID_ARGUMENT
HINTS = ("grpc-retry-pushback-ms", "grpc-status-details-bin", "x")
VALUES = ("", "0", "-1", "1e9", "9" * 30, "9" * 5000, "\u0661", "\u00b2", "nan", "500", " 7", "\0")


class Metadatum(NamedTuple):
    key: str
    value: str | bytes


class StatusError(grpc.RpcError):
    """A status that is no OK, with its trailing metadata."""

    def __init__(self, code: grpc.StatusCode, trailing: Any, details: str) -> None:
        super().__init__()
        self._status = code, trailing, details

    def code(self) -> grpc.StatusCode:
        return self._status[0]

    def trailing_metadata(self) -> Any:
        return self._status[1]

    def details(self) -> str:
        return self._status[2]


class Wire:
    """What gRPC is to a client: a channel whose calls are answered with what it is given.

    The first byte says the status, the rest the message.
    """

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.answers = list(answers)
        self.statuses: list[grpc.StatusCode] = []

    def unary_unary(self, _method: str, *_: Any, **options: Any) -> Any:
        deserialize = options["response_deserializer"]

        def call(_request: SubmitRequest, timeout: float, **_: Any) -> Any:
            assert timeout > 0
            data = self.answers.pop(0) if self.answers else b"\0"
            codes = list(grpc.StatusCode)
            code = codes[data[0] % len(codes)] if data else grpc.StatusCode.OK
            if code is grpc.StatusCode.OK:
                try:
                    answer = deserialize(data[1:])
                except DecodeError:
                    code = grpc.StatusCode.INTERNAL  # as gRPC has it
                else:
                    self.statuses.append(code)
                    return answer
            self.statuses.append(code)
            raise StatusError(code, _trailing(data), "said \x1b[2J by a stranger")

        return call

    def close(self) -> None:
        pass


def shufflers() -> Mapping[str, Target]:
    """Targets by name."""
    signed = make_signed(scratch(), CATALOG, start=START - 14 * DAY)

    def answered(data: bytes) -> None:
        """data: a list of answers in hex, as JSON."""
        answers = answers_in(data)
        wire = Wire(answers)
        with mock.patch.object(grpc, "insecure_channel", return_value=wire):
            live(answers, wire)

    def live(answers: Sequence[bytes], wire: Wire) -> None:
        transport = transport_to("127.0.0.1:1", roots=None, insecure=True)
        client = idle_client(signed.bundle, transport=transport, strict=False, clock=FakeClock(NOW))
        queued = 0
        for name, value in (("theme", "dark"), ("crashed", "no"), ("crashed", "yes")):
            queued += client.report(name, value).name == "QUEUED"
        for _ in answers:
            count, before = len(wire.statuses), (client.waiting, client.dropped)
            client.flush(FLUSH_SECONDS)
            if not {grpc.StatusCode.OK, FINAL} & set(wire.statuses[count:]):
                assert (client.waiting, client.dropped) == before, "lost by a status"
        view = client.ledger()
        fates = [payload.fate for payload in view.payloads]
        assert len(fates) == queued, "a report is gone without a word"
        assert fates.count("waiting") == client.waiting
        assert sum(client.dropped.values()) == len(fates) - fates.count("waiting") - fates.count(
            "sent"
        ), "what was given up is not counted"
        client.close(FLUSH_SECONDS)

    def one_answer(data: bytes) -> None:
        answered(json.dumps([data.hex()]).encode())

    examples = [
        SubmitResponse(),
        SubmitResponse(refused=[Refusal(index=0, reason=1), Refusal(index=2, reason=4)]),  # type: ignore[arg-type]
        SubmitResponse(refused=[Refusal(index=1, reason=77), Refusal(index=9, reason=0)]),  # type: ignore[arg-type]
    ]
    whole = [b"\0" + example.SerializeToString() for example in examples]
    whole += [bytes([number, 0, number]) for number in range(17)]
    several = json.dumps([data.hex() for data in (whole[11], whole[2], whole[0])]).encode()
    return {
        "answer_submit": Target(whole, one_answer, _odd),
        "answers_submit": Target([several], answered, partial(other_answers, mutate=_odd)),
    }


def _trailing(data: bytes) -> Any:
    if len(data) < 3:
        return None
    value: Any = VALUES[data[1] % len(VALUES)]
    if data[2] % 3 == 0:
        value = data[2:].decode("latin-1")
    # Keys whose name ends so carry bytes.
    name = HINTS[data[2] % len(HINTS)]
    metadatum = Metadatum(name, value.encode() if name.endswith("-bin") else value)
    return (metadatum,) * (1 + data[1] % 2)


def _odd(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    example = chance.choice(examples) or b"\0"
    if chance.random() < 0.5:
        with suppress(DecodeError):
            return example[:1] + odd(chance, example[1:], SubmitResponse)
    return mutated(chance, examples)
