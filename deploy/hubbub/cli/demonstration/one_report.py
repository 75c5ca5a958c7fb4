"""What left one device: the randomized payload of an answer, and what it could have meant."""

import asyncio
from math import exp
from typing import Final

from hubbub.cli.installation_keys import DEMO_DEVICE
from hubbub.cli.local.local_run import LocalRun
from hubbub.cli.terminal.output import filled
from hubbub.client import Client
from hubbub.conservation import Window
from hubbub.errors import ServiceUnavailable
from hubbub.runtime.redis.client import connect_redis
from hubbub.simulation.devices import Person

_FLUSH_SECONDS: Final = 60.0
_MAX_MEANINGS: Final = 3
_HEX: Final = 16  # bytes of a sealed report to print


def send_one(run: LocalRun, person: Person, people: int, alone: str, crowd: str) -> list[str]:
    """Sends one person's reports before all others, so that only theirs are in the pool.

    `alone` and `crowd` are the metrics that ask one question in both ways.

    Returns:
        The lines that explain one report: what it was, what it could have meant, who can tell.

    Raises:
        ServiceUnavailable: the shuffler does not accept them.
    """
    client = Client.from_bundle(run.bundle_path, state_dir=run.home / DEMO_DEVICE)
    for metric, value in person.items():
        client.report(metric, value)
    if not client.flush(_FLUSH_SECONDS):
        raise ServiceUnavailable(f"the shuffler accepts no reports: see {run.home / 'log'}")
    payloads = {payload.metric: payload for payload in client.ledger().payloads}
    client.close()

    async def pooled(window: Window) -> bytes:
        server = await connect_redis(run.shuffler_redis)
        try:
            sealed: bytes = await server.ask("SRANDMEMBER", window.key("shuffler:pool"))
        finally:
            await server.close()
        return sealed

    payload, other = payloads[alone], payloads[crowd]
    sealed = asyncio.run(pooled(Window(alone, payload.epoch)))
    meant, meant_other = payload.meanings(), other.meanings()
    if not (meant and meant_other and other.stream and payload.stream):
        return []
    odds = meant[0][1] / meant[-1][1]
    at_most = exp(payload.stream.report_loss)
    likely = ", ".join(f"{value} {chance:.0%}" for value, chance in meant[:_MAX_MEANINGS])
    value, sure = meant_other[0]
    return [
        f"One of {people:,} devices, and its answer to {alone}:",
        f"  the person's answer, which stays there   {person[alone]}",
        f"  the randomized payload, in hex           {payload.payload.hex()}",
        f"  what was sent: it, encrypted             {sealed[:_HEX].hex()}...",
        f"  what it could have meant                 {likely},",
        f"                                           ..., {meant[-1][0]} {meant[-1][1]:.0%}",
        filled(
            "Nobody can tell, not even someone who breaks the encryption: each of the "
            f"{len(meant)} answers could have produced these bytes, the likeliest {odds:.1f} times "
            f"as often as the least likely (the bound is {at_most:.1f} times). Over many people "
            "the random answers average out; over one person they do not."
        ),
        filled(
            f"Asked in a crowd ({crowd}) the same device randomized less, and sent "
            f"{other.payload.hex()}: read by itself, that report is {sure:.0%} likely to mean "
            f'"{value}". Only the crowd hides it: the shuffler releases '
            f"{other.stream.crowd or 0:,} reports or more at once, in a random order, or none."
        ),
    ]
