"""The private parts of a client that tests look at, in one place."""

from hubbub.client import Client, State
from hubbub.client.state.contract import PendingPayload


def store_reports(client: Client) -> None:
    """Seals and stores the payloads that were drawn, as the background thread does."""
    client._sender.entering.enter()


def drawn_reports(client: Client) -> list[tuple[int, PendingPayload]]:
    """The payloads that wait to be sealed and stored, with their numbers, oldest first."""
    return client._reporter.pending()


def refresh(client: Client) -> None:
    """Reads the device's state anew."""
    client._reporter.refresh()


def send_once(client: Client, seconds: float) -> float | None:
    """Submits once; returns the seconds until the next attempt, None if nothing is left."""
    return client._sender.attempt(seconds)


def fetch_tokens(client: Client, seconds: float) -> None:
    """Requests the tokens that are due."""
    client._sender.fetch_tokens(seconds)


def client_state(client: Client) -> State:
    """The store of the device."""
    return client._state


def disconnect(client: Client) -> None:
    """Keeps `close` from sending: there is no shuffler."""
    client._disabled = True
