"""Strings through Bloom filters: decoded by least squares over all cohorts."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from hubbub.analysis.answer import Answer, Twins
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import BitSum, Expected
from hubbub.analysis.families.draw_totals import (
    QUICK,
    Counts,
    People,
    bit_counts,
    chain_steps,
    check_size,
    cohort_cells,
    cohort_holders,
    lasting_bits,
)
from hubbub.analysis.families.string_family import Strings, cohort_deviations
from hubbub.analysis.families.tiers_and_rows import Columns, Tier
from hubbub.analysis.strings.rappor_decoding import decode
from hubbub.analysis.strings.rappor_equations import Places, bloom_places
from hubbub.analysis.uncertainty.intervals import FALSE_DISCOVERY_RATE
from hubbub.analysis.value_estimates import ValueEstimates, with_interval
from hubbub.mechanisms import Totals
from hubbub.mechanisms.pure_protocols import report_variances
from hubbub.mechanisms.rappor import Rappor

# Number of sampled strings if there are more candidates than a joint decode supports.
_DECODED: Final = 256


class Bloom(Strings):
    """RAPPOR: strings in Bloom filters, decoded by regression."""

    def figures(
        self, mechanism: Rappor, totals: Totals, candidates: Sequence[str]
    ) -> ValueEstimates:
        """Estimates of a decode, whose standard errors come from its residuals."""
        decoding = decode(mechanism, totals, candidates)
        return ValueEstimates.flat(decoding.estimates, decoding.stderrs)

    def repeated(
        self, mechanism: Rappor, figures: ValueEstimates, reports: int, repeats: int
    ) -> ValueEstimates:
        """The figures unchanged: a decode's residuals already include repeated lies."""
        return figures

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        """A row per candidate, and the number of other reports; RAPPOR always has one tier."""
        mechanism: Any
        [(mechanism, totals)] = tiers
        reports = totals.reports
        decoding = decode(
            mechanism, totals, names, FALSE_DISCOVERY_RATE, confidence, repeats=repeats
        )
        judged = Columns(
            estimates=decoding.estimates,
            stderrs=decoding.stderrs,
            low=decoding.low,
            high=decoding.high,
            detected=decoding.detected,
            reports=reports,
        )
        return Answer(
            kind="values",
            reports=reports,
            confidence=confidence,
            values=judged.rows(names, decoding.fitted),
            others=decoding.others and with_interval(*decoding.others, confidence, (0.0, reports)),
            fit_p_value=decoding.misfit and decoding.misfit[1],
            repeats=repeats,
            twins=tuple(Twins(tuple(names[i] for i in group)) for group in decoding.twins),
        )

    def sums(self, mechanism: Rappor, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        yield from cohort_deviations(
            mechanism.layout, cells, mechanism.chain.channel, mechanism.hashes
        )

    def weights(self, mechanism: Rappor, targets: Sequence[str]) -> tuple[Floats, float]:
        """Weights of a plain decoder, which compares a string's bits with all other bits.

        Within a tenth of real decodes, which also weight cohorts and share bits among strings.
        """
        layout, channel = mechanism.layout, mechanism.chain.channel
        gap = float(channel.p - channel.q)
        weights = np.zeros(layout.size)
        for target in targets:
            for cohort, bits in enumerate(mechanism.positions(target)):
                for bit in bits:
                    weights[layout.cell(cohort, bit)] += 1 / gap / len(bits)
        return weights, 0.0

    def expected(
        self, mechanism: Rappor, values: Sequence[object], shares: Floats, reports: float
    ) -> Expected:
        """Errors of least squares with a column for every candidate.

        A bit count's noise comes from randomization and from how reports fall into cohorts.
        """
        cohorts, bits, channel = mechanism.cohorts, mechanism.bits, mechanism.chain.channel
        # With more strings than the bits can distinguish, the decoder fits the clearest ones.
        fitted = max(1, min(_DECODED, cohorts * bits // 4))
        strings = tuple(str(value) for value in values[:fitted])
        places, pseudo_inverse, splits = _string_decoder(mechanism, strings)
        one_counts = np.zeros(cohorts * bits + 1)
        np.add.at(one_counts, places, (shares[: len(strings), None] / cohorts))
        true_variance, other_variance = report_variances(channel)
        coins = (pseudo_inverse**2) @ (
            one_counts[:-1] * true_variance + (1 / cohorts - one_counts[:-1]) * other_variance
        )
        # A string's reports fall into cohorts at random. Its number of reports is fixed, and the
        # decoder has the size of each cohort; any other unevenness is noise.
        split = shares[: len(strings)] @ splits
        by_cohort = pseudo_inverse.reshape(len(strings), cohorts, bits) * one_counts[:-1].reshape(
            cohorts, bits
        )
        split -= (cohorts * by_cohort.sum(axis=2)).var(axis=1)
        errors = np.sqrt((coins + split) / reports)
        missing_stderrs = np.full(len(shares) - len(strings), float(errors.mean()))
        stderrs = np.concatenate([errors, missing_stderrs])
        return Expected(stderrs, stderrs)

    def draw(self, mechanism: Rappor, people: People, rng: Generator) -> Counts:
        one_counts, reports = _cohort_holders(mechanism, people, rng)
        return cohort_cells(
            reports, bit_counts(one_counts, reports[:, None], mechanism.chain.channel, rng)
        )

    def draw_lasting(self, mechanism: Any, people: People, rng: Generator) -> Callable[[], Counts]:
        one_counts, reports = _cohort_holders(mechanism, people, rng)
        draw_bits = lasting_bits(one_counts, reports[:, None], *chain_steps(mechanism.chain), rng)
        return lambda: cohort_cells(reports, draw_bits())


@lru_cache(maxsize=1)  # the planner varies shares and reports
def _string_decoder(mechanism: Rappor, strings: tuple[str, ...]) -> tuple[Places, Floats, Floats]:
    """Bits of each string, weights of all bits for it, and what each string's cohorts add to it.

    The last has a row for each string whose reports fall into cohorts: variances of its weights.
    """
    cohorts, bits = mechanism.cohorts, mechanism.bits
    places = bloom_places(mechanism, strings)
    rows = np.zeros((cohorts * bits + 1, len(strings) + 1))
    np.put_along_axis(rows.T[:-1], places.astype(np.int64), 1 / cohorts, axis=1)
    rows[:, -1] = (1 - (1 - 1 / bits) ** mechanism.hashes) / cohorts
    pseudo_inverse = (np.linalg.pinv(rows.T @ rows) @ rows[:-1].T)[:-1]
    padded = np.column_stack([pseudo_inverse, np.zeros(len(pseudo_inverse))])
    by_string = places.reshape(len(strings), cohorts, -1)
    splits = [padded[:, string].sum(axis=2).var(axis=1) for string in by_string]
    return places, pseudo_inverse, np.array(splits)


def _cohort_holders(mechanism: Rappor, people: People, rng: Generator) -> tuple[Counts, Counts]:
    size = len(people.values)
    check_size(mechanism, size * mechanism.cohorts // QUICK)
    places = bloom_places(mechanism, people.values).reshape(size, mechanism.cohorts, -1)
    return cohort_holders(mechanism.layout, places, people.counts, rng)
