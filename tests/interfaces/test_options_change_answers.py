"""Every option of every question changes an answer: none is read and then left unused.

The options are those of the parsers, the parameters those of the OpenAPI document: one that has no
case here fails a test, so whoever adds an option writes a case for it.
"""

import argparse
import json
import re
import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import read_with_promises
from hubbub.cli.main import whole_parser
from tests.interfaces.running_aggregator import (
    DAYS,
    HEAD,
    MODEL,
    STRINGS,
    House,
    house,
    house_metric,
)
from tests.support import web
from tests.support.bundles import make_signed
from tests.support.catalogs import metric_toml
from tests.support.commands import Capture, output_of

SHAPE = 'parts = { theme = ["light", "dark"], country = ["de", "fr", "it"], new = ["y", "n"] }'
FIELDS = """
[metrics.homepage.breakdown]
os = ["linux", "macos"]
version = { 2 = "2.*", old = "*" }
"""
EXPERIMENT = "[experiments.menu]\narms = { control = 1, new = 1 }\n"
CATALOG = (
    HEAD
    + "".join(
        house_metric(name, mechanism, epsilon, more)
        for name, mechanism, epsilon, more in (
            ("theme", "unary.oue", 1.0, 'values = ["light", "dark", "system"]\ntiers = [0.5]'),
            ("words", "tree", 4.0, 'domain = "string"\nbits = 34'),
            ("pairs", "pairs", 4.0, f"{SHAPE}\ntiers = [2.0]"),
            (
                "homepage",
                "cms",
                3.0,
                f'domain = "string"\nhashes = 16\nwidth = 64\ntiers = [1.0]\n{FIELDS}',
            ),
            ("took", "wave", 3.0, 'domain = "number"\nlow = 0\nhigh = 8\nbuckets = 8'),
            ("visited", "cms", 3.0, 'domain = "string"\nhashes = 16\nwidth = 64\ntiers = [1.0]'),
            ("liked", "grr", 3.0, 'values = ["yes", "no"]\nexperiment = "menu"'),
            (
                "checkout",
                "grr",
                3.0,
                'kind = "funnel"\nsteps = ["visit", "cart", "paid"]\ntiers = [1.0]',
            ),
            ("used", "grr", 3.0, 'kind = "activity"\nbreakdown = { os = ["linux", "macos"] }'),
        )
    )
    + metric_toml(
        "comeback",
        mechanism="grr",
        epsilon=3.0,
        epoch="week",
        kind="retention",
        weeks=2,
        min_batch=1000,
    )
    + EXPERIMENT
)
CROWD = metric_toml(
    "triples",
    SHAPE,
    mechanism="auto",
    ways=3,
    central_epsilon=4.0,
    crowd=4000,
    lifetime_epsilon=500.0,
)
"""Three parts that are told together."""
CHOSEN, KEPT = (
    HEAD + metric_toml("theme", more, epsilon=1.0, values=[f"v{n}" for n in range(64)])
    for more in ('mechanism = "auto"\nreports = 5000', 'mechanism = "unary.oue"')
)
"""A mechanism of the catalog's choice, and the bundle before it, which has another."""
TOKENS = 'tokens = { issuer = "https://issuer.example.org" }\n'
SIMULATED = """
[models.left]
kind = "logistic"
epsilon = 4.0
label = "left"
positive = "yes"
features = { age = [18, 90] }
"""
DEMO = Path(__file__).parents[1] / "data" / "rappor" / "demo2"
BEGINS = ("walk", "pl", "need", "th", "st", "mist", "car", "bel", "fin", "for", "sp", "wait")
TRUE_COUNTS: dict[str, dict[Any, int]] = {
    "theme": {0: 2000, 1: 1500, 2: 500},
    "words": {
        f"{first}{last}": number
        for last, number in (("ing", 900), ("ed", 500), ("er", 450), ("est", 400))
        for first in BEGINS
    },
    "pairs": {2 * place + new: 300 + 100 * place for place in range(6) for new in (0, 1)},
    "homepage": {"often.example": 1500, "seldom.example": 500},
    "took": {0.5: 1000, 3.5: 2000, 6.5: 1000},
    "visited": {"often.example": 1500, "seldom.example": 500},
    "liked": {0: 2000, 1: 1500},
    "checkout": {0: 3000, 1: 1500, 2: 500},
    "used": {0: 3000, 1: 1500, 2: 500},
    "comeback": {0: 2000, 1: 800, 2: 500, 3: 700},
    "triples": {2 * place + new: 300 + 100 * place for place in range(6) for new in (0, 1)},
}

