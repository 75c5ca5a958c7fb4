"""Routes for queries: estimates, comparisons, metrics, the conservation law. All for viewers.

Metrics over strings are queried by GET for the strings of the catalog or of saved lists, and by
POST for strings in the body; all others by GET.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from hubbub.aggregator.publishing.table_files import to_csv, to_parquet
from hubbub.aggregator.query.answers import (
    Compared,
    Crossed,
    Estimated,
    MetricDetail,
    MetricLine,
    PipelineStatus,
    TopList,
    Trended,
    Watched,
)
from hubbub.aggregator.query.breakdowns import BrokenDown
from hubbub.aggregator.query.experiments import Experimented
from hubbub.aggregator.query.figures import Figured
from hubbub.aggregator.query.models import LearnedModel, learned_model, learned_models
from hubbub.aggregator.query.totals import EpochRange
from hubbub.aggregator.query.trends import MAX_SERIES
from hubbub.aggregator.web.candidate_body import OPENAPI, CandidatesBody
from hubbub.aggregator.web.parameters import (
    Confidence,
    Epochs,
    EstimateParameters,
    Last,
    Metric,
    Paged,
    Paging,
    ParsedQuery,
    Percentiles,
    Questions,
    RankParameters,
    about,
    listed,
    needs,
    parsed_query,
)
from hubbub.aggregator.web.problems import PROBLEMS
from hubbub.aggregator.web.query_commands import Commands, Reached, commands
from hubbub.analysis import CONFIDENCE
from hubbub.query_results import COLUMNS, Column, QueryName, whole_rows

_TYPES: Final = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_MAX_TOP: Final = 1000

Route = Callable[[str], Callable[[Callable[..., Any]], Any]]
Pages = Annotated[Paging, Depends()]
Number = Annotated[int, Query(ge=1, le=_MAX_TOP, description="how many")]
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
Cohorts = Annotated[bool, Query(description="of a retention, a row for each first week")]
ExperimentName = Annotated[str, Path(max_length=200, description="its name in the catalog")]
Origin = Annotated[
    str,
    Query(
        max_length=300,
        pattern=r"^(https?://[A-Za-z0-9.:\[\]-]{1,260})?$",
        description="under which the page was read, where a proxy stands before it",
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
        description="of strings that nobody listed, which more may be held: of those, the share "
        "that nobody holds, at most; 0 for none",
    ),
]
FollowNumber = Annotated[
    int,
    Query(ge=1, le=MAX_SERIES, description="number of most frequent values, instead of value"),
]


@dataclass(frozen=True, slots=True)
class MetricPage:
    """A page of the metrics; `total` counts all."""

    total: int
    metrics: list[MetricLine]


@dataclass(frozen=True, slots=True)
class AfterParameters:
    """Which epochs come after those that are compared with them."""

    to_last: Last = None
    to_epochs: Epochs = None

    @property
    def range(self) -> EpochRange:
        """The epochs as the query core represents them."""
        return EpochRange(self.to_last or "", self.to_epochs or "")


def questions(*, tokens: bool = False, command: str = "") -> APIRouter:
    """Makes the routes; `tokens` and `command` are as in Reached."""
    router = APIRouter(prefix="/v1", responses=PROBLEMS, dependencies=[needs("viewer")])

    @router.get("/metrics")
    async def metrics(
        query: Questions,
        paging: Pages,
        first: Annotated[int, Query(ge=0)] = 0,
        number: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> MetricPage:
        """Every metric, with how many reports of it are held, epoch by epoch."""
        lines = await query.metrics()
        paging.link(first, number, len(lines))
        return MetricPage(len(lines), lines[first : first + number])

    @router.get("/metrics/{metric}")
    async def metric(query: Questions, metric: Metric) -> MetricDetail:
        """One metric, and what one person's report reveals."""
        return await query.metric(metric)

    @router.get("/columns")
    async def columns() -> dict[QueryName, list[Column]]:
        """What tables of each answer show, in which order and unit."""
        return {question: list(own) for question, own in COLUMNS.items()}

    @router.get("/status")
    async def status(query: Questions) -> PipelineStatus:
        """The conservation law: where every report is."""
        return await query.status()

    @router.get("/arrivals")
    async def arrivals(
        query: Questions,
        after: Annotated[int, Query(ge=0, lt=1 << 53, description="the last that was seen")] = 0,
    ) -> Watched:
        """Reports of a development installation as they come; of production none."""
        return await query.watch(after)

    @router.get("/metrics/{metric}/cross")
    async def cross(
        query: Questions,
        question: Annotated[ParsedQuery, Depends(listed)],
        rows: Part = "",
        columns: Part = "",
        by: Part = "",
    ) -> Crossed:
        """Two parts of a metric as a table, and how they go together; by a third, within it."""
        return await query.cross(question.name, question.query, (rows, columns, by))

    _compute(router)
    _export(router)
    _try(router)
    posting = partial(router.post, openapi_extra=OPENAPI)
    for route, put in ((router.get, listed), (posting, _strings)):
        _ask(route, put)
        _take_along(route, put, Reached("", tokens, command))
    return router


