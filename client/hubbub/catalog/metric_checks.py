"""Checks a metric's fields, alone and together, and whether a crowd can hide its randomizer."""

from typing import Any, Final

from hubbub.catalog.crowds.central_conflicts import central_conflicts
from hubbub.catalog.default_and_cover import cover_conflicts
from hubbub.catalog.discovery import check_discovery
from hubbub.catalog.epochs_and_periods import period_conflicts
from hubbub.catalog.limits_and_budgets import conflicts
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.models.model_metric import check_model
from hubbub.catalog.values.list_versions import STREAM, check_grown
from hubbub.catalog.values.part_values import check_ranges
from hubbub.catalog.values.value_kind_registry import check_family
from hubbub.errors import BadParameter
from hubbub.fields.field import check
from hubbub.fields.rules import NAME
from hubbub.mechanisms import REGISTRY, AnyMechanism
from hubbub.mechanisms.part_and_cell_names import cell_names
from hubbub.sealing.hpke import SEAL_BYTES, X25519, Kem

# A batch is sent as one message; the services refuse larger messages.
MAX_BATCH_BYTES: Final = 64 << 20
# Bytes that framing adds to a sealed report, rounded up.
_FRAME_BYTES: Final = 16


def check_fields(metric: Any) -> None:
    """Raises BadParameter if a field is invalid, by itself or with others."""
    check(metric)
    tier = metric.name[len(metric.name.partition("/")[0]) :] if metric.base_name else ""
    if not (NAME.fullmatch(metric.base_name) and STREAM.fullmatch(tier)):
        raise BadParameter(f"name must match {NAME.pattern}")
    if metric.mechanism == AUTO:
        raise BadParameter(f"mechanism must be one of {', '.join(REGISTRY)}")
    if metric.parameters.keys() & {"epsilon", "categories", "sizes", "beginnings"}:
        raise BadParameter("parameters may not contain epsilon or sizes: the other fields set them")
    _refuse_misfits(metric)
    check_grown(metric)
    if (experiment := metric.experiment) and (
        metric.breakdown.get(experiment.name) != experiment.rules
    ):
        raise BadParameter(
            f'experiment "{experiment.name}" already splits reports by its arms: leave breakdown '
            f"{experiment.name} out"
        )
    check_discovery(metric)
    problems = conflicts(metric.epsilon, metric.limits, metric.tiers) | central_conflicts(metric)
    names = ("period", "report_on", "epoch", "limits")
    problems |= cover_conflicts(metric)
    problems |= period_conflicts({name: getattr(metric, name) for name in names})
    if problems:
        raise BadParameter("; ".join(f"{name}: {problem}" for name, problem in problems.items()))


def _refuse_misfits(metric: Any) -> None:
    """Raises BadParameter for a field that does not apply to the metric's kind of values."""
    check_model(metric)
    mechanism, values = metric.mechanism, metric.values
    kind = REGISTRY[mechanism].VALUES
    if not metric.model:
        check_family(metric)
    listed = kind == "categories" or (kind == "vectors" and not metric.model)
    if listed != (values is not None):
        raise BadParameter(f"{mechanism} {'needs' if listed else 'takes no'} values")
    if REGISTRY[mechanism].FAMILY == "pairs" and metric.release:
        raise BadParameter("release: a metric of parts cannot be released; leave it out")
    if not isinstance(metric.candidates, tuple):
        raise BadParameter("candidates must be the strings of the file that the catalog names")
    if metric.candidates and kind != "strings":
        raise BadParameter(f"candidates: {mechanism} is not over strings; leave them out")
    metric.value_kind.check(metric, kind)
    if metric.beginnings and REGISTRY[mechanism].FAMILY != "tree":
        raise BadParameter(f"beginnings: {mechanism} is not a prefix tree; leave them out")
    check_ranges(mechanism, values, metric.ranges)
    if metric.unit and kind not in {"numbers", "vectors"} and not metric.edges:
        raise BadParameter(f"unit: {mechanism} is not for numbers; leave unit out")
    has_buckets = bool(metric.edges) or REGISTRY[mechanism].FAMILY == "ranges"
    if metric.percentiles and not has_buckets:
        raise BadParameter(
            "percentiles: only numbers with buckets have percentiles; give the metric buckets or "
            "edges, or leave percentiles out"
        )
    if metric.alert:
        paired = REGISTRY[mechanism].FAMILY == "pairs"
        cells = cell_names(values, metric.parameters.get("ways", 2)) if paired else values
        figures = metric.value_kind.figures(metric)
        metric.alert.check_fits(kind, cells, figures, parts=has_buckets)


def refuse_large_batch(min_batch: int, randomizer: AnyMechanism, kem: Kem) -> None:
    """Raises BadParameter if a batch of `min_batch` reports exceeds one message."""
    sealed_bytes = randomizer.layout.payload_bytes + SEAL_BYTES[kem]
    batch_bytes = min_batch * (sealed_bytes + _FRAME_BYTES)
    if not batch_bytes <= MAX_BATCH_BYTES:
        size = f"{batch_bytes / (1 << 20):.1f} MiB, above {MAX_BATCH_BYTES >> 20}"
        raise BadParameter(
            f"min_batch: {min_batch} reports are {size}; "
            "lower min_batch or choose a shorter payload"
            + (', or leave "kem" out' if kem != X25519 else "")
        )


def refuse_uneven_lies(mechanism: str, randomizer: AnyMechanism) -> None:
    """Raises BadParameter for a crowd with a mechanism for which no amplification is proven."""
    from hubbub.mechanisms.even_lies import lies_evenly  # noqa: PLC0415 of crowds alone

    if not lies_evenly(randomizer):
        raise BadParameter(
            f"crowd: the noise of {mechanism} is not spread evenly, so nothing is proven of it; "
            "write fewer parts, or a larger epsilon"
        )
