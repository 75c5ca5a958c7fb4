"""Trust: the operators whose bundles an app accepts, and the promises made under their names.

The app trusts its first operator, and each operator to which that one hands over. Any other must be
named by the app itself; a bundle cannot introduce it.
It is stored in one file beside the states, replaced atomically, under a lock.
"""

import contextlib
import errno
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from hubbub.bundles import Bundle, Promise
from hubbub.bundles.encoding import MALFORMED, from_text, to_text
from hubbub.bundles.metric_promise import merge_promises
from hubbub.client.files import elsewhere, is_own, locked_file, read_file, replace_file
from hubbub.client.lazy_log import warn
from hubbub.client.reentry_and_forks import check_stack
from hubbub.errors import BadParameter, BundleRefused, StateUnusable
from hubbub.fields.frozen import frozen
from hubbub.sealing.digests import checksum, sha256

if TYPE_CHECKING:
    from hubbub.bundles.transparency_log import NoteKey

_VERSION: Final = 1
_FOLDER: Final = re.compile("[0-9a-f]{16}")


class SeenLog(NamedTuple):
    """A transparency log's last verified checkpoint: its size in entries, and its root."""

    key: "NoteKey"
    size: int
    root: bytes

    def words(self) -> list[Any]:
        """Returns it as JSON values."""
        return [self.key.name, to_text(self.key.public), self.size, to_text(self.root)]

    @classmethod
    def load(cls, words: Any) -> Self:
        """Reads what `words()` returned. Raises one of MALFORMED for anything else."""
        from hubbub.bundles.transparency_log import NoteKey  # noqa: PLC0415 of bundles in a log

        name, public, size, root = words
        try:
            return cls(NoteKey(name, from_text(public)), int(size), from_text(root))
        except BadParameter as error:
            raise ValueError("invalid log key") from error


@frozen(kw_only=True)
class Pin:
    """The operator that one app trusts.

    Args:
        operator: key that signed the last bundle.
        before: former keys of the operator, which have handed over and are refused.
        serials: newest bundle that this app has had, by folder.
        log: transparency log of its bundles, as last seen; None for none.
    """

    operator: bytes
    folder: str
    before: tuple[bytes, ...] = ()
    serials: Mapping[str, int] = field(default_factory=dict)
    log: SeenLog | None = None


class Vouched(NamedTuple):
    """What a state folder records about its users; `operator` is b"" if that record is lost."""

    folder: str
    operator: bytes
    names: frozenset[str]
    promises: Mapping[str, Promise]


