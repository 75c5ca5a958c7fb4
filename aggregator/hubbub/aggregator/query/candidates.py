"""Candidate strings: the catalog's own, lists that analysts saved, and those of a query.

Saved lists are two Redis hashes: `aggregator:candidates`, NAME -> the packed strings, and
`aggregator:candidate_lists`, NAME -> how many, and since when.
"""

import gzip
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Final

from hubbub.aggregator.query.answer_types import Estimated
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.text_rules import check_words
from hubbub.analysis.families import family_for
from hubbub.catalog import Metric
from hubbub.catalog.values.list_versions import FINDER
from hubbub.errors import (
    BadParameter,
    BatchTooSmall,
    NothingToLookFor,
    StoreFull,
    StoreUnavailable,
    UnknownList,
)
from hubbub.errors.message_words import did_you_mean
from hubbub.fields.rules import NAME
from hubbub.runtime.redis.command_sender import Hashes

# Names of the catalog's own list of a metric, of the strings of a question itself, and of those
# that the metric's own tree found in the requested epochs.
CATALOG: Final = "catalog"
TYPED_LIST: Final = "given"
DISCOVERED: Final = "discovered"

_MAX_LISTS: Final = 200
_MAX_STRINGS: Final = 1_000_000
_MAX_BYTES: Final = 32 << 20
_LONGEST: Final = 1024
# Share of Redis' memory beyond which no list is saved, to leave room for reports.
_MAX_MEMORY: Final = 0.5
_STRINGS_KEY: Final = "aggregator:candidates"
_LISTS_KEY: Final = "aggregator:candidate_lists"


@dataclass(frozen=True, slots=True)
class SavedList:
    """A list by name.

    Args:
        saved: time of the last change, in seconds since 1970.
    """

    name: str
    total: int
    saved: int


async def with_candidates(
    metric: Metric,
    query: EstimateQuery,
    lists: "CandidateLists",
    estimate: Callable[[str, EstimateQuery], Awaitable[Estimated]],
) -> EstimateQuery:
    """The query with all of its candidate strings, and with the names of their sources.

    Without a list or a string, the catalog's list is used, and what the metric's tree discovered,
    if some of its devices feed one; either can also be named among the lists. A metric that
    discovers strings needs none.

    Raises:
        BadParameter: strings or lists for a metric that is not over strings, or likely strings of
            a metric that discovers none.
        NothingToLookFor: no list, no string, and none in the catalog.
        UnknownList: a list that is not saved.
    """
    if metric.model:
        raise BadParameter(
            f'"{metric.name}" is a model, which has no values: use hubbub model {metric.name}, or '
            f"/v1/models/{metric.name}"
        )
    family = family_for(metric.randomizer)
    if query.likely and not family.FINDS:
        raise BadParameter(_finds_none(metric))
    if family.KIND != "strings":
        if query.lists or query.candidates:
            source = "lists of candidates" if query.lists else '"candidates"'
            raise BadParameter(f'metric "{metric.name}" is not over strings: leave {source} out')
        return query
    if not (looks_for_strings(metric) or query.lists or query.candidates):
        return query
    catalog_lists = (CATALOG, DISCOVERED) if metric.discover else (CATALOG,)
    names = query.lists or (() if query.candidates else catalog_lists)
    strings = list(query.candidates)
    for name in names:
        if name == DISCOVERED and metric.discover:
            # Those that its tree discovered in the same epochs, with other devices.
            tree = f"{metric.base_name}/{FINDER}"
            with suppress(BatchTooSmall):
                answer = await estimate(tree, EstimateQuery(range=query.range))
                discovered = (value.value for value in answer.values)
                strings += [string for string in discovered if string not in answer.beginnings]
        else:
            strings += metric.candidates if name == CATALOG else await lists.find(name)
        if len(strings) > _MAX_STRINGS:
            raise BadParameter(
                f"the requested lists have more than {_MAX_STRINGS:,} strings together: request "
                "fewer at once"
            )
    if not strings:
        saved = ", ".join(saved_list.name for saved_list in await lists.saved())
        raise NothingToLookFor(
            f'metric "{metric.name}" is over strings, but its catalog has no candidates: '
            "pass the strings to look for, as candidates or a saved list "
            f"({saved or 'none is saved yet'})"
        )
    from_where = (*names, *([TYPED_LIST] if query.candidates else []))
    return replace(query, candidates=tuple(dict.fromkeys(strings)), lists=from_where)


