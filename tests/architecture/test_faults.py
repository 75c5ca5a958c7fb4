"""The list of faults is true of the product as it is; `make faults` tries them."""

import ast

import pytest

from tests.faults import Fault, faults
from tests.support.clone import ROOT


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.what)
def test_a_fault_changes_one_place_of_its_file_and_leaves_it_readable(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text()
    assert text.count(fault.before) == 1, "tests/faults.toml: write the text as it is now"
    changed = text.replace(fault.before, fault.after)
    assert changed != text
    if fault.file.endswith(".py"):
        ast.parse(changed)
    assert all((ROOT / test).exists() for test in fault.tests)
