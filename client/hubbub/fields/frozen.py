"""Frozen dataclasses with shared methods, for everything that a device loads.

`dataclass` compiles six functions for each class: a fifth of what an app's start spends on hubbub.
Here it compiles three; comparison, hash and text are the same functions for all classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False) -> Callable[[type[Class]], type[Class]]:
    """A frozen dataclass with slots, which compares, hashes and shows itself as dataclasses do."""

    def decorate(cls: type[Class]) -> type[Class]:
        for name, method in SHARED_METHODS.items():
            if vars(cls).get(name) is None:
                setattr(cls, name, method)
        plain = dataclass(frozen=True, slots=True, kw_only=kw_only, eq=False, repr=False)
        frozen_class: Any = plain(cls)
        parts = fields(frozen_class)
        frozen_class.compared_fields = attrgetter(*(part.name for part in parts if part.compare))
        frozen_class.shown_fields = tuple(part.name for part in parts if part.repr)
        return frozen_class  # type: ignore[no-any-return]  # of the class's own type

    return decorate


def set_derived(instance: object, **values: object) -> None:
    """Sets fields that follow from the others, in an object's `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.compared_fields(self) == self.compared_fields(other)


def _hash(self: Any) -> int:
    return hash(self.compared_fields(self))


def _text(self: Any) -> str:
    values = map(getattr, repeat(self), self.shown_fields)
    texts = ", ".join(map("{}={!r}".format, self.shown_fields, values))
    return f"{type(self).__qualname__}({texts})"


SHARED_METHODS: Final = {"__eq__": _equal, "__hash__": _hash, "__repr__": _text}
"""In place of those that `dataclass` would generate for each class."""
