"""Until when the certificates of a folder hold."""

from collections.abc import Iterable

from cryptography import x509

from hubbub.runtime.tls import TlsFolder


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
