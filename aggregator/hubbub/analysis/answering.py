"""Answering: from totals to an answer, the same from every face."""

from collections.abc import Sequence

from hubbub.analysis.answer import CONFIDENCE, Answer, LikelyString
from hubbub.analysis.families import Tier, family_for
from hubbub.analysis.families.tree import Trees
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Totals


def answer(
    mechanism: AnyMechanism,
    totals: Totals,
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
) -> Answer:
    """Estimates for the listed `values`; for `candidates` if over strings; of a range if numbers.

    Of a prefix tree without candidates, for the strings that are found.

    Raises:
        BadParameter: candidates where none belong, or none for strings that need them.
        BatchTooSmall: not a single report.
        ShapeMismatch: totals of another shape than the mechanism's.
    """
    return answer_tiers([(mechanism, totals)], values, candidates, confidence)


def answer_tiers(
    tiers: Sequence[Tier],
    values: Sequence[str] | None,
    candidates: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    repeats: int = 1,
) -> Answer:
    """As `answer`, from people who report at different epsilons, each a mechanism with totals.

    Shares are weighted by inverse variance: the best there is if which epsilon a person chose has
    nothing to do with the value; otherwise the answer leans to those who chose the larger one.
    repeats: how many of the reports one device may have made; see `figures`. A decode of RAPPOR
        strings reads its noise off what it cannot explain, repeated lies included; `fit_p_value` is
        judged by them.
    """
    live_tiers = with_reports(tiers)
    mechanism, _ = live_tiers[0]
    own = family_for(mechanism)
    if own.KIND != "strings" and candidates:
        raise BadParameter("this metric is not over strings: leave candidates out")
    if own.KIND == "strings" and not candidates and not isinstance(own, Trees):
        raise BadParameter("this metric is over strings: say which to look for (candidates)")
    names = candidates if own.KIND == "strings" else own.labels(mechanism, values)
    return own.answer(live_tiers, names, confidence, repeats)


def likely(tiers: Sequence[Tier], answered: Answer, false_share: float) -> tuple[LikelyString, ...]:
    """Strings that are likely held beside those that a prefix tree's answer has, the surest first.

    answered: what the same tiers answered, without candidates.
    false_share: of them, the share that nobody holds, at most on average, in (0, 1).

    Raises:
        BadParameter: of what finds no strings; a share that is none.
        BatchTooSmall, ShapeMismatch: as `answer`.
    """
    if not 0 < false_share < 1:
        raise BadParameter(
            f"likely {false_share} is outside (0, 1): the share of false strings to bear, say 0.5"
        )
    live_tiers = with_reports(tiers)
    own = family_for(live_tiers[0][0])
    if not isinstance(own, Trees):
        raise BadParameter(f"{live_tiers[0][0].NAME} finds no strings: leave likely out")
    return own.likely(live_tiers, answered, false_share)


def with_reports(tiers: Sequence[Tier]) -> Sequence[Tier]:
    """Those that hold a report; the first, where none does."""
    return [tier for tier in tiers if tier[1].reports] or list(tiers[:1])
