"""Redis, one server or a Cluster, asked in lists of commands and failing as one error.

Each command is on the keys of one slot, so that the same code runs on both; and every list of ours
bears being executed again, so that it may be.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from math import inf
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import (
    AskError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as Disconnected

from hubbub.errors import StoreFull, StoreUnavailable

_LOOK_SECONDS: Final = 5.0


class Memory:
    """Looks every few seconds. ratio: the part in use of what it may use; 0 without a limit."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self.ratio = 0.0

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            with suppress(StoreUnavailable):  # hubbub_store_up says that
                await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """See how full it is. Raises StoreUnavailable if Redis cannot be asked."""
        self.ratio, _ = await self._server.room()


Command: TypeAlias = tuple[Any, ...]
"""A command's name and arguments; the first of them is its key, unless it is a script."""


def lua(package: str, name: str) -> str:
    """The text of NAME.lua in a package, without the comments: it travels with every call."""
    text = (files(package) / f"{name}.lua").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("--"))


def script(text: str, keys: Sequence[str], arguments: Iterable[Any] = ()) -> Command:
    """A Lua script on keys of one slot.

    Its text, not its hash: asking first whether Redis knows the hash would cost a second trip.
    """
    return ("EVAL", text, len(keys), *keys, *arguments)


_REPLICA_MS: Final = 5000
# A Cluster that moves a slot, or loses a node, is asked again for so long.
_MOVING_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.1
_MOVING: Final = (
    AskError,
    TryAgainError,
    ClusterDownError,
    Disconnected,
    ReadOnlyError,
    RedisClusterException,
)


