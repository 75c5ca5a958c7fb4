"""Routes for what analysts save: lists of candidates, and marks. Viewers read, publishers write."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from hubbub.aggregator.query.candidates import SavedList
from hubbub.aggregator.query.marks import Mark, check_mark
from hubbub.aggregator.web.candidate_body import OPENAPI, CandidatesBody
from hubbub.aggregator.web.parameters import Questions, Who, about, needs
from hubbub.aggregator.web.problems import PROBLEMS

_LONGEST = 200
_LONGEST_TEXT = 400

ListName = Annotated[str, Path(max_length=_LONGEST, description="name of the list")]
Add = Annotated[bool, Query(description="add to the list's strings instead of replacing them")]
MarkName = Annotated[str, Path(max_length=_LONGEST, description="name of the mark")]
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
LISTS: Final = APIRouter(
    prefix="/v1/candidates", responses=PROBLEMS, dependencies=[needs("viewer")]
)
"""The routes for saved lists of candidates."""
MARKS: Final = APIRouter(prefix="/v1/marks", responses=PROBLEMS, dependencies=[needs("viewer")])
"""The routes for marks, days of events."""


@dataclass(frozen=True, slots=True)
class CandidateList:
    """A list with its strings."""

    name: str
    total: int
    candidates: list[str]


@dataclass(frozen=True, slots=True)
class ListPage:
    """All saved lists."""

    lists: list[SavedList]


@LISTS.get("", name="every")
async def every_list(query: Questions) -> ListPage:
    """Returns all saved lists, without their strings."""
    return ListPage(await query.lists.all())


@LISTS.get("/{name}")
async def one_list(query: Questions, name: ListName) -> CandidateList:
    """Returns the strings of one list."""
    strings = await query.lists.find(name)
    return CandidateList(name, len(strings), list(strings))


@LISTS.put("/{name}", openapi_extra=OPENAPI, name="save")
async def save_list(
    query: Questions, who: Who, name: ListName, body: CandidatesBody, *, add: Add = False
) -> SavedList:
    """Saves a list: replaces the list of this name or adds to it. For publishers."""
    who.check("publisher")
    return await query.lists.save(name, body.candidates, add=add)


@LISTS.delete("/{name}", status_code=204, name="remove")
async def remove_list(query: Questions, who: Who, name: ListName) -> None:
    """Deletes a list. For publishers."""
    who.check("publisher")
    await query.lists.remove(name)


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


@MARKS.get("", name="every")
async def every_mark(query: Questions, metric: OfMetric = "") -> MarkPage:
    """Returns all marks, or those of a metric's trend."""
    return MarkPage(await query.marks.all(metric))


@MARKS.put("/{name}", name="save")
async def save_mark(query: Questions, request: Request, name: MarkName, body: Marked) -> Mark:
    """Saves a mark, in place of its metric's mark of this name. For the metric's publishers."""
    about(request).metric = body.metric
    mark = Mark(name, body.date, body.text, body.metric)
    check_mark(mark, query.collected.bundle)
    return await query.marks.save(mark)


@MARKS.delete("/{name}", status_code=204, name="remove")
async def remove_mark(query: Questions, name: MarkName, metric: MarkOf = "") -> None:
    """Deletes a mark. For publishers of its metric."""
    await query.marks.remove(name, metric)
