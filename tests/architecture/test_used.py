"""Nothing in the product is there for tests alone, or for nobody."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.architecture.test_house import SOURCES
from tests.support.source_trees import nodes

# What is called from outside the product, and by whom. A package's `__all__` says the rest.
PUBLIC = {
    "Hook": "the wheel's build",
    "disable": "apps",
    "enable": "apps",
    "make_bundle": "tests of apps",
    "settle": "tests of apps",
}


def _used_names(module: Iterable[ast.AST]) -> Iterator[str]:
    """Names that are read, imported or looked up as text; not those that are only defined."""
    for node in module:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.rpartition(".")[2]


def _defined(tree: ast.AST) -> Iterator[str]:
    """Functions and classes, and methods of classes without a base, that no decorator takes."""
    assert isinstance(tree, ast.Module)
    plain = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.bases]
    for node in [*tree.body, *(statement for block in plain for statement in block.body)]:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
        ) or isinstance(node, ast.ClassDef):
            yield node.name


def unused(sources: Iterable[Path]) -> set[str]:
    modules = [nodes(path.read_text()) for path in sources]
    used = Counter(name for module in modules for name in _used_names(module))
    return {
        name
        for module in modules
        for name in _defined(module[0])
        if not used[name] and not name.startswith("__")
    }


def test_the_product_uses_all_that_it_has() -> None:
    assert unused(SOURCES) - PUBLIC.keys() == set(), "what nothing needs goes"


def test_an_unused_function_is_noticed(tmp_path: Path) -> None:
    source_path = tmp_path / "new.py"
    source_path.write_text("def used() -> None: ...\n\n\ndef left() -> None:\n    used()\n")
    assert unused([source_path]) == {"left"}
