"""Floor 3. The SDK: one import, two lines, one report.

    client = hubbub.client.Client.from_bundle("app.hubbub")
    client.report("theme", "dark")

Names are imported at their first use, so that importing this module does not slow an app's start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hubbub.client.client import Client
    from hubbub.client.clock import Clock, SystemClock
    from hubbub.client.default_client import TypedMetric, init, report
    from hubbub.client.ledger_view import LedgerView, MetricView, PayloadView
    from hubbub.client.outcome import Outcome
    from hubbub.client.server_persons import Person, Persons, PersonStore, RedisStore, SQLStore
    from hubbub.client.settings import Settings
    from hubbub.client.state.contract import Bounds, OutboxReport, State
    from hubbub.client.state.folder import FolderState
    from hubbub.client.state.memory import MemoryState
    from hubbub.client.transport.contract import (
        GivenUp,
        NotSent,
        SealedReport,
        Submitted,
        Transport,
        TryAgain,
    )
    from hubbub.client.transport.transport_by_address import transport_to

__all__ = [
    "Bounds",
    "Client",
    "Clock",
    "FolderState",
    "GivenUp",
    "LedgerView",
    "MemoryState",
    "MetricView",
    "NotSent",
    "OutboxReport",
    "Outcome",
    "PayloadView",
    "Person",
    "PersonStore",
    "Persons",
    "RedisStore",
    "SQLStore",
    "SealedReport",
    "Settings",
    "State",
    "Submitted",
    "SystemClock",
    "Transport",
    "TryAgain",
    "TypedMetric",
    "init",
    "report",
    "transport_to",
]

_MODULES: Final = {
    "client": ("Client",),
    "state.folder": ("FolderState",),
    "clock": ("Clock", "SystemClock"),
    "transport.transport_by_address": ("transport_to",),
    "state.memory": ("MemoryState",),
    "outcome": ("Outcome",),
    "server_persons": ("Person", "PersonStore", "Persons", "RedisStore", "SQLStore"),
    "default_client": ("TypedMetric", "init", "report"),
    "settings": ("Settings",),
    "state.contract": ("Bounds", "State", "OutboxReport"),
    "transport.contract": (
        "GivenUp",
        "NotSent",
        "SealedReport",
        "Submitted",
        "Transport",
        "TryAgain",
    ),
    "ledger_view": ("LedgerView", "MetricView", "PayloadView"),
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return __all__