FORM = {
    "--format": "how the answer is written",
    "--json": "how the answer is written",
    "--out": "where the answer is written",
    "--plot": "draws the answer to a file, too",
    "--as-candidates": "writes the answer's strings to a file, too",
    "--append": "whether --as-candidates may add to a file",
    "--home": "where the service is",
    "--url": "where the service is",
    "--authority": "how the service is reached",
    "--totals": "where the files of totals are; test_answers_from_files.py asks them the same",
    "--bundle": "which bundle defines those files",
    "--skip-unreadable": "whether files that cannot be read end the answer, in the same test",
    "metric": "what the question is of; an unknown name is refused",
    "experiment": "what the question is of; an unknown name is refused",
}
"""Options that leave the answer as it is, with the reason."""
OF_OTHERS = {("plan central", "--set"): "sets have no crowd, and the refusal says so"}
"""Options that another command has a case for."""
FORM_OF_HTTP = {
    "format": "how the answer is written",
    "add": "whether a saved list grows or is replaced, which test_candidates.py shows",
    "after": "waits for reports of a development installation, of which there is none here",
}
"""The same of parameters."""
ECHOES = {"anytime", "by", "columns", "confidence", "rows", "seconds", "seed"}
"""What an answer repeats of its question, where it is no table: that it differs shows nothing."""
SPANS = {"lists", "epochs", "dates", "before_epochs", "after_epochs", "before_dates", "after_dates"}
"""The same, also where it is a list."""

Address = tuple[str, str, str]
TEXTS = {"theme": "dark", "visited": STRINGS[1]}
BODY = {"candidates": STRINGS[:2]}
# Words before, and words after, of which only the option differs.
Case = tuple[str, str]


def _cases(command: str, words: str, *changes: str) -> dict[tuple[str, str], Case]:
    """By option, a question before and after a change of one option, or of the catalog's file.

    A change stands in the place of the option's former words, or behind the question.
    """
    cases: dict[tuple[str, str], Case] = {}
    base = f"{command} {words}"
    for change in changes:
        option = "catalog" if change.startswith("{") else change.partition(" ")[0]
        former = r"\{\w+\}" if option == "catalog" else rf"{option}\b( (?!--)\S+)*"
        changed, places = re.subn(former, change, base, count=1)
        cases[command, option] = base, changed if places else f"{base} {change}"
    return cases


def _of_house() -> dict[tuple[str, str], Case]:
    """What questions to a service have in common, then what is each one's own."""
    cases = _cases("experiment", "menu", "--confidence 0.5")
    words = {
        **dict.fromkeys(("query", "top", "compare", "trend"), "theme"),
        "cross": "pairs",
        "figures": "checkout",
        "discover": "words",
        "breakdown": "homepage --candidates {listed}",
    }
    for question, of in words.items():
        cases |= _cases(question, of, "--last 9d", "--epochs yesterday", "--confidence 0.5")
        if question not in {"cross", "discover", "figures"}:
            cases |= _cases(question, "homepage --candidates {listed}", "--candidates {more}")
            cases |= _cases(question, "homepage --list short", "--list long")
    for question in ("query", "compare", "trend"):
        cases |= _cases(question, "took", "--percentile 30")
    return cases | {
        ("compare", "--last"): (
            "compare theme --epochs newest --to {earlier}",
            "compare theme --last 3d --to {earlier}",
        ),
        **_cases("compare", "theme --epochs yesterday", "--to {earlier}"),
        **_cases("compare", "theme --epochs {earlier}", "--to-last 3d"),
        **_cases("query", "theme", "--anytime"),
        **_cases("top", "theme", "--number 1"),
        **_cases("trend", "theme", "--number 1", "--value dark"),
        ("query", "--below"): ("query took --percentile 50", "query took --below 3"),
        **_cases("discover", "words", "--likely"),
        ("cross", "rows"): ("cross triples", "cross triples new"),
        ("cross", "columns"): ("cross triples theme", "cross triples theme new"),
        ("cross", "by"): ("cross triples theme country", "cross triples theme country new"),
        **_cases("breakdown", words["breakdown"], "--by version"),
        **_cases("figures", "used", "--by os"),
        **_cases("figures", "comeback", "--cohorts"),
    }


