"""Shell and notebook commands that repeat the query of a page."""

import shlex
from dataclasses import dataclass, field, replace
from typing import Final

from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.analysis.answer import CONFIDENCE

# More strings do not fit a shell's line; they belong in a saved list.
_MAX_STRINGS: Final = 200
_TOKEN: Final = "HUBBUB_TOKEN"  # noqa: S105 the name of a variable
_AUTHORITY: Final = "HUBBUB_CA"
_FILE: Final = "strings.txt"
_ESTIMATES: Final = "estimates"


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands to paste, which give the numbers of the same query.

    Args:
        files: formats in which the service exports them.
    """

    shell: str
    notebook: str
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reached:
    """How analysts connect to the service.

    Args:
        origin: address of its pages.
        tokens: whether it requires a token.
    """

    origin: str
    tokens: bool


def commands(
    name: str, query: EstimateQuery, dates: str, reached: Reached, answer: str = _ESTIMATES
) -> Commands:
    """Returns the query as commands; `name` is a metric or tier, `dates` the epochs.

    `answer` names what is requested, in HTTP and in notebooks: estimates or figures.
    """
    if len(query.candidates) > _MAX_STRINGS:
        comment = f"# {len(query.candidates):,} strings: save them as a list, and use its name"
        return Commands(comment, comment)
    query = replace(query, range=EpochRange(epochs=dates)) if dates else query
    return Commands(
        _shell(name, query, answer, reached=reached),
        _notebook(name, query, answer, reached=reached),
    )


def _shell(name: str, query: EstimateQuery, answer: str, *, reached: Reached) -> str:
    """Returns the `hubbub` command, which reads token and authority from the environment."""
    lines = []
    words = ["query" if answer == _ESTIMATES else answer, name]
    words += [f"--epochs={query.range.epochs}"] * bool(query.range.epochs)
    words += [f"--last={query.range.last}"] * bool(query.range.last)
    words += ["--anytime"] * query.anytime
    words += [f"--list={list_name}" for list_name in query.lists]
    words += [f"--confidence={query.confidence:g}"] * (query.confidence != CONFIDENCE)
    if query.candidates:
        lines.append(f"printf '%s\\n' {shlex.join(query.candidates)} > {_FILE}")
        words.append(f"--candidates={_FILE}")
    lines.append(f"hubbub {shlex.join(words)} --url {shlex.quote(reached.origin)}")
    return "\n".join(lines)


def _notebook(name: str, query: EstimateQuery, answer: str, *, reached: Reached) -> str:
    arguments = {
        "last": query.range.last,
        "epochs": query.range.epochs,
        "confidence": query.confidence if query.confidence != CONFIDENCE else None,
        "anytime": query.anytime,
        "candidates": list(query.candidates),
        "lists": list(query.lists),
    }
    keywords = "".join(f", {word}={value!r}" for word, value in arguments.items() if value)
    lines = ["import hubbub.notebook", ""]
    origin = repr(reached.origin)
    if reached.tokens:
        lines.insert(0, "from os import environ\n")
        origin += f', token=environ["{_TOKEN}"], authority=environ.get("{_AUTHORITY}")'
    lines += [
        f"answer = hubbub.notebook.connect({origin}).{answer}({name!r}{keywords})",
        "answer",
    ]
    return "\n".join(lines)
