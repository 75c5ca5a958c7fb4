"""Makes certificates for TLS between services: an authority for each role, and its certificate.

A client that connects to a role trusts the authority of that role alone, so that no other role's
certificate can pose as it, not even on one machine, where all have the same names
(docs/decisions/0230).
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hubbub.errors import BadParameter, KeysUnusable
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.runtime.tls import SERVERS, authority_name, common_name

ROLES: Final = (*SERVERS, "analyst")
"""Whatever has a certificate; an analyst is a client only."""
PARTIES: Final = {role: (role, "redis", "analyst") for role in ("shuffler", "aggregator")}
"""What each of two parties runs itself: a Redis of its own, and people who look."""
_DAYS: Final = 825
# Apps have the shuffler's authority in their bundle, so it must outlast several releases.
_AUTHORITY_DAYS: Final = 3650
_PEM: Final = serialization.Encoding.PEM
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_LONGEST_NAME: Final = 253
_LABEL: Final = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")


def names_by_role(hosts: Sequence[str]) -> dict[str, list[str]]:
    """The host names of every server role, given as ROLE=NAME, or as NAME for all of them.

    Raises BadParameter if a role does not exist or is no server, or a name is invalid.
    """
    names: dict[str, list[str]] = {role: [] for role in SERVERS}
    for host in hosts:
        role, equals, name = host.rpartition("=")
        if equals and role not in SERVERS:
            raise BadParameter(f"--host {host!a}: write ROLE=NAME, ROLE of {', '.join(SERVERS)}")
        if not (len(name) <= _LONGEST_NAME and _HOST.fullmatch(name)) and not _address(name):
            raise BadParameter(
                f"--host {host!a}: not a name or an address; write ROLE=HOST, such as "
                "shuffler=metrics.example.com or shuffler=192.0.2.1, without a port"
            )
        for server_role in [role] if equals else SERVERS:
            names[server_role].append(name)
    return names


def _address(name: str) -> x509.IPAddress | None:
    """The IP address that a name is, if it is one."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return None


def write_certificates(
    folder: Path,
    names: Mapping[str, Iterable[str]],
    authorities: Path | None = None,
    roles: Sequence[str] = ROLES,
) -> None:
    """Writes `ca.pem` with the authorities, and `ROLE.pem` with `ROLE.key` for each role.

    `names` are the host names of each server role, beside this machine's own. `authorities` is a
    folder to keep their keys in, for renewal; without it they are discarded. `roles` are all, or
    those of one of PARTIES, which then gets no key of the other's. Raises KeysUnusable if a folder
    holds certificates already, or cannot be written.
    """
    folders = [folder, authorities] if authorities else [folder]
    for target in folders:
        if (target / "ca.pem").exists():
            raise KeysUnusable(
                f"{target / 'ca.pem'} exists, and certificates are never overwritten: choose "
                f"another folder, or make new ones by the same authorities: hubbub keys tls "
                f"{folder} --renew"
            )
    pem = b""
    with refuse_unwritable(folder, KeysUnusable):
        for target in folders:
            target.mkdir(parents=True, exist_ok=True, mode=0o700)
        for role in roles:
            signing = ec.generate_private_key(ec.SECP256R1())
            end = datetime.now(UTC) + timedelta(days=_AUTHORITY_DAYS)
            authority = sign_certificate(_name(authority_name(role)), signing, end)
            pem += authority.public_bytes(_PEM)
            if authorities:
                _write_key(authorities / f"{role}.key", signing)
            dialled = [*_LOCAL, *names.get(role, ())] if role in SERVERS else []
            key, certificate = _certify(role, dialled, authority, signing)
            _write_key(folder / f"{role}.key", key)
            (folder / f"{role}.pem").write_bytes(certificate.public_bytes(_PEM))
        for target in folders:  # last: who finds it finds all
            replace_file(target / "ca.pem", pem)


def renew_certificates(
    folder: Path, authorities: Path, names: Mapping[str, Iterable[str]]
) -> dict[str, date]:
    """Makes certificates for every role, by the kept authorities; returns the last day of each.

    They have new keys, and the names of those in `folder` and the given ones. An authority of
    version 0.2 or before is certified anew, with its key, name and end, in the form that strict
    verifiers require; whoever trusts its former certificate also trusts what it signs. Otherwise
    `ca.pem` stays. Raises KeysUnusable if keys or certificates cannot be read or written.
    """
    try:
        certificates = x509.load_pem_x509_certificates((authorities / "ca.pem").read_bytes())
        by_name = {certificate.subject: certificate for certificate in certificates}
        fresh = {}
        roles = [role for role in ROLES if _name(authority_name(role)) in by_name]
        for role in roles or ROLES:
            name, signing = _name(authority_name(role)), _signing(authorities, role)
            authority = by_name[name]
            try:  # RFC 5280 requires it; without it an authority is certified anew
                authority.extensions.get_extension_for_class(x509.KeyUsage)
            except x509.ExtensionNotFound:
                authority = sign_certificate(name, signing, authority.not_valid_after_utc)
                by_name[name] = authority
            former = x509.load_pem_x509_certificate((folder / f"{role}.pem").read_bytes())
            dialled: list[str] = []
            with suppress(x509.ExtensionNotFound):  # an analyst has no host names
                hosts = former.extensions.get_extension_for_class(x509.SubjectAlternativeName)
                kinds = x509.DNSName, x509.IPAddress
                dialled += [str(host.value) for host in hosts.value if isinstance(host, kinds)]
            dialled += names.get(role, ())
            fresh[role] = _certify(role, dialled, authority, signing)
        paths = authorities / "ca.pem", folder / "ca.pem"
        bundles = {path: _with_forms_of(by_name, path) for path in paths}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise KeysUnusable(
            f"{authorities}: lacks the authorities of {folder} or their keys; give the folder "
            f"made together with {folder}, or make new ones: hubbub keys tls NEW-FOLDER"
        ) from error
    with refuse_unwritable(folder, KeysUnusable):
        for path, content in bundles.items():
            replace_file(path, content, 0o644)
        for role, (key, certificate) in fresh.items():
            replace_file(folder / f"{role}.key", _pem(key), 0o600)
            replace_file(folder / f"{role}.pem", certificate.public_bytes(_PEM))
    return {role: signed.not_valid_after_utc.date() for role, (_, signed) in fresh.items()}


