"""The syntax trees of sources, each made once for all tests that look at it."""

import ast
from functools import cache


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a module, the module first."""
    return tuple(ast.walk(ast.parse(source)))
