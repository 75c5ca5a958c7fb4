"""Two parties, each with its own authorities: they meet over TLS, and neither can pose as other."""

import re
import ssl
from pathlib import Path

import pytest

from hubbub.cli.main import main
from hubbub.runtime.tls import TlsFolder, authorities_of
from tests.support.commands import refusal_of


@pytest.fixture
def parties(tmp_path: Path) -> tuple[Path, Path]:
    """The folders of who runs the shuffler, and of who runs the aggregator; both trust."""
    shuffler, aggregator = tmp_path / "foundation", tmp_path / "company"
    for folder, party in ((shuffler, "shuffler"), (aggregator, "aggregator")):
        assert main(["keys", "tls", str(folder), "--party", party]) == 0
    trust_file = tmp_path / "given.pem"
    trust_file.write_bytes((shuffler / "ca.pem").read_bytes())
    assert main(["keys", "trust", str(shuffler), str(aggregator / "ca.pem")]) == 0
    assert main(["keys", "trust", str(aggregator), str(trust_file)]) == 0
    return shuffler, aggregator


def _meet(server: TlsFolder, caller: TlsFolder) -> str:
    """A handshake in memory, both showing certificates: who the server takes the caller for."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=authorities_of(server.role, caller.authorities.decode()))
    client.load_cert_chain(*caller.pair)
    there, here = (ssl.MemoryBIO() for _ in range(2))
    client_tls = client.wrap_bio(here, there, server_hostname="localhost")
    answering = server.server_context(mutual=True).wrap_bio(there, here, server_side=True)
    done = set[str]()
    for _ in range(4):
        for name, side in (("asked", client_tls), ("answering", answering)):
            if name not in done:
                try:
                    side.do_handshake()
                    done.add(name)
                except ssl.SSLWantReadError:
                    pass
    assert done == {"asked", "answering"}
    certificate = answering.getpeercert()
    assert certificate
    [named] = re.findall(r"hubbub \w+", str(certificate["subject"]))
    return str(named)


def test_the_two_services_meet_over_tls_with_authorities_of_two_parties(
    parties: tuple[Path, Path],
) -> None:
    shuffler, aggregator = parties
    ours, theirs = TlsFolder(shuffler, "shuffler"), TlsFolder(aggregator, "aggregator")
    assert _meet(theirs, ours) == "hubbub shuffler"  # batches
    assert _meet(ours, theirs) == "hubbub aggregator"  # how many reports there are


def test_neither_party_has_a_key_of_the_others_service(parties: tuple[Path, Path]) -> None:
    shuffler, aggregator = parties
    for folder, lacks in ((shuffler, "aggregator"), (aggregator, "shuffler")):
        file_names = {path.name for path in folder.rglob("*")}
        file_names |= {
            path.name for path in folder.with_name(f"{folder.name}-authorities").iterdir()
        }
        assert not {f"{lacks}.key", f"{lacks}.pem"} & file_names


@pytest.mark.parametrize("role", ["redis", "analyst"])
def test_the_other_partys_redis_and_people_are_not_let_in(
    parties: tuple[Path, Path], role: str
) -> None:
    shuffler, aggregator = parties
    for tls, other, service in (
        (aggregator, shuffler, "aggregator"),
        (shuffler, aggregator, "shuffler"),
    ):
        with pytest.raises(ssl.SSLError):
            _meet(TlsFolder(tls, service), TlsFolder(other, role))
        assert _meet(TlsFolder(tls, service), TlsFolder(tls, role)) == f"hubbub {role}"


def test_a_wrong_file_of_the_other_party_is_refused(
    parties: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shuffler, aggregator = parties
    before = (shuffler / "ca.pem").read_bytes()
    assert main(["keys", "trust", str(shuffler), str(aggregator / "ca.pem")]) == 2
    assert "already" in capsys.readouterr().err
    alone = tmp_path / "alone"
    assert main(["keys", "tls", str(alone), "--party", "shuffler"]) == 0
    for wrong in (alone / "ca.pem", tmp_path / "none.pem", alone / "shuffler.key"):
        errors = refusal_of(capsys, "keys", "trust", str(alone), str(wrong))
        assert str(wrong) in errors
        assert "ca.pem" in errors
        assert "Errno" not in errors
    assert (shuffler / "ca.pem").read_bytes() == before


def test_a_party_renews_its_certificates_and_still_trusts_the_other(
    parties: tuple[Path, Path],
) -> None:
    shuffler, aggregator = parties
    before = (shuffler / "ca.pem").read_bytes()
    assert main(["keys", "tls", str(shuffler), "--renew"]) == 0
    assert (shuffler / "ca.pem").read_bytes() == before
    ours, theirs = TlsFolder(shuffler, "shuffler"), TlsFolder(aggregator, "aggregator")
    assert _meet(theirs, ours) == "hubbub shuffler"
