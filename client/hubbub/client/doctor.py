"""Finds what keeps reports from the shuffler: `python -m hubbub.client.doctor [app.hubbub]`.

It changes nothing on this device, prints no value, and works with any part broken. `hubbub doctor`
prints the same findings, and those of the services.
"""

import argparse
import contextlib
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.bundles import Bundle, key_at, read_bundle
from hubbub.bundles.encoding import MALFORMED, to_text
from hubbub.catalog import EPOCH_SECONDS
from hubbub.client.settings import Settings
from hubbub.client.startup import WRONG_FILE, state_home, transport_of
from hubbub.client.state.contract import SENT
from hubbub.client.state_inspection import peek, read_vouched, state_folders
from hubbub.client.transport.contract import NotSent
from hubbub.client.trust import possible_paths, read_places, read_trust
from hubbub.errors import BundleRefused, HubbubError, StateUnusable
from hubbub.errors.message_words import several, visible
from hubbub.fields.frozen import frozen

Verdict = Literal["ok", "note", "fault"]
Check = Callable[[], Iterator["Finding"]]

_CALL_SECONDS: Final = 10.0
_CLOCK_SECONDS: Final = 60.0
_KEYS_SECONDS: Final = 14 * EPOCH_SECONDS["day"]
_LIBRARIES: Final = ("cryptography", "grpcio", "rbcl", "pyhpke")


@frozen()
class Finding:
    """A check's subject, verdict and text; a person has to judge whether a "note" is a fault."""

    subject: str
    verdict: Verdict
    text: str


def examine(checks: Sequence[tuple[str, Check]]) -> list[Finding]:
    """Runs all checks; a check that fails to run is a fault, and the others continue."""
    findings: list[Finding] = []
    for subject, check in checks:
        try:
            findings += check()
        except HubbubError as error:
            findings.append(Finding(subject, "fault", str(error)))
        except Exception as error:  # noqa: BLE001 a broken device must not end its examination
            # PRIVACY: the text of another error may contain a reported value.
            cause = error.strerror or "" if isinstance(error, OSError) else type(error).__name__
            findings.append(Finding(subject, "fault", f"cannot be examined: {cause}"))
    return findings


def device_checks(**settings: Any) -> list[tuple[str, Check]]:
    """Returns the checks of a client with these settings, those of `Client.from_bundle()`."""
    bundles: list[Bundle] = []

    def bundle() -> Iterator[Finding]:
        bundles.append(read_bundle(Settings.read(**settings).bundle))
        yield from _bundle(bundles[0], time.time())

    def of_bundle(check: Callable[[Bundle, Settings], Iterator[Finding]]) -> Check:
        return lambda: check(bundles[0], Settings.read(**settings)) if bundles else iter(())

    return [
        ("versions", _versions),
        ("bundle", bundle),
        ("trust", of_bundle(_trust)),
        ("state", lambda: _states(Settings.read(**settings), bundles)),
        ("shuffler", of_bundle(_shuffler)),
    ]


def show(findings: Sequence[Finding], *, as_json: bool) -> int:
    """Prints the findings; returns the exit code, 0 without faults, else 1."""
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))  # noqa: T201
    for finding in findings if not as_json else ():
        line = f"{finding.verdict:<5}  {finding.subject:<12}  {finding.text}"
        print(visible(line))  # noqa: T201 what was requested
    return 1 if any(finding.verdict == "fault" for finding in findings) else 0


def _versions() -> Iterator[Finding]:
    versions = []
    for name in ("hubbub-client", *_LIBRARIES):
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    text = f"Python {platform.python_version()} on {sys.platform}: {', '.join(versions)}"
    yield Finding("versions", "ok", text)


def _bundle(bundle: Bundle, now: float) -> Iterator[Finding]:
    kind = "development, where the privacy settings protect nobody, " if bundle.development else ""
    yield Finding(
        "bundle",
        "ok",
        f"serial {bundle.serial}, {kind}{several(len(bundle.metrics), 'metric')}, signed by "
        f"{to_text(bundle.operator)}",
    )
    if bundle.is_operators:
        yield Finding("bundle", "fault", WRONG_FILE)
    today = datetime.fromtimestamp(now, UTC).date()
    if expired := [m.name for m in bundle.metrics.values() if m.expires < today]:
        text = f"expired, so that no device reports them: {', '.join(expired)}"
        yield Finding("metrics", "note", text)
    until = max((key.end for key in bundle.keys), default=0)
    left = until - now
    verdict: Verdict = "ok" if left > _KEYS_SECONDS else "note" if left > 0 else "fault"
    if key_at(bundle.keys, int(now)) is None:
        verdict = "fault"
    remedy = "" if verdict == "ok" else "; ship a bundle with newer keys: hubbub catalog build"
    text = f"reports are sealed to keys until {datetime.fromtimestamp(until, UTC):%Y-%m-%d}{remedy}"
    yield Finding("keys", verdict, text)


