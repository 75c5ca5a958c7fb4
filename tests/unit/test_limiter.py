"""The limiter: so much from one address, on average; remembered no longer than it must be."""

import pytest

from hubbub.serving import Limiter, limiter, network


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


ONE, OTHER = "192.0.2.1", "192.0.2.2"


def test_a_burst_is_let_in_and_then_so_much_a_second() -> None:
    clock = Clock()
    limit = Limiter(10, 100, clock)
    assert limit.wait_seconds(ONE) == 0
    limit.charge(ONE, 150)
    assert limit.wait_seconds(ONE) == pytest.approx(5)
    assert limit.wait_seconds(OTHER) == 0
    clock.now += 5
    assert limit.wait_seconds(ONE) == 0
    taken = 0
    for _ in range(1000):
        if not limit.wait_seconds(ONE):
            limit.charge(ONE, 7)
            taken += 7
        clock.now += 0.1
    assert 1000 <= taken <= 1000 + 7


def test_a_peer_is_forgotten_once_it_owes_nothing() -> None:
    clock = Clock()
    limit = Limiter(10, 100, clock)
    limit.charge(ONE, 400)
    clock.now += 31
    limit.charge(OTHER, 1)
    assert len(limit) == 2
    clock.now += 31
    limit.charge(OTHER, 1)
    assert len(limit) == 1


def test_peers_past_all_numbers_share_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "_MOST_CALLERS", 50)
    limit = Limiter(1, 10, Clock())
    for number in range(500):
        limit.charge(f"192.0.{number // 200}.{number % 200}", 1)
    assert len(limit) <= 51
    assert limit.wait_seconds("203.0.113.9") > 0
    assert limit.wait_seconds("192.0.0.3") == 0, "who was there before is not held up"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ipv4:192.0.2.1:1", "ipv4:192.0.2.1:2", True),
        ("ipv4:192.0.2.1:1", "ipv4:192.0.2.3:1", False),
        ("ipv6:%5B2001:db8::1%5D:1", "ipv6:[2001:db8::ffff:2]:9", True),
        ("ipv6:%5B2001:db8::1%5D:1", "ipv6:%5B2001:db8:0:1::1%5D:1", False),
        ("ipv6:%5B::ffff:192.0.2.1%5D:1", "ipv4:192.0.2.1:7", True),
        ("ipv6:%5Bfe80::1%25eth0%5D:1", "ipv6:%5Bfe80::2%25eth0%5D:1", True),
        ("unix:/run/one", "unix:/run/two", True),
    ],
)
def test_a_peer_is_an_address_without_its_port(one: str, other: str, *, same: bool) -> None:
    assert (network(one) == network(other)) is same


def test_without_a_rate_nobody_waits_and_nobody_is_remembered() -> None:
    limit = Limiter(0, 1, Clock())
    limit.charge(ONE, 10**9)
    assert limit.wait_seconds(ONE) == 0
    assert len(limit) == 0
