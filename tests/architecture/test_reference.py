"""The reference says what is: its pages are what they are made from, and nothing is left out."""

import importlib
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.reference.pages import DOCS, PAGES
from docs.reference.weights import EXTRAS, install_name
from hubbub.cli.command_table import COMMANDS
from hubbub.cli.main import main, whole_parser

ROOT = Path(__file__).parents[2]
LONG_PAGES = {"review.md"}  # which runs every command that it quotes


@pytest.mark.parametrize(
    ("name", "catalog_files"),
    [
        pytest.param(*page, id=page[0], marks=pytest.mark.thorough if page[0] in LONG_PAGES else ())
        for page in PAGES.items()
    ],
)
def test_a_generated_page_names_its_source(name: str, catalog_files: Callable[[], str]) -> None:
    assert (DOCS / name).read_text("utf-8") == catalog_files(), "run: make reference"


def test_every_command_and_option_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "reference" / "command-line.md").read_text("utf-8")
    commands = re.findall(r"^    (\w+) ", whole_parser().format_help(), re.MULTILINE)
    assert len(commands) > 20
    for command in sorted({*commands} - {"shuffler", "aggregator", "relay", "issuer"}):
        section = page.partition(f"## {command}\n")[2].partition("\n## ")[0]
        for first in re.findall(r"^Shared: those of \[(\w+)\]", section, re.MULTILINE):
            section += page.partition(f"## {first}\n")[2].partition("\n## ")[0]
        assert section, command
        for option in _options([command], capsys):
            assert f"`{option}`" in section or f"`{option} " in section, (command, option)


def _options(command: list[str], capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Those of a command's own help, and of its parts'."""
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    output = capsys.readouterr().out
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z][a-z-]+)", output, re.MULTILINE)) - {"--help"}
    if re.search(r"\b[A-Z]+ \.\.\.", output):
        for part in re.findall(r"^    (\w+)(?: |$)", output, re.MULTILINE):
            options |= _options([*command, part], capsys)
    return options


def test_options_of_the_parts_of_a_command_are_looked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert {"--anew-from", "--host", "--role"} <= _options(["keys"], capsys)


def test_every_variable_that_is_read_is_on_the_page() -> None:
    page = (DOCS / "reference" / "settings.md").read_text("utf-8")
    for folder in ("client", "shuffler", "aggregator", "deploy"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in {".py", ".service", ".yaml", ".sh"}:
                for name in re.findall(r"\bHUBBUB_[A-Z]+(?:_[A-Z]+)*\b", path.read_text("utf-8")):
                    assert f"`{name}`" in page, f"{path.name}: {name}"


@pytest.mark.parametrize("package", ["client", "notebook", "mechanisms"])
def test_every_described_parameter_exists(package: str) -> None:
    """What stands under Args is what the signature takes, in its order."""
    import griffe

    module = importlib.import_module(f"hubbub.{package}")
    for name in module.__all__:
        for function in _functions(getattr(module, name)):
            docstring = griffe.Docstring(function.__doc__ or "")
            for section in docstring.parse("google", warnings=False):
                if isinstance(section, griffe.DocstringSectionParameters):
                    items = list(function.__annotations__)
                    described = [parameter.name.lstrip("*") for parameter in section.value]
                    assert [name for name in items if name in described] == described, function


def _functions(thing: object) -> list[Callable[..., object]]:
    """A function, or those of a class."""
    if not isinstance(thing, type):
        return [thing] if callable(thing) else []
    functions = [getattr(var, "__func__", var) for var in vars(thing).values()]
    return [
        function
        for function in functions
        if callable(function) and hasattr(function, "__annotations__")
    ]


def test_every_extra_has_a_measured_size_or_is_part_of_one() -> None:
    there = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    weighed = {part for extra in EXTRAS for part in extra.split(",") if part}
    assert weighed >= there.keys() - {"plots", "tracing"}
    page = (DOCS / "reference" / "extras.md").read_text("utf-8")
    for extra, purpose in EXTRAS.items():
        assert f"| `{install_name(extra)}` | {purpose} | " in page, "run: make weights"
    assert {
        part for command in COMMANDS.values() for part in command.extra.split(",") if part
    } <= weighed
