"""A real provider of OpenID Connect (oidc-provider, for Node), and what tests ask of it."""

import fcntl
import json
import re
import secrets
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import httpx2

from hubbub.installation.child_process import Child, free_port
from tests.support import web
from tests.support.node import run
from tests.support.waiting import HANG_SECONDS, eventually

FOLDER: Final = Path(__file__).parent / "oidc_provider"
CLIENT: Final = "hubbub"
SECRET: Final = "a secret of the tests alone"  # noqa: S105 opens nothing
PEOPLE: Final = {
    "ana": ["telemetry"],
    "bo": ["browsers", "other"],
    "eve": ["nobody"],
    "robot": ["telemetry"],
}


@dataclass(frozen=True)
class Provider:
    """One that runs. issuer: its address. origin: of the service that people log in to."""

    issuer: str
    child: Child
    origin: str

    def script_token(self, audience: str) -> str:
        """What a program gets by its own secret."""
        answer = web.post(
            f"{self.issuer}/token",
            auth=("robot", SECRET),
            data={"grant_type": "client_credentials", "scope": "read", "resource": audience},
        )
        return str(answer.raise_for_status().json()["access_token"])

    def id_token(self, name: str) -> str:
        """What an app gets once somebody logged in, as a browser does it without a script."""
        verifier, back = secrets.token_urlsafe(32), f"{self.origin}/login/callback"
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {"client_id": CLIENT, "response_type": "code", "scope": "openid"}
        query |= {"redirect_uri": back, "code_challenge": challenge}
        query["code_challenge_method"] = "S256"
        with httpx2.Client(timeout=HANG_SECONDS) as browser:
            answer = browser.get(f"{self.issuer}/auth", params=query)
            while not (place := answer.headers.get("location", "")).startswith(back):
                if place:
                    answer = browser.get(answer.url.join(place))
                    continue
                [form] = re.findall(r'<form[^>]* action="([^"]+)"', answer.text)
                [prompt] = re.findall(r'name="prompt" value="(\w+)"', answer.text)
                typed = {"prompt": prompt, "login": name, "password": "any"}
                answer = browser.post(answer.url.join(form), data=typed)
            reply = {"grant_type": "authorization_code", "redirect_uri": back}
            reply |= {"code": httpx2.URL(place).params["code"], "code_verifier": verifier}
            answer = browser.post(f"{self.issuer}/token", auth=(CLIENT, SECRET), data=reply)
        return str(answer.raise_for_status().json()["id_token"])


@contextmanager
def provider(
    folder: Path, origin: str, *, skew: int = 0, port: int = 0, jwks: Any = None
) -> Iterator[Provider]:
    """A provider that knows the service at `origin`.

    skew: seconds that its clock is ahead. jwks: its private keys, if not those that all have here.
    """
    # What the provider is made of, once: parts of `make test` that run beside each other wait.
    ready = FOLDER / "node_modules" / "ready"
    with (FOLDER / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            run("npm", "ci", "--loglevel=error", "--no-audit", "--no-fund", folder=FOLDER)
            ready.touch()
    port = port or free_port()
    browsers: dict[str, Any] = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "redirect_uris": [f"{origin}/login/callback"],
        "post_logout_redirect_uris": [f"{origin}/"],
    }
    programs: dict[str, Any] = {
        "client_id": "robot",
        "client_secret": SECRET,
        "grant_types": ["client_credentials"],
        "response_types": [],
        "redirect_uris": [],
    }
    settings = {"port": port, "skew": skew, "people": PEOPLE, "clients": [browsers, programs]}
    settings["jwks"] = jwks
    node = shutil.which("node") or "node"
    command = [node, str(FOLDER / "provider.js"), json.dumps(settings)]
    child = Child("provider", command, {}, folder / f"provider-{port}.log")
    oidc_provider = Provider(f"http://127.0.0.1:{port}", child, origin)

    def answers() -> bool:
        child.check()
        return web.get(f"{oidc_provider.issuer}/jwks").status_code == 200

    try:
        eventually(answers, child.log.read_text, although=(httpx2.TransportError,))
        yield oidc_provider
    finally:
        child.stop()


def access_file(
    folder: Path, issuer: str, origin: str, groups: Mapping[str, Sequence[str]], **more: Any
) -> Path:
    """A file of access by this provider, with the metrics of each group."""
    (folder / "oidc.secret").write_text(SECRET)
    lines = [f'origin = "{origin}"', "[oidc]", f'issuer = "{issuer}"', f'client = "{CLIENT}"']
    lines += ['secret_file = "oidc.secret"', 'title = "Example"']
    lines += [f"{name} = {json.dumps(value)}" for name, value in more.items()]
    for name, metrics in groups.items():
        lines += [f"[groups.{json.dumps(name)}]", f"metrics = {json.dumps(list(metrics))}"]
    path = folder / "access.toml"
    path.write_text("\n".join(lines) + "\n")
    return path
