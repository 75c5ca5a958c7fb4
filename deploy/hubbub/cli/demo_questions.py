"""The demo's questions, two of them in both ways, and its answers beside the truth."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import ceil, floor
from pathlib import Path
from statistics import median
from typing import Any, Final

from hubbub.authoring import Catalog, read_with_promises
from hubbub.catalog import Metric
from hubbub.cli.terminal.output import paragraph, say, table
from hubbub.errors import HubbubError
from hubbub.errors.message_words import at_most
from hubbub.notebook import Connection
from hubbub.simulation.demo_history import value_text
from hubbub.simulation.devices import Person

_STRINGS: Final = "top_domains.txt.gz"
_CATALOG: Final = "metrics.toml"
# Crowd of the catalog, small enough for few people or a quiet day.
_CROWD: Final = "crowd = 25000"
_LARGEST_CROWD: Final = 25_000
_SMALLEST_CROWD: Final = 10
_OF_PEOPLE: Final = 5 / 6


@dataclass(frozen=True, slots=True)
class BothWays:
    """One question asked twice; `alone` and `crowd` are the metrics' names."""

    title: str
    alone: str
    crowd: str


BOTH_WAYS: Final = (
    BothWays("Education", "education", "education_crowd"),
    BothWays("Work and education", "education_by_work", "education_by_work_crowd"),
)


CROSSED: Final = "age_and_income"
"""The metric of parts."""


def demo_questions(home: Path, people: int) -> Catalog:
    """Writes the demo's catalog to a folder, with a crowd of five sixths of the people.

    The crowd stops growing at 30,000 people.
    """
    data = files("hubbub.cli") / "demo_data"
    text = "\n".join((data / name).read_text() for name in (_CATALOG, "both_ways.toml"))
    crowd = max(_SMALLEST_CROWD, min(_LARGEST_CROWD, int(people * _OF_PEOPLE)))
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (home / _STRINGS).write_bytes((data / _STRINGS).read_bytes())
    path = home / _CATALOG
    path.write_text(text.replace(_CROWD, f"crowd = {crowd}"))
    return read_with_promises(path)


def answers_of(everyone: Sequence[Person]) -> list[Person]:
    """The people, with answers added to the questions that combine others."""
    return [
        person
        | {
            "education_crowd": person["education"],
            "education_by_work": (both := f"{person['occupation']}, {person['education']}"),
            "education_by_work_crowd": both,
            CROSSED: {"age": person["age_group"], "over_50k": person["income_over_50k"]},
        }
        for person in everyone
    ]


_ROWS: Final = 12
_FIGURES: Final = ("value", "estimate", "stderr", "low", "high", "detected")


@dataclass(frozen=True, slots=True)
class MetricAnswer:
    """One metric's answer with the truth. `document` is its JSON; `problem` is why it is None."""

    metric: Metric
    document: Mapping[str, Any] | None
    rows: list[dict[str, Any]]
    problem: str = ""

    def covered(self, flag: str) -> tuple[int, int]:
        """How many rows with this flag have an interval that contains the truth, and their number.

        Without a flag, the intervals of values that nobody has, which begin at 0, would all count.
        """
        rows = [row for row in self.rows if row[flag]]
        return sum(row["low"] <= row["true"] <= row["high"] for row in rows), len(rows)

    @property
    def stderr(self) -> float:
        """The median standard error of the values, in reports."""
        return float(median(row["stderr"] for row in self.rows))


def ask_all(
    connection: Connection, metrics: Sequence[Metric], everyone: Sequence[Person], dates: str
) -> dict[str, MetricAnswer]:
    """Asks for every metric's answer over these dates."""
    answers = {}
    for metric in metrics:
        try:
            document = connection.estimates(metric.name, epochs=dates).document
        except HubbubError as error:
            answers[metric.name] = MetricAnswer(metric, None, [], str(error))
            continue
        truth = Counter(value_text(person[metric.name]) for person in everyone)
        rows = [
            {"true": truth[value["value"]], **{name: value[name] for name in _FIGURES}}
            for value in document["values"]
        ]
        answers[metric.name] = MetricAnswer(metric, document, rows)
    return answers


