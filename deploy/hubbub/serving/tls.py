"""TLS: a folder with one authority, and a certificate and key per role."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from hubbub.errors import KeysUnusable, ServiceUnavailable

__all__ = ["TlsFolder", "check_plain", "common_name", "is_loopback"]


@dataclass(frozen=True, slots=True)
class TlsFolder:
    """`ca.pem`, and `ROLE.pem` with `ROLE.key` for the role that uses it."""

    folder: Path
    role: str

    @property
    def authority(self) -> bytes:
        """The certificate of the authority, in PEM."""
        return self._read("ca.pem")

    def server_credentials(self, *, mutual: bool) -> grpc.ServerCredentials:
        """For a server; `mutual`: callers must show a certificate of the same authority."""
        pair = (self._read(f"{self.role}.key"), self._read(f"{self.role}.pem"))
        return grpc.ssl_server_credentials(
            [pair], self.authority if mutual else None, require_client_auth=mutual
        )

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """For a caller that shows its own certificate."""
        return grpc.ssl_channel_credentials(
            self.authority, self._read(f"{self.role}.key"), self._read(f"{self.role}.pem")
        )

    def files(self) -> dict[str, Any]:
        """For a server of Python's own `ssl`, as prometheus_client asks; callers show theirs.

        Raises KeysUnusable if one of them cannot be read.
        """
        for name in ("ca.pem", f"{self.role}.pem", f"{self.role}.key"):
            self._read(name)
        return {
            "certfile": str(self.folder / f"{self.role}.pem"),
            "keyfile": str(self.folder / f"{self.role}.key"),
            "client_cafile": str(self.folder / "ca.pem"),
            "client_auth_required": True,
        }

    def _read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise KeysUnusable(
                f"{self.folder / name}: cannot be read: {error.strerror}; "
                "make certificates with: hubbub keys tls FOLDER"
            ) from error


def common_name(role: str) -> str:
    """What a role's certificate calls it; a server tells callers apart by it."""
    return f"hubbub {role}"


def check_plain(address: str) -> None:
    """Raises ServiceUnavailable unless plain text to or at this address stays on this machine."""
    if not is_loopback(address):
        raise ServiceUnavailable(
            f"{address} is not on this machine: --insecure is for loopback alone; "
            "give certificates with --tls FOLDER"
        )


def is_loopback(address: str) -> bool:
    """Whether HOST:PORT is on this machine and nowhere else."""
    host = address.rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
