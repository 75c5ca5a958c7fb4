"""The crowd: which reports of a shuffled batch hide a mechanism's own, and what they give it."""

from dataclasses import replace

from scipy.stats import binom

from hubbub.mechanisms import AnyMechanism, Memoized
from hubbub.privacy.amplification import DELTA, Amplified, amplified

__all__ = ["amplified_of"]


def amplified_of(mechanism: AnyMechanism, reports: int, delta: float = DELTA) -> Amplified:
    """The central guarantee of one report of this mechanism in a batch of so many.

    What a device draws once for life and shows in every report (RAPPOR's cohort, which buckets are
    asked about) may be known of one person: then only reports that show the same hide theirs. How
    many those are is chance; half of `delta` is for fewer than are reckoned with.
    """
    if isinstance(mechanism, Memoized) and (groups := mechanism.permanent_groups) > 1:
        # Down: rounding may not promise one report too many.
        others = int(binom.ppf(delta / 2 * (1 - 1e-6), reports - 1, 1 / groups))
        found = amplified(mechanism.privacy_loss(), 1 + max(0, others), delta / 2)
        return replace(found, delta=delta, reports=reports)
    variation = float(mechanism.total_variation()) * (1 + 2**-50)
    return amplified(mechanism.privacy_loss(), reports, delta, min(variation, 1.0))
