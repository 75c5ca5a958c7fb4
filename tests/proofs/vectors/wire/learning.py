"""A device that models learn from: the catalog, what it tells in which rounds, and the states."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles.model_state import ModelState
from hubbub.catalog import Crowd, Metric
from hubbub.catalog.limits_and_budgets import Limits
from hubbub.catalog.models.model_metric import bins_for
from hubbub.signing.sign_bundle import sign_models

DAY = 86_400
# So many of each kind that the known device is in all kinds of rounds.
CATALOG = """
""" + "".join(
    f"""
[models.{kind}{number}]
description = "{kind}, {number}"
owner = "nobody"
expires = 2099-12-31
epoch = "{epoch}"
min_batch = 100
epsilon = {epsilon}
kind = "{kind}"
begins = {begins}
rounds = 3
held_out = 0.3
{more}

[models.{kind}{number}.features]
hours = [0, 40]
plan = ["free", "paid", "日本"]
age = [0, 18, 30, 65]
"""
    for kind, epoch, epsilon, begins, more in (
        ("logistic", "day", 4.0, "2024-10-05", 'positive = "left"'),
        ("softmax", "day", 6.0, "2024-10-05", 'classes = ["none", "month", "year"]'),
        ("linear", "day", 1.5, "2024-10-05", "range = [-10, 90]"),
        ("ridge", "hour", 2.0, "2024-10-06T03:00:00Z", "range = [0, 7]\npenalty = 0.01"),
    )
    for number in range(6)
)
IN_CROWDS = ("logistic0", "softmax0", "linear0")


def in_crowds(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metrics, of which some are in crowds: a device is in two of their rounds."""
    fields = dict(metrics)
    for name in IN_CROWDS:
        metric = fields[name]
        assert metric.model
        fields[name] = replace(
            metric,
            crowd=Crowd(epsilon=1.0, reports=1000),
            min_batch=1000,
            model=replace(metric.model, rounds_each=2),
            limits=Limits(1, 2 * metric.epsilon, 1.0),
        )
    return fields


def taught(own: Ed25519PrivateKey, stranger: Ed25519PrivateKey) -> list[tuple[str, Any]]:
    """What a device tells models in their rounds, by which states; and what none takes.

    own: signs what is taken, and `stranger` what is not.
    """
    kinds: dict[str, tuple[Any, ...]] = {
        "logistic": ("left", "stayed", 1, False),
        "softmax": ("none", "month", "year"),
        "linear": (17.5, -20, 90),
        "ridge": (0, 3.3, 8),
    }
    people = (
        {"hours": 12.5, "plan": "paid", "age": 17},
        [45, "日本", 30],
        {"age": 64.999, "plan": "free", "hours": True},
    )
    wrong: list[tuple[Any, Any]] = [
        ({"hours": 1, "plan": "paid"}, 1),
        ({**people[0], "x": 1}, 1),
        ([1, "paid"], 1),
        (["1", "paid", 2], 1),
        ([1, "Paid", 2], 1),
        ([1, "paid", None], 1),
        ("paid", 1),
        (people[0], "LEFT "),
        (people[0], 2),
        (people[0], None),
    ]
    steps: list[tuple[str, Any]] = [("learn", ["logistic1", *arguments]) for arguments in wrong]
    steps += [("learn", ["softmax1", people[0], "Month"]), ("learn", ["ridge1", people[0], "1"])]
    steps += [("learn", ["none", people[0], 1]), ("report", ["logistic1", 1]), ("flush", None)]
    moments = [(day * DAY + 60, round_) for day, round_ in ((1, 0), (2, None), (3, 1), (5, 2))]
    moments += [(7 * DAY + 60, 3), (9 * DAY + 60, 4), (11 * DAY + 60, None)]
    names = [f"{kind}{number}" for kind in ("logistic", "softmax", "linear") for number in range(6)]
    at = 0
    for moment, round_ in moments:
        steps.append(("clock", moment))
        for name in names:
            at += 1
            label = kinds[name[:-1]][at % len(kinds[name[:-1]])]
            steps.append(("learn", [name, people[at % len(people)], label]))
        steps.append(("flush", None))
        if round_:
            # One of another operator's and one of another model's size, which are not taken.
            steps += [("models", _states(stranger, names, round_ - 1)), ("flush", None)]
            steps += [("models", _states(own, names, round_ - 1, more=1)), ("flush", None)]
            steps += [("models", _states(own, names, round_ - 1)), ("flush", None)]
            steps += [("learn", [name, people[0], kinds[name[:-1]][0]]) for name in names[::3]]
            steps += [("models", _states(own, names, max(round_ - 2, 0))), ("flush", None)]
    hourly = [f"ridge{number}" for number in range(6)]
    for hour, round_ in ((3, 0), (5, 1), (7, 2), (9, 3), (11, 4)):
        steps.append(("clock", 2 * DAY + 3600 * hour + 5))
        if round_:
            steps.append(("models", _states(own, hourly, round_ - 1)))
        steps += [("learn", [name, people[hour % 3], kinds["ridge"][hour % 3]]) for name in hourly]
        steps.append(("flush", None))
    return steps


def _states(by: Ed25519PrivateKey, names: Sequence[str], number: int, *, more: int = 0) -> str:
    """Of so many models: what they have learned by a round, of so many columns too many."""
    columns = 1 + 3 + 3 + more
    states = {}
    for place, name in enumerate(names):
        rows = 2 if name.startswith("softmax") else 1
        weights = [
            ((7 * at + 3 * place + number) % 11 - 5) / (3 + number)
            for at in range(rows * (columns + 1))
        ]
        centre = [((at + place) % 5) / 7 for at in range(columns)]
        bins = bins_for({"logistic": 4.0, "softmax": 6.0, "linear": 1.5}.get(name[:-1], 2.0))
        edges = [(at - 2) / bins for at in range(bins - 1)] if number == 3 else []
        states[name] = ModelState(number, tuple(centre), tuple(weights), tuple(edges))
    return sign_models(states, by).decode()
