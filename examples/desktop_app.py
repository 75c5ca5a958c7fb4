"""A desktop app with a privacy menu: python desktop_app.py < commands.

It reports its theme when it starts, and lets the person see, lessen, stop and undo that.
"""

import sys
from collections.abc import Callable

from hubbub.client import Client


def menu(client: Client) -> dict[str, Callable[[], object]]:
    """What a person may choose."""
    return {
        "what left": lambda: show(client),
        "less": lambda: client.prefer(0.5),
        "as designed": lambda: client.prefer(None),
        "stop": client.disable,
        "stop and forget": lambda: client.disable(forget=True),
        "start": client.enable,
    }


def show(client: Client) -> None:
    """Every payload, and what it could have meant."""
    for payload in client.ledger().payloads:
        likeliest = ", ".join(f"{value} {chance:.0%}" for value, chance in payload.meanings()[:3])
        print(f"{payload.metric} {payload.fate}: {likeliest or 'any string'}")


def main() -> None:
    """Report, then do what is chosen, until the window is closed."""
    with Client.from_bundle() as client:
        print("theme:", client.report("theme", "dark").value)
        choices = menu(client)
        for line in sys.stdin:
            choices[line.strip()]()
            print("done:", line.strip())


if __name__ == "__main__":
    main()
