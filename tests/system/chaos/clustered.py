"""The same house on a Redis Cluster, and what an operator does to it while everything runs.

3 masters with a replica each, 2 shufflers, 2 aggregators, 4 devices that report all the time. A
master is killed, a node is added and slots move to it and back, everything is restarted part by
part, an aggregator is added. A write counts once a replica has it, so nothing may be lost.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.cluster import Cluster, wait_for
from tests.system.chaos.house import House, Part
from tests.system.chaos.verdict import drain, judge

Tell = Callable[[str], None]

# So many slots move to the node that is added: those that hold keys, and some that hold none.
SLOTS_MOVED = 10
MIN = 600  # reports, before it ends


class ClusteredHouse(House):
    """Both roles on one Cluster."""

    AGGREGATORS = 2
    REPORTS_A_SECOND = 3  # what is done to the Cluster takes so long that they are enough
    REDIS_REPLICAS = 1

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.cluster.stop()

    @property
    def pool_url(self) -> str:
        return self.cluster.url

    @property
    def totals_url(self) -> str:
        return self.cluster.url

    def add_aggregator(self, tell: Tell) -> None:
        """One more, and shufflers that know of it: started anew, one after the other."""
        tell("an aggregator is added")
        self.ingests.append(self._aggregator(len(self.ingests), self.cluster.url))
        for number, part in enumerate(self._of_kind("shuffler")):
            self.retire(part)
            part.child.stop()
            # The line that devices know leads to the new one.
            front = self.fronts[number]
            line = next(line for line in self.lines if line.address == front)
            line.lead_to(self._shuffler(number, self.cluster.url, self.ingests))

    def restart_everything(self, tell: Tell) -> None:
        """Services with SIGTERM; Redis node by node, each once the Cluster is whole again."""
        for part in self._of_kind("shuffler") + self._of_kind("aggregator"):
            tell(f"{part.kind} restarts")
            self._restart(part)
        for node in list(self.cluster.nodes):
            tell(f"Redis node {node.port} restarts")
            node.child.stop()
            node.child.start()
            self.cluster.wait()

    def _restart(self, part: Part) -> None:
        old = part.child.process
        old.terminate()
        wait_for(lambda: part.child.process is not old, f"{part.kind} is back")
        time.sleep(0.5)

    def _of_kind(self, kind: str) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]

    def _start_redis(self) -> tuple[str, str]:
        self.redis = []
        self.cluster = Cluster(self.home / "cluster")
        return self.cluster.url, self.cluster.url


def run_clustered(home: Path, seed: int, tell: Tell) -> dict[str, object]:
    """One run: what was done, what was sent and counted, and what is wrong."""
    chance = random.Random(seed)
    done: Counter[str] = Counter()
    with ClusteredHouse(home) as house:
        cluster = house.cluster
        steps: list[Callable[[], None]] = [
            lambda: _kill_a_master(cluster, chance, done, tell, for_good=True),
            lambda: _kill_a_master(cluster, chance, done, tell, for_good=chance.random() < 0.7),
            lambda: _move_slots(cluster, chance, done, tell),
            lambda: house.restart_everything(tell),
            lambda: house.add_aggregator(tell),
        ]
        chance.shuffle(steps)
        tell("load")
        time.sleep(3)
        for step in steps:
            step()
            time.sleep(chance.uniform(0.5, 1.5))
        cluster.wait()
        house.until_acknowledged(MIN)
        records = drain(house, tell)
        verdict = judge(house, records)
        done["restart"] = house.restarts
    return {
        "seed": seed,
        "done": dict(sorted(done.items())),
        "sent": verdict.sent,
        "fates": dict(verdict.fates),
        "law": verdict.terms,
        "wrong": verdict.wrong,
    }


def _kill_a_master(
    cluster: Cluster,
    chance: random.Random,
    done: Counter[str],
    tell: Tell,
    *,
    for_good: bool,
) -> None:
    """Its replica takes over; or it is back before anyone noticed."""
    victim = chance.choice([node for node in cluster.masters() if cluster.has_slots(node)])
    tell(f"master {victim.port} is killed")
    victim.kill()
    if for_good:
        wait_for(cluster.serves_every_slot, "its replica takes over")
        time.sleep(chance.uniform(0, 3))
    else:
        time.sleep(0.5)
    victim.child.start()
    cluster.wait()
    done["master killed"] += 1
    # A master that is back may take a while to hear that its replica took over.
    done["failed over"] += for_good or victim.role() != "master"


def _move_slots(cluster: Cluster, chance: random.Random, done: Counter[str], tell: Tell) -> None:
    """To a node that is new, with a replica of its own; some of them back again."""
    source = chance.choice([node for node in cluster.masters() if cluster.has_slots(node)])
    tell("a node is added")
    target = cluster.add()
    cluster.add(replica_of=target)
    cluster.wait()
    own = cluster.has_slots(source)
    keys = source.ask_all([("CLUSTER", "COUNTKEYSINSLOT", slot) for slot in own])
    full = [slot for slot, number in zip(own, keys, strict=True) if number]
    slots = full + chance.sample(sorted(set(own) - set(full)), SLOTS_MOVED)
    tell(f"{len(slots)} slots move, {len(full)} with keys")
    cluster.move(slots, source, target)
    back = [slot for slot in slots if slot in full][::2]
    cluster.move(back, target, source)
    cluster.wait()
    done["slots moved"] += len(slots) + len(back)
    done["with keys"] += len(full) + len(back)
