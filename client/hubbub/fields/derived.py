"""Derived fields of frozen dataclasses."""


def set_derived(thing: object, **values: object) -> None:
    """Sets fields that follow from the others, in an object's `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)
