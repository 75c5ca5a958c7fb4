"""Vectors: how a table says that their mean is asked for, and what a device reports of one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog.plain_value import as_python
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.field import Entry
from hubbub.fields.kinds import Kind
from hubbub.fields.kinds import values as values_kind
from hubbub.fields.rules import is_whole
from hubbub.mechanisms import REGISTRY, is_number
from hubbub.mechanisms.alike import length
from hubbub.mechanisms.directions import MAX_DIMENSIONS

if TYPE_CHECKING:
    from hubbub.mechanisms.vector_codes import VectorCodes

VECTOR: Final = "vector"
"""The kind of a metric that asks for the mean of a vector."""


def _coordinates() -> Kind:
    """Names of coordinates, or how many there are."""
    words = f"a list of 2 to {MAX_DIMENSIONS} texts, none twice; or how many there are"
    listed = values_kind()

    def problem(value: Any) -> str:
        if is_whole(value):
            return "" if 2 <= value <= MAX_DIMENSIONS else f"must be {words}"  # noqa: PLR2004 one number is a mean
        if not (isinstance(value, list | tuple) and 2 <= len(value) <= MAX_DIMENSIONS):  # noqa: PLR2004 as above
            return f"must be {words}"
        return f"must be {words}" if True in value or False in value else listed.problem(value)

    texts = {"type": "string", "minLength": 1}
    return Kind(
        words=lambda: words,
        problem=problem,
        schema=lambda: {
            "anyOf": [
                {"type": "integer", "minimum": 2, "maximum": MAX_DIMENSIONS},
                {
                    "type": "array",
                    "items": texts,
                    "uniqueItems": True,
                    "minItems": 2,
                    "maxItems": MAX_DIMENSIONS,
                },
            ]
        },
        read=lambda value: tuple(map(str, range(1, value + 1) if is_whole(value) else value)),
    )


COORDINATES: Final = Entry(
    kind=_coordinates(),
    meaning='What the numbers of a vector are called, in their order, for `kind = "vector"`; or '
    "how "
    "many there are, which are then called 1, 2 and so on.",
    example='["speed", "ease", "looks"]',
)


def check_vector(metric: Any) -> None:
    """Raises BadParameter where kind, mechanism and fields say different things of vectors."""
    if metric.model:
        return
    mechanism = metric.mechanism
    of_vectors = REGISTRY[mechanism].FAMILY == "vector"
    if metric.kind == VECTOR and not of_vectors:
        raise BadParameter(
            f'kind: {mechanism} takes one value, and not a vector; write mechanism = "auto"'
        )
    if not of_vectors:
        return
    if metric.kind != VECTOR:
        raise BadParameter(f'{mechanism} is of vectors; write kind = "vector" and its coordinates')
    if "dimensions" in metric.parameters:
        raise BadParameter("dimensions of a vector follow from its coordinates")
    if metric.release:
        raise BadParameter("release: a vector cannot be released; leave it out")


def vector_code(
    mechanism: "VectorCodes", coordinates: Sequence[str], vector: Any
) -> tuple[float, ...]:
    """The mechanism's value for a sequence of numbers: what is too long is made shorter.

    coordinates: what the numbers are called, in their order.

    Raises:
        ValueOutOfDomain: another number of them, or one that is no finite number. The message never
            shows a value.
    """
    if hasattr(vector, "tolist"):  # an array of numpy's, or of who keeps to its types
        vector = vector.tolist()
    if not isinstance(vector, Sequence) or isinstance(vector, str | bytes):
        raise ValueOutOfDomain(
            f"the value is no list of numbers; give {mechanism.dimensions:,} of them, in the order "
            "of the coordinates"
        )
    if len(vector) != mechanism.dimensions:
        raise ValueOutOfDomain(
            f"{len(vector):,} numbers are given, and the vector has {mechanism.dimensions:,}"
        )
    numbers = [as_python(number) for number in vector]
    for name, number in zip(coordinates, numbers, strict=True):
        if not is_number(number):
            raise ValueOutOfDomain(f'coordinate "{name}" is no finite number')
    from hubbub.mechanisms.vector_codes import apart  # noqa: PLC0415 of vectors alone

    largest, scaled = apart(numbers)
    long = length(scaled)
    shorter = min(largest * long, mechanism.max_length) / max(long, 1.0)
    return tuple(shorter * x for x in scaled)
