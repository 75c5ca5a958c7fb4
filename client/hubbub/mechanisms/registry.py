"""The registry: every mechanism by its wire name. A new one is its file and a line here."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.mechanisms.buckets import BucketFlips
from hubbub.mechanisms.cms import CountMeanSketch
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.hadamard import HadamardResponse
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.local_hash import LocalHashing
from hubbub.mechanisms.long_grr import LongitudinalGrr
from hubbub.mechanisms.long_hash import LongitudinalHash
from hubbub.mechanisms.long_unary import LongitudinalUnary
from hubbub.mechanisms.mean_one_bit import OneBitMean
from hubbub.mechanisms.mean_piecewise import PiecewiseMean
from hubbub.mechanisms.mean_table import TableMean
from hubbub.mechanisms.mechanism import AnyMechanism, FamilyName
from hubbub.mechanisms.pairs import PairedParts
from hubbub.mechanisms.parameter import Parameter, described
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.projective import ProjectiveResponse
from hubbub.mechanisms.rappor import Rappor
from hubbub.mechanisms.rappor_basic import BasicRappor
from hubbub.mechanisms.rr import RandomizedResponse
from hubbub.mechanisms.subset import SubsetSelection
from hubbub.mechanisms.tree import PrefixTree
from hubbub.mechanisms.unary import OptimizedUnary, SymmetricUnary
from hubbub.mechanisms.vector_codes import VectorCodes
from hubbub.mechanisms.wave import SquareWave

REGISTRY: Final[dict[str, type[AnyMechanism]]] = {
    mechanism.NAME: mechanism
    for mechanism in (
        RandomizedResponse,
        GeneralizedRandomizedResponse,
        SymmetricUnary,
        OptimizedUnary,
        SubsetSelection,
        HadamardResponse,
        ProjectiveResponse,
        CountMeanSketch,
        HadamardSketch,
        LocalHashing,
        Rappor,
        BasicRappor,
        OneBitMean,
        PiecewiseMean,
        TableMean,
        BucketFlips,
        LongitudinalGrr,
        LongitudinalUnary,
        LongitudinalHash,
        SquareWave,
        PrefixTree,
        PairedParts,
        PrivSet,
        VectorCodes,
    )
}
"""Every mechanism by its wire name."""


def parameters(name: str) -> Mapping[str, bool]:
    """What the mechanism of this name is built from: parameter, and whether it must be given.

    Raises:
        BadParameter: no such mechanism.
    """
    if name not in REGISTRY:
        raise BadParameter(f'mechanism "{name}" is not known; there are {", ".join(REGISTRY)}')
    arguments = inspect.signature(REGISTRY[name]).parameters
    return {key: parameter.default is parameter.empty for key, parameter in arguments.items()}


def described_parameters(name: str) -> Mapping[str, Parameter]:
    """What a mechanism of the registry says of its parameters, but for epsilon and categories."""
    return described(REGISTRY[name])


def built_from(family: FamilyName, *names: str) -> tuple[str, ...]:
    """The names of a family's mechanisms that can be built from exactly these parameters."""

    def fits(needs: Mapping[str, bool]) -> bool:
        return needs.keys() >= set(names) and {key for key, must in needs.items() if must} <= {
            *names
        }

    return tuple(
        name
        for name, mechanism in REGISTRY.items()
        if family == mechanism.FAMILY and fits(parameters(name))
    )


def build(name: str, **arguments: Any) -> AnyMechanism:
    """The mechanism of this name: `build("grr", epsilon=1.0, categories=5)`.

    Raises:
        BadParameter: no such mechanism, or a parameter unknown, missing or out of range.
    """
    needs = parameters(name)
    wrong = [f'"{key}" is not a parameter' for key in sorted(arguments.keys() - needs.keys())]
    wrong += [f'"{key}" is missing' for key, must in needs.items() if must and key not in arguments]
    if wrong:
        raise BadParameter(f"{name}: {', '.join(wrong)}; it takes {', '.join(needs)}")
    return REGISTRY[name](**arguments)
