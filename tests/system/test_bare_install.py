"""Empty environments: a device's with the client alone, and one with the command beside it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hubbub.cli.command_table import COMMANDS
from hubbub.client.testing import FakeServer
from hubbub.runtime.version import VERSION
from hubbub.signing.testing import make_bundle
from tests.conftest import CATALOG
from tests.support.clean_environment import CALLER
from tests.support.pages import page_of
from tests.support.programs import build_wheels, run_program

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
UV = [str(Path(sys.executable).with_name("uv")), "pip"]
CLIENT = [
    "tests/unit/test_client_floor.py",
    "tests/unit/test_client.py",
    "tests/unit/test_consent.py",
    "tests/unit/test_forks.py",
    "tests/unit/test_settings.py",
    "tests/unit/test_state.py",
    "tests/unit/test_testing.py",
]

HELP = """
import sys
from hubbub.cli.main import main
for command in sys.argv[1:]:
    try:
        main([command, "--help"])
    except SystemExit as end:
        assert end.code == 0, command
"""


def _interpreters() -> list[str]:
    """Every Python from 3.11 on that this machine has, besides the one that runs this."""
    running = sys.version_info[:2]
    interpreters: dict[tuple[int, int], str] = {}
    beside = [str(p) for p in Path(sys.base_prefix).parent.glob("*/bin/python3.*")]
    on_path = [path for minor in range(11, 20) if (path := shutil.which(f"python3.{minor}"))]
    for path in [*beside, *on_path]:
        name = re.fullmatch(r"python3\.(\d+)", Path(path).name)
        if name and int(name[1]) >= 11 and (3, int(name[1])) != running:
            works = [path, "-c", "import venv, ensurepip"]
            if subprocess.run(works, capture_output=True, check=False).returncode == 0:
                interpreters.setdefault((3, int(name[1])), path)
    return [interpreters[version] for version in sorted(interpreters)]


@pytest.fixture(scope="module")
def python(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with both distributions, no extra and a test runner."""
    return _bare(sys.executable, tmp_path_factory.mktemp("bare") / "venv", wheels)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both distributions, built once: the client's, and the one that depends on it."""
    return build_wheels(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def device(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the client's distribution alone."""
    folder = tmp_path_factory.mktemp("device") / "venv"
    return _bare(sys.executable, folder, wheels[:1], tested=False)


def _bare(
    interpreter: str,
    environment: Path,
    distributions: Sequence[Path],
    *,
    tested: bool = True,
) -> Path:
    # uv installs in a tenth of the time what pip does in test_first_minute.py.
    command = [interpreter, "-m", "venv", "--without-pip", str(environment)]
    subprocess.run(command, check=True, env=CALLER)
    python = environment / "bin" / "python"
    locked = ROOT / "locks" / "client.lock"
    runner = re.findall(
        r"^((?:pytest|pytest-timeout|hypothesis|protobuf)==\S+)",
        (ROOT / "locks" / "dev.lock").read_text(),
        re.MULTILINE,
    )
    assert len(runner) == 4
    ours = [*map(str, distributions), *(runner if tested else ())]
    for chosen in (["--require-hashes", "-r", str(locked)], ours):
        install = [*UV, "install", "--quiet", "--python", str(python), *chosen]
        subprocess.run(install, check=True, env=CALLER)
    return python


def _run_bare(python: Path, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run_program(
        str(python), *arguments, cwd=cwd, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    )


def test_a_device_reports_with_the_client_alone(device: Path, tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    app = (
        "from hubbub.client import Client;"
        "client = Client.from_bundle('app.hubbub', state_dir='device', insecure=True);"
        "print(client.report('theme', 'dark').name); client.flush();"
        "print(*(view.metric for view in client.ledger().payloads)); client.close()"
    )
    with FakeServer() as server:
        bundle = make_bundle(tmp_path / "metrics.toml", shuffler=server.address)
        (tmp_path / "app.hubbub").write_bytes(bundle.signed)
        done = _run_bare(device, "-c", app, cwd=tmp_path)
        assert done.stdout.split() == ["QUEUED", "theme"], done.stderr
        assert len(server.received) == 1


def test_every_module_of_a_device_is_loaded_without_the_other_distribution(device: Path) -> None:
    optional = ("rbcl", "pyhpke", "opentelemetry", "pytest")  # of extras, of the app, of tests
    code = (
        f"import pkgutil, importlib, hubbub; OPTIONAL = {optional}\n"
        "for module in pkgutil.walk_packages(hubbub.__path__, 'hubbub.'):\n"
        "    try:\n"
        "        importlib.import_module(module.name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        if error.name.partition('.')[0] not in OPTIONAL:\n"
        "            raise\n"
        "print(*sorted(part.name for part in pkgutil.iter_modules(hubbub.__path__)))"
    )
    done = _run_bare(device, "-c", code)
    packages = {path.parent.name for path in ROOT.glob("*/hubbub/*/__init__.py")}
    here = {path.parent.name for path in (ROOT / "client").glob("hubbub/*/__init__.py")}
    assert set(done.stdout.split()) == here, done.stderr
    assert packages - here >= {"authoring", "keys", "signing", "notebook", "aggregator", "cli"}


def test_the_client_needs_no_numpy_and_no_redis(python: Path) -> None:
    done = _run_bare(
        python,
        "-c",
        "import importlib.util as u, hubbub.client, hubbub.catalog, hubbub.notebook;"
        "print(hubbub.client.__file__);"
        "print([n for n in ('numpy', 'redis', 'scipy', 'rich') if u.find_spec(n)])",
    )
    assert done.stdout.splitlines()[1:] == ["[]"], done.stderr
    assert "site-packages" in done.stdout


def test_the_package_says_its_version(python: Path) -> None:
    done = _run_bare(python, "-c", "import hubbub; print(hubbub.__version__); hubbub.nothing")
    assert done.stdout.strip() == VERSION
    assert "module 'hubbub' has no attribute 'nothing'" in done.stderr


def test_the_contract_suite_passes_there(python: Path) -> None:
    # The mutants try the suite itself, which is the same everywhere; crowds are the aggregator's.
    left_out = [
        f"--ignore=tests/proofs/test_{name}.py" for name in ("mutants", "even_lies", "mean_table")
    ]
    _pass(python, "tests/proofs", *left_out)


@pytest.mark.parametrize(
    "interpreter", _interpreters() or [sys.executable], ids=lambda path: Path(path).name
)
def test_the_client_works_on_every_python_that_is_here(
    interpreter: str, wheels: list[Path], tmp_path: Path
) -> None:
    _pass(_bare(interpreter, tmp_path / "venv", wheels), *CLIENT)


def _pass(python: Path, *tests: str) -> None:
    done = _run_bare(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def _command(
    python: Path, *arguments: str, code: int = 0, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    done = _run_bare(python, str(python.with_name("hubbub")), *arguments, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_a_person_reads_the_ledger_without_an_extra(python: Path, tmp_path: Path) -> None:
    app = (
        "from pathlib import Path; from hubbub.client import Client;"
        "from hubbub.signing.testing import make_bundle;"
        "Path('app.hubbub').write_bytes(make_bundle('metrics.toml').signed);"
        "client = Client.from_bundle('app.hubbub', state_dir='device', insecure=True);"
        "print(client.report('theme', 'dark').name)"
    )
    new = ("catalog", "new", "theme", "--description", "which theme", "--owner", "us@example.org")
    _command(python, *new, "--values", "dark,light", cwd=tmp_path)
    done = _run_bare(python, "-c", app, cwd=tmp_path)
    assert done.stdout.strip() == "QUEUED", done.stderr
    output = _command(python, "ledger", "--state-dir", "device", cwd=tmp_path).stdout
    assert re.search(r"theme +which theme +1\.000 +1 of 1", output)
    assert re.search(r"dark \d\d\.\d%, light \d\d\.\d%|light \d\d\.\d%, dark \d\d\.\d%", output)


def test_a_catalog_is_written_and_checked_without_an_extra(python: Path, tmp_path: Path) -> None:
    new = ("catalog", "new", "theme", "--description", "which theme", "--owner", "us@example.org")
    _command(python, *new, "--values", "dark,light", cwd=tmp_path)
    output = _command(python, "catalog", "check", cwd=tmp_path).stdout
    assert "theme" in output
    assert "no problem found" in output
    metrics = tmp_path / "metrics.toml"
    crowd = "central_epsilon = 1.0\ncrowd = 1000"
    metrics.write_text(metrics.read_text().replace("epsilon = 1.0", crowd))
    refused = _command(python, "catalog", "check", code=2, cwd=tmp_path).stderr
    assert "pip install CLIENT 'PATH[plan]'" in refused


def test_the_command_names_the_smallest_extra(python: Path) -> None:
    assert _command(python, "--version").stdout == f"hubbub {VERSION}\n"
    listed = _command(python, "--help").stdout
    for name, needed in {
        "load": "cli",
        "plan": "plan",
        "demo": "local",
        "backup": "aggregator,cli",
    }.items():
        assert name in listed
        output = _command(python, name, "--nothing", code=2).stderr
        assert output.startswith(f"hubbub: hubbub {name} needs ")
        assert f"pip install CLIENT 'PATH[{needed}]'" in output


def test_questions_are_asked_over_http_without_an_extra(python: Path, tmp_path: Path) -> None:
    with page_of(tmp_path, CATALOG, {"theme": {0: 400, 1: 100}}) as page:
        for question in ("query", "top", "trend"):
            output = _command(python, question, "theme", "--url", page).stdout
            assert "light" in output, question
        assert "theme" in _command(python, "metrics", "--url", page).stdout
        # The shuffler's terms are not known here, which is exit code 1.
        assert "theme" in _command(python, "status", "--url", page, code=1).stdout
    helped = [name for name, command in COMMANDS.items() if not command.extra]
    done = _run_bare(python, "-c", HELP, *helped)
    assert done.stdout.count("usage: hubbub") == len(helped), done.stderr
