"""Addresses that people give: a port that there is not is refused, whoever would dial it."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

import hubbub.notebook
from hubbub.aggregator.access.access_file import read_access
from hubbub.aggregator.publishing.publisher import webhook
from hubbub.aggregator.settings import parse as aggregator
from hubbub.bundles.tokens import Tokens
from hubbub.cli.main import main
from hubbub.client import transport_to
from hubbub.errors import BadParameter, HubbubError
from hubbub.errors.address_checks import has_port, is_loopback, secure_parts, shown_url, url_parts
from hubbub.fields.rules import is_address, is_log_name
from hubbub.installation.running_endpoints import Endpoints
from hubbub.issuer.settings import parse as issuer
from hubbub.relay.settings import parse as relay
from hubbub.shuffler.settings import parse as shuffler

# An invalid byte of a variable, a control character, and others that no host has.
ODD_URLS = [f"https://a{odd}:1" for odd in (" b", "\udcff", "\0", "%41", "\\", "[b]")]
SHUFFLER = ["--streams", "x", "--insecure"]
AGGREGATOR = ["--bundle", "x", "--keys", "y", "--insecure"]
ISSUER = ["--streams", "x", "--token-key", "y", "--accounts", "z", "--insecure"]
RELAY = ["--gateway", "https://shuffler.example.org", "--insecure"]


@pytest.mark.parametrize(
    ("address", "valid"),
    [
        ("127.0.0.1:9072", True),
        ("[::1]:65535", True),
        ("shuffler.example.org:0", True),
        ("127.0.0.1:65536", False),
        ("127.0.0.1:70000", False),
        ("127.0.0.1:-1", False),
        ("127.0.0.1:", False),
        ("127.0.0.1:\N{ARABIC-INDIC DIGIT SEVEN}", False),
        ("127.0.0.1", False),
        ("user:password@127.0.0.1:9072", False),
        ("unix:/tmp/x:1", False),
        (":9072", False),
        ("two words:9072", False),
        ("host\udcff:9072", False),
        ("host\0:9072", False),
        ("::1:9072", False),
        ("[host]:9072", False),
        ("[::1:9072", False),
        ("host%41:9072", False),
        ("http:/host:9072", False),
    ],
)
def test_an_address_has_a_host_and_a_possible_port(address: str, valid: bool) -> None:
    assert has_port(address) is valid
    assert valid or not is_address(address)


@pytest.mark.parametrize("scheme", ["", "https://"])
def test_an_address_of_a_bundle_can_be_dialled(scheme: str) -> None:
    assert is_address(f"{scheme}shuffler.example.org:443")
    for place in ("shuffler.example.org:0", "shuffler,example.org:443", "shuffler.example.org"):
        assert not is_address(f"{scheme}{place}")


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("localhost:1", True),
        ("LocalHost:1", True),
        ("127.0.0.2:1", True),
        ("[::1]:1", True),
        ("localhost.example.org:1", False),
        ("127.0.0.1.example.org:1", False),
        ("0.0.0.0:1", False),
        ("[2001:db8::1]:1", False),
    ],
)
def test_a_service_takes_no_remote_address_for_a_local_one(address: str, *, here: bool) -> None:
    assert is_loopback(address) is here


@pytest.mark.parametrize(
    "url", [*("https://:70", "https://a:70000", "https://a:0", "a", "https://["), *ODD_URLS]
)
def test_a_url_without_a_host_or_with_an_impossible_port_is_refused(url: str) -> None:
    assert url_parts(url) is None


@pytest.mark.parametrize(
    ("url", "secure"),
    [
        ("https://example.org/path", True),
        ("http://127.0.0.1:9", True),
        ("http://localhost", True),
        ("http://[::1]", True),
        ("http://example.org", False),
        ("http://127.0.0.1.example.org:1", False),
        ("ftp://127.0.0.1", False),
        ("https://example.org:0", False),
    ],
)
def test_a_secret_goes_over_https_or_stays_on_this_machine(url: str, *, secure: bool) -> None:
    assert (secure_parts(url) is not None) is secure


@pytest.mark.parametrize(
    ("parse", "arguments", "options"),
    [
        (
            shuffler,
            SHUFFLER,
            ("--listen", "--operator-listen", "--http", "--aggregator", "--metrics-listen"),
        ),
        (
            aggregator,
            AGGREGATOR,
            ("--listen", "--http-listen", "--shuffler-status", "--metrics-listen"),
        ),
        (issuer, ISSUER, ("--listen", "--metrics-listen")),
        (relay, RELAY, ("--listen", "--metrics-listen")),
    ],
)
def test_an_impossible_port_of_a_service_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    parse: Callable[[list[str]], object],
    arguments: list[str],
    options: tuple[str, ...],
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    for option in options:
        parse([*arguments, option, "127.0.0.1:65535"])
        with pytest.raises(BadParameter) as refused:
            parse([*arguments, option, "127.0.0.1:70000"])
        first = 1 if option in {"--aggregator", "--shuffler-status"} else 0
        assert str(refused.value) == (
            f"{option} '127.0.0.1:70000' is not an address; write HOST:PORT, with a port in "
            f"[{first}, 65535]"
        )
        with pytest.raises(BadParameter) if first else nullcontext():
            parse([*arguments, option, "127.0.0.1:0"])


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Endpoints(page="http://127.0.0.1:70000").service,
        lambda: transport_to("127.0.0.1:70000", roots=None, insecure=True),
        lambda: transport_to("127.0.0.1:0", roots=None, insecure=True),
        lambda: transport_to("127.0.0.1:70000", roots=None, insecure=True, transport="http"),
        lambda: transport_to("https://127.0.0.1:70000", roots=None),
        lambda: hubbub.notebook.connect("http://127.0.0.1:70000"),
        lambda: webhook("https://127.0.0.1:70000/", b"", None),  # type: ignore[arg-type]  # not reached
        lambda: Tokens("https://issuer.example.org:70000"),
        lambda: issuer([*ISSUER, "--oidc", "https://a:70000", "--oidc-audience", "app"]),
        lambda: relay(["--gateway", "https://a:70000", "--insecure"]),
    ],
)
def test_an_impossible_port_is_refused_by_every_caller(refused: Callable[[], object]) -> None:
    with pytest.raises(HubbubError, match=r"address|must be https://HOST"):
        refused()


def test_an_impossible_port_of_a_log_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert is_log_name("log.example.org:7443/app")
    assert not is_log_name("log.example.org:70000/app")
    assert main(["log", "audit", "https://log.example.org:70000/app", "--key", "x"]) == 2
    assert "not the address of a log; write https://HOST/PATH" in capsys.readouterr().err


def test_an_impossible_port_of_a_login_provider_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "access.toml"
    path.write_text(
        'origin = "https://hubbub.example.org"\n[oidc]\nissuer = "https://id.example.org:70000"\n'
    )
    with pytest.raises(BadParameter, match="is not https://HOST"):
        read_access(path)


@pytest.mark.parametrize(
    "url",
    [
        "https://u:S3CRET@h:1/path",
        "u:S3CRET@h:99999",
        "u:S3/CRET@h:3128",
        "http://u:S3//CRET@h:3128",
        "https://h:1?token=S3CRET",
    ],
)
def test_a_shown_address_contains_its_host_and_no_secret(url: str) -> None:
    shown = shown_url(url)
    assert "h:" in shown
    assert "S3" not in shown
    assert "CRET" not in shown
