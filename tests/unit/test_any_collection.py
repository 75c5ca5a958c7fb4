"""Whatever was counted, a decode answers with numbers or refuses with a reason."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.analysis.strings.rappor_decoding import decode_counts
from hubbub.analysis.strings.rappor_equations import Collection
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms.probability import Probability
from hubbub.mechanisms.two_step_response import channel


@pytest.mark.slow
@given(
    st.integers(1, 11),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 30),
    st.sampled_from([(0.0, 0.0, 1.0), (0.25, 0.0, 0.5), (0.5, 0.4, 0.75), (0.9, 0.1, 1.0)]),
    st.sampled_from(["any", "none", "all"]),
    st.integers(0, 10**6),
)
def test_a_decode_gives_finite_numbers_or_refuses(  # noqa: PLR0917
    bits: int,
    hashes: int,
    cohorts: int,
    candidates: int,
    chances: tuple[float, float, float],
    ones: str,
    seed: int,
) -> None:
    chance = np.random.default_rng(seed)
    reports = chance.choice([0, 1, 5, 1000, 10**6], size=cohorts)
    counts = chance.integers(0, reports[:, None] + 1, size=(cohorts, bits))
    if ones != "any":
        counts = np.repeat(reports[:, None] * (ones == "all"), bits, axis=1)
    cells = np.sort(chance.integers(bits, size=(candidates, cohorts, hashes)), axis=2)
    cells += bits * np.arange(cohorts)[None, :, None]
    again = np.zeros(cells.shape, dtype=np.bool_)
    again[:, :, 1:] = cells[:, :, 1:] == cells[:, :, :-1]
    cells[again] = cohorts * bits
    f, p, q = (Probability.at_most(x).exact for x in chances)
    collection = Collection(np.column_stack([reports, counts]), hashes, channel(f, p, q))
    try:
        answer = decode_counts(collection, cells.reshape(candidates, -1).astype(np.int32))
    except BatchTooSmall:
        assert np.count_nonzero(reports) * bits < 8
        return
    numbers = (
        answer.estimates,
        answer.stderrs,
        answer.p_values,
        answer.low,
        answer.high,
        answer.fitted,
    )
    for column in numbers:
        assert np.isfinite(column).all()
    for statistic in (answer.misfit, answer.others):
        assert statistic is None or np.isfinite(statistic).all()
    assert (answer.low <= answer.high).all()
    assert (answer.fitted >= 0).all()
    assert (answer.stderrs > 0).all()
