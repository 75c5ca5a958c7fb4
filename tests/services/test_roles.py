"""A certificate proves one role, and whoever dials looks at it: real servers with the wrong one."""

import asyncio
import logging
import secrets
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

import hubbub.notebook
from hubbub.aggregator.query.conservation_law import Shuffler
from hubbub.authoring import Catalog
from hubbub.bundles import Bundle
from hubbub.cli.main import main
from hubbub.client import Client, MemoryState, Outcome, transport_to
from hubbub.conservation import Window
from hubbub.errors import BadParameter, ServiceUnavailable, StoreUnavailable
from hubbub.installation.certificate_authorities import names_by_role, write_certificates
from hubbub.installation.child_process import free_port
from hubbub.installation.keys_and_bundles import build_bundle
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import end_tasks
from hubbub.runtime.redis.client import _cluster, connect_redis
from hubbub.runtime.rpc.server import Server, channel
from hubbub.runtime.tls import TlsFolder, authorities_of
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.wire.v1.services_pb2 import (
    Batch,
    BatchOutcome,
    StatusRequest,
    StatusResponse,
    SubmitRequest,
    SubmitResponse,
)
from hubbub.wire.v1.stubs_and_handlers import stub
from tests.conftest import CatalogFiles
from tests.support.certificates import write_old_certificates
from tests.support.law_terms import total_counts
from tests.support.moment import today
from tests.support.servers import has_tls, redis_server
from tests.support.waiting import HANG_SECONDS, eventually_async

ROLES = ("shuffler", "aggregator", "redis", "analyst")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roles") / "tls"
    write_certificates(folder, {})
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old") / "tls"
    write_old_certificates(folder)
    return folder


class Impostor:
    """Takes and tells whatever it is asked."""

    def __init__(self) -> None:
        self.reports = 0

    async def Submit(self, request: SubmitRequest, context: Any) -> SubmitResponse:
        del context
        self.reports += len(request.reports)
        return SubmitResponse()

    async def Apply(self, request: Batch, context: Any) -> BatchOutcome:
        del context
        self.reports += len(request.sealed)
        return BatchOutcome()

    async def Status(self, request: StatusRequest, context: Any) -> StatusResponse:
        del request, context
        self.reports += 1
        return StatusResponse()


@asynccontextmanager
async def _impostor(folder: Path, role: str) -> AsyncIterator[tuple[Impostor, str]]:
    """A server of everything, which shows the certificate of this role."""
    impostor, address = Impostor(), f"127.0.0.1:{free_port()}"
    services = dict.fromkeys(("Shuffler", "Ingest", "Operator"), impostor)
    server = Server(address, services, tls=TlsFolder(folder, role), callers=None)
    await server.start()
    yield impostor, address
    await server.stop(0.1)


def test_servers_have_their_own_names_and_an_analyst_is_a_client_alone(tmp_path: Path) -> None:
    names = names_by_role(["shuffler=reports.example.org", "redis=10.0.0.7", "both.example.org"])
    write_certificates(tmp_path / "tls", names)
    local = {"localhost", "127.0.0.1", "::1"}
    everyone = local | {"both.example.org"}
    expected = {
        "shuffler": everyone | {"reports.example.org"},
        "aggregator": everyone,
        "redis": everyone | {"10.0.0.7"},
        "analyst": set(),
    }
    issuers = set()
    for role, wanted in expected.items():
        certificate = x509.load_pem_x509_certificate(
            (tmp_path / "tls" / f"{role}.pem").read_bytes()
        )
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert ExtendedKeyUsageOID.CLIENT_AUTH in usages
        assert (ExtendedKeyUsageOID.SERVER_AUTH in usages) == (role != "analyst")
        name_texts = set()
        if wanted:
            alt_names = certificate.extensions.get_extension_for_class(
                x509.SubjectAlternativeName
            ).value
            name_texts = {str(name.value) for name in alt_names}
        assert name_texts == wanted, role
        issuers.add(certificate.issuer)
    assert len(issuers) == 4, "an authority for each"


