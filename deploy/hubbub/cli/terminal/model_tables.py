"""Tables of models: how good one is, as devices tell that taught it nothing."""

from collections.abc import Iterable

from hubbub.cli.terminal.output import table


def show_calibration(
    title: str, level: str, bins: Iterable[tuple[float, float, float, float, float, float]]
) -> None:
    """A row a bin: what the model tells its people, their share, and what is true of them.

    Of a bin that nobody is in, as far as reports tell, nothing is.
    """
    table(
        title,
        ("foretold", "people", "true", f"{level} interval"),
        [
            (
                f"{lowest:.4g} to {highest:.4g}",
                f"{100 * min(max(people, 0.0), 1.0):.1f}%",
                *((f"{true:.4g}", f"{low:.4g} to {high:.4g}") if people > 0 else ("nobody", "")),
            )
            for lowest, highest, people, true, low, high in bins
        ],
    )
