"""Values of several members: sets of listed values, and vectors, of which the mean is estimated."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Final

from hubbub.catalog.plain_python_value import as_python
from hubbub.catalog.values.value_kind import OTHER, Complain, ValueKind
from hubbub.errors import BadParameter, NotListed, ValueOutOfDomain
from hubbub.fields.field import Entry
from hubbub.fields.kinds import VALUES, Kind
from hubbub.fields.rules import is_whole
from hubbub.mechanisms import is_number
from hubbub.mechanisms.direction_pool import MAX_DIMENSIONS
from hubbub.mechanisms.portable_floats import length
from hubbub.mechanisms.probability import MIN_EPSILON

_WORDS: Final = f"a list of 2 to {MAX_DIMENSIONS} texts, none twice; or how many there are"


def _problem(value: Any) -> str:
    if is_whole(value):
        return "" if 2 <= value <= MAX_DIMENSIONS else f"must be {_WORDS}"  # noqa: PLR2004 one number is a mean
    if not (isinstance(value, list | tuple) and 2 <= len(value) <= MAX_DIMENSIONS):  # noqa: PLR2004 as above
        return f"must be {_WORDS}"
    return f"must be {_WORDS}" if True in value or False in value else VALUES.problem(value)


COORDINATES: Final = Entry(
    kind=Kind(
        words=lambda: _WORDS,
        problem=_problem,
        schema=lambda: {
            "anyOf": [
                {"type": "integer", "minimum": 2, "maximum": MAX_DIMENSIONS},
                {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1},
                    "uniqueItems": True,
                    "minItems": 2,
                    "maxItems": MAX_DIMENSIONS,
                },
            ]
        },
        read=lambda value: tuple(map(str, range(1, value + 1) if is_whole(value) else value)),
    ),
    meaning=(
        'Names of a vector\'s numbers, in order, for `kind = "vector"`; or their count, which '
        "names them 1, 2 and so on."
    ),
    example='["speed", "ease", "looks"]',
)

_CODES: Final = "vector.codes"
_NOT_OF_ONE: Final = (
    "values",
    "values_file",
    "domain",
    "parts",
    "edges",
    "outside",
    "default",
    "other",
    "release",
)


class ValueSet(ValueKind):
    """Any number of the listed values."""

    FAMILY: ClassVar[str | None] = "sets"
    ONE_TEXT: ClassVar[bool] = False
    SETS: ClassVar[str] = "sets"
    NAME_OF_VALUES: ClassVar[str] = "sets"
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        **ValueKind.NOT_ITS,
        **dict.fromkeys(
            ("domain", "parts", "edges", "outside"),
            "is not of a set; write its values, and leave this out",
        ),
    }
    PYTHON: ClassVar[str] = "Collection[{}]"
    TYPESCRIPT: ClassVar[str] = "readonly ({0})[] | ReadonlySet<{0}>"

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        return table

    def sole_choice(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**table, "mechanism": "privset"}

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> int:
        """Returns the bit set of a list, tuple or set, by place. Raises ValueOutOfDomain."""
        if not isinstance(value, list | tuple | AbstractSet):
            raise ValueOutOfDomain(
                "the value is not a list or set; pass one, empty if there is nothing"
            )
        code, other = 0, places[OTHER] if metric.other else None
        for member in value:
            python_value = as_python(member, places)
            text = str(python_value).lower() if isinstance(python_value, bool) else python_value
            place = places.get(text) if isinstance(text, str) else None
            if place is None and isinstance(python_value, str):
                place = other
            if place is None:
                raise NotListed(f"a member of the set is not one of its {len(places)} values")
            code |= 1 << place
        return code

    def code_name(self, values: Sequence[str], code: Any) -> str:
        return ", ".join(name for index, name in enumerate(values) if code >> index & 1) or "none"

    def meanings(self, values: Sequence[str], randomizer: Any) -> dict[str, Any]:
        return {"none": 0, **{f"only {name}": 1 << place for place, name in enumerate(values)}}

    def example(self, metric: Any, chance: Any) -> list[str]:
        return [value for value in metric.values if chance.random() < 2 / len(metric.values)]

    def reader(self, metric: Any) -> Callable[[Any], Any]:
        """Returns a reader of values separated by |. Raises BadParameter if a value contains |."""
        if bad_value := next((value for value in metric.values or () if "|" in value), None):
            raise BadParameter(
                f'metric "{metric.name}": its value "{bad_value[:60]}" contains |, which '
                "separates the values of a set in the file, so its sets cannot be read; "
                "rename it for the rehearsal"
            )
        return lambda text: [part for part in text.split("|") if part]


class Vector(ValueKind):
    """One number per coordinate; the coordinates are listed as values."""

    FAMILY: ClassVar[str | None] = "vector"
    ONE_TEXT: ClassVar[bool] = False
    TAKES_OTHER: ClassVar[bool] = False
    SETS: ClassVar[str] = "vectors"
    NAME_OF_VALUES: ClassVar[str] = "vectors"
    CROWD: ClassVar[str] = _CODES
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        **{name: why for name, why in ValueKind.NOT_ITS.items() if name != "coordinates"},
        **dict.fromkeys(
            _NOT_OF_ONE, "is not for a vector, which has only coordinates; leave it out"
        ),
    }
    BESIDE: ClassVar[str] = " and its coordinates"
    COLUMN: ClassVar[str] = "each coordinate"
    PYTHON: ClassVar[str] = "Sequence[float]"
    TYPESCRIPT: ClassVar[str] = "readonly number[] | Float32Array | Float64Array"

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        other_fields = {name: value for name, value in table.items() if name != "coordinates"}
        coordinates = table.get("coordinates")
        if coordinates is None:
            complain("coordinates", COORDINATES.missing("coordinates"))
        elif problem := COORDINATES.kind.problem(coordinates):
            complain("coordinates", problem)
        else:
            return {**other_fields, "values": [*COORDINATES.kind.read(coordinates)]}
        return {**other_fields, "values": ["1", "2"]}

    def sole_choice(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the table, with a pool that fits its numbers unless a promise decides epsilon."""
        if "central_epsilon" in table or "crowd" in table:
            return {**table, "mechanism": _CODES}
        from hubbub.mechanisms.vector_codes import pool_for  # noqa: PLC0415 of vectors alone

        epsilon: Any = table.get("epsilon")
        # Problems with these fields are complained of where they are read.
        wishes = {
            argument: table[name]
            for argument, name in (
                ("reports", "reports"),
                ("words", "words"),
                ("most", "max_cells"),
            )
            if is_whole(table.get(name)) and table[name] > 0 and "books" not in table
        }
        usual = epsilon if is_number(epsilon) else MIN_EPSILON
        pool = pool_for(usual, dimensions=len(table["values"]), **wishes)
        return {**pool, **table, "mechanism": _CODES}

    def check(self, metric: Any, domain: str) -> None:
        if "dimensions" in metric.parameters:
            raise BadParameter("dimensions of a vector follow from its coordinates")
        if metric.release:
            raise BadParameter("release: a vector cannot be released; leave it out")
        super().check(metric, domain)

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> tuple[float, ...]:
        """Returns the coordinates in order, cut to the largest length. Raises ValueOutOfDomain."""
        mechanism = metric.randomizer
        vector = value.tolist() if hasattr(value, "tolist") else value  # an array of numpy's
        if not isinstance(vector, Sequence) or isinstance(vector, str | bytes):
            raise ValueOutOfDomain(
                f"the value is not a list of numbers; give {mechanism.dimensions:,} of "
                "them, in the order of the coordinates"
            )
        if len(vector) != mechanism.dimensions:
            raise ValueOutOfDomain(
                f"{len(vector):,} numbers were passed, but the vector has {mechanism.dimensions:,}"
            )
        numbers = [as_python(number) for number in vector]
        for name, number in zip(metric.values, numbers, strict=True):
            if not is_number(number):
                raise ValueOutOfDomain(f'coordinate "{name}" is not a finite number')
        from hubbub.mechanisms.vector_codes import apart  # noqa: PLC0415 of vectors alone

        largest, scaled = apart(numbers)
        vector_length = length(scaled)
        shorter = min(largest * vector_length, mechanism.max_length) / max(vector_length, 1.0)
        return tuple(shorter * x for x in scaled)

    def code_name(self, values: Sequence[str], code: Any) -> str:
        return "vectors"

    def meanings(self, values: Sequence[str], randomizer: Any) -> dict[str, Any]:
        """Returns both ends of each axis, in the order of the mechanism's probes."""
        signs = [f"{name} {end}" for name in values for end in ("alone, up", "alone, down")]
        return dict(zip(signs, randomizer.probes(), strict=False))

    def example(self, metric: Any, chance: Any) -> list[float]:
        return [chance.gauss(0.0, 1.0) for _ in metric.values]

    def columns(self, metric: Any) -> Sequence[str]:
        return metric.values or ()

    def reader(self, metric: Any) -> Callable[[Any], Any]:
        return lambda texts: [float(texts[name]) for name in metric.values]
