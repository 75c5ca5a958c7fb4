"""`hubbub log`: the transparency log of bundles, notices and keys, which anybody may check."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hubbub.bundles import Bundle, open_bundle, open_notice, read_bundle
from hubbub.bundles.encoding import MALFORMED, read_json
from hubbub.bundles.metric_promise import Promise, merge_promises
from hubbub.bundles.transparency_log import COSIGNATURE, ED25519, Checkpoint, NoteKey, signers
from hubbub.cli.terminal.difference_table import show_difference
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter, BundleRefused, HubbubError
from hubbub.errors.address_checks import server_parts, shown_url
from hubbub.errors.message_words import several
from hubbub.programs.atomic_write import write_output
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import Exclusive, argument, option
from hubbub.programs.text_files import unreadable
from hubbub.signing.log.log_files import CHECKPOINT, ReadLog, read_log
from hubbub.signing.log.witnesses import (
    cosign_newest,
    cosigned_file,
    fetch_from,
    gaps,
    misfits,
    publish_cosigned,
    refuse_unwitnessed,
)
from hubbub.signing.metric_changes import differences

_HASH_LETTERS: Final = 12
_ORIGIN: Final = Exclusive(required=True)


def _read_where(_option: str, source: str) -> str:
    if source.startswith(("http://", "https://")) and server_parts(source) is None:
        raise BadParameter(
            f"{shown_url(source)} is not the address of a log; write https://HOST/PATH"
        )
    return source


def _read_key(option: str, text: str, kind: bytes = ED25519) -> NoteKey:
    try:
        return NoteKey.read(text, kind)
    except BadParameter as error:
        maker = "hubbub log audit" if kind == ED25519 else "hubbub keys witness"
        raise BadParameter(f"{option} is not NAME+ID+KEY as {maker} prints it: {error}") from error


def _bundle_option(text: str) -> Any:
    return option(text, default=Path(), exclusive=_ORIGIN)


def _key_option() -> Any:
    """The option for the log's key, without a bundle."""
    return option(
        "key of the log, as NAME+ID+KEY, instead of --bundle",
        default=None,
        exclusive=_ORIGIN,
        read=_read_key,
    )


def _origin(path: Path, key: NoteKey | None) -> tuple[Bundle | None, NoteKey]:
    """The bundle at a path, unless a key is given, and the log's key."""
    if key:
        return None, key
    bundle = read_bundle(path)
    if bundle.log is None:
        raise BadParameter(f"--bundle {path}: names no log; give the key of the log with --key")
    return bundle, bundle.log


@command(
    "log audit", text="check a whole log: every bundle ever shipped, and what each bundle changed"
)
def _audit(
    *,
    where: str = argument(
        "address of the log, or its folder", metavar="URL|FOLDER", read=_read_where
    ),
    bundle: Path = _bundle_option("bundle of an app, as a device has it: it must be in this log"),
    key: NoteKey | None = _key_option(),
    known: Path | None = option(
        "file of the last checkpoint that you saw: the log must have grown from it; the new "
        "checkpoint is written to it",
        metavar="FILE",
    ),
    witness: tuple[NoteKey, ...] = option(
        "witness that must have cosigned the checkpoint, as hubbub keys witness prints it "
        "(repeatable)",
        metavar="NAME+ID+KEY",
        read=lambda option, texts: tuple(
            _read_key(option, text, COSIGNATURE) for text in dict.fromkeys(texts)
        ),
    ),
    witnesses: int | None = option("number of required witnesses (all of them)", metavar="N"),
) -> int:
    fetch = fetch_from(where)
    app_bundle, log_key = _origin(bundle, key)
    needed = len(witness) if witnesses is None else witnesses
    if witnesses is not None and not 1 <= needed <= len(witness):
        raise BadParameter(
            f"--witnesses {needed} must be from 1 to {len(witness)}, the number of --witness"
        )
    log = read_log(fetch, log_key)
    say(f"{where}: {_entries(len(log.entries))}, signed by {log_key}")
    if witness:
        for line in refuse_unwitnessed(log.checkpoint, log_key, witness, needed, time.time()):
            say(line)
    if known:
        _refuse_unknown(log, log_key, known)
    if app_bundle:
        proof = app_bundle.proof
        if proof is None:
            raise BundleRefused(f"{bundle}: it does not prove that it is in its log")
        log.refuse_other(proof.checkpoint, str(bundle))
        say(f"{bundle}: is entry {proof.index}, and the log grew from the bundle's checkpoint")
    problems = [*_problems(log), *(gaps(log, app_bundle, bundle) if app_bundle else ())]
    for problem in problems:
        say(f"PROBLEM: {problem}")
    if problems:
        return 1
    say("every entry is present and signed, and no metric takes more than was promised before")
    return 0


