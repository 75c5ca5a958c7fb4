"""The authority that an aggregator's certificate must be of, among those of `ca.pem`."""

import re
import ssl
from pathlib import Path
from typing import Any, Final

from hubbub.errors import ServiceUnavailable
from hubbub.errors.unreadable import unreadable

_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)
# What `hubbub keys tls` calls the authorities of roles that do not answer over HTTP.
_OTHERS: Final = tuple(f"hubbub {role} authority" for role in ("shuffler", "redis", "analyst"))


def authority_in(path: Path) -> str:
    """Of the authorities in a file all but those of other roles than the aggregator."""
    try:
        blocks = _BLOCK.findall(path.read_text(encoding="ascii", errors="replace"))
        wanted = [block for block in blocks if _subject(block) not in _OTHERS]
    except (OSError, ssl.SSLError, ValueError) as error:
        why = unreadable(error)
        raise ServiceUnavailable(f"{path}: cannot be read as certificates: {why}") from error
    if not wanted:
        raise ServiceUnavailable(f"{path}: has no authority of the aggregator; give ca.pem")
    return "\n".join(wanted)


def _subject(block: str) -> str:
    """What an authority is called."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=block)
    names: Any = [told["subject"] for told in context.get_ca_certs()]
    return next((v for name in names for part in name for k, v in part if k == "commonName"), "")
