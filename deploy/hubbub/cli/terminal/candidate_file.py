"""A file of strings to weigh, one a line, as several commands take it."""

from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.programs.text_files import read_list


def read_candidates(path: Path, option: str = "--candidates") -> list[str]:
    """The lines of a text file, plain or .gz, without repeats; errors name it by its option.

    Raises:
        BadParameter: it cannot be read as text, or holds nothing.
    """
    try:
        lines = list(dict.fromkeys(read_list(path)))
    except ValueError as error:
        raise BadParameter(f"{option} {error}") from error
    if not lines:
        raise BadParameter(f"{option} {path}: is empty; write one string per line")
    return lines
