"""What values of other libraries are to a metric."""

from decimal import (
    ROUND_UP,
    Context,
    Decimal,
    FloatOperation,
    Inexact,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction
from types import SimpleNamespace

import pytest

from hubbub.catalog.plain_python_value import as_python


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


def test_only_single_numpy_numbers_become_python_numbers() -> None:
    for kind, number_of_python in (("f", 12.0), ("i", 12), ("u", 12), ("b", True)):
        number = as_python(OfNumpy(12, kind))
        assert (number, type(number)) == (number_of_python, type(number_of_python))
    for other in (OfNumpy(3, "M"), OfNumpy(3, "f", (1,)), b"3", None):
        assert as_python(other) is other


@pytest.mark.parametrize(
    "context",
    [
        Context(prec=1, rounding=ROUND_UP),
        Context(prec=3, traps=[Inexact]),
        Context(traps=[FloatOperation]),
        Context(prec=1, Emax=1, Emin=-1, traps=[Overflow, InvalidOperation]),
    ],
    ids=["rounding", "inexact", "floats", "narrow"],
)
def test_a_number_reads_the_same_in_every_decimal_context(context: Context) -> None:
    with localcontext(context):
        assert as_python(Decimal("3.14159")) == 3.14159
        for whole in (Decimal(3), Decimal("3.00"), Fraction(3)):
            assert (as_python(whole), type(as_python(whole))) == (3, int)
        for other in (Decimal("NaN"), Decimal("sNaN"), Decimal("1e400"), Fraction(10**400)):
            assert as_python(other) is other
