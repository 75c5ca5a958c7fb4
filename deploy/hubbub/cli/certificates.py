"""Certificates: an authority of one's own, and one per role, for TLS between the services."""

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hubbub.errors import KeysUnusable
from hubbub.serving.tls import common_name

__all__ = ["write_certificates"]

ROLES: Final = ("shuffler", "aggregator", "analyst", "redis")
_DAYS: Final = 825
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


def write_certificates(folder: Path, hosts: Sequence[str]) -> None:
    """`ca.pem`, and `ROLE.pem` with `ROLE.key` per role, valid for these hosts and this machine.

    The authority's key is not kept: to add a role or a host, make all anew.

    Raises:
        KeysUnusable: the folder holds certificates already, or cannot be written.
    """
    if (folder / "ca.pem").exists():
        raise KeysUnusable(f"{folder / 'ca.pem'} exists; certificates are never overwritten")
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("hubbub authority")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([_alternative(host) for host in (*_LOCAL, *hosts)])
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for role in ROLES:
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = (
                _builder(_name(common_name(role)), authority_name, key.public_key())
                .add_extension(names, critical=False)
                .add_extension(
                    x509.ExtendedKeyUsage(
                        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                    ),
                    critical=False,
                )
                .add_extension(
                    x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
                    critical=False,
                )
                .sign(authority_key, hashes.SHA256())
            )
            pem = key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            descriptor = os.open(
                folder / f"{role}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
            )
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
            (folder / f"{role}.pem").write_bytes(
                certificate.public_bytes(serialization.Encoding.PEM)
            )
        (folder / "ca.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    except OSError as error:
        raise KeysUnusable(f"{error.filename}: cannot be written: {error.strerror}") from error


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
