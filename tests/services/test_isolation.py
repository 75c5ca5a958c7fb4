"""The n-1 attack: how likely it is that a report leaves among reports of the attacker alone.

The attacker fills the pool with reports of his own until, at worst, nobody else's are left in it,
lets the target's report in, and goes on. What stays of the honest reserve is worked out exactly,
and simulated with the shipping rule and on the shipping pool.
Source of the model: Serjantov, Dingledine, Syverson, From a Trickle to a Flood (2002), section 4.
"""

import random
import re
import secrets
from collections import Counter
from math import lgamma, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from hubbub.conservation import Window
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.shuffler.mixing_policy import Policy, Take
from hubbub.shuffler.pool import Pool

pytestmark = pytest.mark.thorough

Floats = npt.NDArray[np.float64]
DOCS = Path(__file__).parents[2] / "docs" / "operate" / "services.md"


def _log_choose(n: Floats, k: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        array = np.array(np.vectorize(lgamma)(np.clip(n, 0, None) + 1.0))
        array -= np.vectorize(lgamma)(np.clip(k, 0, None) + 1.0)
        array -= np.vectorize(lgamma)(np.clip(n - k, 0, None) + 1.0)
    return np.where((k < 0) | (k > n), -np.inf, array)


def _leaving(pool: int, batch: int, most: int) -> Floats:
    """[h, x]: the chance that x of h honest reports are in a batch drawn from the pool."""
    if batch > pool:
        return np.zeros((most + 1, most + 1))
    h, x = np.meshgrid(np.arange(most + 1.0), np.arange(most + 1.0), indexing="ij")
    logs = _log_choose(h, x) + _log_choose(pool - h, batch - x)
    logs -= _log_choose(np.array(float(pool)), np.array(float(batch)))
    return np.exp(logs)


def isolation(reserve: int, batch: int, floods: int, honest_a_flush: int = 0) -> float:
    """The chance that the target's batch holds no other honest report.

    reserve: honest reports in the pool when the attack begins. floods: batches that the attacker
    flushes before he lets the target in. honest_a_flush: reports of others that he cannot stop.
    """
    pool, most = reserve + batch, reserve + batch
    stays = _leaving(pool, batch, most)
    counts = np.zeros(most + 1)
    counts[reserve] = 1.0

    def arrive(now: Floats) -> Floats:
        return np.concatenate([np.zeros(honest_a_flush), now[: most + 1 - honest_a_flush]])

    def flush(now: Floats) -> Floats:
        after = np.zeros(most + 1)
        for leaving in range(batch + 1):
            if leaving <= most:
                after[: most + 1 - leaving] += (now * stays[:, leaving])[leaving:]
        return after

    for _ in range(floods):
        counts = flush(arrive(counts))
    chance = 0.0
    weight = 1.0  # that the target is still in the pool
    # Given where the target is, the others are drawn from one place less.
    with_target = _leaving(pool - 1, batch - 1, most)
    without = _leaving(pool - 1, batch, most)
    for _ in range(200):
        counts = arrive(counts)
        chance += weight * batch / pool * float((counts * with_target[:, 0]).sum())
        after = np.zeros(most + 1)
        for leaving in range(min(batch, most) + 1):
            after[: most + 1 - leaving] += (counts * without[:, leaving])[leaving:]
        counts = after
        weight *= reserve / pool
        if weight < 1e-12:
            break
    return chance


def _simulated(policy: Policy, low: int, floods: int, honest: int, chance: random.Random) -> bool:
    """One attack on a pool that the shipping rule empties."""
    pool = ["honest"] * low  # the reserve is as many
    for number in range(floods + 400):
        pool += ["honest"] * honest
        if number == floods:
            pool.append("target")
        while True:
            if take := policy.next_take("pool", len(pool), low, 10**6, is_over=False):
                break
            pool.append("attacker")
        chance.shuffle(pool)
        batch, pool = pool[: take.number], pool[take.number :]
        policy.on_batch_sent("pool")
        if "target" in batch:
            return "honest" not in batch
    raise AssertionError("the target never left")


@pytest.mark.parametrize(("floods", "honest"), [(0, 0), (2, 0), (5, 0), (5, 1), (8, 2)])
def test_the_computed_chance_equals_the_simulated_one(floods: int, honest: int) -> None:
    """1,500 attacks; off by more than 6 standard errors with 2e-9."""
    chance = random.Random(f"{floods} {honest}")
    expected = isolation(20, 20, floods, honest)
    policy = Policy(reserve=1.0, max_batch=20)
    runs = 1500
    hits = sum(_simulated(policy, 20, floods, honest, chance) for _ in range(runs))
    assert abs(hits / runs - expected) <= 6 * sqrt(expected * (1 - expected) / runs) + 1e-9


async def test_the_pool_in_redis_draws_as_the_rule_says(server: RedisServer) -> None:
    """1,000 batches of 20 out of 40: how many of 4 marked ones leave is hypergeometric."""
    runs = 1000
    pool, counts = Pool(server), Counter[int]()
    for number in range(runs):
        window = Window("isolation", number)
        reports = [secrets.token_bytes(49) for _ in range(40)]
        marked = set(reports[:4])
        await pool.add({window: reports})
        batch = await pool.take(window, Take(20, 40), await pool.level(window))
        assert batch is not None
        counts[len(marked.intersection(await pool.claim(window, batch, None)))] += 1
    chances = _leaving(40, 20, 4)[4]
    for leaving, expected in enumerate(chances):
        error = sqrt(expected * (1 - expected) / runs)
        assert abs(counts[leaving] / runs - expected) < 6 * error, (leaving, counts, chances)


def test_the_documents_show_the_computed_isolation() -> None:
    rows = re.findall(
        r"^\| ([\d.]+) \| (\d+) \| (\d+) \| (\S+) \|$", DOCS.read_text(), re.MULTILINE
    )
    assert len(rows) >= 8
    for reserve, floods, honest, figure in rows:
        expected = isolation(round(float(reserve) * 100), 100, int(floods), int(honest))
        assert float(figure) == pytest.approx(expected, rel=0.01, abs=1e-12)


def test_a_reserve_and_other_reports_make_the_attack_more_expensive() -> None:
    assert isolation(0, 100, 0) == pytest.approx(1), "without a reserve it always works"
    chances = [isolation(100, 100, floods) for floods in (0, 4, 8, 12)]
    assert chances == sorted(chances)
    assert chances[0] < 0.02
    assert isolation(200, 100, 8) < isolation(100, 100, 8)
    assert isolation(100, 100, 12, 10) < 1e-5 < isolation(100, 100, 12)
