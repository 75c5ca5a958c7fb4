"""Routes for marks, days of events: viewers read them, publishers write them."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from hubbub.aggregator.query.marks import Mark, check_mark
from hubbub.aggregator.web.parameters import Questions, about, needs
from hubbub.aggregator.web.problems import PROBLEMS

_LONGEST = 200
_LONGEST_TEXT = 400

Name = Annotated[str, Path(max_length=_LONGEST, description="name of the mark")]
OfMetric = Annotated[
    str, Query(max_length=_LONGEST, description="those that this metric's trend has; all without")
]

MarkOf = Annotated[
    str,
    Query(
        max_length=_LONGEST,
        description="metric of the mark, if several metrics have a mark of this name",
    ),
]


class Marked(BaseModel):
    """Date and text of a mark, and its metric; "" marks all metrics."""

    model_config = ConfigDict(extra="forbid")

    date: Annotated[str, Field(max_length=10, description="YYYY-MM-DD")]
    text: Annotated[str, Field(max_length=_LONGEST_TEXT)] = ""
    metric: Annotated[str, Field(max_length=_LONGEST)] = ""


@dataclass(frozen=True, slots=True)
class MarkPage:
    """Marks by date."""

    marks: list[Mark]


def marking() -> APIRouter:
    """Returns the routes for marks."""
    router = APIRouter(prefix="/v1/marks", responses=PROBLEMS, dependencies=[needs("viewer")])

    @router.get("")
    async def every(query: Questions, metric: OfMetric = "") -> MarkPage:
        """Returns all marks, or those of a metric's trend."""
        return MarkPage(await query.marks.all(metric))

    @router.put("/{name}")
    async def save(query: Questions, request: Request, name: Name, body: Marked) -> Mark:
        """Saves a mark, in place of its metric's mark of this name. For the metric's publishers."""
        about(request).metric = body.metric
        mark = Mark(name, body.date, body.text, body.metric)
        check_mark(mark, query.collected.bundle)
        return await query.marks.save(mark)

    @router.delete("/{name}", status_code=204)
    async def remove(query: Questions, name: Name, metric: MarkOf = "") -> None:
        """Deletes a mark. For publishers of its metric."""
        await query.marks.remove(name, metric)

    return router
