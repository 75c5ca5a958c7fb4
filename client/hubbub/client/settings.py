"""Settings: an argument overrides the environment, and the environment overrides the bundle.

Only this module reads the environment.
"""

import contextlib
import dataclasses
import inspect
import math
import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Self

from hubbub.client.files import is_too_long, resolved_folder
from hubbub.errors import BadParameter
from hubbub.errors.message_words import did_you_mean
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import is_text

Account = str | Callable[[bytes], bytes]
"""The key of an account at the issuer; or what takes a request there, by the app's own server."""

TRANSPORTS: Final = ("grpc", "http")
"""Transports for an address without a scheme."""

BUNDLE_VARIABLE: Final = "HUBBUB_BUNDLE"
_HOLD_SECONDS: Final = 3600.0
_LONGEST_HOLD_SECONDS: Final = 86_400.0
_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})
_LONGEST_SUFFIX: Final = ".trust.json.4194304.draft"  # with the number of a process
_LEVELS: Final = ("debug", "info", "warning", "error")


@frozen(kw_only=True)
class Settings:
    """The settings of a client, apart from its bundle. Each has a variable, HUBBUB_ and its name.

    Attributes:
        bundle: the bundle's file.
        app: the name under which this user's trust in an operator is stored; None for the program's
            own name.
        state_dir: the device's folder; None for a folder of this user, by operator.
        disabled: report nothing and send nothing in this run.
        local: send nothing in this run; count reports on this device, shown only by `ledger()`.
        strict: raise the programmer's mistakes instead of counting them; None for strict in
            Python's development mode (python -X dev), and with a bundle of `hubbub up --dev`.
        shuffler: HOST:PORT to dial instead of the bundle's; the bundle's authorities still apply.
        transport: "grpc" or "http", for an address without a scheme; None for gRPC if grpcio is
            installed, else HTTP.
        relay: https://HOST:PORT of a relay of Oblivious HTTP to send through, so that the shuffler
            sees no address; the bundle has the gateway's key.
        account: the key of an account at the bundle's issuer of tokens.
        max_epsilon: largest epsilon of a report, in nats.
        hold_seconds: reports wait a random time up to this before they are sent; or until the
            program ends, or `flush()`.
        log: the level to log at to standard error; None leaves logging to the app.
    """

    bundle: Path = Path("app.hubbub")
    app: str | None = None
    state_dir: Path | None = None
    disabled: bool = False
    local: bool = False
    strict: bool | None = None
    shuffler: str | None = None
    transport: str | None = None
    relay: str | None = None
    account: str | None = dataclasses.field(default=None, repr=False)
    max_epsilon: float = math.inf
    hold_seconds: float = _HOLD_SECONDS
    log: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.hold_seconds <= _LONGEST_HOLD_SECONDS:
            raise BadParameter(
                f"hold_seconds {self.hold_seconds} is outside [0, {_LONGEST_HOLD_SECONDS:g}]"
            )
        if self.app is not None and not (is_text(self.app) and self.app.isprintable()):
            raise BadParameter(
                "app is not a valid name; write a short text, such as the program's name"
            )
        if self.transport is not None and self.transport not in TRANSPORTS:
            raise BadParameter(
                f"transport {self.transport!a} is not one of {', '.join(TRANSPORTS)}"
                f"{did_you_mean(self.transport, TRANSPORTS)}"
            )
        if self.shuffler is not None:
            from hubbub.errors.address_checks import shuffler_parts  # noqa: PLC0415 of few apps

            shuffler_parts(self.shuffler)
        if self.relay is not None:
            from hubbub.errors.address_checks import relay_place  # noqa: PLC0415 of few apps

            relay_place(self.relay)
        epsilon_limit(self.max_epsilon)
        if self.log is not None and self.log not in _LEVELS:
            remedy = f"{', '.join(_LEVELS)}{did_you_mean(self.log, _LEVELS)}"
            raise BadParameter(f"log {self.log!r} is not one of {remedy}")

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, **arguments: Any) -> Self:
        """Returns each setting from the arguments, else from the environment, else its default.

        An argument of None and an empty variable count as missing. Raises BadParameter.
        """
        names = [field.name for field in fields(cls)]
        check_arguments(**arguments)
        values = {name: value for name, value in arguments.items() if value is not None}
        variables = {name: f"HUBBUB_{name.upper()}" for name in names if name not in values}
        for name, variable in variables.items():
            if text := environment.get(variable, "").strip():  # an empty variable is unset
                parser = _PARSERS.get(name, str)
                try:
                    values[name] = parser(text)
                except ValueError:
                    remedy = _REMEDIES[parser]
                    raise BadParameter(f"{variable} is not understood; {remedy}") from None
        try:
            for name in values.keys() & {"bundle", "state_dir"}:
                values[name] = _path(name, values[name])
            if "state_dir" in values:
                folder = resolved_folder(values["state_dir"])  # the app may change its folder
                values["state_dir"] = _usable_folder(folder)
            return cls(**values)
        except BadParameter as error:
            name, _, problem = str(error).partition(" ")
            raise BadParameter(f"{variables.get(name, name)} {problem}") from None

    @classmethod
    def read_strict(cls, *, strict: bool | None = None, development: bool = False) -> bool:
        """Returns `is_strict()` by this setting alone: the environment's others may be invalid."""
        variable, settings = "HUBBUB_STRICT", cls()
        with contextlib.suppress(BadParameter):
            settings = cls.read({variable: os.environ.get(variable, "")}, strict=strict)
        return settings.is_strict(development=development)

    def is_strict(self, *, development: bool = False) -> bool:
        """Returns whether mistakes of the app raise; `development`: with a development bundle."""
        return sys.flags.dev_mode or development if self.strict is None else self.strict


