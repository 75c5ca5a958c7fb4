"""Floor 2. From totals to answers, pure: no network, no store. numpy allowed."""

from hubbub.analysis.answer import Answer, ValueAnswer, answer, answer_tiers
from hubbub.analysis.consistency import base_cut, norm_sub, simplex
from hubbub.analysis.decode import Decoded, decode, decode_counts
from hubbub.analysis.design import Collection
from hubbub.analysis.estimate import estimate
from hubbub.analysis.intervals import discoveries, interval, p_values

__all__ = [
    "Answer",
    "Collection",
    "Decoded",
    "ValueAnswer",
    "answer",
    "answer_tiers",
    "base_cut",
    "decode",
    "decode_counts",
    "discoveries",
    "estimate",
    "interval",
    "norm_sub",
    "p_values",
    "simplex",
]
