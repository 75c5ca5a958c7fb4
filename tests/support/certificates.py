"""One authority for all roles: as version 0.1 made it, and as a company has it."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hubbub.installation.certificate_authorities import sign_certificate


def write_old_certificates(
    folder: Path, authority: str = "hubbub authority", *, by_uri: bool = False
) -> None:
    """A folder whose certificates one authority of this name signed, with all names in each.

    by_uri: the common names are the company's own, and a URI names the role.
    """
    folder.mkdir()
    key, end = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) + timedelta(days=825)
    issuer = sign_certificate(_name(authority), key, end)
    local: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    for role in ("shuffler", "aggregator", "analyst", "redis"):
        uris = [x509.UniformResourceIdentifier(f"urn:hubbub:{role}")] if by_uri else []
        private_key = ec.generate_private_key(ec.SECP256R1())
        certificate = sign_certificate(
            _name("workload" if by_uri else f"hubbub {role}"),
            private_key,
            end,
            authority=(issuer.subject, key),
            alternatives=[*local, *uris],
            usages=[ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
        )
        (folder / f"{role}.key").write_bytes(
            private_key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        (folder / f"{role}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "ca.pem").write_bytes(issuer.public_bytes(serialization.Encoding.PEM))


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
