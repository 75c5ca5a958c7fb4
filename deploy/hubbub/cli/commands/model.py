"""`hubbub model`: what a model has learned; and its state, signed for devices."""

import time
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

from hubbub.cli.terminal.answer_tables import say_notice, show_calibration, show_coefficients
from hubbub.cli.terminal.output import explain, listing, say
from hubbub.cli.terminal.query_options import (
    OutputOptions,
    ServiceOptions,
    confidence_option,
    read_metric_name,
)
from hubbub.errors import HubbubError, ServiceUnavailable
from hubbub.errors.message_words import at_most
from hubbub.fields.rules import Interval
from hubbub.installation.keys_and_bundles import publish_models
from hubbub.programs.atomic_write import read_output
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option
from hubbub.query_results.sentences import judged_sentences


@command(
    "model",
    description="Shows, for a model of the catalog, its coefficients with intervals, and the "
    "results of its rounds.",
)
def _model(
    *,
    model: str = argument("name of the model", read=read_metric_name),
    confidence: float = confidence_option("the intervals"),
    output: OutputOptions,
    service: ServiceOptions,
) -> None:
    with service.connection() as connection:
        answer = connection.model(model, confidence=confidence)
        if output.format in {"csv", "parquet"} and not answer:
            raise HubbubError(
                f'model "{model}" has no coefficients yet: they exist after two '
                "rounds; --format json shows its rounds"
            )
        output.write(answer, _show)


@command(
    "model publish", text="sign the state of all models, which devices need for the next round"
)
def _publish(
    *,
    out: Path = option(
        "file of the state, which the shuffler reads with --models",
        metavar="FILE",
        read=read_output,
    ),
    keys: Path = option("folder of the signing key (%(default)s)", default=Path("keys")),
    every: float | None = option(
        "repeat at this interval; without it publish once",
        metavar="SECONDS",
        within=Interval(0, inf, "()"),
    ),
    service: ServiceOptions,
) -> None:
    failing = ""
    while True:
        try:
            with service.connection() as connection:
                round_by_model = publish_models(connection.service, keys, out)
            failing = ""
            if round_by_model:
                rounds = (f"{name} after round {number}" for name, number in round_by_model.items())
                say(f"{out}: signed, {', '.join(rounds)}")
            elif every is None:
                say(f"{out}: nothing new to sign")
        except ServiceUnavailable as error:
            if every is None:
                raise
            if str(error) != failing:  # once, however long it takes
                say(str(error))
            failing = str(error)
        if every is None:
            return
        time.sleep(every)


def _show(document: Mapping[str, Any]) -> None:
    say_notice(document)
    rows = document["coefficients"]
    level = f"{100 * document['confidence']:g}%"
    if rows:
        show_coefficients(
            f"{document['model']}: {document['kind']}, {document['reports']:,} reports by "
            f"{document['mechanism']}, epsilon {at_most(document['epsilon'], '.3f')} each",
            rows,
            {f"{level} interval": "{low:,.4g} to {high:,.4g}", "standard error": "{stderr:,.4g}"},
            by_class=document["kind"] == "softmax",
            option="--format json",
        )
    listing(
        f"rounds of {document['model']}",
        document["steps"],
        {
            "round": "{number}",
            "epoch": "{date}",
            "state": "{state}",
            "reports": lambda step: f"{step['reports']:,}" if step["state"] == "finished" else "",
            "noise": lambda step: f"{step['noise']:.3f}" if step["noise"] else "",
            "moved": lambda step: f"{step['moved']:.3f}" if step["moved"] else "",
        },
        text_columns=3,
    )
    if not rows:
        explain("Coefficients exist after two rounds; the first one measures the columns.")
    if document.get("held_out"):
        _show_held_out(document["held_out"], level)
    explain(
        "An interval covers the randomization noise and the choice of who took part. It does not "
        "cover that coefficients are too small after few rounds. The noise is that of a round's "
        "mean direction, whose length is at most 1: models are good if it is below 0.2."
    )
    say(f"next state: {document['next']}" if document["next"] else "all rounds are over")


def _show_held_out(judgement: dict[str, Any], level: str) -> None:
    """Shows the quality of the finished model, or when it will be known."""
    share = f"{100 * judgement['share']:g}% of devices"
    if not judgement["calibration"]:
        phrases = {"running": "judge the model now", "finished": "judged it, too few for a figure"}
        when = phrases.get(judgement["state"], "judge the finished model")
        say(f"{share} do not train it and {when}: round of {judgement['date']}")
        return
    show_calibration(
        f"calibration, by {judgement['reports']:,} devices that did not train it",
        level,
        [
            tuple(row[key] for key in ("lowest", "highest", "people", "estimate", "low", "high"))
            for row in judgement["calibration"]
        ],
    )
    for sentence in judged_sentences(judgement, level):
        say(sentence)
