"""The reference of the command line, from its parsers."""

import argparse
from collections.abc import Iterator

from docs.reference.tables import cell, table
from hubbub.cli.main import whole_parser

_HEAD = """# The command line

Made by `make reference` from its parsers; change it there.

Every command and option, as `hubbub COMMAND --help` tells them.
`hubbub shuffler` and `hubbub aggregator` are among the [settings](settings.md).
A command exits with 0, with 2 and one line for what it refuses, and with 130 after Ctrl-C.

"""


def page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for name, help_text, parser in _commands(whole_parser()):
        deeper = list(_commands(parser))
        parts.append(f"## {name}\n\n{_sentence(help_text or '')}\n\n" if deeper else "")
        for action, action_help, one in deeper or [("", help_text, parser)]:
            title = f"{name} {action}".strip()
            parts.append(_command(title, action_help, one, level=3 if deeper else 2))
    return "".join(parts).rstrip() + "\n"


def _commands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, str | None, argparse.ArgumentParser]]:
    """Of a parser with commands each one with its line; the services have a page of their own."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {one.dest: one.help for one in action._choices_actions}
            for name, one in action.choices.items():
                if name not in {"shuffler", "aggregator", "relay", "issuer"}:
                    yield name, said.get(name), one


def _command(name: str, line: str | None, parser: argparse.ArgumentParser, *, level: int) -> str:
    told = parser.description or line or ""
    given = [_shown(one) for one in parser._actions if not one.option_strings]
    needed = [
        f"{one.option_strings[-1]} {_shown(one)}".strip()
        for one in parser._actions
        if one.option_strings and one.required
    ]
    usage = " ".join(["hubbub", name, *needed, "[OPTIONS]", *given])
    epilog = f"{cell(parser.epilog)}\n\n" if parser.epilog else ""
    return f"{'#' * level} {name}\n\n{_sentence(told)}\n\n    {usage}\n\n{options(parser)}{epilog}"


def options(parser: argparse.ArgumentParser) -> str:
    """A table of what a parser takes; what it names as a group has one of its own."""
    groups: dict[str, list[tuple[str, str]]] = {"": []}
    for group in parser._action_groups:
        title = group.title or ""
        rows = groups.setdefault("" if title in {"positional arguments", "options"} else title, [])
        rows += [
            (_name(one), _meaning(one))
            for one in group._group_actions
            if one.help != argparse.SUPPRESS and not isinstance(one, argparse._HelpAction)
        ]
    return "".join(
        (f"{_sentence(title)}:\n\n" if title else "") + table(("argument", "meaning"), rows)
        for title, rows in groups.items()
    )


def _name(action: argparse.Action) -> str:
    shown = _shown(action)
    if not action.option_strings:
        return f"`{shown}`"
    return ", ".join(f"`{f'{one} {shown}'.strip()}`" for one in action.option_strings)


def _shown(action: argparse.Action) -> str:
    """What stands for its value: its choices, its word, or nothing for a switch."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        one = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        own = action.metavar or action.dest
        one = own if isinstance(own, str) else " ".join(own)
        one = one.upper().replace("-", "_") if action.metavar is None else one
    if action.nargs in {"?", "*"}:
        return f"[{one}]" + ("..." if action.nargs == "*" else "")
    return f"{one}..." if action.nargs == "+" else one


def _meaning(action: argparse.Action) -> str:
    told = (action.help or "") % {**vars(action), "prog": "hubbub"}
    return cell(told) + (" (needed)" if action.option_strings and action.required else "")


def _sentence(text: str) -> str:
    return cell(text[:1].upper() + text[1:])
