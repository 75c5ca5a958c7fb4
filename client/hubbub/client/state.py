"""What a device keeps: its secret, its ledger, and whose bundles it trusts."""

import base64
import json
import os
import secrets
from pathlib import Path
from typing import Any, Final, Protocol

from hubbub.client.device import SECRET_BYTES
from hubbub.errors import BundleRefused, StateUnusable

__all__ = ["FolderState", "MemoryState", "State"]

_OWNER_ONLY: Final = 0o600


class State(Protocol):
    """Where a device keeps what must outlive the process."""

    @property
    def secret(self) -> bytes:
        """The device's 32 random bytes."""
        ...

    def load(self) -> dict[str, Any]:
        """The ledger's entries as last saved."""
        ...

    def save(self, entries: dict[str, Any]) -> None:
        """Keep the ledger's entries, whole or not at all."""
        ...


class MemoryState:
    """Forgets with the process: for tests, and for devices that are simulated."""

    def __init__(self, secret: bytes | None = None) -> None:
        self.secret: bytes = secret or secrets.token_bytes(SECRET_BYTES)
        self._entries: dict[str, Any] = {}

    def load(self) -> dict[str, Any]:
        """The ledger's entries as last saved."""
        return self._entries

    def save(self, entries: dict[str, Any]) -> None:
        """Keep the ledger's entries."""
        self._entries = entries


class FolderState:
    """A folder of this device and user: files of mode 0600, replaced whole.

    Raises:
        StateUnusable: the folder cannot be made, read or written, or holds what we did not write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.secret: bytes = self._secret()
        except OSError as error:
            raise StateUnusable(f"{folder}: {error.strerror}; give a writable state_dir") from error

    def pin(self, operator: bytes) -> None:
        """Trust the first operator ever seen here, and no other after it.

        Raises:
            BundleRefused: this folder has seen bundles of another operator.
        """
        path = self._folder / "operator.pub"
        text = base64.b64encode(operator)
        if not path.exists():
            self._replace(path, text)
        elif path.read_bytes() != text:
            raise BundleRefused(
                f"the bundle is signed by {text.decode()}, but {path} trusts another operator; "
                "ship a bundle of the operator you started with"
            )

    def load(self) -> dict[str, Any]:
        """The ledger's entries as last saved. Raises StateUnusable if they are damaged."""
        path = self._folder / "ledger.json"
        if not path.exists():
            return {}
        try:
            entries = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise StateUnusable(f"{path}: not a ledger; restore it or give a new folder") from error
        if not isinstance(entries, dict):
            raise StateUnusable(f"{path}: not a ledger; restore it or give a new folder")
        return entries

    def save(self, entries: dict[str, Any]) -> None:
        """Keep the ledger's entries. Raises StateUnusable if they cannot be written."""
        try:
            self._replace(self._folder / "ledger.json", json.dumps(entries).encode())
        except OSError as error:
            raise StateUnusable(f"{self._folder}: {error.strerror}; free space there") from error

    def _secret(self) -> bytes:
        path = self._folder / "secret"
        try:
            # PRIVACY: made once, readable by its owner alone.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        except FileExistsError:
            secret = path.read_bytes()
            if len(secret) != SECRET_BYTES:
                raise StateUnusable(
                    f"{path}: not {SECRET_BYTES} bytes; remove the folder"
                ) from None
            return secret
        with os.fdopen(descriptor, "wb") as file:
            secret = secrets.token_bytes(SECRET_BYTES)
            file.write(secret)
        return secret

    def _replace(self, path: Path, content: bytes) -> None:
        draft = path.with_suffix(".draft")
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY), "wb"
        ) as f:
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
        draft.replace(path)
