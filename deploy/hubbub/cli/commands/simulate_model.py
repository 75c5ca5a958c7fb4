"""`hubbub simulate` of a model, beside one without privacy; and the options of all rehearsals."""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from hubbub.analysis.models.definition import Model, coefficients, foretold, in_own_units
from hubbub.analysis.models.descent import linear, noise_of
from hubbub.analysis.models.model_quality import evaluate
from hubbub.cli.terminal.answer_tables import show_calibration, show_coefficients
from hubbub.cli.terminal.catalog_reading import LastBundle
from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.percentile_and_candidate_options import PercentileOptions
from hubbub.cli.terminal.progress import tracked
from hubbub.cli.terminal.query_options import confidence_option
from hubbub.errors import BadParameter
from hubbub.errors.message_words import at_most
from hubbub.fields.rules import Interval
from hubbub.programs.option_parsing import argument, option, options
from hubbub.simulation.model_and_people_files import People, Planned, read_people
from hubbub.simulation.model_rehearsal import Trained, codes_of, rehearse_model, without_privacy

RUNS: Final = 200
"""How often a metric is rehearsed by default."""
FEWER_RUNS: Final = "fewer --runs take less, and give a coarser summary"
"""The advice that is printed if all runs take long."""


@options
class SimulateOptions:
    metric: str = argument("name of a metric or of a model in the catalog")
    catalog: Path = option("the catalog (%(default)s)", default=Path("metrics.toml"))
    last: LastBundle
    values: Path = option(
        "CSV, plain or .gz, or - for standard input: one value per line, or value,count; the "
        "values of a set are separated by |. Other kinds need a header: each part, public field or "
        "coordinate; day, value, and person or count; each model feature and label",
        metavar="FILE",
    )
    test: Path | None = option(
        "for a model: CSV of people who do not train it, but evaluate it", metavar="FILE"
    )
    reports: int | None = option(
        "draw N people from a population like that of the file",
        metavar="N",
        within=Interval(1, 10**12),
    )
    epochs: int = option(
        "number of epochs in which the same people report (%(default)s)",
        default=1,
        within=Interval(1, 1000),
    )
    runs: int | None = option(
        f"number of repetitions ({RUNS}; a model 5 times)", within=Interval(1, 100_000)
    )
    seed: int | None = option(
        "seed of the random numbers; without it every call draws others", within=Interval(0)
    )
    candidates: Path | None = option("file of strings to look for, besides those of --values")
    confidence: float = confidence_option("the intervals")
    ranks: PercentileOptions
    json: bool = option("print every run in full as JSON")


_RUNS: Final = 5
_MIN_PEOPLE: Final = 100
_FIGURES: Final = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "r_squared": "R squared",
    "rms_error": "error (root of the mean square)",
    "miscalibration": "miscalibration",
}


def simulate_model(options: SimulateOptions, planned: Planned) -> None:
    """Rehearses a model, and shows the last run's coefficients and a summary of all runs."""
    started = time.monotonic()
    if options.epochs != 1 or options.candidates or options.ranks.percentiles:
        raise BadParameter(
            "--epochs, --candidates and --percentile are for metrics; a model has rounds"
        )
    model, people = read_people(options.values, planned)
    test = read_people(options.test, planned, "--test")[1] if options.test else people
    count = options.reports or len(people.labels)
    if count < _MIN_PEOPLE:
        raise BadParameter(f"{count} people are too few for a model: give {_MIN_PEOPLE} or more")
    if model.kind in {"logistic", "softmax"} and people.labels.min() == people.labels.max():
        look = "; check that positive is a text of the file"
        raise BadParameter(
            f'{options.values}: column "{planned.label}" is the same for everybody, so there is '
            f"nothing to predict{look if 'positive' in planned.table else ''}"
        )
    _refuse_small_crowd(planned, model, count)
    runs = options.runs or _RUNS
    rehearsal = rehearse_model(
        model,
        people,
        test,
        reports=options.reports,
        runs=runs,
        seed=options.seed,
        confidence=options.confidence,
    )
    trained = list(tracked(rehearsal, runs, "rehearsing", FEWER_RUNS))
    penalty, classes = model.penalty, len(model.classes)
    weights = without_privacy(model.kind, people.columns, people.labels, penalty, classes)
    scores = linear(model.kind, test.columns, weights)
    with_truth = evaluate(model.kind, foretold(model.kind, scores), test.labels)
    document = {
        **_question(model, options, trained[-1], people, test),
        "summary": {
            name: _summary(getattr(run.judged, name) for run in trained) for name in _FIGURES
        },
        "without_privacy": asdict(with_truth),
        "runs": [
            {
                **asdict(run.judged),
                "told_by_held_out": asdict(run.judgement) if run.judgement else None,
                "coefficients": _coefficients(model, run, weights, options.confidence),
            }
            for run in trained
        ],
        "seconds": time.monotonic() - started,
    }
    if options.json:
        say(json.dumps(document, ensure_ascii=False))
    else:
        _show(document)


