"""Routes of publishers: releases, lists of candidates, marks; and the tokens, for admins."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from hubbub.aggregator.query.candidates import SavedList
from hubbub.aggregator.query.marked_days import Mark, check_mark
from hubbub.aggregator.releases.release_log import Recorded
from hubbub.aggregator.releases.releasing import BudgetLeft, ReleaseQuery, Releases
from hubbub.aggregator.web.parameters import (
    OPENAPI,
    CandidatesBody,
    Questions,
    Text,
    Who,
    audit_facts,
    needs,
)
from hubbub.aggregator.web.problems import PROBLEMS
from hubbub.privacy.central_releases import Released

Epoch = Annotated[int, Field(ge=0, lt=2**32)]


class AskBody(BaseModel):
    """The estimates to release."""

    model_config = ConfigDict(extra="forbid")

    metric: Text
    query: Text = Field(description="count, histogram, mean or mode")
    value: Text = Field(default="", description="the value to count")
    epochs: list[Epoch] = Field(default=[], description="closed ones; none: the newest")
    dates: Text = Field(default="", description="more of them by date, as 2026-11-01..2026-11-07")
    purpose: Text = Field(
        default="", description="purpose of the budget; none for a metric with a central promise"
    )
    by: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLine(Recorded):
    """One release of the record, without its numbers.

    Args:
        at: seconds since 1970.
        promised, promised_delta: of a metric with a crowd, which is published without cost: the
            central promise of each epoch.
    """

    dates: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(RecordLine):
    """A release with its numbers.

    Args:
        again: it had been paid for before.
        epsilon_left, delta_left: rest of its purpose; null for callers who do not see all metrics.
    """

    values: list[Released]
    again: bool
    epsilon_left: float | None
    delta_left: float | None


@dataclass(frozen=True, slots=True)
class Record:
    """The releases that the caller sees, and this year's budget of every purpose.

    Args:
        unreadable: number of unreadable entries, whose cost is counted; 0 for callers who do not
            see all metrics.
    """

    records: list[RecordLine]
    purposes: list[BudgetLeft]
    unreadable: int


@dataclass(frozen=True, slots=True)
class TokenLine:
    """A token and its rights.

    Args:
        expires: seconds since 1970.
        groups: groups whose metrics it may read; empty for all metrics.
    """

    name: str
    role: str
    expires: int
    groups: tuple[str, ...]


async def _releases_of_caller(request: Request, who: Who, engine: Questions) -> Releases:
    releases: Releases = request.app.state.releases
    return releases.for_viewer(who, engine.collected)


OwnReleases = Annotated[Releases, Depends(_releases_of_caller)]
RELEASES: Final = APIRouter(prefix="/v1", responses=PROBLEMS)
"""The routes; the application's state has `releases` and `access`."""


@RELEASES.post("/releases", dependencies=[needs("publisher")])
async def release(ask: AskBody, request: Request, who: Who, releases: OwnReleases) -> Release:
    """Makes a release. A repeated request gets the same numbers and costs nothing."""
    audit_facts(request).metric, audit_facts(request).release = ask.metric, ask.query[:40]
    who.check("publisher", ask.metric)
    query = ReleaseQuery(**{**ask.model_dump(), "epochs": tuple(ask.epochs)})
    result = await releases.release(query)
    return Release(
        **releases.dated(result.entry),
        values=list(result.entry.answer),
        again=result.again,
        epsilon_left=result.budget_left.epsilon_left,
        delta_left=result.budget_left.delta_left,
    )


@RELEASES.get("/releases", dependencies=[needs("publisher")])
async def record(releases: OwnReleases) -> Record:
    """Returns all releases with their callers, and this year's remaining budget by purpose."""
    entries, purposes = await releases.record()
    lines = [RecordLine(**releases.dated(entry)) for entry in entries]
    return Record(lines, list(purposes), entries.unreadable)


@RELEASES.get("/tokens", dependencies=[needs("admin")])
async def token_lines(request: Request) -> list[TokenLine]:
    """Returns all tokens with their names and expiry."""
    file = request.app.state.access.tokens
    tokens = file.all_tokens() if file else []
    return [TokenLine(token.name, token.role, token.expires, token.groups) for token in tokens]


_LONGEST = 200
_LONGEST_TEXT = 400

ListName = Annotated[str, Path(max_length=_LONGEST, description="name of the list")]
Add = Annotated[bool, Query(description="add to the list's strings instead of replacing them")]
MarkName = Annotated[str, Path(max_length=_LONGEST, description="name of the mark")]
OfMetric = Annotated[
    str, Query(max_length=_LONGEST, description="only marks of this metric's trend; without it all")
]
MarkOf = Annotated[
    str,
    Query(
        max_length=_LONGEST,
        description="metric of the mark, if several metrics have a mark of this name",
    ),
]
CANDIDATE_LISTS: Final = APIRouter(
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


@CANDIDATE_LISTS.get("", name="every")
async def every_list(engine: Questions) -> ListPage:
    """Returns all saved lists, without their strings."""
    return ListPage(await engine.lists.saved())


@CANDIDATE_LISTS.get("/{name}")
async def one_list(engine: Questions, name: ListName) -> CandidateList:
    """Returns the strings of one list."""
    strings = await engine.lists.find(name)
    return CandidateList(name, len(strings), list(strings))


@CANDIDATE_LISTS.put("/{name}", openapi_extra=OPENAPI, name="save")
async def save_list(
    engine: Questions, who: Who, name: ListName, body: CandidatesBody, *, add: Add = False
) -> SavedList:
    """Saves a list: replaces the list of this name or adds to it. For publishers."""
    who.check("publisher")
    return await engine.lists.save(name, body.candidates, add=add)


@CANDIDATE_LISTS.delete("/{name}", status_code=204, name="remove")
async def remove_list(engine: Questions, who: Who, name: ListName) -> None:
    """Deletes a list. For publishers."""
    who.check("publisher")
    await engine.lists.remove(name)


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
async def every_mark(engine: Questions, metric: OfMetric = "") -> MarkPage:
    """Returns all marks, or those of a metric's trend."""
    return MarkPage(await engine.marks.visible_marks(metric))


@MARKS.put("/{name}", name="save")
async def save_mark(engine: Questions, request: Request, name: MarkName, body: Marked) -> Mark:
    """Saves a mark, in place of its metric's mark of this name. For the metric's publishers."""
    audit_facts(request).metric = body.metric
    mark = Mark(name, body.date, body.text, body.metric)
    check_mark(mark, engine.collected.bundle)
    return await engine.marks.save(mark)


@MARKS.delete("/{name}", status_code=204, name="remove")
async def remove_mark(engine: Questions, name: MarkName, metric: MarkOf = "") -> None:
    """Deletes a mark. For publishers of its metric."""
    await engine.marks.remove(name, metric)
