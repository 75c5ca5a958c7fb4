"""What goes wrong, and how often. Every fault ends by itself; `House.mend` ends all at once."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import redis

from tests.support.waiting import HANG_SECONDS
from tests.system.chaos.house import House, Part

# A process that starts costs a second of a core: those that start fast are killed more often.
KILLED = {"redis": 6, "device": 5, "shuffler": 4, "aggregator": 2}
WORKER = 2  # an opening process of an aggregator
KILLS_A_SECOND = 2.2
FAULTS_A_SECOND = 1.8
# No window of a week is over by that; windows of an hour are, and their reports expire.
STEP_SECONDS = 7200
# So near the start of a week no clock is stepped: reports would be of another week, and expire.
WEEK = 604_800


class Faults:
    """Kills in one thread, everything else in another, in the order that the seed says.

    done: faults by kind, as far as they hit something that ran.
    """

    def __init__(self, house: House, seed: int, kills_a_second: float = KILLS_A_SECOND) -> None:
        self._house = house
        self._kills_a_second = kills_a_second
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._loop, args=(random.Random(f"{seed} {name}"), rate, do))
            for name, rate, do in (
                ("kill", kills_a_second, self._kill),
                ("fault", FAULTS_A_SECOND, self._fault),
                ("clock", 0.3, self._step),
            )
            if rate
        ]
        self.done: Counter[str] = Counter()
        self._kinds: list[Callable[[random.Random], None]] = []

    def run(self, seconds: float, tell: Callable[[str], None], min_kills: int = 0) -> None:
        """Let things go wrong for so long, and until so many were killed; then mend them."""
        for thread in self._threads:
            thread.start()
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0 or self.kills < min_kills:
            tell(f"{remaining:.0f} s left, {self.kills} kills")
            time.sleep(min(max(remaining, 0.1), 1))
        self._end.set()
        for thread in self._threads:
            thread.join()
        self._house.mend()
        for server in self._house.redis:
            self._limit(server.url, lambda _used: 0)

    @property
    def kills(self) -> int:
        return sum(number for what, number in self.done.items() if what.startswith("kill"))

    def _loop(
        self, chance: random.Random, rate: float, do: Callable[[random.Random], None]
    ) -> None:
        while not self._end.wait(chance.uniform(0, 2 / rate)):
            do(chance)

    def _count(self, what: str) -> None:
        with self._lock:
            self.done[what] += 1

    def _kill(self, chance: random.Random) -> None:
        kinds = {**KILLED, **self._house.MORE_KILLED, "worker": WORKER}
        kind = chance.choices([*kinds], [*kinds.values()])[0]
        if kind == "worker":
            part = self._random_part(chance, "aggregator")
            workers = part.workers()
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    self._count("kill opening process")
            return
        part = self._random_part(chance, kind)
        signal_sent = chance.choices([signal.SIGKILL, signal.SIGTERM], [9, 1])[0]
        if part.frozen or not part.signal(signal_sent):
            return
        self._count(f"kill {kind}" if signal_sent is signal.SIGKILL else f"end {kind}")

    def _fault(self, chance: random.Random) -> None:
        """One of every kind before any comes again."""
        if not self._kinds:
            self._kinds = [
                self._freeze,
                self._cut_line,
                self._slow,
                self._truncate,
                self._garble,
                self._fill,
            ]
            chance.shuffle(self._kinds)
        self._kinds.pop()(chance)

    def _freeze(self, chance: random.Random) -> None:
        part = self._random_part(
            chance, chance.choice(["redis", "shuffler", "aggregator", "device"])
        )
        process = part.child.process
        if part.frozen or not part.signal(signal.SIGSTOP):
            return
        part.frozen = True
        self._count(f"freeze {part.kind}")
        self._end.wait(chance.choice([0.2, 1, 3]))
        part.frozen = False
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)

    def _cut_line(self, chance: random.Random) -> None:
        line = chance.choice(self._house.lines)
        line.cut()
        self._count("cut a line")
        self._end.wait(chance.uniform(0.1, 2))
        line.mend()

    def _slow(self, chance: random.Random) -> None:
        line = chance.choice(self._house.lines)
        line.slow = chance.uniform(0.01, 0.5)
        self._count("slow a line")
        self._end.wait(chance.uniform(0.5, 2))
        line.mend()

    def _truncate(self, chance: random.Random) -> None:
        line = chance.choice(self._house.lines)
        line.truncating = 0.2
        self._count("truncate on a line")
        self._end.wait(chance.uniform(0.5, 1.5))
        line.mend()

    def _garble(self, chance: random.Random) -> None:
        # Lines with TLS alone: no network repeats bytes unseen inside a TCP connection.
        line = chance.choice(self._house.lines[2:])
        line.garbling = 0.2
        self._count("garble a line")
        self._end.wait(chance.uniform(0.5, 1.5))
        line.mend()

    def _fill(self, chance: random.Random) -> None:
        server = chance.choice(self._house.redis)
        if self._limit(server.url, lambda used: used // 2):
            self._count("fill redis")
            self._end.wait(chance.uniform(0.5, 2))
            self._limit(server.url, lambda _used: 0)

    def _step(self, chance: random.Random) -> None:
        far = chance.choice([1.0, 60.0, STEP_SECONDS])
        if not STEP_SECONDS < time.time() % WEEK < WEEK - STEP_SECONDS:
            return
        part = chance.choice([part for part in self._house.parts if part.offset_file])
        part.step(chance.uniform(-far, far))
        self._count(f"step the clock of {part.kind}")

    def _random_part(self, chance: random.Random, kind: str) -> Part:
        return chance.choice([part for part in self._house.parts if part.kind == kind])

    @staticmethod
    def _limit(url: str, most: Callable[[int], int]) -> bool:
        """Set the memory that a Redis may use, past its line: False if it is not there."""
        try:
            with redis.Redis.from_url(url, socket_timeout=HANG_SECONDS) as client:
                client.config_set("maxmemory", most(int(client.info("memory")["used_memory"])))
        except redis.RedisError:
            return False
        return True