def variables() -> dict[str, str]:
    """Returns a copy of the environment, from which a start deletes invalid variables."""
    return dict(os.environ)


def epsilon_limit(max_epsilon: float | None, name: str = "max_epsilon") -> float:
    """Returns the largest allowed epsilon in nats, infinity for None. Raises BadParameter."""
    check_arguments(**{name: max_epsilon})
    most = math.inf if max_epsilon is None else max_epsilon
    if not most >= 0:
        raise BadParameter(f"{name} {most} must be 0 or more, in nats")
    return most


def check_names(names: Iterable[str], start: Callable[..., Any]) -> None:
    """Raises BadParameter for a name that is no setting; `start` has further arguments."""
    setting_names = [field.name for field in fields(Settings) if field.name != "bundle"]
    for name in names:
        if name not in setting_names:
            own = inspect.getfullargspec(start)
            arguments = dict.fromkeys([*own.args[1:], *setting_names, *own.kwonlyargs])
            remedy = f"there are {', '.join(arguments)}{did_you_mean(name, arguments)}"
            raise BadParameter(f"{name!r} is not a setting; {remedy}")


def check_arguments(**arguments: Any) -> None:
    """Raises BadParameter unless each argument of the app is missing or of its name's kind."""
    for name, value in arguments.items():
        if name in _KINDS and (value is not None or name in _NEEDED):
            is_kind, remedy = _KINDS[name]
            if not is_kind(value):
                raise BadParameter(f"{name} is not understood; give {remedy}")


_NEEDED: Final = ("forget", "timeout")
_SWITCHES: Final = ("disabled", "local", "strict", "insecure", "forget")
_NUMBERS: Final = ("max_epsilon", "max_local", "hold_seconds", "timeout")
_TEXTS: Final = ("app", "shuffler", "transport", "relay", "log")
_KINDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    **dict.fromkeys(
        _SWITCHES, (lambda value: isinstance(value, int) and value in {0, 1}, "True or False")
    ),
    **dict.fromkeys(
        _NUMBERS,
        (lambda value: isinstance(value, float | int) and not isinstance(value, bool), "a number"),
    ),
    **dict.fromkeys(_TEXTS, (lambda value: isinstance(value, str), "a text")),
    "account": (
        lambda value: isinstance(value, str) or callable(value),
        "the key of an account at the bundle's issuer, or a function that sends requests there",
    ),
    "on_drop": (callable, "a function of a metric's name and a reason"),
}
"""What every argument of the app must be, by its name, and what the app may give."""


def _path(name: str, value: str | os.PathLike[str]) -> Path:
    try:
        path = Path(value)
        # An empty text would be the folder in which the program runs.
        is_usable = value != "" and b"\0" not in os.fsencode(path)
    except (TypeError, ValueError):
        is_usable = False
    if not is_usable:
        raise BadParameter(f"{name} is not a path; give a file or a folder")
    if path.parts[:1] == ("~",):  # it would be a folder of this name where the program runs
        raise BadParameter(f"{name} begins with ~, which only a shell replaces; write it out")
    return path


def _usable_folder(folder: Path) -> Path:
    """The folder, if it is no file, and files beside it may have its name and more.

    One that only cannot be reached now is no mistake of the program. Raises BadParameter.
    """
    if not folder.name:
        raise BadParameter("state_dir is the root of all files; give a folder in it")
    if is_too_long(folder.with_name(folder.name + _LONGEST_SUFFIX)):
        raise BadParameter(
            f"state_dir is too long for files beside it, whose names are up to "
            f"{len(_LONGEST_SUFFIX)} letters longer; give a folder with a shorter name"
        )
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(folder.stat().st_mode):
            raise BadParameter("state_dir is a file; give a folder")
    return folder


def _switch(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise ValueError
    return text.lower() in _YES


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "disabled": _switch,
    "local": _switch,
    "strict": _switch,
    "transport": str.lower,
    "max_epsilon": float,
    "hold_seconds": float,
    "log": str.lower,
}
_REMEDIES: Final[dict[Callable[[str], Any], str]] = {
    _switch: "write 1 or 0",
    float: "write a number",
}
