"""The suite itself: no test depends on how fast a machine is, what else runs there, or who asks."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.surroundings import forget_the_caller
from tests.support.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [*(ROOT / "tests").rglob("*.py"), *(ROOT / "client/hubbub/client/testing").rglob("*.py")]
)
# Where a program is slowed down, a wait is the fault that is made, or a clock is looked at: why.
PACED = {
    "client/hubbub/client/testing/fake_server.py": "hangs for as long as its user says",
    "tests/fuzz/__main__.py": "tells how many inputs a second it tried",
    "tests/interfaces/test_lines.py": "requests that come in drops, and pauses between them",
    "tests/parts/test_answers.py": "looks at a batch for as long as it is on its way",
    "tests/parts/test_counting.py": "honest reports come between those of a flood",
    "tests/parts/test_guards.py": "a request that comes in drops",
    "tests/parts/test_slow_calls.py": "messages that come in drops",
    "tests/parts/test_mixer.py": "a slow aggregator; and loops that get into their stride",
    "tests/support/moment.py": "lets midnight pass",
    "tests/system/chaos/__main__.py": "tells how long it took",
    "tests/system/chaos/clustered.py": "load between two faults",
    "tests/system/chaos/device.py": "reports so often a second",
    "tests/system/chaos/faults.py": "faults last for a while",
    "tests/system/chaos/house.py": "looks for what has ended",
    "tests/system/chaos/line.py": "a slow line",
    "tests/system/soak/__main__.py": "goes on for so long, and looks now and then",
    "tests/system/soak/devices.py": "report at times set before, and tell how long it took",
    "tests/system/soak/strangers.py": "stay for so long, and give their bytes in drops",
    "tests/system/soak/verdict.py": "tells what never drained, where another test would fail",
    "tests/system/test_torture.py": "lets what should not leave leave, and cuts a line for a while",
    "tests/system/torture_app.py": "reports, and is killed, now and then",
    "tests/unit/test_outliving.py": "puts a file back again and again under what runs",
    "tests/support/waiting.py": "the one way to wait",
}
# Of the ports that hubbub has unless told otherwise, these speak of containers and documents.
PORTS = {
    "tests/deploy/test_chart.py",
    "tests/deploy/test_compose.py",
    "tests/interfaces/test_notebook.py",
}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call, by what is called as it is written."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _limit(called: str, call: ast.Call) -> bool:
    """A limit in numbers: of its own, where HANG_SECONDS or none belongs."""
    verb = called.rpartition(".")[2]
    limits = [one.value for one in call.keywords if one.arg and "timeout" in one.arg]
    if verb in {"wait", "join", "communicate", "flush", "close", "result", "submit"}:
        limits += call.args[-1:] if len(call.args) == 1 or verb == "submit" else []
    if called == "select.select":
        limits += call.args[3:]
    if called in {"asyncio.timeout", "asyncio.wait_for"}:
        limits += call.args[-1:]
    return any(_is_number(one) and ast.literal_eval(one) for one in limits)


def _not_in_time(path: Path) -> set[ast.Call]:
    """`not client.flush(1)`: that something does not happen is looked at for a while."""
    return {
        node.operand
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Call)
    }


def _found(wrong: Callable[[str, ast.Call], bool]) -> list[str]:
    found = []
    for path in FILES:
        denied = {ast.unparse(call) for call in _not_in_time(path)}
        found += [
            f"{_name(path)}:{call.lineno}: {ast.unparse(call)}"
            for called, call in _calls(path)
            if wrong(called, call) and ast.unparse(call) not in denied
        ]
    return found


def _own(paced: set[str], said: list[str]) -> list[str]:
    return [one for one in said if one.partition(":")[0] not in paced]


def test_no_test_has_a_limit_of_its_own() -> None:
    assert (
        _own({"tests/system/chaos/house.py", "tests/system/torture_app.py"}, _found(_limit)) == []
    )
    assert _found(lambda called, _: called == "pytest.mark.timeout") == []
    limit = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert limit["timeout"] > HANG_SECONDS, "a wait says what it waited for before it is ended"
    assert not re.search(r"\btimeout\b", (ROOT / "Makefile").read_text())


def test_no_test_sleeps_or_takes_the_time_but_those_that_say_why() -> None:
    def waits(called: str, call: ast.Call) -> bool:
        if called in {"time.monotonic", "time.perf_counter", "time.process_time"}:
            return True
        turn = bool(call.args) and ast.unparse(call.args[0]) == "0"  # of the loop, to others
        return called in {"time.sleep", "asyncio.sleep"} and not turn

    said = _found(waits)
    assert _own(set(PACED), said) == []
    assert {one.partition(":")[0] for one in said} == set(PACED), "a reason that none needs now"


def test_http_is_spoken_without_the_five_seconds_of_its_client() -> None:
    def hasty(called: str, call: ast.Call) -> bool:
        if called in {"httpx2.Client", "httpx2.AsyncClient"}:
            return "timeout" not in {one.arg for one in call.keywords}
        return called.startswith("httpx2.") and called.partition(".")[2] in {
            *("delete", "get", "head", "options", "patch", "post", "put", "request", "stream"),
        }

    assert _found(hasty) == []


def test_no_test_uses_a_port_that_somebody_else_may_have() -> None:
    for path in FILES:
        if _name(path) not in PORTS and path != Path(__file__):
            assert re.findall(r"\b(707\d|8080|50051)\b", path.read_text()) == [], path


def test_generators_have_a_seed() -> None:
    assert _found(lambda called, call: called.endswith("default_rng") and not call.args) == []


def test_what_the_caller_has_set_is_forgotten() -> None:
    kept = {"PATH": "/bin", "HOME": "~", "PYTHONDONTWRITEBYTECODE": "1"}
    caller = {
        **kept,
        **dict.fromkeys(
            ("HUBBUB_BUNDLE", "https_proxy", "NO_PROXY", "COLUMNS", "FORCE_COLOR"), "1"
        ),
        **dict.fromkeys(("PYTHONPATH", "PYTHONWARNINGS", "LANG", "LC_NUMERIC", "TERM"), "1"),
    }
    forget_the_caller(caller)
    assert caller == {**kept, "LC_ALL": "C.UTF-8"}


def test_ctrl_c_is_heard_by_what_is_started_though_a_shell_has_it_ignored() -> None:
    """As behind `make test &` in a script."""
    code = (
        "import signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "from tests.support.surroundings import hear_interrupts; hear_interrupts();"
        "asked = 'import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)';"
        "subprocess.run([sys.executable, '-c', asked], check=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("subprocess.run(command, timeout=60)", True),
        ("client.flush(5)", True),
        ("thread.join(10)", True),
        ("stub.Submit(request, timeout=HANG_SECONDS)", False),
        ("process.wait()", False),
        ("client.close(0)", False),
        ("primary.wait(1, 0)", False),
        ("page.wait_for_selector('p', timeout=20_000)", True),
        ("transport.submit([], 2)", True),
        ("asyncio.timeout(30)", True),
        ("asyncio.wait_for(read(), 60)", True),
    ],
)
def test_a_limit_is_known_when_it_is_seen(code: str, *, wrong: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert _limit(ast.unparse(call.func), call) is wrong
