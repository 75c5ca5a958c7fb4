"""The limiter: so much from one address, on average; remembered no longer than it must be."""

import pytest

from hubbub.runtime.rpc import rate_limiter
from hubbub.runtime.rpc.grpc_callers import address_of
from hubbub.runtime.rpc.rate_limiter import Limiter, network_of


def bucket_of(peer: str) -> str:
    return network_of((address_of(peer), 0))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


FIRST, SECOND = "192.0.2.1", "192.0.2.2"


def test_a_burst_is_accepted_and_then_a_rate_per_second() -> None:
    clock = Clock()
    limit = Limiter(10, 100, clock)
    assert limit.wait_seconds(FIRST) == 0
    limit.charge(FIRST, 150)
    assert limit.wait_seconds(FIRST) == pytest.approx(5)
    assert limit.wait_seconds(SECOND) == 0
    clock.now += 5
    assert limit.wait_seconds(FIRST) == 0
    total = 0
    for _ in range(1000):
        if not limit.wait_seconds(FIRST):
            limit.charge(FIRST, 7)
            total += 7
        clock.now += 0.1
    assert 1000 <= total <= 1000 + 7


def test_a_peer_is_forgotten_once_it_owes_nothing() -> None:
    clock = Clock()
    limit = Limiter(10, 100, clock)
    limit.charge(FIRST, 400)
    clock.now += 31
    limit.charge(SECOND, 1)
    assert len(limit) == 2
    clock.now += 31
    limit.charge(SECOND, 1)
    assert len(limit) == 1


@pytest.mark.parametrize(
    ("flood", "near", "far"),
    [
        ("ipv4:192.0.2.{}:1", "ipv4:192.0.2.255:1", "ipv4:192.0.3.1:1"),
        ("ipv4:192.0.2.{}:1", "ipv4:192.0.2.255:1", "ipv6:[2001:db8::1]:1"),
        ("ipv6:[2001:db8:1:{:x}00::1]:1", "ipv6:[2001:db8:1:ffff::1]:1", "ipv6:[2001:db8:2::1]:1"),
        ("unix:{}", "unix:another", "ipv4:192.0.3.1:1"),
    ],
)
def test_new_addresses_above_the_limit_share_the_bucket_of_their_network(
    monkeypatch: pytest.MonkeyPatch, flood: str, near: str, far: str
) -> None:
    monkeypatch.setattr(rate_limiter, "_MAX_CALLERS", 50)
    limit = Limiter(1, 10, Clock())
    callers = [bucket_of(flood.format(number)) for number in range(200)]
    if flood.startswith("unix"):
        callers = [f"token {number}" for number in range(200)]
    for caller in callers:
        limit.charge(caller, 1)
    assert len(limit) == 51
    assert limit.wait_seconds(bucket_of(near) if "unix" not in near else "token another") > 0
    assert limit.wait_seconds(bucket_of(far)) == 0, "who lives elsewhere is not held up"
    assert limit.wait_seconds(callers[0]) == 0, "nor who was there before"


def test_a_flood_from_many_networks_stays_within_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate_limiter, "_MAX_CALLERS", 50)
    limit = Limiter(1, 10, Clock())
    for number in range(5000):
        limit.charge(bucket_of(f"ipv6:[2001:{number:x}:7::1]:1"), 1)
    assert len(limit) <= 4 * 50 + 1
    assert limit.wait_seconds(bucket_of("ipv6:[2001:fff0::1]:1")) > 0
    assert limit.wait_seconds(bucket_of("ipv6:[2a00:1::1]:1")) == 0
    assert limit.wait_seconds(bucket_of("ipv4:192.0.2.1:1")) == 0


def test_peers_with_full_buckets_are_dropped_when_room_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100,000 single reports within half a minute from as many networks, say."""
    monkeypatch.setattr(rate_limiter, "_MAX_CALLERS", 50)
    clock = Clock()
    limit = Limiter(200, 100, clock)
    for number in range(50):
        limit.charge(bucket_of(f"ipv6:[2001:db8:0:{number:x}00::1]:1"), 1)
    clock.now += 1.5
    limit.charge(bucket_of("ipv6:[2001:db8:1::1]:1"), 1)
    assert len(limit) == 1


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [
        ("ipv4:192.0.2.1:1", "ipv4:192.0.2.1:2", True),
        ("ipv4:192.0.2.1:1", "ipv4:192.0.2.3:1", False),
        ("ipv6:%5B2001:db8::1%5D:1", "ipv6:[2001:db8::ffff:2]:9", True),
        ("ipv6:%5B2001:db8::1%5D:1", "ipv6:%5B2001:db8:0:ff::1%5D:1", True),
        ("ipv6:%5B2001:db8::1%5D:1", "ipv6:%5B2001:db8:0:100::1%5D:1", False),
        ("ipv6:%5B::ffff:192.0.2.1%5D:1", "ipv4:192.0.2.1:7", True),
        ("ipv6:%5Bfe80::1%25eth0%5D:1", "ipv6:%5Bfe80::2%25eth0%5D:1", True),
        ("unix:/run/one", "unix:/run/two", True),
    ],
)
def test_a_peer_is_an_address_without_its_port(first: str, other: str, *, same: bool) -> None:
    assert (bucket_of(first) == bucket_of(other)) is same


def test_without_a_rate_the_limiter_delays_and_remembers_nobody() -> None:
    limit = Limiter(0, 1, Clock())
    limit.charge(FIRST, 10**9)
    assert limit.wait_seconds(FIRST) == 0
    assert len(limit) == 0
