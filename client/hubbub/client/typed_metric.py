"""A metric by name, with the type of its values: what `hubbub catalog codegen` writes for apps."""

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from hubbub.client import default_client

if TYPE_CHECKING:
    from hubbub.client.outcome import Outcome

Value_contra = TypeVar("Value_contra", contravariant=True)


class Reports(Protocol):
    """An object that reports: a client."""

    def report(self, metric: str, value: Any = None) -> "Outcome":
        """As `Client.report()`."""


class TypedMetric(Generic[Value_contra]):
    """One metric of the catalog, by its name there."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @overload
    def report(
        self: "TypedMetric[None]", value: None = None, *, client: Reports | None = None
    ) -> "Outcome": ...

    @overload
    def report(self, value: Value_contra, *, client: Reports | None = None) -> "Outcome": ...

    def report(self, value: Any = None, *, client: Reports | None = None) -> "Outcome":
        """Reports a value by this client, or by the one that `hubbub.client.init()` started.

        Raises as `Client.report()` and `hubbub.client.report()`, if these are strict.
        """
        return (client or default_client).report(self.name, value)
