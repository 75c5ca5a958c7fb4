"""Certificates in the form of RFC 5280, as verifiers that look at the form want them.

Python 3.13 and later look at it by default; older ones are asked to, by the same flag.
"""

import logging
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509

from hubbub.client import Client, MemoryState, SealedReport, transport_to
from hubbub.errors.tls_authorities import trusting
from hubbub.installation.certificate_authorities import renew_certificates, write_certificates
from hubbub.runtime.tls import SERVERS, authorities_of
from tests.support.bundles import Signed
from tests.support.certificates import write_old_certificates
from tests.support.http_shuffler import http_shuffler
from tests.support.node import needs_node
from tests.support.programs import run_program
from tests.support.waiting import HANG_SECONDS

OLD = Path(__file__).parents[1] / "data" / "installations" / "0.2"
REPORTS = [SealedReport(stream="theme", epoch=20_000, key_id=7, sealed=b"\0sealed")]

GO = """
package main

import ("crypto/x509"; "encoding/pem"; "os")

func main() {
	roots := x509.NewCertPool()
	authorities, _ := os.ReadFile(os.Args[1])
	if !roots.AppendCertsFromPEM(authorities) { panic("no authorities") }
	for _, path := range os.Args[2:] {
		text, _ := os.ReadFile(path)
		block, _ := pem.Decode(text)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil { panic(err) }
		use := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		options := x509.VerifyOptions{Roots: roots, DNSName: "localhost", KeyUsages: use}
		_, err = certificate.Verify(options)
		if err != nil { panic(err) }
	}
}
"""
NODE = """
const [port, roots] = process.argv.slice(1);
const ca = require("node:fs").readFileSync(roots);
const socket = require("node:tls").connect({ port, host: "127.0.0.1", ca }, () => {
  console.log(socket.authorized);
  socket.end();
});
"""


