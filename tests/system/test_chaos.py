"""A short run of the chaos: processes killed, frozen, cut off, full, and their clocks stepped."""

from tests.system.chaos.__main__ import run
from tests.system.chaos.house import DUMMIES

SECONDS = 20


def test_nothing_is_lost_and_nothing_counted_twice_whatever_fails() -> None:
    found = run(SECONDS, seed=20_261_121, min_kills=SECONDS, min_reports=1500)
    assert found["wrong"] == [], found
    assert int(found["kills"]) >= SECONDS, found  # type: ignore[call-overload]
    assert int(found["sent"]) > 500, found  # type: ignore[call-overload]
    assert int(found["counted_in_crowds"]) > 200, found  # type: ignore[call-overload]
    assert int(found["dummies"]) >= 3 * DUMMIES, found  # type: ignore[call-overload]
    assert int(found["dummies_of_devices"]) > 20, found  # type: ignore[call-overload]
