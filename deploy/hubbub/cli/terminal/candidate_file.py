"""Reads a file of candidate strings, one per line, for several commands."""

from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.programs.text_files import read_list


def read_candidates(path: Path, option: str = "--candidates") -> list[str]:
    """The lines of a text file, plain or .gz, without repeats; errors name `option`.

    Raises BadParameter if it cannot be read as text, or is empty.
    """
    try:
        lines = list(dict.fromkeys(read_list(path)))
    except ValueError as error:
        raise BadParameter(f"{option} {error}") from error
    if not lines:
        raise BadParameter(f"{option} {path}: is empty; write one string per line")
    return lines
