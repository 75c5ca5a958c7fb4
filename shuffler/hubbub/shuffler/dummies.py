"""Dummies: evenly drawn payloads, sealed as a device seals a report, for a crowd to leave with."""

import secrets

from hubbub.conservation import Window
from hubbub.errors import BadParameter
from hubbub.sealing import SEAL_BYTES, seal, seal_info
from hubbub.shuffler.streams import Stream, StreamTable


def sealed_dummies(table: StreamTable, window: Window, stream: Stream, number: int) -> list[bytes]:
    """So many of a window, which nobody can tell from reports of the same length.

    PRIVACY: every value is as likely as any other, by the system's own coins; what is not even, or
        can be foretold, hides nobody.

    Raises:
        BadParameter: the table has no public key for the window.
    """
    key = table.public_key(window)
    if key is None:
        raise BadParameter(f"{window.name}: there is no public key to seal dummies with")
    info = seal_info(window.stream, window.epoch)
    length = stream.sealed_bytes - SEAL_BYTES[stream.kem]
    return [
        seal(secrets.randbelow(stream.values).to_bytes(length, "little"), key, info)
        for _ in range(number)
    ]
