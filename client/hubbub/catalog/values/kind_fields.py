"""Fields of a metric that only some kinds of values have: candidates, a unit, an alert's rule."""

from typing import Any

from hubbub.catalog.models.of_metric import check_model
from hubbub.catalog.values.beginnings import check_beginnings
from hubbub.catalog.values.part_values import check_ranges
from hubbub.catalog.values.sets import check_set
from hubbub.catalog.values.value_kinds import check_kind
from hubbub.catalog.values.vectors import check_vector
from hubbub.errors import BadParameter
from hubbub.mechanisms import REGISTRY
from hubbub.mechanisms.parts import cell_names


def refuse_misfits(metric: Any) -> None:
    """Raises BadParameter for a field that the metric's kind of values has no use for."""
    check_model(metric)
    mechanism, values = metric.mechanism, metric.values
    kind = REGISTRY[mechanism].VALUES
    check_vector(metric)
    listed = kind == "categories" or (kind == "vectors" and not metric.model)
    if listed != (values is not None):
        raise BadParameter(f"{mechanism} {'needs' if listed else 'takes no'} values")
    if REGISTRY[mechanism].FAMILY == "pairs" and metric.release:
        raise BadParameter("a metric of parts cannot be released; leave release out")
    if not isinstance(metric.candidates, tuple):
        raise BadParameter("candidates must be the strings of their file")
    if metric.candidates and kind != "strings":
        raise BadParameter(f"{mechanism} is not over strings; leave candidates out")
    check_kind(metric, kind)
    check_set(metric.kind, mechanism)
    check_beginnings(metric)
    check_ranges(mechanism, values, metric.ranges)
    if metric.unit and kind not in {"numbers", "vectors"} and not metric.edges:
        raise BadParameter(f"{mechanism} is not over numbers; leave unit out")
    if metric.alert:
        paired = REGISTRY[mechanism].FAMILY == "pairs"
        cells = cell_names(values, metric.parameters.get("ways", 2)) if paired else values
        metric.alert.check_fits(kind, cells)
