"""CSV files that a person supplies, read with line numbers for error messages."""

import csv
from collections.abc import Iterator
from pathlib import Path

from hubbub.errors import BadParameter
from hubbub.programs.text_files import lines_of


def csv_rows(path: Path, option: str = "") -> Iterator[tuple[int, list[str]]]:
    """Yields line number and cells of each line that is not empty, of a CSV file, plain or .gz.

    `option` is the option that named the file, for error messages.

    Raises:
        BadParameter: it is no text, or no CSV; the message names file, line and remedy.
    """
    called = f"{option} " if option else ""
    reader = csv.reader((f"{line}\n" for line in lines_of(path)), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        where = f"{called}{path}: line {reader.line_num}"
        raise BadParameter(f"{where}: not CSV: {error}; correct it") from error
    except ValueError as error:
        raise BadParameter(f"{called}{error}") from error
