"""Routes for queries: estimates, comparisons, metrics, the balance of reports. All for viewers.

Metrics over strings are queried by GET for the strings of the catalog or of saved lists, and by
POST for strings in the body; all others by GET.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from hubbub.aggregator.exported_files import to_csv, to_parquet
from hubbub.aggregator.query import breakdowns, derived_answers, trends
from hubbub.aggregator.query.alert_verdicts import with_alert
from hubbub.aggregator.query.answer_types import (
    Compared,
    Crossed,
    Estimated,
    MetricDetail,
    MetricLine,
    TopList,
)
from hubbub.aggregator.query.arriving_reports import Watched
from hubbub.aggregator.query.breakdowns import BrokenDown
from hubbub.aggregator.query.conservation_law import PipelineStatus
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.experiments import Experimented, experimented
from hubbub.aggregator.query.funnel_and_retention_totals import Figured, figure_kind, meant_query
from hubbub.aggregator.query.learned_models import LearnedModel, learned_model
from hubbub.aggregator.query.trends import Trended
from hubbub.aggregator.web.commands_to_copy import Commands, commands
from hubbub.aggregator.web.parameters import (
    OPENAPI,
    Below,
    CatalogName,
    Confidence,
    Epochs,
    Last,
    Lists,
    Paged,
    Percentiles,
    Questions,
    Tier,
    audit_facts,
    link_next,
    needs,
    read_candidates,
)
from hubbub.aggregator.web.problems import PROBLEMS
from hubbub.analysis.answer import CONFIDENCE
from hubbub.errors import BatchTooSmall, TooFewEpochs
from hubbub.query_results.answer_table import (
    COLUMNS,
    MAX_SERIES,
    MAX_TOP,
    Column,
    QueryName,
    whole_rows,
)

_TYPES: Final = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}

Route = TypeVar("Route", bound=Callable[..., Any])
Number = Annotated[int, Query(ge=1, le=MAX_TOP, description="how many")]
Follow = Annotated[list[str] | None, Query(max_length=MAX_SERIES, description="values to follow")]
Part = Annotated[
    str, Query(max_length=200, description="one of the metric's parts; none: the first")
]
By = Annotated[
    str, Query(max_length=200, description="one of the metric's public fields; none: the first")
]
FiguresBy = Annotated[
    str, Query(max_length=200, description="one of the metric's public fields; none: all devices")
]
Cohorts = Annotated[bool, Query(description="for a retention: a row for each first week")]
Origin = Annotated[
    str,
    Query(
        max_length=300,
        pattern=r"^(https?://[A-Za-z0-9.:\[\]-]{1,260})?$",
        description="address of the page, if a proxy is in front of the service",
    ),
]
Anytime = Annotated[
    bool, Query(description="whether intervals hold at every look while the epochs fill")
]
Likely = Annotated[
    float,
    Query(
        ge=0,
        lt=1,
        description="also return likely unlisted strings; at most this share of them is reported "
        "by nobody; 0 for none",
    ),
]
FollowNumber = Annotated[
    int | None,
    Query(ge=1, le=MAX_SERIES, description="number of most frequent values, not with value (5)"),
]


@dataclass(frozen=True, slots=True)
class MetricPage:
    """A page of the metrics; `total` counts all."""

    total: int
    metrics: list[MetricLine]


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """The parsed parameters of a question; `name` is the metric with all its tiers, or one tier."""

    name: str
    query: EstimateQuery


async def _parsed_query(
    metric: CatalogName,
    request: Request,
    *,
    last: Last = None,
    epochs: Epochs = None,
    confidence: Confidence = CONFIDENCE,
    lists: Lists = None,
    tier: Tier = None,
) -> ParsedQuery:
    """The question in the address, with the candidate strings in the body of a POST."""
    strings = (await read_candidates(request)).candidates if request.method == "POST" else ()
    return ParsedQuery(
        f"{metric}/{tier}" if tier else metric,
        EstimateQuery(
            range=EpochRange(last or "", epochs or ""),
            confidence=confidence,
            candidates=tuple(dict.fromkeys(strings)),
            lists=tuple(dict.fromkeys(lists or ())),
        ),
    )


async def _later_epochs(to_last: Last = None, to_epochs: Epochs = None) -> EpochRange:
    return EpochRange(to_last or "", to_epochs or "")


Parsed = Annotated[ParsedQuery, Depends(_parsed_query)]
After = Annotated[EpochRange, Depends(_later_epochs)]
QUESTIONS: Final = APIRouter(prefix="/v1", responses=PROBLEMS, dependencies=[needs("viewer")])
"""The routes for questions; the application's state has `query`, and `reached` for commands."""


