"""A thousand devices teach the model of docs/learn.md, until each has told of itself once.

It runs beside `hubbub up --dev`, in the same folder. An app has one device: it says the one line
with learn(), as often as it likes.
"""

import secrets
import time
from pathlib import Path

from hubbub.catalog import read_bundle
from hubbub.client import Client, MemoryState, Outcome, transport_to

DEVICES = 1000


def person(chance: secrets.SystemRandom) -> tuple[dict[str, float | str], str]:
    """What an app knows of somebody, and whether they left: who uses it much or pays stays."""
    hours, plan = chance.uniform(0, 40), chance.choice(["free", "paid"])
    stays = hours / 45 if plan == "free" else 0.6 + hours / 110
    return {"hours": hours, "plan": plan}, "no" if chance.random() < stays else "yes"


def main() -> None:
    """Say it to every device whose round has not been, again and again."""
    bundle, chance = read_bundle(Path(".hubbub/app.hubbub")), secrets.SystemRandom()
    shuffler = transport_to(bundle.shuffler, roots=bundle.roots)
    waiting = [
        (Client(bundle, MemoryState(), shuffler, hold_seconds=None), *person(chance))
        for _ in range(DEVICES)
    ]
    while waiting:
        left = []
        for device, known, label in waiting:
            outcome = device.learn("churn", known, label)
            if outcome is not Outcome.NOT_ITS_ROUND:
                device.flush()
            if outcome not in {Outcome.ALREADY_REPORTED, Outcome.OVER_BUDGET}:
                left.append((device, known, label))
        waiting = left
        print(f"{len(waiting)} of {DEVICES} devices have yet to tell", flush=True)
        time.sleep(2)


if __name__ == "__main__":
    main()
