"""TLS: a folder with the authorities of the roles, and a certificate and key for each role.

A client that connects to a role trusts the authority of that role alone; a server accepts
certificates of any of the authorities, and then checks the role (docs/decisions/0230).
"""

import logging
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from cryptography import x509

from hubbub.errors import KeysUnusable, ServiceUnavailable
from hubbub.errors.address_checks import is_loopback
from hubbub.errors.tls_authorities import authorities_in

_log: Final = logging.getLogger("hubbub.runtime")

SERVERS: Final = ("shuffler", "aggregator", "redis")
"""The roles that are dialled."""

_OURS: Final = (*SERVERS, "analyst")
"""The roles that `hubbub keys tls` makes certificates for."""
_ROLE_AUTHORITY: Final = re.compile(r"hubbub [a-z]+ authority")
# The single authority of `hubbub keys tls` of version 0.1, for the certificates of all roles.
_OLD_AUTHORITY: Final = "hubbub authority"


@dataclass(frozen=True, slots=True)
class TlsFolder:
    """A folder with `ca.pem`, and `ROLE.pem` with `ROLE.key` for the role that uses it."""

    folder: Path
    role: str

    @property
    def authorities(self) -> bytes:
        """The certificates of all authorities, in PEM."""
        return self._read("ca.pem")

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that are read."""
        return (self.folder / "ca.pem", *self.pair)

    def server_configuration(self, *, mutual: bool) -> grpc.ServerCertificateConfiguration:
        """The gRPC settings of a server; if `mutual`, callers must show a certificate."""
        pair = (self._read(f"{self.role}.key"), self._read(f"{self.role}.pem"))
        authorities = self.authorities if mutual else None
        return grpc.ssl_server_certificate_configuration([pair], authorities)

    def channel_credentials(self, dialled: str) -> grpc.ChannelCredentials:
        """The gRPC credentials of a client. `dialled` is the role that the server must prove."""
        return grpc.ssl_channel_credentials(
            authorities_of(dialled, self._text()).encode(),
            self._read(f"{self.role}.key"),
            self._read(f"{self.role}.pem"),
        )

    def server_context(self, *, mutual: bool) -> ssl.SSLContext:
        """Like `server_configuration`, for a server of Python's own `ssl`."""
        # A service that requires no client certificates may use any authority, and needs no ca.pem.
        for name in (*(["ca.pem"] if mutual else []), f"{self.role}.pem", f"{self.role}.key"):
            self._read(name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(*self.pair)
            if mutual:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(cadata=self._text())
        except ssl.SSLError as error:
            raise KeysUnusable(
                f"{self.folder}: not certificates with their keys: {error.reason}; "
                "make them with: hubbub keys tls FOLDER"
            ) from error
        return context

    @property
    def pair(self) -> tuple[Path, Path]:
        """The files of the role's certificate and key."""
        return self.folder / f"{self.role}.pem", self.folder / f"{self.role}.key"

    def warn_if_old(self) -> None:
        """Logs a warning if one authority signs all roles, as version 0.1 made it."""
        if (self.folder / "ca.pem").exists() and made_by_0_1(self._text()):
            _log.warning(
                "%s: one authority for all roles, as version 0.1 made it: whoever has any of its "
                "certificates, even an analyst, can pose as the shuffler or the aggregator; make "
                "new ones: hubbub keys tls NEW-FOLDER (docs/operate/rotate-keys.md)",
                self.folder / "ca.pem",
            )

    def _text(self) -> str:
        return self.authorities.decode("ascii", "replace")

    def _read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise KeysUnusable(
                f"{self.folder / name}: cannot be read: {error.strerror}; "
                + (
                    "make certificates with: hubbub keys tls FOLDER"
                    if self.role in _OURS
                    else f"put {self.role}.pem and {self.role}.key there, of any authority"
                )
            ) from error


def common_name(role: str) -> str:
    """The common name in a role's certificate, by which servers recognise callers."""
    return f"hubbub {role}"


def names_of(roles: Iterable[str]) -> frozenset[str]:
    """All names by which a certificate can state one of these roles: its common name or a URI."""
    return frozenset(name for role in roles for name in (common_name(role), f"urn:hubbub:{role}"))


def authority_name(role: str) -> str:
    """The common name of a role's authority."""
    return f"hubbub {role} authority"


def authorities_of(role: str, pem: str) -> str:
    """The authorities in a PEM text to trust when connecting to a role.

    These are all except the authorities of other roles: one made elsewhere, or by version 0.1, is
    trusted for every role.
    """
    role_authorities = [
        block
        for subject, block in authorities_in(pem)
        if subject == authority_name(role) or not _ROLE_AUTHORITY.fullmatch(subject)
    ]
    return "".join(f"{block}\n" for block in role_authorities)


def made_by_0_1(pem: str) -> bool:
    """Whether an authority in a PEM text is that of version 0.1, which signs every role."""
    return any(subject == _OLD_AUTHORITY for subject, _ in authorities_in(pem))


def check_plain(address: str) -> None:
    """Raises ServiceUnavailable unless the address is on loopback, where plain text is safe."""
    if not is_loopback(address):
        raise ServiceUnavailable(
            f"{address} is not on this machine: --insecure is only for loopback; "
            "give certificates with --tls FOLDER"
        )


def ends(folders: Iterable[TlsFolder | None]) -> dict[str, float]:
    """When the first certificate in each file expires, in seconds since 1970, by file name.

    Files that cannot be read now are left out: what is in use is in memory.
    """
    ends_by_name: dict[str, float] = {}
    for folder in dict.fromkeys(folder for folder in folders if folder):
        for name in ("ca.pem", f"{folder.role}.pem"):
            path = folder.folder / name
            try:
                certificates = x509.load_pem_x509_certificates(path.read_bytes())
            except (OSError, ValueError):
                continue
            end = min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)
            ends_by_name[name] = min(end, ends_by_name.get(name, end))
    return ends_by_name
