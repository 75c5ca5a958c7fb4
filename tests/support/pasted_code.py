"""What a page says to paste, pasted: into a shell that only has hubbub, and into a notebook."""

import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.programs import run_program


def in_shell(text: str, folder: Path, **environment: str) -> str:
    """What it prints, from a folder that is none of hubbub's; fails if it does."""
    done = run_program(
        "bash",
        "-c",
        text,
        cwd=folder,
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            **environment,
        },
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def in_notebook(text: str, **environment: str) -> Any:
    """The JSON of the answer that its last line shows."""
    [*before, last] = text.splitlines()
    names: dict[str, Any] = {}
    with patch.dict(os.environ, environment):
        exec("\n".join(before), names)  # noqa: S102 what the page printed
        return eval(last, names).document  # noqa: S307 as above
