"""Runs work in several processes, each of which sends results to its parent."""

import multiprocessing
import queue
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from hubbub.aggregator.ingest.opener_process import end_with_parent
from hubbub.errors import HubbubError

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

Tell = Callable[[Any], None]
"""What a process tells its parent by: anything that can be sent, but None and text."""

_LISTEN_SECONDS: Final = 1.0


def run_processes(
    work: Callable[[Any, Tell], None],
    shares: Sequence[Any],
    hear: Tell,
    interrupted: Callable[[], None] | None = None,
) -> None:
    """Runs `work(share, tell)` in a process per share; calls `hear` with what they tell.

    At Ctrl-C `interrupted` is called, and the processes run to their end; without it,
    KeyboardInterrupt is raised.

    Raises:
        HubbubError: a process failed, or was killed.
    """
    context = multiprocessing.get_context("spawn")
    results: Queue[Any] = context.Queue()
    processes = [
        context.Process(target=_run, args=(work, share, results), daemon=True) for share in shares
    ]
    for process in processes:
        process.start()
    running = len(processes)
    while running:
        try:
            some = results.get(timeout=_LISTEN_SECONDS)
        except queue.Empty:
            # Messages that a process sent before it ended have arrived by now.
            if any(process.exitcode for process in processes):
                raise HubbubError("a process of simulated devices was killed") from None
            continue
        except KeyboardInterrupt:
            if interrupted is None:
                raise
            interrupted()
            continue
        if isinstance(some, str):
            raise HubbubError(f"a process of simulated devices failed: {some}")
        if some is None:
            running -= 1
        else:
            hear(some)
    for process in processes:
        process.join()


def _run(work: Callable[[Any, Tell], None], share: Any, queue: "Queue[Any]") -> None:
    end_with_parent()
    # The terminal's Ctrl-C reaches every process, but the parent decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work(share, queue.put)
        queue.put(None)
    except Exception as error:  # noqa: BLE001 the parent must get every error
        queue.put(f"{type(error).__name__}: {error}")
