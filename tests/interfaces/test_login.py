"""Logging in at a real provider of OpenID Connect: people in a browser, programs by its tokens."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from authlib.integrations.httpx_client import AsyncOAuth2Client
from playwright.sync_api import Page, expect

from hubbub.aggregator.access.access_file import read_access
from hubbub.aggregator.access.audit_trail import AuditTrail
from hubbub.aggregator.access.callers import SESSION, Access, access_of
from hubbub.aggregator.access.login import Login
from hubbub.aggregator.access.sessions import Begun, EndedSessions
from hubbub.aggregator.query import QueryEngine
from hubbub.errors import AccessRefused, ServiceUnavailable
from hubbub.runtime.oidc_tokens import check_claims
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.interfaces.browser import Watched
from tests.support import web
from tests.support.bundles import metric_text
from tests.support.node import needs_node
from tests.support.oidc import Provider, access_file, provider
from tests.support.pages import page_of

AUDIENCE: Final = "urn:hubbub"
RIGHTS: Final = {"telemetry": ["theme", "launches"], "browsers": ["browser*"]}
CATALOG: Final = 'shuffler = "127.0.0.1:1"\n' + "".join(
    metric_text(name, f"What {name} says") for name in ("theme", "launches", "browser")
)
TRUE_COUNTS: Final = {name: {0: 500, 1: 900} for name in ("theme", "browser")}

pytestmark = needs_node


@dataclass
class House:
    """A page whose people log in. moved: seconds that its clock is ahead of this machine's."""

    address: str
    provider: Provider
    folder: Path
    access: Access
    audit: Path
    moved: float = 0.0

    def clock(self) -> float:
        return time.time() + self.moved

    def script(self, token: str, path: str = "/v1/metrics") -> Any:
        return web.get(f"{self.address}{path}", headers={"authorization": f"Bearer {token}"})


@contextmanager
def _house(folder: Path, skew: int = 0) -> Iterator[House]:
    houses: list[House] = []
    running: list[Any] = []

    def access_of_house(address: str, query: QueryEngine) -> dict[str, Any]:
        block = provider(folder, address, skew=skew)
        running.append(block)
        login_provider = block.__enter__()
        path = access_file(folder, login_provider.issuer, address, RIGHTS, audience=AUDIENCE)
        house = House(address, login_provider, folder, Access(), folder / "audit.jsonl")
        house.access.clock = house.clock
        house.access.use(read_access(path))
        houses.append(house)
        audit = AuditTrail(house.audit, lambda: set(query.collected.bundle.streams), house.clock)
        return {"access": house.access, "audit": audit}

    try:
        with page_of(folder, CATALOG, TRUE_COUNTS, opened=access_of_house):
            yield houses[0]
    finally:
        for block in running:
            block.__exit__(None, None, None)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with _house(tmp_path_factory.mktemp("login")) as house:
        yield house


@pytest.fixture
def moved(home: House) -> Iterator[Callable[[float], None]]:
    def move(seconds: float) -> None:
        home.moved = seconds

    yield move
    home.moved = 0.0


def _log_in(page: Page, name: str) -> None:
    page.get_by_role("link", name="Log in with Example").click()
    page.fill("input[name=login]", name)
    page.fill("input[name=password]", "any")
    page.click("button[type=submit]")
    page.get_by_role("button", name="Continue").click()


def test_people_log_in_see_what_their_groups_may_and_log_out(
    unchecked: Watched, home: House
) -> None:
    page = unchecked.page
    page.goto(f"{home.address}/metric?name=theme&confidence=0.99#look=typed")
    _log_in(page, "ana")
    page.wait_for_selector("main[aria-busy=false]")
    # Back at the very page, with what stands after the #, which nobody else was told.
    assert page.url == f"{home.address}/metric?name=theme&confidence=0.99#look=typed"
    expect(page.get_by_text("ana@example.org")).to_be_visible()
    expect(page.locator("#table")).to_contain_text("dark")
    # A viewer is offered nothing that the service would refuse.
    page.locator("#marks summary").click()
    expect(page.locator("#marks")).to_contain_text("needs the role publisher")
    assert page.locator("#marking").count() == 0
    [session] = [cooky for cooky in unchecked._context.cookies() if cooky["name"] == SESSION]
    assert (session["httpOnly"], session["secure"], session["sameSite"]) == (
        True,
        True,
        "Strict",
    )
    assert [
        cooky["name"] for cooky in unchecked._context.cookies() if "login" in cooky["name"]
    ] == []
    assert not page.evaluate("document.cookie"), "a script can read it"

    page.goto(f"{home.address}/")
    page.wait_for_selector("main[aria-busy=false]")
    assert page.locator(".cards > li").count() == 2
    assert "browser" not in page.inner_text("main")
    page.goto(f"{home.address}/metric?name=browser")
    expect(page.get_by_text("Unknown metric")).to_be_visible()

    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(f"{home.provider.issuer}/session/end**")
    copied = {"cookie": f"{SESSION}={session['value']}"}
    assert web.get(f"{home.address}/v1/metrics", headers=copied).status_code == 401
    page.goto(f"{home.address}/")
    expect(page.get_by_role("link", name="Log in with Example")).to_be_visible()