def _of_plan() -> dict[tuple[str, str], Case]:
    """`plan` and its actions, by option."""
    values, ranges, of = "--values 16 --epsilon 1", "--ranges 8 0 8 --epsilon 1", "--reports 1e5"
    changes = ("--values 32", "--reports 2e5", "--epsilon 2", "--ratio 0.1 0.4", "--simulate")
    cases = {
        **_cases("plan", f"{values} {of}", *changes, "--permanent-epsilon 2"),
        **_cases("plan", f"{values} {of} --ratio 0.1 0.4", "--apart"),
        **_cases("plan", f"{values} {of} --simulate", "--seed 2"),
        **_cases("plan", "{catalog} --metric theme --reports 1e4", "{tokens}", "--metric words"),
        **_cases("plan", f"{values} --error 0.01", "--error 0.02", "--whose reporters"),
        **_cases("plan", f"--set 40 5 --epsilon 1 {of}", "--set 40 6"),
        **_cases("plan", f"{values} --detect 0.01", "--detect 0.02"),
        **_cases("plan", f"{values} --effect 0.1", "--effect 0.2"),
        **_cases("plan", f"{ranges} --reports 1e4", "--percentile 50"),
        **_cases("plan", f"{ranges} --percentile 50 --within 0.1", "--within 0.2"),
    }
    # So few reports, and no floors below the largest epsilon: a fraction of the time.
    few, people = "--epsilon 1 --reports 2e3 --max-local 2", "--epsilon 2 --reports 600"
    changes = ("--values 32", "--reports 4e3", "--epsilon 2", "--honest 0.5", "--max-local 1.5")
    logistic = f"--model logistic --features 3 {people}"
    softmax = f"--model softmax --features 3 --classes 3 {people}"
    cases |= {
        **_cases("plan central", f"{{catalog}} --metric theme {few}", "{wider}", "--metric words"),
        **_cases("plan central", f"--values 16 {few}", *changes, "--dummies 5000", "--delta 1e-5"),
        ("plan central", "--model"): (f"plan central {logistic}", f"plan central {softmax}"),
        **_cases("plan central", logistic, "--features 6"),
        **_cases("plan central", softmax, "--classes 5"),
    }
    for command, further in (
        ("plan", f"--epsilon 1 {of}"),
        ("plan central", few.replace("local 2", "local 4")),
    ):
        cases |= {
            **_cases(command, f"--strings 100 {further}", "--strings 1000"),
            **_cases(command, f"--mean 0 1 {further}", "--mean 0 2"),
            **_cases(command, f"--ranges 8 0 1 {further}", "--ranges 16 0 1"),
            **_cases(command, f"--parts 2 3 {further}", "--parts 2 4"),
            **_cases(command, f"--vector 16 1 {further}", "--vector 32 1"),
        }
    model, classes = "logistic --features 8", "softmax --features 8 --classes 3"
    attack, accounts = "{catalog} --metric theme", "--accounts 100 --others 5000"
    days = ["--devices 1e9", "--per-day 5", "--epoch week", "--per-visit 4", "--door http"]
    days += ["--peak 9", "--outage-hours 24", "--machine-cores 2", "--machine-gb 2"]
    accounted = f"{{tokens}} --metric theme {accounts}"
    return cases | {
        # Kinds with one column a feature need the same people: the one that differs has classes.
        ("plan model", "kind"): (f"plan model {model}", f"plan model {classes}"),
        **_cases("plan model", model, "--features 16", "--epsilon 3", "--reports 1e4"),
        **_cases("plan model", classes, "--classes 5"),
        **_cases("plan attack", attack, "{tokens}", "--fake 0.05", "--targets 2", "--simulate 100"),
        **_cases("plan attack", attack, "--metric theme --metric words"),
        **_cases("plan attack", "{chosen}", "--previous {kept}"),
        **_cases("plan attack", accounted, "--accounts 200", "--others 9000"),
        **_cases("plan capacity", "--per-day 1", *days),
        **_cases("plan capacity", "{catalog}", "--metric theme"),
        **_cases("plan capacity", "{chosen}", "--previous {kept}"),
        **_cases("plan capacity", "{crowd}", "{catalog}", "--cluster-nodes 3"),
    }