@dataclass(slots=True)
class Trust:
    """All trust of one user on this device: a pin per app, promises per folder."""

    pins: dict[str, Pin] = field(default_factory=dict)
    promises: dict[str, dict[str, Promise]] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Returns all of it as JSON values."""
        return {
            "version": _VERSION,
            "apps": {
                app: {
                    "operator": to_text(pin.operator),
                    "folder": pin.folder,
                    "before": [to_text(key) for key in pin.before],
                    "serials": dict(pin.serials),
                }
                | ({"log": pin.log.words()} if pin.log else {})
                for app, pin in self.pins.items()
            },
            "promises": {
                folder: {name: promise.data() for name, promise in names.items()}
                for folder, names in self.promises.items()
            },
        }

    @classmethod
    def load(cls, data: Any) -> Self:
        """Reads what `data()` returned. Raises one of MALFORMED for anything else."""
        if data["version"] != _VERSION:
            raise ValueError("another version")
        pins = {
            app: Pin(
                operator=from_text(pin["operator"]),
                folder=_folder(pin["folder"]),
                before=tuple(from_text(key) for key in pin["before"]),
                serials={_folder(folder): int(serial) for folder, serial in pin["serials"].items()},
                log=SeenLog.load(pin["log"]) if "log" in pin else None,
            )
            for app, pin in data["apps"].items()
        }
        promises = {
            folder: {name: Promise.load(promise) for name, promise in names.items()}
            for folder, names in data["promises"].items()
        }
        return cls(pins, promises)

    def absorb(self, other: Self) -> None:
        """Merges another copy: its pins, handovers, newer bundles and promises."""
        for app, pin in other.pins.items():
            self.pins[app] = _merged_pin(self.pins[app], pin) if app in self.pins else pin
        for folder, promises in other.promises.items():
            own_promises = self.promises.setdefault(folder, {})
            for name, promise in promises.items():
                own_promises[name] = (
                    own_promises[name].and_then(promise) if name in own_promises else promise
                )

    def admit(
        self, app: str, bundle: Bundle, word: bytes | None, vouched: Collection[Vouched]
    ) -> tuple[Pin, list[str]]:
        """Accepts a bundle for an app and records it; returns the pin, and folders to inherit from.

        `word` is the operator that the app names explicitly; `vouched` are folders without a known
        app. Raises BundleRefused if it is of another operator, older than the last one, or above
        what was promised.
        """
        if not bundle.operator:
            raise BundleRefused("no operator signed it, or it could not be read")
        pin, former = self._pin(app, bundle, word, vouched)
        newest = pin.serials.get(pin.folder, 0)
        if bundle.serial < newest:
            raise BundleRefused(
                f"the bundle is older than one that {_name(app)} has had (serial "
                f"{bundle.serial}, below {newest}); ship the newer one, or build this "
                "one again: hubbub catalog build"
            )
        log = _current_log(app, bundle, pin.log)
        own_promises = dict(self.promises.get(pin.folder, {}))
        if not own_promises:
            own_promises = {
                n: p for v in vouched if v.folder == pin.folder for n, p in v.promises.items()
            }
        promises, broken = merge_promises(own_promises, bundle.promises())
        if broken:
            problems = "; ".join(f'metric "{name}": {problem}' for name, problem in broken.items())
            raise BundleRefused(
                f"the bundle allows more than this device was promised: {problems}; keep what was "
                "promised, or give the metric a new name"
            )
        self.promises[pin.folder] = promises
        self.pins[app] = replace(pin, serials={**pin.serials, pin.folder: bundle.serial}, log=log)
        return self.pins[app], former

    def _pin(
        self, app: str, bundle: Bundle, word: bytes | None, vouched: Collection[Vouched]
    ) -> tuple[Pin, list[str]]:
        pin, signer = self.pins.get(app), bundle.operator
        if pin and pin.operator == signer:
            return pin, []
        follows = pin is not None and pin.operator in bundle.line
        if self._has_moved_on(bundle, follows=follows):
            raise BundleRefused(
                f"signed by {to_text(signer)}, and its operator has handed over to another key on "
                "this device; ship a bundle that the new key signed"
            )
        if pin and follows:
            # All former keys: of the pin, and of the bundle.
            before = [key for key in (*pin.before, *bundle.line) if key != signer]
            return replace(pin, operator=signer, before=tuple(dict.fromkeys(before))), []
        folder, mine = self._folder(bundle, vouched)
        names = bundle.promises().keys()
        others = [v.folder for v in vouched if v.names & names and not mine]
        if word is None and (pin or others):
            operators = {v.operator for v in vouched if v.folder in others and v.operator}
            raise BundleRefused(_stranger(app, signer, {pin.operator} if pin else operators))
        new = Pin(
            operator=signer,
            folder=folder,
            before=bundle.line[:-1],
            serials=pin.serials if pin else {},
        )
        former = [pin.folder] if pin else others
        return new, [name for name in former if name != folder]

    def _has_moved_on(self, bundle: Bundle, *, follows: bool) -> bool:
        """Returns whether a key before the bundle's signer has handed over to another one here."""
        line, signer = set(bundle.line), bundle.operator
        return any(
            pin.operator not in line
            and not line.isdisjoint(pin.before)
            and not (follows and signer in pin.before)  # another app's pin may be ahead
            for pin in self.pins.values()
        )

    def _folder(self, bundle: Bundle, vouched: Iterable[Vouched]) -> tuple[str, bool]:
        """Returns the folder of this operator's state, and whether an unclaimed folder names it."""
        for key in reversed(bundle.line):
            for voucher in vouched:
                if key == voucher.operator or folder_of(key) == voucher.folder:
                    return voucher.folder, True
            for pin in self.pins.values():
                if pin.operator == key:
                    return pin.folder, False
        return folder_of(bundle.line[0]), False


