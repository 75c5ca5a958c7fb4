"""Floor 3. The SDK: one import, two lines, and a report is on its way.

client = hubbub.client.Client.from_bundle("app.hubbub")
client.report("theme", "dark")

Names are loaded when they are first used: an app that imports this at its start waits for nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hubbub.client.client import Client
    from hubbub.client.folder_state import FolderState
    from hubbub.client.grpc_transport import GrpcTransport
    from hubbub.client.memory_state import MemoryState
    from hubbub.client.outcome import Outcome
    from hubbub.client.program import init, report
    from hubbub.client.settings import Settings
    from hubbub.client.state import Bounds, State, Waiting
    from hubbub.client.transport import NotSent, Transport
    from hubbub.client.view import LedgerView, MetricView, PayloadView

__all__ = [
    "Bounds",
    "Client",
    "FolderState",
    "GrpcTransport",
    "LedgerView",
    "MemoryState",
    "MetricView",
    "NotSent",
    "Outcome",
    "PayloadView",
    "Settings",
    "State",
    "Transport",
    "Waiting",
    "init",
    "report",
]

_MODULES: Final = {
    "client": ("Client",),
    "folder_state": ("FolderState",),
    "grpc_transport": ("GrpcTransport",),
    "memory_state": ("MemoryState",),
    "outcome": ("Outcome",),
    "program": ("init", "report"),
    "settings": ("Settings",),
    "state": ("Bounds", "State", "Waiting"),
    "transport": ("NotSent", "Transport"),
    "view": ("LedgerView", "MetricView", "PayloadView"),
}
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 each name has its own
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
