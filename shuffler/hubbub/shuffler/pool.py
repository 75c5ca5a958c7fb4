"""The pool: reports that wait to be mixed, and batches on their way, in Redis.

Every step is one Lua script of scripts/ on the keys of one window, so it happens whole or not at
all, and may be repeated where nobody knows whether it happened. Keys, for a window W =
STREAM:EPOCH, behind the prefix "shuffler:":

    pool:{W}       set of sealed reports: a resent one is the same member
    batches:{W}    hash of the batches in flight: id -> the process that sends it
    batch:{W}:ID   set of the sealed reports of one batch in flight
    crowds:{W}     hash of the crowds that leave whole and are being cut: id -> how many cuts, the
                   secret and, if it has any, how many dummies, with ":" between
    crowd:{W}:ID   set of the sealed reports of such a crowd that are in no cut yet; a cut is a
                   batch
    dummies:{W}:ID set of its sealed dummies that are in no cut yet; also before it leaves
    noise:{W}      hash: sealed, the dummies of a hidden number of reports, one behind the other
    spent:{W}      hash of the tokens that went with a report: nonce -> its mark of that report
    shares:{W}     hash of the share that a cut in flight has of its crowd's dummies: id -> number
    gathering:{W}  hash of the crowds of several shards that are not all set apart: id -> shards
    law:{W}        hash: acknowledged, withheld, dummies:ID of every crowd that is cut up, takes:
                   how many batches were taken, left: the last crowd of several shards or of a
                   hidden number, or "" if that was withheld, shards: into how many its pool is
                   spread, noise and named: how many dummies hide the number and name each value,
                   and dummies:noise their sum once those are pooled; settle.lua empties these
    shards         set of W/N of every W whose pool has N shards; the keys of the second are those
                   above with {W/1} in place of {W}, and so on
    windows        set of every W that may hold anything
    over           set of every W that is over and empty; its counters are kept for a while
    closed         set of every W that an operator closed before its time
    unknown        hash of every W that the stream table does not know: W -> since when
    alive:OWNER    there while a process lives that sends batches
"""

import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from hubbub.conservation import Window
from hubbub.runtime.redis.command_sender import Command, RedisServer, lua, script
from hubbub.shuffler.crowd_pool import Crowds, HiddenCounts, settle
from hubbub.shuffler.mixing_policy import Take
from hubbub.shuffler.pool_replies import TERMS, Level, PoolReplies
from hubbub.shuffler.shards import CHUNK, Place, by_shard, chunks, keys_of, places, set_key
from hubbub.shuffler.token_checks import Paid

# A full Redis lets a script continue whose first write deletes. So scripts that make room first
# delete something, if only a field that does not exist.
_ADD, _SPEND, _TAKE, _CLAIM, _DELIVERED, _WITHHOLD, _LEVEL, _COUNTS = (
    lua(__package__, f"scripts/{name}")
    for name in ("add", "spend", "take", "claim", "delivered", "withhold", "level", "counts")
)
# Time for which the counters of an ended window stay readable.
_KEEP_SECONDS: Final = 30 * 86_400
# Reports admitted while the window closed may arrive after its archiving and must find its spent
# tokens: much longer than any request, or any difference of clocks.
_SPENT_SECONDS: Final = 6 * 3600
# Another process sends the batches of a process without a heartbeat for this long.
_ALIVE_MS: Final = 4000
# Windows whose number of shards a process caches.
_REMEMBERED: Final = 4096


