"""`hubbub notice`: asks fewer devices, or none, without a release of the app."""

import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from hubbub.bundles import Bundle, read_bundle
from hubbub.bundles.encoding import to_text
from hubbub.bundles.reduction_notice import LARGEST_NOTICE_BYTES, Notice, Step, open_notice
from hubbub.catalog import EPOCH_SECONDS
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.cli.terminal.output import day_of, first_second, listing, say
from hubbub.errors import BadParameter, NoticeRefused, UnknownMetric
from hubbub.installation.running_endpoints import HOME
from hubbub.keys.operator_key import read_handovers, read_operator_key
from hubbub.programs.atomic_write import write_output
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option, options
from hubbub.signing.log.log_files import LOG, add_to_log, refuse_lost_log
from hubbub.signing.sign_bundle import sign_notice

_DAYS: Final = 30
# A device without metrics sends nothing, so it gets no other notice before this one ends.
_LONGEST_DAYS: Final = 400
_DAY: Final = 86_400
_OUT: Final = Path("notice.hubbub")
_SHARES: Final = {0.0: "none: stopped", 1.0: "as the bundle has it"}
# Rules of epochs whose reports may still be drawn: the running ones of any length.
_REMEMBERED_SECONDS: Final = 2 * max(EPOCH_SECONDS.values())


@options
class MakeOptions:
    stop: tuple[str, ...] = option(
        "stop this metric, or this arm as EXPERIMENT.ARM, on all devices at once (repeatable)",
        metavar="METRIC",
    )
    sampling: tuple[str, ...] = option(
        "share of the devices that take part in each epoch that begins from now on: 0.1 for "
        "one in ten (repeatable)",
        metavar="METRIC=CHANCE",
    )
    lift: tuple[str, ...] = option(
        "return this metric to the setting of the bundle, from the next epoch on (repeatable)",
        metavar="METRIC",
    )
    until: date | None = option(
        "first day (UTC) on which the bundle applies again; a device without active "
        f"metrics does not learn of changes before that day ({_DAYS} days from now)"
    )
    home: Path | None = option(
        "folder of `hubbub up`: the following options name files in it, and its shuffler receives "
        f"the notice (this folder, if app.hubbub is in it; else {HOME})"
    )
    keys: Path | None = option("folder of the signing key (keys)")
    bundle: Path | None = option("bundle of the apps, which contains the metrics (app.hubbub)")
    out: Path | None = option(f"file of the notice; an existing notice is extended ({_OUT})")
    log: Path | None = option(
        "folder of the transparency log, if the bundle is in a log (log beside --bundle)"
    )


@command("notice make", text="sign a notice that lowers or stops metrics, or change it")
def _make(options: MakeOptions) -> None:
    in_folder = options.keys or options.bundle or Path("app.hubbub").exists()
    home = options.home or (Path() if in_folder else HOME)
    keys = options.keys or home / "keys"
    path = options.bundle or home / "app.hubbub"
    out = options.out or home / _OUT
    if not path.exists():
        raise BadParameter(f"{path}: no such bundle; give --bundle, or --home of hubbub up")
    bundle = read_bundle(path)
    signing = read_operator_key(keys)
    signer = signing.public_key().public_bytes_raw()
    former = _read(out) if out.exists() else None
    now = int(time.time())
    chances = _chances(options, bundle)
    steps = _next_steps(former, chances, now)
    notice = Notice(
        # Also after a loss of the folder, since devices refuse lower numbers.
        number=max(now, former.number + 1 if former else 0),
        until=_end_moment(options.until, now, former),
        steps=steps,
        operator=signer,
        handovers=read_handovers(keys),
    )
    if bundle.operator not in notice.line:
        raise NoticeRefused(
            f"{path}: signed by {to_text(bundle.operator)}, which never handed over to "
            f"the key in {keys}; apps with this bundle would refuse the notice"
        )
    if former and not notice.follows(former):
        raise NoticeRefused(
            f"{out}: signed with another key, {to_text(former.operator)}; give the folder "
            "of the operator's newest key: --keys"
        )
    _refuse_no_arm(bundle, notice.stopped(now))
    signed = sign_notice(notice, signing)
    if bundle.log:
        folder = options.log or path.with_name(LOG)
        refuse_lost_log(folder, bundle)
        add_to_log(folder, keys, bundle.log, [("notice", signed)])
        say(f"{folder}: the log contains it; serve the folder again")
    write_output("--out", out, signed)
    _show_notice(out, notice)
    if not chances:
        say("no metric was changed; to change some, give --stop, --sampling or --lift")
    if home == Path():
        say("now: give it to every shuffler (--notice FILE), which reads it within seconds")
    else:
        say(f"the shuffler of {home} reads it within seconds")
    for name in sorted(bundle.experiments.keys() & {arm.partition(".")[0] for arm in notice.steps}):
        live = bundle.experiments[name].live_arms(notice.stopped(now))
        say(
            f"{name}: devices get {' or '.join(live)} until {day_of(notice.until)}, then as "
            "in the bundle; to end an arm for good give it a weight of 0 in the catalog, so that "
            "devices draw again among the others"
        )
    if any(not step[-1][1] for step in notice.steps.values()):
        say(
            "a device that has nothing else to report receives no other notice before "
            f"{day_of(notice.until)}"
        )


@command("notice show", text="show what a notice changes, and who signed it")
def _show(notice: Path | None = argument(f"a notice ({_OUT}, here or else in {HOME})")) -> None:
    path = notice or next(filter(Path.exists, (_OUT, HOME / _OUT)), _OUT)
    _show_notice(path, _read(path))


