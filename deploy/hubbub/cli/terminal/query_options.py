"""Options of commands that ask a running hubbub: its address, epochs, candidates, formats."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from hubbub.aggregator.exported_files import to_csv, to_parquet
from hubbub.cli.terminal.output import say
from hubbub.cli.terminal.percentile_and_candidate_options import read_candidates
from hubbub.errors import BadParameter, MissingDependency, TotalsUnreadable
from hubbub.errors.message_words import install_with
from hubbub.installation.running_endpoints import HOME, Endpoints, read_endpoints
from hubbub.notebook import Answer, Connection
from hubbub.notebook.http_client import MISSHAPEN
from hubbub.programs.atomic_write import read_output, write_output
from hubbub.programs.option_parsing import Exclusive, argument, option, options, read_existing
from hubbub.query_results.answer_table import whole_rows
from hubbub.query_results.confidence_check import MAX_CONFIDENCE, MIN_CONFIDENCE, confidence_error

_TOKEN: Final = "HUBBUB_TOKEN"  # noqa: S105 the name of a variable
_AUTHORITY: Final = "HUBBUB_CA"
_WINDOW: Final = Exclusive()
Format = Literal["table", "json", "csv", "parquet"]
OR_PART: Final = ", NAME@os=linux for a part of the devices"
"""What else may be an argument for a metric."""
_FORMATS: Final[dict[str, Format]] = {".csv": "csv", ".parquet": "parquet", ".json": "json"}


def read_metric_name(name: str, text: str) -> str:
    """Reads a metric's or model's name. Raises BadParameter if it is empty."""
    if not text:
        raise BadParameter(f"{name}: '' is not a name; hubbub metrics lists the names")
    return text


def metric_argument(more: str = "") -> Any:
    """The argument for a metric; `more` ends its text."""
    text = "name of the metric; NAME/EPSILON for a single tier"
    return argument(text + more, read=read_metric_name)


def parse_epochs(text: str) -> str:
    """Returns what names epochs. Raises ArgumentTypeError for blanks, as of an unset variable."""
    if not text.strip():
        raise argparse.ArgumentTypeError(
            "'' names no epochs; leave it out for the newest, or write closed, all or a day"
        )
    return text


def read_confidence(name: str, confidence: float) -> float:
    """Reads a confidence level. Raises BadParameter if no interval can have it."""
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        why = str(confidence_error(confidence)).removeprefix("confidence ")
        raise BadParameter(f"{name} {why}")
    return confidence


def confidence_option(subject: str) -> Any:
    """The option for a confidence level, of the intervals that `subject` names."""
    return option(f"confidence of {subject} (%(default)s)", default=0.95, read=read_confidence)


@options
class ServiceOptions:
    """Options that select the service to ask."""

    home: Path = option("folder of `hubbub up` (%(default)s)", default=HOME)
    url: str = option(
        "HTTP address of the aggregator, instead of --home; its token is read from the environment "
        f"variable {_TOKEN}",
        default="",
    )
    authority: str | None = option(
        "certificate authorities of the service (ca.pem), if this system does not trust it; "
        f"without it those of the environment variable {_AUTHORITY}",
        metavar="FILE",
        read=read_existing,
        needs="url",
    )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Opens a connection to the service, until its answers are shown.

        A token is sent only to an address that was named. Raises ServiceUnavailable if nothing was
        started in the folder, or an answer is malformed.
        """
        if self.url:
            token = os.environ.get(_TOKEN, "").strip()
            authority = self.authority or os.environ.get(_AUTHORITY)
            endpoints = Endpoints(page=self.url, token=token, authority=authority)
        else:
            endpoints = read_endpoints(self.home)
        connection = endpoints.connection
        try:
            yield connection
        except UnicodeEncodeError:  # of what was typed
            raise
        except MISSHAPEN as error:
            raise connection.service.alien(error) from error


