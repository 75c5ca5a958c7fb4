"""Adds `hubbub/__init__.py` to the wheel; an editable install has several roots, and none."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface[Any]):
    """Called by hatchling for every wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """As hatchling's interface says. version: "standard", or "editable"."""
        if version == "standard":
            module = Path(self.root) / "packaging" / "hubbub.py"
            build_data["force_include"][str(module)] = "hubbub/__init__.py"