def test_certificates_are_renewed_by_the_kept_authorities(tmp_path: Path) -> None:
    tls, authorities = tmp_path / "tls", tmp_path / "tls-authorities"
    assert main(["keys", "tls", str(tls), "--host", "shuffler=reports.example.org"]) == 0
    assert stat.S_IMODE((authorities / "shuffler.key").stat().st_mode) == 0o600
    before = {path.name: path.read_bytes() for path in tls.iterdir()}
    assert main(["keys", "tls", str(tls), "--renew", "--host", "shuffler=more.example.org"]) == 0
    after = {path.name: path.read_bytes() for path in tls.iterdir()}
    assert {name for name in before if before[name] == after[name]} == {"ca.pem"}
    certificate = x509.load_pem_x509_certificate(after["shuffler.pem"])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "localhost",
        "reports.example.org",
        "more.example.org",
    ]
    for role in ROLES:
        TlsFolder(tls, role).server_context(mutual=True)
        [authority] = x509.load_pem_x509_certificates(
            authorities_of(role, after["ca.pem"].decode()).encode()
        )
        x509.load_pem_x509_certificate(after[f"{role}.pem"]).verify_directly_issued_by(authority)
    (authorities / "redis.key").unlink()
    again = {path.name: path.read_bytes() for path in tls.iterdir()}
    assert main(["keys", "tls", str(tls), "--renew"]) == 2
    assert again == {path.name: path.read_bytes() for path in tls.iterdir()}


def test_a_company_authority_names_roles_by_a_uri(tmp_path: Path) -> None:
    """As cert-manager makes them: common names of its own, and the role among the other names."""
    write_old_certificates(tmp_path / "tls", "Example house", by_uri=True)
    tls = tmp_path / "tls"

    async def answer_to(role: str) -> object:
        address = f"127.0.0.1:{free_port()}"
        services = {"Operator": Impostor()}
        mine = TlsFolder(tls, "aggregator")
        server = Server(address, services, tls=mine, callers=("analyst",))
        await server.start()
        try:
            async with channel(address, "aggregator", tls=TlsFolder(tls, role)) as line:
                return await stub("Operator", line).Status(StatusRequest(), timeout=HANG_SECONDS)
        except grpc.aio.AioRpcError as error:
            return error.code()
        finally:
            await server.stop(0.1)

    assert asyncio.run(answer_to("analyst")) == StatusResponse()
    assert asyncio.run(answer_to("redis")) is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("host", ["analyst=a.example", "nobody=a.example", "redis=", "", "a\nb"])
def test_an_invalid_host_option_is_refused(host: str) -> None:
    with pytest.raises(BadParameter, match="--host"):
        names_by_role([host])


@pytest.mark.parametrize("host", ["bad host", "a..b", "-a", "a:1", "https://a", "[::1]"])
def test_an_invalid_host_is_refused_with_an_example(host: str) -> None:
    with pytest.raises(BadParameter, match="write ROLE=HOST, such as shuffler="):
        names_by_role([host])


@pytest.mark.parametrize("host", ["a", "my_redis", "*.example.org", "10.0.0.7", "::1", "xn--e-1ga"])
def test_names_and_addresses_of_hosts_are_taken(host: str) -> None:
    assert names_by_role([host])["redis"] == [host]


def _bundle(catalog_files: CatalogFiles, folder: Path, address: str, tls: Path) -> Bundle:
    return build_bundle(
        Catalog(shuffler=address, metrics=dict(catalog_files.bundle.metrics)),
        catalog_files.folder / "keys",
        out=folder / "app.hubbub",
        streams=folder / "streams.json",
        previous=folder / "app.hubbub",
        roots=(tls / "ca.pem").read_text(),
    )


@pytest.mark.parametrize("role", ROLES)
async def test_a_device_reports_to_nobody_but_a_shuffler(
    catalog_files: CatalogFiles, tls: Path, tmp_path: Path, role: str
) -> None:
    async with _impostor(tls, role) as (impostor, address):
        bundle = _bundle(catalog_files, tmp_path, address, tls)
        transport = transport_to(address, roots=bundle.roots)
        client = Client(bundle, MemoryState(), transport, hold_seconds=None)
        assert client.report("theme", "dark") is Outcome.QUEUED
        sent = await asyncio.to_thread(client.flush, 20 if role == "shuffler" else 2)
        outcome = (sent, client.waiting, client.dropped, impostor.reports)
        assert outcome == ((True, 0, {}, 1) if role == "shuffler" else (False, 1, {}, 0))
        transport.close()


