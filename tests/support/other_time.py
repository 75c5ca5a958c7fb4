"""Programs that a test starts at another time: Redis, shuffler and aggregator, all alike.

Each reads its clock by libc, before which the linker puts a library that adds some seconds. The
programs themselves have no such option. Needs a C compiler.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

_COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(_COMPILER is None, reason="needs a C compiler")
_AHEAD = "TEST_SECONDS_AHEAD"
_SOURCE = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long ahead(void) {{
    const char *text = getenv("{_AHEAD}");
    return text ? atol(text) : 0;
}}
int clock_gettime(clockid_t clock, struct timespec *now) {{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += ahead();
    return failed;
}}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {{
    (void)zone;
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}}
time_t time(time_t *seconds) {{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}}
"""


class OtherTime:
    """The time of all programs that are started from now on, once `set` was called."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        assert _COMPILER
        library = folder / "ahead.so"
        command = [_COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), "-x", "c", "-", "-ldl"]
        subprocess.run(command, input=_SOURCE, text=True, check=True)
        patch.setenv("LD_PRELOAD", str(library))
        self._patch = patch

    def set(self, seconds_ahead: int) -> None:
        """How many seconds they are ahead of this process."""
        self._patch.setenv(_AHEAD, str(seconds_ahead))
