"""Frozen dataclasses of devices behave as those of `dataclasses`."""

import copy
import inspect
from dataclasses import FrozenInstanceError, field, replace

import pytest

from hubbub.fields.frozen import frozen, set_derived


@frozen(kw_only=True)
class Shape:
    """Every form of a field."""

    name: str
    edges: list[int] = field(default_factory=list)
    unit: str = "m"
    area: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        set_derived(self, area=len(self.edges))


def test_a_frozen_object_is_built_compared_and_copied_as_of_a_dataclass() -> None:
    square = Shape(name="square", edges=[1, 2], unit="cm")
    assert repr(square) == "Shape(name='square', edges=[1, 2], unit='cm', area=2)"
    for same in (copy.copy(square), copy.deepcopy(square), replace(square)):
        assert same == square
        assert same.area == 2
    assert Shape(name="dot").edges is not Shape(name="dot").edges
    assert square != replace(square, unit="m")


def test_a_frozen_object_refuses_changes_and_wrong_arguments() -> None:
    dot = Shape(name="dot")
    with pytest.raises(FrozenInstanceError, match="cannot change field 'name'"):
        dot.name = "line"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot change field 'name'"):
        del dot.name
    with pytest.raises(TypeError, match="missing 1 required keyword"):
        Shape()  # type: ignore[call-arg]
    assert [*inspect.signature(Shape).parameters] == ["name", "edges", "unit"]
