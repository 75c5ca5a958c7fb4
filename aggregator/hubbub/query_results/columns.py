"""The columns of an answer's table, once for every face that shows one; a new one is one line.

What is not a column here is still a field of the row, for programs: JSON, CSV, Parquet, frames.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

QueryName = Literal[
    "estimates",
    "percentiles",
    "top",
    "compare",
    "trend",
    "cross",
    "breakdown",
    "experiment",
    "figures",
    "metrics",
    "status",
    "model",
]
Unit = Literal[
    "text",
    "count",  # of reports, exact
    "reports",  # of reports, estimated; of a mean, in the metric's own unit
    "share",  # of the reports
    "level",  # a share; of a mean, in the metric's own unit
    "change",  # of a level; of a share in percentage points
    "probability",
    "confidence",
    "epsilon",  # nats
    "flag",  # said where it is true
    "number",  # of any size
    "verdict",  # yes, no, or not known
    "time",  # ISO 8601, UTC
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Args:
        title: heading; "{level}" stands for the answer's confidence.
        meaning: a sentence without its full stop, for Prometheus' help and the page's hints.
        to: field of the other end, if the column is an interval.
        mean_title: heading for a mean, if it differs.
        of_means: whether a mean has it.
        gauge: whether Prometheus gets it.
        spare: narrow terminals omit columns in this order, from 1 on; 0 stays.
    """

    field: str
    title: str
    unit: Unit
    meaning: str
    to: str = ""
    mean_title: str = ""
    of_means: bool = True
    gauge: bool = False
    spare: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a row that it shows: one, or both ends of an interval."""
        return (self.field, self.to) if self.to else (self.field,)


def _column(field: str, unit: Unit, meaning: str, *, title: str = "", **declaration: Any) -> Column:
    """Makes a column; without a title its heading is the field's name."""
    title = title or field.replace("_", " ")
    return Column(field=field, title=title, unit=unit, meaning=meaning, **declaration)


def _ends(
    unit: Unit,
    meaning: str = "ends of the interval",
    *,
    prefix: str = "",
    title: str = "{level} interval",
    **declaration: Any,
) -> Column:
    """Makes the column of an interval; `prefix` is the prefix of the names of its ends' fields."""
    return _column(f"{prefix}low", unit, meaning, title=title, to=f"{prefix}high", **declaration)


OF_CLASS: Final = _column(
    "of_class", "text", "of softmax; coefficients of a column sum to 0 over classes", title="class"
)
"""What a model of one score has not."""

SLICE: Final = _column("slice", "text", "value of the third part", title="by")
"""What a cross table of two parts has not."""

PART: Final = _column("part", "text", "value of the public field")
"""What figures of all devices have not."""

_DATE: Final = _column(
    "date", "text", "its day or hour, or the first day of a week; UTC", title="epoch"
)
_VALUE: Final = _column("value", "text", "what was reported")
_ESTIMATE: Final = _column(
    "estimate",
    "reports",
    "unbiased estimate, in reports; of a mean, in the metric's own unit",
    gauge=True,
)
_INTERVAL: Final = _ends(
    "reports", "ends of the estimate's interval, in the unit of the estimate", gauge=True
)
_SHARE: Final = _column(
    "share",
    "share",
    "estimate as a share of the reports; not of a mean",
    of_means=False,
    gauge=True,
    spare=5,
)
_RANK: Final = _column(
    "rank", "count", "place by estimate, the largest first", of_means=False, spare=3
)


