"""Connects to Redis, one server or a Cluster, and checks that it keeps what is written."""

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import redis.asyncio
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import ConnectionPool, SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError

from hubbub.errors import StoreUnavailable
from hubbub.errors.address_checks import url_parts
from hubbub.errors.tls_authorities import common_names, trusting
from hubbub.runtime.redis.command_sender import RedisServer, eviction, shown_hosts
from hubbub.runtime.tls import authorities_of, common_name, made_by_0_1

_REMEDY: Final = "write redis://HOST:PORT/0, or rediss://HOST:PORT/0?ssl_ca_certs=FILE"
_DATABASE: Final = re.compile(r"/?[0-9]{0,5}")
_PATH: Final = re.compile(r"[^\x00-\x1f]+")
_OPTIONS: Final = {
    "db": re.compile(r"[0-9]{1,5}"),
    "ssl_ca_certs": _PATH,
    "ssl_ca_path": _PATH,
    "ssl_certfile": _PATH,
    "ssl_keyfile": _PATH,
    "ssl_cert_reqs": re.compile("none|optional|required"),
    "ssl_check_hostname": re.compile("(?i:true|false|yes|no|1|0)"),
    "socket_keepalive": re.compile("(?i:true|false|yes|no|1|0)"),
    "health_check_interval": re.compile(r"[0-9]{1,5}"),
}
"""What a URL may say besides: the rest is ours to say, or nonsense that fails much later."""
_SCHEMES: Final = {"ssl_": ("rediss",), "socket_": ("redis", "rediss")}
"""Options that begin so belong to these schemes alone; without TLS nobody would hear of theirs."""

_log: Final = logging.getLogger("hubbub.redis")

_ROLE: Final = "redis"

_OLDEST: Final = (6, 2)  # of those that the tests run on
_TIMEOUT_SECONDS: Final = 10.0
# A Redis that starts together with this service may need a moment longer.
_START_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.1


async def connect_redis(
    url: str, replicas: int = 0, *, start_seconds: float = _START_SECONDS
) -> RedisServer:
    """Connects to the Redis at `url`, and checks its version and that it evicts no keys.

    `url` is redis://HOST:PORT/0, or rediss:// for TLS. A node of a Cluster stands for the whole
    Cluster; several nodes, HOST:PORT,HOST:PORT, allow for one being down. It tries again for
    `start_seconds`; `replicas` must confirm each durable write. Raises StoreUnavailable if it
    cannot be reached, refuses us, is older than 6.2, or would evict keys.
    """
    deadline = time.monotonic() + start_seconds
    while True:
        try:
            addresses = _addresses(url)
            for address in addresses[:-1]:
                with suppress(StoreUnavailable):
                    return await _connect_by(address, addresses, url, replicas)
            return await _connect_by(addresses[-1], addresses, url, replicas)
        except StoreUnavailable as error:
            if time.monotonic() > deadline or not isinstance(
                error.__cause__, (RedisError, RedisClusterException, OSError)
            ):
                raise
            await asyncio.sleep(_PAUSE_SECONDS)


async def _connect_by(
    address: str, addresses: Sequence[str], url: str, replicas: int
) -> RedisServer:
    options = _options(address)
    if options.get("connection_class") is SSLConnection:
        options["connection_class"] = _RoleConnection
    # Retries once, at once, for a stale connection. Callers retry further.
    pool = ConnectionPool(**options, retry=Retry(NoBackoff(), 1))
    server = RedisServer(redis.asyncio.Redis.from_pool(pool), url, replicas)
    try:
        async with server.errors():
            infos = await server.info()
            if int(infos[0].get("cluster_enabled", 0)):
                await server.close()
                server = RedisServer(_cluster(addresses), url, replicas)
                infos = await server.info()
        if len(addresses) > 1 and not isinstance(server.client, RedisCluster):
            raise StoreUnavailable(  # noqa: TRY301 closed below
                f"Redis at {shown_hosts(url)} is not a Cluster; name one server"
            )
        for node in infos:
            _check(node, shown_hosts(url))
    except StoreUnavailable:
        await server.close()
        raise
    return server


def _cluster(urls: Sequence[str]) -> RedisCluster:
    nodes = [urlsplit(url) for url in urls]
    options = _options(urls[0])
    secured = options.pop("connection_class", None) is SSLConnection
    cluster = RedisCluster(
        **options,
        ssl=secured,
        startup_nodes=[ClusterNode(str(node.hostname), node.port or 6379) for node in nodes],
        # This code retries: redis-py's own retry would forget the node to ask.
        retry=Retry(NoBackoff(), 0),
        # A partly reachable Cluster serves its reachable part.
        require_full_coverage=False,
    )
    if secured:  # for every connection: it has no argument for that
        cluster.connection_kwargs["connection_class"] = _RoleConnection
        for node in cluster.startup_nodes:
            node.connection_class = _RoleConnection
    return cluster


