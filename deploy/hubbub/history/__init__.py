"""Answers from files of totals, without Redis: `open_totals("totals").estimates("theme")`.

The questions are those of a notebook, and so are the answers, to the last digit.
"""

from pathlib import Path
from typing import Final

from hubbub.aggregator.web.answers_from_totals_files import FileAnswers
from hubbub.notebook import Connection
from hubbub.notebook.http_client import Service

__all__ = ["open_totals"]

_ADDRESS: Final = "http://127.0.0.1"


def open_totals(
    totals: str | Path, bundle: str | Path | None = None, *, skip_unreadable: bool = False
) -> Connection:
    """A connection that answers from files.

    Args:
        totals: the folder, or the address such as s3://BUCKET/PREFIX, that
            `hubbub aggregator --totals` writes.
        bundle: the file of the bundle that defines the metrics; None for the newest that the
            aggregator has written beside the totals.
        skip_unreadable: leave out epochs whose files are missing or cannot be read; the notice of
            an answer names them. Else such a file is an error: TotalsUnreadable.

    Raises:
        BadParameter: an address that is none.
        TotalsUnreadable: the place has no totals.
        BundleRefused: there is no bundle, or that in the file is none.
        StoreUnavailable: the place cannot be read.
        MissingDependency: pyarrow is not installed.
    """
    path = Path(bundle) if bundle else None
    answers = FileAnswers(str(totals), path, skip_unreadable=skip_unreadable)
    return Connection(Service(_ADDRESS, None, answers))
