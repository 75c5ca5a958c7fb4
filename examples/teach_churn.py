"""A thousand devices teach the model of docs/learn.md, until each has told of itself once.

It runs beside `hubbub up --dev`, in the same folder. An app has one device: it says the one line
with learn(), as often as it likes.
"""

import secrets
import time
from pathlib import Path

from hubbub.bundles import Bundle, read_bundle
from hubbub.client import Client, MemoryState, Outcome, transport_to
from hubbub.client.clock import SYSTEM_CLOCK, Clock
from hubbub.client.transport.contract import Transport

DEVICES = 1000
Device = tuple[Client, dict[str, float | str], str]
"""With what its app knows of its person, and whether they left."""


def person(chance: secrets.SystemRandom) -> tuple[dict[str, float | str], str]:
    """What an app knows of somebody, and whether they left: who uses it much or pays stays."""
    hours, plan = chance.uniform(0, 40), chance.choice(["free", "paid"])
    stays = hours / 45 if plan == "free" else 0.6 + hours / 110
    return {"hours": hours, "plan": plan}, "no" if chance.random() < stays else "yes"


def devices(
    number: int, bundle: Bundle, shuffler: Transport, clock: Clock = SYSTEM_CLOCK
) -> list[Device]:
    """So many devices, each with a person; an app has one and a state folder."""
    chance = secrets.SystemRandom()
    return [
        (
            Client(bundle, MemoryState(), shuffler, hold_seconds=None, clock=clock),
            *person(chance),
        )
        for _ in range(number)
    ]


def tell(waiting: list[Device]) -> list[Device]:
    """Say it on every device: those that have yet to tell in their round."""
    remaining = []
    for device, features, label in waiting:
        outcome = device.learn("churn", features, label)
        if outcome is not Outcome.NOT_ITS_ROUND:
            device.flush()
        if outcome not in {Outcome.ALREADY_REPORTED, Outcome.OVER_BUDGET}:
            remaining.append((device, features, label))
    return remaining


def main() -> None:
    """Say it to every device whose round has not been, again and again."""
    bundle = read_bundle(Path(".hubbub/app.hubbub"))
    waiting = devices(DEVICES, bundle, transport_to(bundle.shuffler, roots=bundle.roots))
    while waiting := tell(waiting):
        print(f"{len(waiting)} of {DEVICES} devices have yet to tell", flush=True)
        time.sleep(2)


if __name__ == "__main__":
    main()