def _trust(bundle: Bundle, settings: Settings) -> Iterator[Finding]:
    """Yields whether each app known here would accept this bundle, or that of `settings.app`."""
    places = possible_paths(state_home(), settings.state_dir)
    unread = [finding for place in places for finding in _unreadable_trust(place)]
    yield from unread
    known_keys = [name for name in read_places(places).pins if settings.app in (None, name)]
    if not known_keys and not unread:
        text = "no app has started here with a bundle: it will trust the first operator it sees"
        yield Finding("trust", "note", text)
    refusals: dict[str, str] = {}
    for name in known_keys:
        try:
            # The check works on a copy, which is not stored.
            read_places(places).admit(name, bundle, None, ())
        except BundleRefused as error:
            refusals[name] = str(error)
        else:
            yield Finding("trust", "ok", f'"{name}" accepts this bundle' if name else "it is taken")
    # An app that refuses the bundle may be another program of this user, with its own bundle.
    verdict: Verdict = "fault" if len(refusals) == len(known_keys) else "note"
    other_app = '; if "{}" is not the app of this bundle: --app NAME'
    for name, refusal in refusals.items():
        hint = other_app.format(name) if name and settings.app is None else ""
        yield Finding("trust", verdict, refusal + hint)


def _unreadable_trust(path: Path) -> Iterator[Finding]:
    """Yields why an app does not know from a file of trust whose bundle it takes."""
    try:
        read_trust(path)
    except StateUnusable as error:
        yield Finding("trust", "fault", f"apps report nothing: {error}")
    except MALFORMED:
        text = "damaged; the next start sets it aside, and goes by the state folders"
        yield Finding("trust", "note", f"{path}: {text}")


def _states(settings: Settings, bundles: Sequence[Bundle]) -> Iterator[Finding]:
    folders = [settings.state_dir] if settings.state_dir else state_folders(state_home())
    if not folders:
        yield Finding("state", "note", f"{state_home()}: no app has reported for this user yet")
    yield from examine([("state", partial(_state, folder, bundles)) for folder in folders])


def _state(folder: Path, bundles: Sequence[Bundle]) -> Iterator[Finding]:
    view, recorded = peek(folder), read_vouched(folder)
    is_foreign = recorded and any(recorded.operator not in bundle.line for bundle in bundles)
    owner = ", of another operator" if is_foreign else ""
    fates = Counter(payload.fate for payload in view.payloads)
    counts = [f"{fates.pop(SENT, 0):,} sent, {fates.pop('waiting', 0):,} waiting"]
    counts += [f"{n:,} {name.replace('_', ' ')}" for name, n in sorted(view.counts.items()) if n]
    is_on = "reporting is on" if view.on else "reporting is off: the person opted out"
    yield Finding(
        "state",
        "ok" if view.on else "note",
        f"{folder}{owner}: {is_on}; of what it remembers {', '.join(counts)}",
    )


def _shuffler(bundle: Bundle, settings: Settings) -> Iterator[Finding]:
    """Yields whether the shuffler answers an empty submission, and the difference of clocks."""
    address = settings.relay or settings.shuffler or bundle.shuffler
    transport = transport_of(bundle, settings, insecure=False)
    begun = time.monotonic()
    try:
        answer = transport.submit([], _CALL_SECONDS)
    except NotSent as error:
        cause = f" ({error.cause})" if error.cause else ""
        yield Finding("shuffler", "fault", f"{address} accepts no reports: {error.reason}{cause}")
        return
    finally:
        transport.close()
    took = time.monotonic() - begun
    yield Finding("shuffler", "ok", f"{address} answers, in {1000 * took:.0f} ms")
    if answer.time:
        # The shuffler answered during the call, so the clocks differ by at least this.
        clock_gap = max(0.0, abs(time.time() - took / 2 - answer.time) - took / 2 - 1)
        text = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, {clock_gap:,.0f} s from the shuffler's"
        if clock_gap <= _CLOCK_SECONDS:
            yield Finding("clock", "ok", text)
        else:
            text += "; a wrong clock reports for a wrong day: set it, or use a time service"
            yield Finding("clock", "fault", text)


def main() -> int:
    """Examines this device; returns 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m hubbub.client.doctor", description=__doc__)
    parser.add_argument("bundle", nargs="?", help="the app's bundle (HUBBUB_BUNDLE)")
    parser.add_argument("--app", help="name of the app whose trust is examined (HUBBUB_APP)")
    parser.add_argument("--state-dir", help="the app's state folder (HUBBUB_STATE_DIR)")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    return show(examine(device_checks(**options)), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
