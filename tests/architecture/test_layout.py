"""The picture of the packages is drawn from the imports, and says all of them."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pictures.layout import FOLDERS, picture
from hubbub.mechanisms import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_picture_is_what_the_imports_are() -> None:
    [drawn] = re.findall(r"```mermaid\n(.*?)\n```", PAGE, re.DOTALL)
    assert drawn == picture(), "run: python -m docs.pictures.layout"


def test_the_architecture_page_lists_exactly_the_packages() -> None:
    matches = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    packages = {
        path.parent.name
        for top in FOLDERS
        for path in (ROOT / top / "hubbub").glob("*/__init__.py")
    }
    assert set(matches) == packages
    assert len(matches) == len(packages)


def test_the_blind_process_runs_exactly_the_documented_packages() -> None:
    code = (
        "import sys, hubbub.shuffler.__main__;"
        "print(*sorted({m.split('.')[1] for m in sys.modules if m.startswith('hubbub.')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    [sentence] = re.findall(r"blind shuffler's process runs (.*?), and nothing else", PAGE)
    assert sorted(re.findall(r"`(\w+)`", sentence)) == done.stdout.split()


EXTRAS = "authlib joserfc httpx2 pyarrow opendp"


@pytest.mark.parametrize(
    ("process", "without"),
    [
        (
            "aggregator.__main__",
            # What questions of a few metrics need is loaded by the first of them; extras are what
            # an installation may not have.
            f"scipy.stats scipy.signal scipy.optimize dp_accounting {EXTRAS}",
        ),
        ("privacy.release_noise", "sklearn pandas polars"),
        # Of these there is one a processor.
        ("aggregator.ingest.opener_process", "numpy redis grpc google prometheus_client"),
    ],
)
def test_a_process_starts_without_rarely_needed_modules(process: str, without: str) -> None:
    code = f"import sys, hubbub.{process}; print({set(without.split())} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_freezers_of_apps_find_every_mechanism_that_is_loaded_by_name() -> None:
    tree = ast.parse(Path(registry.__file__).read_text())
    imported = {
        alias.name
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert imported == {module for module, _ in registry._HOMES.values()}
