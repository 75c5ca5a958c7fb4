"""Redis over TLS: whom a service takes for a Redis, before it says who it is itself."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from redis.asyncio.cluster import RedisCluster
from redis.asyncio.connection import SSLConnection

from hubbub.errors import StoreUnavailable
from hubbub.errors.authorities import common_names, trusting
from hubbub.runtime.tls import authorities_of, common_name, made_by_0_1

_ROLE: Final = "redis"


def trusting_redis(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a URL, with the authorities of Redis alone in the place of a file of them.

    Raises:
        StoreUnavailable: the file cannot be read, or holds none.
    """
    chosen = dict(options)
    path = chosen.pop("ssl_ca_certs", None)
    if path is None:
        return chosen
    try:
        pem_text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise StoreUnavailable(
            f"ssl_ca_certs={path} of the Redis URL cannot be read: {error.strerror}"
        ) from None
    chosen["ssl_ca_data"] = authorities_of(_ROLE, pem_text)
    if not chosen["ssl_ca_data"]:
        raise StoreUnavailable(
            f"ssl_ca_certs={path} of the Redis URL has no authority of Redis; give the ca.pem of: "
            "hubbub keys tls"
        )
    return chosen


class RoleConnection(SSLConnection):
    """A connection over TLS that trusts the authorities it was given and, then, no other.

    redis-py would trust those of the system beside them. An authority of version 0.1 signed all
    roles: of a certificate of it we look at the role before anything is sent.
    """

    def _connection_arguments(self) -> Mapping[str, Any]:
        arguments: dict[str, Any] = {**super()._connection_arguments()}
        ssl_options = self.ssl_context
        if ssl_options.ca_data:
            arguments["ssl"] = _trusting(ssl_options.ca_data, ssl_options.get(), ssl_options)
        return arguments


def as_role(cluster: RedisCluster) -> RedisCluster:
    """The same Cluster, with RoleConnection for every connection: it has no argument for that."""
    cluster.connection_kwargs["connection_class"] = RoleConnection
    for node in cluster.startup_nodes:
        node.connection_class = RoleConnection
    return cluster


def _trusting(authorities: str, like: ssl.SSLContext, ssl_options: Any) -> ssl.SSLContext:
    context = trusting(authorities)
    context.check_hostname = like.check_hostname
    context.verify_mode = like.verify_mode
    context.verify_flags = like.verify_flags & ~ssl.VERIFY_X509_STRICT  # as `trusting` does
    context.minimum_version = like.minimum_version
    if ssl_options.ciphers is not None:
        context.set_ciphers(ssl_options.ciphers)
    if ssl_options.certfile or ssl_options.keyfile:
        context.load_cert_chain(ssl_options.certfile, ssl_options.keyfile, ssl_options.password)
    if made_by_0_1(authorities) and context.verify_mode is ssl.CERT_REQUIRED:
        context.sslobject_class = _OfRole
    return context


class _OfRole(ssl.SSLObject):
    def do_handshake(self) -> None:
        super().do_handshake()
        if common_names(self.getpeercert() or {}) != [common_name(_ROLE)]:
            raise ssl.SSLCertVerificationError("its certificate is another role's")
