"""A device's files as targets: databases, witnesses, journals, damaged or of hostile content."""

import json
import random
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.client.state import payload_journal as journal
from hubbub.client.state.contract import PendingPayload
from tests.fuzz.devices import START, Room, live
from tests.fuzz.documents import varied
from tests.fuzz.rows import LONGEST_ROWS, database_of, has_turned, tables_of
from tests.fuzz.rows import rewritten as varied_rows
from tests.fuzz.target import Target, scratch
from tests.support.bundles import DAY

# Bytes of a database with small pages.
LONGEST_FILE = 40_000
# A part of the journals is more than read: a device lives with it.
LIVES = 8


def states() -> Mapping[str, Target]:  # noqa: C901 a target is a few lines
    """Targets by name."""
    room = Room(scratch())
    bases = room.bases
    witness = next(name for name in bases[0].files if name.endswith(".witness"))

    def damaged(data: bytes) -> None:
        """data: which base, then the file."""
        if not data:
            return
        base, database = bases[data[0] % len(bases)], data[1:]
        room.furnish(base, database)
        live(room, base, _chance(data), trusted=not has_turned(base, database))

    def rewritten(data: bytes) -> None:
        """data: which base, and what its tables hold."""
        try:
            document = json.loads(data)
            base = bases[document["base"]]
            tables = document["tables"]
            database = database_of(base, tables)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            return
        room.furnish(base, database)
        live(room, base, _chance(data), trusted=not has_turned(base, database))

    def witnessed(data: bytes) -> None:
        """data: which base, then its witness; the database is as it was."""
        if not data:
            return
        base = bases[data[0] % len(bases)]
        room.furnish(base)
        (room.state.parent / witness).write_bytes(data[1:])
        live(room, base, _chance(data), trusted=True)

    def journalled(data: bytes) -> None:
        """data: which base, then a journal that a process left."""
        if not data:
            return
        list(journal._records(data[1:]))
        if _chance(data).randrange(LIVES) == 0:
            # What was drawn before the person allowed less may leave: so not the base that does.
            base = bases[data[0] % 2]
            room.furnish(base)
            (room.state / "1-a.journal").write_bytes(data[1:])
            live(room, base, _chance(data), trusted=True)

    def noted(data: bytes) -> None:
        """data: what a process that left a journal had drawn."""
        try:
            drawn = [_pending_payload(load) for load in json.loads(data)]
            content = _journal(drawn)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error):
            return
        journalled(bytes([_chance(data).randrange(3)]) + content)

    numbered = [bytes([number]) for number in range(len(bases))]
    whole = [_journal([_pending_payload(entry) for entry in _NOTED[:count]]) for count in (1, 3)]
    return {
        "state_file": Target(
            [n + base.database for n, base in zip(numbered, bases, strict=True)],
            damaged,
            _flipped,
            LONGEST_FILE,
        ),
        "state_rows": Target(
            [
                json.dumps({"base": number, "tables": tables_of(base)}).encode()
                for number, base in enumerate(bases)
            ],
            rewritten,
            varied_rows,
            LONGEST_ROWS,
        ),
        "witness": Target(
            [n + base.files[witness] for n, base in zip(numbered, bases, strict=True)],
            witnessed,
            _mutate_after_first_byte(varied),
        ),
        "journal_life": Target([b"\0" + example for example in whole], journalled),
        "journal_noted": Target([json.dumps(_NOTED).encode()], noted, varied),
    }


_NOTED = [
    {
        "stream": stream,
        "epoch": START // seconds + 3 * DAY // seconds,
        "tag": tag,
        "payload": payload,
        "generation": 0,
        "made": START + 3.0 * DAY,
    }
    for stream, seconds, tag, payload in (
        ("theme", DAY, "", "01"),
        ("crashed/0.5", 3600, "", "00"),
        ("homepage", DAY, "0123456789abcdef", "000000"),
    )
]


def _chance(data: bytes) -> random.Random:
    return random.Random(zlib.crc32(data))


def _pending_payload(entry: Any) -> PendingPayload:
    payload = bytes.fromhex(entry["payload"])
    return PendingPayload(**{**entry, "payload": payload})


def _journal(drawn: Sequence[PendingPayload]) -> bytes:
    """A journal as a process leaves it, every checksum right."""
    out = b""
    for number, pending in enumerate(drawn, start=1):
        body = journal._encode(pending)
        out += journal._RECORD.pack(len(body), number, journal._checksum(number, body)) + body
    return out + bytes(4)


def _flipped(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """As damage is: some bytes, a page, or the end are others."""
    data = bytearray(chance.choice(examples))
    for _ in range(chance.choice((1, 1, 2, 4, 16, 64))):
        at = chance.randrange(len(data))
        match chance.randrange(8):
            case 0 | 1 | 2:
                data[at] ^= 1 << chance.randrange(8)
            case 3 | 4:
                data[at] = chance.randrange(256)
            case 5:
                data[at : at + 8] = chance.randbytes(8)
            case 6:
                page = 1 + at // 512 * 512
                data[page : page + 512] = bytes(len(data[page : page + 512]))
            case _ if chance.random() < 0.1:
                del data[at + 1 :]
    return bytes(data)


def _mutate_after_first_byte(mutate: Any) -> Any:
    """Mutates what follows the first byte."""

    def mutate_rest(chance: random.Random, examples: Sequence[bytes]) -> bytes:
        example = chance.choice(examples) or b"\0"
        return example[:1] + bytes(mutate(chance, [example[1:]]))

    return mutate_rest
