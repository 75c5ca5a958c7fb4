"""Adds proto/ and `hubbub/__init__.py` to what is built; an editable install has several roots."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface[Any]):
    """Called by hatchling for every wheel and source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """As hatchling's interface says. version: "standard", or "editable"."""
        if version != "standard":
            return
        root = Path(self.root)
        inside = root / "proto"  # of a source distribution, which stands alone
        proto = (inside if inside.exists() else root.parent / "proto") / "hubbub"
        included = build_data["force_include"]
        if self.target_name == "sdist":
            included[str(proto)] = "proto/hubbub"
        else:
            included[str(proto)] = "hubbub"
            included[str(root / "packaging" / "hubbub.py")] = "hubbub/__init__.py"