def trust_other(folder: Path, other: Path) -> str:
    """Trusts another party's authority for the one service that it runs; returns that role.

    `other` is that party's `ca.pem`. Its other authorities are not trusted: with them it could pose
    as this party's Redis or analysts.

    Raises:
        KeysUnusable: a file cannot be read or written, or that party runs no other service.
        BadParameter: another authority of that service is trusted already.
    """
    try:
        ours = (folder / "ca.pem").read_bytes()
        trusted = {certificate.subject for certificate in x509.load_pem_x509_certificates(ours)}
        offered = x509.load_pem_x509_certificates(other.read_bytes())
        services = [role for role in PARTIES if not (folder / f"{role}.key").exists()]
        names = {_name(authority_name(role)) for role in services}
        authorities = [certificate for certificate in offered if certificate.subject in names]
        if len(services) != 1 or len(authorities) != 1:
            raise KeysUnusable(
                f"{other}: is not the authority of the other party; give the ca.pem that it made "
                "with: hubbub keys tls FOLDER --party ROLE"
            )
        if authorities[0].subject in trusted:
            raise BadParameter(
                f"{folder / 'ca.pem'}: already trusts an authority of the {services[0]}; "
                "remove this authority by hand first"
            )
        replace_file(folder / "ca.pem", ours + authorities[0].public_bytes(_PEM), 0o644)
    except OSError as error:
        place = error.filename or folder
        raise KeysUnusable(
            f"{place}: cannot be read or written: {error.strerror}; give the folder made "
            "by hubbub keys tls FOLDER --party ROLE, and the other party's ca.pem"
        ) from error
    except ValueError as error:
        raise KeysUnusable(f"{other}: contains no certificates in PEM; get ca.pem again") from error
    return services[0]


def _signing(authorities: Path, role: str) -> ec.EllipticCurvePrivateKey:
    """The key of a role's authority. Raises TypeError if it is of another type than ours."""
    key = serialization.load_pem_private_key((authorities / f"{role}.key").read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(role)
    return key


def _with_forms_of(by_name: Mapping[x509.Name, x509.Certificate], path: Path) -> bytes:
    """The authorities in a file, each replaced by the one in `by_name` with the same key."""
    content = b""
    for certificate in x509.load_pem_x509_certificates(path.read_bytes()):
        newer = by_name.get(certificate.subject, certificate)
        same_key = newer.public_key() == certificate.public_key()
        content += (newer if same_key else certificate).public_bytes(_PEM)
    return content


def _certify(
    role: str,
    names: Iterable[str],
    authority: x509.Certificate,
    signing: ec.EllipticCurvePrivateKey,
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    # Servers are clients, too: the shuffler of Ingest, Redis of its replicas.
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if role in SERVERS:
        usages.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = sign_certificate(
        _name(common_name(role)),
        key,
        datetime.now(UTC) + timedelta(days=_DAYS),
        authority=(authority.subject, signing),
        alternatives=[_address(host) or x509.DNSName(host) for host in dict.fromkeys(names)],
        usages=usages,
    )
    return key, certificate


def sign_certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    end: datetime,
    *,
    authority: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None,
    alternatives: Sequence[x509.GeneralName] = (),
    usages: Sequence[x509.ObjectIdentifier] = (),
) -> x509.Certificate:
    """A certificate of a service, signed by an authority, or that of an authority itself.

    `authority` are the authority's name and key; None makes an authority, signed by its own key.
    """
    is_authority = authority is None
    issuer, signing = authority or (subject, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(hours=1))
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None),
            critical=True,
        )
        .add_extension(
            x509.KeyUsage(
                digital_signature=not is_authority,
                key_cert_sign=is_authority,
                crl_sign=is_authority,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )
    if not is_authority:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        builder = builder.add_extension(identifier, critical=False)
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(signing, hashes.SHA256())


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(0o600, exist_ok=False)
    path.write_bytes(_pem(key))


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
