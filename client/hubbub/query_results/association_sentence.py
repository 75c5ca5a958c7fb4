"""How two parts go together, in words for people."""

from hubbub.query_results.rows import Document

# Fewer chances than this are none that a p-value can be read as.
_LEAST = 1e-12


def association_sentence(found: Document) -> str:
    """The test of independence, and Cramer's V with its interval, of a cross table."""
    parts = f"{found['rows']} and {found['columns']}"
    if found["by"]:
        return _tested(f"{parts}, within {found['by']},", found["association"], found)
    return _said(parts, found["association"], found)


def slice_sentences(found: Document) -> list[str]:
    """The same of each value of a third part; of two parts none."""
    return [
        f"{found['by']}={row['value']}: "
        + (_said("the two", row["association"], found) if row["association"] else "too rare to say")
        for row in found["slices"]
    ]


def _tested(parts: str, told: Document, found: Document) -> str:
    p_value = told["p_value"]
    p = f"p < {_LEAST:.0e}" if p_value < _LEAST else f"p = {p_value:.2g}"
    together = p_value <= 1 - found["confidence"]
    return f"{parts} go together ({p})" if together else f"no sign that {parts} go together ({p})"


def _said(parts: str, told: Document, found: Document) -> str:
    sentence = _tested(parts, told, found)
    if told["cramers_v"] is None:
        return f"{sentence}; how strongly cannot be said from so few reports"
    sentence += f"; Cramer's V {told['cramers_v']:.2f}, {told['low']:.2f} to {told['high']:.2f}"
    rare = [*told["rare_rows"], *told["rare_columns"]]
    return sentence + (f" ({len(rare):,} rare values count as one)" if len(rare) > 1 else "")