class Pool:
    """The shuffler's pool in Redis. Every method raises StoreUnavailable if it cannot be asked.

    `shards` is the number of shards of windows that begin now and may be spread; `crowds` handles
    pools that leave whole, `hidden` those whose number of reports is hidden.
    """

    def __init__(self, server: RedisServer, shards: int = 1) -> None:
        self.server = server
        self._shards = shards
        self._begun: dict[Window, int] = {}
        self._owner = secrets.token_bytes(8)
        self._replies = PoolReplies()
        self.crowds = Crowds(server, self._owner, self._replies)
        self.hidden = HiddenCounts(server)

    async def check(self) -> None:
        """Raises StoreUnavailable if our Redis user lacks rights that we need."""
        rights = "+hexists +unlink +rename +persist +sscan +sunionstore"
        await self.server.check_rights("shuffler", ("SSCAN", "shuffler:nothing", "0"), rights)

    async def add(
        self,
        reports: Mapping[Window, Sequence[bytes | Paid]],
        whole: Collection[Window] = (),
    ) -> frozenset[Paid]:
        """Adds reports to their pools durably; returns those whose token was spent before.

        `whole` are the windows whose pool may be in shards.
        """
        shards = await self._shards_of(whole)
        list_commands = [("SADD", "shuffler:windows", *(window.name for window in reports))]
        if several := [f"{window.name}/{count}" for window, count in shards.items() if count > 1]:
            list_commands.append(("SADD", "shuffler:shards", *several))
        steps: list[Command] = []
        paying: list[Sequence[Paid]] = []
        for place, all_of_it in by_shard(reports, shards).items():
            keys = keys_of(place, "pool", "law", "spent")
            free = [report for report in all_of_it if not isinstance(report, Paid)]
            paid = [report for report in all_of_it if isinstance(report, Paid)]
            for part in chunks(free):
                steps.append(script(_ADD, keys[:2], part))
                paying.append(())
            for owed in chunks(paid, CHUNK // len(Paid._fields)):
                steps.append(script(_SPEND, keys, [field for payment in owed for field in payment]))
                paying.append(owed)
        # Twice: another process may have archived the window meanwhile, as empty.
        replies = await self.server.durable([*list_commands, *steps, *list_commands])
        answers = zip(paying, replies[len(list_commands) :], strict=False)
        return frozenset(part[int(n)] for part, answer in answers if part for n in answer[1])

    async def _shards_of(self, windows: Collection[Window]) -> dict[Window, int]:
        """The number of shards that each window began with, whatever the setting is now.

        PRIVACY: a token is spent in its shard, and could be spent again in another.
        """
        shard_counts = {window: self._begun[window] for window in windows if window in self._begun}
        unseen = sorted(set(windows) - shard_counts.keys())
        if not unseen:
            return shard_counts
        laws = [window.key("shuffler:law") for window in unseen]
        # Listed first, so that it is archived later even if no report follows.
        list_command = ("SADD", "shuffler:windows", *(window.name for window in unseen))
        begin = [("HSETNX", law, "shards", self._shards) for law in laws]
        await self.server.durable([list_command, *begin])
        replies = await self.server.execute([("HGET", law, "shards") for law in laws])
        answers = zip(unseen, replies, strict=True)
        new_counts = {window: self._replies.number(window, reply) for window, reply in answers}
        if len(self._begun) >= _REMEMBERED:
            self._begun.clear()
        self._begun |= new_counts
        return shard_counts | new_counts

    async def take(self, window: Window, take: Take, level: Level) -> bytes | None:
        """Moves random reports into a new batch; returns its id, or None if the pool holds too few.

        `level` is the pool's state when this was decided; if it changed, nothing is taken.
        """
        batch_id = secrets.token_bytes(16)
        pool, batches, law = keys_of(window, "pool", "batches", "law")
        keys = [pool, batches, set_key(window, "batch", batch_id), law]
        limits = take.number, take.needs, self._owner, level.takes
        [reply] = await self.server.execute([script(_TAKE, keys, [batch_id.hex(), *limits])])
        return batch_id if reply else None

    async def batches(self, place: Place) -> dict[bytes, bytes]:
        """A place's batches in flight that are ours to send: id and the process that owns it.

        Ours are those that we took, and those of processes that have died.
        """
        owners = await self.server.ask("HGETALL", place.key("shuffler:batches"))
        others = set(owners.values()) - {self._owner}
        dead = {o for o in others if not await self.server.ask("EXISTS", _alive_key(o))}
        ours = {
            self._replies.batch_id(place, name): owner
            for name, owner in owners.items()
            if owner == self._owner or owner in dead
        }
        return {batch_id: owner for batch_id, owner in ours.items() if batch_id is not None}

    async def claim(self, place: Place, batch_id: bytes, owner: bytes | None) -> list[bytes]:
        """The sealed reports of a batch, which this process sends from now on.

        `owner` is its former owner, if not us. Empty if it was delivered or another took it.
        """
        keys = [*keys_of(place, "batches"), set_key(place, "batch", batch_id)]
        owners = [self._owner, owner or self._owner]
        [sealed] = await self.server.durable([script(_CLAIM, keys, [batch_id.hex(), *owners])])
        return list(sealed)

    async def heartbeat(self) -> None:
        """Records that this process is alive; must be repeated every second."""
        key = _alive_key(self._owner)
        # A full Redis still prolongs a key, although it accepts no new one.
        if not await self.server.ask("PEXPIRE", key, _ALIVE_MS):
            await self.server.ask("SET", key, 1, "PX", _ALIVE_MS)

    async def resign(self) -> None:
        """Records that this process ends, so that others may send its batches at once."""
        await self.server.ask("DEL", _alive_key(self._owner))

    async def share(self, place: Place, batch_id: bytes) -> int:
        """The number of dummies to count in a batch: its share of those of its crowd."""
        reply = await self.server.ask("HGET", place.key("shuffler:shares"), batch_id.hex())
        return int(reply or 0)

    async def delivered(self, place: Place, batch_id: bytes) -> None:
        """Deletes a batch that the aggregator has counted."""
        batches, shares = keys_of(place, "batches", "shares")
        keys = [batches, set_key(place, "batch", batch_id), shares]
        await self.server.execute([script(_DELIVERED, keys, [batch_id.hex()])])

    async def withhold(self, window: Window, min_batch: float, shards: int = 1) -> int:
        """Deletes and counts a pool with fewer reports than the minimum; returns their number."""
        levels = await self.levels(window, shards)
        lacking = min_batch - sum(level.reports for level in levels)
        if lacking <= 0:
            return 0
        # Each shard separately: all shards together have fewer reports than the minimum.
        steps = [
            script(_WITHHOLD, keys_of(place, "pool", "law"), [lacking + level.reports])
            for place, level in zip(places(window, shards), levels, strict=True)
        ]
        settled = [settle(place) for place in places(window, shards)]
        replies = await self.server.execute([*steps, *settled])
        return sum(map(int, replies[: len(steps)]))

    async def level(self, window: Window) -> Level:
        """The number of reports in a window's pool, and how often any were taken."""
        [level] = await self.levels(window)
        return level

    async def levels(self, window: Window, shards: int = 1) -> list[Level]:
        """The states of a window's shards."""
        steps = [script(_LEVEL, keys_of(place, "pool", "law")) for place in places(window, shards)]
        replies = await self.server.execute(steps)
        return [self._replies.level(window, reply) for reply in replies]

    async def is_empty(self, window: Window, shards: int = 1) -> bool:
        """Whether the window holds no report, pooled or in flight."""
        parts = "pool", "batches", "crowds", "gathering"
        commands = [("EXISTS", *keys_of(place, *parts)) for place in places(window, shards)]
        return not any(await self.server.execute(commands))

    async def archive(self, window: Window, shards: int = 1) -> None:
        """Archives a window that is over and empty; its counters stay readable for 30 days."""
        # On a Cluster these are two nodes: after a stop it is listed in both or in the first.
        await self.server.durable([("SADD", "shuffler:over", window.name)])
        shard_places = places(window, shards)
        await self.server.execute(
            [
                *(settle(place, is_over=True) for place in shard_places),
                *(("EXPIRE", *keys_of(place, "law"), _KEEP_SECONDS) for place in shard_places),
                *(("DEL", *keys_of(place, "shares", "noise")) for place in shard_places),
                *(("EXPIRE", *keys_of(place, "spent"), _SPENT_SECONDS) for place in shard_places),
                ("SREM", "shuffler:windows", window.name),
                ("HDEL", "shuffler:unknown", window.name),
            ]
        )

    async def shards(self) -> dict[Window, int]:
        """The windows with several shards, each with their number."""
        return self._replies.shards(await self.server.ask("SMEMBERS", "shuffler:shards"))

    async def restore(self, arrived: Mapping[Window, tuple[int, int]]) -> None:
        """Sets counters of windows that are over and fully delivered: of reports and of dummies.

        Windows that have counters keep theirs.
        """
        for window, (reports, dummies) in arrived.items():
            law = window.key("shuffler:law")
            counters = [("acknowledged", reports), ("dummies:restored", dummies)]
            sets = [("HSETNX", law, *counter) for counter in counters]
            await self.server.durable([*sets, ("EXPIRE", law, _KEEP_SECONDS)])
        names = [window.name for window in arrived]
        if names:
            await self.server.durable([("SADD", "shuffler:over", *names)])

    async def unknown_since(self, window: Window, now: float) -> float:
        """When a window was first found to be missing in the table; `now` if new or malformed."""
        record_command = ("HSETNX", "shuffler:unknown", window.name, str(now))
        _, since = await self.server.execute([record_command, ("HGET", *record_command[1:3])])
        try:
            start = float(since or now)
        except ValueError:
            return now
        return start if 0 <= start <= now else now

    async def windows(self) -> list[Window]:
        """Every window that may hold anything."""
        return await self._windows("windows")

    async def closed_and_all(self) -> tuple[frozenset[Window], list[Window]]:
        """The windows that an operator closed early, and all of `windows`."""
        commands = [("SMEMBERS", "shuffler:closed"), ("SMEMBERS", "shuffler:windows")]
        closed, windows = await self.server.execute(commands)
        closed_windows = frozenset(self._replies.windows("closed", closed))
        return closed_windows, self._replies.windows("windows", windows)

    async def close_windows(self) -> list[Window]:
        """Closes every window now: pools with the minimum go out whole, others are withheld."""
        windows = await self.windows()
        if windows:
            await self.server.ask("SADD", "shuffler:closed", *(w.name for w in windows))
        return windows

    async def held_of_streams(self) -> Counter[str]:
        """The number of reports of each stream in Redis, pooled or in flight."""
        counts: Counter[str] = Counter()
        for window, term in (await self._terms(await self.windows())).items():
            counts[window.stream] += term["pooled"] + term["in_flight"]
        return counts

    async def restore_archived(self) -> None:
        """Lists windows again that were archived although they hold reports.

        A command that was delayed in an abandoned connection can cause that.
        """
        terms = await self._terms(await self._windows("over"))
        back = [w.name for w, t in terms.items() if t["pooled"] or t["in_flight"]]
        if back:
            await self.server.ask("SADD", "shuffler:windows", *back)

    async def report_counts(self) -> dict[Window, dict[str, int]]:
        """The shuffler's terms of the conservation law per window; a shard's are of one moment."""
        windows = sorted({*await self._windows("windows"), *await self._windows("over")})
        terms = await self._terms(windows)
        forgotten = [window.name for window in windows if window not in terms]
        if forgotten:
            for index in ("over", "closed"):
                await self.server.ask("SREM", f"shuffler:{index}", *forgotten)
            members = await self.server.ask("SMEMBERS", "shuffler:shards")
            names = [name for name in members if name.rpartition(b"/")[0].decode() in forgotten]
            if names:
                await self.server.ask("SREM", "shuffler:shards", *names)
        return terms

    async def _terms(self, windows: Sequence[Window]) -> dict[Window, dict[str, int]]:
        """The terms of every window that has any, summed over its shards."""
        if not windows:
            return {}
        shards = await self.shards()
        window_places = [(w, place) for w in windows for place in places(w, shards.get(w, 1))]
        steps = []
        for _, place in window_places:
            prefixes = [set_key(place, part) for part in ("batch", "crowd", "dummies")]
            keys = keys_of(place, "pool", "batches", "law", "crowds")
            steps.append(script(_COUNTS, keys, prefixes))
        answers = await self.server.ask_each(steps)
        counters: dict[Window, Counter[str]] = defaultdict(lambda: Counter(dict.fromkeys(TERMS, 0)))
        for (window, _), numbers in zip(window_places, answers, strict=True):
            if numbers:
                counters[window].update(self._replies.terms(window, numbers))
        return {window: dict(terms) for window, terms in counters.items()}

    async def _windows(self, index: str) -> list[Window]:
        names = await self.server.ask("SMEMBERS", f"shuffler:{index}")
        return self._replies.windows(index, names)


def _alive_key(owner: bytes) -> bytes:
    return b"shuffler:alive:" + owner
