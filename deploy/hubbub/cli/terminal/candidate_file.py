"""A file of strings to weigh, one a line, as several commands take it."""

from pathlib import Path

from hubbub.catalog.encoding import read_text
from hubbub.errors import BadParameter


def read_candidates(path: Path, option: str = "--candidates") -> list[str]:
    """The lines of a text file, plain or .gz, without repeats; errors name it by its option.

    Raises:
        BadParameter: it cannot be read as text, or holds nothing.
    """
    try:
        text = read_text(path)
    except ValueError as error:
        raise BadParameter(f"{option} {error}; give a text file") from error
    lines = list(dict.fromkeys(line for line in text.splitlines() if line))
    if not lines:
        raise BadParameter(f"{option} {path}: no line in it; write one string a line")
    return lines
