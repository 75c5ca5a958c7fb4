"""The columns of an answer's table, once for every face that shows one; a new one is one line.

What is not a column here is still a field of the row, for programs: JSON, CSV, Parquet, frames.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

QueryName = Literal[
    "estimates",
    "percentiles",
    "top",
    "compare",
    "trend",
    "cross",
    "breakdown",
    "experiment",
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

    field: of a row. to: of the field at the other end, where the column is an interval.
    title: above it; "{level}" stands for the answer's confidence. mean_title: of an answer that is
    a mean, where it differs.
    meaning: a sentence without its full stop, for Prometheus' help and the page's hints.
    of_means: whether a mean has it. gauge: whether Prometheus gets it.
    spare: narrow terminals leave out columns in this order, from 1 on; 0 stays.
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


OF_CLASS: Final = Column(
    field="of_class",
    title="class",
    unit="text",
    meaning="of softmax; coefficients of a column sum to 0 over classes",
)
"""What a model of one score has not."""

SLICE: Final = Column(field="slice", title="by", unit="text", meaning="value of the third part")
"""What a cross table of two parts has not."""

_VALUE: Final = Column(field="value", title="value", unit="text", meaning="what was reported")
_ESTIMATE: Final = Column(
    field="estimate",
    title="estimate",
    unit="reports",
    meaning="unbiased estimate, in reports; of a mean, in the metric's own unit",
    gauge=True,
)
_INTERVAL: Final = Column(
    field="low",
    title="{level} interval",
    unit="reports",
    meaning="ends of the estimate's interval, in the unit of the estimate",
    to="high",
    gauge=True,
)
_SHARE: Final = Column(
    field="share",
    title="share",
    unit="share",
    meaning="estimate as a share of the reports; not of a mean",
    of_means=False,
    gauge=True,
    spare=5,
)
_RANK: Final = Column(
    field="rank",
    title="rank",
    unit="count",
    meaning="place by estimate, the largest first",
    of_means=False,
    spare=3,
)


def _ends(unit: Unit) -> Column:
    return Column(
        field="low", title="{level} interval", unit=unit, meaning="ends of the interval", to="high"
    )


def _reports(field: str, meaning: str, spare: int = 0) -> Column:
    return Column(
        field=field, title=field.replace("_", " "), unit="count", meaning=meaning, spare=spare
    )


COLUMNS: Final[Mapping[QueryName, Sequence[Column]]] = {
    "estimates": (
        _VALUE,
        _ESTIMATE,
        Column(
            field="stderr",
            title="std. error",
            unit="reports",
            meaning="standard error of the estimate",
            spare=2,
        ),
        _INTERVAL,
        _SHARE,
        _RANK,
        Column(
            field="detected",
            title="detected",
            unit="flag",
            meaning="whether the value stands out from zero",
            of_means=False,
            spare=4,
        ),
        Column(
            field="consistent",
            title="consistent",
            unit="reports",
            meaning="post-processed: never below zero, summing to the reports; biased for a single "
            "value",
            of_means=False,
            spare=1,
        ),
    ),
    "percentiles": (
        Column(field="value", title="asked", unit="text", meaning="a percentile, or below what"),
        Column(
            field="number",
            title="number",
            unit="number",
            meaning="in the metric's own unit; inside its part as if numbers lay there evenly",
        ),
        Column(
            field="number_low",
            title="{level} interval",
            unit="number",
            meaning="ends of the percentile's interval, which are edges of parts",
            to="number_high",
        ),
        Column(
            field="share",
            title="share below",
            unit="share",
            meaning="of the numbers, which lies below the number",
        ),
        Column(
            field="share_low",
            title="share's {level} interval",
            unit="share",
            meaning="ends of the share's interval, where the number was asked for",
            to="share_high",
        ),
        Column(
            field="reaches",
            title="reaches the end of the range",
            unit="text",
            meaning="which ends of the interval are ends of the range: the true value may be "
            "outside the range",
        ),
    ),
    "top": (
        _VALUE,
        _RANK,
        _SHARE,
        _ESTIMATE,
        _INTERVAL,
        Column(
            field="ahead_confidence",
            title="ahead",
            unit="confidence",
            meaning="how sure that the value is ahead of the next one",
        ),
    ),
    "compare": (
        _VALUE,
        Column(
            field="before",
            title="before",
            unit="level",
            meaning="share of the reports before, or the mean",
            spare=2,
        ),
        Column(
            field="after",
            title="after",
            unit="level",
            meaning="share of the reports after, or the mean",
            spare=3,
        ),
        Column(
            field="difference",
            title="difference (points)",
            unit="change",
            meaning="after less before, in percentage points; of means, in the metric's own unit",
            mean_title="difference",
        ),
        _ends("change"),
        Column(
            field="p_value",
            title="p (row alone)",
            unit="probability",
            meaning="of this row alone: chance of a difference as large if nothing has changed",
            spare=1,
        ),
        Column(
            field="changed",
            title="changed",
            unit="flag",
            meaning="whether it differs beyond what chance explains",
        ),
    ),
    "trend": (
        _VALUE,
        Column(
            field="date",
            title="epoch",
            unit="text",
            meaning="the day or hour that it is, of a week its first day; UTC",
        ),
        _reports("reports", "reports of the epoch, of those asked for the value"),
        Column(
            field="share",
            title="share",
            unit="level",
            meaning="share of the reports, or the mean",
            mean_title="mean",
        ),
        _ends("level"),
        Column(
            field="line",
            title="line",
            unit="level",
            meaning="the likely truth by all epochs together",
            spare=1,
        ),
        Column(
            field="line_low",
            title="{level} band",
            unit="level",
            meaning="ends of the line's band",
            to="line_high",
            spare=2,
        ),
    ),
    "cross": (
        SLICE,
        Column(field="row", title="row", unit="text", meaning="value of the first part"),
        Column(field="column", title="column", unit="text", meaning="value of the second part"),
        Column(
            field="within",
            title="of its row",
            unit="share",
            meaning="share of those in the cell's row",
        ),
        Column(
            field="within_low",
            title="{level} interval",
            unit="share",
            meaning="ends of the share's interval",
            to="within_high",
        ),
        Column(
            field="estimate",
            title="reports",
            unit="reports",
            meaning="unbiased estimate, in reports",
            spare=2,
        ),
        Column(
            field="low",
            title="{level} of reports",
            unit="reports",
            meaning="ends of the estimate's interval",
            to="high",
            spare=1,
        ),
        Column(
            field="departs",
            title="beyond chance",
            unit="flag",
            meaning="whether the cell is not what it would be if the parts were independent",
        ),
    ),
    "breakdown": (
        Column(field="part", title="part", unit="text", meaning="value of the public field"),
        _VALUE,
        _reports("reports", "reports of the part", spare=3),
        Column(
            field="share",
            title="share",
            unit="level",
            meaning="share of the part's reports, or the mean",
            mean_title="mean",
        ),
        _ends("level"),
        Column(
            field="difference",
            title="to all others (points)",
            unit="change",
            meaning="less the share, or mean, of the field's other values together; shares in "
            "percentage points",
            mean_title="to all others",
            spare=4,
        ),
        Column(
            field="difference_low",
            title="{level} of that",
            unit="change",
            meaning="ends of the difference's interval",
            to="difference_high",
            spare=2,
        ),
        Column(
            field="p_value",
            title="p (row alone)",
            unit="probability",
            meaning="of this row alone: chance of a difference as large if there is none",
            spare=1,
        ),
        Column(
            field="stands_out",
            title="beyond chance",
            unit="flag",
            meaning="whether the part differs from all others beyond what chance explains",
        ),
    ),
    "experiment": (
        Column(field="metric", title="metric", unit="text", meaning="that is measured"),
        Column(field="arm", title="arm", unit="text", meaning="that is beside the control arm"),
        Column(field="measure", title="measure", unit="text", meaning="share, mean or percentile"),
        Column(field="unit", title="unit", unit="text", meaning="of a mean or percentile", spare=3),
        Column(field="control", title="control", unit="number", meaning="in the control arm"),
        Column(field="measured", title="arm's", unit="number", meaning="in the other arm"),
        Column(
            field="difference",
            title="effect",
            unit="number",
            meaning="the arm's less the control's",
        ),
        Column(
            field="low",
            title="{level} at all looks",
            unit="number",
            meaning="ends of the effect's interval: all of them hold together, at every look",
            to="high",
        ),
        Column(
            field="shown", title="shown", unit="flag", meaning="whether the interval excludes 0"
        ),
        Column(
            field="detectable",
            title="would show",
            unit="number",
            meaning="the smallest effect that as many reports show with a chance of 80%",
            spare=1,
        ),
    ),
    "metrics": (
        Column(field="name", title="metric", unit="text", meaning="its name in the catalog"),
        Column(
            field="kind",
            title="asks for",
            unit="text",
            meaning="values, strings, ranges or a mean",
            spare=4,
        ),
        Column(
            field="mechanism",
            title="mechanism",
            unit="text",
            meaning="what randomizes on the device",
            spare=3,
        ),
        Column(
            field="epsilon",
            title="epsilon",
            unit="epsilon",
            meaning="of one report, as proven, rounded up",
            spare=2,
        ),
        _reports("reports", "reports counted, over all epochs"),
        _reports("waiting", "reports that the shuffler holds"),
        Column(
            field="updated",
            title="last counted",
            unit="time",
            meaning="when the last report was counted",
        ),
    ),
    "status": (
        Column(
            field="stream", title="stream", unit="text", meaning="a metric's name, and its tier"
        ),
        Column(
            field="date",
            title="epoch",
            unit="text",
            meaning="the day or hour that it is, of a week its first day; UTC",
        ),
        _reports("acknowledged", "taken over by the shuffler"),
        _reports("dummies", "added to crowds by the shuffler; nobody's", spare=2),
        _reports("pooled", "wait at the shuffler for a crowd"),
        _reports("in_flight", "on their way in a batch"),
        _reports("counted", "in the totals"),
        _reports("duplicate", "sent again, counted once"),
        _reports("rejected", "refused by the aggregator, with a reason"),
        _reports("fillers", "said nothing: they hid that there was nothing to say", spare=3),
        _reports("withheld", "too few to hide in a crowd; deleted"),
        Column(
            field="balanced",
            title="balanced",
            unit="verdict",
            meaning="whether no report is lost or counted twice",
        ),
    ),
    "model": (
        OF_CLASS,
        Column(
            field="name",
            title="column",
            unit="text",
            meaning="a feature, or a value or band of one",
        ),
        Column(
            field="coefficient",
            title="coefficient",
            unit="number",
            meaning="per unit of the feature",
        ),
        Column(
            field="low",
            title="{level} interval",
            unit="number",
            meaning="ends of the coefficient's interval, of the coins and of who took part",
            to="high",
        ),
        Column(
            field="stderr",
            title="standard error",
            unit="number",
            meaning="of the coefficient",
            spare=1,
        ),
    ),
}

HEADS: Final[Mapping[QueryName, Sequence[str]]] = {
    "estimates": (
        "metric",
        "dates",
        "since",
        "until",
        "final",
        "reports",
        "reports_stderr",
        "mechanism",
        "epsilon",
        "confidence",
        "unit",
    ),
    "percentiles": (
        "metric",
        "dates",
        "since",
        "until",
        "final",
        "reports",
        "mechanism",
        "epsilon",
        "confidence",
        "unit",
    ),
    "top": (
        "metric",
        "dates",
        "final",
        "reports",
        "confidence",
        "set_confidence",
        "order_confidence",
    ),
    "compare": (
        "metric",
        "before_dates",
        "after_dates",
        "before_reports",
        "after_reports",
        "confidence",
        "unit",
    ),
    "trend": ("metric", "kind", "final", "confidence", "unit"),
    "cross": ("metric", "rows", "columns", "by", "dates", "reports", "confidence"),
    "breakdown": ("metric", "by", "dates", "confidence", "unit"),
    "experiment": ("experiment", "dates", "final", "confidence", "ratio_p_value", "verdict"),
    "metrics": (),
    "status": (),
    "model": ("model", "kind", "rounds", "reports", "epsilon", "confidence"),
}
"""What an answer says of all of its rows, and a row that stands alone says itself."""
