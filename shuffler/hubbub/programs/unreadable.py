"""Readable reasons why a file cannot be read, in place of Python's codec names and numbers."""

import gzip
import zlib


def unreadable(error: Exception) -> str:
    """Says why a file of text, perhaps gzip, could not be read, without quoting its content."""
    match error:
        case UnicodeDecodeError():
            return f"byte {error.start + 1} is not UTF-8 text"
        case gzip.BadGzipFile() | zlib.error():
            return "no gzip file, or a damaged one"
        case EOFError():
            return "the gzip file ends too early"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return str(error)