COLUMNS: Final[Mapping[QueryName, Sequence[Column]]] = {
    "estimates": (
        _VALUE,
        _ESTIMATE,
        _column("stderr", "reports", "standard error of the estimate", title="std. error", spare=2),
        _INTERVAL,
        _SHARE,
        _RANK,
        _column(
            "detected", "flag", "whether the value stands out from zero", of_means=False, spare=4
        ),
        _column(
            "consistent",
            "reports",
            "post-processed: never below zero, summing to the reports; biased for a single value",
            of_means=False,
            spare=1,
        ),
    ),
    "percentiles": (
        _column("value", "text", "a percentile, or below what", title="asked"),
        _column(
            "number",
            "number",
            "in the metric's own unit; inside its part as if numbers were spread evenly",
        ),
        _ends(
            "number",
            "ends of the percentile's interval, which are edges of buckets",
            prefix="number_",
        ),
        _column(
            "share", "share", "of the numbers, which lies below the number", title="share below"
        ),
        _ends(
            "share",
            "ends of the share's interval, if the number was requested",
            prefix="share_",
            title="share's {level} interval",
        ),
        _column(
            "reaches",
            "text",
            "ends of the interval at an end of the range, where the true value may be outside",
            title="reaches the end of the range",
        ),
    ),
    "top": (
        _VALUE,
        _RANK,
        _SHARE,
        _ESTIMATE,
        _INTERVAL,
        _column(
            "ahead_confidence",
            "confidence",
            "how sure that the value is ahead of the next one",
            title="ahead",
        ),
    ),
    "compare": (
        _VALUE,
        _column("before", "level", "share of the reports before, or the mean", spare=2),
        _column("after", "level", "share of the reports after, or the mean", spare=3),
        _column(
            "difference",
            "change",
            "after minus before, in percentage points; of means, in the metric's own unit",
            title="difference (points)",
            mean_title="difference",
        ),
        _ends("change"),
        _column(
            "p_value",
            "probability",
            "for this single row: probability of a difference this large if nothing has changed",
            title="p (single row)",
            spare=1,
        ),
        _column("changed", "flag", "whether it differs beyond what chance explains"),
    ),
    "trend": (
        _VALUE,
        _DATE,
        _column("reports", "count", "reports of the epoch from devices that had the value"),
        _column("share", "level", "share of the reports, or the mean", mean_title="mean"),
        _ends("level"),
        _column("line", "level", "the likely truth by all epochs together", spare=1),
        _ends("level", "ends of the line's band", prefix="line_", title="{level} band", spare=2),
    ),
    "cross": (
        SLICE,
        _column("row", "text", "value of the first part"),
        _column("column", "text", "value of the second part"),
        _column("within", "share", "share of the cell's row", title="of its row"),
        _ends("share", "ends of the share's interval", prefix="within_"),
        _column("estimate", "reports", "unbiased estimate, in reports", title="reports", spare=2),
        _ends("reports", "ends of the estimate's interval", title="{level} of reports", spare=1),
        _column(
            "departs",
            "flag",
            "whether the cell differs from independent parts",
            title="beyond chance",
        ),
    ),
    "breakdown": (
        PART,
        _VALUE,
        _column("reports", "count", "reports of the part", spare=3),
        _column("share", "level", "share of the part's reports, or the mean", mean_title="mean"),
        _ends("level"),
        _column(
            "difference",
            "change",
            "minus the share, or mean, of the field's other values together; shares in percentage "
            "points",
            title="to all others (points)",
            mean_title="to all others",
            spare=4,
        ),
        _ends(
            "change",
            "ends of the difference's interval",
            prefix="difference_",
            title="{level} of that",
            spare=2,
        ),
        _column(
            "p_value",
            "probability",
            "for this single row: probability of a difference this large if there is none",
            title="p (single row)",
            spare=1,
        ),
        _column(
            "stands_out",
            "flag",
            "whether the part differs from all others beyond what chance explains",
            title="beyond chance",
        ),
    ),
    "experiment": (
        _column("metric", "text", "that is measured"),
        _column("arm", "text", "that is beside the control arm"),
        _column("measure", "text", "share, mean or percentile"),
        _column("unit", "text", "of a mean or percentile", spare=3),
        _column("control", "number", "in the control arm"),
        _column("measured", "number", "in the other arm", title="arm's"),
        _column("difference", "number", "the arm's minus the control's", title="effect"),
        _ends(
            "number",
            "ends of the effect's interval: all of them hold together, at every look",
            title="{level} at all looks",
        ),
        _column("shown", "flag", "whether the interval excludes 0"),
        _column(
            "detectable",
            "number",
            "the smallest effect that this many reports show with a chance of 80%",
            title="would show",
            spare=1,
        ),
    ),
    "figures": (
        PART,
        _column("figure", "text", "a conversion, a number of actives, a share that came back"),
        _column("dates", "text", "its epochs; of cohorts their first weeks", title="epochs"),
        _column("estimate", "level", "a share, a rate, or a number of devices"),
        _ends("level"),
        _column("stderr", "level", "standard error of the estimate", title="std. error", spare=2),
        _column("reports", "count", "reports of its epochs", spare=1),
        _column("note", "text", "what limits it, such as a window that is running", spare=3),
    ),
    "metrics": (
        _column("name", "text", "its name in the catalog", title="metric"),
        _column("kind", "text", "values, strings, ranges or a mean", title="asks for", spare=4),
        _column("mechanism", "text", "what randomizes on the device", spare=3),
        _column("epsilon", "epsilon", "of one report, as proven, rounded up", spare=2),
        _column("reports", "count", "reports counted, over all epochs"),
        _column("waiting", "count", "reports that the shuffler holds"),
        _column("updated", "time", "when the last report was counted", title="last counted"),
    ),
    "status": (
        _column("stream", "text", "a metric's name, and its tier"),
        _DATE,
        _column("acknowledged", "count", "accepted by the shuffler"),
        _column("dummies", "count", "added to crowds by the shuffler; no person's", spare=2),
        _column("pooled", "count", "wait at the shuffler for a crowd"),
        _column("in_flight", "count", "on their way in a batch"),
        _column("counted", "count", "in the totals"),
        _column("duplicate", "count", "sent again, counted once"),
        _column("rejected", "count", "refused by the aggregator, with a reason"),
        _column(
            "fillers", "count", "empty reports that hide that there was nothing to report", spare=3
        ),
        _column("withheld", "count", "too few to hide in a crowd; deleted"),
        _column("balanced", "verdict", "whether no report is lost or counted twice"),
    ),
    "model": (
        OF_CLASS,
        _column("name", "text", "a feature, or a value or band of one", title="column"),
        _column("coefficient", "number", "per unit of the feature"),
        _ends("number", "ends of the coefficient's interval, for the coins and who took part"),
        _column("stderr", "number", "of the coefficient", title="standard error", spare=1),
    ),
}