@options
class OutputOptions:
    """Options for the format and file of an answer."""

    format: Format | None = option(
        "format of the output (by the ending of --out; without a file a table)"
    )
    out: Path | None = option(
        "write the output to this file instead of the screen", metavar="FILE", read=read_output
    )

    def __post_init__(self) -> None:
        """Raises BadParameter for an output that cannot be made, before the question is asked."""
        if self.out and self._output_format == "table":
            raise BadParameter("--out needs --format json, csv or parquet")
        if self.out and _FORMATS.get(self.out.suffix, self.format) != self._output_format:
            raise BadParameter(
                f"--out {self.out} does not end in .{self.format}, as --format says; leave out "
                f"--format, or name the file .{self.format}"
            )
        if self._output_format == "parquet" and not self.out and sys.stdout.isatty():
            raise BadParameter("Parquet is not for a screen: give --out FILE")

    @property
    def _output_format(self) -> Format:
        """The format, by the ending of the file's name if no option names it."""
        if self.format or not self.out:
            return self.format or "table"
        if self.out.suffix not in _FORMATS:
            raise BadParameter(
                f"--out {self.out}: name it .csv, .parquet or .json, or give --format"
            )
        return _FORMATS[self.out.suffix]

    def write(self, answer: Answer, show: Callable[[Any], None]) -> None:
        """Writes an answer in the chosen format; `show` prints it as a table.

        Raises BadParameter if the file cannot be written.
        """
        match self._output_format:
            case "table":
                show(answer.document)
                return
            case "json":
                content: str | bytes = (
                    json.dumps(answer.document, indent=1, ensure_ascii=False) + "\n"
                )
            case "csv":
                content = to_csv(whole_rows(answer.question, answer.document))
            case "parquet":
                content = to_parquet(whole_rows(answer.question, answer.document))
        raw = content.encode() if isinstance(content, str) else content
        if self.out:
            write_output("--out", self.out, raw)
            say(f"{self.out}: {len(raw):,} bytes")
        elif isinstance(content, str) and sys.stdout.isatty():
            say(content.rstrip("\n"))
        else:
            sys.stdout.buffer.write(raw)
            sys.stdout.flush()


@options
class AnswerOptions:
    """Options of an answer: epochs, confidence, and output."""

    last: str | None = option(
        "how far to look back from now: 7 (epochs), 12h, 7d or 4w",
        exclusive=_WINDOW,
        parse=parse_epochs,
    )
    epochs: str | None = option(
        "epochs of the answer: newest (without --last; trend: all), closed, all, today, yesterday, "
        "a day such as 2026-11-22, a range A..B, a list A,B, or numbers",
        other_name="--epoch",
        exclusive=_WINDOW,
        parse=parse_epochs,
    )
    confidence: float = confidence_option("the intervals")
    output: OutputOptions
    service: ServiceOptions
    totals: str = option(
        "folder, or address such as s3://BUCKET/PREFIX, that hubbub aggregator --totals writes: "
        "answer from its files, without a service",
        default="",
        metavar="PLACE",
    )
    bundle: Path | None = option(
        "bundle that defines the metrics (the newest in the place of --totals)", needs="totals"
    )
    skip_unreadable: bool = option(
        "leave out epochs whose files of totals are missing or cannot be read; the answer names "
        "them",
        needs="totals",
    )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Opens the files of --totals, or connects to the service; raises as they do.

        Raises BadParameter if both were named.
        """
        if not self.totals:
            with self.service.connection() as connection:
                yield connection
            return
        if self.service.url:
            raise BadParameter("--totals replaces a service: leave --url out")
        try:
            from hubbub.history import open_totals  # noqa: PLC0415 needs extras
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            raise MissingDependency(
                f"--totals needs {missing}, which is not installed here: "
                f"{install_with('aggregator,tables')}"
            ) from error
        connection = open_totals(self.totals, self.bundle, skip_unreadable=self.skip_unreadable)
        try:
            yield connection
        except TotalsUnreadable as error:
            raise TotalsUnreadable(f"{error}; or leave its epoch out: --skip-unreadable") from error

    def ask(
        self,
        question: Callable[..., Answer],
        show: Callable[[Any], None],
        *parts: str,
        **terms: Any,
    ) -> Answer:
        """Asks, writes or shows the answer, and returns it.

        `question` is a method of Connection, called with `parts` and `terms`.
        """
        with self.connection() as connection:
            answer = question(
                connection,
                *parts,
                last=self.last or "",
                epochs=self.epochs or "",
                confidence=self.confidence,
                **terms,
            )
            self.output.write(answer, show)
        return answer


@options
class QuestionOptions:
    """Options of every question about a metric's values."""

    metric: str = metric_argument(OR_PART)
    candidates: Path | None = option(
        "file of strings to look for, one per line; without it and --list, the strings of "
        "the catalog"
    )
    lists: tuple[str, ...] = option(
        'saved list of strings to look for (hubbub candidates), or "catalog" for the strings '
        "of the catalog (repeatable)",
        name="--list",
        metavar="NAME",
    )
    answer: AnswerOptions

    def ask(
        self, question: Callable[..., Answer], show: Callable[[Any], None], **terms: Any
    ) -> None:
        """Ask about the metric, as AnswerOptions.ask does."""
        strings = read_candidates(self.candidates) if self.candidates else []
        all_terms = {"candidates": strings, "lists": self.lists, **terms}
        self.answer.ask(question, show, self.metric, **all_terms)
