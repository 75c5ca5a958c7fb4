"""Where a figure reaches its limit, found with few calls."""

from math import inf, log

import pytest

from hubbub.analysis.uncertainty.limit_search import crossing


@pytest.mark.parametrize(
    ("figure", "most"),
    [
        (lambda x: 3.2 - x, 10),
        (lambda x: log(7 / x) if x > 1 else inf, 16),
        (lambda x: x < 9.3, 40),
    ],
)
def test_a_limit_is_found_from_both_sides_with_few_calls(figure: object, most: int) -> None:
    """Halving took 24 calls of the first two."""
    assert callable(figure)
    places = list[float]()

    def excess(place: float) -> float:
        places.append(place)
        return float(figure(place) or -1)

    inside, outside = crossing(excess, 15.0, 0.0, 1e-6)
    assert 0 < inside - outside <= 1e-6
    assert excess(inside) <= 0 < excess(outside)
    assert len(places) <= most