def _strings(
    metric: Metric,
    question: Annotated[EstimateParameters, Depends()],
    body: CandidatesBody,
) -> ParsedQuery:
    """The query of a request with candidate strings in its body."""
    return parsed_query(metric, question, tuple(dict.fromkeys(body.candidates)))


def _ask(route: Route, put: Callable[..., ParsedQuery]) -> None:
    """The same five questions, by GET of listed values and numbers, by POST of strings."""

    @route("/metrics/{metric}/estimates")
    async def estimates(
        query: Questions,
        question: Annotated[ParsedQuery, Depends(put)],
        page: Annotated[Paged, Depends()],
        ranks: Annotated[RankParameters, Depends()],
        paging: Pages,
        *,
        anytime: Anytime = False,
        likely: Likely = 0.0,
    ) -> Estimated:
        """Estimates with their intervals; of numbers in parts percentiles, too."""
        wanted = replace(ranks.of(question.query), anytime=anytime, likely=likely)
        answer = await query.estimate(question.name, wanted, page.page)
        paging.link(page.first, page.number, answer.total)
        return answer

    @route("/metrics/{metric}/top")
    async def top(
        query: Questions, question: Annotated[ParsedQuery, Depends(put)], number: Number = 10
    ) -> TopList:
        """The most frequent values, and how sure it is that they are in this order."""
        return await query.top(question.name, question.query, number)

    @route("/metrics/{metric}/compare")
    async def compare(
        query: Questions,
        question: Annotated[ParsedQuery, Depends(put)],
        page: Annotated[Paged, Depends()],
        to: Annotated[AfterParameters, Depends()],
        percentile: Percentiles = None,
    ) -> Compared:
        """What differs between the epochs of `last` or `epochs`, before, and those after.

        Without either, the newest epoch that takes no more reports is compared with the one before.
        """
        wanted = replace(question.query, percentiles=tuple(percentile or ()))
        return await query.compare(question.name, wanted, to.range, page.page)

    @route("/metrics/{metric}/trend")
    async def trend(
        query: Questions,
        question: Annotated[ParsedQuery, Depends(put)],
        value: Follow = None,
        number: FollowNumber = 5,
        percentile: Percentiles = None,
    ) -> Trended:
        """Some values epoch by epoch; or, where they are asked for, percentiles."""
        wanted = replace(question.query, percentiles=tuple(percentile or ()))
        return await query.trend(question.name, wanted, value or (), number)

    @route("/metrics/{metric}/breakdown")
    async def breakdown(
        query: Questions, question: Annotated[ParsedQuery, Depends(put)], by: By = ""
    ) -> BrokenDown:
        """A metric by one of its public fields: each value beside all others."""
        return await query.breakdown(question.name, question.query, by)


