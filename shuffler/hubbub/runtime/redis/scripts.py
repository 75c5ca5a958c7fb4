"""Lua scripts: files beside the code that calls them, and how they are called."""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, TypeAlias

Command: TypeAlias = tuple[Any, ...]
"""A command's name and arguments; the first of them is its key, unless it is a script."""


def lua(package: str, name: str) -> str:
    """The text of NAME.lua in a package, without the comments: it travels with every call."""
    text = (files(package) / f"{name}.lua").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("--"))


def script(text: str, keys: Sequence[str], arguments: Iterable[Any] = ()) -> Command:
    """A Lua script on keys of one slot.

    Its text, not its hash: asking first whether Redis knows the hash would cost a second trip.
    """
    return ("EVAL", text, len(keys), *keys, *arguments)
