"""How the services are told things, and what they take for themselves."""

import os
import re
import subprocess
import sys

import pytest

from hubbub.aggregator.settings import parse as aggregator
from hubbub.errors import BadParameter
from hubbub.shuffler.__main__ import _start_fields
from hubbub.shuffler.public_files import read_signed
from hubbub.shuffler.settings import parse as shuffler
from hubbub.shuffler.stream_table import read_stream_table
from tests.conftest import CatalogFiles


@pytest.mark.slow
def test_a_service_may_have_as_many_connections_as_its_machine_allows() -> None:
    """A shell's 1024 files are a thousand silent strangers."""
    code = (
        "import resource; from hubbub.runtime.process import _allow_files\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))\n"
        "_allow_files()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], min(hard, 65536))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    now, most = done.stdout.split()
    assert now == most


@pytest.mark.slow
def test_an_aggregator_starts_no_thread_of_openblas_for_each_core() -> None:
    code = "import hubbub.aggregator.__main__, os; print(len(os.listdir('/proc/self/task')))"
    environment = {name: text for name, text in os.environ.items() if "OPENBLAS" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_calls_of_an_address_are_limited_unless_all_share_one_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    some = ["--streams", "x", "--insecure"]
    assert shuffler(some).peer_calls == 64
    assert shuffler([*some, "--peer-rate", "0"]).peer_calls == 0
    assert shuffler([*some, "--peer-rate", "0", "--peer-calls", "7"]).peer_calls == 7
    with pytest.raises(BadParameter, match=r"--peer-calls -1 is outside \[0, 1000000\]"):
        shuffler([*some, "--peer-calls", "-1"])


@pytest.mark.parametrize("proxy", ["", "example.org", "10.0.0.0/99", "10.0.0.5/8", "*"])
def test_an_invalid_proxy_address_is_refused(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    some = ["--bundle", "x", "--keys", "y", "--insecure"]
    with pytest.raises(BadParameter, match=r"--http-proxy .* is not an address"):
        aggregator([*some, "--http-proxy", proxy])
    assert aggregator([*some, "--http-proxy", "10.0.0.0/24"]).http.proxies == ("10.0.0.0/24",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--http-shared"], "--http-shared is for the HTTP door; open it with --http HOST:PORT"),
        (["--http-bundle", "a"], "--http-bundle is for the HTTP door"),
        (["--http", "1"], "--http '1' is not an address; write HOST:PORT"),
        (["--http", "a:1", "--http-proxy", "x"], "--http-proxy 'x' is not an address"),
        (["--http-proxy-protocol"], "--http-proxy-protocol is for the HTTP door"),
        (["--http", "a:1", "--http-proxy-protocol"], "needs --http-proxy: the proxy whose header"),
    ],
)
def test_wrong_http_options_of_a_shuffler_are_refused(
    monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    some = ["--streams", "x", "--insecure"]
    with pytest.raises(BadParameter, match=re.escape(message)):
        shuffler([*some, *options])
    assert shuffler([*some, "--http", "127.0.0.1:1"]).http.listen == "127.0.0.1:1"
    assert not shuffler(some).http.listen


def test_a_shuffler_logs_at_start_that_http_is_off(
    monkeypatch: pytest.MonkeyPatch, catalog_files: CatalogFiles
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    some = ["--streams", str(catalog_files.streams), "--insecure"]
    stream_table = read_stream_table(catalog_files.streams), read_signed(None, None)
    assert _start_fields(shuffler(some), *stream_table)["http"] == "off"
    assert (
        _start_fields(shuffler([*some, "--http", "127.0.0.1:1"]), *stream_table)["http"]
        == "127.0.0.1:1"
    )


@pytest.mark.parametrize("header", [False, True])
def test_a_proxy_is_trusted_by_one_method_only(
    monkeypatch: pytest.MonkeyPatch, header: bool
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    some = ["--streams", "x", "--insecure", "--http", "127.0.0.1:1", "--http-proxy", "10.0.0.1"]
    settings = shuffler([*some, *["--http-proxy-protocol"] * header]).http
    believed = (settings.header_proxies, settings.proxies)
    assert believed == ((("10.0.0.1/32",), ()) if header else ((), ("10.0.0.1/32",)))


def test_development_services_get_the_flag_and_hold_no_reports_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    some = ["--streams", "x", "--insecure"]
    settings = shuffler(some)
    assert (settings.common.development, settings.reserve, settings.delay) == (False, 1, 30)
    by_option = shuffler([*some, "--dev"])
    assert (by_option.common.development, by_option.reserve, by_option.delay) == (True, 0, 0)
    assert shuffler([*some, "--dev", "--reserve", "2"]).reserve == 2
    monkeypatch.setenv("HUBBUB_DEV", "1")
    assert shuffler(some) == by_option
    assert aggregator(["--bundle", "x", "--keys", "y", "--insecure"]).common.development
    monkeypatch.setenv("HUBBUB_DEV", "yes")
    with pytest.raises(BadParameter, match="HUBBUB_DEV is neither 1 nor 0"):
        shuffler(some)
