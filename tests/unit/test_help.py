"""Help of the command line: every option of every command says what it is."""

import argparse
from collections.abc import Iterator

import pytest

from hubbub.cli.main import whole_parser


def _options(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield from _options(one, f"{path} {name}")
        else:
            yield path, action


@pytest.mark.parametrize(
    ("path", "action"),
    [
        pytest.param(path, action, id=f"{path} {action.dest}")
        for path, action in _options(whole_parser(), "hubbub")
    ],
)
def test_every_option_says_in_words_what_it_is(path: str, action: argparse.Action) -> None:
    said = (action.help or "").partition("(")[0].strip()
    assert said, f"{path}: {'/'.join(action.option_strings) or action.dest} has no help"
