"""Options of a command line: the fields of a frozen dataclass, and the parser that reads them.

    @options
    class AmplifyOptions:
        epsilon: float = option("of one report, nats")
        reports: int = option("in the batch", within=Interval(1, 10**9))
        json: bool = option("as JSON")

From these come parser, checks of ranges, help, completion and reference. The annotation decides
what is read: bool is a switch, `tuple[X, ...]` an option that is repeated, `tuple[X, X]` an option
of two values, date a day as YYYY-MM-DD, Literal a choice. These two need no default, nor does
`X | None`. A field that holds another such dataclass
has its options. The parameters of a command's function are declared like fields.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import date
from inspect import signature
from math import isinf
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, TypeVar, dataclass_transform, get_args, get_origin

from hubbub.errors import BadParameter
from hubbub.fields.rules import Interval

_KEY: Final = "option"
# Whole numbers between these bounds are counts and written in full.
_LONG: Final = 1e6
_LONGEST: Final = 1e15
NEEDS_VALUE: Final = object()
"""Of an option that is never written without a value."""
Section = TypeVar("Section")
Reader = Callable[[str, Any], Any]
"""Takes an option's name and its value; returns what the field holds, or raises BadParameter."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A titled group of options in the help."""

    title: str


@dataclass(frozen=True, slots=True, eq=False)
class Exclusive:
    """A set of options of which at most one may be given; exactly one if `required`."""

    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How one field is written on a command line.

    Attributes:
        text: text in the help.
        name: the option; "" derives it from the field's name. positional: it has no name.
        other_name: a second name of the option, such as -n.
        metavar: placeholder for the value in the help; () derives it from the name.
        choices: the allowed values, beside those of a Literal.
        within: the interval of its numbers. unit: their unit, for error messages.
        parse: reads the text of a value; raises ValueError or ArgumentTypeError.
        read: checks or replaces the parsed value, unless it is the default.
        several: whether the option takes one or more values at once.
        bare: the value if the option is written without one.
        needs: the field of the same dataclass without which the option has no effect.
    """

    text: str
    name: str = ""
    other_name: str = ""
    positional: bool = False
    metavar: str | tuple[str, ...] = ()
    choices: Sequence[Any] = ()
    within: Interval | None = None
    unit: str = ""
    parse: Callable[[str], Any] | None = None
    read: Reader | None = None
    group: Group | None = None
    exclusive: Exclusive | None = None
    several: bool = False
    bare: Any = NEEDS_VALUE
    needs: str = ""


def option(text: str, *, default: Any = MISSING, **declaration: Any) -> Any:
    """Declares a field as an option of the command line; `declaration` are fields of Option."""
    return field(default=default, metadata={_KEY: Option(text=text, **declaration)})


def argument(text: str, *, default: Any = MISSING, **declaration: Any) -> Any:
    """Declares a field as an argument without a name; `declaration` are fields of Option."""
    return option(text, default=default, positional=True, **declaration)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(option, argument, field)
)
def options(section: type[Section], *, fields_only: bool = False) -> type[Section]:
    """Makes a class with `option` and `argument` fields a frozen, keyword-only dataclass.

    `fields_only` is for a class without objects: no method is compiled for it, which takes 1 ms.
    """
    for name, annotation in section.__annotations__.items():
        declared = vars(section).get(name)
        if isinstance(declared, Field) and declared.default is MISSING:
            declared.default = _implied_default(annotation, declared.metadata[_KEY])
    if fields_only:
        return dataclass(init=False, repr=False, eq=False)(section)
    return dataclass(frozen=True, slots=True, kw_only=True)(section)


def parameters_of(function: Callable[..., Any]) -> type:
    """Makes the options dataclass whose fields are the parameters of a function."""
    parameters = signature(function).parameters.values()
    members = {each.name: each.default for each in parameters if each.default is not each.empty}
    annotations = {each.name: each.annotation for each in parameters}
    section = type("Parameters", (), {**members, "__annotations__": annotations})
    return options(section, fields_only=True)


def _implied_default(annotation: Any, declaration: Option) -> Any:
    """The default of a field that declares none: of a switch, an optional or a repeated option."""
    if annotation is bool:
        return False
    if NoneType in get_args(annotation):
        return None
    return () if _item(annotation)[1] < 0 and not declaration.positional else MISSING


@dataclass(frozen=True, slots=True)
class _FieldOption:
    """A field and its option. `name` is for error messages; `dest` is argparse's attribute."""

    field: "Field[Any]"
    option: Option

    @property
    def name(self) -> str:
        if self.option.positional:
            return self.field.name
        return self.option.name or "--" + self.field.name.replace("_", "-")

    @property
    def dest(self) -> str:
        if self.option.positional:
            return self.field.name
        return self.name.removeprefix("--").replace("-", "_")


def _options_of(section: type) -> Iterator["_FieldOption | Field[Any]"]:
    """Yields the options of a dataclass in order, and the fields that hold further options."""
    for member in fields(section):
        if _KEY in member.metadata:
            yield _FieldOption(member, member.metadata[_KEY])
        elif isinstance(member.type, type) and is_dataclass(member.type):
            yield member


def intervals_of(section: type) -> dict[str, tuple[Any, Interval]]:
    """Type and interval of each option of a dataclass that has an interval, by argparse's name."""
    return {
        entry.dest: (entry.field.type, entry.option.within)
        for entry in _options_of(section)
        if isinstance(entry, _FieldOption) and entry.option.within is not None
    }


