"""The suite itself: no test depends on how fast a machine is, what else runs there, or who asks."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.clean_environment import forget_the_caller
from tests.support.source_trees import nodes
from tests.support.times import processor_seconds
from tests.support.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [*(ROOT / "tests").rglob("*.py"), *(ROOT / "client/hubbub/client/testing").rglob("*.py")]
)
# Where a program is slowed down, a wait is the fault that is made, or a clock is looked at: why.
# Whoever wants to see that something does not happen has a clock that it moves (FakeClock of
# hubbub.client.testing, or of tests/support/clocks.py), or waits for what comes after it.
PACED = {
    "client/hubbub/client/testing/fakes.py::FakeServer._submit": "hangs as it is told",
    "tests/faults.py::Laboratory.try_out": "tells how long it took, and gives up",
    "tests/fuzz/__main__.py::main": "tells how many inputs a second it tried",
    "tests/interfaces/test_exports.py::_dripping.Dripping.handle": (
        "bytes that never end; that the call is given up ends them, and is waited for"
    ),
    "tests/services/test_guards.py"
    "::test_a_connection_to_the_metrics_that_does_not_end_is_ended.drip": (
        "bytes that never end, by the clock of a thread of its own; its end is waited for"
    ),
    "tests/services/test_slow_calls.py"
    "::test_a_slow_message_is_refused_and_a_complete_unended_one_accepted.drip": (
        "bytes that never end; the refusal is waited for"
    ),
    "tests/support/moment.py::far_from_midnight": "lets midnight pass",
    "tests/support/waiting.py::eventually": "the one way to wait",
    "tests/support/waiting.py::eventually_async": "the one way to wait",
    "tests/support/waiting.py::_pauses": "the one way to wait",
    "tests/system/chaos/__main__.py::run": "tells how long it took",
    "tests/system/chaos/clustered.py::ClusteredHouse._restart": "load between two faults",
    "tests/system/chaos/clustered.py::run_clustered": "load between two faults",
    "tests/system/chaos/clustered.py::_kill_a_master": "load between two faults",
    "tests/system/chaos/device.py::main": "reports so often a second",
    "tests/system/chaos/faults.py::Faults.run": "faults last for a while",
    "tests/system/chaos/house.py::House._keep": "looks for what has ended",
    "tests/system/chaos/faulty_connection.py::Line._carry": "a slow line",
    "tests/system/chaos/robbed_device.py::main": "reports so often a second",
    "tests/system/chaos/robbed_device.py::rob.tokens_for": "lets a thief be first now and then",
    "tests/system/chaos/thief.py::main": "looks for what there is to steal",
    "tests/system/soak/__main__.py::_live": "goes on for so long, and looks now and then",
    "tests/system/soak/__main__.py::_look": "tells how long an answer took",
    "tests/system/soak/devices.py::Device.live": "reports at times set before, and tells how long",
    "tests/system/soak/devices.py::main": "goes on for so long",
    "tests/system/soak/strangers.py::Scene.goes_on": "goes on for so long",
    "tests/system/soak/strangers.py::_nothing": "stays for so long",
    "tests/system/soak/strangers.py::flood": "so many calls a second",
    "tests/system/soak/strangers.py::hold_open": "stays for so long, and comes back",
    "tests/system/soak/strangers.py::main": "goes on for so long",
    "tests/system/soak/strangers.py::slow": "gives its bytes in drops, and comes back",
    "tests/system/soak/verdict.py::counted": "tells what never drained, not only that it did not",
    "tests/system/torture_app.py::main": "is killed now and then",
    "tests/system/torture_app.py::thread": "reports now and then",
    "tests/system/torture_app.py::worker": "reports now and then, on a disk full for a moment",
}
# Parts of the Makefile have a line of their own for these.
SLOW = ("torture", "bare_install", "chaos", "soak")
# A look at one of these is asked for as a sleep is: a limit in real time may hang on it.
_CLOCKS = frozenset({"time.monotonic", "time.perf_counter", "time.process_time"})
# Of the ports that hubbub has unless told otherwise, these speak of containers and documents.
PORTS = {
    "tests/deploy/test_chart.py",
    "tests/deploy/test_compose.py",
    "tests/deploy/test_compose_issuer.py",
    "tests/interfaces/test_notebook.py",
    "tests/support/compose_services.py",
}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _calls(path: Path) -> list[tuple[str, ast.Call]]:
    """Every call, by what is called as it is written."""
    calls = [node for node in nodes(path.read_text()) if isinstance(node, ast.Call)]
    return [(ast.unparse(call.func), call) for call in calls]


def _limit(called: str, call: ast.Call) -> bool:
    """A limit in numbers: of its own, where HANG_SECONDS or none belongs."""
    verb = called.rpartition(".")[2]
    limits = [
        keyword.value for keyword in call.keywords if keyword.arg and "timeout" in keyword.arg
    ]
    if verb in {"wait", "join", "communicate", "flush", "close", "result", "submit"}:
        limits += call.args[-1:] if len(call.args) == 1 or verb == "submit" else []
    if called == "select.select":
        limits += call.args[3:]
    if called in {"asyncio.timeout", "asyncio.wait_for"}:
        limits += call.args[-1:]
    numbers = [limit.value for limit in limits if isinstance(limit, ast.Constant)]
    return any(isinstance(number, int | float) and number for number in numbers)


def _not_in_time(path: Path) -> set[str]:
    """`not client.flush(1)`, of a client whose second is over at once: its clock is the test's."""
    text = path.read_text()
    if "FakeClock" not in text and "support.devices import" not in text:
        return set()
    return {
        ast.unparse(node.operand)
        for node in nodes(text)
        if isinstance(node, ast.UnaryOp)
        and isinstance(node.operand, ast.Call)
        and ast.unparse(node.operand.func) in {"client.flush", "client.close"}
    }