@pytest.mark.parametrize("role", ROLES)
async def test_batches_go_only_to_an_aggregator(
    catalog_files: CatalogFiles, redis_url: str, tls: Path, role: str
) -> None:
    async with _impostor(tls, role) as (impostor, address):
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        pool, window = Pool(server), Window("theme", today())
        await pool.add({window: [secrets.token_bytes(49) for _ in range(60)]})
        onward = channel(address, "aggregator", tls=TlsFolder(tls, "shuffler"))
        table = read_stream_table(catalog_files.streams)
        mixer = Mixer(pool, table, [onward], Policy(), stages=Stages())
        await pool.heartbeat()
        loops = [asyncio.create_task(run()) for run in (mixer.run, mixer.heartbeat)]

        async def has_sent() -> bool:
            return bool(mixer.counts)

        await eventually_async(has_sent)
        await end_tasks(loops)
        law = (await pool.report_counts())[window]
        if role == "aggregator":
            assert impostor.reports >= 20
        else:
            assert (law["pooled"] + law["in_flight"], impostor.reports) == (60, 0)
        await onward.close()
        await server.client.flushdb()
        await server.close()


@pytest.mark.parametrize("role", ROLES)
async def test_the_law_s_terms_are_the_shufflers_alone(tls: Path, role: str) -> None:
    async with _impostor(tls, role) as (impostor, address):
        beyond = Shuffler(address, TlsFolder(tls, "aggregator"))
        assert await beyond.terms() == ({} if role == "shuffler" else None)
        assert impostor.reports == (role == "shuffler")
        await beyond.close()


@pytest.mark.parametrize("role", ROLES)
async def test_the_probe_believes_the_role_it_asks_alone(tls: Path, role: str) -> None:
    async with _impostor(tls, role) as (_, address):
        for probe_role in ("shuffler", "aggregator"):
            probe = [sys.executable, "-m", "hubbub.runtime.probe", address]
            probed = await asyncio.create_subprocess_exec(
                *probe, "--tls", str(tls), probe_role, stderr=subprocess.DEVNULL
            )
            assert await probed.wait() == (probe_role != role), probe_role


@contextmanager
def _fake_redis(folder: Path, role: str) -> Iterator[tuple[int, bytearray]]:
    """Shows the certificate of this role, and keeps what it then hears."""
    buffer, port, loop = bytearray(), free_port(), asyncio.new_event_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{role}.pem", folder / f"{role}.key")

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            buffer.extend(await reader.read(4096))
        finally:
            writer.close()

    server = loop.run_until_complete(asyncio.start_server(listen, "127.0.0.1", port, ssl=context))
    loop.set_exception_handler(lambda *_: None)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield port, buffer
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(end_tasks(asyncio.all_tasks(loop)))
        loop.close()


async def _dial_redis(url: str) -> None:
    """As one server, and as a node of a Cluster."""
    with pytest.raises(StoreUnavailable):
        await connect_redis(url, start_seconds=0)
    cluster = _cluster([url])
    with pytest.raises(Exception, match=r"(?i)cluster|certif|closed"):
        await cluster.initialize()
    await cluster.aclose()


# On a busy machine a handshake may be cut off for its time, and asyncio of Python 3.11 then leaves
# the socket to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("made_by", ["now", "0.1"])
def test_only_redis_receives_its_password(tls: Path, old: Path, made_by: str, role: str) -> None:
    folder = tls if made_by == "now" else old
    with _fake_redis(folder, role) as (port, traffic):
        url = f"rediss://shuffler:SECRET@127.0.0.1:{port}/0?ssl_ca_certs={folder}/ca.pem"
        asyncio.run(_dial_redis(url))
        assert (b"SECRET" in traffic) == (role == "redis")
        assert role == "redis" or not traffic


@pytest.mark.skipif(not has_tls(), reason="the Redis server here was built without TLS")
@pytest.mark.parametrize("made_by", ["now", "0.1", "a house of one's own"])
def test_a_redis_with_its_own_certificate_is_served(tmp_path: Path, made_by: str) -> None:
    folder = tmp_path / "tls"
    if made_by == "now":
        write_certificates(folder, {})
    else:
        write_old_certificates(folder, *([] if made_by == "0.1" else ["Example Authority"]))
    with redis_server(
        tmp_path / "redis",
        tls_port=str(port := free_port()),
        port=port,
        tls_cert_file=str(folder / "redis.pem"),
        tls_key_file=str(folder / "redis.key"),
        tls_ca_cert_file=str(folder / "ca.pem"),
        tls_auth_clients="no",
    ):

        async def body() -> None:
            server = await connect_redis(
                f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={folder}/ca.pem"
            )
            assert await server.ask("PING")
            await server.close()

        asyncio.run(body())


