"""Even lies: mechanisms whose report is one cell, and whose lies are spread over all cells alike.

Such a report is a mixture of reports of `grr` over as many categories as there are cells: with
q = 1 / (exp(loss) + d - 1), every value names each of the d cells with a chance of q at least. What
is accounted for of `grr` holds for it, too: what two mixtures tell apart is never more than what
the worst two of their parts do. A number that is rounded to one of two steps at random is one.
Of hashed strings all of this is true among the reports of one hash function.
"""

from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.local_hash import LocalHashing
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.mechanism import AnyMechanism
from hubbub.mechanisms.wave import SquareWave


def lies_evenly(mechanism: AnyMechanism) -> bool:
    """Whether its reports are a mixture of those of `grr` over the cells of its layout.

    Of hash functions: over the cells of the one that a report was made with.

    Of windows: if they are one cell wide, which they are for few parts and a large epsilon.
    """
    if isinstance(mechanism, SquareWave | PiecewiseMean):
        return mechanism.window.width == 1
    return isinstance(mechanism, GeneralizedRandomizedResponse | LocalHashing | OneBitMean)


def cells_and_groups(mechanism: AnyMechanism) -> tuple[int, int]:
    """Over how many cells its lies are spread, and among how many groups of so many cells.

    Which group a report is in is drawn evenly, whatever the value is, and seen by all.
    """
    if isinstance(mechanism, LocalHashing):
        return mechanism.width, mechanism.hashes
    return mechanism.layout.size, 1
