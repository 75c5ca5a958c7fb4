"""From an answer to its gRPC message: the same names, the same fields, the same numbers."""

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from google.protobuf.message import Message

Kind = TypeVar("Kind", bound=Message)


def message(kind: type[Kind], answer: Any) -> Kind:
    """The message of this kind with the answer's fields; what is None is not set."""
    made = kind()
    _fill(made, answer)
    return made


def _fill(made: Message, answer: Any) -> None:
    for field in fields(answer):
        given = getattr(answer, field.name)
        if given is None:
            continue
        if is_dataclass(given):
            one = getattr(made, field.name)
            one.SetInParent()
            _fill(one, given)
        elif isinstance(given, list | tuple):
            many = getattr(made, field.name)
            for one in given:
                if is_dataclass(one):
                    _fill(many.add(), one)
                else:
                    many.append(one)
        else:
            setattr(made, field.name, given)
