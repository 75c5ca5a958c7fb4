"""Sends lists of commands to Redis, one server or a Cluster, and maps all failures to one error.

Each command uses keys of one slot, so the same code runs on both; and every list may be executed
twice, so that it can be retried.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from math import inf
from typing import Any, Final, Self, TypeAlias
from urllib.parse import urlsplit

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import ConnectionError as Disconnected

from hubbub.errors import StoreFull, StoreUnavailable

_log: Final = logging.getLogger("hubbub.redis")

# What to do about an error of a Redis that answers, by a part of its text in small letters; and
# about any other.
_REMEDIES: Final = {
    "authenticationerror": "give HUBBUB_REDIS_URL the user and the password that Redis has",
    "read only replica": "wait for its failover, or name the primary with HUBBUB_REDIS_URL",
    "max number of clients": "raise its maxclients",
    "no permissions": "give its user the rights in users.acl",
    "loading the dataset": "wait until it has read its files",
    "enough good replicas": "connect its replicas, or lower min-replicas-to-write",
    "wrong kind of value": "a key is another program's: give hubbub a Redis of its own",
    "db index": "name a database that it has in HUBBUB_REDIS_URL",
}
_AWAY: Final = "start it, or name another with HUBBUB_REDIS_URL"

_LOOK_SECONDS: Final = 5.0


class Memory:
    """Watches how full Redis is. `ratio` is the used part of its memory; 0 without a limit."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self.ratio = 0.0

    async def run(self) -> None:
        """Looks every few seconds, until cancelled."""
        while True:
            with suppress(StoreUnavailable):  # hubbub_store_up says that
                await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Updates `ratio`. Raises StoreUnavailable if Redis cannot be asked."""
        self.ratio, _ = await self._server.room()


Command: TypeAlias = tuple[Any, ...]
"""A command's name and arguments; the first of them is its key, unless it is a script."""


def lua(package: str, name: str) -> str:
    """The text of NAME.lua in a package without comments, since it is sent with every call."""
    text = (files(package) / f"{name}.lua").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("--"))


def script(text: str, keys: Sequence[str], arguments: Iterable[Any] = ()) -> Command:
    """The command that runs a Lua script on keys of one slot.

    The text is sent, not its hash: asking first whether Redis knows the hash costs a round trip.
    """
    return ("EVAL", text, len(keys), *keys, *arguments)


_REPLICA_MS: Final = 5000
# Time for retries while a Cluster moves a slot or replaces a node.
_MOVING_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.1
_MOVING: Final = (
    exceptions.AskError,
    exceptions.TryAgainError,
    exceptions.ClusterDownError,
    Disconnected,
    exceptions.ReadOnlyError,
    exceptions.RedisClusterException,
)


