"""Runs two embedded Redis servers, aggregator and shuffler on this machine.

Each role is a process of its own, with TLS between them. All state is in one folder, so that the
next start continues from it.
"""

import fcntl
import os
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, NoReturn, Self, TextIO

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.aggregator.settings import Outlets
from hubbub.authoring import Catalog
from hubbub.bundles import Bundle, read_bundle
from hubbub.bundles.opening_keys import is_development
from hubbub.catalog.models.model_metric import with_minute_rounds
from hubbub.errors import ServiceUnavailable, StateUnusable, StoreUnavailable
from hubbub.errors.address_checks import proxy_options
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import (
    Child,
    endings_to,
    free_port,
    handle_endings,
    postponed_endings,
)
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.installation.keys_and_bundles import OPERATORS, build_bundle, make_keys, publish_models
from hubbub.installation.running_endpoints import Endpoints
from hubbub.issuer.accounts import add_account
from hubbub.keys.issuer_and_gateway_keys import GATEWAY_KEY, make_gateway_key, make_token_key
from hubbub.keys.opening_key_files import read_public_keys
from hubbub.programs.atomic_write import replace_file
from hubbub.programs.issuer_key_file import TOKEN_KEY
from hubbub.runtime.tls import TlsFolder

ACCOUNTS: Final = "accounts"
ACCOUNT_KEY: Final = "account.key"
"""Of a run whose catalog names an issuer: the key of the one account that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports of 127.0.0.1, by what listens there."""

    shuffler: int
    ingest: int
    issuer: int
    operator: int
    shuffler_metrics: int
    aggregator_metrics: int
    page: int
    http: int

    @classmethod
    def from_base(cls, base: int) -> Self:
        """Eight consecutive ports, the first for devices."""
        return cls(**{field.name: base + place for place, field in enumerate(fields(cls))})

    @classmethod
    def free(cls) -> Self:
        """Eight ports that nothing listens on now."""
        return cls(**{field.name: free_port() for field in fields(cls)})


LAST_BASE: Final = 65_536 - len(fields(Ports))
"""From which the last of them is a port yet."""


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    # Set before raising, since a second Ctrl-C must not interrupt the lines before `stop`.
    handle_endings(_say_still_ending)
    raise KeyboardInterrupt


def _say_still_ending(_number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):  # of a closed terminal
        # Past Python's buffers: a third Ctrl-C may interrupt this line.
        os.write(2, b"hubbub: still ending; a service that does not end in 15 seconds is killed\n")