def _merged_pin(first: Pin, other: Pin) -> Pin:
    """Returns the merge of two copies of a pin: the later operator, with all serials."""
    pin = other if first.operator in other.before else first
    before = (*first.before, *other.before) if first.operator == other.operator else pin.before
    serials = {
        folder: max(first.serials.get(folder, 0), other.serials.get(folder, 0))
        for folder in first.serials.keys() | other.serials.keys()
    }
    logs = [first.log, other.log] if first.operator == other.operator else [pin.log]
    newest = max((log for log in logs if log), key=lambda log: log.size, default=None)
    return replace(pin, before=tuple(dict.fromkeys(before)), serials=serials, log=newest)


def _current_log(app: str, bundle: Bundle, before: SeenLog | None) -> SeenLog | None:
    """Returns the bundle's log now; `before`: as the app saw it last. Raises BundleRefused."""
    # PRIVACY: a bundle for one person would have to be in the log that everybody sees.
    if before is None and bundle.log is None:
        return None
    if before and bundle.log != before.key:
        text = f"names the log {bundle.log}" if bundle.log else "names no log"
        raise BundleRefused(
            f"bundles of {_name(app)} are in the log {before.key}, but this bundle {text}; ship a "
            "bundle that is in that log: hubbub catalog build"
        )
    if bundle.log is None or bundle.proof is None:
        raise BundleRefused(
            f"the bundle does not prove that it is in the log {bundle.log}; ship the file as "
            "hubbub catalog build wrote it, with its third line"
        )
    if before:
        bundle.proof.refuse_fork(before.size, before.root)
    now = bundle.proof.checkpoint
    return SeenLog(bundle.log, now.size, now.root)


def folder_of(operator: bytes) -> str:
    """Returns the name of an operator's folder: apps of two operators share nothing."""
    return sha256(operator).hex()[:16]


def is_one(folder: str) -> bool:
    """Returns whether a name is of the form of `folder_of`; a renamed copy beside it is not."""
    return bool(_FOLDER.fullmatch(folder))


def _stranger(app: str, signer: bytes, trusted: Iterable[bytes]) -> str:
    keys = " or ".join(map(to_text, trusted)) or "who used the state there is"
    return (
        f"signed by {to_text(signer)}, not by {keys}, the operator "
        f"that {_name(app)} trusts, nor by a key that it handed over to; ship a bundle of the "
        "operator you started with; for another operator on purpose, pass "
        "operator=KEY" + ("; if another program has this name: app=NAME" if app else "")
    )


def _name(app: str) -> str:
    return f'the app "{app}"' if app else "the state folder"


def _folder(name: Any) -> str:
    """Returns a folder's name that cannot lead to another path."""
    if not (isinstance(name, str) and name.isalnum()):
        raise ValueError("not the name of a state folder")
    return name


_NAME: Final = "trust.json"
# No file can have this path. HOME may be of any length.
_NO_FILE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
_LOCK_SECONDS: Final = 10.0  # a suspended start must not block this one


def possible_paths(home: Path, state_dir: Path | None) -> list[Path]:
    """Returns the possible places of the file, its own place first.

    The file is among this user's states, or next to a folder that the app chose. If that folder's
    parent is not writable it is inside the folder, and then lost together with the state.
    """
    if state_dir is None:
        return [home / _NAME]
    with contextlib.suppress(OSError):
        state_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    places = [state_dir.with_name(f"{state_dir.name}.{_NAME}"), state_dir / _NAME]
    return places if os.access(state_dir.parent, os.W_OK | os.X_OK) else places[::-1]