def read_named_path(name: str, path: Path) -> Path:
    """Returns the path if it ends in a name, beside which other files can be placed.

    Raises BadParameter if it is ".", "..", "/" or ends in one of these.
    """
    if path.name in {"", ".."}:
        raise BadParameter(f"{name} {path} has no name at its end; add one, as in ./NAME")
    return path


def read_existing(name: str, path: Any) -> Any:
    """Returns the path of a file that an option names. Raises BadParameter if it is missing."""
    if not Path(path).exists():
        raise BadParameter(f"{name} {path}: does not exist; check the path, or leave it out")
    return path


def add_options(parser: argparse.ArgumentParser, section: type) -> None:
    """Add the options of a dataclass to a parser."""
    _add(section, parser, {})


def _add(section: type, parser: argparse.ArgumentParser, containers: dict[Any, Any]) -> None:
    for entry in _options_of(section):
        if isinstance(entry, Field):
            _add(entry.type, parser, containers)  # type: ignore[arg-type]  # _written saw a class
            continue
        choice = entry.option
        container: Any = parser
        if choice.group is not None:
            if choice.group not in containers:
                containers[choice.group] = parser.add_argument_group(choice.group.title)
            container = containers[choice.group]
        if choice.exclusive is not None:
            if choice.exclusive not in containers:
                containers[choice.exclusive] = container.add_mutually_exclusive_group(
                    required=choice.exclusive.required
                )
            container = containers[choice.exclusive]
        names = [entry.field.name if choice.positional else entry.name]
        names += [choice.other_name] if choice.other_name else []
        container.add_argument(*names, **_argparse_arguments(entry))


def _argparse_arguments(entry: _FieldOption) -> dict[str, Any]:
    declaration, default = entry.option, entry.field.default
    keywords: dict[str, Any] = {"help": declaration.text}
    item, several = _item(entry.field.type)
    if declaration.metavar or item is date:
        keywords["metavar"] = declaration.metavar or "YYYY-MM-DD"
    if item is bool:
        return {**keywords, "action": "store_true"}
    choices = declaration.choices or (get_args(item) if get_origin(item) is Literal else ())
    if choices:
        keywords["choices"] = choices
    if declaration.parse or item in {int, float, Path, date}:
        keywords["type"] = declaration.parse or item
    keywords |= _count(entry, several)
    if default is not MISSING:
        keywords["default"] = [] if keywords.get("action") == "append" else default
    elif not declaration.positional:
        keywords["required"] = True
    return keywords


def _count(entry: _FieldOption, several: int) -> dict[str, Any]:
    """Keyword arguments of add_argument that say how many values an option takes."""
    declaration, is_needed = entry.option, entry.field.default is MISSING
    if several and not declaration.several and not declaration.positional:
        return {"action": "append"} if several < 0 else {"nargs": several}
    if several:
        return {"nargs": "+" if is_needed or not declaration.positional else "*"}
    if declaration.bare is not NEEDS_VALUE:
        return {"nargs": "?", "const": declaration.bare}
    return {"nargs": "?"} if declaration.positional and not is_needed else {}


def _item(annotation: Any) -> tuple[Any, int]:
    """The type of one value, and how many values: 0 for a single one, -1 for any number."""
    if get_args(annotation)[1:] and NoneType in get_args(annotation):
        [annotation] = [argument for argument in get_args(annotation) if argument is not NoneType]
    if get_origin(annotation) is tuple:
        items = get_args(annotation)
        return items[0], -1 if items[1] is Ellipsis else len(items)
    return annotation, 0


def read_options(section: type[Section], namespace: argparse.Namespace) -> Section:
    """Returns the parsed options as an object of the dataclass. Raises as `read_fields`."""
    return section(**read_fields(section, namespace))


def read_fields(section: type, namespace: argparse.Namespace) -> dict[str, Any]:
    """Checks the parsed options, and returns the fields of the dataclass.

    Raises BadParameter if a number is outside its interval, a reader refuses a value, or an option
    is written without the one that it needs.
    """
    values: dict[str, Any] = {}
    typed: dict[str, _FieldOption] = {}
    for entry in _options_of(section):
        if isinstance(entry, Field):
            values[entry.name] = read_options(entry.type, namespace)  # type: ignore[arg-type]
            continue
        value = getattr(namespace, entry.dest)
        if isinstance(value, list):
            value = tuple(value)
        if value != entry.field.default:
            _check_within(entry, value)
            value = entry.option.read(entry.name, value) if entry.option.read else value
            typed[entry.field.name] = entry
        values[entry.field.name] = value
    for entry in typed.values():
        needed_option = entry.option.needs
        if needed_option and needed_option not in typed:
            name = needed_option.replace("_", "-")
            raise BadParameter(f"{entry.name} goes with --{name}: add that, or leave it out")
    return values


def _check_within(entry: _FieldOption, value: Any) -> None:
    """Raises BadParameter for a number outside the option's interval."""
    interval = entry.option.within
    for number in value if isinstance(value, tuple) else (value,):
        if interval is None or number in interval:
            continue
        low, high = map(_figure, (interval.low, interval.high))
        where = f"outside {interval.ends[0]}{low}, {high}{interval.ends[1]}"
        if isinf(interval.high) and number <= interval.low:
            where = f"{'below' if interval.ends[0] == '[' else 'not above'} {low}"
        unit = f" {entry.option.unit}" if entry.option.unit else ""
        raise BadParameter(f"{entry.name} {_figure(number)} is {where}{unit}")


def _figure(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    is_count = _LONG <= number < _LONGEST and number.is_integer()
    return f"{number:,.0f}" if is_count else f"{number:g}"