@command(
    "log cosign",
    text="for a witness: sign the newest checkpoint of a log, if the log grew from the last one",
)
def _cosign(
    *,
    where: str = argument(
        "address of the log, or its folder", metavar="URL|FOLDER", read=_read_where
    ),
    bundle: Path = _bundle_option("bundle of an app; it names the log"),
    key: NoteKey | None = _key_option(),
    keys: Path = option("folder made by hubbub keys witness", metavar="FOLDER"),
    state: Path | None = option(
        "file of the checkpoint that was cosigned last; the new checkpoint is written to it "
        "(in --keys)",
        metavar="FILE",
    ),
    first: bool = option("this witness has never cosigned this log: accept its current state"),
) -> None:
    fetch = fetch_from(where)
    _, log = _origin(bundle, key)
    file = state or cosigned_file(keys, log)
    newest = cosign_newest(fetch, log, keys, file, first=first, now=time.time())
    grew = "accepted as it is" if first else "which grew from the last cosigned checkpoint"
    say(f"{where}: {_entries(newest.size)}, {grew}")
    say(f"{file}: its checkpoint, cosigned; keep it here, and give the operator a copy, for:")
    say("  hubbub log publish")


@command(
    "log publish", text="add the signatures of witnesses to the checkpoint in the folder of a log"
)
def _publish(
    folder: Path = argument("folder of the log, as it is served"),
    cosigned: tuple[Path, ...] = argument(
        "the current checkpoint with the signatures of witnesses", metavar="FILE"
    ),
    bundle: Path = _bundle_option("bundle of the app, which is in this log"),
    key: NoteKey | None = _key_option(),
) -> None:
    _, log = _origin(bundle, key)
    note = publish_cosigned(folder, log, cosigned)
    say(f"{folder / CHECKPOINT}: signed by {', '.join(signers(note))}")


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"


def _refuse_unknown(log: ReadLog, key: NoteKey, path: Path) -> None:
    """Checks that the log grew from the checkpoint in a file, and writes the new one there."""
    try:
        if path.exists():
            checkpoint = Checkpoint.open(path.read_text(), key)
            log.refuse_other(checkpoint, str(path))
            say(f"{path}: the log grew from {checkpoint.size} to {log.checkpoint.size} entries")
    except (OSError, ValueError, BadParameter) as error:
        raise BadParameter(f"--known {path}: {unreadable(error)}") from error
    write_output("--known", path, log.checkpoint.note)


def _problems(log: ReadLog) -> Iterator[str]:
    """Yields what no honest operator's log contains; shows what each bundle changes."""
    former: Bundle | None = None
    promises: dict[str, Promise] = {}
    for number, entry in enumerate(log.entries):
        name = f"entry {number}, {entry.kind} {entry.digest[:_HASH_LETTERS]}"
        try:
            content = log.content(entry)
            if entry.kind == "notice":
                notice = open_notice(content, operator=None)
                say(f"{name}: number {notice.number}, of {', '.join(notice.steps) or 'nothing'}")
            elif entry.kind == "keys":
                read_json(content)
                say(f"{name}: keys whose signatures devices accept, and to which they seal")
            else:
                bundle = open_bundle(content, name)
                yield from (f"{name}: {misfit}" for misfit in misfits(former, bundle, log))
                promises, broken = merge_promises(promises, bundle.promises())
                for metric, problem in broken.items():
                    yield f'{name}: metric "{metric}": {problem} under an old name'
                title = f"{name}: serial {bundle.serial}, {several(len(bundle.metrics), 'metric')}"
                show_difference(title, differences(former, bundle) if former else None)
                former = bundle
        except HubbubError as error:
            yield f"{name}: {error}"
        except MALFORMED:
            yield f"{name}: is not readable"