def _take_along(route: Route, put: Callable[..., ParsedQuery], reached: Reached) -> None:
    """Adds the route for the question as commands."""

    @route("/metrics/{metric}/commands")
    async def take_along(
        query: Questions,
        question: Annotated[ParsedQuery, Depends(put)],
        request: Request,
        origin: Origin = "",
        anytime: Anytime = False,  # noqa: FBT002 a parameter of the address
    ) -> Commands:
        """The estimates of a question as texts to paste into a shell or a notebook."""
        selection = await query.collected.find(question.name, question.query.range)
        wanted = replace(question.query, anytime=anytime)
        where = replace(reached, origin=origin or str(request.base_url).rstrip("/"))
        return commands(question.name, wanted, selection.dates, where)


def _compute(router: APIRouter) -> None:
    @router.get("/metrics/{metric}/figures")
    async def figures(
        query: Questions,
        question: Annotated[ParsedQuery, Depends(listed)],
        by: FiguresBy = "",
        *,
        cohorts: Cohorts = False,
    ) -> Figured:
        """Conversions of a funnel, a rate, numbers of actives, or shares that come back."""
        return await query.figures(question.name, question.query, by, by_cohort=cohorts)


def _try(router: APIRouter) -> None:
    @router.get("/experiments/{experiment}")
    async def experiment(
        query: Questions,
        request: Request,
        experiment: ExperimentName,
        confidence: Confidence = CONFIDENCE,
    ) -> Experimented:
        """The effect of an experiment's arms on its metrics, right at every look."""
        about(request).metric = experiment
        return await query.experiment(experiment, confidence)


def _export(router: APIRouter) -> None:
    content: dict[str, Any] = {
        "text/csv": {"schema": {"type": "string"}},
        _TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}},
    }

    @router.get(
        "/metrics/{metric}/export",
        response_class=Response,
        responses={200: {"description": "The file.", "content": content}},
    )
    async def export(
        query: Questions,
        question: Annotated[ParsedQuery, Depends(listed)],
        ranks: Annotated[RankParameters, Depends()],
        format: Literal["csv", "parquet"] = "csv",  # noqa: A002 its usual name
        anytime: Anytime = False,  # noqa: FBT002 as above
    ) -> Response:
        """All estimates as a file; or, where they are asked for, percentiles and shares below."""
        wanted = replace(ranks.of(question.query), anytime=anytime)
        answer = await query.estimate(question.name, wanted)
        rows: QueryName = "percentiles" if wanted.asks_ranks else "estimates"
        return await run_in_threadpool(_file, rows, answer, format)


def _file(rows: QueryName, answer: Estimated, kind: str) -> Response:
    table = whole_rows(rows, asdict(answer))
    body: Any = to_csv(table) if kind == "csv" else to_parquet(table)
    name = f"{answer.metric.replace('/', '-')}.{kind}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(body, media_type=_TYPES[kind], headers=headers)


_LONGEST = 200

Name = Annotated[str, Path(max_length=_LONGEST, description="its name in the catalog")]


@dataclass(frozen=True, slots=True)
class ModelPage:
    """Every model there is."""

    models: list[LearnedModel]


def learned() -> APIRouter:
    """Makes the routes for models."""
    router = APIRouter(prefix="/v1/models", responses=PROBLEMS, dependencies=[needs("viewer")])

    @router.get("")
    async def every(query: Questions, confidence: Confidence = CONFIDENCE) -> ModelPage:
        """Every model, as far as it has learned."""
        return ModelPage(await learned_models(query, confidence))

    @router.get("/{model}")
    async def one(
        query: Questions, request: Request, model: Name, confidence: Confidence = CONFIDENCE
    ) -> LearnedModel:
        """A model's coefficients, its rounds, and the state that devices learn by."""
        about(request).metric = model
        return await learned_model(query, model, confidence)

    return router
