"""The reference of the command line, from its parsers."""

import argparse
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from docs.reference.tables import prose
from hubbub.cli.main import whole_parser

_HEAD = """# The command line

Made by `make reference` from the parsers; change it there.

`hubbub COMMAND --help` prints the same, with examples.
`hubbub shuffler`, `aggregator`, `relay` and `issuer` are among the [settings](settings.md).
Arguments without dashes are typed in the listed order; those in brackets may be left out. Options may be left out unless they are `(required)`; a value in parentheses is the default. An option takes a value unless it is a `(switch)`.
A command exits with 0 on success, with 2 and one line of explanation when it refuses, and with 130 after Ctrl-C.

## Shared arguments

These mean the same in every command that lists them as shared.

"""
_FEWEST_COMMANDS: Final = 4  # An argument that so many commands describe alike is shared.
_LONG_LIST: Final = 10  # Quotes of a list; a link to an earlier list of as many is shorter.
_TOP_LEVEL: Final = 2  # Level of the heading of a command.
_SERVICES: Final = {"shuffler", "aggregator", "relay", "issuer"}


def page() -> str:
    """The whole page, as Markdown."""
    sections = []
    for name, help_text, parser in _commands(whole_parser()):
        sections.append((name, help_text, parser, _TOP_LEVEL))
        for action, action_help, action_parser in _commands(parser):
            sections.append((f"{name} {action}", action_help, action_parser, _TOP_LEVEL + 1))
    shared = shared_entries([parser for _, _, parser, _ in sections], _FEWEST_COMMANDS)
    text = [_HEAD, "".join(f"- {entry}\n" for entry in shared), "\n"]
    above: set[str] = set()
    first_with: dict[str, str] = {}
    for title, help_text, parser, level in sections:
        if level == _TOP_LEVEL:
            above = set()
        section = _command(title, help_text, parser, level=level, shared=shared, above=above)
        text.append(_link_repeated_section(section, title, first_with))
        above |= {_entry(action) for action in _listed_actions(parser._actions)}
        above.add(parser.epilog or "")
    return "".join(text).rstrip() + "\n"


def _link_repeated_section(section: str, title: str, first_with: dict[str, str]) -> str:
    """A section, with a link in place of a list of shared arguments that stands in an earlier one.

    Args:
        section: Markdown of a command.
        title: the command.
        first_with: long lists of shared arguments, and the command that has each first; extended.
    """
    for line in re.findall(r"^Shared: .*", section, re.MULTILINE):
        first = first_with.setdefault(line, title)
        if first != title and line.count("`") > _LONG_LIST:
            section = section.replace(line, f"Shared: those of [{first}](#{first}).")
    return section


def _commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, str | None, argparse.ArgumentParser]]:
    """Name, help and parser of each command; the services have a page of their own."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            help_texts = {choice.dest: choice.help for choice in action._choices_actions}
            for name, command in action.choices.items():
                if name not in _SERVICES:
                    yield name, help_texts.get(name), command


def shared_entries(parsers: Collection[argparse.ArgumentParser], fewest: int) -> list[str]:
    """Entries of the arguments that `fewest` parsers or more describe alike, one for each name."""
    counts = Counter(
        (_short_name(action), _entry(action))
        for parser in parsers
        for action in _listed_actions(parser._actions)
    )
    entries: dict[str, str] = {}
    for (name, entry), count in counts.most_common():
        if count >= fewest:
            entries.setdefault(name, entry)
    return list(entries.values())


def _command(
    name: str,
    help_text: str | None,
    parser: argparse.ArgumentParser,
    *,
    level: int,
    shared: Collection[str],
    above: Collection[str],
) -> str:
    heading = f"{'#' * level} {name}\n\n"
    if parser.get_default("run") is None:  # its actions follow
        return f"{heading}{_sentence(help_text or '')}\n\n"
    description = _sentence(parser.description or help_text or "")
    epilog = "" if parser.epilog in above else parser.epilog or ""
    return f"{heading}{description}\n\n{options(parser, shared, above)}{_epilog(epilog)}"


def _epilog(text: str) -> str:
    """The paragraphs after the options, without examples."""
    paragraphs = text.strip().split("\n\n")
    return "".join(
        f"{prose(paragraph)}\n\n"
        for paragraph in paragraphs
        if paragraph and not paragraph.startswith("examples:")
    )


def options(
    parser: argparse.ArgumentParser, shared: Collection[str] = (), above: Collection[str] = ()
) -> str:
    """The arguments of a parser as a list, with a list for each named group.

    Args:
        parser: of a command.
        shared: entries that the page describes in its beginning; here only their names are listed.
        above: entries and epilogs of earlier actions of the command; only names are listed again.
    """
    groups: dict[str, list[str]] = {"": []}
    shared_names = []
    names_above = []
    for group in parser._action_groups:
        title = group.title or ""
        title = "" if title in {"positional arguments", "options"} else title
        for action in _listed_actions(group._group_actions):
            entry = _entry(action)
            if entry in shared:
                shared_names.append(f"`{_short_name(action)}`")
            elif entry in above:
                names_above.append(f"`{_short_name(action)}`")
            else:
                groups.setdefault(title, []).append(f"- {entry}\n")
    lists = [
        (f"{_sentence(title)}:\n\n" if title else "") + "".join(entries) + "\n"
        for title, entries in groups.items()
        if entries
    ]
    return (
        "".join(lists)
        + (f"As above: {', '.join(names_above)}.\n\n" if names_above else "")
        + (f"Shared: {', '.join(shared_names)}.\n\n" if shared_names else "")
    )


def _listed_actions(actions: Collection[argparse.Action]) -> Iterator[argparse.Action]:
    for action in actions:
        unlisted = (argparse._HelpAction, argparse._SubParsersAction)
        if action.help != argparse.SUPPRESS and not isinstance(action, unlisted):
            yield action


def _short_name(action: argparse.Action) -> str:
    return action.option_strings[0] if action.option_strings else _value(action)


def _entry(action: argparse.Action) -> str:
    value = _value(action)
    shown = "" if value == action.dest.upper().replace("-", "_") else value
    names = [f"`{f'{option} {shown}'.strip()}`" for option in action.option_strings]
    help_text = (action.help or "") % {**vars(action), "prog": "hubbub"}
    note = " (required)" if action.option_strings and action.required else ""
    if action.nargs == 0:
        note = " (switch)"
    return f"{', '.join(names or [f'`{value}`'])}: {prose(help_text)}{note}"


def _value(action: argparse.Action) -> str:
    """The placeholder of an argument's value: its choices or its metavar; empty for a switch."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    elif action.metavar is None:
        value = action.dest.upper().replace("-", "_")
    else:
        value = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.nargs in {"?", "*"}:
        return f"[{value}]" + ("..." if action.nargs == "*" else "")
    return f"{value}..." if action.nargs == "+" else value


def _sentence(text: str) -> str:
    return prose(text[:1].upper() + text[1:])
