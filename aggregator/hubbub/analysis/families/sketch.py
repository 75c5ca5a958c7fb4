"""Strings through a sketch: candidates share buckets, and a count is what is left of collisions."""

from collections.abc import Iterator, Sequence

import numpy as np

from hubbub.analysis.answer import Answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.checks import between, in_cohorts
from hubbub.analysis.families.contract import BitSum, Expected, Tier, risen
from hubbub.analysis.families.strings import Strings, candidates_answer
from hubbub.analysis.strings.candidate_positions import sketch_buckets
from hubbub.analysis.strings.sketch_counts import Sketch, count
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.mechanisms import Totals
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.local_hash import LocalHashing
from hubbub.mechanisms.pure import Pure
from hubbub.mechanisms.walsh import negative


class Sketches(Strings):
    """The count-mean sketches."""

    def figures(
        self,
        mechanism: Sketch,
        totals: Totals,
        candidates: Sequence[str],
        *,
        shape: bool,
    ) -> ValueEstimates:
        """As they are counted; how far collisions go is their own law."""
        estimates, stderrs, absent, tail = count(mechanism, totals, candidates)
        growth = risen(estimates, stderrs, absent, totals.reports)
        return ValueEstimates(estimates, stderrs, absent, growth, tail)

    def answer(
        self, tiers: Sequence[Tier], names: Sequence[str], confidence: float, repeats: int
    ) -> Answer:
        """A row for each candidate."""
        return candidates_answer(self, tiers, names, confidence, repeats)

    def sums(self, mechanism: Sketch, cells: Floats, totals: Totals) -> Iterator[BitSum]:
        """Of `cms` how many bits of a function are 1; of the others each index."""
        if isinstance(mechanism, CountMeanSketch):
            yield from in_cohorts(mechanism.layout, cells, mechanism.channel, 1)
            return
        if isinstance(mechanism, LocalHashing):
            low, high = mechanism.channel.q, mechanism.channel.p
            each = mechanism.hashes
        else:
            low, high = mechanism.keep.complement.exact, mechanism.keep.exact
            each = mechanism.hashes * mechanism.width
        chances = Pure(high / each, low / each)
        yield from between("index", cells, np.full_like(cells, totals.reports), chances)

    def weights(self, mechanism: Sketch, targets: Sequence[str]) -> tuple[Floats, float]:
        """By its bucket of every function."""
        channel, width = mechanism.channel, mechanism.width
        gap, q = float(channel.p - channel.q), float(channel.q)
        # A string's count is (sum of its buckets - n / width) width / (width - 1).
        spread = width / (width - 1)
        weights = np.zeros(mechanism.layout.size)
        for places in sketch_buckets(mechanism, targets):
            for function, bucket in enumerate(places.tolist()):
                if isinstance(mechanism, CountMeanSketch):
                    weights[mechanism.layout.cell(function, bucket)] += spread / gap
                    weights[mechanism.layout.cell(function, -1)] -= spread * q / gap
                    continue
                if isinstance(mechanism, LocalHashing):
                    first = function * width
                    weights[first : first + width] -= spread * q / gap
                    weights[first + bucket] += spread / gap
                    continue
                for entry in range(width):
                    minus = negative(bucket, entry)
                    for sent in range(2):
                        cell = 2 * (function * width + entry) + sent
                        weights[cell] += spread * ((minus == sent) - q) / gap
        return weights, -len(targets) * spread / width

    def expected(
        self,
        mechanism: Sketch,
        values: Sequence[object],
        shares: Floats,
        reports: float,
    ) -> Expected:
        """Coins, and what the others' collisions add over the choice of hash functions."""
        width, functions = mechanism.width, mechanism.hashes
        held, other = mechanism.channel.variance(1, 1), mechanism.channel.variance(0, 1)
        spread, stretch = (1 - 1 / width) / width, width / (width - 1)

        def error(own: Floats) -> Floats:
            inside = own + (1 - own) / width
            coins = (inside * held + (1 - inside) * other) / reports
            squares = (shares**2).sum() - own**2
            collisions = spread * (squares / functions + (1 - own) / reports)
            answer: Floats = stretch * np.sqrt(coins + collisions)
            return answer

        return Expected(error(shares), error(np.zeros_like(shares)))
