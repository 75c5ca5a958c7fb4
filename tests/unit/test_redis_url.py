"""The Redis URL: what is none is said in one line, without the password."""

import asyncio
from itertools import product

import pytest

from hubbub.errors import StoreUnavailable
from hubbub.runtime.redis.client import connect_redis


@pytest.mark.parametrize(
    "rest",
    [
        "h:6379/0?colour=red",
        "h:6379/0?retry=5",
        "h:6379/0?socket_timeout=nan",
        "h:1/0?db=x",
        "h:6379/0?decode_responses=1",
        "h:6379/0?ssl_cert_reqs=maybe",
        "h:6379/0?db=-1",
        "h:6379/zero",
        "h:port/0",
        "h:99999/0",
        "h:0/0",
        ":6379/0",
        "/0",
        "",
        "[::1/0",
        "h:6379/0?ssl_ca_certs=",
        "a:1,b:x/0",
        "h:6379/0?encoding=none",
        "@@@:::",
        "h:6379/0?\x00",
        "h:6379/0?ssl_min_version=1",
        "h/0?host=elsewhere",
        "h/0?health_check_interval=1e9",
    ],
)
def test_an_invalid_redis_url_is_named_in_one_line_without_the_password(rest: str) -> None:
    users = ("user:se/cret#word@", "user:secret-word@", ":secret-word@")
    for scheme, user in product(("redis", "rediss", "http"), users):
        with pytest.raises(StoreUnavailable) as caught:
            asyncio.run(connect_redis(f"{scheme}://{user}{rest}"))
        text = str(caught.value)
        assert text.startswith("the Redis URL")
        assert "write redis://HOST:PORT/0" in text
        assert text.isprintable()
        assert not any(part in text for part in ("secret", "cret", "word", "user"))


@pytest.mark.parametrize(
    "url",
    [
        "redis://h:6379/0?ssl_ca_certs=ca.pem",
        "redis://h/0?ssl_cert_reqs=none",
        "redis://h/0?ssl_check_hostname=1",
        "redis://a:1,b:2/0?ssl_certfile=c&ssl_keyfile=k",
        "unix:///redis.sock?ssl_ca_path=here",
        "unix:///redis.sock?socket_keepalive=1",
    ],
)
def test_an_option_of_another_scheme_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(
        StoreUnavailable, match=r"option \w+ has no meaning for (redis|unix)://; write"
    ):
        asyncio.run(connect_redis(url))


def test_a_password_that_has_signs_of_a_url_is_answered_with_their_codes() -> None:
    for password in ("a/b", "a#b", "a?b"):
        with pytest.raises(StoreUnavailable, match="write @:/%#\\? as %40 %3A %2F %25"):
            asyncio.run(connect_redis(f"redis://:{password}@h:6379/0"))
