"""Certificates: an authority per role, and a certificate that it signed, for TLS between services.

Whoever dials a role trusts the authority of this role alone, so that no other role's certificate
can pose as it, not even on one machine, where all are dialled by the same names
(docs/decisions/0030).
"""

import ipaddress
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hubbub.errors import BadParameter, KeysUnusable
from hubbub.runtime.tls import SERVERS, authority_name, common_name

__all__ = ["names_by_role", "write_certificates"]

# What dials and is never dialled.
_CLIENTS: Final = ("analyst",)
_DAYS: Final = 825
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_LONGEST_NAME: Final = 253


def names_by_role(hosts: Sequence[str]) -> dict[str, list[str]]:
    """The names of every server role, told as ROLE=NAME, or as NAME alone for all of them.

    Raises:
        BadParameter: a role that is none, or is never dialled; or no name.
    """
    names: dict[str, list[str]] = {role: [] for role in SERVERS}
    for host in hosts:
        role, equals, name = host.rpartition("=")
        if equals and role not in SERVERS:
            raise BadParameter(f"--host {host!a}: write ROLE=NAME, of {', '.join(SERVERS)}")
        if not (0 < len(name) <= _LONGEST_NAME and name.isascii() and name.isprintable()):
            raise BadParameter(f"--host {host!a}: not a name or an address")
        for one in [role] if equals else SERVERS:
            names[one].append(name)
    return names


def write_certificates(folder: Path, names: Mapping[str, Iterable[str]]) -> None:
    """`ca.pem` with the authorities, and `ROLE.pem` with `ROLE.key` per role.

    names: what each server role is dialled by, beside this machine's own names. The keys of the
    authorities are not kept: to add a role or a name, make all anew.

    Raises:
        KeysUnusable: the folder holds certificates already, or cannot be written.
    """
    if (folder / "ca.pem").exists():
        raise KeysUnusable(f"{folder / 'ca.pem'} exists; certificates are never overwritten")
    authorities = b""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for role in SERVERS:
            # A server dials, too: the shuffler Ingest, Redis its replicas.
            usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            dialled = list(dict.fromkeys((*_LOCAL, *names.get(role, ()))))
            authorities += _write_role(folder, role, usages, dialled)
        for role in _CLIENTS:
            authorities += _write_role(folder, role, [ExtendedKeyUsageOID.CLIENT_AUTH], [])
        (folder / "ca.pem").write_bytes(authorities)
    except OSError as error:
        raise KeysUnusable(f"{error.filename}: cannot be written: {error.strerror}") from error


def _write_role(
    folder: Path, role: str, usages: list[x509.ObjectIdentifier], names: list[str]
) -> bytes:
    """The certificate and key of a role; returns that of its authority, made for it alone."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_subject = _name(authority_name(role))
    authority = (
        _builder(authority_subject, authority_subject, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name(common_name(role)), authority_subject, key.public_key())
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
    )
    if names:
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    certificate = builder.sign(authority_key, hashes.SHA256())
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    descriptor = os.open(folder / f"{role}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    (folder / f"{role}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return authority.public_bytes(serialization.Encoding.PEM)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=_DAYS))
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
