"""Floor 3. The SDK: one import, two lines, and a report is on its way.

client = hubbub.client.Client.from_bundle("app.hubbub")
client.report("theme", "dark")
"""

from hubbub.client.client import Client
from hubbub.client.ledger import Ledger
from hubbub.client.outcome import Outcome
from hubbub.client.state import FolderState, MemoryState, State
from hubbub.client.transport import GrpcTransport, NotSent, Transport

__all__ = [
    "Client",
    "FolderState",
    "GrpcTransport",
    "Ledger",
    "MemoryState",
    "NotSent",
    "Outcome",
    "State",
    "Transport",
]