class RedisServer:
    """What a service keeps its state in. Every method raises StoreUnavailable if it cannot be.

    client: one server's, or a Cluster's. replicas: how many must have a write before it counts.
    """

    def __init__(self, client: Redis | RedisCluster, url: str, replicas: int = 0) -> None:
        self.client = client
        self._shown = shown(url)
        self._replicas = replicas
        self._under_way = 0
        self._closed = False

    async def ask(self, *command: Any) -> Any:
        """The answer to one command."""
        [answer] = await self.execute([command])
        return answer

    async def check_rights(self, role: str, trial: Command, rights: str) -> None:
        """Raises StoreUnavailable if our user may less than this version of a role needs.

        trial: what users of before may not, and changes nothing. rights: what they lack.
        """
        try:
            await self.ask(*trial)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, NoPermissionError):
                raise StoreUnavailable(
                    f"Redis: the {role}'s user may less than this version needs; as the user "
                    f"operator: ACL SETUSER {role} {rights}, and the same in users.acl "
                    "(docs/operate/upgrade.md)"
                ) from error
            raise

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to some commands, in their order; those of one slot are executed in it."""
        async with self.errors():
            return await self._execute(commands, 0)

    async def each(self, commands: Sequence[Command]) -> list[Any]:
        """The same; in the place of an answer the error, where a key holds what it should not."""
        async with self.errors():
            return await self._execute(commands, 0, each=True)

    async def durable(self, commands: Sequence[Command]) -> list[Any]:
        """The same, once as many replicas as asked for have what was written.

        Raises:
            StoreUnavailable: they may have been executed or not; they must bear being repeated.
        """
        async with self.errors():
            return await self._execute(commands, self._replicas)

    async def close(self) -> None:
        """End every connection, also one that is made for what is asked just now.

        redis-py connects anew for a command whose connection is ended under it, and keeps that
        connection: whichever command is the last ends it.
        """
        self._closed = True
        await self.client.aclose()

    async def room(self, part: float = 1.0) -> tuple[float, float]:
        """Which part of its limit the fullest node uses, and how many bytes are left of `part`.

        Nothing is used of no limit, and what is left is endless.
        """
        async with self.errors():
            nodes = await self.info("memory")
        memory_pairs = ((int(node.get("maxmemory", 0)), int(node["used_memory"])) for node in nodes)
        most = [(limit, used) for limit, used in memory_pairs if limit]
        return (
            max((used / limit for limit, used in most), default=0.0),
            min((part * limit - used for limit, used in most), default=inf),
        )

    async def times(self) -> list[float]:
        """What the time is by every node that takes writes, in seconds since 1970."""
        async with self.errors():
            nodes = await self.info("server")
        return [int(node["server_time_usec"]) / 1e6 for node in nodes]

    async def info(self, *section: str) -> list[Mapping[str, Any]]:
        """What every node that takes writes says of itself."""
        if isinstance(self.client, RedisCluster):
            nodes = await self.client.info(*section, target_nodes=RedisCluster.PRIMARIES)
            # Of one node it comes alone, of several by their names.
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
            answers = _told(await pipe.execute(raise_on_error=not each))
        else:
            answers = await self._execute_on_nodes(self.client, commands, replicas, each=each)
        reached = answers[len(commands) :]
        if any(int(number) < replicas for number in reached):
            raise StoreUnavailable(
                f"Redis at {self._shown}: {min(map(int, reached))} of {replicas} replicas have the "
                "write; start the others, or require fewer with --redis-replicas"
            )
        return answers[: len(commands)]

    async def _execute_on_nodes(
        self, cluster: RedisCluster, commands: Sequence[Command], replicas: int, *, each: bool
    ) -> list[Any]:
        """The answers, and behind them how many replicas each node's writes have reached.

        redis-py would follow a redirection on another connection, where no WAIT follows the write:
        so we ask where the slots are now, and begin again.
        """
        deadline = time.monotonic() + _MOVING_SECONDS
        while True:
            try:
                await cluster.initialize()
                pipe, nodes = cluster.pipeline(), {}
                for command in commands:
                    node = cluster.get_node_from_key(_key(command))
                    if node is None:
                        raise SlotNotCoveredError("no node has the slot")
                    pipe.execute_command(*command, target_nodes=node)
                    nodes[node.name] = node
                for node in nodes.values() if replicas else ():
                    pipe.execute_command("WAIT", replicas, _REPLICA_MS, target_nodes=node)
                return _told(await pipe.execute(raise_on_error=not each, allow_redirections=False))
            except _MOVING:
                with suppress(RedisError, RedisClusterException, OSError):
                    await cluster.nodes_manager.initialize()
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)

    @asynccontextmanager
    async def errors(self) -> AsyncIterator[None]:
        """Turns what redis-py raises into StoreUnavailable, with the address, not the password."""
        self._under_way += 1
        try:
            yield
        except (RedisError, RedisClusterException, OSError) as error:
            # From inside a script of an older Redis both come as text alone.
            if isinstance(error, OutOfMemoryError) or "OOM command not allowed" in str(error):
                raise StoreFull(
                    f"Redis at {self._shown} is full; raise its maxmemory, or let it drain"
                ) from error
            read_only = isinstance(error, ReadOnlyError) or "READONLY" in str(error)
            if read_only and not isinstance(self.client, RedisCluster):
                # A replica now: ask anew who is not.
                await self.client.connection_pool.disconnect(inuse_connections=False)
            raise StoreUnavailable(
                f"Redis at {self._shown}: {_said(error)}; "
                "start it, or name another with HUBBUB_REDIS_URL"
            ) from error
        finally:
            self._under_way -= 1
            if self._closed and not self._under_way:
                with suppress(RedisError, OSError):
                    await self.client.aclose()


class MemoryServer:
    """Hashes in this process's memory, asked as RedisServer is; they end with the process."""

    def __init__(self) -> None:
        self._hashes: dict[str, dict[bytes, bytes]] = {}
        self._ends: dict[str, float] = {}

    async def ask(self, *command: Any) -> Any:
        """The answer to one command."""
        return self._answer(*command)

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to some commands, in their order."""
        return [self._answer(*command) for command in commands]

    durable = execute

    async def room(self, part: float = 1.0) -> tuple[float, float]:  # noqa: ARG002 as RedisServer
        """Nothing is used of no limit, and what is left is endless."""
        return 0.0, inf

    def _answer(self, name: str, key: str, *arguments: Any) -> Any:
        now = time.time()
        for over in [other for other, end in self._ends.items() if end <= now]:
            del self._ends[over]
            self._hashes.pop(over, None)
        own, words = self._hashes.get(key, {}), [_bytes(word) for word in arguments]
        match name, words:
            case "HGETALL", []:
                return dict(own)
            case "HGET", [field]:
                return own.get(field)
            case "HMGET", fields:
                return [own.get(field) for field in fields]
            case "EXISTS", []:
                return int(bool(own))
            case "EXPIRE", [seconds]:
                self._ends[key] = now + int(seconds)
                return 1
        return self._write(name, key, own, words)

    def _write(self, name: str, key: str, own: dict[bytes, bytes], words: list[bytes]) -> int:
        match name, words:
            case "HSETNX", [field, word]:
                changed = {field: word, **own}
            case "HSET", pairs:
                changed = own | dict(zip(pairs[::2], pairs[1::2], strict=True))
            case "HDEL", fields:
                changed = {field: word for field, word in own.items() if field not in fields}
            case "UNLINK", []:
                changed = {}
            case _:
                raise NotImplementedError(name)
        self._hashes[key] = changed
        return abs(len(changed) - len(own))


Hashes: TypeAlias = RedisServer | MemoryServer


def _bytes(word: Any) -> bytes:
    """A word of a command as Redis gets it."""
    return word if isinstance(word, bytes) else str(word).encode()


def _told(answers: Sequence[Any]) -> list[Any]:
    """Raises the first error that is of no single key."""
    for answer in answers:
        if isinstance(answer, Exception) and "WRONGTYPE" not in str(answer):
            raise answer
    return list(answers)


def _key(command: Command) -> str:
    """The key that says which slot a command is for."""
    key: str = command[3] if command[0] == "EVAL" else command[1]
    return key


def _said(error: Exception) -> str:
    """Without the command: redis-py quotes its arguments, and they are reports."""
    text = str(error.args[0]) if error.args else ""
    if isinstance(error, RedisError) and text.startswith("Command # "):
        text = text.rpartition("caused error: ")[2]
    return f"{type(error).__name__}: {text}"


def shown(url: str) -> str:
    """The hosts alone, not who we are there."""
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2] or parts.path
    return ", ".join(host if ":" in host else f"{host}:6379" for host in hosts.split(","))
