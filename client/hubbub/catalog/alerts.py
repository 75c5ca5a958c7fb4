"""Alerts on answers: the condition of each, and the confidence that it needs.

[metrics.theme]
alert = { when = "change", confidence = 0.99 }
alert = { when = "share of dark above 0.1" }
alert = { when = "mean below 250" }
alert = { when = "p95 above 250" }
alert = { when = "back in week 1 below 0.3" }
"""

import math
import re
from collections.abc import Sequence
from typing import Final, Literal

from hubbub.errors import BadParameter
from hubbub.fields.field import check, setting
from hubbub.fields.frozen import frozen
from hubbub.fields.kinds import number, text

_RULE: Final = re.compile(
    r"(mean|p([0-9.]{1,8})|share of (.+)|(.+)) (above|below) (\S+)", re.DOTALL
)
# Number of values named in the error about an unknown one.
_NAMED: Final = 5
_WORDS: Final = (
    'write "change", "share of VALUE above 0.1" (or below), "mean above 250", "p95 above 250", or '
    'a figure, as "cart to paid below 0.3"'
)


@frozen(kw_only=True)
class Rule:
    """The condition of an alert.

    Args:
        value: whose share, or the figure; "" for a mean, a percentile, or a change (of any value).
        above: whether the alert is for values above the limit.
        limit: in the metric's unit, a share, or a rate.
        percentile: in (0, 100); 0 for the other kinds.
    """

    of: Literal["change", "share", "mean", "percentile", "figure"]
    value: str = ""
    above: bool = True
    limit: float = 0.0
    percentile: float = 0.0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@frozen()
class Alert:
    """The condition that is checked once an epoch is over. Raises BadParameter."""

    when: str = setting(
        text("says when to send an alert"),
        "`change`, of any value since the epoch before; or `share of VALUE above NUMBER`, or "
        "`mean above NUMBER`, or `p95 above NUMBER` of any percentile, or a conversion, a rate or "
        "a share that came back, as `back in week 1 above NUMBER`; each also `below`.",
        '"change"',
        write=_WORDS,
    )
    confidence: float = setting(
        number("a level", 0.8, 0.999999),
        "How sure it has to be: of epochs in which it is not so, 1 less this call at most.",
        "0.99",
        default=0.99,
    )

    def __post_init__(self) -> None:
        check(self)
        self.rule()

    def rule(self) -> Rule:
        """The parsed `when`. Raises BadParameter."""
        if self.when == "change":
            return Rule(of="change")
        match = _RULE.fullmatch(self.when)
        if not match:
            raise BadParameter(f"when {self.when[:80]!a} is not a rule; {_WORDS}")
        begin = f"when {self.when[:80]!a}: its"
        limit, percentile = _number(match[6]), _number(match[2] or "0")
        above, value, figure = match[5] == "above", match[3], match[4]
        if match[2] and not 0 < percentile < 100:  # noqa: PLR2004 percent
            raise BadParameter(f"{begin} percentile is outside (0, 100); write p95")
        if figure and 0 < limit < math.inf:
            return Rule(of="figure", value=figure, above=above, limit=limit)
        if not (figure or value) and math.isfinite(limit):
            of: Literal["mean", "percentile"] = "percentile" if match[2] else "mean"
            return Rule(of=of, above=above, limit=limit, percentile=percentile)
        if value is not None and 0 < limit < 1:
            return Rule(of="share", value=value, above=above, limit=limit)
        span = "(0, 1), as a share is; write 0.1 for 10%" if value else "the numbers"
        span += " above 0" if figure else ""
        raise BadParameter(f"{begin} number is outside {span}")

    def check_fits(
        self, kind: str, values: Sequence[str] | None, figures: Sequence[str], *, parts: bool
    ) -> None:
        """Raises BadParameter if answers, of `parts` of a range or not, cannot meet the rule."""
        rule = self.rule()
        if rule.of == "figure" and rule.value not in figures:
            has = f"the metric has {', '.join(figures[:_NAMED])}" if figures else _WORDS
            raise BadParameter(f"alert: {rule.value[:60]!a} is no figure of the metric; {has}")
        if rule.of == "figure" and kind != "vectors" and not rule.limit < 1:
            raise BadParameter(f"alert: {rule.value[:60]!a} is a share; write a number below 1")
        if rule.of not in {"change", "figure"} and kind == "vectors":
            raise BadParameter(
                'alert: a vector only supports "change"; a rate also supports '
                '"A per B above 0.1": write one of these'
            )
        if rule.of == "share" and kind == "numbers":
            raise BadParameter('alert: numbers have no shares; write "mean above NUMBER"')
        if rule.of == "mean" and kind != "numbers":
            if parts:
                raise BadParameter('alert: edges give no mean; write "p50 above NUMBER"')
            raise BadParameter('alert: only numbers have a mean; write "share of VALUE above 0.1"')
        if rule.of == "percentile" and not parts:
            raise BadParameter(
                "alert: only numbers with buckets have percentiles; give the metric buckets or "
                "edges, or write another rule"
            )
        if rule.of == "share" and values is not None and rule.value not in values:
            has = ", ".join(values[:_NAMED]) + (", ..." if len(values) > _NAMED else "")
            raise BadParameter(
                f"alert: {rule.value[:60]!a} is not one of the metric's values, as {has}"
            )

    def check_says_something(self, low: float, high: float) -> None:
        """Raises BadParameter if all or no numbers of the range [low, high] are beyond the limit.

        Bundles made earlier may contain such a limit, and are read.
        """
        rule = self.rule()
        if rule.of in {"mean", "percentile"} and not low < rule.limit < high:
            raise BadParameter(
                f"alert: a {rule.of} is from {low:g} to {high:g}, so {self.when[:80]!a} is always "
                "true or never true; write a number between them"
            )
