"""Whether an answer may still change, in words for people."""

from hubbub.query_results.rows import Document


def final_sentence(document: Document) -> str:
    """That epochs of an answer still take reports; "" of one that is final, or of no epochs."""
    final = document.get("final", True)
    return "" if final else "not final: these epochs still accept reports"