def _finds_none(metric: Metric) -> str:
    """Error text about likely strings of a metric that discovers none, with the remedy."""
    why = f'metric "{metric.name}" is answered by {metric.randomizer.NAME}, which finds no strings'
    if metric.discover:
        tree = f"{metric.base_name}/{FINDER}"
        return f"{why}: ask {tree} for likely ones (over HTTP tier={FINDER})"
    return (
        f'{why}, so none are likely: leave "likely" out, or ask a metric with '
        'mechanism = "tree", or with discover'
    )


def looks_for_strings(metric: Metric) -> bool:
    """Whether it answers only for candidate strings."""
    if metric.model:
        return False
    family = family_for(metric.randomizer)
    return family.KIND == "strings" and not family.FINDS


class CandidateLists:
    """Lists of strings that analysts saved. Every method raises StoreUnavailable without Redis."""

    def __init__(self, server: Hashes, clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._clock = clock

    async def saved(self) -> list[SavedList]:
        """All readable lists, by name."""
        saved_lists = []
        for name, text in (await self._server.ask("HGETALL", _LISTS_KEY)).items():
            with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
                document = json.loads(text)
                total, saved = int(document["total"]), int(document["saved"])
                saved_lists.append(SavedList(name.decode(), total, saved))
        return sorted(saved_lists, key=lambda saved_list: saved_list.name)

    async def find(self, name: str) -> tuple[str, ...]:
        """The strings of a list. Raises UnknownList."""
        packed = (
            await self._server.ask("HGET", _STRINGS_KEY, name) if NAME.fullmatch(name) else None
        )
        if packed is None:
            raise _unknown_list_error(name, await self.saved())
        try:
            return _unique_strings(name, json.loads(gzip.decompress(packed)), [name])
        except (OSError, EOFError, ValueError, TypeError, BadParameter) as error:
            raise StoreUnavailable(
                f'list "{name}" is stored in an unreadable form: save it again'
            ) from error

    async def save(self, name: str, strings: Sequence[str], *, add: bool = False) -> SavedList:
        """Saves a list under a name, replacing a former list or, with `add`, extending it.

        Raises BadParameter for an invalid name, an invalid string, or too many.
        """
        names = [saved_list.name for saved_list in await self.saved()]
        before = await self.find(name) if add and name in names else ()
        checked = _unique_strings(name, [*before, *strings], names)
        new_list = SavedList(name, len(checked), int(self._clock()))
        packed = gzip.compress(json.dumps(checked).encode(), mtime=0)
        _, free_bytes = await self._server.room(_MAX_MEMORY)
        if len(packed) > free_bytes:
            raise StoreFull(
                f"the list does not fit in {_MAX_MEMORY:.0%} of the memory of the "
                "aggregator's Redis; the rest is reserved for reports; remove a list, or "
                "give Redis more memory"
            )
        await self._server.durable([("HSET", _STRINGS_KEY, name, packed)])
        await self._server.durable([("HSET", _LISTS_KEY, name, json.dumps(asdict(new_list)))])
        return new_list

    async def remove(self, name: str) -> None:
        """Deletes a list. Raises UnknownList."""
        saved_lists = await self.saved()
        if name not in [saved_list.name for saved_list in saved_lists]:
            raise _unknown_list_error(name, saved_lists)
        for key in (_LISTS_KEY, _STRINGS_KEY):
            await self._server.durable([("HDEL", key, name)])


def _unique_strings(name: str, strings: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The strings without repetition, if they may be saved under this name."""
    if not NAME.fullmatch(name) or name in {CATALOG, TYPED_LIST, DISCOVERED}:
        raise BadParameter(
            f"a list's name must match {NAME.pattern}, and not be "
            f'"{CATALOG}", "{TYPED_LIST}" or "{DISCOVERED}"'
        )
    if name not in names and len(names) >= _MAX_LISTS:
        raise BadParameter(f"{_MAX_LISTS} lists are saved, which is the limit; remove one")
    unique = tuple(dict.fromkeys(strings))
    if not 1 <= len(unique) <= _MAX_STRINGS:
        raise BadParameter(f"the list has {len(unique):,} strings; it needs 1 to {_MAX_STRINGS:,}")
    for string in unique:
        if not string:
            raise BadParameter("a string of a list is empty; leave it out")
        check_words("a string of a list", string, _LONGEST)
    if sum(map(len, unique)) > _MAX_BYTES:
        raise BadParameter(f"a list has more than {_MAX_BYTES >> 20} MiB; split it")
    return unique


def _unknown_list_error(name: str, saved: Sequence[SavedList]) -> UnknownList:
    names = [saved_list.name for saved_list in saved]
    others = f"there are: {', '.join(names)}{did_you_mean(name, names)}"
    if not names:
        others = "none is saved; save one with: hubbub candidates add NAME FILE"
    return UnknownList(f'no list of candidates is called "{name[:60]}"; {others}')
