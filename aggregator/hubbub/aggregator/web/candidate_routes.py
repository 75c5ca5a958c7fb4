"""Lists of strings to look for, saved by name, over HTTP. Viewers read, publishers write them."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from hubbub.aggregator.query.candidates import CandidateList, SavedList
from hubbub.aggregator.web.candidate_body import OPENAPI, CandidatesBody
from hubbub.aggregator.web.parameters import ListName, Questions, needs
from hubbub.aggregator.web.problems import PROBLEMS

Add = Annotated[bool, Query(description="add to the list's strings instead of replacing them")]


@dataclass(frozen=True, slots=True)
class ListPage:
    """Every list that is saved."""

    lists: list[SavedList]


def saved_lists() -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/v1/candidates", responses=PROBLEMS, dependencies=[needs("viewer")])

    @router.get("")
    async def every(query: Questions) -> ListPage:
        """Every list, without its strings."""
        return ListPage(await query.lists.all())

    @router.get("/{name}")
    async def one(query: Questions, name: ListName) -> CandidateList:
        """The strings of one."""
        strings = await query.lists.find(name)
        return CandidateList(name, len(strings), list(strings))

    @router.put("/{name}", openapi_extra=OPENAPI)
    async def save(
        query: Questions, name: ListName, body: CandidatesBody, *, add: Add = False
    ) -> SavedList:
        """Save a list, in place of the one of this name or added to it; for publishers."""
        return await query.lists.save(name, body.candidates, add=add)

    @router.delete("/{name}", status_code=204)
    async def remove(query: Questions, name: ListName) -> None:
        """Remove a list, for publishers."""
        await query.lists.remove(name)

    return router
