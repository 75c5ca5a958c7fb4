"""Reading one [models.NAME] table: the metric that its reports are, with all of its problems."""

from collections.abc import Mapping
from typing import Any, Final

from hubbub.catalog.fields.field import fields_of
from hubbub.catalog.fields.table_reader import Complain, read_fields
from hubbub.catalog.limits import Limits
from hubbub.catalog.metric import Metric
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.of_metric import codes_for
from hubbub.catalog.policy import Caps
from hubbub.errors import BadParameter
from hubbub.mechanisms.gradient_size import problem_with_classes
from hubbub.mechanisms.vector_codes import VectorCodes

AS_METRICS: Final = (
    *("description", "owner", "expires", "epsilon", "epoch", "min_batch"),
    *("sampling", "kem", "keep"),
)
"""What a model says as a metric does."""


def read_model(name: str, table: Mapping[str, Any], caps: Caps, complain: Complain) -> Any:
    """The metric of one model's table, or None once something was complained about."""
    complained = set()

    def wrong(field: str, problem: str) -> None:
        complained.add(field)
        complain(field, problem)

    shared = {one.name: one for one in fields_of(Metric) if one.name in AS_METRICS}
    own = [one.name for one in fields_of(Learning)]
    for field in sorted(table.keys() - {*shared, *own}):
        wrong(field, f"is not known of a model; it takes {', '.join([*shared, *own])}")
    found: dict[str, Any] = {}
    for field, says in shared.items():
        if says.required or field in table:
            if problem := says.problem(table.get(field)):
                wrong(field, problem)
            else:
                found[field] = says.entry.kind.read(table[field])
    told = read_fields(Learning, {"penalty": _penalty(table), **table}, wrong)
    if not complained and (
        problem := problem_with_classes(len(told.get("classes", ())), told["kind"])
    ):
        wrong("classes", problem)
    if complained:
        return None
    try:
        learning = Learning(**told)
        return Metric(
            name=name,
            caps=caps,
            mechanism=VectorCodes.NAME,
            parameters=codes_for(found["epsilon"], learning.dimensions),
            limits=Limits(1, found["epsilon"]),
            model=learning,
            **found,
        )
    except BadParameter as error:
        wrong("kind", str(error))
        return None


def _penalty(table: Mapping[str, Any]) -> float:
    """What ridge has where nothing is said."""
    return 0.01 if table.get("kind") == "ridge" else 0.0
