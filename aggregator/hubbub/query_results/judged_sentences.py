"""How good a model is of people who taught it nothing, in words for people."""

from typing import Any, Final

_NAMES: Final = {"auc": "AUC", "accuracy": "accuracy"}


def judged_sentences(document: dict[str, Any], level: str) -> list[str]:
    """What is known of it: AUC or accuracy with its interval; nothing until it is judged."""
    return [
        f"{label} {document[name]:.3f}, {level} interval {document[f'{name}_low']:.3f} to "
        f"{document[f'{name}_high']:.3f}"
        for name, label in _NAMES.items()
        if document.get(name) is not None
    ]
