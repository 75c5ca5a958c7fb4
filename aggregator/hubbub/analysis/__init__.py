"""Floor 2. From totals to answers, pure: no network, no store. numpy allowed."""

from hubbub.analysis.answer import Answer, ValueAnswer, answer
from hubbub.analysis.decode import Decoded, decode
from hubbub.analysis.intervals import discoveries, interval

__all__ = [
    "Answer",
    "Decoded",
    "ValueAnswer",
    "answer",
    "decode",
    "discoveries",
    "interval",
]
