"""Frozen dataclasses with shared methods, for everything that a device loads.

`dataclass` compiles six functions for each class, which would be a third of what an app's start
spends on hubbub. Here only `__init__` is compiled, and only for a class that is used.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False) -> Callable[[type[Class]], type[Class]]:
    """A frozen dataclass with slots, which compares, hashes and shows itself as dataclasses do.

    `__post_init__` sets the fields with `init=False`, which have no default.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        for name, method in SHARED_METHODS.items():
            if vars(cls).get(name) is None:
                setattr(cls, name, method)
        plain = dataclass(init=False, slots=True, kw_only=kw_only, eq=False, repr=False)
        frozen_class: Any = plain(cls)
        frozen_class.__init__ = _Initializer(frozen_class)
        parts = fields(frozen_class)
        frozen_class.compared_fields = attrgetter(*(part.name for part in parts if part.compare))
        frozen_class.shown_fields = tuple(part.name for part in parts if part.repr)
        return frozen_class  # type: ignore[no-any-return]  # of the class's own type

    return decorate


def set_derived(instance: object, **values: object) -> None:
    """Sets fields that follow from the others, in an object's `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


class _Initializer:
    """Stands for a class's `__init__` until the first access, which compiles it."""

    def __init__(self, owner: type) -> None:
        self._owner: Any = owner

    def __get__(self, instance: object, owner: type) -> Any:
        names: dict[str, Any] = {"set_field": object.__setattr__}
        by_place, by_name, statements = ["self"], ["*"], ["pass"]
        for part in fields(self._owner):
            if part.init:
                name, default = part.name, f"default_{part.name}"
                is_made = part.default_factory is not MISSING
                names[default] = part.default_factory if is_made else part.default
                argument = name if names[default] is MISSING else f"{name}={default}"
                (by_name if part.kw_only else by_place).append(argument)
                value = f"{default}() if {name} is {default} else {name}" if is_made else name
                statements.append(f"set_field(self, {name!r}, {value})")
        if hasattr(self._owner, "__post_init__"):
            statements.append("self.__post_init__()")
        arguments = ", ".join(by_place + (by_name if len(by_name) > 1 else []))
        exec(f"def __init__({arguments}):\n " + "\n ".join(statements), names)  # noqa: S102 our own fields
        initializer = names["__init__"]
        initializer.__qualname__ = f"{self._owner.__qualname__}.__init__"
        self._owner.__init__ = initializer
        return initializer.__get__(instance, owner)


def _refuse_assignment(_self: object, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _restore(self: object, state: tuple[None, dict[str, Any]]) -> None:
    """Sets the fields of a copy, or of an object that was pickled."""
    set_derived(self, **state[1])


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


SHARED_METHODS: Final = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _text,
    "__setattr__": _refuse_assignment,
    "__delattr__": _refuse_deletion,
    "__setstate__": _restore,
}
"""In place of those that `dataclass` would generate for each class."""
