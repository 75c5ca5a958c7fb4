"""`hubbub log`: the transparency log of bundles, notices and keys, checked by whoever wishes."""

import argparse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub.catalog import Bundle, open_bundle, open_notice, read_bundle
from hubbub.catalog.bundles.difference import differences
from hubbub.catalog.encoding import MALFORMED, from_text, read_json
from hubbub.catalog.log.checkpoint import Checkpoint
from hubbub.catalog.log.log_reader import Fetch, ReadLog, bundle_sizes, read_log
from hubbub.catalog.log.log_writer import folder_fetch
from hubbub.catalog.log.merkle import refuse_inconsistent, tree_root
from hubbub.catalog.log.notes import NoteKey
from hubbub.catalog.log.tiles import CHECKPOINT
from hubbub.cli.terminal.difference_table import show_difference
from hubbub.cli.terminal.output import say, several
from hubbub.errors import BadParameter, BundleRefused, HubbubError, LogBroken

_SECONDS: Final = 30.0
_MAX_BYTES: Final = 64 << 20
_SHOWN: Final = 12


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `log` to the command line."""
    log = commands.add_parser("log")
    actions = log.add_subparsers(required=True, metavar="ACTION")
    audit = actions.add_parser(
        "audit", help="check all of a log: every bundle ever shipped, and what each changed"
    )
    audit.add_argument("where", metavar="URL|FOLDER", help="where the log is served, or its folder")
    whose = audit.add_mutually_exclusive_group(required=True)
    whose.add_argument(
        "--bundle", type=Path, help="an app's, as its device has it: it must be in this very log"
    )
    whose.add_argument("--key", help="the log's own, as NAME+ID+KEY, instead")
    audit.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="the checkpoint that was seen last: the log must have grown from it; kept there anew",
    )
    audit.set_defaults(run=_audit)


def _audit(arguments: argparse.Namespace) -> int:
    fetch = _fetch(arguments.where)
    bundle = read_bundle(arguments.bundle) if arguments.bundle else None
    key = _key(arguments.key) if bundle is None else bundle.log
    if key is None:
        raise BadParameter(f"--bundle {arguments.bundle}: it names no log")
    log = read_log(fetch, key)
    say(f"{arguments.where}: {_entries(len(log.entries))}, signed by {key}")
    if arguments.known:
        _refuse_unknown(log, key, arguments.known)
    if bundle:
        _refuse_absent(log, bundle, arguments.bundle)
    problems = [*_problems(log), *(_gaps(log, bundle, arguments.bundle) if bundle else ())]
    for problem in problems:
        say(f"PROBLEM: {problem}")
    if problems:
        return 1
    say("every entry is there, is signed, and takes no more under a name than was promised before")
    return 0


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"


def _refuse_absent(log: ReadLog, bundle: Bundle, path: Path) -> None:
    """Check that a device's bundle is in this log. Raises BundleRefused or LogBroken."""
    if bundle.proof is None:
        raise BundleRefused(f"{path}: it does not prove that it is in its log")
    seen = bundle.proof.checkpoint
    log.refuse_other(seen.size, seen.root, str(path))
    say(f"{path}: is entry {bundle.proof.index} of it, and the log grew from what it says")


def _refuse_unknown(log: ReadLog, key: NoteKey, path: Path) -> None:
    """Check that the log grew from the checkpoint in a file, and keep the new one there."""
    try:
        if path.exists():
            seen = Checkpoint.open(path.read_text(), key)
            log.refuse_other(seen.size, seen.root, str(path))
            say(f"{path}: the log grew from {seen.size} to {log.checkpoint.size} entries")
        path.write_text(log.checkpoint.note)
    except (OSError, ValueError, BadParameter) as error:
        raise BadParameter(f"--known {path}: {error}") from error


def _problems(log: ReadLog) -> Iterator[str]:
    """What no honest operator's log has; shows what each bundle changes on the way."""
    former: Bundle | None = None
    for number, entry in enumerate(log.entries):
        name = f"entry {number}, {entry.kind} {entry.digest[:_SHOWN]}"
        try:
            content = log.content(entry)
            if entry.kind == "notice":
                notice = open_notice(content, operator=None)
                say(f"{name}: number {notice.number}, of {', '.join(notice.steps) or 'nothing'}")
            elif entry.kind == "keys":
                read_json(content)
                say(f"{name}: whose signature devices believe, and what they seal to")
            else:
                bundle = open_bundle(content, name)
                yield from (f"{name}: {told}" for told in _misfits(former, bundle, log))
                _show(name, former, bundle)
                former = bundle
        except HubbubError as error:
            yield f"{name}: {error}"
        except MALFORMED:
            yield f"{name}: is not readable"


def _gaps(log: ReadLog, bundle: Bundle, path: Path) -> Iterator[str]:
    """Which devices that had a bundle before would refuse this one, or believe what is not so."""
    if bundle.proof is None:
        return
    told, now = bundle.proof.grown, bundle.proof.checkpoint
    shipped = bundle_sizes(log.entries[: bundle.proof.index])
    for size in sorted({*told, *shipped}):
        if size not in told:
            yield f"{path}: it does not say how the log grew from {size} entries, a bundle's"
            continue
        try:
            before = size, tree_root(log.leaves[: max(size, 0)])
            refuse_inconsistent(before, (now.size, now.root), told[size])
        except BadParameter as error:
            yield f"{path}: what it says of how the log grew from {size} entries is wrong: {error}"


def _misfits(former: Bundle | None, bundle: Bundle, log: ReadLog) -> Iterator[str]:
    if bundle.log is None or bundle.log.name != log.checkpoint.origin:
        yield "it names another log, or none"
    if former is None:
        return
    if former.operator not in bundle.line:
        yield "another operator signed it, to whom nobody handed over"
    if bundle.serial <= former.serial:
        yield f"two bundles at once: its serial {bundle.serial} is not above {former.serial}"
    promised = former.promises()
    for metric, promise in bundle.promises().items():
        if metric in promised and (broken := promised[metric].broken_by(promise)):
            yield f'metric "{metric}": {broken} under an old name'


def _show(name: str, former: Bundle | None, bundle: Bundle) -> None:
    title = f"{name}: serial {bundle.serial}, {several(len(bundle.metrics), 'metric')}"
    if former:
        show_difference(title, differences(former, bundle))
    else:
        say(title)


def _key(told: str) -> NoteKey:
    name, _, rest = told.partition("+")
    _, _, public = rest.partition("+")
    try:
        key = NoteKey(name, from_text(public)[1:])
    except ValueError as error:
        raise BadParameter("--key is no NAME+ID+KEY, as hubbub log audit says it") from error
    if str(key) != told:
        raise BadParameter("--key is no NAME+ID+KEY of this kind: its parts do not fit")
    return key


def _fetch(where: str) -> Fetch:
    if not where.startswith(("http://", "https://")):
        if not (Path(where) / CHECKPOINT).exists():
            raise BadParameter(f"{where}: no log is there; give its folder or its URL")
        return folder_fetch(Path(where))

    def fetch(path: str) -> bytes:
        url = f"{where.rstrip('/')}/{path}"
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 looked at
                found: bytes = answer.read(_MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise LogBroken(f"{url}: cannot be read: {reason}") from error
        if len(found) > _MAX_BYTES:
            raise LogBroken(f"{url}: larger than {_MAX_BYTES >> 20} MiB")
        return found

    return fetch
