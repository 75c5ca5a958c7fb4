"""The registry of mechanisms by wire name. A new one is its file and a line here."""

from collections import UserDict
from collections.abc import Mapping, MutableMapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from hubbub.errors import BadParameter
from hubbub.mechanisms.mechanism import AnyMechanism, Parameter, described

if TYPE_CHECKING:  # Freezers of apps, such as PyInstaller, include modules that they find here.
    from hubbub.mechanisms import (  # noqa: F401
        bucket_flips,
        cms,
        grr,
        haar,
        hadamard,
        hcms,
        local_hash,
        longitudinal_grr,
        longitudinal_hash,
        longitudinal_unary,
        mean_lookup_table,
        mean_one_bit,
        mean_piecewise,
        pairs_of_parts,
        privset,
        projective,
        rappor,
        rappor_basic,
        rr,
        subset,
        tree,
        unary,
        vector_codes,
        wave,
    )

_HOMES: Final = {
    "rr": ("rr", "RandomizedResponse"),
    "grr": ("grr", "GeneralizedRandomizedResponse"),
    "unary.sue": ("unary", "SymmetricUnary"),
    "unary.oue": ("unary", "OptimizedUnary"),
    "subset": ("subset", "SubsetSelection"),
    "hadamard": ("hadamard", "HadamardResponse"),
    "projective": ("projective", "ProjectiveResponse"),
    "cms": ("cms", "CountMeanSketch"),
    "hcms": ("hcms", "HadamardSketch"),
    "local_hash": ("local_hash", "LocalHashing"),
    "rappor": ("rappor", "Rappor"),
    "rappor.basic": ("rappor_basic", "BasicRappor"),
    "mean.one_bit": ("mean_one_bit", "OneBitMean"),
    "mean.piecewise": ("mean_piecewise", "PiecewiseMean"),
    "mean.table": ("mean_lookup_table", "TableMean"),
    "buckets": ("bucket_flips", "BucketFlips"),
    "long.grr": ("longitudinal_grr", "LongitudinalGrr"),
    "long.unary": ("longitudinal_unary", "LongitudinalUnary"),
    "long.hash": ("longitudinal_hash", "LongitudinalHash"),
    "wave": ("wave", "SquareWave"),
    "haar": ("haar", "HaarResponse"),
    "tree": ("tree", "PrefixTree"),
    "pairs": ("pairs_of_parts", "PairedParts"),
    "privset": ("privset", "PrivSet"),
    "vector.codes": ("vector_codes", "VectorCodes"),
}
"""The module and class of every mechanism, by its wire name."""


class _Registry(UserDict[str, Any]):
    """Loads a mechanism when it is looked up, so that a device loads only those of its bundle."""

    def __getitem__(self, name: str) -> type[AnyMechanism]:
        if self.data[name] is None:
            module, class_name = _HOMES[name]
            self.data[name] = getattr(import_module(f"hubbub.mechanisms.{module}"), class_name)
        loaded: type[AnyMechanism] = self.data[name]
        return loaded


REGISTRY: Final[MutableMapping[str, type[AnyMechanism]]] = _Registry(dict.fromkeys(_HOMES))
"""Every mechanism by its wire name."""


def parameters(name: str) -> Mapping[str, bool]:
    """The parameters of this mechanism, and whether each is required. Raises BadParameter."""
    if name not in REGISTRY:
        raise BadParameter(f'mechanism "{name}" is unknown; there are {", ".join(REGISTRY)}')
    mechanism: Any = REGISTRY[name]
    return {field.name: field.default is MISSING for field in fields(mechanism) if field.init}


def described_parameters(name: str) -> Mapping[str, Parameter]:
    """The described parameters of a mechanism, without epsilon and categories."""
    return described(REGISTRY[name])


def names_of(family: str, *names: str) -> tuple[str, ...]:
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
    """The mechanism of this name: `build("grr", epsilon=1.0, categories=5)`; or BadParameter."""
    needs = parameters(name)
    wrong = [f'"{key}" is not a parameter' for key in sorted(arguments.keys() - needs.keys())]
    wrong += [f'"{key}" is missing' for key, must in needs.items() if must and key not in arguments]
    if wrong:
        raise BadParameter(f"{name}: {', '.join(wrong)}; it takes {', '.join(needs)}")
    return REGISTRY[name](**arguments)
