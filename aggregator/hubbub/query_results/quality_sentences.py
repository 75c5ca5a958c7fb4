"""Describes a model's quality for people who did not train it."""

from typing import Any, Final

_NAMES: Final = {"auc": "AUC", "accuracy": "accuracy"}


def judged_sentences(document: dict[str, Any], level: str) -> list[str]:
    """Sentences with AUC or accuracy and its interval; empty until the model is judged."""
    return [
        f"{label} {document[name]:.3f}, {level} interval {document[f'{name}_low']:.3f} to "
        f"{document[f'{name}_high']:.3f}"
        for name, label in _NAMES.items()
        if document.get(name) is not None
    ]
