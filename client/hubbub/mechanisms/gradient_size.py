"""The size of a gradient, and the sizes that are refused."""

from collections.abc import Sequence
from typing import Final

from hubbub.errors import BadParameter

MAX_COLUMNS: Final = 1000
"""Beyond it a gradient needs more people than there are: its squared error grows with columns."""

MIN_CLASSES: Final = 3
MAX_CLASSES: Final = 16
_REMEDY: Final = "or train centrally on data that you may hold"


def dimensions_of(columns: int, classes: int) -> int:
    """The number of coordinates of a gradient: columns and intercept, for each contrast."""
    return max(classes - 1, 1) * (columns + 1)


def check_classes(classes: Sequence[str]) -> None:
    """Raises BadParameter if classes are not valid names."""
    if len(set(classes)) < len(classes) or not all(group_class.strip() for group_class in classes):
        raise BadParameter("classes has a class twice, or an empty class: write each once")


def problem_with_classes(classes: int, kind: str) -> str:
    """What is wrong with this number of classes for a kind of model; "" if nothing."""
    if kind != "softmax":
        return "is of softmax; other kinds have one score: leave it out" if classes else ""
    if not classes:
        return (
            f"is missing: softmax distinguishes {MIN_CLASSES} to {MAX_CLASSES} classes; "
            "write the possible labels"
        )
    if not MIN_CLASSES <= classes <= MAX_CLASSES:
        return (
            f"has {classes}, but softmax distinguishes {MIN_CLASSES} to {MAX_CLASSES} "
            "classes; for two use logistic, with positive and negative"
        )
    return ""


def check_size(columns: int, classes: int, kind: str) -> None:
    """Raises BadParameter if columns and classes make too large a gradient."""
    if not 1 <= columns <= MAX_COLUMNS:
        raise BadParameter(
            f"{columns} columns are outside [1, {MAX_COLUMNS}]: a gradient's squared error grows "
            f"with them; leave columns out, {_REMEDY}"
        )
    if problem := problem_with_classes(classes, kind):
        raise BadParameter(f"classes {problem}")
    if kind != "softmax":
        return
    if (numbers := dimensions_of(columns, classes)) > MAX_COLUMNS + 1:
        raise BadParameter(
            f"a gradient of {classes} classes and {columns} columns has {numbers} numbers, above "
            f"{MAX_COLUMNS + 1}: its squared error grows with them; leave columns or classes out, "
            + _REMEDY
        )
