"""Names are the field's words. What was called otherwise once is not called so again."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_house import ROOT, SOURCES, TRACKED
from tests.support.source_trees import nodes

# A name that was rejected, and the word that the field has for it.
REJECTED = {
    "Asked": "EstimateQuery",
    "Beyond": "UpstreamCounts",
    "Collected": "TotalsByEpoch",
    "DialledTransport": "LazyTransport",
    "Drawn": "PendingPayload",
    "DeviceLine": "TimedConnection",
    "Drops": "EpochPublisher",
    "Figures": "ValueEstimates",
    "Figuring": "FigureSources",
    "Fresh": "CoalescedRead",
    "Holding": "EpochSelection",
    "HttpFace": "HttpServer",
    "Judged": "Evaluation",
    "KeptEstimates": "AnswerStore",
    "LawLine": "ReportCounts",
    "Lines": "OpenConnections",
    "Mix": "Policy",
    "PartMissing": "MissingDependency",
    "Pressure": "Backpressure",
    "Put": "ParsedQuery",
    "Question": "MetricDraft, QueryName",
    "Recent": "LruCache",
    "Shelf": "TotalsCache",
    "Standing": "DeviceState",
    "Taker": "Sink",
    "Told": "what it holds: a delivery log, replies",
    "Worked": "RangeEstimate",
    "lay_aside": "archive",
    "relist": "restore_archived",
    "tried_in_vain": "delivery_failed",
    "turned_away": "refusals",
    "turned_away_calls": "throttled_calls",
    "unhold": "after_fork_in_parent",
}
# Beginnings that have a shorter word.
BEGINNINGS = {"most_": "max_", "least_": "min_", "MOST_": "MAX_", "LEAST_": "MIN_"}
# Participles and particles say of nothing what it is: nothing is defined by such a name alone.
VAGUE = {"told", "asked", "beyond", "goes", "given", "heard", "law", "shelf", "still", "worked"}

# Nor is a module's, of which nobody guesses what it holds.
VAGUE_MODULES = {
    "declared",
    "dialled",
    "ended",
    "every",
    "expired",
    "facts",
    "grown",
    "hashed",
    "joined",
    "judged",
    "kept",
    "known",
    "opening",
    "parted",
    "passed",
    "permitted",
    "planned",
    "reading",
    "repeated",
    "said",
    "served",
    "shared",
    "taken_along",
    "visible",
    "words",
    "writing",
}


SUSPECT = re.compile(rf"\b(?:(?:{'|'.join(REJECTED)})\b|_*(?:{'|'.join(BEGINNINGS)}))")


def _names(path: Path) -> Iterator[tuple[int, str]]:
    if not SUSPECT.search(path.read_text()):
        return
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def _defined(path: Path) -> Iterator[tuple[int, str]]:
    """Public classes and functions, and the fields of classes."""
    for node in nodes(path.read_text()):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    yield statement.lineno, statement.target.id


def test_no_name_is_one_that_was_rejected() -> None:
    for path in SOURCES:
        _refuse_rejected_names(path)


def _refuse_rejected_names(path: Path) -> None:
    assert path.stem not in VAGUE_MODULES, f"{path}:1: {path.stem}; name it by what it holds"
    for line, name in _names(path):
        assert name not in REJECTED, f"{path}:{line}: {name}; say {REJECTED[name]}"
        begins = next(
            (beginning for beginning in BEGINNINGS if name.lstrip("_").startswith(beginning)), None
        )
        if begins and not name.endswith("most_common"):
            say = BEGINNINGS[begins]
            raise AssertionError(f"{path}:{line}: {name}; begin it with {say}")
    for line, name in _defined(path):
        assert name.lower() not in VAGUE, f"{path}:{line}: {name}; say what it is"


def test_a_rejected_name_is_noticed(tmp_path: Path) -> None:
    source_path = tmp_path / "new.py"
    for wrong in ("class Shelf: ...", "most_reports = 1", "def told() -> None: ..."):
        source_path.write_text(wrong)
        with pytest.raises(AssertionError, match=r"new\.py:1"):
            _refuse_rejected_names(source_path)
    vague = source_path.rename(tmp_path / "kept.py")
    vague.write_text("")
    with pytest.raises(AssertionError, match=r"kept\.py:1"):
        _refuse_rejected_names(vague)


# Names that say that somebody said, gave, found or kept a thing, and not what it is.
PARTICIPLES = frozenset(
    [
        "asked",
        "found",
        "given",
        "heard",
        "held",
        "kept",
        "known",
        "left",
        "made",
        "one",
        "read",
        "said",
        "seen",
        "shown",
        "taken",
        "told",
        "written",
    ]
)
MOST_PARTICIPLES = 0.002  # of all bindings: directions, bits, the fields of files and protocols


@pytest.mark.parametrize(
    "folder", ["proto client shuffler aggregator deploy", "tests", "benchmarks"]
)
def test_variables_are_named_by_what_they_hold(folder: str) -> None:
    """All bindings: variables, arguments, attributes, classes and functions, private ones too."""
    names = [
        (f"{path.relative_to(ROOT)}:{line}", name)
        for path in TRACKED
        if path.suffix == ".py"
        and path.relative_to(ROOT).parts[0] in folder.split()
        and "_pb2" not in path.name
        for line, name in _bindings(path)
    ]
    rejected = PARTICIPLES if folder in {"tests", "benchmarks"} else PARTICIPLES | {"more"}
    vague = [f"{place} {name}" for place, name in names if name.strip("_").lower() in rejected]
    assert len(names) > 1000
    assert len(vague) <= MOST_PARTICIPLES * len(names), "\n".join(vague)


# Words that say neither what a function does nor what it returns, if its name has no other word.
EMPTY = re.compile(
    r"(?:_*(?:"
    r"above|again|all|another|any|apart|around|asked|before|beside|beyond|both|built|"
    r"changed|chosen|cut|drawn|each|ended|every|exact|fair|filled|for|found|from|full|"
    r"given|gone|good|held|here|how|in|joined|judged|just|kept|known|least|left|made|many|"
    r"more|moved|near|none|off|on|once|one|only|opened|other|others|out|over|own|parted|"
    r"passed|plain|right|said|same|seen|sent|shared|shown|so|some|such|sure|taken|then|"
    r"there|told|under|until|used|what|where|which|who|whole|with|within|without|worked|"
    r"written"
    r")(?=_|$))+"
)
MOST_EMPTY = 0.0065  # of all functions: parts of a class that says the rest


def test_functions_and_tests_say_what_they_do_or_return() -> None:
    """A test begins with its actor, not with a clause: "an_unreadable_file_is_...", not "what_"."""
    functions = [
        (node.name, f"{path.relative_to(ROOT)}:{node.lineno}")
        for path in TRACKED
        if path.suffix == ".py" and "_pb2" not in path.name
        for node in nodes(path.read_text())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    clause = re.compile("test_(?:what|whom?|of|where)(?:ever)?_")
    assert not [place for name, place in functions if clause.match(name)]
    empty = [place for name, place in functions if EMPTY.fullmatch(name)]
    assert len(empty) <= MOST_EMPTY * len(functions), "\n".join(empty)


def test_the_variables_of_the_page_are_named_by_what_they_hold() -> None:
    """ESLint's id-denylist does the same for TypeScript."""
    names = "|".join(PARTICIPLES - {"left"})  # a side of a drawing
    binding = re.compile(rf"\b(?:const|let|function|async) ({names})\b|\(({names})[,)] ?=?>?")
    pages = ROOT / "aggregator" / "hubbub" / "aggregator" / "web" / "pages"
    vague = [
        f"{path.name}: {match[0]}"
        for path in pages.glob("*.js")
        for match in binding.finditer(path.read_text("utf-8"))
    ]
    assert not vague


def _bindings(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(path.read_text()):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[-4:] != "read":
            yield node.lineno, node.name  # to read is a verb
