"""A provider for OpenFeature: flags that have the value of the device's arm of an experiment.

    values = {"new_menu": {"control": False, "new": True}}
    openfeature.api.set_provider(Arms(Client.from_bundle(), values))
    if openfeature.api.get_client().get_boolean_value("new_menu", False): ...

The device draws the arm itself, so the provider reads no targeting key: no identifier of a person
is part of an experiment. Reports of the experiment's metrics name the arm.
"""

from collections.abc import Mapping
from typing import Any

from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import FlagNotFoundError
from openfeature.flag_evaluation import FlagResolutionDetails, Reason
from openfeature.provider import AbstractProvider, Metadata

from hubbub.client import Client


class Arms(AbstractProvider):
    """Flags by the arms of experiments.

    values: of each flag, which has the name of its experiment, the value of each arm.
    """

    def __init__(self, client: Client, values: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__()
        self._client = client
        self._values = values

    def get_metadata(self) -> Metadata:
        """The provider's name."""
        return Metadata(name="hubbub")

    def _resolve(
        self,
        flag_key: str,
        default_value: Any,  # noqa: ARG002 OpenFeature returns it where this raises
        evaluation_context: EvaluationContext | None = None,  # noqa: ARG002 see above
    ) -> FlagResolutionDetails[Any]:
        """The value of the device's arm.

        Raises:
            FlagNotFoundError: no such flag, or no value for the arm.
        """
        values = self._values.get(flag_key, {})
        arm = self._client.arm(flag_key) if values else ""
        if arm not in values:
            raise FlagNotFoundError(f"{flag_key} has no value for this device's arm; add it")
        return FlagResolutionDetails(values[arm], variant=arm, reason=Reason.SPLIT)

    resolve_boolean_details = _resolve
    resolve_string_details = _resolve
    resolve_integer_details = _resolve
    resolve_float_details = _resolve
    resolve_object_details = _resolve