def _of_files() -> dict[tuple[str, str], Case]:
    """Questions that read files and ask nobody."""
    decode = "--params {params} --counts {counts} --map {map}"
    demo = "--params {demo}/params.csv --counts {demo}/counts.csv --map {demo}/map.csv.gz"
    files = ("--params {params2}", "--counts {counts2}", "--map {map2}")
    run = "theme --catalog {catalog} --values {people} --runs 2 --seed 1"
    runs = ("--catalog {tokens}", "--values {people2}", "--reports 3000", "--epochs 2")
    text = "visited --catalog {catalog} --values {strings} --runs 1 --seed 1"
    number = "took --catalog {catalog} --values {numbers} --runs 1 --seed 1"
    chosen = "theme --catalog {chosen} --values {few} --runs 1 --seed 1"
    model = "left --catalog {model} --values {train} --runs 1 --seed 1 --test {train}"
    return {
        **_cases("rappor decode", decode, *files),
        **_cases("rappor decode", f"{demo} --fdr 0.001", "--fdr 0.2"),
        **_cases("simulate", run, *runs, "--runs 3", "--seed 2", "--confidence 0.5"),
        **_cases("simulate", number, "--percentile 30"),
        **_cases("simulate", text, "--candidates {more}"),
        **_cases("simulate", chosen, "--previous {kept}"),
        **_cases("simulate", model, "--test {test}"),
    }


def _of_privacy() -> dict[tuple[str, str], Case]:
    """What reports say of a person, alone and together."""
    amplify, compose = "--epsilon 1 --reports 300", "--sigma 2 --delta 1e-5"
    amplified = ("--epsilon 2", "--reports 400", "--delta 1e-6", "--total-variation 0.3")
    composed = ("--epsilon 1", "--sigma 3", "--delta 1e-6", "--times 3")
    crowd, hashed = (f"--reports 300 --values {n} --local-epsilon 2" for n in (4, 64))
    crowds = ["--reports 400", "--values 8", "--local-epsilon 1", "--honest 0.9", "--dummies 100"]
    crowds += ["--dummies-each 0.5", "--epochs 3", "--delta 1e-6"]
    central = "--reports 300 --values 4 --central 1"
    return {
        **_cases("privacy amplify", amplify, *amplified),
        **_cases("privacy crowd", crowd, *crowds),
        **_cases("privacy crowd", central, "--central 0.5", "--max-local 1"),
        **_cases("privacy crowd", hashed, "--hashes 4"),
        **_cases("privacy compose", compose, *composed),
        **_cases("privacy compose", f"{compose} --times 3", "--sampling 0.1"),
        **_cases("privacy compose", "--history {history} --delta 1e-5", "--history {history2}"),
        **_cases("privacy card", "{crowd}", "--delta 1e-5", "{catalog}"),
        **_cases("privacy card", "{chosen}", "--previous {kept}"),
    }


CASES = _of_house() | _of_plan() | _of_files() | _of_privacy()
READ_ALIKE = {"top", "trend", "cross", "figures", "discover", "breakdown"}
READ_ALIKE |= {"--last", "--epochs", "--confidence"}
COSTLY = {("plan central", option) for option in ("--classes", "--features", "--vector")}
COSTLY |= {("discover", "--likely")}
"""A second and more each; other tests of `make test` plan these crowds and list likely strings."""
NO_QUESTIONS = {
    **dict.fromkeys(
        ("", "demo", "init", "up", "backup", "verify", "restore", "load", "forget", "completion"),
        "runs, keeps or tries an installation",
    ),
    **dict.fromkeys(
        ("catalog", "keys", "log", "notice", "candidates", "mark", "totals"),
        "writes or checks files and lists",
    ),
    **dict.fromkeys(
        ("privacy review", "privacy leaflet", "privacy papers", "privacy diff"),
        "has catalogs alone, and where to write",
    ),
    **dict.fromkeys(("metrics", "status", "watch"), "shows what arrived; its options are of form"),
    "audit": "tests the installed code; test_audit.py tries it",
    "doctor": "examines what runs and asks nothing",
    "ledger": "shows what this device sent",
    "model": "the HTTP parameter is tried below",
    "release": "publishes and is charged; test_releases.py has its options",
}
"""Commands of which options are no questions, by their first words, with the reason."""


