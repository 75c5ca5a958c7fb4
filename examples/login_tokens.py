"""The part of an app whose people log in at a provider of OpenID Connect, by which they get tokens.

Client.from_bundle("app.hubbub", account=asking(ISSUER, the_login_that_the_app_has))
"""

from collections.abc import Callable

import httpx2


def asking(issuer: str, token: Callable[[], str]) -> Callable[[bytes], bytes]:
    """What `account` takes. token: an ID token, or an access token for the issuer, of now."""

    def ask(request: bytes) -> bytes:
        headers = {"Authorization": f"Bearer {token()}", "Content-Type": "application/protobuf"}
        answer = httpx2.post(f"{issuer}/v1/tokens", content=request, headers=headers, timeout=10)
        return answer.raise_for_status().content

    return ask
