"""The contract of kinds whose value a device computes from its own past.

The app reports events. The device reports the value of an epoch once: a kind that counts events
when the epoch is over, the others at the first event, computed from the epochs in the ledger.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from hubbub.catalog.plain_value import as_python
from hubbub.catalog.values.value_kind import Complain, ValueKind, not_listed
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.mechanisms import REGISTRY

_USE: Final = "use"
_NOT_ITS: Final[Mapping[str, str]] = {
    **ValueKind.NOT_ITS,
    **dict.fromkeys(
        ("values", "values_file", "domain", "parts", "edges", "outside", "other"),
        "cannot be used with this kind, whose values follow from its own fields; leave it out",
    ),
    **dict.fromkeys(
        ("default", "discover", "period", "report_on"),
        "cannot be used with this kind: the device's own past decides when and what it "
        "reports; leave it out",
    ),
}


def reasons_without(field: str) -> Mapping[str, str]:
    """Returns the NOT_ITS of a kind that requires this field."""
    return {name: reason for name, reason in _NOT_ITS.items() if name != field}


class PastKind(ValueKind):
    """A kind with base values, of which a device computes one.

    EPOCH: the only permitted epoch; "" for any. FIELD: the field of metrics.toml
    that the base values follow from, with its entry; None if they are always the same.
    """

    TAKES_OTHER: ClassVar[bool] = False
    EPOCH: ClassVar[str] = ""
    FIELD: ClassVar[tuple[str, Any] | None] = None
    NOT_ITS: ClassVar[Mapping[str, str]] = _NOT_ITS

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        if self.FIELD is None:
            return {**table, "values": [*self.base_values(None)]}
        name, says = self.FIELD
        other_fields = {field: value for field, value in table.items() if field != name}
        if name not in table:
            complain(name, says.missing(name))
            return {**other_fields, "values": ["1", "2"]}
        if problem := says.kind.problem(table[name]):
            complain(name, f"{problem}; write {name} = {says.example}")
            return {**other_fields, "values": ["1", "2"]}
        return {**other_fields, "values": [*self.base_values(says.kind.read(table[name]))]}

    def base_values(self, written: Any) -> Sequence[str]:
        """Returns the base values for the content of FIELD."""
        return tuple(written)

    def check(self, metric: Any, domain: str) -> None:
        kind = metric.kind
        if (self.FAMILY or "listed") != REGISTRY[metric.mechanism].FAMILY:
            raise BadParameter(
                f'kind: {metric.mechanism} cannot be used with "{kind}"; write mechanism = "auto"'
            )
        if self.EPOCH and metric.epoch != self.EPOCH:
            raise BadParameter(f'epoch: must be "{self.EPOCH}" with kind = "{kind}"')
        if metric.limits.reports_per_epoch != 1:
            raise BadParameter(
                f'limits: reports_per_epoch must be 1: a device reports "{kind}" once an epoch'
            )
        if metric.default is not None or metric.discover or metric.report_on:
            raise BadParameter(f'kind: "{kind}" has no default, discover or period')
        arms = {metric.experiment.name} if metric.experiment else set()
        if self.COUNTS and {*metric.breakdown} - arms:
            raise BadParameter(
                f'breakdown: cannot be used with "{kind}": devices report it after its epoch, when '
                "a public field, such as the app's version, may no longer be that of the events; "
                "leave it out, or name an experiment, whose arms stay the same"
            )
        if not self.COUNTS and metric.sampling != 1:
            raise BadParameter(
                f'sampling: cannot be used with kind = "{kind}", for which a device reports in all '
                "epochs of use; leave it out"
            )
        super().check(metric, domain)

    def event(self, metric: Any, value: Any) -> str:
        """Returns the event of a report. Raises ValueOutOfDomain, without the value."""
        if self.VALUELESS and value is None:
            return _USE
        if self.VALUELESS:
            raise ValueOutOfDomain(f"a metric of kind {metric.kind} takes no value; leave it out")
        event = as_python(value, metric.values)
        if not (isinstance(event, str) and event in metric.values):
            raise not_listed(metric.values, value)
        return event

    def computed(
        self, metric: Any, epoch: int, events: Mapping[str, int], reported: Collection[int]
    ) -> Any:
        """Returns the value of an epoch, for `metric.code`, from the counts of its events.

        There is at least one event. `reported` are the other epochs that this device reported, as
        far as its ledger remembers them.
        """
        raise NotImplementedError

    def example(self, metric: Any, chance: Any) -> Any:
        return None if self.VALUELESS else chance.choice(metric.values)