def _options() -> set[tuple[str, str]]:
    """Of each question, what its parser takes."""
    options: set[tuple[str, str]] = set()

    def add(parser: argparse.ArgumentParser, path: str) -> None:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, below in action.choices.items():
                    add(below, f"{path} {name}".strip())
            elif not isinstance(action, argparse._HelpAction):
                longest = [name for name in action.option_strings if name.startswith("--")]
                options.add((path, longest[0] if longest else action.dest))

    add(whole_parser(), "")
    return {
        (question, option)
        for question, option in options
        if not {question, question.partition(" ")[0]} & set(NO_QUESTIONS)
    }


def test_every_option_of_a_question_has_a_case_or_is_of_form() -> None:
    options = {(question, option) for question, option in _options() if option not in FORM}
    options -= set(OF_OTHERS)
    assert not options - set(CASES), "write a case for these options"
    assert not set(CASES) - options, "no parser has these options"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Totals that are filled once; with two saved lists, and two marks."""
    folder = tmp_path_factory.mktemp("options")
    catalog = CATALOG + CROWD + MODEL
    with house(
        folder, "--http-rate", "0", catalog=catalog, truths=TRUE_COUNTS, reader=read_with_promises
    ) as running:
        for name, strings in (("short", STRINGS[:1]), ("long", STRINGS)):
            put = web.put(f"{running.page}/v1/candidates/{name}", json={"candidates": strings})
            assert put.is_success, put.text
            mark = {"date": "2026-11-22", "metric": {"short": "theme", "long": "words"}[name]}
            assert web.put(f"{running.page}/v1/marks/{name}", json=mark).is_success
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files that questions read, by the names that cases have for them."""
    folder = tmp_path_factory.mktemp("files")
    texts = {
        "catalog": CATALOG,
        "crowd": HEAD + CROWD,
        "tokens": TOKENS + CATALOG.replace("epsilon = 1.0", "epsilon = 1.5"),
        "wider": CATALOG.replace('"system"]', '"system", "other"]'),
        "model": HEAD + SIMULATED,
        "chosen": CHOSEN,
        "few": "v1,3000\n",
        "listed": STRINGS[0],
        "more": "\n".join(STRINGS),
        "people": "light,3000\ndark,1500\nsystem,500\n",
        "people2": "light,1000\ndark,3500\nsystem,500\n",
        "strings": "often.example,3000\n",
        "numbers": "1,2000\n5,1000\n",
        "train": "age,left\n" + "20,yes\n60,no\n" * 1000,
        "test": "age,left\n" + "20,no\n60,yes\n" * 100,
        "params": "k,h,m,p,q,f\n4,2,2,0.25,0.75,0.5\n",
        "params2": "k,h,m,p,q,f\n4,2,2,0.25,0.75,0.25\n",
        "counts": "100,50,40,30,60\n90,50,40,30,60\n",
        "counts2": "100,50,40,30,60\n90,70,40,30,60\n",
        "map": "a,1,2,5,6\nb,3,4,7,7\n",
        "history": '[{"epsilon": 1.0}]',
        "history2": '[{"epsilon": 2.0}]',
        "map2": "a,1,2,5,6\nb,3,4,7,8\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    kept = make_signed(folder, KEPT, start=0).path
    return {name: str(folder / name) for name in texts} | {"demo": str(DEMO), "kept": str(kept)}


def _figures(answer: Any, option: str) -> Any:
    """An answer without what it repeats of its question: of a figure beside it what is asked."""
    if isinstance(answer, list):
        return [_figures(value, option) for value in answer]
    if not isinstance(answer, dict):
        return answer
    return {
        name: _figures(value, option)
        for name, value in answer.items()
        if name not in SPANS and (isinstance(value, list | dict) or name not in {*ECHOES, option})
    }


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """The answer to each question that was asked: many cases begin with one question."""
    return {}


Asking = Callable[[str, str], Any]
"""What answers words that follow a question's first words."""


@pytest.fixture
def asked(request: pytest.FixtureRequest, files: dict[str, str], capsys: Capture) -> Asking:
    """A command's answer."""

    def answer(question: str, words: str) -> Any:
        where = {
            "plan": "--format json",
            "privacy": "--format json" if question == "privacy card" else "--json",
            "simulate": "--json",
            "rappor": "",
        }.get(question.partition(" ")[0])
        named = files
        if where is None:
            running = request.getfixturevalue("own")
            where = f"--format json --url {running.page}"
            named = {**files, "earlier": str(running.today - 5)}
        printed = output_of(capsys, *shlex.split(f"{words.format_map(named)} {where}"))
        return json.loads(printed) if "json" in where else printed

    return answer


def _differ(option: str, case: Case, answer: Callable[[str], Any], answers: dict[str, Any]) -> None:
    """The question has another answer with the option."""
    name = option.strip("-").replace("-", "_")
    before, after = case
    if before not in answers:
        answers[before] = answer(before)
    first, changed = (_figures(each, name) for each in (answers[before], answer(after)))
    assert first != changed, f"{after} is answered as if {option} were not there"


@pytest.mark.parametrize(
    ("question", "option"),
    [
        # All these questions read their epochs and their confidence as query and compare do.
        pytest.param(
            *case,
            marks=pytest.mark.thorough if case in COSTLY or READ_ALIKE.issuperset(case) else (),
        )
        for case in sorted(CASES)
    ],
)
def test_an_option_changes_an_answer(
    asked: Asking, answers: dict[str, Any], question: str, option: str
) -> None:
    _differ(option, CASES[question, option], partial(asked, question), answers)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("question", "words"),
    sorted({(question, words) for (question, _), (words, _) in CASES.items()}),
)
def test_the_same_question_has_the_same_answer_twice(
    asked: Asking, question: str, words: str
) -> None:
    """By chance it would differ with any option."""
    assert _figures(asked(question, words), "") == _figures(asked(question, words), "")


