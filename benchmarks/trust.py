"""What it costs to trust fewer: each option's bytes and time, beside a report without it."""

import asyncio
import secrets
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.measure import Row, rate
from benchmarks.own import own_redis, times
from hubbub.bundles import OpeningKey
from hubbub.bundles.transparency_log import Checkpoint, NoteKey, entry_of, leaf_hash, open_proof
from hubbub.client import Client, MemoryState
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.conservation import Window
from hubbub.errors import BadPayload
from hubbub.runtime.redis.client import connect_redis
from hubbub.sealing.hpke import (
    SEAL_BYTES,
    X25519,
    X_WING,
    Kem,
    PrivateKey,
    filler_info,
    open_sealed,
    seal,
    seal_info,
)
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.token_checks import Paid
from hubbub.signing.log.log_files import prove, tree_root
from hubbub.signing.testing import make_bundle
from hubbub.tokens import poprf
from hubbub.tokens.token import TOKEN_BYTES, new_nonce, token_info

_PAYLOAD_BYTES: Final = 18
_REPORTS: Final = 20_000
_CALL: Final = 500
_TURNS: Final = 25
_DEVICES: Final = 200
_BUNDLES: Final = (10, 50, 200)
_DAY: Final = 86_400
_COST: Final = "what it costs"
_COVERED: Final = """
shuffler = "127.0.0.1:1"

[metrics.crash]
description = "How the app last crashed today, if it did"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "grr"
epsilon = 1.0
values = ["gpu", "disk"]
default = "none"
min_batch = 20
limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }
"""


def seals() -> Iterator[Row]:
    """X-Wing beside X25519: on a device, at the shuffler and its Redis, at the aggregator."""
    halves = OpeningKey(1, secrets.token_bytes(32)).with_x_wing().halves()
    sealed: dict[Kem, list[float]] = {kem: [] for kem in halves}
    opened: dict[Kem, list[float]] = {kem: [] for kem in halves}
    payload, info = bytes(_PAYLOAD_BYTES), b"benchmark"
    for _ in range(_TURNS):  # by turns, so that a busy moment of the machine is both's
        for kem, private in halves.items():
            public = private.public_key()
            envelope = seal(payload, public, info)
            sealed[kem].append(rate(partial(times, 300, seal, payload, public, info), 1))
            opened[kem].append(rate(partial(times, 300, open_sealed, envelope, private, info), 1))
    for what, turns in (("seal", sealed), ("open", opened)):
        by = {kem: median(rates) for kem, rates in turns.items()}
        yield Row(
            f"{what} by X-Wing, one core",
            f"{by[X_WING]:,.0f}/s",
            f"by X25519 {by[X25519]:,.0f}/s",
            by[X_WING] / by[X25519],
            ">= .4",
            more=True,
        )
    lengths = {kem: _PAYLOAD_BYTES + SEAL_BYTES[kem] for kem in halves}
    yield Row(
        "a report by X-Wing on the wire",
        f"{lengths[X_WING]:,} bytes",
        f"by X25519 {lengths[X25519]} bytes",
        lengths[X_WING] / lengths[X25519],
        "what it costs",
    )
    with own_redis() as url:
        costs = asyncio.run(_pool_costs(url, lengths))
    (us, memory_bytes), (own_us, own_held) = costs[X_WING], costs[X25519]
    yield Row(
        "a report by X-Wing into the pool",
        f"{us:.1f} us",
        f"by X25519 {own_us:.1f} us",
        us / own_us,
        "what it costs",
    )
    yield Row(
        "a report by X-Wing in the pool's Redis",
        f"{memory_bytes:,.0f} bytes",
        f"by X25519 {own_held:,.0f} bytes",
        memory_bytes / own_held,
        "what it costs",
    )


