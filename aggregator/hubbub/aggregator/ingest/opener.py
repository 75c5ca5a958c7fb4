"""Opens sealed reports in several processes, since HPKE holds the interpreter's lock."""

import asyncio
import logging
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.aggregator.ingest.opener_process import hold_keys, open_chunk
from hubbub.bundles import OpeningKey
from hubbub.sealing.hpke import SEAL_BYTES, X25519, Kem

_log: Final = logging.getLogger("hubbub.aggregator")

# Small enough to spread a batch over all processes, large enough to make transfers cheap.
_CHUNK: Final = 500

Payloads = npt.NDArray[np.uint8]


class Opener:
    """Opens the reports of a batch in `processes` processes that hold the private `keys`."""

    def __init__(self, keys: Sequence[OpeningKey], processes: int) -> None:
        self.keys = tuple(keys)
        self._processes = processes
        self._executor = self._start()

    async def open(
        self, info: bytes, key_id: int, sealed: Sequence[bytes], kem: Kem = X25519
    ) -> tuple[Payloads, npt.NDArray[np.bool_]]:
        """Payloads of shape (reports, payload bytes), and which reports did open.

        `info` is the context to which reports are bound; `sealed` reports have the same length. A
        report that does not open has a payload of zeros.
        """
        loop, length = asyncio.get_running_loop(), len(sealed[0])
        # Joined bytes need one copy on each side; a list would need an object per report.
        chunks = [b"".join(sealed[at : at + _CHUNK]) for at in range(0, len(sealed), _CHUNK)]
        while True:
            executor = self._executor
            try:
                opened = await asyncio.gather(
                    *(
                        loop.run_in_executor(
                            executor, open_chunk, info, (key_id, kem), chunk, length
                        )
                        for chunk in chunks
                    )
                )
                break
            except BrokenProcessPool:
                # A worker was killed; opening changes nothing, so the batch is opened anew.
                if self._executor is executor:
                    _log.warning("an opening process died; starting others")
                    self._executor = self._start()
        payloads = np.frombuffer(b"".join(p for p, _ in opened), dtype=np.uint8)
        did_open = np.frombuffer(b"".join(o for _, o in opened), dtype=np.bool_)
        return payloads.reshape(len(sealed), length - SEAL_BYTES[kem]), did_open

    def use(self, keys: Sequence[OpeningKey]) -> None:
        """Replaces the processes by others with these keys."""
        self.keys = tuple(keys)
        former, self._executor = self._executor, self._start()
        former.shutdown(wait=False)  # they finish their current work

    def close(self) -> None:
        """Stops the processes."""
        self._executor.shutdown(cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        # Spawned, not forked: gRPC's threads cannot continue in a copied process.
        return ProcessPoolExecutor(
            self._processes,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=hold_keys,
            initargs=(self.keys,),
        )
