"""States of models: the weights with which the people of a round learn, numbered and signed.

They are two signed lines like bundles and notices, the same bytes for everybody, and contain only
numbers. A device uses what its own round needs.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Self

from hubbub.bundles.encoding import MALFORMED, read_json
from hubbub.bundles.key_handover import Handover, line_of
from hubbub.bundles.signatures import SignatureMismatch, check_lines, other_operator_error
from hubbub.errors import BadParameter, ModelsRefused
from hubbub.fields.frozen import frozen, set_derived
from hubbub.fields.rules import NAME
from hubbub.mechanisms import is_number

LARGEST_MODELS_BYTES: Final = 512 << 10
"""A device that needs them fetches all of them."""

_MAX_ROUNDS: Final = 1 << 10
_LARGEST_WEIGHT: Final = 1e9  # sums of products with it stay finite


@frozen()
class ModelState:
    """The state of a model after some rounds.

    Args:
        number: last round that it includes.
        centre: means of the columns, in [0, 1].
        weights: of the centred columns, then of the intercept; for softmax, for each contrast.
        edges: of the finished model, limits of the score bins that judges report.

    Raises:
        BadParameter: not a valid state.
    """

    number: int
    centre: tuple[float, ...]
    weights: tuple[float, ...]
    edges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (type(self.number) is int and 0 <= self.number < _MAX_ROUNDS):
            raise BadParameter("a model's state has no valid number of a round")
        if not (
            self.weights
            and len(self.weights) % (len(self.centre) + 1) == 0
            and all(is_number(weight) and abs(weight) <= _LARGEST_WEIGHT for weight in self.weights)
            and all(is_number(coordinate) and 0 <= coordinate <= 1 for coordinate in self.centre)
        ):
            raise BadParameter("the state of a model has no weights for its columns")
        if not (all(map(is_number, self.edges)) and list(self.edges) == sorted(self.edges)):
            raise BadParameter("the state of a model has edges that do not ascend")

    def words(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "number": self.number,
            "centre": list(self.centre),
            "weights": list(self.weights),
            **({"edges": list(self.edges)} if self.edges else {}),
        }

    @classmethod
    def load(cls, table: Any) -> Self:
        """Reads what `words()` returned. Raises one of MALFORMED, or BadParameter."""
        edges = tuple(table.get("edges", ()))
        return cls(table["number"], tuple(table["centre"]), tuple(table["weights"]), edges)


@frozen()
class Models:
    """The states of an installation's models, by name, signed by `operator`."""

    states: Mapping[str, ModelState]
    operator: bytes
    handovers: tuple[Handover, ...] = ()
    line: tuple[bytes, ...] = field(init=False, repr=False, compare=False)
    """The operator's signing keys, oldest first, the signer's last."""

    def __post_init__(self) -> None:
        set_derived(self, line=line_of(self.handovers, self.operator))
        if not all(isinstance(name, str) and NAME.fullmatch(name) for name in self.states):
            raise BadParameter("the state of models contains an invalid model")


def open_models(signed: bytes, *, operator: bytes | None) -> Models:
    """The states in some bytes, after checking their signature.

    `operator` is the key that signed the app's bundle; it signed the states too, or handed over to
    their signer. None accepts any signer. Raises ModelsRefused if it is malformed, altered, or of
    another operator; nothing of it is used.
    """
    if len(signed) > LARGEST_MODELS_BYTES:
        raise ModelsRefused(f"larger than {LARGEST_MODELS_BYTES >> 10} KiB: not a state of models")
    try:
        head, body = signed.rstrip(b"\n").split(b"\n")
        version, signer = check_lines("models", head, body)
        if version != 1:
            raise ValueError("of a later version")
    except (*MALFORMED, BadParameter) as error:
        raise ModelsRefused("not a state of models; make it: hubbub model publish") from error
    except SignatureMismatch as error:
        raise ModelsRefused(
            "the signature of the models' state does not match: altered after signing; serve it as "
            "it was made"
        ) from error
    try:
        models = _load(read_json(body), signer)
    except (*MALFORMED, BadParameter) as error:
        raise ModelsRefused("signed, but not readable by this version; upgrade hubbub") from error
    if operator is not None and operator not in models.line:
        raise ModelsRefused(other_operator_error(signer, operator))
    return models


def _load(body: Any, signer: bytes) -> Models:
    if body["version"] != 1:
        raise ValueError("of a later version")
    return Models(
        {name: ModelState.load(table) for name, table in body["models"].items()},
        signer,
        tuple(map(Handover.load, body.get("handovers", []))),
    )