def _queried(
    method: str, question: str, metric: str, words: str, *changes: str
) -> dict[tuple[str, str, str], Address]:
    """By parameter, a question about a metric without and with it."""
    path = f"/v1/metrics/{{metric}}/{question}"
    return {
        (method, path, change.partition("=")[0]): (metric, words, f"{words}&{change}")
        for change in changes
    }


def _parameters() -> dict[tuple[str, str, str], Address]:
    """Of each method, path and parameter: the metric, then the question before and after."""
    addresses: dict[tuple[str, str, str], Address] = {
        ("get", "/v1/metrics", "first"): ("", "", "first=1"),
        ("get", "/v1/metrics", "number"): ("", "", "number=1"),
        ("get", "/v1/marks", "metric"): ("", "", "metric=theme"),
        ("get", "/v1/models", "confidence"): ("", "", "confidence=0.5"),
        ("get", "/v1/models/{model}", "confidence"): ("churn", "", "confidence=0.5"),
        ("get", "/v1/experiments/{experiment}", "confidence"): ("menu", "", "confidence=0.5"),
        **_queried("get", "estimates", "words", "", "likely=0.5"),
        **_queried("get", "figures", "used", "", "by=os"),
        **_queried("get", "figures", "comeback", "", "cohorts=true"),
        **_queried("get", "cross", "triples", "", "rows=new"),
        **_queried("get", "cross", "triples", "rows=theme", "columns=new"),
        **_queried("get", "cross", "triples", "rows=theme&columns=country", "by=new"),
    }
    for method, metric, tier in (("get", "theme", "0.5"), ("post", "visited", "1")):
        paged = (f"find={TEXTS[metric]}", "first=1", "number=1", "order=-value")
        for question, name, alone, changes in (
            ("estimates", metric, tier, ("anytime=true", *paged)),
            ("top", metric, tier, ("number=1",)),
            ("compare", metric, tier, paged),
            ("trend", metric, tier, (f"value={TEXTS[metric]}", "number=1")),
            ("breakdown", "homepage", "1", ("by=version",)),
            ("commands", metric, tier, ("anytime=true", "origin=https://other.example")),
            ("export", metric, tier, ("anytime=true",)),
            ("cross", "pairs", "2", ()),
            ("figures", "checkout", "1", ()),
        ):
            if method == "post" and question in {"export", "cross", "figures"}:
                continue
            base = "list=short" if (method, question) == ("get", "breakdown") else ""
            always = ("last=9d", "confidence=0.5", "epochs=yesterday")
            addresses |= _queried(method, question, name, base, *changes, *always)
            days = "epochs=all"
            if question == "compare":
                days = "epochs={first}..{middle}&to_epochs={later}..{last}"
            addresses |= _queried(method, question, name, f"{base}&{days}", f"tier={alone}")
            strings = "visited" if name == "theme" else name
            path = f"/v1/metrics/{{metric}}/{question}"
            addresses[method, path, "list"] = (strings, "list=short", "list=long")
        last = "epochs=newest&to_epochs={earlier}", "last=3d&to_epochs={earlier}"
        later = "to_epochs={after}", "to_last=3d"
        addresses |= {
            (method, "/v1/metrics/{metric}/compare", "last"): (metric, *last),
            **_queried(method, "compare", metric, "", "epochs={earlier}"),
            **_queried(method, "compare", metric, "epochs={earlier}", *later),
        }
    for question in ("estimates", "compare", "trend", "export"):
        addresses |= _queried("get", question, "took", "", "percentile=30")
    for question in ("estimates", "export"):
        addresses |= _queried("get", question, "took", "percentile=50", "below=3")
    return addresses


