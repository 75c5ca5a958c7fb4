"""Whether what is installed is what its wheels recorded, and one digest to compare releases by."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

_OURS: Final = "hubbub"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Installed:
    """One distribution.

    files: how many have a recorded hash; none of a checkout, whose files nothing records.
    changed: those that are missing, or hold something else. digest: of what is recorded of
    `hubbub/` alone, which is the same wherever the same wheel is installed.
    """

    name: str
    version: str
    files: int
    changed: tuple[str, ...]
    digest: str


def content_digest(hashes: Mapping[str, str]) -> str:
    """SHA-256, in hex, of files by path with their own: a line `path hash` each, sorted."""
    lines = "".join(f"{path} {digest}\n" for path, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def installed() -> list[Installed]:
    """hubbub, then the distributions that it names and that are here."""
    own = distribution(_OURS)
    named = sorted({_NAME.match(one)[0].lower() for one in own.requires or ()})  # type: ignore[index]
    return [_looked_at(own), *(_looked_at(one) for one in _here(named))]


def identity() -> str:
    """Which hubbub this is: its version, and the digest of its content where one is recorded."""
    own = _looked_at(distribution(_OURS))
    content = f"content sha256:{own.digest}" if own.files else "a checkout, which nothing records"
    return f"hubbub {own.version}, {content}"


def verify() -> tuple[list[str], bool]:
    """What to say of all that is installed, a line each, and whether all of it is as recorded."""
    found = [one for one in installed() if one.files]
    files = sum(one.files for one in found)
    changed = [(one, path) for one in found for path in one.changed]
    lines = [
        identity(),
        f"{files:,} files of {len(found)} distributions compared with what was recorded of them",
    ]
    lines += [f"{one.name} {one.version}: {path} is not what was recorded" for one, path in changed]
    return lines, not changed


def _here(names: Iterable[str]) -> Iterator[Distribution]:
    for name in names:
        try:
            yield distribution(name)
        except PackageNotFoundError:
            continue


def _looked_at(one: Distribution) -> Installed:
    recorded = {path: path.hash for path in one.files or () if path.hash is not None}
    changed = [
        str(path)
        for path, told in recorded.items()
        if not _holds(Path(str(path.locate())), told.mode, told.value)
    ]
    ours = {
        path.as_posix(): told.value
        for path, told in recorded.items()
        if path.parts[0] == _OURS and told.mode == "sha256"
    }
    # An editable install records a file that says where the checkout is, and nothing of it.
    is_checkout = one.name == _OURS and not ours
    return Installed(
        one.name,
        one.version,
        0 if is_checkout else len(recorded),
        () if is_checkout else tuple(changed),
        content_digest(ours),
    )


def _holds(path: Path, mode: str, recorded: str) -> bool:
    try:
        made = hashlib.new(mode, path.read_bytes()).digest()
    except (OSError, ValueError):
        return False
    return base64.urlsafe_b64encode(made).rstrip(b"=").decode() == recorded
