"""Floor 2. From totals to answers, pure: no network, no store. numpy allowed."""

from hubbub.analysis.answer import CONFIDENCE, OF_NUMBERS, Answer, Twins, ValueAnswer
from hubbub.analysis.answering import answer, answer_lists, answer_tiers, likely, only_of_all
from hubbub.analysis.comparisons.association import Association
from hubbub.analysis.comparisons.change import Change, changes
from hubbub.analysis.comparisons.cross import Cell, Cross, Slice, crossed
from hubbub.analysis.comparisons.effect import (
    EFFECT_PERCENTILES,
    ArmEstimate,
    Effect,
    detectable_effect,
    effect_confidence,
    effects,
    ratio_p_value,
    rows_of,
)
from hubbub.analysis.comparisons.order import Top, TopValue, top
from hubbub.analysis.comparisons.trend import Followed, joined_shares
from hubbub.analysis.estimators.consistency import base_cut, norm_sub, simplex, within_ends
from hubbub.analysis.estimators.vectorized_estimate import estimate
from hubbub.analysis.fake_reports.plausible import Plausibility, combine, plausibility
from hubbub.analysis.fake_reports.poisoning import Attack, maximal_gain
from hubbub.analysis.figures import Figure, back_in_weeks, conversions, count_of, rate_of
from hubbub.analysis.numbers import Mean
from hubbub.analysis.percentiles import (
    PERCENTILES,
    Percentile,
    PercentileShift,
    ShareBelow,
    check_percentiles,
    percentile_shifts,
    percentiles_of,
    shares_below,
)
from hubbub.analysis.ranks import Ranks, ranks_of
from hubbub.analysis.strings.decode import decode, decode_counts
from hubbub.analysis.strings.design import Collection
from hubbub.analysis.strings.likely_strings import LikelyString
from hubbub.analysis.trends.trend import FALSE_ALARM, MIN_POINTS, known_variances, line_through
from hubbub.analysis.uncertainty.discoveries import p_values, stand_out
from hubbub.analysis.uncertainty.intervals import (
    POPULATION,
    REPORTERS,
    Whose,
    anytime_confidence,
    interval,
)

__all__ = [
    "CONFIDENCE",
    "EFFECT_PERCENTILES",
    "FALSE_ALARM",
    "MIN_POINTS",
    "OF_NUMBERS",
    "PERCENTILES",
    "POPULATION",
    "REPORTERS",
    "Answer",
    "ArmEstimate",
    "Association",
    "Attack",
    "Cell",
    "Change",
    "Collection",
    "Cross",
    "Effect",
    "Figure",
    "Followed",
    "LikelyString",
    "Mean",
    "Percentile",
    "PercentileShift",
    "Plausibility",
    "Ranks",
    "ShareBelow",
    "Slice",
    "Top",
    "TopValue",
    "Twins",
    "ValueAnswer",
    "Whose",
    "answer",
    "answer_lists",
    "answer_tiers",
    "anytime_confidence",
    "back_in_weeks",
    "base_cut",
    "changes",
    "check_percentiles",
    "combine",
    "conversions",
    "count_of",
    "crossed",
    "decode",
    "decode_counts",
    "detectable_effect",
    "effect_confidence",
    "effects",
    "estimate",
    "interval",
    "joined_shares",
    "known_variances",
    "likely",
    "line_through",
    "maximal_gain",
    "norm_sub",
    "only_of_all",
    "p_values",
    "percentile_shifts",
    "percentiles_of",
    "plausibility",
    "ranks_of",
    "rate_of",
    "ratio_p_value",
    "rows_of",
    "shares_below",
    "simplex",
    "stand_out",
    "top",
    "within_ends",
]