@pytest.mark.thorough
def test_a_person_without_a_group_is_informed_and_sees_nothing(
    unchecked: Watched, home: House
) -> None:
    page = unchecked.page
    page.goto(f"{home.address}/")
    _log_in(page, "eve")
    expect(page.get_by_role("heading", name="Not logged in")).to_be_visible()
    expect(page.locator("main")).to_contain_text("eve@example.org has logged in, but has no group")
    assert not [cooky for cooky in unchecked._context.cookies() if cooky["name"] == SESSION]


@pytest.mark.thorough
def test_a_session_that_is_over_asks_again_and_comes_back(
    unchecked: Watched, home: House, moved: Callable[[float], None]
) -> None:
    page = unchecked.page
    page.goto(f"{home.address}/metric?name=theme")
    _log_in(page, "ana")
    expect(page.locator("#table")).to_contain_text("dark")
    moved(8 * 3600 + 1)
    page.reload()
    expect(page.get_by_text("your session is over")).to_be_visible()
    moved(0)
    page.get_by_role("link", name="Log in with Example").click()
    # The provider still knows who it is: nothing is typed again.
    expect(page.locator("#table")).to_contain_text("dark")
    assert page.url == f"{home.address}/metric?name=theme"


def test_a_program_asks_by_a_token_of_the_provider(home: House) -> None:
    token = home.provider.script_token(AUDIENCE)
    answer = home.script(token)
    assert [metric["name"] for metric in answer.json()["metrics"]] == ["theme", "launches"]
    me = home.script(token, "/v1/me").json()
    assert (me["way"], me["role"], me["groups"]) == ("script", "viewer", ["telemetry"])


def test_a_token_for_another_audience_is_refused_with_both_audiences(home: House) -> None:
    answer = home.script(home.provider.script_token("urn:somebody-else"))
    assert answer.status_code == 401
    document = answer.json()["detail"]
    assert 'another audience, "urn:somebody-else"' in document
    assert f'for "{AUDIENCE}"' in document


def test_an_expired_token_is_refused_with_its_end(
    home: House, moved: Callable[[float], None]
) -> None:
    token = home.provider.script_token(AUDIENCE)
    moved(600 + 30)
    assert home.script(token).status_code == 200, "clocks may be a minute apart"
    moved(600 + 3600)
    answer = home.script(token)
    assert (answer.status_code, "expired 3,6" in answer.json()["detail"]) == (401, True)


@pytest.mark.parametrize("broken", ["cut", "another's", "none", "altered"])
def test_a_token_with_a_wrong_signature_lets_nobody_in(home: House, broken: str) -> None:
    token = home.provider.script_token(AUDIENCE)
    head, body, signature = token.split(".")
    swapped = signature[:20] + ("A" if signature[20] != "A" else "B") + signature[21:]
    script_token = {
        "cut": token[:-40],
        "another's": f"{head}.{body}.{swapped}",
        "none": f"eyJhbGciOiJub25lIn0.{body}.",  # by the algorithm "none"
        "altered": f"{head}.{body[:-4]}AAAA.{signature}",
    }[broken]
    answer = home.script(script_token)
    assert answer.status_code == 401
    assert "not signed by the provider" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        *(("sub", value) for value in (5, "", "a\ud800", "x" * 256, ["ana"], None)),
        *((name, sign * 10**400) for name in ("exp", "nbf", "iat") for sign in (-1, 1)),
        ("audience", 5),
    ],
    ids=lambda argument: str(argument)[:9],
)
def test_a_login_token_with_an_unusable_claim_is_refused(claim: str, value: Any) -> None:
    """At the issuer and at the aggregator, which counted on a text and on dates."""
    claims = {"iss": "i", "aud": "us", "exp": 2, "sub": "ana", claim[:3]: value}
    with pytest.raises(AccessRefused, match=claim):
        check_claims(claims, issuer="i", audiences=("us",), now=1)


