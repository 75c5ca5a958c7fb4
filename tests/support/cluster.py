"""A Redis Cluster of this machine: masters, a replica each, and what befalls them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from hubbub.installation.child_process import Child, free_port
from tests.support.servers import installed_redis
from tests.support.waiting import HANG_SECONDS, eventually

SLOTS = 16384
# A node that does not answer for so long is taken for dead. On a quiet machine it answers at once;
# beside much other work none may die that nobody killed.
NODE_TIMEOUT_MS = 5000
BUS = 10_000  # a node's bus is so far above its port


def wait_for(true: Callable[[], bool], what: str) -> None:
    """Wait for something that takes Redis a moment."""
    eventually(true, lambda: what, although=(redis.RedisError,))


@dataclass
class Node:
    """One server of it."""

    port: int
    child: Child
    id: str = ""
    tls_port: int = 0

    @property
    def known_port(self) -> int:
        """By which the other nodes know it."""
        return self.tls_port or self.port

    def ask(self, *command: Any) -> Any:
        """An answer as it came: redis-py would read some of them."""
        [answer] = self.ask_all([command])
        return answer

    def ask_all(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """The answers to many questions, on one connection."""
        with redis.Redis(port=self.port, socket_timeout=HANG_SECONDS) as client:
            connection = client.connection_pool.get_connection()
            try:
                connection.send_packed_command(connection.pack_commands(commands))
                return [connection.read_response() for _ in commands]
            finally:
                client.connection_pool.release(connection)

    @property
    def running(self) -> bool:
        return self.child.process.poll() is None

    def kill(self) -> None:
        self.child.process.kill()
        self.child.process.wait()

    def role(self) -> str:
        return str(self.ask("ROLE")[0].decode())


class Cluster:
    """Starts as `masters` nodes with all slots among them, and a replica of each."""

    def __init__(self, folder: Path, masters: int = 3, tls: Path | None = None) -> None:
        self._folder = folder
        self._tls = tls
        self.nodes: list[Node] = []
        first = [self._start() for _ in range(masters)]
        for number, node in enumerate(first):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            slots = range(number * SLOTS // masters, (number + 1) * SLOTS // masters)
            node.ask("CLUSTER", "ADDSLOTS", *slots)
        for place, node in enumerate(first):
            for other in first[:place]:
                node.ask("CLUSTER", "MEET", "127.0.0.1", other.known_port)
        for master in first:
            self.add(replica_of=master)
        self.wait()

    @property
    def url(self) -> str:
        """Two of its nodes: one may be down when a service starts."""
        first, two = self.nodes[0], self.nodes[1]
        if self._tls:
            hosts = f"127.0.0.1:{first.tls_port},127.0.0.1:{two.tls_port}"
            return f"rediss://{hosts}/0?ssl_ca_certs={self._tls}/ca.pem"
        return f"redis://127.0.0.1:{first.port},127.0.0.1:{two.port}/0"

    def serves_every_slot(self) -> bool:
        """Whether those that run serve every slot among them."""
        return sum(len(self.has_slots(node)) for node in self.masters()) == SLOTS

    def add(self, replica_of: Node | None = None) -> Node:
        """One more node: a replica, or a master that has no slot yet."""
        others = [node for node in self.nodes if node.running]
        node = self._start()
        for other in others:  # not one alone, from which the rest would hear by and by
            node.ask("CLUSTER", "MEET", "127.0.0.1", other.known_port)
        wait_for(lambda: len(_settled_nodes(node)) == len(self.nodes), "a node met")
        if replica_of is not None:
            wait_for(lambda: bool(node.ask("CLUSTER", "REPLICATE", replica_of.id)), "a replica")
        return node

    def wait(self) -> None:
        """Until every slot is served, every running node knows it, and replicas follow."""
        for node in [node for node in self.nodes if node.running]:
            wait_for(partial(self._settled, node), f"{node.port} is settled")

    def masters(self) -> list[Node]:
        """Those that take writes."""
        return [node for node in self.nodes if node.running and node.role() == "master"]

    def has_slots(self, node: Node) -> list[int]:
        """The slots of a master, by its own word."""
        slots: list[int] = []
        for first, last, owner, *_ in node.ask("CLUSTER", "SLOTS"):
            if owner[2].decode() == node.id:
                slots += range(first, last + 1)
        return slots

    def move(self, slots: list[int], source: Node, target: Node) -> None:
        """Move slots with their keys while both serve, as `redis-cli --cluster reshard` does."""
        others = [node for node in self.masters() if node not in (source, target)]
        for slot in slots:
            target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
            source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
            while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
                for key in keys:
                    source.ask("MIGRATE", "127.0.0.1", target.port, key, 0, 10_000)
            for node in (target, source, *others):
                node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()

    def _settled(self, node: Node) -> bool:
        is_ok = b"cluster_state:ok" in node.ask("CLUSTER", "INFO")
        role = node.ask("ROLE")
        follows = role[0] == b"master" or role[3] == b"connected"
        return bool(is_ok and len(_settled_nodes(node)) == len(self.nodes) and follows)

    def _start(self) -> Node:
        port = free_port(BUS)
        folder = self._folder / str(port)
        folder.mkdir(parents=True)
        settings = {
            "bind": "127.0.0.1",
            "port": str(port),
            "dir": f'"{folder}"',
            "save": '""',
            "appendonly": "yes",
            "cluster-enabled": "yes",
            "cluster-node-timeout": str(NODE_TIMEOUT_MS),
            "repl-diskless-sync-delay": "0",
        }
        tls_port = free_port(BUS) if self._tls else 0
        if self._tls:
            settings |= {"tls-port": str(tls_port), "tls-auth-clients": "no"}
            settings |= {"tls-cluster": "yes", "tls-replication": "yes"}
            for setting, name in (("cert", "redis.pem"), ("key", "redis.key")):
                settings[f"tls-{setting}-file"] = str(self._tls / name)
            settings["tls-ca-cert-file"] = str(self._tls / "ca.pem")
        configuration = folder / "redis.conf"
        configuration.write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
        child = Child(f"redis-{port}", [installed_redis(), str(configuration)], {}, folder / "log")
        node = Node(port, child, tls_port=tls_port)
        wait_for(lambda: bool(node.ask("PING")), "a node started")
        node.id = node.ask("CLUSTER", "MYID").decode()
        self.nodes.append(node)
        return node


def _settled_nodes(node: Node) -> list[bytes]:
    lines = node.ask("CLUSTER", "NODES").splitlines()
    return [line for line in lines if b"handshake" not in line]


@contextmanager
def redis_cluster(folder: Path, tls: Path | None = None) -> Iterator[Cluster]:
    """One that is gone afterwards. tls: certificates, for clients that want TLS."""
    cluster = Cluster(folder, tls=tls)
    try:
        yield cluster
    finally:
        cluster.stop()
