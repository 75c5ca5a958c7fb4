"""What a person gives more or less by a later bundle, as lines."""

from collections.abc import Sequence

from hubbub.catalog.bundles.difference import LESS, MORE, Difference
from hubbub.cli.terminal.output import say, table


def show_difference(title: str, found: Sequence[Difference]) -> None:
    """A table of what differs, what a person gives more of first; or one line."""
    if not found:
        say(f"{title}: nothing differs")
        return
    ranked = sorted(found, key=lambda one: (one.gives != MORE, one.gives != LESS))
    table(
        title,
        ("a person gives", "metric", "field", "before", "after"),
        [(one.gives, one.metric or "(all)", one.field, one.before, one.after) for one in ranked],
        text_columns=5,
    )