def _get_or_post(path: str) -> Callable[[Route], Route]:
    """Adds a route by GET for listed values and numbers, and by POST for strings."""

    def add(route: Route) -> Route:
        QUESTIONS.get(path)(route)
        return QUESTIONS.post(path, openapi_extra=OPENAPI)(route)

    return add


@QUESTIONS.get("/metrics")
async def metrics(
    engine: Questions,
    request: Request,
    response: Response,
    first: Annotated[int, Query(ge=0)] = 0,
    number: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> MetricPage:
    """Returns all metrics, with the number of stored reports by epoch."""
    lines = await engine.metrics()
    if first + number < len(lines):
        link_next(request, response, first, number)
    return MetricPage(len(lines), lines[first : first + number])


@QUESTIONS.get("/metrics/{metric}")
async def metric(engine: Questions, metric: CatalogName) -> MetricDetail:
    """Returns one metric, and what one person's report reveals."""
    return await with_alert(engine, await engine.metric(metric))


@QUESTIONS.get("/columns")
async def columns() -> dict[QueryName, list[Column]]:
    """Returns the columns of each answer's tables, in order, with units."""
    return {question: list(question_columns) for question, question_columns in COLUMNS.items()}


@QUESTIONS.get("/status")
async def status(engine: Questions) -> PipelineStatus:
    """Returns the number of reports at each stage, and whether these numbers balance."""
    return await engine.status()


@QUESTIONS.get("/arrivals")
async def arrivals(
    engine: Questions,
    after: Annotated[int, Query(ge=0, lt=1 << 53, description="the last one received")] = 0,
) -> Watched:
    """Returns new reports of a development installation; nothing in production."""
    return await engine.watch(after)


@QUESTIONS.get("/metrics/{metric}/cross")
async def cross(
    engine: Questions, question: Parsed, rows: Part = "", columns: Part = "", by: Part = ""
) -> Crossed:
    """Returns two parts of a metric as a table, with their association; by a third part."""
    return await derived_answers.cross(engine, question.name, question.query, (rows, columns, by))


@QUESTIONS.get("/metrics/{metric}/figures")
async def figures(
    engine: Questions, question: Parsed, by: FiguresBy = "", *, cohorts: Cohorts = False
) -> Figured:
    """Returns conversions of a funnel, a rate, numbers of active devices, or retention."""
    return await derived_answers.figures(
        engine, question.name, question.query, by, by_cohort=cohorts
    )


@QUESTIONS.get(
    "/metrics/{metric}/export",
    response_class=Response,
    responses={
        200: {
            "description": "The file.",
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                _TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def export(
    engine: Questions,
    question: Parsed,
    *,
    percentile: Percentiles = None,
    below: Below = None,
    format: Literal["csv", "parquet"] = "csv",  # noqa: A002 its usual name
    anytime: Anytime = False,
) -> Response:
    """Returns all estimates, figures if the metric has them, or percentiles, as a file."""
    refined = replace(
        question.query,
        percentiles=tuple(percentile or ()),
        below=tuple(below or ()),
        anytime=anytime,
    )
    if own_figures := await _figures_of(engine, question.name, refined):
        return await run_in_threadpool(_file, "figures", own_figures, format)
    answer = await engine.estimate(question.name, refined)
    question_name: QueryName = "percentiles" if percentile or below else "estimates"
    return await run_in_threadpool(_file, question_name, answer, format)


async def _figures_of(engine: QueryEngine, name: str, query: EstimateQuery) -> Figured | None:
    """The figures of a metric that has some; None of a retention in its first week."""
    if figure_kind(engine.collected.bundle.metric(name)) is None:
        return None
    try:
        return await derived_answers.figures(engine, name, query)
    except TooFewEpochs:
        return None


def _file(rows: QueryName, answer: Estimated | Figured, kind: str) -> Response:
    table = whole_rows(rows, asdict(answer))
    body: Any = to_csv(table) if kind == "csv" else to_parquet(table)
    name = f"{answer.metric.replace('/', '-')}.{kind}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=_TYPES[kind], headers=headers)


@QUESTIONS.get("/experiments/{experiment}")
async def experiment(
    engine: Questions,
    request: Request,
    experiment: CatalogName,
    confidence: Confidence = CONFIDENCE,
) -> Experimented:
    """Returns the effect of an experiment's arms on its metrics; valid at every look."""
    audit_facts(request).metric = experiment
    return await experimented(engine, experiment, confidence)


@_get_or_post("/metrics/{metric}/estimates")
async def estimates(
    engine: Questions,
    question: Parsed,
    page: Paged,
    *,
    request: Request,
    response: Response,
    percentile: Percentiles = None,
    below: Below = None,
    anytime: Anytime = False,
    likely: Likely = 0.0,
) -> Estimated:
    """Returns estimates with their intervals; for numbers in ranges also percentiles."""
    refined = replace(
        question.query,
        percentiles=tuple(percentile or ()),
        below=tuple(below or ()),
        anytime=anytime,
        likely=likely,
    )
    answer = await engine.estimate(question.name, refined, page)
    if page.number and page.first + page.number < answer.total:
        link_next(request, response, page.first, page.number)
    return answer


@_get_or_post("/metrics/{metric}/top")
async def top(engine: Questions, question: Parsed, number: Number = 10) -> TopList:
    """Returns the most frequent values, and how certain their order is."""
    return await derived_answers.top(engine, question.name, question.query, number)


@_get_or_post("/metrics/{metric}/compare")
async def compare(
    engine: Questions,
    question: Parsed,
    page: Paged,
    after: After,
    percentile: Percentiles = None,
) -> Compared:
    """Returns the differences between earlier epochs (`last` or `epochs`) and later ones.

    Without either: between the newest epoch that accepts no more reports and the one before.
    """
    refined = replace(question.query, percentiles=tuple(percentile or ()))
    return await derived_answers.compare(engine, question.name, refined, after, page)


@_get_or_post("/metrics/{metric}/trend")
async def trend(
    engine: Questions,
    question: Parsed,
    value: Follow = None,
    number: FollowNumber = None,
    percentile: Percentiles = None,
) -> Trended:
    """Returns some values, or percentiles, by epoch."""
    refined = replace(question.query, percentiles=tuple(percentile or ()))
    return await trends.trend(engine, question.name, refined, value or (), number)


@_get_or_post("/metrics/{metric}/breakdown")
async def breakdown(engine: Questions, question: Parsed, by: By = "") -> BrokenDown:
    """Returns the estimates of a metric by the values of one of its public fields."""
    return await breakdowns.breakdown(engine, question.name, question.query, by)


@_get_or_post("/metrics/{metric}/commands")
async def take_along(
    engine: Questions,
    question: Parsed,
    request: Request,
    origin: Origin = "",
    anytime: Anytime = False,  # noqa: FBT002 as above
) -> Commands:
    """Returns commands for a shell and a notebook that give the same estimates or figures."""
    answer, refined = "estimates", replace(question.query, anytime=anytime)
    metric = engine.collected.bundle.metric(question.name)
    if figure_kind(metric):
        answer = "figures"
        # Figures have no strings, and no look at any time.
        whole_query, _ = meant_query(metric, question.query, by_cohort=False)
        refined = EstimateQuery(range=whole_query.range, confidence=whole_query.confidence)
        with suppress(BatchTooSmall):
            if await _figures_of(engine, question.name, whole_query) is None:
                answer = "estimates"
    selection = await engine.collected.find(question.name, refined.range)
    address = origin or str(request.base_url).rstrip("/")
    reached = replace(request.app.state.reached, origin=address)
    files = [kind for kind in _TYPES if kind == "csv" or find_spec("pyarrow")]
    own_commands = commands(question.name, refined, selection.dates, reached, answer)
    return replace(own_commands, files=files)


@dataclass(frozen=True, slots=True)
class ModelPage:
    """All models."""

    models: list[LearnedModel]


MODELS: Final = APIRouter(prefix="/v1/models", responses=PROBLEMS, dependencies=[needs("viewer")])
"""The routes for models."""


@MODELS.get("")
async def list_models(engine: Questions, confidence: Confidence = CONFIDENCE) -> ModelPage:
    """Returns all models, with the progress of their learning."""
    names = [name for name, metric in engine.collected.bundle.metrics.items() if metric.model]
    return ModelPage([await learned_model(engine, name, confidence) for name in names])


@MODELS.get("/{model}")
async def show_model(
    engine: Questions, request: Request, model: CatalogName, confidence: Confidence = CONFIDENCE
) -> LearnedModel:
    """Returns a model's coefficients, its rounds, and the state that devices use."""
    audit_facts(request).metric = model
    return await learned_model(engine, model, confidence)