def test_clocks_that_are_apart_are_named(tmp_path: Path) -> None:
    with _house(tmp_path, skew=400) as ahead:
        answer = ahead.script(ahead.provider.script_token(AUDIENCE))
    assert answer.status_code == 401
    assert "correct the clock of this machine or of the provider" in answer.json()["detail"]


def test_a_provider_that_is_down_blocks_new_logins_but_ends_no_session(tmp_path: Path) -> None:
    with _house(tmp_path) as house:
        token = house.provider.script_token(AUDIENCE)
        assert house.script(token).status_code == 200
        house.provider.child.stop()
        assert house.script(token).status_code == 200, "its keys are known"
        house.access.login = None
        house.access.use(read_access(tmp_path / "access.toml"))
        refused = house.script(token)
        assert (refused.status_code, refused.json()["title"]) == (503, "ServiceUnavailable")
        assert "does not answer as one" in refused.json()["detail"]
        page = web.get(f"{house.address}/login")
        assert page.status_code == 503
        assert "Nobody can log in for now" in page.text


@pytest.mark.parametrize(
    ("seconds", "part", "why"),
    [(0, b" ", "TimeoutError"), (10, bytes(1 << 16), "too large"), (10, b"", "is compressed")],
)
async def test_a_slow_or_endless_answer_of_a_provider_blocks_no_other_login(
    seconds: float, part: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.aggregator.access.login.CALL_SECONDS", seconds)
    oidc = read_access(access_file(tmp_path, "https://id.example.org", "https://h", RIGHTS)).oidc
    assert oidc is not None
    login = Login(oidc, {}, time.time, EndedSessions(MemoryServer(), time.time))

    async def drops() -> AsyncIterator[bytes]:
        for _ in range(100):
            await asyncio.sleep(0)
            yield part

    headers = {"content-encoding": "Identity" if part else "gzip"}
    answers = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, content=drops()))
    described = {"token_endpoint": "https://id.example.org/token"}
    options = login._keys.calling(described["token_endpoint"])
    async with AsyncOAuth2Client("hubbub", transport=answers, **options) as client:
        with pytest.raises(ServiceUnavailable, match=why):
            await login._exchange_code(client, described, Begun("s", "n", "v", "/"), "code")


@pytest.mark.parametrize(
    "to",
    ["//evil.example", "https://evil.example/", "/\\evil.example", "/v1/metrics", "javascript:x"],
)
def test_a_login_returns_only_to_pages_of_this_service(home: House, to: str) -> None:
    answer = web.get(f"{home.address}/login", params={"to": to}, follow_redirects=False)
    assert answer.status_code == 303
    assert "code_challenge_method=S256" in answer.headers["location"]
    [name, sealed] = answer.headers["set-cookie"].split(";")[0].split("=", 1)
    assert name.startswith(f"{SESSION}-login-")
    login = home.access.login
    assert login is not None
    begun = login._sessions.open_login(sealed)
    assert begun is not None
    assert begun.to == "/"


def test_a_login_answer_for_another_browser_is_refused(home: House) -> None:
    answer = web.get(f"{home.address}/login/callback", params={"state": "abc", "code": "def"})
    assert answer.status_code == 403
    assert "began in another browser" in answer.text
    denied = web.get(f"{home.address}/login", follow_redirects=False)
    cookie = denied.headers["set-cookie"].split(";")[0]
    state = denied.headers["location"].partition("state=")[2].partition("&")[0]
    altered = {"state": state[:-1] + ("b" if state[-1] == "a" else "a"), "code": "def"}
    answer = web.get(f"{home.address}/login/callback", params=altered, headers={"cookie": cookie})
    assert (answer.status_code, "began in another browser" in answer.text) == (403, True)
    parameters = {"state": state, "error": "access_denied", "error_description": "<b>no</b>"}
    refused = web.get(
        f"{home.address}/login/callback", params=parameters, headers={"cookie": cookie}
    )
    assert "the provider refused the login: access_denied &lt;b&gt;no" in refused.text.lower()