PARAMETERS = _parameters()
REFUSED = {
    ("get", "/v1/metrics/{metric}/cross", "list"): ("pairs", "list=short"),
    ("get", "/v1/metrics/{metric}/figures", "list"): ("checkout", "list=short"),
    ("post", "/v1/metrics/{metric}/estimates", "likely"): ("visited", "likely=0.5"),
    ("post", "/v1/metrics/{metric}/estimates", "below"): ("visited", "below=5"),
    **{
        ("post", f"/v1/metrics/{{metric}}/{question}", "percentile"): ("visited", "percentile=50")
        for question in ("estimates", "compare", "trend")
    },
    ("post", "/v1/metrics/{metric}/estimates", "anytime"): ("visited", "anytime=true"),
}
"""What goes with no metric of a question, so it is refused and never left unused."""
for refused in REFUSED:
    PARAMETERS.pop(refused, None)


def test_every_parameter_of_a_path_has_a_case_or_is_of_form(own: House) -> None:
    paths = web.get(f"{own.page}/openapi.json").json()["paths"]
    parameters = {
        (method, path, parameter["name"])
        for path, methods in paths.items()
        for method, operation in methods.items()
        if method != "delete"  # it answers nothing; test_rights.py removes marks of one name
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and parameter["name"] not in FORM_OF_HTTP
    }
    missing = sorted(parameters - {*PARAMETERS, *REFUSED})
    assert missing == [], "write a case for these parameters"
    assert not {*PARAMETERS, *REFUSED} - parameters, "no path has these parameters"


@pytest.mark.parametrize(
    ("method", "path", "parameter"),
    [
        # Both methods read their parameters by the same functions.
        pytest.param(*case, marks=pytest.mark.thorough if case[0] == "post" else ())
        for case in sorted(PARAMETERS)
    ],
)
def test_a_parameter_changes_an_answer(
    own: House, answers: dict[str, Any], method: str, path: str, parameter: str
) -> None:
    name, before, after = PARAMETERS[method, path, parameter]
    url = own.page + path.format(metric=name, model=name, experiment=name)
    places = (("last", 0), ("after", 2), ("earlier", 5), ("later", 6), ("middle", 7))
    days = {name: own.today - ago for name, ago in (*places, ("first", DAYS - 1))}

    def answer(question: str) -> Any:
        query_url = question.partition(" ")[2].format_map(days)
        response = web.get(query_url) if method == "get" else web.post(query_url, json=BODY)
        assert response.status_code == 200, response.text
        return response.text if path.endswith("/export") else response.json()

    case = f"{method} {url}?{before}", f"{method} {url}?{after}"
    if case[0] not in answers:
        answers[case[0]] = answer(case[0])
        again = _figures(answer(case[0]), parameter)
        assert again == _figures(answers[case[0]], parameter), "it is answered by chance"
    _differ(parameter, case, answer, answers)


@pytest.mark.parametrize(("method", "path", "parameter"), sorted(REFUSED))
def test_a_parameter_that_fits_no_metric_is_refused(
    own: House, method: str, path: str, parameter: str
) -> None:
    name, question = REFUSED[method, path, parameter]
    query_url = f"{own.page}{path.format(metric=name)}?{question}"
    response = web.get(query_url) if method == "get" else web.post(query_url, json=BODY)
    assert response.status_code == 400
    assert parameter in response.text or "every look" in response.text
