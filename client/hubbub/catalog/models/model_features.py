"""Features: an app's knowledge of a person as columns of a model, each in [0, 1]."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Self

from hubbub.catalog.plain_python_value import as_python
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.frozen import frozen
from hubbub.mechanisms import is_number

_PAIR: Final = 2
_MAX_NAMES: Final = 10
_WRITE: Final = "write its range [low, high], the ends of its bands, or its values as texts"


@frozen()
class Feature:
    """One feature, from two numbers (a range), more numbers (ends of bands), or texts (values).

    A range is one column, to whose ends other numbers are clipped. Bands and values have a column
    each, of which one is 1. A band includes its lower end; the first and the last band include
    everything below and above.
    """

    name: str
    says: tuple[float, ...] | tuple[str, ...]

    def __post_init__(self) -> None:
        values, subject = self.says, f'feature "{self.name}"'
        are_texts = all(isinstance(value, str) and value.strip() for value in values)
        if len(values) < _PAIR or not (are_texts or all(map(is_number, values))):
            raise BadParameter(f"{subject}: {_WRITE}")
        if len(set(values)) < len(values) or (
            not self.is_listed and list(values) != sorted(values)
        ):
            rule = "name each value once" if self.is_listed else "write numbers that ascend"
            raise BadParameter(f"{subject}: {rule}")
        if not self.is_listed and not is_number(float(values[-1]) - float(values[0])):
            raise BadParameter(f"{subject}: its ends are too far apart for floating point")

    @classmethod
    def load(cls, pair: Any) -> Self:
        """Reads a feature from a bundle. Raises ValueError or TypeError for another shape."""
        name, values = pair
        if not isinstance(name, str):
            raise TypeError("the name of a feature is not a text")
        return cls(name, tuple(values))

    @property
    def is_listed(self) -> bool:
        """Whether it has listed texts as values."""
        return isinstance(self.says[0], str)

    @property
    def columns(self) -> tuple[tuple[str, float, float], ...]:
        """The name of each column, and its range in its own unit."""
        if self.is_listed:
            return tuple((f"{self.name}={say}", 0.0, 1.0) for say in self.says)
        edges = [float(edge) for edge in self.says]
        if len(edges) == _PAIR:
            return ((self.name, edges[0], edges[1]),)
        return tuple((f"{self.name} in [{a:g}, {b:g})", 0.0, 1.0) for a, b in pairwise(edges))

    def coded(self, value: Any) -> tuple[list[float], bool]:
        """A value as columns in [0, 1], and whether it was clipped. Raises ValueOutOfDomain."""
        value = as_python(value)
        if self.is_listed:
            if not (isinstance(value, str) and value in self.says):
                listing = ", ".join(f'"{say}"' for say in self.says[:_MAX_NAMES])
                rest_count = len(self.says) - _MAX_NAMES
                raise ValueOutOfDomain(
                    f'feature "{self.name}": the value is not one of the {len(self.says)} listed '
                    "values: " + listing + (f" and {rest_count} more" if rest_count > 0 else "")
                )
            return [float(value == say) for say in self.says], False
        if not (isinstance(value, bool) or is_number(value)):
            raise ValueOutOfDomain(f'feature "{self.name}": the value is not a finite number')
        edges = [float(edge) for edge in self.says]
        clamped = min(max(float(value), edges[0]), edges[-1])
        clipped = clamped != value
        if len(edges) == _PAIR:
            return [(clamped - edges[0]) / (edges[1] - edges[0])], clipped
        band = max((index for index, edge in enumerate(edges[:-1]) if clamped >= edge), default=0)
        return [float(band == index) for index in range(len(edges) - 1)], clipped


def features_of(table: Mapping[str, Any]) -> tuple[Feature, ...]:
    """Reads features from a TOML table. Raises BadParameter if one is invalid."""
    features = []
    for name, values in table.items():
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise BadParameter(f'feature "{name}": {_WRITE}')
        features.append(Feature(name, tuple(values)))
    return tuple(features)
