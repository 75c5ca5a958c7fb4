"""TLS: a folder with the authorities of the roles, and a certificate and key for each role.

Who dials a role trusts the authority of this role alone; who is called lets in whom any of the
authorities signed, and then looks at the role (docs/decisions/0230).
"""

import logging
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from cryptography import x509

from hubbub.errors import KeysUnusable, ServiceUnavailable
from hubbub.errors.addresses import is_loopback
from hubbub.errors.authorities import authorities_in, common_names

_log: Final = logging.getLogger("hubbub.runtime")

SERVERS: Final = ("shuffler", "aggregator", "redis")
"""The roles that are dialled."""

_OURS: Final = (*SERVERS, "analyst")
"""The roles that `hubbub keys tls` makes certificates for."""
_ROLE_AUTHORITY: Final = re.compile(r"hubbub [a-z]+ authority")
# Of `hubbub keys tls` of version 0.1: one for all roles, whose certificates had all names.
_OLD_AUTHORITY: Final = "hubbub authority"


@dataclass(frozen=True, slots=True)
class TlsFolder:
    """`ca.pem`, and `ROLE.pem` with `ROLE.key` for the role that uses it."""

    folder: Path
    role: str

    @property
    def authorities(self) -> bytes:
        """The certificates of all authorities, in PEM."""
        return self._read("ca.pem")

    @property
    def files(self) -> tuple[Path, ...]:
        """All that it is."""
        return (self.folder / "ca.pem", *self.pair)

    def server_configuration(self, *, mutual: bool) -> grpc.ServerCertificateConfiguration:
        """For a server; `mutual`: callers must show a certificate of one of the authorities."""
        pair = (self._read(f"{self.role}.key"), self._read(f"{self.role}.pem"))
        return grpc.ssl_server_certificate_configuration(
            [pair], self.authorities if mutual else None
        )

    def channel_credentials(self, dialled: str) -> grpc.ChannelCredentials:
        """For a caller that shows its own certificate. dialled: the role that must answer."""
        return grpc.ssl_channel_credentials(
            authorities_of(dialled, self._text()).encode(),
            self._read(f"{self.role}.key"),
            self._read(f"{self.role}.pem"),
        )

    def server_context(self, *, mutual: bool) -> ssl.SSLContext:
        """The same as `server_configuration`, for a server of Python's own `ssl`."""
        # Who asks callers for no certificate may have one of any authority, and needs no ca.pem.
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
        """The files of the role's certificate and of its key."""
        return self.folder / f"{self.role}.pem", self.folder / f"{self.role}.key"

    def warn_if_old(self) -> None:
        """Say in the log if the authorities cannot tell the roles apart."""
        if (self.folder / "ca.pem").exists() and made_by_0_1(self._text()):
            _log.warning(
                "%s: one authority for all roles, as version 0.1 made it: with any certificate of "
                "it, an analyst's too, one can pose as the shuffler or the aggregator; make all "
                "anew with: hubbub keys tls NEW-FOLDER (docs/operate/rotate-keys.md)",
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
    """What a role's certificate calls it; a server tells callers apart by it."""
    return f"hubbub {role}"


def role_uri(role: str) -> str:
    """What says a role where the common name is another: a URI among the alternative names."""
    return f"urn:hubbub:{role}"


def names_of(roles: Iterable[str]) -> frozenset[str]:
    """What a certificate of one of these roles is called, one way or the other."""
    return frozenset(name for role in roles for name in (common_name(role), role_uri(role)))


def authority_name(role: str) -> str:
    """What the authority of one role is called; who dials the role tells it by this name."""
    return f"hubbub {role} authority"


def authorities_of(role: str, pem: str) -> str:
    """Of the authorities in a PEM, those to trust when dialling a role.

    All but those of other roles: an authority of one's own house, or one that version 0.1 made,
    speaks for every role.
    """
    wanted = [
        block
        for subject, block in authorities_in(pem)
        if subject == authority_name(role) or not _ROLE_AUTHORITY.fullmatch(subject)
    ]
    return "".join(f"{block}\n" for block in wanted)


def made_by_0_1(pem: str) -> bool:
    """Whether one of the authorities in a PEM is that of version 0.1, which is of every role."""
    return any(subject == _OLD_AUTHORITY for subject, _ in authorities_in(pem))


def role_names(certificate: Mapping[str, Any]) -> list[str]:
    """The common names of a certificate and its URIs, as Python's own `ssl` tells it."""
    uris = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
    return common_names(certificate) + uris


def check_plain(address: str) -> None:
    """Raises ServiceUnavailable unless plain text to or at this address stays on this machine."""
    if not is_loopback(address):
        raise ServiceUnavailable(
            f"{address} is not on this machine: --insecure is only for loopback; "
            "give certificates with --tls FOLDER"
        )


def ends(folders: Iterable[TlsFolder | None]) -> dict[str, float]:
    """By file, the second since 1970 at which the first of its certificates ends.

    A file that cannot be read now is left out: what is in use is in memory.
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
