"""A real provider of OpenID Connect (oidc-provider, for Node), and what tests ask of it."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from hubbub.cli.local.child_process import Child
from hubbub.cli.local.ports import free_port
from tests.support import web
from tests.support.waiting import eventually

FOLDER: Final = Path(__file__).parent / "oidc_provider"
CLIENT: Final = "hubbub"
SECRET: Final = "a secret of the tests alone"  # noqa: S105 opens nothing
PEOPLE: Final = {
    "ana": ["telemetry"],
    "bo": ["browsers", "other"],
    "eve": ["nobody"],
    "robot": ["telemetry"],
}

needs_provider = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")),
    reason="no Node on this machine: apt-get install nodejs npm",
)


@dataclass(frozen=True)
class Provider:
    """One that runs. issuer: its address."""

    issuer: str
    child: Child

    def script_token(self, audience: str) -> str:
        """What a program gets by its own secret."""
        answer = web.post(
            f"{self.issuer}/token",
            auth=("robot", SECRET),
            data={"grant_type": "client_credentials", "scope": "read", "resource": audience},
        )
        return str(answer.raise_for_status().json()["access_token"])


@contextmanager
def provider(folder: Path, origin: str, *, skew: int = 0, port: int = 0) -> Iterator[Provider]:
    """A provider that knows the service at `origin`. skew: seconds that its clock is ahead."""
    if not (FOLDER / "node_modules" / "ready").exists():
        command = ["npm", "ci", "--silent", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (FOLDER / "node_modules" / "ready").touch()
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
    told = {"port": port, "skew": skew, "people": PEOPLE, "clients": [browsers, programs]}
    node = shutil.which("node") or "node"
    command = [node, str(FOLDER / "provider.js"), json.dumps(told)]
    child = Child("provider", command, {}, folder / f"provider-{port}.log")
    found = Provider(f"http://127.0.0.1:{port}", child)

    def answers() -> bool:
        child.check()
        return web.get(f"{found.issuer}/jwks").status_code == 200

    try:
        eventually(answers, child._log.read_text, although=(httpx2.TransportError,))
        yield found
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
