"""Login: people by the provider's page and a session, programs by its tokens."""

from collections.abc import Callable, Mapping

from hubbub.aggregator.access.access_file import AccessFile, Oidc
from hubbub.aggregator.access.claims import groups_of, name_of
from hubbub.aggregator.access.ended_sessions import EndedSessions
from hubbub.aggregator.access.provider import Provider
from hubbub.aggregator.access.rights import Caller, Grant, Way, granted
from hubbub.aggregator.access.sessions import Begun, Session, Sessions, new_id
from hubbub.errors import AccessRefused
from hubbub.runtime.oidc import Claims


class Login:
    """The way in by a provider. clock: seconds since 1970. ended: what people logged out of."""

    def __init__(
        self,
        oidc: Oidc,
        rights: Mapping[str, Grant],
        clock: Callable[[], float],
        ended: EndedSessions,
    ) -> None:
        self.oidc = oidc
        self._rights = rights
        self._clock = clock
        self._ended = ended
        self._provider = Provider(oidc, clock)
        self._sessions = Sessions(oidc.session_keys, clock)

    def renewed(self, access: AccessFile) -> "Login | None":
        """The same by another file: sessions go on where provider, client and keys are the same."""
        if access.oidc is None:
            return None
        login = Login(access.oidc, access.groups, self._clock, self._ended)
        if login.oidc == self.oidc:
            login._provider, login._sessions = self._provider, self._sessions
        return login

    async def begin(self, to: str, *, anew: bool = False) -> tuple[str, Begun, str]:
        """Where to go; the login; and the same as a cookie. Raises ServiceUnavailable.

        anew: the provider is to ask who it is, though it may know.
        """
        url, begun = await self._provider.begin(to, anew=anew)
        return url, begun, self._sessions.seal_login(begun)

    def begun(self, cookie: str, state: str) -> Begun:
        """The login that an answer is to.

        Raises:
            AccessRefused: there is none in this browser.
        """
        login = self._sessions.open_login(cookie) if cookie else None
        if login is None or login.state != state:
            raise AccessRefused(
                "this login was begun in another browser, more than ten minutes ago, or is over; "
                "log in again"
            )
        return login

    async def finish(self, begun: Begun, answer: Mapping[str, str]) -> tuple[Caller, str]:
        """Who logged in, and their session as a cookie.

        Raises:
            AccessRefused: nobody did, or somebody who may see nothing.
            ServiceUnavailable: the provider does not answer.
        """
        claims = await self._provider.finish(begun, answer)
        until = int(self._clock()) + self.oidc.session_seconds
        caller = self._caller(claims, "login", until)
        session = Session(
            id=new_id(),
            issuer=self.oidc.issuer,
            client=self.oidc.client,
            subject=caller.subject,
            name=caller.name,
            groups=caller.groups,
            until=until,
        )
        return caller, self._sessions.seal(session)

    async def session(self, cookie: str) -> Caller | None:
        """Who asks by a session, with the rights that its groups have now; None if it is over.

        Raises:
            StoreUnavailable: nobody can say whether it was ended.
        """
        login_session = self._sessions.open(cookie)
        if login_session is None or (login_session.issuer, login_session.client) != (
            self.oidc.issuer,
            self.oidc.client,
        ):
            return None
        if await self._ended.has(login_session.id):
            return None
        grants = granted(login_session.groups, self._rights)
        return Caller(
            name=login_session.name,
            way="login",
            grants=grants,
            subject=login_session.subject,
            groups=login_session.groups,
            until=login_session.until,
        )

    async def script(self, token: str) -> Caller:
        """Who a program asks for. Raises AccessRefused, ServiceUnavailable."""
        claims = await self._provider.read(token)
        return self._caller(claims, "script", int(claims["exp"]))

    async def end(self, cookie: str) -> str | None:
        """End a session, and every copy; where to log out at the provider, if it has such a place.

        Raises:
            StoreUnavailable: it goes on.
        """
        if session := self._sessions.open(cookie):
            await self._ended.end(session.id, session.until)
        return await self._provider.logout_url()

    def _caller(self, claims: Claims, way: Way, until: int) -> Caller:
        claim, name = self.oidc.groups_claim, name_of(claims)
        groups = groups_of(claims, claim)
        if groups is None:
            raise AccessRefused(
                f"{name} is known, but the provider tells no groups: it has to put the claim "
                f'"{claim}" into its tokens, or the access file has to name another as groups_claim'
            )
        own = tuple(right for right in self._rights if right in groups)
        if not own:
            raise AccessRefused(
                f"{name} is known, but in no group that may see anything here; ask who runs this "
                "service for a group of its access file"
            )
        return Caller(
            name=name,
            way=way,
            grants=granted(own, self._rights),
            subject=str(claims["sub"]),
            groups=own,
            until=until,
        )
