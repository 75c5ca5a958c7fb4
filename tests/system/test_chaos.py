"""A short run of the chaos: processes killed, frozen, cut off, full, and their clocks stepped."""

import pytest

from tests.system.chaos.__main__ import run
from tests.system.chaos.house import DUMMIES

pytestmark = pytest.mark.thorough

SECONDS = 8
TOKEN_SECONDS = 4


def test_no_failure_loses_a_report_or_counts_one_twice() -> None:
    result = run(SECONDS, seed=20_261_121, min_kills=SECONDS, min_reports=1000)
    assert result["wrong"] == [], result
    assert int(result["kills"]) >= SECONDS, result  # type: ignore[call-overload]
    assert int(result["sent"]) > 500, result  # type: ignore[call-overload]
    assert int(result["counted_in_crowds"]) > 200, result  # type: ignore[call-overload]
    assert int(result["dummies"]) >= 3 * DUMMIES, result  # type: ignore[call-overload]
    assert int(result["dummies_of_devices"]) > 20, result  # type: ignore[call-overload]


def test_a_token_is_accepted_with_one_report_after_any_failure() -> None:
    """A thief has every token as its device does; either may be first, and the other is refused."""
    kills = 2 * TOKEN_SECONDS
    result = run(TOKEN_SECONDS, seed=20_261_125, min_kills=kills, min_reports=200, tokens=True)
    assert result["wrong"] == [], result
    assert int(result["sent"]) >= 200, result  # type: ignore[call-overload]
    tried = int(result["stolen"]) + int(result["in_vain"])  # type: ignore[call-overload]
    assert tried > 20, result