def test_a_login_that_another_site_of_the_domain_planted_is_refused(home: House) -> None:
    """Browsers keep `__Host-` to this host; Starlette strips a no-break space before that."""
    begun = web.get(f"{home.address}/login", follow_redirects=False)
    state = begun.headers["location"].partition("state=")[2].partition("&")[0]
    parameters = {"state": state, "error": "access_denied"}
    for before, why in ((b"\xa0", "began in another browser"), (b"a=b; \t", "access_denied")):
        cookie = before + begun.headers["set-cookie"].split(";")[0].encode()
        answer = web.get(
            f"{home.address}/login/callback", params=parameters, headers={b"cookie": cookie}
        )
        assert (answer.status_code, why in answer.text) == (403, True)


def test_a_login_from_a_page_with_a_long_query_fits_a_cookie(home: House) -> None:
    to = f"/metric?name={'a' * 5000}"
    answer = web.get(f"{home.address}/login", params={"to": to}, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert len(cookie) <= 4096, "browsers drop it"
    login = home.access.login
    assert login is not None
    begun = login._sessions.open_login(cookie.split(";")[0].partition("=")[2])
    assert begun is not None
    assert begun.to == "/metric"


def test_a_session_may_write_only_from_pages_of_this_service(home: House) -> None:
    login = home.access.login
    assert login is not None
    from hubbub.aggregator.access.sessions import Session

    until = int(home.clock()) + 60
    sealed = login._sessions.seal(
        Session(
            id="one",
            issuer=login.oidc.issuer,
            client=login.oidc.client,
            subject="ana",
            name="ana",
            groups=("telemetry",),
            until=until,
        )
    )
    cookie = {"cookie": f"{SESSION}={sealed}"}
    url, mark = f"{home.address}/v1/marks/today", {"date": "2026-11-22", "text": "x"}
    evil, ours = ({**cookie, "origin": origin} for origin in ("https://evil.example", home.address))
    for headers in (cookie, evil):  # no origin, or another one
        refused = web.put(url, json=mark, headers=headers)
        assert (refused.status_code, "role publisher" in refused.text) == (403, False)
    # The session's group is a viewer: the guard let the request pass, the role refuses it.
    refused = web.put(url, json=mark, headers=ours)
    assert (refused.status_code, "role publisher" in refused.text) == (403, True)
    # Cookies of other sites of the domain, which no grammar of cookies allows, change nothing.
    for others in ("", 'consent={"a": "b"}; ', "x{}=; ", "; ;=; "):
        with_others = {"cookie": others + cookie["cookie"]}
        assert web.get(f"{home.address}/v1/metrics", headers=with_others).status_code == 200
    other = {"cookie": f"{SESSION}={sealed[:-4]}AAAA"}
    assert web.get(f"{home.address}/v1/metrics", headers=other).status_code == 401


def test_the_audit_names_caller_and_query_but_no_string(home: House) -> None:
    token = home.provider.script_token(AUDIENCE)
    home.script(token, "/v1/metrics/theme/estimates?confidence=0.9&find=SECRET")
    home.script(token, "/v1/metrics/SECRET/estimates?epochs=SECRET")
    lines = home.audit.read_text()
    assert "SECRET" not in lines
    assert '"who": "robot"' in lines
    assert '"metric": "theme", "asked": {"confidence": "0.9"}' in lines
    assert '"metric": "unknown"' in lines
    assert (home.audit.stat().st_mode & 0o777) == 0o600


def test_changed_rights_apply_from_the_next_request(home: House) -> None:
    token = home.provider.script_token(AUDIENCE)
    before = read_access(home.folder / "access.toml")
    try:
        path = access_file(
            home.folder, home.provider.issuer, home.address, {"telemetry": ["*"]}, audience=AUDIENCE
        )
        home.access.use(read_access(path))
        assert home.script(token).json()["total"] == 3
    finally:
        home.access.use(before)
    assert home.script(token).json()["total"] == 2


def test_access_is_opened_from_its_file(home: House) -> None:
    assert access_of(None, read_access(home.folder / "access.toml")).asks
