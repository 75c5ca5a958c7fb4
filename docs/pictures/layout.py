"""The packages and their arrows, from the imports: `python -m docs.pictures.layout` prints them."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("proto", "client", "shuffler", "aggregator", "deploy")

Imports = dict[str, set[str]]


def picture() -> str:
    """As Mermaid: every package in its top folder, with an arrow to each that it stands on."""
    lines = ["flowchart BT"]
    for folder in FOLDERS:
        lines.append(f"  subgraph {folder}/")
        lines += [f"    {name}" for name in _packages(folder)]
        lines.append("  end")
    needed = _direct_imports(_imports())
    lines += [f"  {name} --> {below}" for name in sorted(needed) for below in sorted(needed[name])]
    return "\n".join(lines)


def _packages(folder: str) -> list[str]:
    return sorted(path.parent.name for path in (ROOT / folder / "hubbub").glob("*/__init__.py"))


def _imports() -> Imports:
    """Of every package those that it imports."""
    found: Imports = {name: set() for folder in FOLDERS for name in _packages(folder)}
    for folder in FOLDERS:
        for name in _packages(folder):
            for path in (ROOT / folder / "hubbub" / name).rglob("*.py"):
                if "_pb2" not in path.name:
                    found[name] |= {*_imported_modules(path.read_text())} - {name}
    return found


def _imported_modules(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "hubbub" and len(parts) > 1:
                yield parts[1]


def _direct_imports(imports: Mapping[str, set[str]]) -> Imports:
    """Without the arrows that follow from others."""

    def reached(name: str) -> set[str]:
        return imports[name].union(*(reached(below) for below in imports[name]))

    return {
        name: {
            below
            for below in direct
            if not any(below in reached(other) for other in direct if other != below)
        }
        for name, direct in imports.items()
    }


if __name__ == "__main__":
    print(picture())
