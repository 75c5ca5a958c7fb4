"""Certificates as version 0.1 made them: one authority for all roles, all names in each."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def write_old_certificates(
    folder: Path, authority: str = "hubbub authority", *, by_uri: bool = False
) -> None:
    """A folder of `hubbub keys tls` of version 0.1; or of a house whose authority is named so.

    by_uri: its common names are its own, and a URI says the role.
    """
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = _name(authority)
    made = (
        _builder(issuer, issuer, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    local: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    for role in ("shuffler", "aggregator", "analyst", "redis"):
        own = ec.generate_private_key(ec.SECP256R1())
        said = [x509.UniformResourceIdentifier(f"urn:hubbub:{role}")] if by_uri else []
        common = "workload" if by_uri else f"hubbub {role}"
        certificate = (
            _builder(_name(common), issuer, own.public_key())
            .add_extension(x509.SubjectAlternativeName([*local, *said]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()),
                critical=False,
            )
            .sign(key, hashes.SHA256())
        )
        (folder / f"{role}.key").write_bytes(
            own.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        (folder / f"{role}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))


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
        .not_valid_after(now + timedelta(days=825))
    )
