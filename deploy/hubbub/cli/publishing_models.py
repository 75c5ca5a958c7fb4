"""Signs the state of models, as the aggregator computed it, for the shuffler to serve."""

from pathlib import Path

from hubbub.bundles.model_state import ModelState
from hubbub.errors import BadParameter
from hubbub.keys.operator import read_handovers, read_operator_key
from hubbub.notebook.service import Service
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.signing.sign_bundle import sign_models


def publish(service: Service, keys: Path, out: Path) -> dict[str, int] | None:
    """Signs the state of every model into a file; returns each one's round, None if nothing is new.

    Raises:
        ServiceUnavailable: the aggregator does not answer.
        KeysUnusable, BadParameter: the keys cannot be read, the file cannot be written.
    """
    states = {
        model["model"]: ModelState(
            model["number"],
            tuple(model["centre"]),
            tuple(model["weights"]),
            tuple(model["edges"]),
        )
        for model in service.ask("/v1/models")["models"]
        if model["number"] >= 0
    }
    if not states:
        return None
    signed = sign_models(states, read_operator_key(keys), read_handovers(keys))
    with refuse_unwritable(out, BadParameter):
        if out.exists() and out.read_bytes() == signed:  # Ed25519 signs the same bytes alike
            return None
        replace_file(out, signed)
    return {name: state.number for name, state in states.items()}
