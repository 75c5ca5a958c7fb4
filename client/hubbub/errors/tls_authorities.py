"""The TLS authorities in a PEM text, and a context that trusts them."""

import re
import ssl
from pathlib import Path
from typing import Any, Final

from hubbub.errors import KeysUnusable

_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


def trusting(pem: str | None, *, system: bool = False) -> ssl.SSLContext:
    """A caller's context that trusts the authorities in a PEM; None for the system's.

    Every context of ours that checks a certificate comes from here.

    Args:
        pem: authorities of somebody's own.
        system: trust the system's authorities besides.

    Raises:
        ssl.SSLError: the PEM contains no certificate.
    """
    try:
        context = ssl.create_default_context(cadata=pem)  # noqa: TID251 this is the place
    except ssl.SSLError:
        raise
    except OSError:  # of the file in SSLKEYLOGFILE, which antivirus programs set for every process
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if pem:
            context.load_verify_locations(cadata=pem)
        else:
            context.load_default_certs()
    if pem:
        if system:
            context.load_default_certs()
        # Python 3.13 refuses an authority whose form RFC 5280 forbids, a trusted one too. Bundles
        # and folders of version 0.2 and before contain authorities without a key usage. They are
        # trusted explicitly; chain, names and dates are still checked.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def trusting_file(path: Path | str | None) -> ssl.SSLContext:
    """Like `trusting`, with the authorities in a file. Raises KeysUnusable if it has none."""
    try:
        return trusting(pem_text(Path(path)) if path else None)
    except OSError as error:
        raise KeysUnusable(f"{path}: no authorities: {error.strerror}") from error


def pem_text(path: Path) -> str:
    """The text of a PEM file, without non-ASCII letters in its comments."""
    return path.read_text(encoding="ascii", errors="ignore")


def authorities_in(pem: str) -> list[tuple[str, str]]:
    """Each certificate in a PEM: its common name, empty if it has none, and its text."""
    return [(_common_name(block), block) for block in _BLOCK.findall(pem)]


def _common_name(block: str) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=block)
    except (ssl.SSLError, ValueError):
        return ""
    authorities: list[Any] = context.get_ca_certs()
    return next((name for authority in authorities for name in common_names(authority)), "")


def common_names(certificate: Any) -> list[str]:
    """The common names of a certificate, as Python's `ssl` decodes it."""
    parts = [pair for part in certificate.get("subject", ()) for pair in part]
    return [value for name, value in parts if name == "commonName"]
