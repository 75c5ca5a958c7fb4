"""Keeps a service's memory near its idle size: one heap, whose freed memory is returned."""

import asyncio
import ctypes
import sys
from typing import Any, Final

C_LIBRARY: Final[Any] = None if sys.platform == "win32" else ctypes.CDLL(None)
"""The functions of the system's C library."""
_ARENA_MAX: Final = -8  # M_ARENA_MAX of mallopt(3)
_TRIM_SECONDS: Final = 1.0


def use_one_heap() -> None:
    """Makes glibc allocate from one heap.

    Heaps per thread kept up to 108 MiB after floods of heads (CONTINUATION), one heap keeps 2.
    """
    if hasattr(C_LIBRARY, "mallopt"):
        C_LIBRARY.mallopt(_ARENA_MAX, 1)


async def return_freed_memory() -> None:
    """Returns memory that libraries have freed to the system, every second, .1 to .6 ms each."""
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        await asyncio.to_thread(trim_heap)


def trim_heap() -> None:
    """Returns what glibc has freed to the system."""
    if hasattr(C_LIBRARY, "malloc_trim"):  # of glibc alone
        C_LIBRARY.malloc_trim(0)
