"""Says whether an answer may still change."""

from hubbub.query_results.rows import Document


def final_sentence(document: Document) -> str:
    """Says that epochs of an answer still accept reports; "" if it is final or has no epochs."""
    final = document.get("final", True)
    return "" if final else "not final: these epochs still accept reports"