_EPOCHS: Final = ("metric", "dates", "since", "until", "final", "reports")
_METHOD: Final = ("mechanism", "epsilon", "confidence", "unit")
_SIDES: Final = ("before_dates", "after_dates", "before_reports", "after_reports")
_SURE: Final = ("confidence", "set_confidence", "order_confidence")

HEADS: Final[Mapping[QueryName, Sequence[str]]] = {
    "estimates": (*_EPOCHS, "reports_stderr", *_METHOD),
    "percentiles": (*_EPOCHS, *_METHOD),
    "top": ("metric", "dates", "final", "reports", *_SURE),
    "compare": ("metric", *_SIDES, "confidence", "unit"),
    "trend": ("metric", "kind", "final", "confidence", "unit"),
    "cross": ("metric", "rows", "columns", "by", "dates", "reports", "confidence"),
    "breakdown": ("metric", "by", "dates", "confidence", "unit"),
    "experiment": ("experiment", "dates", "final", "confidence", "ratio_p_value", "verdict"),
    "figures": ("metric", "kind", "by", "final", "confidence"),
    "metrics": (),
    "status": (),
    "model": ("model", "kind", "rounds", "reports", "epsilon", "confidence"),
}
"""What an answer says of all of its rows, and a row that stands alone says itself."""
