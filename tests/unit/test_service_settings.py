"""How the services are told things, and what they take for themselves."""

import subprocess
import sys

import pytest

from hubbub.aggregator.settings import parse as aggregator
from hubbub.errors import BadParameter
from hubbub.shuffler.settings import parse as shuffler


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


def test_calls_of_an_address_are_limited_unless_addresses_tell_nobody_apart(
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
def test_a_proxy_that_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://127.0.0.1/0")
    some = ["--bundle", "x", "--keys", "y", "--insecure"]
    with pytest.raises(BadParameter, match=r"--http-proxy .* is no address"):
        aggregator([*some, "--http-proxy", proxy])
    assert aggregator([*some, "--http-proxy", "10.0.0.0/24"]).http_proxies == ("10.0.0.0/24",)
