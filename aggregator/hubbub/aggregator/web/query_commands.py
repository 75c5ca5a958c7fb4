"""Shell and notebook commands that repeat the query of a page."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

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
    """Commands to paste, which give the numbers of the same query."""

    shell: str
    notebook: str


@dataclass(frozen=True, slots=True)
class Reached:
    """How analysts connect to the service.

    Args:
        origin: address of its pages.
        tokens: whether it requires a token.
        command: command line that connects to it, with {} for the query; "" for curl.
    """

    origin: str
    tokens: bool
    command: str = ""


def commands(
    name: str, query: EstimateQuery, dates: str, reached: Reached, answer: str = _ESTIMATES
) -> Commands:
    """Returns the query as commands; `name` is a metric or tier, `dates` the epochs.

    `answer` names what is requested, in HTTP and in notebooks: estimates or figures.
    """
    epochs = dates or query.range.epochs
    last = "" if dates else query.range.last
    if len(query.candidates) > _MAX_STRINGS:
        comment = f"# {len(query.candidates):,} strings: save them as a list, and use its name"
        return Commands(comment, comment)
    return Commands(
        _shell(name, query, epochs, last, answer, reached=reached),
        _notebook(name, query, epochs, last, answer, reached=reached),
    )


def _shell(
    name: str, query: EstimateQuery, epochs: str, last: str, answer: str, *, reached: Reached
) -> str:
    """Returns the `hubbub` command if a command line for this service is known, otherwise curl."""
    lines = []
    if reached.command:
        words = ["query" if answer == _ESTIMATES else answer, name]
        words += [f"--epochs={epochs}"] * bool(epochs) + [f"--last={last}"] * bool(last)
        words += ["--anytime"] * query.anytime
        words += [f"--list={list_name}" for list_name in query.lists]
        words += [f"--confidence={query.confidence:g}"] * (query.confidence != CONFIDENCE)
        if query.candidates:
            lines.append(f"printf '%s\\n' {shlex.join(query.candidates)} > {_FILE}")
            words.append(f"--candidates={_FILE}")
        lines.append(reached.command.replace("{}", shlex.join(words)))
        return "\n".join(lines)
    metric, _, tier = name.partition("/")
    parameters = {**_parameters(query, epochs, last), **({"tier": tier} if tier else {})}
    url = f"{reached.origin}/v1/metrics/{quote(metric, safe='')}/{answer}?"
    words = ["curl --silent --show-error --fail-with-body"]
    if reached.tokens:
        ask = "read -rsp 'token: ' HUBBUB_TOKEN"
        lines.append(f': "${{{_TOKEN}:?put your token there first: {ask}}}"')
        words.append(f'--header "Authorization: Bearer ${_TOKEN}"')
    if reached.origin.startswith("https:"):
        words.append(f'${{{_AUTHORITY}:+--cacert "${_AUTHORITY}"}}')
    if query.candidates:
        words.append("--header 'Content-Type: application/json'")
        words.append(f"--data {shlex.quote(_json(query.candidates))}")
    lines.append(" ".join([*words, shlex.quote(url + urlencode(parameters, doseq=True))]))
    return "\n".join(lines)


def _notebook(
    name: str, query: EstimateQuery, epochs: str, last: str, answer: str, *, reached: Reached
) -> str:
    arguments: dict[str, Any] = {"last": last, "epochs": epochs}
    if query.confidence != CONFIDENCE:
        arguments["confidence"] = query.confidence
    if query.anytime:
        arguments["anytime"] = True
    arguments |= {"candidates": list(query.candidates), "lists": list(query.lists)}
    more = "".join(f", {word}={value!r}" for word, value in arguments.items() if value)
    lines = ["import hubbub.notebook", ""]
    where = repr(reached.origin)
    if reached.tokens:
        lines.insert(0, "from os import environ\n")
        where += f', token=environ["{_TOKEN}"], authority=environ.get("{_AUTHORITY}")'
    lines += [
        f"answer = hubbub.notebook.connect({where}).{answer}({name!r}{more})",
        "answer",
    ]
    return "\n".join(lines)


def _parameters(query: EstimateQuery, epochs: str, last: str) -> Mapping[str, Any]:
    parameters: dict[str, Any] = {"epochs": epochs, "last": last, "list": list(query.lists)}
    if query.confidence != CONFIDENCE:
        parameters["confidence"] = query.confidence
    if query.anytime:
        parameters["anytime"] = "true"
    return {name: value for name, value in parameters.items() if value}


def _json(strings: Sequence[str]) -> str:
    return json.dumps({"candidates": list(strings)})