@contextlib.contextmanager
def lock_store(path: Path, *others: Path) -> Iterator["TrustFile"]:
    """Yields the file, locked against other starts; `others` are its earlier places.

    If it is not writable, changes go into a file among temporary files, as those of a witness do;
    its content stays valid.
    """
    check_stack()
    temporary = _temporary_path(path)
    with contextlib.ExitStack() as stack:
        place = _locked_place(path, temporary, stack)
        yield TrustFile(path, [*others, *([temporary] if is_own(temporary.parent) else [])], place)


class TrustFile:
    """The content of the file of trust, merged with its copies; `place` is the one that is written.

    Attributes:
        is_behind: another copy had entries that this one lacked.
    """

    def __init__(self, path: Path, others: Sequence[Path], place: Path | None) -> None:
        self._path = path
        self._others = others
        self._place = place
        self.is_behind = False

    def read(self) -> Trust:
        """Returns all trust. Renames a damaged file; folders replace it. Raises StateUnusable."""
        trust = self._read(self._path)
        data = trust.data()
        for other in self._others:
            trust.absorb(self._read(other))
        self.is_behind = self._place == self._path and trust.data() != data
        return trust

    def write(self, trust: Trust) -> None:
        """Replaces the file atomically. Raises StateUnusable if that fails."""
        if self._place is None:
            raise StateUnusable(f"{self._path}: cannot be written; give a writable state_dir")
        try:
            data = trust.data()
            replace_file(self._place, json.dumps({**data, "sum": checksum(data)}).encode())
        except OSError as error:
            raise StateUnusable(
                f"{self._place}: {error.strerror}; free space there, or give a new state_dir"
            ) from error
        for other in self._others if self._place == self._path else ():
            with contextlib.suppress(OSError):
                other.unlink(missing_ok=True)

    def _read(self, path: Path) -> Trust:
        try:
            return read_trust(path)
        except StateUnusable:
            self._place = None  # an unread file must not be overwritten
            raise
        except MALFORMED:
            damaged_path = path.with_name(f"damaged.{path.name}")
            warn(
                "%s is damaged, and set aside; the state folders identify the trusted operator",
                path,
            )
            with contextlib.suppress(OSError):
                path.replace(damaged_path)
            return Trust()


def read_trust(path: Path) -> Trust:
    """Reads one file of trust; one that does not exist is empty.

    Raises StateUnusable if it cannot be read, or is of a newer version; one of MALFORMED if it is
    damaged.
    """
    try:
        raw = read_file(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return Trust()
        raise StateUnusable(f"{path}: {error.strerror}; let this user read it") from error
    document = json.loads(raw)
    # Earlier versions of hubbub wrote no checksum.
    if "sum" in document and document.pop("sum") != checksum(document):
        raise ValueError("the checksum does not match")
    version = document.get("version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > _VERSION:
        raise StateUnusable(f"{path} was written by a newer hubbub; upgrade")
    return Trust.load(document)


def read_places(places: Iterable[Path]) -> Trust:
    """Returns the merged content of all places, without changing any; empty if there is none."""
    trust = Trust()
    for path in places:
        with contextlib.suppress(StateUnusable, *MALFORMED):
            trust.absorb(read_trust(path))
    return trust


def _locked_place(path: Path, temporary: Path, stack: contextlib.ExitStack) -> Path | None:
    """Locks and returns the place that this start may write; None if it may write neither."""
    deadline = time.monotonic() + _LOCK_SECONDS
    for trust_path in (path, temporary):
        with contextlib.suppress(OSError):
            trust_path.parent.mkdir(parents=trust_path is path, exist_ok=True, mode=0o700)
            folder = trust_path.parent
            if os.access(folder, os.W_OK | os.X_OK) if trust_path is path else is_own(folder):
                stack.enter_context(
                    locked_file(trust_path.with_name(f"{trust_path.name}.lock"), deadline)
                )
                return trust_path
    return None


def _temporary_path(path: Path) -> Path:
    name = sha256(os.fsencode(path)).hex()[:16]
    return elsewhere() / f"{name}.trust"
