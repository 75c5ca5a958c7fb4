"""What a trend over several names of one question says beside its points."""

from collections.abc import Mapping
from typing import Any

__all__ = ["joined_said"]


def joined_said(answer: Mapping[str, Any]) -> list[str]:
    """Sentences: whose reports are among these, and in which epochs a value was not asked for."""
    if not answer.get("joined"):
        return []
    asked = [one for one in answer["series"] if one.get("not_asked")]
    return [
        f"with the reports of {', '.join(answer['joined'])}, which it goes on from",
        *(f"{one['value'][:80]}: not asked in {one['not_asked']}" for one in asked),
    ]
