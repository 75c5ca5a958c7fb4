"""Of every mechanism, every question: the same answer, or the same refusal, from every face."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import hubbub.notebook
from hubbub.cli.main import main
from hubbub.errors import HubbubError
from hubbub.mechanisms import REGISTRY
from tests.interfaces.running_aggregator import HEAD, MODEL, House, house
from tests.support import web
from tests.support.catalogs import metric_toml

LISTED = 'values = ["light", "dark", "system"]'
STRINGS = 'domain = "string"\ncandidates = ["often.example", "never.example"]'
SKETCH = f"epsilon = 3.0\n{STRINGS}\nhashes = 16\nwidth = 64"
BLOOM = "f = 0.5\np = 0.3\nq = 0.7\nepsilon = 3.0"
NUMBERS = 'domain = "number"\nlow = 0\nhigh = 24\nunit = "h"\nepsilon = 2.0'
HOLDS: dict[str, dict[Any, int]] = {
    "listed": {0: 2000, 1: 1000, 2: 0},
    "strings": {"often.example": 2500, "else.example": 500},
    "numbers": {1.0: 2000, 20.0: 1000},
    "sets": {1: 1000, 3: 2000},
    "vectors": {(0.5, 0.0): 2000, (0.0, 1.0): 1000},
    "parts": {0: 1500, 3: 1500},
}
KINDS: dict[str, tuple[str, str]] = {
    "rr": (
        'values = [false, true]\nbreakdown = { os = ["linux", "haiku"] }\nepsilon = 2.0',
        "bits",
    ),
    **dict.fromkeys(
        ("grr", "unary.sue", "unary.oue", "subset", "hadamard", "projective"),
        (f"{LISTED}\nepsilon = 2.0", "listed"),
    ),
    "long.grr": (f"{LISTED}\nepsilon = 1.0\npermanent_epsilon = 3.0", "listed"),
    "long.hash": (f"{LISTED}\nepsilon = 1.0\npermanent_epsilon = 3.0", "listed"),
    "long.unary": (f"{LISTED}\nepsilon = 1.0\npermanent_epsilon = 3.0", "listed"),
    "rappor.basic": (f"{LISTED}\n{BLOOM}", "listed"),
    "rappor": (f"{STRINGS}\nbits = 64\nhashes = 1\ncohorts = 8\n{BLOOM}", "strings"),
    **dict.fromkeys(("cms", "hcms", "local_hash"), (SKETCH, "strings")),
    "tree": ('domain = "string"\nepsilon = 4.0\nbits = 32\ncells = 256', "strings"),
    "mean.one_bit": (NUMBERS, "numbers"),
    "mean.piecewise": (NUMBERS, "numbers"),
    "mean.table": (NUMBERS, "numbers"),
    "buckets": (f"{NUMBERS}\nbuckets = 12\nsampled = 3", "numbers"),
    **dict.fromkeys(("wave", "haar"), (f"{NUMBERS}\nbuckets = 12", "numbers")),
    "privset": ('kind = "set"\nvalues = ["a", "b", "c"]\nmost = 2\nepsilon = 2.0', "sets"),
    "vector.codes": (
        'kind = "vector"\ncoordinates = ["speed", "ease"]\nwords = 16\nbooks = 64\nepsilon = 2.0',
        "vectors",
    ),
    "pairs": ('parts = { theme = ["l", "d"], new = ["y", "n"] }\nepsilon = 2.0', "parts"),
}
# Of two more: ranges of a listed mechanism, and what nobody reported yet.
MORE = {
    "took": (
        'mechanism = "grr"\nkind = "count"\nedges = [0, 10, 100, 1000]\nepsilon = 2.0',
        {0: 500, 1: 2000, 2: 500},
    ),
    "unheard": (f'mechanism = "grr"\n{LISTED}\nepsilon = 2.0', {}),
}
NAMES = [name.replace(".", "_") for name in KINDS] + list(MORE) + ["churn"]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    texts = {
        name.replace(".", "_"): f'mechanism = "{name}"\n{more}' for name, (more, _) in KINDS.items()
    } | {name: more for name, (more, _) in MORE.items()}
    metrics = [metric_toml(name, more, min_batch=1000) for name, more in texts.items()]
    catalog = HEAD + "".join(metrics) + MODEL
    truths = {
        name.replace(".", "_"): {0: 2500, 1: 1500} if of == "bits" else HOLDS[of]
        for name, (_, of) in KINDS.items()
    } | {name: of for name, (_, of) in MORE.items() if of}
    folder = tmp_path_factory.mktemp("kinds")
    with house(folder, "--http-rate", "0", catalog=catalog, truths=truths) as running:
        yield running


def test_every_mechanism_that_a_catalog_can_name_is_among_them() -> None:
    assert set(KINDS) == set(REGISTRY)


def _in_notebook(home: House, question: str, metric: str, **parameters: Any) -> Any:
    asks = getattr(hubbub.notebook.connect(home.page), question)
    try:
        return asks(metric, **parameters).document
    except HubbubError as error:
        return str(error)


def _over_http(home: House, path: str, **parameters: Any) -> Any:
    answer = web.get(f"{home.page}/v1/{path}", params=parameters)
    document = answer.json()
    return document if answer.status_code == 200 else document["detail"]


QUESTIONS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "estimates": ({"order": "listed", "number": 1000}, ["query"]),
    "top": ({"number": 3}, ["top", "-n", "3"]),
    "trend": ({"epochs": "all", "number": 2}, ["trend", "-n", "2"]),
    "compare": ({"order": "listed", "number": 1000}, ["compare"]),
    "cross": ({}, ["cross"]),
    "breakdown": ({}, ["breakdown"]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("metric", NAMES)
def test_http_and_commands_answer_every_question_equally(
    kinds: House, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = 0
    for question, (parameters, words) in QUESTIONS.items():
        by_http = _over_http(kinds, f"metrics/{metric}/{question}", **parameters)
        command = [words[0], metric, *words[1:], "--url", kinds.page, "--format", "json"]
        ended = main(command)
        output = capsys.readouterr()
        refused = isinstance(by_http, str)
        assert ended == (2 if refused else 0), question
        by_command = output.err.strip() if refused else json.loads(output.out)
        assert by_command == (f"hubbub: {by_http}" if refused else by_http), question
        if question in {"estimates", "top", "trend"}:
            more = {} if question == "estimates" else {"number": parameters["number"]}
            in_notebook = _in_notebook(kinds, question, metric, **more)
            assert in_notebook == by_http, question
        answers += not refused
    assert (answers > 0) == (metric not in {"unheard", "churn"})
    assert _over_http(kinds, f"metrics/{metric}")["metric"]["name"] == metric
