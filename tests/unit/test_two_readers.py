"""Python and TypeScript read one signed text alike: what each takes, and promises by it."""

import random

import pytest

from tests.fuzz.readers import readers
from tests.support.node import needs_node
from tests.support.typescript_fields import PATH, fields_file

SOME = 200
MANY = 8000


def _hold_together(count: int, seed: int) -> None:
    """Both take every kind of document, and take the same of `count` that are made of these."""
    target = readers()["readers"]
    chance = random.Random(seed)
    for data in target.examples:
        target.run(data)
    for _ in range(count):
        target.run(target.mutate(chance, target.examples)[: target.longest])


@needs_node
def test_both_sdks_take_and_promise_the_same_by_some_signed_texts() -> None:
    _hold_together(SOME, seed=1)


@needs_node
@pytest.mark.thorough
def test_both_sdks_take_and_promise_the_same_by_many_signed_texts() -> None:
    _hold_together(MANY, seed=2)


def test_the_ranges_that_typescript_checks_are_those_of_the_catalog() -> None:
    assert "".join(PATH.read_text().split()) == "".join(fields_file().split())
