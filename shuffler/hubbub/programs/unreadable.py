"""Why a file cannot be read, in words of ours: Python's name codecs, error numbers and bytes."""

import gzip
import zlib


def unreadable(error: Exception) -> str:
    """What is wrong with a file that was read as text, perhaps from gzip; never what it holds."""
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