def _read(path: Path) -> Notice:
    try:
        with path.open("rb") as file:
            signed = file.read(LARGEST_NOTICE_BYTES + 1)
        return open_notice(signed, operator=None)
    except OSError as error:
        raise BadParameter(f"{path}: {error.strerror}; make it with: hubbub notice make") from error
    except NoticeRefused as error:
        raise NoticeRefused(f"{path}: {error}") from None


def _chances(options: MakeOptions, bundle: Bundle) -> dict[str, float]:
    """The requested chance to take part, by metric; refuses repeated metrics."""
    requests = [
        *((name, 0.0) for name in options.stop),
        *map(_sampling, options.sampling),
        *((name, 1.0) for name in options.lift),
    ]
    chances = dict(requests)
    if len(chances) != len(requests):
        raise BadParameter("a metric is named twice; name each once")
    experiments = bundle.experiments.values()
    arms = {f"{entry.name}.{arm}" for entry in experiments for arm in entry.arms}
    for name, chance in requests:
        sampling = 1.0 if name in arms else _sampling_of(bundle, name)
        if name in arms and 0 < chance < 1:
            raise BadParameter(f"--sampling {name}: an arm can only be stopped; write --stop")
        kind = None if name in arms else bundle.metric(name).value_kind
        # As `PastKind.check` has it: if devices left epochs out, at .1 a tenth of those who return
        # every week would seem to come back.
        if 0 < chance < sampling and isinstance(kind, PastKind) and not kind.COUNTS:
            raise BadParameter(
                f"--sampling {name}: its values are computed from earlier reports, so no device "
                f"may skip an epoch: write --stop {name}"
            )
        if name not in options.lift and not chance < sampling:
            raise BadParameter(
                f"--sampling {name}={chance:g}: its bundle has {sampling:g}, and a notice never "
                f"raises it; lift it with --lift {name}"
            )
    return chances


def _refuse_no_arm(bundle: Bundle, stopped: set[str]) -> None:
    for experiment in bundle.experiments.values():
        if {f"{experiment.name}.{arm}" for arm in experiment.live_arms(())} <= stopped:
            raise BadParameter(
                f"{experiment.name}: the notice would stop every arm, and devices need one; lift "
                f"one with --lift {experiment.name}.ARM, or stop the metrics of the experiment"
            )


def _sampling_of(bundle: Bundle, name: str) -> float:
    """The sampling of a metric. Raises UnknownMetric, which also lists experiments' arms."""
    experiment = bundle.experiments.get(name.partition(".")[0])
    if experiment and name not in bundle.metrics:
        arms = ", ".join(f"{experiment.name}.{arm}" for arm in experiment.arms)
        raise UnknownMetric(f'"{name}" is not an arm of an experiment; there are {arms}')
    return bundle.metric(name).sampling


def _sampling(text: str) -> tuple[str, float]:
    name, _, chance = text.partition("=")
    try:
        share = float(chance)
    except ValueError:
        raise BadParameter(f"--sampling {text!a}: write METRIC=CHANCE, as in theme=0.1") from None
    if not share <= 1:
        raise BadParameter(f"--sampling {text}: a chance is at most 1; write 10% as 0.1")
    return name, share


def _next_steps(
    former: Notice | None, chances: Mapping[str, float], now: int
) -> dict[str, tuple[Step, ...]]:
    """The new steps, after those of the previous notice that still matter.

    They do, since an epoch keeps its chance. Raises BadParameter if there are none at all.
    """
    steps: dict[str, tuple[Step, ...]] = {}
    until, every_step = (former.until, former.steps) if former else (now, {})
    for name, former_steps in every_step.items():
        if until <= now and until > former_steps[-1][0]:
            former_steps = (*former_steps, (until, 1.0))  # noqa: PLW2901 then it was over
        since = now - _REMEMBERED_SECONDS
        late = [step for step in former_steps if step[0] > since]
        early = [step for step in former_steps if step[0] <= since][-1:]
        all_steps = (*early, *late)
        if len(all_steps) > 1 or all_steps[0][1] < 1:
            steps[name] = all_steps
    for name, chance in chances.items():
        # A step of the same second is replaced.
        before = (step for step in steps.get(name, ()) if step[0] < now)
        steps[name] = (*before, (now, chance))
    if not steps:
        raise BadParameter(
            "the notice would change no metric; name some: --stop METRIC, --sampling "
            "METRIC=CHANCE or --lift METRIC"
        )
    return steps


def _end_moment(day: date | None, now: int, former: Notice | None) -> int:
    if day is None:
        return max(now + _DAYS * _DAY, former.until if former else 0)
    until = first_second(day)
    if not now < until <= now + _LONGEST_DAYS * _DAY:
        first_day, last_day = (day_of(now) + timedelta(days=n) for n in (1, _LONGEST_DAYS))
        raise BadParameter(
            f"--until {day} is outside [{first_day}, {last_day}]; choose a day of these, and renew "
            "the notice later"
        )
    return until


def _show_notice(path: Path, notice: Notice) -> None:
    say(f"{path}: number {notice.number}, signed by {to_text(notice.operator)}")
    listing(
        f"Reduced or stopped until {day_of(notice.until)}",
        [(name, *steps[-1]) for name, steps in sorted(notice.steps.items())],
        {
            "metric": lambda row: row[0],
            "devices that take part": lambda row: _SHARES.get(row[2], f"{row[2]:.4g} of them"),
            "since (UTC)": lambda row: f"{datetime.fromtimestamp(row[1], UTC):%Y-%m-%d %H:%M}",
        },
        text_columns=3,
    )