@pytest.fixture(params=["new", "renewed", "of a company"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of certificates: made now, or made by version 0.2 and renewed now."""
    match request.param:
        case "new":
            write_certificates(tmp_path / "tls", {})
        case "renewed":
            shutil.copytree(OLD, tmp_path, dirs_exist_ok=True)
            renew_certificates(tmp_path / "tls", tmp_path / "tls-authorities", {})
        case _:
            write_old_certificates(tmp_path / "tls", "Example house", by_uri=True)
    return tmp_path / "tls"


def test_openssl_finds_no_fault_in_the_form_of_a_certificate(folder: Path) -> None:
    for role in (*SERVERS, "analyst"):
        purpose = ["-purpose", "sslclient" if role == "analyst" else "sslserver"]
        files = ["-CAfile", str(folder / "ca.pem"), str(folder / f"{role}.pem")]
        done = run_program("openssl", "verify", "-x509_strict", *purpose, *files)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_default_context_of_python_3_13_accepts_a_certificate(folder: Path) -> None:
    for role in SERVERS:
        context = _strict_context(authorities_of(role, (folder / "ca.pem").read_text()))
        with _server(folder, role) as port:
            _shake_hands(context, port)


@pytest.fixture(scope="module")
def go_verifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("go"):
        pytest.skip("no Go on this machine: apt-get install golang-go")
    folder = tmp_path_factory.mktemp("go")
    (folder / "verify.go").write_text(GO)
    places = {"GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
    build = ["go", "build", "-o", str(folder / "verify"), str(folder / "verify.go")]
    subprocess.run(build, check=True, env={**os.environ, **places})
    return folder / "verify"


@pytest.mark.slow
def test_go_accepts_every_servers_certificate(folder: Path, go_verifier: Path) -> None:
    paths = [folder / name for name in ("ca.pem", *(f"{role}.pem" for role in SERVERS))]
    subprocess.run([go_verifier, *paths], check=True)


@pytest.mark.slow
@needs_node
def test_node_accepts_a_servers_certificate(folder: Path) -> None:
    with _server(folder, "shuffler") as port:
        done = run_program("node", "-e", NODE, str(port), str(folder / "ca.pem"), check=True)
    assert done.stdout == "true\n"


def test_an_installation_of_version_0_2_continues_under_python_3_13(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its authorities have no key usage, which that version's default context refuses."""
    roots = authorities_of("shuffler", (OLD / "tls" / "ca.pem").read_text())
    with _server(OLD / "tls", "shuffler") as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            _shake_hands(_strict_context(roots), port)
        monkeypatch.setattr(ssl, "create_default_context", _strict_context)
        _shake_hands(trusting(roots), port)
        _shake_hands(trusting(roots, system=True), port)
    with http_shuffler() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(OLD / "tls" / "shuffler.pem", OLD / "tls" / "shuffler.key")
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        transport = transport_to(server.address.replace("http:", "https:"), roots=roots)
        assert transport.submit(REPORTS, HANG_SECONDS).results == [None]
        transport.close()


def test_clients_of_an_old_authority_trust_its_renewed_certificates(
    tmp_path: Path,
) -> None:
    shutil.copytree(OLD, tmp_path, dirs_exist_ok=True)
    tls = tmp_path / "tls"
    before = x509.load_pem_x509_certificates((tls / "ca.pem").read_bytes())
    with (tls / "ca.pem").open("ab") as file:  # as after: hubbub keys trust
        write_certificates(tmp_path / "other", {})
        file.write((tmp_path / "other" / "ca.pem").read_bytes())
    renew_certificates(tls, tmp_path / "tls-authorities", {})
    after = x509.load_pem_x509_certificates((tls / "ca.pem").read_bytes())
    others = x509.load_pem_x509_certificates((tmp_path / "other" / "ca.pem").read_bytes())
    assert after[len(before) :] == others, "another party's of the same name stay as they are"
    for old, new in zip(before, after, strict=False):
        assert (old.subject, old.public_key()) == (new.subject, new.public_key())
        assert old.not_valid_after_utc == new.not_valid_after_utc
    with _server(tls, "shuffler") as port:
        roots = authorities_of("shuffler", (OLD / "tls" / "ca.pem").read_text())
        _shake_hands(trusting(roots), port)
    renewed = (tls / "ca.pem").read_bytes()
    renew_certificates(tls, tmp_path / "tls-authorities", {})
    assert (tls / "ca.pem").read_bytes() == renewed


@pytest.mark.slow
def test_an_unwritable_key_log_delays_no_report(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Antivirus programs set SSLKEYLOGFILE to a pipe that only administrators may write."""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "missing" / "keys.log"))
    with pytest.raises(FileNotFoundError):
        ssl.create_default_context()
    authorities = authorities_of("shuffler", (folder / "ca.pem").read_text())
    write_certificates(tmp_path / "theirs", {})
    others = authorities_of("shuffler", (tmp_path / "theirs" / "ca.pem").read_text())
    with _server(folder, "shuffler") as port:
        _shake_hands(trusting(authorities), port)
        for context in (trusting(None), trusting(others), trusting(others, system=True)):
            with pytest.raises(ssl.SSLCertVerificationError):
                _shake_hands(context, port)
    with pytest.raises(ssl.SSLError):
        trusting("no certificate")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_log_names_why_a_certificate_is_refused(
    protocol: str, signed: Signed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_certificates(tmp_path / "theirs", {})
    write_certificates(tmp_path / "ours", {})
    roots = authorities_of("shuffler", (tmp_path / "ours" / "ca.pem").read_text())
    with _server(tmp_path / "theirs", "shuffler") as port:
        transport = transport_to(f"127.0.0.1:{port}", roots=roots, transport=protocol)
        client = Client(signed.bundle, MemoryState(), transport, hold_seconds=None)
        client.report("theme", "dark")
        with caplog.at_level(logging.WARNING, "hubbub.client"):
            assert not client._sender.flush(HANG_SECONDS, patient=False)
        transport.close()
    assert "tls_failed" in caplog.text
    assert "unable to get local issuer certificate" in caplog.text


_SILENT = """
import sys
from hubbub.client import TryAgain, transport_to
transport = transport_to(sys.argv[1], roots=None, transport="grpc")
try:
    transport.submit([], 900)
except TryAgain as error:
    print(error.reason)
transport.close()
"""


@pytest.mark.slow
def test_a_handshake_that_fails_writes_nothing_into_the_apps_standard_error(folder: Path) -> None:
    surroundings = {name: text for name, text in os.environ.items() if name != "GRPC_VERBOSITY"}
    with _server(folder, "shuffler") as port:
        address = f"localhost:{port}"
        done = run_program(sys.executable, "-c", _SILENT, address, check=True, env=surroundings)
    assert (done.stdout, done.stderr) == ("tls_failed\n", "")


def _strict_context(cadata: str | None = None) -> ssl.SSLContext:
    """What `ssl.create_default_context` returns from Python 3.13 on, whatever Python this is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=cadata)
    return context


def _shake_hands(context: ssl.SSLContext, port: int) -> None:
    with (
        socket.create_connection(("127.0.0.1", port), HANG_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname="localhost"),
    ):
        pass


@contextmanager
def _server(folder: Path, role: str) -> Iterator[int]:
    """The port of a server that shakes hands, and says no word."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{role}.pem", folder / f"{role}.key")
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connection.settimeout(HANG_SECONDS)
            try:
                with context.wrap_socket(connection, server_side=True) as shaken:
                    shaken.recv(1)
            except OSError:
                connection.close()

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        serving.join(HANG_SECONDS)
