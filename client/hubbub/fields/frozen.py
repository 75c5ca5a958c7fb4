"""Frozen dataclasses with shared methods, for everything that a device loads.

`dataclass` compiles six functions for each class, which would be a third of what an app's start
spends on hubbub. Here only `__init__` is compiled, and only for a class that is used.
"""

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from itertools import repeat
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False) -> Callable[[type[Class]], type[Class]]:
    """A frozen dataclass with slots, which compares, hashes and shows itself as dataclasses do.

    `__post_init__` sets the fields with `init=False`, which have no default.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        for name, method in vars(_SharedMethods).items():
            if callable(method) and vars(cls).get(name) is None:
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
        arguments, statements = ["self"], []
        for part in sorted(fields(self._owner), key=attrgetter("kw_only")):
            if not part.init:
                continue
            if part.kw_only and "*" not in arguments:
                arguments.append("*")
            name, default = part.name, f"default_{part.name}"
            is_made = part.default_factory is not MISSING
            names[default] = part.default_factory if is_made else part.default
            arguments.append(name if names[default] is MISSING else f"{name}={default}")
            value = f"{default}() if {name} is {default} else {name}" if is_made else name
            statements.append(f"set_field(self, {name!r}, {value})")
        is_checked = hasattr(self._owner, "__post_init__")
        statements.append("self.__post_init__()" if is_checked else "pass")
        source = f"def __init__({', '.join(arguments)}):\n " + "\n ".join(statements)
        exec(source, names)  # noqa: S102 of our own fields' names
        self._owner.__init__ = initializer = names["__init__"]
        initializer.__qualname__ = f"{self._owner.__qualname__}.__init__"
        return initializer.__get__(instance, owner)


class _SharedMethods:
    """In place of those that `dataclass` would generate for each class."""

    def __eq__(self: Any, other: object) -> Any:
        compared, is_alike = self.compared_fields, other.__class__ is self.__class__
        return compared(self) == compared(other) if is_alike else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(self.compared_fields(self))

    def __repr__(self: Any) -> str:
        values = map(getattr, repeat(self), self.shown_fields)
        texts = ", ".join(map("{}={!r}".format, self.shown_fields, values))
        return f"{type(self).__qualname__}({texts})"

    def __setattr__(self, name: str, *_value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot change field {name!r}")

    __delattr__ = __setattr__

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        set_derived(self, **state[1])  # of a copy