def show_answers(answers: Mapping[str, MetricAnswer]) -> None:
    """Shows questions that were asked in both ways side by side, and others in a line each."""
    for comparison in BOTH_WAYS:
        _show_both(comparison, answers[comparison.alone], answers[comparison.crowd])
    table(
        "How many 95% intervals contain the true count, of values that ...",
        ("metric", "mechanism", "epsilon", "values", "somebody has", "that stand out"),
        [
            (
                name,
                answer.metric.mechanism,
                at_most(answer.metric.report_loss, ".3f"),
                f"{len(answer.rows):,}",
                *("{:,} of {:,}".format(*answer.covered(flag)) for flag in ("true", "detected")),
            )
            for name, answer in answers.items()
        ],
        text_columns=2,
        spare=(0, 1, 0, 0, 0, 0),
    )
    for name, answer in answers.items():
        if answer.problem:
            say(f"{name}: {answer.problem}")
    if any(answer.rows for answer in answers.values()):
        crowd = answers[BOTH_WAYS[0].crowd].metric
        rests = (
            "Alone, a person trusts nobody. In a crowd, a person trusts the shuffler to release "
            "reports together and to hide who sent which; if it colluded with the aggregator, "
            f"{BOTH_WAYS[0].crowd} would reveal epsilon {at_most(crowd.report_loss, '.3g')} "
            "about that person."
        )
        say(f"{paragraph(rests)}\n")


def _show_both(
    comparison: BothWays, alone_answer: MetricAnswer, crowd_answer: MetricAnswer
) -> None:
    if alone_answer.document is None or crowd_answer.document is None:
        return
    by_value = {row["value"]: row for row in alone_answer.rows}
    rows = sorted(crowd_answer.rows, key=lambda row: -row["estimate"])[:_ROWS]
    table_rows = [
        (
            row["value"],
            f"{row['true']:,}",
            f"{by_value[row['value']]['estimate']:,.0f}",
            interval_text(by_value[row["value"]]),
            f"{row['estimate']:,.0f}",
            interval_text(row),
        )
        for row in rows
    ]
    table(
        f"{comparison.title}, asked of the same {alone_answer.document['reports']:,} people in "
        "both ways",
        ("value", "true", "alone", "alone, 95% sure", "in a crowd", "in a crowd, 95% sure"),
        table_rows,
        spare=(0, 0, 1, 0, 1, 0),
    )
    for way, answer in (("alone", alone_answer), ("in a crowd", crowd_answer)):
        epsilon = f"epsilon {at_most(answer.metric.report_loss, '.3g')}"
        if answer.metric.central and answer.document:
            central = answer.document["shuffled"]["epsilon"]
            epsilon = f"central epsilon {at_most(central, '.2g')}"
        detected = sum(row["detected"] for row in answer.rows)
        say(
            f"  {way + ':':11} {detected:3,} of {len(answer.rows)} values stand out, "
            f"standard error {answer.stderr:5,.3g} ({epsilon})"
        )
    if any("!" in row[3] + row[5] for row in table_rows):
        say("  ! does not contain the truth: expect at most one interval in twenty")
    say("")


def interval_text(row: Mapping[str, Any]) -> str:
    """The whole numbers in an interval, as text, marked if the true one is not among them."""
    low, high = ceil(row["low"]), floor(row["high"])
    return f"{'' if low <= row['true'] <= high else '! '}{low:,} to {high:,}"


def show_change(
    connection: Connection, comparison: BothWays, value: str, before: str, after: str
) -> None:
    """Shows the change of one value's share between two days, as each way estimates it."""
    say(f'"{value}", share of the people on {before} and on {after}:')
    for way, name in (("alone", comparison.alone), ("in a crowd", comparison.crowd)):
        try:
            changes = connection.compare(name, before, after)
        except HubbubError as error:
            say(f"  {way + ':':11} {error}")
            continue
        change = next(row for row in changes if row["value"] == value)
        verdict = "a change" if change["changed"] else "it may be chance"
        points, low, high = (100 * change[name] for name in ("difference", "low", "high"))
        say(f"  {way + ':':11} {points:+.1f} points, {low:+.1f} to {high:+.1f}: {verdict}")