def _refuse_small_crowd(planned: Planned, model: Model, people: int) -> None:
    """Raises BadParameter if the rounds of so many people do not reach the crowd."""
    if not planned.crowd:
        return
    judges = people * model.held_out
    round_people = (people - judges) * model.rounds_each / (model.rounds + 1)
    if round_people < planned.crowd or 0 < judges < planned.crowd:
        judging = f", and {judges:,.0f} people judge" if judges else ""
        raise BadParameter(
            f"of {people:,} people, {round_people:,.0f} are in a round{judging}; a crowd of "
            f"{planned.crowd:,} would never leave: lower crowd, gather more people, or "
            "have fewer rounds"
        )


def _question(
    model: Model, options: SimulateOptions, last_model: Trained, people: People, test: People
) -> dict[str, Any]:
    """The rehearsed question as JSON, with its noise."""
    codes, rounds = codes_of(model), len(last_model.learned.rounds) - 1
    count = options.reports or len(people.labels)
    return {
        "model": model.name,
        "kind": model.kind,
        "mechanism": codes.NAME,
        "epsilon": codes.privacy_loss(),
        "people": count,
        "tested": len(test.labels),
        "held_out": options.test is not None,
        "clipped": people.clipped + (test.clipped if options.test else 0),
        "columns": len(model.columns),
        "rounds": rounds,
        "rounds_each": model.rounds_each or 1,
        "noise": noise_of(count, rounds, codes.squared_error, model.rounds_each),
        "confidence": options.confidence,
        "seed": options.seed,
    }


def _summary(figures: Iterable[float | None]) -> dict[str, float] | None:
    """Mean, smallest and largest over all runs."""
    numbers = [figure for figure in figures if figure is not None]
    if not numbers:
        return None
    return {"mean": fmean(numbers), "low": min(numbers), "high": max(numbers)}


def _coefficients(
    model: Model, run: Trained, plain_weights: Any, confidence: float
) -> list[dict[str, Any]]:
    """Per feature, then the intercept, all for columns in their own units."""
    estimates = coefficients(model, run.learned.weights, run.learned.stderrs, confidence)
    truth = in_own_units(model, plain_weights).tolist()
    return [
        {**asdict(estimate), "without_privacy": true_value}
        for estimate, true_value in zip(estimates, truth, strict=True)
    ]


def _show(document: dict[str, Any]) -> None:
    """Shows the last run's coefficients, largest first, and the quality of all runs."""
    last = document["runs"][-1]
    show_coefficients(
        f"{document['model']}: {document['kind']}, {document['people']:,} people in "
        f"{document['rounds_each']} of {document['rounds']} rounds by {document['mechanism']}, "
        f"epsilon {at_most(document['epsilon'], '.3f')} a report; the last run",
        last["coefficients"],
        {
            f"{100 * document['confidence']:g}% of coins": "{low:,.4g} to {high:,.4g}",
            "without privacy": "{without_privacy:,.4g}",
        },
        by_class=document["kind"] == "softmax",
        option="--json",
    )
    table(
        "calibration of the last run: ten groups by the model's prediction",
        ("group", "people", "foretold", "true"),
        [
            (str(place), f"{row['people']:,}", f"{row['foretold']:.3f}", f"{row['true']:.3f}")
            for place, row in enumerate(last["calibration"], start=1)
        ],
    )
    tested = "people held out" if document["held_out"] else "the same people: --test has others"
    say(f"on {document['tested']:,} {tested}; {len(document['runs'])} runs, mean (low to high):")
    for name, meaning in _FIGURES.items():
        if row := document["summary"][name]:
            without_privacy = document["without_privacy"][name]
            say(
                f"  {meaning}: {row['mean']:.4f} ({row['low']:.4f} to {row['high']:.4f}), "
                f"without privacy {'none' if without_privacy is None else f'{without_privacy:.4f}'}"
            )
    say(
        f"noise of a round's mean direction, of length 1 at most: {document['noise']:.3f}; models "
        "are good below .2, and gain little below .05"
    )
    if judgement := last["told_by_held_out"]:
        _show_judged_quality(judgement, document["confidence"])
    if document["clipped"]:
        say(f"{document['clipped']:,} values were outside their range, and clipped to it")


def _show_judged_quality(judgement: dict[str, Any], confidence: float) -> None:
    """Shows what held-out devices would report about the last run's model."""
    level = f"{100 * confidence:g}%"
    show_calibration(
        f"from the randomized reports of {judgement['reports']:,} people held out, in the last run",
        level,
        [
            (row["lowest"], row["highest"], row["people"], *row["true"].values())
            for row in judgement["calibration"]
        ],
    )
    for name in ("auc", "accuracy"):
        if share := judgement[name]:
            say(
                f"{_FIGURES[name]} by their reports: {share['estimate']:.4f}, {level} interval "
                f"{share['low']:.4f} to {share['high']:.4f}"
            )
