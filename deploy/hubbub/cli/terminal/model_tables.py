"""Tables of models: coefficients, and quality."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hubbub.cli.terminal.output import listing, say, table

_ROWS: Final = 20


def show_coefficients(
    title: str,
    coefficients: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    *,
    by_class: bool,
    option: str,
) -> None:
    """Prints the largest coefficients.

    `columns` are further columns, as for `listing`; `option` is the option that prints all.
    """
    rows = sorted(coefficients, key=lambda row: -abs(row["coefficient"]))
    listing(
        title,
        rows[:_ROWS],
        {
            **({"class": "{of_class}"} if by_class else {}),
            "column": "{name}",
            "coefficient": "{coefficient:,.4g}",
            **columns,
        },
        text_columns=1 + by_class,
    )
    if len(rows) > _ROWS:
        say(f"and {len(rows) - _ROWS:,} more: {option} has them all")


def show_calibration(
    title: str, level: str, bins: Iterable[tuple[float, float, float, float, float, float]]
) -> None:
    """Prints a row per bin: the model's predictions, their share of people, and the truth.

    Bins that are empty as far as reports can tell have no truth.
    """
    table(
        title,
        ("predicted", "people", "true", f"{level} interval"),
        [
            (
                f"{lowest:.4g} to {highest:.4g}",
                f"{100 * min(max(people, 0.0), 1.0):.1f}%",
                *((f"{true:.4g}", f"{low:.4g} to {high:.4g}") if people > 0 else ("nobody", "")),
            )
            for lowest, highest, people, true, low, high in bins
        ],
    )
