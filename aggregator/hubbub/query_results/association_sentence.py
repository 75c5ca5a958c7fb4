"""Describes the association of two parts in words."""

from hubbub.query_results.rows import Document

# Fewer chances than this are none that a p-value can be read as.
_LEAST = 1e-12


def association_sentence(document: Document) -> str:
    """A sentence with the test of independence, and Cramer's V with its interval."""
    parts = f"{document['rows']} and {document['columns']}"
    if document["by"]:
        return _tested(f"{parts}, within {document['by']},", document["association"], document)
    return _sentence(parts, document["association"], document)


def slice_sentences(document: Document) -> list[str]:
    """The same for each value of a third part; empty if there are two parts."""
    return [
        f"{document['by']}={row['value']}: "
        + (
            _sentence("the two", row["association"], document)
            if row["association"]
            else "too rare to judge"
        )
        for row in document["slices"]
    ]


def _tested(parts: str, association: Document, document: Document) -> str:
    p_value = association["p_value"]
    p = f"p < {_LEAST:.0e}" if p_value < _LEAST else f"p = {p_value:.2g}"
    together = p_value <= 1 - document["confidence"]
    return f"{parts} go together ({p})" if together else f"no sign that {parts} go together ({p})"


def _sentence(parts: str, association: Document, document: Document) -> str:
    sentence = _tested(parts, association, document)
    if association["cramers_v"] is None:
        return f"{sentence}; there are too few reports to tell how strongly"
    low, high = (f"{association[end]:.2f}" for end in ("low", "high"))
    sentence += f"; Cramer's V {association['cramers_v']:.2f}, {low} to {high}"
    rare = [*association["rare_rows"], *association["rare_columns"]]
    return sentence + (f" ({len(rare):,} rare values count as one)" if len(rare) > 1 else "")
