"""Puts `hubbub/__init__.py` into the wheel; an editable install has several roots, and none."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface[Any]):
    """Called by hatchling for every wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """As hatchling's interface says. version: "standard", or "editable"."""
        if version == "standard":
            source = Path(self.root) / "deploy" / "packaging" / "hubbub.py"
            build_data["force_include"][str(source)] = "hubbub/__init__.py"
