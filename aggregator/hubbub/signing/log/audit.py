"""Audits a log, at its address or in its folder: what no honest operator's log contains."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub.bundles import Bundle
from hubbub.bundles.log.merkle import refuse_inconsistent
from hubbub.errors import BadParameter, LogBroken
from hubbub.programs.http_calls import HttpCalls
from hubbub.signing.log.log_reader import Fetch, ReadLog, bundle_sizes
from hubbub.signing.log.log_writer import folder_fetch
from hubbub.signing.log.tree import CHECKPOINT, tree_root

_SECONDS: Final = 30.0
_MAX_BYTES: Final = 64 << 20
_TILE_BYTES: Final = 64 << 10  # 256 entries of less than 100 bytes; hashes are shorter


def gaps(log: ReadLog, bundle: Bundle, path: Path) -> Iterator[str]:
    """Yields which devices with an earlier bundle would refuse this one, or trust it wrongly."""
    if bundle.proof is None:
        return
    proofs, now = bundle.proof.grown, bundle.proof.checkpoint
    shipped = bundle_sizes(log.entries[: bundle.proof.index])
    for size in sorted({*proofs, *shipped}):
        if size not in proofs:
            yield f"{path}: it has no proof that the log grew from {size} entries, of a bundle"
            continue
        try:
            before = size, tree_root(log.leaves[: max(size, 0)])
            refuse_inconsistent(before, (now.size, now.root), proofs[size])
        except BadParameter as error:
            yield f"{path}: its proof that the log grew from {size} entries is wrong: {error}"


def misfits(former: Bundle | None, bundle: Bundle, log: ReadLog) -> Iterator[str]:
    """Yields why a bundle of the log does not continue the one before it, if there is one."""
    if bundle.log is None or bundle.log.name != log.checkpoint.origin:
        yield "it names another log, or none"
    if former is None:
        return
    if former.operator not in bundle.line:
        yield "another operator signed it, without a handover"
    if bundle.serial <= former.serial:
        yield f"two bundles at once: its serial {bundle.serial} is not above {former.serial}"


def fetch_from(source: str) -> Fetch:
    """Reads a log at an address or in a folder. Raises BadParameter if the folder has none."""
    if not source.startswith(("http://", "https://")):
        if not (Path(source) / CHECKPOINT).exists():
            raise BadParameter(f"{source}: contains no log; give its folder or its URL")
        return folder_fetch(Path(source))

    calls = HttpCalls(_SECONDS)

    def fetch(path: str) -> bytes:
        url = f"{source.rstrip('/')}/{path}"
        most = _MAX_BYTES if path.startswith("content/") else _TILE_BYTES
        try:
            answer = calls.answer(urllib.request.Request(url), most)  # noqa: S310 as checked
        except (OSError, ValueError) as error:
            raise LogBroken(f"{url}: cannot be read: {error}") from error
        if not answer.is_success:
            raise LogBroken(
                f"{url}: cannot be read: the log answered {answer.status} {answer.reason}"
            )
        return answer.body

    return fetch
