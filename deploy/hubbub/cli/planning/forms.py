"""The forms of `hubbub plan`, and which options each reads: what one would not read is refused.

An answer would be another's than was asked for, and nothing would say so.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hubbub.errors import BadParameter

_QUESTION: Final = ("values", "strings", "mean", "ranges", "set", "parts", "vector")
_CENTRAL: Final = ("central", "honest", "max_local", "dummies", "delta")
_FAKE: Final = ("attack", "fake", "accounts", "others", "targets")
_MODEL: Final = ("model", "features", "classes")
_CAPACITY: Final = (
    *("capacity", "devices", "per_day", "epoch", "per_visit", "door", "peak", "outage_hours"),
    *("cluster_nodes", "machine_cores", "machine_gb", "measure"),
)
# Where each option belongs that not every form reads.
_BELONGS: Final = {
    "catalog": "a catalog goes with --metric NAME, --attack and --capacity",
    "metric": "--metric goes with a catalog's question, --attack and --capacity without --per-day",
    "reports": "--reports goes with a question or --model",
    "epsilon": "--epsilon goes with a question or --model, without --central",
    "error": "--error goes with a question, without --central",
    "detect": "--detect goes with a question, without --central",
    "whose": "--whose goes with a question and --error",
    "permanent_epsilon": "--permanent-epsilon goes with --values and --strings",
    "simulate": "--simulate goes with a question, without a number or --central, or with --attack",
    "seed": "--seed goes with a question and --simulate",
    "plot": "--plot goes with a question, without --central",
    **dict.fromkeys(_QUESTION, "{} is a question of its own"),
    **dict.fromkeys(_CENTRAL, "{} goes with --central E"),
    **dict.fromkeys(_FAKE, "{} goes with --attack"),
    **dict.fromkeys(_MODEL, "{} goes with --model KIND"),
    **dict.fromkeys(_CAPACITY, "{} goes with --capacity"),
    "others": "--others goes with --attack and --accounts",
    "fake": "--fake goes with --attack, without --accounts",
    "central": "--central goes with a question or --model",
    "epoch": "--epoch goes with --capacity and --per-day",
}


class _Given(argparse.Action):
    """Keeps a value, and that it was given, even where it is the default's."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep it."""
        del parser, option_string
        setattr(namespace, self.dest, values)
        namespace.given = {*getattr(namespace, "given", ()), self.dest}


def note_given(parser: argparse.ArgumentParser) -> None:
    """Have the options that are added from now on say that they were given."""
    parser.register("action", None, _Given)


@dataclass(frozen=True, slots=True)
class _Form:
    """What is asked in one way. name: how it is asked."""

    name: str
    reads: Sequence[str]


def refuse_unread(arguments: argparse.Namespace, default: object) -> None:
    """Raises BadParameter for options that the form asked for would leave unread.

    default: the catalog, where none is named.
    """
    form = _form(arguments)
    given = [name for name in _BELONGS if _is_given(arguments, name, default)]
    unread = [name for name in given if name not in form.reads]
    if unread:
        said = "; ".join(_BELONGS[name].format(f"--{name.replace('_', '-')}") for name in unread)
        them = "it" if len(unread) == 1 else "them"
        raise BadParameter(f"{said}: {form.name} would not read {them}; leave {them} out")


def asks_of_model(arguments: argparse.Namespace) -> bool:
    """Whether an option of a model is given."""
    return any(getattr(arguments, name) is not None for name in _MODEL)


def _is_given(arguments: argparse.Namespace, name: str, default: object) -> bool:
    value = getattr(arguments, name)
    if isinstance(value, bool) or name == "metric":
        return bool(value)
    return name in getattr(arguments, "given", ()) and value is not default


def _form(arguments: argparse.Namespace) -> _Form:
    if arguments.attack:
        share = ("accounts", "others") if arguments.accounts is not None else ("fake",)
        reads = ("catalog", "metric", "attack", *share, "targets", "simulate")
        return _Form("--attack", reads)
    if arguments.capacity:
        rate = ("metric", "catalog") if arguments.per_day is None else ("per_day", "epoch")
        return _Form("--capacity", (*(set(_CAPACITY) - {"per_day", "epoch"}), *rate))
    if asks_of_model(arguments):
        if arguments.central is not None:
            return _Form("--model with --central", (*_MODEL, *_CENTRAL, "reports"))
        return _Form("--model", (*_MODEL, "reports", "epsilon"))
    asked = next((name for name in _QUESTION if getattr(arguments, name) is not None), None)
    own: tuple[str, ...] = (asked or "",)
    if arguments.metric:
        own = ("metric", "catalog", "strings")
    if arguments.central is not None:
        return _Form("--central", (*own, *_CENTRAL, "reports"))
    more = ["reports", "epsilon", "error", "detect", "plot"]
    more += [] if arguments.simulate else ["simulate"]  # how many is for --reports to say
    more += ["whose"] if arguments.error is not None else []
    more += ["seed"] if arguments.simulate is not None else []
    if asked in {"values", "strings"} and not arguments.metric:
        more.append("permanent_epsilon")
    named = "metric" if arguments.metric else asked
    return _Form(f"--{named}" if named else "a plan without any of these", (*own, *more))
