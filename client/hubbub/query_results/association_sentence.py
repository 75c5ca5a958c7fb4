"""How two parts go together, in words for people."""

from hubbub.query_results.rows import Document

# Fewer chances than this are none that a p-value can be read as.
_LEAST = 1e-12


def association_sentence(found: Document) -> str:
    """The test of independence, and Cramer's V with its interval, of a cross table."""
    told = found["association"]
    p_value, ends = told["p_value"], f"{told['low']:.2f} to {told['high']:.2f}"
    p = f"p < {_LEAST:.0e}" if p_value < _LEAST else f"p = {p_value:.2g}"
    parts = f"{found['rows']} and {found['columns']}"
    together = p_value <= 1 - found["confidence"]
    said = f"{parts} go together ({p})" if together else f"no sign that {parts} go together ({p})"
    if told["cramers_v"] is None:
        return f"{said}; how strongly cannot be said from so few reports"
    said += f"; Cramer's V {told['cramers_v']:.2f}, {ends}"
    rare = [*told["rare_rows"], *told["rare_columns"]]
    return said + (f" ({len(rare):,} rare values count as one)" if len(rare) > 1 else "")
