"""Breakdowns: each part of what is public beside all others, and the marks over all of its rows."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

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
MARKED_PART = Statement("a part that differs is marked", 0.9, ("PartRow.stands_out",))
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
    rows = part_rows(
        {part: (answer([part]), answer([o for o in every if o != part])) for part in every}
    )

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
    yield BARE, (marked & ((low > 0) | (high < 0))).sum(), marked.sum()
    if true.any():
        yield FALSE, (marked & (true == 0)).sum() / max(marked.sum(), 1), 1
        yield MARKED_PART, marked[:2].sum(), 2
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
    built: tuple[str, float, int], sizes: Sequence[int], by: float, chance: np.random.Generator
) -> Iterator[Counted]:
    """Even values; among the first part's people the first two differ by so much.

    built: mechanism, epsilon, how many values.
    """
    values = built[2]
    even = [1 / values] * values
    first = [1 / values + by, 1 / values - by, *even[2:]]
    bundle = _bundle(*built, len(sizes))
    return _broken(bundle, sizes, [first, *[even] * (len(sizes) - 1)], chance)


SETTINGS: Sequence[Setting] = [
    Setting(
        f"{mechanism} {epsilon:g}, {values} values in {len(sizes)} parts, "
        + ("one differs" if by else "all alike"),
        runs,
        partial(_moved_shares, (mechanism, epsilon, values), sizes, by),
    )
    for mechanism, epsilon, values, sizes, by, runs in (
        ("rr", 2.0, 2, (8000, 3000), 0.0, 100),
        ("grr", 4.0, 8, (10_000, 5000, 1000), 0.0, 150),
        ("unary.oue", 1.0, 16, (4000,) * 8, 0.0, 60),
        ("rr", 2.0, 2, (6000, 6000, 6000), 0.06, 100),
        ("grr", 4.0, 8, (10_000, 8000, 5000, 3000), 0.05, 100),
    )
]