class RedisServer:
    """The Redis that holds a service's state. Every method raises StoreUnavailable on failure.

    `client` is one server's or a Cluster's; `replicas` is how many must confirm a durable write.
    """

    def __init__(self, client: Redis | RedisCluster, url: str, replicas: int = 0) -> None:
        self.client = client
        self._hosts = shown_hosts(url)
        self._replicas = replicas
        self._under_way = 0
        self._closed = False
        self._evicts = False  # whether it did at the last look at its memory
        self._offsets: dict[str, int] = {}  # how far each history of writes was at the last look

    async def ask(self, *command: Any) -> Any:
        """Executes one command, and returns its answer."""
        [answer] = await self.execute([command])
        return answer

    async def check_rights(self, role: str, trial: Command, rights: str) -> None:
        """Raises StoreUnavailable if our Redis user lacks rights that this version of a role needs.

        `trial` is a harmless command that needs those rights; `rights` is what the user lacks.
        """
        try:
            await self.ask(*trial)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, exceptions.NoPermissionError):
                raise StoreUnavailable(
                    f"Redis: the {role}'s user has fewer rights than this version needs; as the "
                    f"user operator, run: ACL SETUSER {role} {rights}, and write it to users.acl "
                    "(docs/operate/upgrade.md)"
                ) from error
            raise

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """Executes commands, and returns their answers in order; those of one slot run in order."""
        async with self.errors():
            return await self._execute(commands, 0)

    async def ask_each(self, commands: Sequence[Command]) -> list[Any]:
        """Executes commands; a key of the wrong type yields an error object as its answer."""
        async with self.errors():
            return await self._execute(commands, 0, each=True)

    async def durable(self, commands: Sequence[Command]) -> list[Any]:
        """Executes commands, and waits until the required replicas have confirmed the writes.

        If it raises StoreUnavailable, they may or may not have been executed; they must be
        repeatable.
        """
        async with self.errors():
            return await self._execute(commands, self._replicas)

    async def close(self) -> None:
        """Closes every connection, also one that is being made for a command under way.

        redis-py reconnects for a command whose connection is closed under it, and keeps that
        connection: so the last command to end closes it.
        """
        self._closed = True
        await self.client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def room(self, part: float = 1.0) -> tuple[float, float]:
        """The used part of the fullest node's memory, and the bytes left until `part` of its limit.

        Without a limit these are 0 and infinity. A Redis that was set to evict keys is full: what
        is written there may be lost.
        """
        async with self.errors():
            nodes = await self.info("memory")
            self._note_lost_writes(await self.info("replication"))
        reasons = [why for node in nodes if (why := eviction(node))]
        if reasons and not self._evicts:
            _log.error("Redis at %s%s", self._hosts, reasons[0])
        self._evicts = bool(reasons)
        if reasons:
            return 1.0, 0.0
        memory_pairs = ((int(node.get("maxmemory", 0)), int(node["used_memory"])) for node in nodes)
        limited_nodes = [(limit, used) for limit, used in memory_pairs if limit]
        return (
            max((used / limit for limit, used in limited_nodes), default=0.0),
            min((part * limit - used for limit, used in limited_nodes), default=inf),
        )

    def _note_lost_writes(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Logs a failover to a replica without writes that were seen, if nobody waited for it.

        A replica that is promoted begins a history, and names the former one and its end.
        """
        for node in () if self._replicas else nodes:
            end = int(node.get("second_repl_offset", 0)) - 1
            lost = self._offsets.get(node.get("master_replid2", ""), end) - end
            if lost > 0:
                _log.error(
                    "Redis at %s failed over to a replica without its last %d bytes of writes: "
                    "what was acknowledged in them is lost, and the conservation law is off by "
                    "it; wait for replicas with --redis-replicas (docs/operate/cluster.md)",
                    self._hosts,
                    lost,
                )
        named = (node for node in nodes if "master_replid" in node)
        self._offsets = {node["master_replid"]: int(node["master_repl_offset"]) for node in named}

    async def times(self) -> list[float]:
        """The time by every node that takes writes, in seconds since 1970."""
        async with self.errors():
            nodes = await self.info("server")
        return [int(node["server_time_usec"]) / 1e6 for node in nodes]

    async def info(self, *section: str) -> list[Mapping[str, Any]]:
        """The INFO of every node that takes writes."""
        if isinstance(self.client, RedisCluster):
            nodes = await self.client.info(*section, target_nodes=RedisCluster.PRIMARIES)
            # One node returns a single value, several nodes return values by name.
            return [nodes] if "redis_version" in nodes else list(nodes.values())
        return [await self.client.info(*section)]

    async def _execute(
        self, commands: Sequence[Command], replicas: int, *, each: bool = False
    ) -> list[Any]:
        if not isinstance(self.client, RedisCluster):
            pipe = self.client.pipeline(transaction=False)
            for command in commands:
                pipe.execute_command(*command)
            if replicas:
                pipe.wait(replicas, _REPLICA_MS)
            answers = _checked_answers(await pipe.execute(raise_on_error=not each))
        else:
            answers = await self._execute_on_nodes(self.client, commands, replicas, each=each)
        reached = answers[len(commands) :]
        if any(int(number) < replicas for number in reached):
            raise StoreUnavailable(
                f"Redis at {self._hosts}: {min(map(int, reached))} of {replicas} replicas have the "
                "write; start the others, or require fewer with --redis-replicas"
            )
        return answers[: len(commands)]

    async def _execute_on_nodes(
        self, cluster: RedisCluster, commands: Sequence[Command], replicas: int, *, each: bool
    ) -> list[Any]:
        """The answers, followed by the number of replicas that confirmed each node's writes.

        redis-py would follow a redirection on another connection, where no WAIT follows the write:
        so it is not used; the slots are looked up again and the commands repeated.
        """
        deadline = time.monotonic() + _MOVING_SECONDS
        while True:
            try:
                await cluster.initialize()
                pipe, nodes = cluster.pipeline(), {}
                for command in commands:
                    key = command[3] if command[0] == "EVAL" else command[1]
                    node = cluster.get_node_from_key(key)
                    if node is None:
                        raise exceptions.SlotNotCoveredError("no node has the slot")
                    pipe.execute_command(*command, target_nodes=node)
                    nodes[node.name] = node
                for node in nodes.values() if replicas else ():
                    pipe.execute_command("WAIT", replicas, _REPLICA_MS, target_nodes=node)
                answers = await pipe.execute(raise_on_error=not each, allow_redirections=False)
                return _checked_answers(answers)
            except _MOVING:
                with suppress(exceptions.RedisError, exceptions.RedisClusterException, OSError):
                    await cluster.nodes_manager.initialize()
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)

    @asynccontextmanager
    async def errors(self) -> AsyncIterator[None]:
        """Turns redis-py's errors into StoreUnavailable with the address, without the password."""
        self._under_way += 1
        try:
            yield
        except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
            # Scripts of an older Redis return both as text.
            if isinstance(error, exceptions.OutOfMemoryError) or "OOM command not allowed" in str(
                error
            ):
                raise StoreFull(
                    f"Redis at {self._hosts} is full; raise its maxmemory, or let it drain"
                ) from error
            read_only = isinstance(error, exceptions.ReadOnlyError) or "READONLY" in str(error)
            if read_only and not isinstance(self.client, RedisCluster):
                # It is a replica now: look for the primary again.
                await self.client.connection_pool.disconnect(inuse_connections=False)
            text = _error_text(error)
            lower = text.lower()
            remedy = next((remedy for cause, remedy in _REMEDIES.items() if cause in lower), _AWAY)
            raise StoreUnavailable(f"Redis at {self._hosts}: {text}; {remedy}") from error
        finally:
            self._under_way -= 1
            if self._closed and not self._under_way:
                with suppress(exceptions.RedisError, OSError):
                    await self.client.aclose()


def eviction(info: Mapping[str, Any]) -> str:
    """Why a node with this INFO loses keys, to follow its name; empty if it keeps all."""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return ""
    return (
        f" has maxmemory-policy {policy}: it would forget reports, or that they were counted; "
        "set maxmemory-policy noeviction"
    )


class MemoryServer:
    """Hashes in this process's memory, with the methods of RedisServer; lost when it ends."""

    def __init__(self) -> None:
        self._hashes: dict[str, dict[bytes, bytes]] = {}
        self._ends: dict[str, float] = {}

    async def ask(self, *command: Any) -> Any:
        """Executes one command, and returns its answer."""
        return self._answer(*command)

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """Executes commands, and returns their answers in order."""
        return [self._answer(*command) for command in commands]

    durable = execute

    async def room(self, part: float = 1.0) -> tuple[float, float]:  # noqa: ARG002 as RedisServer
        """No memory limit: nothing is used, and infinitely many bytes are left."""
        return 0.0, inf

    def _answer(self, name: str, key: str, *arguments: Any) -> Any:
        now = time.time()
        for expired in [other for other, end in self._ends.items() if end <= now]:
            del self._ends[expired]
            self._hashes.pop(expired, None)
        old = self._hashes.get(key, {})
        words = [word if isinstance(word, bytes) else str(word).encode() for word in arguments]
        match name, words:
            case "HGETALL", []:
                return dict(old)
            case "HGET", [field]:
                return old.get(field)
            case "HMGET", fields:
                return [old.get(field) for field in fields]
            case "EXISTS", []:
                return int(bool(old))
            case "EXPIRE", [seconds]:
                self._ends[key] = now + int(seconds)
                return 1
        return self._write(name, key, old, words)

    def _write(self, name: str, key: str, old: dict[bytes, bytes], words: list[bytes]) -> int:
        match name, words:
            case "HSETNX", [field, word]:
                changed = {field: word, **old}
            case "HSET", pairs:
                changed = old | dict(zip(pairs[::2], pairs[1::2], strict=True))
            case "HDEL", fields:
                changed = {field: word for field, word in old.items() if field not in fields}
            case "UNLINK", []:
                changed = {}
            case _:
                raise NotImplementedError(name)
        self._hashes[key] = changed
        return abs(len(changed) - len(old))


Hashes: TypeAlias = RedisServer | MemoryServer


def _checked_answers(answers: Sequence[Any]) -> list[Any]:
    """The answers; raises the first error other than a wrong type of key."""
    for answer in answers:
        if isinstance(answer, Exception) and "WRONGTYPE" not in str(answer):
            raise answer
    return list(answers)


def _error_text(error: Exception) -> str:
    """An error's text without the command: redis-py quotes its arguments, which are reports."""
    text = str(error.args[0]) if error.args else ""
    if isinstance(error, exceptions.RedisError) and text.startswith("Command # "):
        # It shows the error's arguments, a tuple of one text.
        text = text.rpartition("caused error: ")[2].strip("(,)").strip("'\"")
    return f"{type(error).__name__}: {text}"


def shown_hosts(url: str) -> str:
    """The hosts in a Redis URL, without user and password."""
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2] or parts.path
    return ", ".join(host if ":" in host else f"{host}:6379" for host in hosts.split(","))
