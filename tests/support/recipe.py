"""The mechanism of docs/contribute/mechanism.md, as it stands there."""

import re
from pathlib import Path
from typing import Any

from hubbub.mechanisms import AnyMechanism

RECIPE = Path(__file__).parents[2] / "docs" / "contribute" / "mechanism.md"


def example(broken: tuple[str, str] = ("", "")) -> type[AnyMechanism]:
    """The class that the document defines, perhaps with one expression replaced."""
    [code] = re.findall(r"```python\n(.*?)```", RECIPE.read_text("utf-8"), re.DOTALL)
    assert broken[0] in code
    defined: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code.replace(*broken), str(RECIPE), "exec"), defined)  # noqa: S102 our own document
    mechanism_class: type[AnyMechanism] = defined["ForcedResponse"]
    return mechanism_class