def test_a_redis_url_with_no_authority_of_redis_is_refused(tls: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(
        authorities_of("shuffler", (tls / "ca.pem").read_text("ascii"))
    )
    for path, message in (
        (tmp_path / "ca.pem", "does not contain Redis' authority"),
        (tmp_path, "read"),
    ):
        with pytest.raises(StoreUnavailable, match=message):
            asyncio.run(connect_redis(f"rediss://:SECRET@127.0.0.1:1/0?ssl_ca_certs={path}"))


@pytest.mark.parametrize("role", ROLES)
def test_a_notebook_refuses_servers_that_are_no_aggregator(tls: Path, role: str) -> None:
    class Face(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorizations.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"metrics": [], "total": 0}')

        def log_message(self, *_: Any) -> None:
            pass

    authorizations: list[str | None] = []
    server = HTTPServer(("127.0.0.1", 0), Face)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / f"{role}.pem", tls / f"{role}.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"https://127.0.0.1:{server.server_port}"
    token = secrets.token_hex()
    asking = hubbub.notebook.connect(address, token=token, authority=tls / "ca.pem")
    try:
        if role == "aggregator":
            assert len(asking.metrics()) == 0
        else:
            with pytest.raises(ServiceUnavailable, match=r"certificate is refused: [^_]+; "):
                asking.metrics()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert authorizations == ([f"Bearer {token}"] if role == "aggregator" else [])


def test_the_bundle_gets_the_authority_of_the_shuffler_alone(
    catalog_files: CatalogFiles, tls: Path, tmp_path: Path
) -> None:
    roots = _bundle(catalog_files, tmp_path, "127.0.0.1:1", tls).roots or ""
    [authority] = x509.load_pem_x509_certificates(roots.encode())
    assert authority.subject.rfc4514_string() == "CN=hubbub shuffler authority"


def test_while_authorities_change_the_old_and_the_new_are_believed(
    tmp_path: Path, tls: Path, old: Path
) -> None:
    """As docs/operate/rotate-keys.md has it: the new one behind the old one, first."""
    write_certificates(tmp_path / "new", {})
    for before in (old, tls):
        both = (before / "ca.pem").read_text() + (tmp_path / "new" / "ca.pem").read_text()
        for mine, theirs in ((before, tmp_path / "new"), (tmp_path / "new", before)):
            folder = tmp_path / f"{before.parent.name}-{mine.parent.name}"
            folder.mkdir()
            for name in ("analyst.pem", "analyst.key"):
                (folder / name).write_bytes((mine / name).read_bytes())
            (folder / "ca.pem").write_text(both)

            async def body(folder: Path = folder, theirs: Path = theirs) -> None:
                async with _impostor(theirs, "aggregator") as (_, address):
                    analyst = TlsFolder(folder, "analyst")
                    async with channel(address, "aggregator", tls=analyst) as line:
                        await stub("Operator", line).Status(StatusRequest(), timeout=HANG_SECONDS)

            asyncio.run(body())


def test_certificates_of_version_0_1_still_work_with_a_warning(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    """A folder of `hubbub up` of then: certificates are kept, and the services warn once."""
    home = tmp_path / "home"
    home.mkdir()
    write_old_certificates(home / "tls")
    with LocalRun(
        home, Catalog(shuffler="", metrics=dict(catalog_files.bundle.metrics)), Ports.free()
    ) as run:
        transport = transport_to(run.bundle.shuffler, roots=run.bundle.roots)
        client = Client(run.bundle, MemoryState(), transport, hold_seconds=None)
        client.report("theme", "dark")
        assert client.flush(HANG_SECONDS)
        transport.close()
        assert total_counts(run.endpoints)["acknowledged"] == 1
    for service in ("shuffler", "aggregator"):
        log_text = (home / "log" / f"{service}.log").read_text()
        assert log_text.count("make new ones: hubbub keys tls") == 1, log_text


def test_current_certificates_cause_no_warning(tls: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        TlsFolder(tls, "shuffler").warn_if_old()
    assert caplog.text == ""
