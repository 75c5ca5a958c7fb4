"""Even lies: mechanisms whose report is one cell, and whose lies are spread over all cells alike.

Such a report is a mixture of reports of `grr` over as many categories as there are cells: with
q = 1 / (exp(loss) + d - 1), every value names each of the d cells with a chance of q at least. What
is accounted for of `grr` holds for it, too: what two mixtures tell apart is never more than what
the worst two of their parts do. A number that is rounded to one of two steps at random is one.
Of hashed strings all of this is true among the reports of one hash function.

A report of a prefix tree, or of a pair of parts, is a point of its value's hyperplane, each alike,
or any of a group's K points, each alike: noise. Of two values that a group tells apart a person's
truth is on one hyperplane; where it is on both it tells nothing, and else it is one of the S - I
points on the one alone, which noise hits with a chance of (S - I) / K, as it hits those on the
other alone. So there are two counts, as of `grr` over K / (S - I) categories, of which more, with
as much noise in all, hide less: each report that is on neither moves to either with some chance.

A code of directions is any word of the pool, each alike: noise; or any of those near, each alike.
Which book it is of is drawn, and nobody knows it of a person. Of two vectors without a common near
word there are two counts, of the words near either, which each are `near` / `words` of the pool: as
of `grr` over words / near categories, a whole number of them or not. Where words are near to both
less is told. Say u is, and u' near to neither; compare with a second vector that has u' for u.
Given how many reports are on the two, in one and the other case a sum x - t y has the same mean,
and spreads (t - 1) and (t + 1) times as far about it as the same fair coins: the mean of what is
above 0 of it is no less in the second.
"""

from fractions import Fraction
from math import ceil, inf, nextafter

from hubbub.fields.frozen import frozen
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.local_hash import LocalHashing
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.mechanism import AnyMechanism
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.probability import log_at_least
from hubbub.mechanisms.tree import PrefixTree
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.mechanisms.wave import SquareWave


def lies_evenly(mechanism: AnyMechanism) -> bool:
    """Whether a crowd of it is accounted for like `grr` over its layout's cells.

    For hash functions: over the cells of the function of a report. For windows: if they are one
    cell wide, as with few parts and a large epsilon. For codes: if fewer than half of the words are
    near, as from epsilon .14 on.
    """
    if isinstance(mechanism, VectorCodes):
        return 2 * mechanism.near < mechanism.words
    if isinstance(mechanism, SquareWave | PiecewiseMean):
        return mechanism.window.width == 1
    even_types = (
        GeneralizedRandomizedResponse | LocalHashing | OneBitMean | PrefixTree | PairedParts
    )
    return isinstance(mechanism, even_types)


@frozen()
class EvenLies:
    """The `grr` reports that reveal as much as a mechanism's reports in a crowd, or more.

    Args:
        categories: number of values over which lies are spread; not whole for vector codes.
        groups: number of visible groups, drawn evenly and independently of the value.
        epsilon: local, in nats.
    """

    categories: float
    groups: int
    epsilon: float


def even_lies(mechanism: AnyMechanism, loss: float) -> EvenLies:
    """The account of a mechanism's crowd; `loss` is a lower bound of one report's loss, in nats."""
    if isinstance(mechanism, PrefixTree | PairedParts):
        space = mechanism.response.transform
        categories = ceil(Fraction(space.points, space.on_one - space.on_two))
        lied = mechanism.response.keep.complement.exact
        noise = lied * Fraction(space.points, space.points - space.on_one)
        # PRIVACY: up, towards less noise.
        epsilon = log_at_least(categories / noise - categories + 1)
        return EvenLies(categories, mechanism.groups, max(epsilon, loss))
    if isinstance(mechanism, LocalHashing):
        return EvenLies(mechanism.width, mechanism.hashes, loss)
    if isinstance(mechanism, VectorCodes):
        # Rounded up, and so never whole: as many categories as there are values are of lists alone.
        return EvenLies(nextafter(mechanism.words / mechanism.near, inf), 1, loss)
    return EvenLies(mechanism.layout.size, 1, loss)
