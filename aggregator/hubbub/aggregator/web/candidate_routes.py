"""Lists of strings to look for, saved by name, over HTTP. For viewers: they hold no answer."""

from dataclasses import dataclass

from fastapi import APIRouter

from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.candidates import CandidateList, SavedList
from hubbub.aggregator.web.parameters import Candidates, ListName, needs
from hubbub.aggregator.web.problems import PROBLEMS

__all__ = ["saved_lists"]


@dataclass(frozen=True, slots=True)
class ListPage:
    """Every list that is saved."""

    lists: list[SavedList]


def saved_lists(query: QueryEngine) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/v1/candidates", responses=PROBLEMS, dependencies=[needs("viewer")])

    @router.get("")
    async def every() -> ListPage:
        """Every list, without its strings."""
        return ListPage(await query.lists.all())

    @router.get("/{name}")
    async def one(name: ListName) -> CandidateList:
        """The strings of one."""
        found = await query.lists.find(name)
        return CandidateList(name, len(found), list(found))

    @router.put("/{name}")
    async def save(name: ListName, body: Candidates) -> SavedList:
        """Save a list, in place of the one of this name."""
        return await query.lists.save(name, body.candidates)

    @router.delete("/{name}", status_code=204)
    async def remove(name: ListName) -> None:
        """Forget one."""
        await query.lists.remove(name)

    return router
