"""Compares installed files with the hashes in their wheels; one digest identifies a release."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

_OURS: Final = ("hubbub", "hubbub-client")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One installed distribution.

    `files` is the number of files with a recorded hash, 0 for a checkout; `changed` are the paths
    of those that are missing or differ. `content` maps paths under `hubbub/` to their recorded
    hashes, which are the same wherever the same wheel is installed.
    """

    name: str
    version: str
    files: int
    changed: tuple[str, ...]
    content: Mapping[str, str]


def content_digest(hashes: Mapping[str, str]) -> str:
    """SHA-256, in hex, over the sorted lines `path hash` of some files."""
    lines = "".join(f"{path} {digest}\n" for path, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def identity() -> str:
    """The version of hubbub that runs, with the digest of its content where hashes are recorded."""
    distributions = [_installed_package(item) for item in _installed_distributions(_OURS)]
    if not all(item.files for item in distributions):
        return f"hubbub {distributions[0].version}, a checkout, which nothing records"
    return f"hubbub {distributions[0].version}, content sha256:{digest_of(distributions)}"


def digest_of(distributions: Iterable[Installed]) -> str:
    """One digest over the files in `hubbub/` of all these distributions."""
    return content_digest({p: h for item in distributions for p, h in item.content.items()})


def verify() -> tuple[list[str], bool]:
    """Compares installed files with their hashes; returns lines to print, and whether all match.

    The files are those of hubbub, and of the installed distributions that it requires.
    """
    ours = [*_installed_distributions(_OURS)]
    required = {
        _NAME.match(requirement)[0].lower()  # type: ignore[index]
        for distribution in ours
        for requirement in distribution.requires or ()
    }
    everything = [*ours, *_installed_distributions(sorted(required.difference(_OURS)))]
    recorded = [item for item in map(_installed_package, everything) if item.files]
    changed = [
        f"{item.name} {item.version}: {path} differs from the installation record"
        for item in recorded
        for path in item.changed
    ]
    files = sum(item.files for item in recorded)
    compared = f"{files:,} files of {len(recorded)} distributions compared with their"
    return [identity(), f"{compared} installation records", *changed], not changed


def _installed_distributions(names: Iterable[str]) -> Iterator[Distribution]:
    for name in names:
        try:
            yield distribution(name)
        except PackageNotFoundError:
            continue


def _installed_package(distribution: Distribution) -> Installed:
    recorded = {path: path.hash for path in distribution.files or () if path.hash is not None}
    changed = [
        str(path)
        for path, file_hash in recorded.items()
        if not _matches_record(Path(str(path.locate())), file_hash.mode, file_hash.value)
    ]
    ours = {
        path.as_posix(): file_hash.value
        for path, file_hash in recorded.items()
        if path.parts[0] == "hubbub" and file_hash.mode == "sha256"
    }
    # An editable install records a file with the checkout's path, but none of its files.
    is_checkout = distribution.name in _OURS and not ours
    return Installed(
        name=distribution.name,
        version=distribution.version,
        files=0 if is_checkout else len(recorded),
        changed=() if is_checkout else tuple(changed),
        content=ours,
    )


def _matches_record(path: Path, mode: str, recorded: str) -> bool:
    try:
        digest = hashlib.new(mode, path.read_bytes()).digest()
    except (OSError, ValueError):
        return False
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == recorded
