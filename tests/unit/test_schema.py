"""The JSON Schema of metrics.toml takes every catalog there is, and refuses what it can know."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.reference.catalog_schema import catalog_schema
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.errors import CatalogInvalid
from hubbub.mechanisms import REGISTRY
from tests.architecture.test_house import ROOT, TRACKED
from tests.conftest import CATALOG
from tests.fuzz.bundles import MORE
from tests.support.catalogs import promised_catalog_of
from tests.support.commands import document_of
from tests.support.programs import run_program
from tests.system.test_every_mechanism import metric_of
from tests.unit.test_catalog import WRONG
from tests.unit.test_central import HEAD, THEME

VALIDATOR = Draft202012Validator(catalog_schema())
# What the parser alone knows, and why.
BEYOND_THE_SCHEMA = {
    "epsilon = nan": "JSON has no such number",
    '"rr"': "how many values fit the mechanism",
    '"alone"': "how many values fit the mechanism",
    " ": "how many values fit the mechanism",
    'values_file = "no"': "what is in a file",
    "q = 0.99": "what several numbers together let a report say",
    "q = 0.1": "the order of two numbers",
    "lifetime_epsilon = 1": "the order of two numbers",
    "tiers = [1.0, 0.5]": "the order of numbers",
    "tiers = [0.5, 2.0]": "the order of two numbers",
    "bits = 16\ntiers = [0.5]": "what a mechanism can scale",
}


def _as_json(thing: Any) -> Any:
    """As an editor hands TOML to a schema: dates and times are texts."""
    if isinstance(thing, dict):
        return {name: _as_json(value) for name, value in thing.items()}
    if isinstance(thing, list):
        return [_as_json(item) for item in thing]
    return thing.isoformat() if isinstance(thing, date) else thing


def _problems(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(_as_json(tomllib.loads(text)))]


def _texts() -> Iterator[str]:
    """Everything here that may be a catalog: files, blocks of documents, those of tests."""
    for path in TRACKED:
        if path.suffix == ".toml":
            yield path.read_text()
        elif path.suffix == ".md":
            yield from re.findall(r"```toml\n(.*?)```", path.read_text(), re.DOTALL)
    yield from _made_by_tests()
    yield HEAD + metric_of("tree").replace('mechanism = "tree"', 'mechanism = "auto"')


def _made_by_tests() -> list[str]:
    """CATALOG of every module that has one, from a process of their own: some change what ships."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in TRACKED
        if path.suffix == ".py" and re.search("^CATALOG = ", path.read_text(), re.MULTILINE)
    ]
    code = f"""
import importlib, json
print(json.dumps([importlib.import_module(name).CATALOG for name in {names}]))
"""
    done = run_program(sys.executable, "-c", code, cwd=ROOT, check=True)
    document: list[str] = json.loads(done.stdout)
    return document


def _is_catalog(text: str) -> bool:
    try:
        promised_catalog_of(text)
    except CatalogInvalid:
        return False
    return True


@pytest.mark.slow
def test_a_catalog_with_every_field_and_of_every_mechanism_is_taken() -> None:
    for text in (
        CATALOG + MORE,
        HEAD + THEME,
        *(HEAD + metric_of(name) for name in (AUTO, *REGISTRY)),
    ):
        assert _problems(text) == [], text


@pytest.mark.thorough
def test_every_catalog_of_the_repository_is_valid(tmp_path: Path) -> None:
    (tmp_path / "themes.txt").write_text("light\ndark\n")
    catalogs = [text for text in _texts() if "shuffler = " in text and _is_catalog(text)]
    assert len(catalogs) >= 30
    for text in catalogs:
        assert _problems(text) == [], text


@pytest.mark.parametrize(("old", "new"), [case[:2] for case in WRONG])
def test_the_schema_refuses_what_the_parser_refuses(old: str, new: str) -> None:
    assert bool(_problems(CATALOG.replace(old, new, 1))) is (new not in BEYOND_THE_SCHEMA)


OF_METRICS = (
    "sampling = 0",
    "sampling = 1.5",
    "sampling = true",
    "tiers = [0.5, 0.5]",
    'release = { mechanism = "laplace" }',
    'release = { mechanism = "laplace", epsilon = 99 }',
    'release = { mechanism = "laplace", epsilon = 1, more = 1 }',
    "hashes = 1",
    "reports = 5",
    "name = 1",
    'values_file = "x.txt"',
)
OF_PROMISES = (
    ("crowd = 30000\n", ""),
    ("crowd = 30000", "crowd = 9"),
    ("central_epsilon = 1.0\n", ""),
    ("crowd", "honest = 0.0\ncrowd"),
    ("crowd", "rolling = 1\ncrowd"),
)
OF_FILES = (
    "[caps]\nepsilon_per_year = 0",
    "[caps]\nepsilon_per_decade = 1",
    "[budget]\nepsilon_per_year = 1",
    "[budget]\nepsilon_per_year = 1\ndelta_per_year = 1\npurposes = { a = 1 }",
    "[budget]\nepsilon_per_year = 1\npurposes = { a = 0 }",
    "[budget]\nepsilon_per_year = 1\npurposes = {}",
    "[more]\nx = 1",
)


@pytest.mark.parametrize(
    "text",
    [
        *(CATALOG.replace("min_batch = 20", f"min_batch = 20\n{more}", 1) for more in OF_METRICS),
        *(HEAD + THEME.replace(old, new, 1) for old, new in OF_PROMISES),
        *(f"{CATALOG}\n{top}" for top in OF_FILES),
    ],
    ids=[*OF_METRICS, *(f"{old} {new}" for old, new in OF_PROMISES), *OF_FILES],
)
def test_parser_and_schema_refuse_invalid_metrics_promises_and_files(text: str) -> None:
    assert not _is_catalog(text)
    assert _problems(text)


@pytest.mark.slow
def test_the_command_prints_a_schema_of_its_draft(capsys: pytest.CaptureFixture[str]) -> None:
    printed = document_of(capsys, "catalog", "schema")
    assert printed == json.loads(json.dumps(catalog_schema()))
    Draft202012Validator.check_schema(printed)
