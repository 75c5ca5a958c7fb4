"""Breakdowns: each part of what is public beside all others, and the marks over all of its rows."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.stats import false_discovery_control

from hubbub.aggregator.query.breakdowns import part_rows, parts_by
from hubbub.aggregator.query.totals import EpochSelection
from hubbub.aggregator.store.contract import Counted as Held
from hubbub.analysis.answer import Answer
from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import draw
from hubbub.analysis.families.draw_totals import Counts
from hubbub.bundles import Bundle
from hubbub.conservation import Window
from hubbub.mechanisms import Totals
from hubbub.signing.testing import make_bundle
from tests.statistics.calibration.few_reports import score_test
from tests.statistics.calibration.statement import Counted, Setting, Statement, mistake
from tests.support.catalogs import catalog_toml, metric_toml

SHARE = Statement(
    "95% interval of a part's own share",
    0.95,
    tuple(f"PartRow.{name}" for name in ("low", "high", "share", "estimate", "stderr")),
)
DIFFERENCE = Statement(
    "95% interval of a part's difference from all others",
    0.95,
    ("PartRow.difference_low", "PartRow.difference_high", "PartRow.difference"),
)
SMALL_P = mistake("parts alike, and p < .05", 0.05, ("PartRow.p_value",))
ANY = mistake("parts alike, and any row is marked", 0.05, ("PartRow.stands_out",))
FALSE = mistake("of the marked rows, those that do not differ", 0.05, ("PartRow.stands_out",))
OF_P_VALUES = Statement("marks are those of all p-values", 1.0, ("PartRow.stands_out",))
MARKS = Statement("marks beside those of the score test", 0.95, ("PartRow.stands_out",))
BARE = Statement("what is marked has an interval without 0", 1.0, ("PartRow.stands_out",))
EPOCH = 20_000


@cache
def _bundle(mechanism: str, epsilon: float, values: int, parts: int) -> Bundle:
    metric = metric_toml(
        "theme",
        mechanism=mechanism,
        epsilon=epsilon,
        values=[f"v{n}" for n in range(values)],
        breakdown={"os": [f"p{n}" for n in range(parts)]},
        min_batch=1000,
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.toml"
        path.write_text(catalog_toml(metric))
        return make_bundle(path).bundle


def _broken(
    bundle: Bundle,
    sizes: Sequence[int],
    populations: Sequence[Sequence[float]],
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """Each part's reporters are drawn from its population; the one that differs is the first."""
    theme = bundle.metric("theme")
    mechanism, names = theme.randomizer, theme.values
    assert names
    counts: dict[str, Sequence[int]] = {}
    totals: dict[str, Totals] = {}
    for place, (size, shares) in enumerate(zip(sizes, populations, strict=True)):
        counts[f"p{place}"] = chance.multinomial(size, shares).tolist()
        totals[f"p{place}"] = draw(mechanism, range(len(shares)), counts[f"p{place}"], chance)

    def answer(parts: Sequence[str]) -> Answer:
        cells = np.sum([totals[part].cells for part in parts], axis=0).tolist()
        reports = sum(totals[part].reports for part in parts)
        return answer_tiers([(mechanism, Totals(cells=cells, reports=reports))], names)

    counted = {
        Window(f"theme@os={part}", EPOCH): Held(part_totals.reports)
        for part, part_totals in totals.items()
    }
    whole = EpochSelection(theme, (EPOCH,), counted)
    parts = parts_by(bundle, whole)
    every = list(totals)
    assert [part.name for part in parts if part.is_answered] == every
    pairs = {part: (answer([part]), answer([o for o in every if o != part])) for part in every}
    rows = part_rows(pairs)
    scores = np.concatenate([score_test(mechanism, rest, own) for own, rest in pairs.values()])
    best = false_discovery_control(scores) <= 0.05

    low, high, p_values = (
        np.array([getattr(row, name) for row in rows], dtype=float)
        for name in ("difference_low", "difference_high", "p_value")
    )
    true = _differences(np.array(populations), np.array(sizes))
    true_shares = np.concatenate([np.array(counts[part]) / totals[part].reports for part in every])
    marked = np.array([row.stands_out for row in rows])
    inside = [row.low <= share <= row.high for row, share in zip(rows, true_shares, strict=True)]
    yield SHARE, sum(inside), len(rows)
    yield DIFFERENCE, ((low <= true) & (true <= high)).sum(), len(rows)
    yield OF_P_VALUES, float((marked == (false_discovery_control(p_values) <= 0.05)).all()), 1
    yield BARE, (marked & ((low > 0) | (high < 0))).sum(), marked.sum()
    if true.any():
        yield FALSE, (marked & (true == 0)).sum() / max(marked.sum(), 1), 1
        yield MARKS, (marked & best).sum(), best.sum()
    else:
        yield SMALL_P, float(p_values[0] < 0.05), 1
        yield ANY, float(marked.any()), 1


def _differences(populations: Floats, sizes: Counts) -> Floats:
    """Each part's shares less those of all others together, row by row; 0 is exactly that."""
    others = sizes @ populations - sizes[:, None] * populations
    rest = others / (sizes.sum() - sizes)[:, None]
    differences: Floats = np.round(populations - rest, 12).reshape(-1)
    return differences


def _moved_shares(
    built: tuple[str, float, int],
    sizes: Sequence[int],
    moves: Sequence[tuple[float, int]],
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """Even values; among the first parts' people pairs of values differ by so much.

    built: mechanism, epsilon, how many values. moves: of the first parts, by how much, and how many
        pairs.
    """
    populations = np.full((len(sizes), built[2]), 1 / built[2])
    for shares, (by, pairs) in zip(populations, moves, strict=False):
        shares[0 : 2 * pairs : 2] += by
        shares[1 : 2 * pairs : 2] -= by
    return _broken(_bundle(*built, len(sizes)), sizes, populations.tolist(), chance)


SETTINGS: Sequence[Setting] = [
    Setting(
        f"{mechanism} {epsilon:g}, {values} values in {len(sizes)} parts, "
        + (("", "one differs", "one much, one little")[len(moves)] or "all alike"),
        runs,
        partial(_moved_shares, (mechanism, epsilon, values), sizes, moves),
    )
    for mechanism, epsilon, values, sizes, moves, runs in (
        ("rr", 2.0, 2, (8000, 3000), [], 100),
        ("grr", 4.0, 8, (10_000, 5000, 1000), [], 150),
        ("unary.oue", 1.0, 16, (4000,) * 8, [], 60),
        ("rr", 2.0, 2, (6000, 6000, 6000), [(0.06, 1)], 100),
        ("grr", 4.0, 8, (10_000, 8000, 5000, 3000), [(0.05, 1)], 100),
        ("grr", 6.0, 20, (3000,) * 4, [(0.02, 8), (0.016, 1)], 20),
    )
]
