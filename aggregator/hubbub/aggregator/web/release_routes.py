"""Routes for releases, for publishers; and the list of tokens, for admins."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from hubbub.aggregator.releases.release_entry import Recorded
from hubbub.aggregator.releases.releasing import BudgetLeft, ReleaseQuery, Releases
from hubbub.aggregator.web.parameters import Questions, Text, Who, about, needs
from hubbub.aggregator.web.problems import PROBLEMS
from hubbub.privacy.releases import Released

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


def _releases_of_caller(request: Request, who: Who, query: Questions) -> Releases:
    releases: Releases = request.app.state.releases
    return releases.seen_by(who, query.collected)


OwnReleases = Annotated[Releases, Depends(_releases_of_caller)]
RELEASES: Final = APIRouter(prefix="/v1", responses=PROBLEMS)
"""The routes; the application's state has `releases` and `access`."""


@RELEASES.post("/releases", dependencies=[needs("publisher")])
async def release(ask: AskBody, request: Request, who: Who, releases: OwnReleases) -> Release:
    """Makes a release. A repeated request gets the same numbers and costs nothing."""
    about(request).metric, about(request).release = ask.metric, ask.query[:40]
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
    tokens = file.all() if file else []
    return [TokenLine(token.name, token.role, token.expires, token.groups) for token in tokens]
