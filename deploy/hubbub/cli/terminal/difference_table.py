"""Shows what a later bundle changes for a person's privacy."""

from collections.abc import Sequence

from hubbub.cli.terminal.output import listing, say
from hubbub.signing.metric_changes import LESS, MORE, Difference


def show_difference(title: str, differences: Sequence[Difference] | None) -> None:
    """Prints a table of differences, those that cost a person more first; or one line.

    None is the first bundle, which differs from none.
    """
    if not differences:
        say(title if differences is None else f"{title}: nothing differs")
        return
    ranked = sorted(differences, key=lambda change: (change.gives != MORE, change.gives != LESS))
    listing(
        title,
        ranked,
        {
            "a person gives": "{gives}",
            "metric": lambda difference: difference.metric or "(all)",
            "field": "{field}",
            "before": "{before}",
            "after": "{after}",
        },
        text_columns=5,
    )
