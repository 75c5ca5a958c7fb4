"""Which test files are likely to notice a change of a file of the product."""

import re
from pathlib import Path
from typing import Final

# How much longer a test of a folder takes than one of tests/unit, roughly.
_COSTS: Final = {"unit": 1, "proofs": 2, "statistics": 4, "services": 4, "interfaces": 8}
_SYSTEM_COST: Final = 16


def by_relevance(checkout: Path, changed: Path, description: str) -> list[str]:
    """All test files; first quick ones with many words of the change that few others have.

    Its words are the module's name, what it defines, and those of the description.
    tests/architecture is left out: it looks at the text of the product, and not at what it does.

    changed: the file, from the checkout on, as are the answers.
    """
    defined = re.findall(
        r"^(?:def|class) ([A-Za-z]\w+)", (checkout / changed).read_text(), re.MULTILINE
    )
    matches = re.findall(r"\w{4,}", f"{description} {changed.stem} {changed.parent.name}")
    words = {".".join(changed.with_suffix("").parts[1:]), *defined, *matches}
    texts = {
        file.relative_to(checkout): file.read_text()
        for file in sorted((checkout / "tests").rglob("test_*.py"))
        if file.parent.name != "architecture"
    }
    tests = {
        file: [bool(re.search(rf"\b{re.escape(word)}\b", text)) for word in words]
        for file, text in texts.items()
    }
    files_by_word = [max(sum(column), 1) for column in zip(*tests.values(), strict=True)]

    def rank(file: Path) -> float:
        rare: float = sum(
            has / files for has, files in zip(tests[file], files_by_word, strict=True)
        )
        return -rare / _COSTS.get(file.parts[1], _SYSTEM_COST)

    return [str(file) for file in sorted(tests, key=rank)]