def covers() -> Iterator[Row]:
    """A default beside a report: what it takes of the app, and what an epoch more sends."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "metrics.toml"
        source.write_text(_COVERED)
        bundle = make_bundle(source)
    spent: dict[bool, list[float]] = {True: [], False: []}
    sent = []
    for _ in range(_DEVICES):
        clock, shuffler = FakeClock(), FakeShuffler()
        client = Client(bundle.bundle, MemoryState(), shuffler, hold_seconds=None, clock=clock)
        start = time.perf_counter()
        client.report("crash", "gpu")
        spent[False].append(time.perf_counter() - start)
        client.flush()
        clock.advance(_DAY)
        client.flush()
        clock.advance(_DAY)
        start = time.perf_counter()
        client._reporter.cover()  # noqa: SLF001 the part that is timed
        spent[True].append(time.perf_counter() - start)
        client.flush()
        sent.append(sum(len(report.sealed) for report in shuffler.reports()) / 2)
    default, report_us = (1e6 * median(spent[which]) for which in (True, False))
    yield Row(
        "a default said of an epoch",
        f"{default:.0f} us",
        f"report() {report_us:.0f} us",
        default / report_us,
        "what it costs",
    )
    yield Row(
        "an epoch of a device that has nothing to say",
        f"{median(sent):.0f} bytes",
        "with a default or a report, the same",
        1.0,
        "what it costs",
    )


def fillers() -> Iterator[Row]:
    """A filler beside a report: on a device, on the wire, at the aggregator."""
    private = OpeningKey(1, secrets.token_bytes(32)).load()
    payload, public = bytes(_PAYLOAD_BYTES), private.public_key()
    report, filler = seal_info("crash", 1), filler_info("crash", 1)
    sealed = {info: seal(payload, public, info) for info in (report, filler)}
    open_times: dict[bytes, list[float]] = {report: [], filler: []}
    seal_times: dict[bytes, list[float]] = {report: [], filler: []}
    for _ in range(_TURNS):
        for info, envelope in sealed.items():
            seal_times[info].append(1e6 / rate(partial(times, 300, seal, payload, public, info), 1))
            open_times[info].append(1e6 / rate(partial(times, 300, _unseal, envelope, private), 1))
    for what, turns in (
        ("sealed on the device", seal_times),
        ("opened and told apart", open_times),
    ):
        us, report_us = median(turns[filler]), median(turns[report])
        yield Row(
            f"a filler, {what}",
            f"{us:.0f} us",
            f"a report {report_us:.0f} us",
            us / report_us,
            "what it costs",
        )
    yield Row(
        "a filler on the wire, and in the pool",
        f"{len(sealed[filler])} bytes",
        f"a report {len(sealed[report])} bytes",
        len(sealed[filler]) / len(sealed[report]),
        "what it costs",
    )


def _unseal(sealed: bytes, private: PrivateKey) -> None:
    """As the aggregator does: as a report, and if it is none as a filler."""
    try:
        open_sealed(sealed, private, seal_info("crash", 1))
    except BadPayload:
        open_sealed(sealed, private, filler_info("crash", 1))


def tokens() -> Iterator[Row]:
    """A token: asked for and kept on the device, checked at the shuffler, and in its Redis."""
    key, public = poprf.new_key()
    info, spent = token_info("crash", 1), dict[str, list[float]]()
    number = 20
    for _ in range(_TURNS):
        start = time.perf_counter()
        nonces = [new_nonce() for _ in range(number)]
        drawn = [(nonce, poprf.blind(nonce, poprf.new_blind())) for nonce in nonces]
        blinded = time.perf_counter()
        evaluated, proof = poprf.blind_evaluate(
            key, [blinding.element for _, blinding in drawn], info
        )
        issued = time.perf_counter()
        outputs = poprf.finalize(drawn, evaluated, proof, public, info)
        finalized = time.perf_counter()
        expected = [poprf.evaluate(key, nonce, info) for nonce in nonces]
        redeemed = time.perf_counter()
        if expected != outputs:
            raise BadPayload("a token is none")
        device = blinded - start + finalized - issued
        for what, took in (
            ("asked for on the device, its proof checked", device),
            ("evaluated at the issuer, with its proof", issued - blinded),
            ("checked at the shuffler", redeemed - finalized),
        ):
            spent.setdefault(what, []).append(1e6 * took / number)
    for what, turns in spent.items():
        yield Row(f"a token, {what}", f"{median(turns):.0f} us", f"{number} at once", 1.0, _COST)
    with own_redis() as url:
        without, paid = asyncio.run(_paid_pool_costs(url))
    yield Row("a token on the wire", f"{TOKEN_BYTES} bytes", "beside a report", 1.0, _COST)
    yield Row(
        "a report with a token in the pool",
        f"{paid[1]:.0f} bytes of Redis, {paid[0]:.1f} us",
        f"without {without[1]:.0f} bytes, {without[0]:.1f} us",
        paid[1] / without[1],
        _COST,
    )


async def _paid_pool_costs(url: str) -> list[tuple[float, float]]:
    """Of a report without and with a token: microseconds until the pool has it, bytes of Redis."""
    server = await connect_redis(url)
    pool, costs = Pool(server), list[tuple[float, float]]()
    draw = secrets.token_bytes
    for number, is_paid in enumerate((False, True)):
        reports = [draw(66) for _ in range(_REPORTS)]
        sent = [Paid(draw(16), draw(16), report) for report in reports] if is_paid else reports
        before = (await server.client.info("memory"))["used_memory"]
        start = time.perf_counter()
        for first in range(0, _REPORTS, _CALL):
            await pool.add({Window("bench", number): sent[first : first + _CALL]})
        took = time.perf_counter() - start
        after = (await server.client.info("memory"))["used_memory"]
        costs.append((1e6 * took / _REPORTS, (after - before) / _REPORTS))
    await server.close()
    return costs


def logs() -> Iterator[Row]:
    """A bundle's proof of its log, after so many bundles: bytes, and time on a device."""
    key, name = Ed25519PrivateKey.generate(), "log.example.org/app"
    note_key = NoteKey(name, key.public_key().public_bytes_raw())
    for number in _BUNDLES:
        contents = [index.to_bytes(2, "big") for index in range(number)]
        leaves = [leaf_hash(entry_of("bundle", content)) for content in contents]
        checkpoint = Checkpoint.sign(name, number, tree_root(leaves), key)
        line = prove(leaves, number - 1, checkpoint, range(1, number)).dump()
        took = 1e6 / rate(partial(times, 20, _verify, line, contents[-1], note_key, leaves[0]), 1)
        yield Row(
            f"a bundle's proof of its log, after {number} bundles",
            f"{len(line):,} bytes",
            f"checked in {took:,.0f} us at the start",
            1.0,
            "what it costs",
        )


def _verify(line: bytes, content: bytes, key: NoteKey, first: bytes) -> None:
    open_proof(line, content, key).refuse_fork(1, first)


async def _pool_costs(url: str, lengths: dict[Kem, int]) -> dict[Kem, tuple[float, float]]:
    """Of a report of each length: microseconds until the pool has it, and bytes of Redis."""
    server = await connect_redis(url)
    pool, costs = Pool(server), dict[Kem, tuple[float, float]]()
    for number, (kem, length) in enumerate(lengths.items()):
        reports = [secrets.token_bytes(length) for _ in range(_REPORTS)]
        before = (await server.client.info("memory"))["used_memory"]
        start = time.perf_counter()
        for first in range(0, _REPORTS, _CALL):
            await pool.add({Window("bench", number): reports[first : first + _CALL]})
        took = time.perf_counter() - start
        after = (await server.client.info("memory"))["used_memory"]
        costs[kem] = 1e6 * took / _REPORTS, (after - before) / _REPORTS
    await server.close()
    return costs