def _calls_in(wrong: Callable[[str, ast.Call], bool]) -> list[str]:
    calls = []
    for path in FILES:
        denied = _not_in_time(path)
        calls += [
            f"{_name(path)}:{call.lineno}: {ast.unparse(call)}"
            for called, call in _calls(path)
            if wrong(called, call) and ast.unparse(call) not in denied
        ]
    return calls


def _waits(node: ast.AST) -> bool:
    """A sleep, whatever it is called by, or a look at a clock; also in the code of a program."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if not re.search("sleep|monotonic|perf_counter|process_time", node.value):
            return False
        try:
            code = ast.parse(node.value)
        except (SyntaxError, ValueError):
            return False
        return any(_waits(call) for call in ast.walk(code) if isinstance(call, ast.Call))
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    if called in _CLOCKS:
        return True
    turn = bool(node.args) and ast.unparse(node.args[0]) == "0"  # of the loop, to others
    base, _, verb = called.rpartition(".")
    return verb == "sleep" and not turn and not base.endswith("clock")


def _places(node: ast.AST, within: str = "") -> Iterator[str]:
    """The functions that wait."""
    for child in ast.iter_child_nodes(node):
        inside = within
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{within}.{child.name}".lstrip(".")
        if _waits(child):
            yield inside
        yield from _places(child, inside)


def test_every_test_runs_in_make_test_or_in_make_test_rest() -> None:
    makefile = (ROOT / "Makefile").read_text()

    def parts(name: str) -> set[str]:
        [line] = re.findall(rf"^{name} := (.*)$", makefile, re.MULTILINE)
        return set(line.split())

    halves = {"statistics-a-to-l", "statistics-m-to-z", "system-a-to-o", "system-p-to-z"}
    assert parts("TESTS") - parts("REST") == {"enumerations", "statistics", "system"}
    assert parts("REST") - parts("TESTS") == {"slow", "mutants", "sdk", "deploy", *halves}
    mutants = ROOT / "tests/proofs/test_mutants.py"
    slow = [ROOT / f"tests/system/test_{name}.py" for name in SLOW]
    assert all("pytestmark = pytest.mark.thorough" in path.read_text() for path in [mutants, *slow])
    for path in set((ROOT / "tests/proofs").rglob("*.py")) - {mutants}:
        assert "mark.thorough" not in path.read_text(), path


def test_no_test_has_a_limit_of_its_own() -> None:
    paced = ("tests/system/chaos/house.py:", "tests/system/torture_app.py:")
    assert [call for call in _calls_in(_limit) if not call.startswith(paced)] == []
    assert _calls_in(lambda called, _: called == "pytest.mark.timeout") == []
    limit = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert limit["timeout"] > HANG_SECONDS, "a wait says what it waited for before it is ended"
    assert not re.search(r"\btimeout\b", (ROOT / "Makefile").read_text())


def test_no_test_sleeps_or_takes_the_time_but_those_that_say_why() -> None:
    waiting = {
        f"{_name(path)}::{place}"
        for path in FILES
        if path != Path(__file__)  # its examples
        for place in _places(nodes(path.read_text())[0])
    }
    assert sorted(waiting - set(PACED)) == []
    assert sorted(set(PACED) - waiting) == [], "a reason that none needs now"


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        ("time.sleep(0.5)", True),
        ("asyncio.sleep(seconds)", True),
        ("sleep(1)", True),
        ("anyio.sleep(1)", True),
        ("time.monotonic()", True),
        ("run('import time; time.sleep(1)')", True),
        ("asyncio.sleep(0)", False),
        ("clock.sleep(60)", False),
        ("run('no code, time.sleep(1)')", False),
        ("say('sleep')", False),
    ],
)
def test_the_suites_check_notices_a_fixed_wait(code: str, *, waits: bool) -> None:
    assert bool(list(_places(ast.parse(code)))) is waits


def test_http_is_spoken_without_the_five_seconds_of_its_client() -> None:
    def hasty(called: str, call: ast.Call) -> bool:
        if called in {"httpx2.Client", "httpx2.AsyncClient"}:
            return "timeout" not in {keyword.arg for keyword in call.keywords}
        return called.startswith("httpx2.") and called.partition(".")[2] in {
            "delete",
            "get",
            "head",
            "options",
            "patch",
            "post",
            "put",
            "request",
            "stream",
        }

    assert _calls_in(hasty) == []


def test_no_test_uses_a_port_that_somebody_else_may_have() -> None:
    for path in FILES:
        if _name(path) not in PORTS and path != Path(__file__):
            assert re.findall(r"\b(707\d|8080|50051)\b", path.read_text()) == [], path


def test_generators_have_a_seed() -> None:
    assert _calls_in(lambda called, call: called.endswith("default_rng") and not call.args) == []


def test_a_run_removes_the_callers_environment_variables() -> None:
    environment = {"PATH": "/bin", "HOME": "~", "PYTHONDONTWRITEBYTECODE": "1"}
    caller = {
        **environment,
        **dict.fromkeys(
            ("HUBBUB_BUNDLE", "https_proxy", "NO_PROXY", "COLUMNS", "FORCE_COLOR"), "1"
        ),
        **dict.fromkeys(("PYTHONPATH", "PYTHONWARNINGS", "LANG", "LC_NUMERIC", "TERM"), "1"),
    }
    forget_the_caller(caller)
    assert caller == {**environment, "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}


def test_a_test_that_replaces_paths_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "stat", None)
    assert processor_seconds() > 0


def test_matrices_are_multiplied_by_one_thread() -> None:
    """It is said before numpy is loaded, which asks once."""
    code = "import os, tests.conftest, numpy; print(len(os.listdir('/proc/self/task')))"
    silent = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=silent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1\n"


def test_started_processes_obey_ctrl_c_although_the_shell_ignores_it() -> None:
    """As behind `make test &` in a script."""
    code = (
        "import signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "from tests.support.clean_environment import hear_interrupts; hear_interrupts();"
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
def test_the_suites_check_notices_a_fixed_limit(code: str, *, wrong: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert _limit(ast.unparse(call.func), call) is wrong


def test_no_test_compares_the_memory_of_a_process_with_a_number() -> None:
    """It differs by machine and by load: `make bench` has such figures, as ratios.

    That it does not grow with load may be asserted: of a process with itself.
    """
    compared = re.compile(
        r"assert [^\n]*(resident|rss|statm|idle)\b[^\n]*<=? *\(?[0-9]", re.IGNORECASE
    )
    assert compared.search("assert idle[what] <= 157")
    comparisons = {
        _name(path)
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__) and compared.search(path.read_text())
    }
    assert comparisons == set()