def _options(url: str) -> dict[str, Any]:
    """The options in a URL, over our own defaults, with Redis' authorities in place of their file.

    Raises StoreUnavailable if the file cannot be read, or has no such authority.
    """
    ours = {"socket_timeout": _TIMEOUT_SECONDS, "socket_connect_timeout": _TIMEOUT_SECONDS}
    options: dict[str, Any] = {**ours, **parse_url(url)}
    path = options.pop("ssl_ca_certs", None)
    if path is None:
        return options
    try:
        pem_text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise StoreUnavailable(
            f"ssl_ca_certs={path} of the Redis URL cannot be read: {error.strerror}"
        ) from None
    options["ssl_ca_data"] = authorities_of(_ROLE, pem_text)
    if not options["ssl_ca_data"]:
        raise StoreUnavailable(
            f"ssl_ca_certs={path} of the Redis URL does not contain Redis' authority; give "
            "the ca.pem of: hubbub keys tls"
        )
    return options


def _addresses(url: str) -> list[str]:
    """One URL for each host that the URL names."""
    try:
        parts = urlsplit(url)
        user, separator, hosts = parts.netloc.rpartition("@")
        netlocs = [user + separator + host for host in hosts.split(",")]
        urls = [parts._replace(netloc=netloc).geturl() for netloc in netlocs]
        for redis_url in urls:
            _check_url(redis_url)
    except (ValueError, TypeError):
        # The parser's own text could contain a password.
        codes = "; before the host write @:/%#? as %40 %3A %2F %25 %23 %3F" if "@" in url else ""
        raise StoreUnavailable(f"the Redis URL is invalid; {_REMEDY}{codes}") from None
    return urls


def _check_url(url: str) -> None:
    """Raises ValueError for an invalid URL, StoreUnavailable for an unknown option."""
    redis.asyncio.connection.parse_url(url)
    parts = urlsplit(url)
    if parts.scheme != "unix" and url_parts(url) is None:
        raise ValueError("no host")
    if parts.scheme != "unix" and not _DATABASE.fullmatch(parts.path):
        raise ValueError("no database")
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise StoreUnavailable(
                f"the Redis URL has an option that is not known here; there are "
                f"{', '.join(_OPTIONS)}; {_REMEDY}"
            )
        schemes = next((of for start, of in _SCHEMES.items() if name.startswith(start)), None)
        if schemes is not None and parts.scheme not in schemes:
            raise StoreUnavailable(
                f"the Redis URL's option {name} has no meaning for {parts.scheme}://; {_REMEDY}"
            )
        if not _OPTIONS[name].fullmatch(value):
            raise StoreUnavailable(f"the Redis URL's option {name} is not understood; {_REMEDY}")


def _check(info: Mapping[str, Any], url_text: str) -> None:
    version = str(info["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise StoreUnavailable(f"Redis at {url_text} is {version}; 6.2 or newer is needed")
    if why := eviction(info):
        raise StoreUnavailable(f"Redis at {url_text}{why}")
    if not int(info.get("aof_enabled", 0)):
        _log.warning(
            "Redis at %s keeps no append-only file: acknowledged reports are lost when it "
            "ends; set appendonly yes, and appendfsync always or everysec",
            url_text,
        )
    elif info.get("aof_last_write_status", "ok") != "ok":
        _log.warning("Redis at %s cannot write its append-only file: see its log", url_text)


class _RoleConnection(SSLConnection):
    """A TLS connection that trusts the authorities given to it and no others.

    redis-py would also trust those of the system. Since an authority of version 0.1 signed all
    roles, the role in the server's certificate is checked before anything is sent.
    """

    def _connection_arguments(self) -> Mapping[str, Any]:
        arguments: dict[str, Any] = {**super()._connection_arguments()}
        if self.ssl_context.ca_data:
            arguments["ssl"] = _trusting(self.ssl_context)
        return arguments


def _trusting(ssl_options: Any) -> ssl.SSLContext:
    context, like = trusting(ssl_options.ca_data), ssl_options.get()
    context.check_hostname = like.check_hostname
    context.verify_mode = like.verify_mode
    context.verify_flags = like.verify_flags & ~ssl.VERIFY_X509_STRICT  # as `trusting` does
    context.minimum_version = like.minimum_version
    if ssl_options.ciphers is not None:
        context.set_ciphers(ssl_options.ciphers)
    if ssl_options.certfile or ssl_options.keyfile:
        context.load_cert_chain(ssl_options.certfile, ssl_options.keyfile, ssl_options.password)
    if made_by_0_1(ssl_options.ca_data) and context.verify_mode is ssl.CERT_REQUIRED:
        context.sslobject_class = _OfRole
    return context


class _OfRole(ssl.SSLObject):
    def do_handshake(self) -> None:
        super().do_handshake()
        if common_names(self.getpeercert() or {}) != [common_name(_ROLE)]:
            raise ssl.SSLCertVerificationError("its certificate is another role's")