class LocalRun:
    """A whole hubbub in a folder; a context manager that starts and stops it.

    Args:
        home: folder of keys, certificates, bundle, both Redis servers' files, logs.
        notice: what its pages say first, now and when it is started there again.
        development: whether a single report is counted, so that the settings protect nobody.
        outlets: where the aggregator writes and sends closed epochs.

    Raises:
        ServiceUnavailable: a port is taken, no Redis server program, or a service does not start.
        StateUnusable: the folder cannot be written.
        BundleRefused: the catalog changed a metric under an old name.
    """

    def __init__(
        self,
        home: Path,
        catalog: Catalog,
        ports: Ports,
        *,
        notice: str = "",
        development: bool = False,
        outlets: Outlets | None = None,
    ) -> None:
        self.home = home
        self._outlets = asdict(outlets) if outlets else {}
        self._notice = notice
        self._development = development
        self.bundle_path = home / "app.hubbub"
        self.models_path = home / "models.hubbub"
        self.endpoints = Endpoints(page=f"http://127.0.0.1:{ports.page}/", development=development)
        self.http_door = f"127.0.0.1:{ports.http}"
        self.shuffler_status = f"127.0.0.1:{ports.operator}"
        self.ports = ports
        self._catalog = self._local_catalog(catalog)
        self.redis_servers: list[EmbeddedRedis] = []
        self.children: list[Child] = []

    def __enter__(self) -> Self:
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.home / "log").mkdir(exist_ok=True)
            lock = (self.home / "lock").open("w")
            # Locks folder and ports: two Redis servers on one folder would ruin it.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise StateUnusable(
                f"{self.home} is in use by another hubbub; end it, or give another --home"
            ) from error
        except OSError as error:
            raise StateUnusable(f"{self.home}: {error.strerror}; give a writable folder") from error
        self._locked: list[TextIO] = [lock]
        try:
            handle_endings(_interrupt)
            for port in astuple(self.ports):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    try:
                        probe.bind(("127.0.0.1", port))
                    except OSError as error:
                        raise ServiceUnavailable(
                            f"port {port} of 127.0.0.1 is in use; stop what listens there, "
                            "or choose others with --port"
                        ) from error
            self.bundle: Bundle = self._prepare()
            self._locked.append(self.endpoints.write(self.home))
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def shuffler_redis(self) -> str:
        """The URL of the shuffler's Redis."""
        return self.redis_servers[0].url

    @property
    def aggregator_redis(self) -> str:
        """The URL of the aggregator's Redis."""
        return self.redis_servers[1].url

    def check(self) -> None:
        """Raises ServiceUnavailable if any process has ended."""
        for child in (*self.children, *(redis.child for redis in self.redis_servers)):
            child.check()

    def stop(self) -> None:
        """Stops everything, the shuffler first, so that it accepts nothing that would be lost."""
        with endings_to(_say_still_ending):  # services that are not stopped would run on without us
            for child in reversed(self.children):
                child.stop()
            for redis in self.redis_servers:
                redis.stop()
            self.children, self.redis_servers = [], []
            for file in self._locked:
                file.close()

    def take(self, catalog: Catalog) -> None:
        """Builds and signs a catalog, and makes the running services use it.

        Raises:
            BundleRefused, CatalogInvalid: as `refuse_changes` does; the former stays.
            ServiceUnavailable: a service refuses it, or has ended.
        """
        self._catalog = self._local_catalog(catalog)
        self.bundle = self._prepare()
        for child in self.children:  # the aggregator first: it must know the shuffler's streams
            child.reload()

    def publish_models(self) -> None:
        """Signs the state of models if a round of one has ended since.

        Raises ServiceUnavailable if the aggregator does not answer.
        """
        if any(metric.model for metric in self.bundle.metrics.values()) and publish_models(
            self.endpoints.service, self.home / "keys", self.models_path
        ):
            self.children[-1].reload()  # the shuffler

    def _local_catalog(self, catalog: Catalog) -> Catalog:
        """The catalog with this machine's addresses, for its devices."""
        issuer = f"http://127.0.0.1:{self.ports.issuer}"
        tokens = replace(catalog.tokens, issuer=issuer) if catalog.tokens else None
        return replace(catalog, shuffler=f"127.0.0.1:{self.ports.shuffler}", tokens=tokens)

    def _prepare(self) -> Bundle:
        keys, tls = self.home / "keys", self.home / "tls"
        if not (keys / "operator.key").exists():
            make_keys(keys, development=self._development)
        development = is_development(read_public_keys(keys))
        if development is not self._development:
            flag = "with" if development else "without"
            raise StateUnusable(
                f"{self.home} was made {flag} --dev; start it {flag} --dev, or give another --home"
            )
        self.has_new_authority = not (tls / "ca.pem").exists() and self.bundle_path.exists()
        if not (tls / "ca.pem").exists():
            write_certificates(tls, {})
        if not (keys / GATEWAY_KEY).exists():
            make_gateway_key(keys)
        if self._catalog.tokens and not (keys / TOKEN_KEY).exists():
            make_token_key(keys)
            key = add_account(self.home / ACCOUNTS, "here", vouches=False)
            replace_file(self.home / ACCOUNT_KEY, key.encode(), mode=0o600)
        return build_bundle(
            self._with_short_rounds() if self._development else self._catalog,
            keys,
            out=self.bundle_path,
            streams=self.home / "streams.json",
            roots=(tls / "ca.pem").read_text(),
        )

    def _with_short_rounds(self) -> Catalog:
        """The catalog with rounds of a minute for its models, from the next round or as before."""
        former = read_bundle(self.bundle_path).metrics if self.bundle_path.exists() else {}
        soon = datetime.fromtimestamp((time.time() // 60 + 1) * 60, UTC)
        begun = {name: metric.model.begins for name, metric in former.items() if metric.model}
        metrics = {
            name: with_minute_rounds(metric, begun.get(name, soon)) if metric.model else metric
            for name, metric in self._catalog.metrics.items()
        }
        return replace(self._catalog, metrics=metrics)

    def _start_issuer(self) -> dict[str, Path]:
        """Starts the issuer of tokens; returns the shuffler's options for it."""
        if not self._catalog.tokens:
            return {}
        key = {"token-key": (self.home / "keys" / TOKEN_KEY).absolute()}
        options = {
            "streams": self.home / "streams.json",
            "accounts": self.home / ACCOUNTS,
            "listen": f"127.0.0.1:{self.ports.issuer}",
            "metrics-listen": "127.0.0.1:0",
            "peer-rate": 0,
            **key,
        }
        words = [*_command_line(options), "--insecure"]
        self._service("issuer", *words, redis_url=self.shuffler_redis)
        return key

    def _start(self) -> None:
        for role in ("shuffler", "aggregator"):
            with postponed_endings():
                self.redis_servers.append(EmbeddedRedis((self.home / f"redis-{role}").absolute()))
        notice = self.home / "notice.txt"  # it stays for the next start
        if self._notice:
            notice.write_text(self._notice, encoding="utf-8")
        tls, development = {"tls": self.home / "tls"}, ["--dev"] if self._development else []
        outlets = {name.replace("_", "-"): place for name, place in self._outlets.items()}
        local = "127.0.0.1:{}".format
        of_aggregator = {
            "bundle": self.bundle_path.with_name(OPERATORS),
            "keys": self.home / "keys" / "opening.keys.json",
            "listen": local(self.ports.ingest),
            "metrics-listen": local(self.ports.aggregator_metrics),
            "http-listen": local(self.ports.page),
            "http-notice": notice.read_text("utf-8") if notice.exists() else "",
            "shuffler-status": self.shuffler_status,
            **outlets,
            **tls,
        }
        words = [*_command_line(of_aggregator), *development]
        self._service("aggregator", *words, redis_url=self.aggregator_redis)
        of_shuffler = {
            "streams": self.home / "streams.json",
            "listen": local(self.ports.shuffler),
            "http": self.http_door,
            "http-bundle": self.bundle_path.absolute(),
            "gateway-key": (self.home / "keys" / GATEWAY_KEY).absolute(),
            "notice": (self.home / "notice.hubbub").absolute(),
            "models": self.models_path.absolute(),
            "operator-listen": self.shuffler_status,
            "aggregator": local(self.ports.ingest),
            "metrics-listen": local(self.ports.shuffler_metrics),
            "peer-rate": 0,
            "delay": 0,
            **self._start_issuer(),
            **tls,
        }
        words = [*_command_line(of_shuffler), *development]
        self._service("shuffler", *words, redis_url=self.shuffler_redis)
        aggregator, shuffler = self.children[0], self.children[-1]
        ask, faults = self.endpoints.service.ask, (ServiceUnavailable, StoreUnavailable)
        aggregator.wait_for(lambda: ask("/ready"), faults, "the aggregator does not serve")
        shuffler.wait_for(self._shuffler_answers, faults, "the shuffler does not serve")

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        environment = {**os.environ, "HUBBUB_REDIS_URL": redis_url}
        command = [sys.executable, "-m", f"hubbub.{role}", *arguments]
        log = self.home / "log" / f"{role}.log"
        with postponed_endings():
            self.children.append(Child(role, command, environment, log))

    def _shuffler_answers(self) -> None:
        credentials = TlsFolder(self.home / "tls", "aggregator").channel_credentials("shuffler")
        options = proxy_options(self.shuffler_status)
        with grpc.secure_channel(self.shuffler_status, credentials, options) as channel:
            try:
                health_pb2_grpc.HealthStub(channel).Check(
                    health_pb2.HealthCheckRequest(), timeout=1, wait_for_ready=True
                )
            except grpc.RpcError as error:
                raise ServiceUnavailable(f"{self.shuffler_status}: {error.details()}") from error


def _command_line(options: Mapping[str, object]) -> list[str]:
    """Options by name, in the form of a command line."""
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def program() -> str:
    """This command as a shell takes it in the current folder; its name if on PATH."""
    script = Path(sys.executable).with_name("hubbub")
    if shutil.which("hubbub") == str(script):
        return "hubbub"
    if script.exists():
        return shell_path(script)
    return f"{shlex.quote(sys.executable)} -m hubbub.cli"


def shell_path(path: Path) -> str:
    """The path as a word of a shell's line, relative if it lies in the current folder."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
