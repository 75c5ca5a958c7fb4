"""`hubbub notice`: ask fewer devices, or none, while apps are out; no app is released for it."""

import argparse
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from hubbub.catalog import EPOCH_SECONDS, Bundle, read_bundle, read_operator_key
from hubbub.catalog.encoding import to_text
from hubbub.catalog.keys.files import replace as replace_file
from hubbub.catalog.keys.operator import read_handovers
from hubbub.catalog.notice import (
    LARGEST_NOTICE_BYTES,
    Notice,
    Step,
    open_notice,
    sign_notice,
)
from hubbub.cli.logging_bundles import LOG, add_to_log, refuse_lost_log
from hubbub.cli.terminal.day_argument import as_day
from hubbub.cli.terminal.output import say, table
from hubbub.errors import BadParameter, NoticeRefused

_DAYS: Final = 30
# A device that is asked nothing hears of no other notice until this one is over.
_LONGEST_DAYS: Final = 400
_DAY: Final = 86_400
_OUT: Final = Path("notice.hubbub")
# What held in an epoch of which reports may still be drawn: the one that runs, of any length.
_REMEMBERED_SECONDS: Final = 2 * max(EPOCH_SECONDS.values())


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `notice` to the command line."""
    notice = commands.add_parser("notice")
    actions = notice.add_subparsers(required=True, metavar="ACTION")
    make = actions.add_parser(
        "make", help="sign a notice that asks less, or change the one there is"
    )
    make.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="METRIC",
        help="no device reports it any more, at once (repeat)",
    )
    make.add_argument(
        "--sampling",
        action="append",
        default=[],
        metavar="METRIC=CHANCE",
        help="so many devices take part in each epoch that begins from now on: 0.1 for one in ten "
        "(repeat)",
    )
    make.add_argument(
        "--lift",
        action="append",
        default=[],
        metavar="METRIC",
        help="as the bundle has it again, from the next epoch on (repeat)",
    )
    make.add_argument(
        "--until",
        type=as_day,
        metavar="YYYY-MM-DD",
        help="the first day (UTC) on which all is again as the bundle has it; devices that are "
        f"asked nothing hear of nothing before ({_DAYS} days from now)",
    )
    make.add_argument(
        "--home",
        type=Path,
        default=Path(),
        help="folder of `hubbub up`, in which the following are, and whose shuffler takes it",
    )
    make.add_argument("--keys", type=Path, help="folder of the signing key (keys)")
    make.add_argument(
        "--bundle", type=Path, help="that apps have, which knows the metrics (app.hubbub)"
    )
    out = f"where the notice is, or will be; what it says goes on ({_OUT})"
    make.add_argument("--out", type=Path, help=out)
    make.add_argument(
        "--log",
        type=Path,
        help="folder of the transparency log, where the bundle is in one (log beside --bundle)",
    )
    make.set_defaults(run=_make)
    show = actions.add_parser("show", help="what a notice says, and who signed it")
    show.add_argument("notice", type=Path, nargs="?", default=_OUT, help="a notice (%(default)s)")
    show.set_defaults(run=_show)


def _make(arguments: argparse.Namespace) -> int:
    home: Path = arguments.home
    arguments.keys = arguments.keys or home / "keys"
    arguments.bundle = arguments.bundle or home / "app.hubbub"
    arguments.out = arguments.out or home / _OUT
    bundle = read_bundle(arguments.bundle)
    signing = read_operator_key(arguments.keys)
    signer = signing.public_key().public_bytes_raw()
    former = _read(arguments.out) if arguments.out.exists() else None
    now = int(time.time())
    steps = _carried(former, now)
    for name, chance in _asked(arguments, bundle).items():
        steps[name] = _with(steps.get(name, ()), now, chance)
    notice = Notice(
        # Of a folder that was lost too: devices take no number back.
        number=max(now, former.number + 1 if former else 0),
        until=_until(arguments.until, now, former),
        steps=steps,
        operator=signer,
        handovers=read_handovers(arguments.keys),
    )
    if bundle.operator not in notice.line:
        raise NoticeRefused(
            f"{arguments.bundle}: signed by {to_text(bundle.operator)}, which never handed over to "
            f"the key in {arguments.keys}; its apps would refuse the notice"
        )
    if former and not notice.follows(former):
        raise NoticeRefused(
            f"{arguments.out}: of another signing key, {to_text(former.operator)}; give the folder "
            "of the operator's newest key: --keys"
        )
    signed = sign_notice(notice, signing)
    if bundle.log:
        folder = arguments.log or arguments.bundle.with_name(LOG)
        refuse_lost_log(folder, bundle)
        add_to_log(folder, arguments.keys, bundle.log, [("notice", signed)])
        say(f"{folder}: the log has it; serve it anew")
    try:
        replace_file(arguments.out, signed)
    except OSError as error:
        raise BadParameter(f"--out {arguments.out}: {error.strerror}") from error
    _tell(arguments.out, notice)
    if home == Path():
        say("now: give it to every shuffler (--notice FILE), which takes it anew within seconds")
    else:
        say(f"what runs in {home} takes it within seconds")
    if any(not taken[-1][1] for taken in notice.steps.values()):
        say(
            "a device that has nothing else to report hears of no other notice before "
            f"{_day(notice.until)}"
        )
    return 0


def _show(arguments: argparse.Namespace) -> int:
    _tell(arguments.notice, _read(arguments.notice))
    return 0


def _read(path: Path) -> Notice:
    try:
        with path.open("rb") as file:
            signed = file.read(LARGEST_NOTICE_BYTES + 1)
        return open_notice(signed, operator=None)
    except OSError as error:
        raise BadParameter(f"{path}: {error.strerror}; make it with: hubbub notice make") from error
    except NoticeRefused as error:
        raise NoticeRefused(f"{path}: {error}") from None


def _asked(arguments: argparse.Namespace, bundle: Bundle) -> dict[str, float]:
    """By metric, the chance to take part that is asked for; each is named once."""
    told = [
        *((name, 0.0) for name in arguments.stop),
        *map(_sampling, arguments.sampling),
        *((name, 1.0) for name in arguments.lift),
    ]
    asked = dict(told)
    if len(asked) != len(told):
        raise BadParameter("a metric is named twice; say one thing of each")
    for name, chance in told:
        own = bundle.metric(name).sampling
        if name not in arguments.lift and not chance < own:
            raise BadParameter(
                f"--sampling {name}={chance:g}: its bundle has {own:g}, and a notice never raises; "
                f"lift it with --lift {name}"
            )
    return asked


def _sampling(told: str) -> tuple[str, float]:
    name, _, chance = told.partition("=")
    try:
        return name, float(chance)
    except ValueError:
        raise BadParameter(f"--sampling {told!a}: write METRIC=CHANCE, as in theme=0.1") from None


def _carried(former: Notice | None, now: int) -> dict[str, tuple[Step, ...]]:
    """What the notice before said, as far as it still matters: an epoch keeps the chance it has."""
    if former is None:
        return {}
    carried = {}
    for name, steps in former.steps.items():
        if former.until <= now and former.until > steps[-1][0]:
            steps = (*steps, (former.until, 1.0))  # noqa: PLW2901 then it was over
        since = now - _REMEMBERED_SECONDS
        late = [step for step in steps if step[0] > since]
        early = [step for step in steps if step[0] <= since][-1:]
        kept = (*early, *late)
        if len(kept) > 1 or kept[0][1] < 1:
            carried[name] = kept
    return carried


def _with(steps: Sequence[Step], now: int, chance: float) -> tuple[Step, ...]:
    """Steps with one more, of now; what was said in the same second is said no more."""
    return (*(step for step in steps if step[0] < now), (now, chance))


def _until(told: date | None, now: int, former: Notice | None) -> int:
    if told is None:
        least = now + _DAYS * _DAY
        return max(least, former.until if former else 0)
    until = int(datetime(told.year, told.month, told.day, tzinfo=UTC).timestamp())
    if not now < until <= now + _LONGEST_DAYS * _DAY:
        first, last = (_day(now) + timedelta(days=n) for n in (1, _LONGEST_DAYS))
        raise BadParameter(f"--until {told} is outside [{first}, {last}]; make another one then")
    return until


def _tell(path: Path, notice: Notice) -> None:
    say(f"{path}: number {notice.number}, signed by {to_text(notice.operator)}")
    table(
        f"What is asked less, until {_day(notice.until)}",
        ("metric", "devices that take part", "since (UTC)"),
        [(name, *_last(steps)) for name, steps in sorted(notice.steps.items())],
        text_columns=3,
    )


def _last(steps: Sequence[Step]) -> tuple[str, str]:
    since, chance = steps[-1]
    return {0.0: "none: stopped", 1.0: "as the bundle has it"}.get(
        float(chance), f"{chance:.4g} of them"
    ), f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M}"


def _day(seconds: int) -> date:
    return datetime.fromtimestamp(seconds, UTC).date()
