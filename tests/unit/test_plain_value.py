"""What values of other libraries are to a metric."""

from types import SimpleNamespace

from hubbub.catalog.plain_value import as_python


class OfNumpy:
    """One thing as numpy has it, which a device need not have: no number of Python's."""

    def __init__(self, value: float, kind: str, shape: tuple[int, ...] = ()) -> None:
        self.value, self.dtype, self.shape = value, SimpleNamespace(kind=kind), shape

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)


def test_one_number_of_numpys_is_pythons_own_and_nothing_else_is() -> None:
    for kind, own in (("f", 12.0), ("i", 12), ("u", 12), ("b", True)):
        number = as_python(OfNumpy(12, kind))
        assert (number, type(number)) == (own, type(own))
    for other in (OfNumpy(3, "M"), OfNumpy(3, "f", (1,)), b"3", None):
        assert as_python(other) is other
