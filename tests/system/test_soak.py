"""A short run of the soak: honest devices beside strangers. How long it takes is not asked."""

import pytest

from tests.system.soak.__main__ import run

pytestmark = pytest.mark.thorough

SECONDS = 8  # strangers are all there after some four


def test_honest_reports_are_counted_beside_open_connections_of_strangers() -> None:
    result = run(SECONDS, seed=20_261_122)
    assert result["wrong"] == [], result
    assert result["sent"] > 50, result
    assert result["strangers"]["flood: OK"] > 0, result
