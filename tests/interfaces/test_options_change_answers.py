"""Every option of every question changes an answer: none is read and then left unused.

The options are those of the parsers, the parameters those of the OpenAPI document: one that has no
case here fails a test, so whoever adds an option writes a case for it.
"""

import argparse
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub.cli.main import main, whole_parser
from hubbub.privacy.catalog_reader import read_with_promises
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
from tests.support.catalogs import metric_toml

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
    "--measure": "times this machine, which says what a machine is and not what is asked",
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
PAGED = {"first": "1", "number": "1", "order": "-value"}
TEXTS = {"theme": "dark", "visited": STRINGS[1]}
BODY = {"candidates": STRINGS[:2]}
# Words before, and words after, of which only the option differs.
Case = tuple[str, str]


def _of_house() -> dict[tuple[str, str], Case]:
    """What questions to a service have in common, then what is each one's own."""
    cases: dict[tuple[str, str], Case] = {}
    bases = {
        **{question: f"{question} theme" for question in ("query", "top", "compare", "trend")},
        "export": "export theme",
        "cross": "cross pairs",
        "figures": "figures checkout",
        "discover": "discover words",
        "breakdown": "breakdown homepage --candidates {listed}",
    }
    cases["experiment", "--confidence"] = "experiment menu", "experiment menu --confidence 0.5"
    for question, base in bases.items():
        cases |= {
            (question, "--last"): (base, f"{base} --last 9d"),
            (question, "--epochs"): (base, f"{base} --epochs yesterday"),
            (question, "--confidence"): (base, f"{base} --confidence 0.5"),
        }
        if question not in {"cross", "discover", "figures"}:
            strings = f"{question} homepage"
            cases |= {
                (question, "--candidates"): (
                    f"{strings} --candidates {{listed}}",
                    f"{strings} --candidates {{more}}",
                ),
                (question, "--list"): (f"{strings} --list short", f"{strings} --list long"),
            }
    both = "compare theme --epochs yesterday"
    return cases | {
        ("compare", "--last"): (
            "compare theme --epochs newest --to {earlier}",
            "compare theme --last 3d --to {earlier}",
        ),
        ("compare", "--to"): (both, f"{both} --to {{earlier}}"),
        ("compare", "--to-last"): (
            "compare theme --epochs {earlier}",
            "compare theme --epochs {earlier} --to-last 3d",
        ),
        ("query", "--anytime"): ("query theme", "query theme --anytime"),
        ("top", "--number"): ("top theme", "top theme --number 1"),
        ("trend", "--number"): ("trend theme", "trend theme --number 1"),
        ("query", "--below"): ("query took --percentile 50", "query took --below 3"),
        **{
            (question, "--percentile"): (f"{question} took", f"{question} took --percentile 30")
            for question in ("query", "compare", "trend")
        },
        ("trend", "--value"): ("trend theme", "trend theme --value dark"),
        ("discover", "--likely"): ("discover words", "discover words --likely"),
        ("cross", "rows"): ("cross triples", "cross triples new"),
        ("cross", "columns"): ("cross triples theme", "cross triples theme new"),
        ("cross", "by"): ("cross triples theme country", "cross triples theme country new"),
        ("breakdown", "--by"): (bases["breakdown"], f"{bases['breakdown']} --by version"),
        ("figures", "--by"): ("figures used", "figures used --by os"),
        ("figures", "--cohorts"): ("figures comeback", "figures comeback --cohorts"),
        ("export", "--by-epoch"): ("export theme", "export theme --by-epoch"),
    }


def _of_plan() -> dict[tuple[str, str], Case]:
    """`plan` and its actions, by option."""
    values, of = "plan --values 16 --epsilon 1 --reports 1e5", "--epsilon 1 --reports 1e5"
    aimed = "plan --values 16 --epsilon 1 --error 0.01"
    drawn = f"{values} --simulate"
    metric = "plan {catalog} --metric theme --reports 1e4"
    plain = {
        "catalog": (metric, metric.replace("{catalog}", "{tokens}")),
        "--metric": (metric, metric.replace("theme", "words")),
        "--values": (values, f"plan --values 32 {of}"),
        **_kinds("plan", of),
        "--reports": (values, "plan --values 16 --epsilon 1 --reports 2e5"),
        "--epsilon": (values, "plan --values 16 --epsilon 2 --reports 1e5"),
        "--error": (aimed, "plan --values 16 --epsilon 1 --error 0.02"),
        "--set": (f"plan --set 40 5 {of}", f"plan --set 40 6 {of}"),
        "--detect": (
            "plan --values 16 --epsilon 1 --detect 0.01",
            "plan --values 16 --epsilon 1 --detect 0.02",
        ),
        "--percentile": (
            "plan --ranges 8 0 8 --epsilon 1 --reports 1e4",
            "plan --ranges 8 0 8 --epsilon 1 --reports 1e4 --percentile 50",
        ),
        "--numbers": (
            "plan --ranges 8 0 8 --epsilon 1 --reports 1e4 --percentile 90",
            "plan --ranges 8 0 8 --epsilon 1 --reports 1e4 --percentile 90 --numbers {ages}",
        ),
        "--within": (
            "plan --ranges 8 0 8 --epsilon 1 --percentile 50 --within 0.1",
            "plan --ranges 8 0 8 --epsilon 1 --percentile 50 --within 0.2",
        ),
        "--effect": (
            "plan --values 16 --epsilon 1 --effect 0.1",
            "plan --values 16 --epsilon 1 --effect 0.2",
        ),
        "--ratio": (values, f"{values} --ratio 0.1 0.4"),
        "--apart": (f"{values} --ratio 0.1 0.4", f"{values} --ratio 0.1 0.4 --apart"),
        "--whose": (aimed, f"{aimed} --whose reporters"),
        "--permanent-epsilon": (values, f"{values} --permanent-epsilon 2"),
        "--simulate": (values, drawn),
        "--seed": (drawn, f"{drawn} --seed 2"),
    }
    # So few reports, and no floors below the largest epsilon: a fraction of the time.
    of = "--epsilon 1 --reports 2e3 --max-local 2"
    crowd = f"plan central --values 16 {of}"
    metric = f"plan central {{catalog}} --metric theme {of}"
    few = "--epsilon 2 --reports 600"
    model = f"plan central --model logistic --features 3 {few}"
    classes = f"plan central --model softmax --features 3 --classes 3 {few}"
    central = {
        "catalog": (metric, metric.replace("{catalog}", "{wider}")),
        "--metric": (metric, metric.replace("theme", "words")),
        "--values": (crowd, crowd.replace("16", "32")),
        **_kinds("plan central", of.replace("local 2", "local 4")),
        "--reports": (crowd, crowd.replace("2e3", "4e3")),
        "--epsilon": (crowd, crowd.replace("--epsilon 1", "--epsilon 2")),
        "--honest": (crowd, f"{crowd} --honest 0.5"),
        "--max-local": (crowd, crowd.replace("local 2", "local 1.5")),
        "--dummies": (crowd, f"{crowd} --dummies 5000"),
        "--delta": (crowd, f"{crowd} --delta 1e-5"),
        "--model": (model, classes),
        "--features": (model, model.replace("features 3", "features 6")),
        "--classes": (classes, classes.replace("classes 3", "classes 5")),
    }
    model = "plan model logistic --features 8"
    classes = "plan model softmax --features 8 --classes 3"
    models = {
        # Kinds with one column a feature need the same people: the one that differs has classes.
        "kind": (model, classes),
        "--features": (model, model.replace("8", "16")),
        "--classes": (classes, classes.replace("classes 3", "classes 5")),
        "--epsilon": (model, f"{model} --epsilon 3"),
        "--reports": (model, f"{model} --reports 1e4"),
    }
    attack = "plan attack {catalog} --metric theme"
    accounts = "plan attack {tokens} --metric theme --accounts 100 --others 5000"
    attacks = {
        "catalog": (attack, attack.replace("{catalog}", "{tokens}")),
        "--metric": (attack, f"{attack} --metric words"),
        "--fake": (attack, f"{attack} --fake 0.05"),
        "--targets": (attack, f"{attack} --targets 2"),
        "--accounts": (accounts, accounts.replace("100", "200")),
        "--others": (accounts, accounts.replace("5000", "9000")),
        "--simulate": (attack, f"{attack} --simulate 100"),
    }
    day, whole = "plan capacity --per-day 1", "plan capacity {crowd}"
    capacity = {
        "catalog": (whole, "plan capacity {catalog}"),
        "--metric": ("plan capacity {catalog}", "plan capacity {catalog} --metric theme"),
        "--devices": (day, f"{day} --devices 1e9"),
        "--per-day": (day, "plan capacity --per-day 5"),
        "--epoch": (day, f"{day} --epoch week"),
        "--per-visit": (day, f"{day} --per-visit 4"),
        "--door": (day, f"{day} --door http"),
        "--peak": (day, f"{day} --peak 9"),
        "--outage-hours": (day, f"{day} --outage-hours 24"),
        "--cluster-nodes": (whole, f"{whole} --cluster-nodes 3"),
        "--machine-cores": (day, f"{day} --machine-cores 2"),
        "--machine-gb": (day, f"{day} --machine-gb 2"),
    }
    commands = {
        "plan": plain,
        "plan central": central,
        "plan model": models,
        "plan attack": attacks,
        "plan capacity": capacity,
    }
    return {
        (command, option): case
        for command, cases in commands.items()
        for option, case in cases.items()
    }


def _kinds(command: str, of: str) -> dict[str, Case]:
    """What a plan is asked about, beside values."""
    return {
        "--strings": (f"{command} --strings 100 {of}", f"{command} --strings 1000 {of}"),
        "--mean": (f"{command} --mean 0 1 {of}", f"{command} --mean 0 2 {of}"),
        "--ranges": (f"{command} --ranges 8 0 1 {of}", f"{command} --ranges 16 0 1 {of}"),
        "--parts": (f"{command} --parts 2 3 {of}", f"{command} --parts 2 4 {of}"),
        "--vector": (f"{command} --vector 16 1 {of}", f"{command} --vector 8 1 {of}"),
    }


def _of_files() -> dict[tuple[str, str], Case]:
    """Questions that read files and ask nobody."""
    decode = "rappor decode --params {params} --counts {counts} --map {map}"
    run = "simulate theme --catalog {catalog} --values {people} --runs 2 --seed 1"
    text = "simulate visited --catalog {catalog} --values {strings} --runs 1 --seed 1"
    number = "simulate took --catalog {catalog} --values {numbers} --runs 1 --seed 1"
    fdr = " ".join(f"--{name} {{demo}}/{name}.csv" for name in ("params", "counts"))
    fdr = f"rappor decode {fdr} --map {{demo}}/map.csv.gz"
    return {
        ("rappor decode", "--params"): (decode, decode.replace("{params}", "{params2}")),
        ("rappor decode", "--counts"): (decode, decode.replace("{counts}", "{counts2}")),
        ("rappor decode", "--map"): (decode, decode.replace("{map}", "{map2}")),
        ("rappor decode", "--fdr"): (f"{fdr} --fdr 0.001", f"{fdr} --fdr 0.2"),
        ("simulate", "--catalog"): (run, run.replace("{catalog}", "{tokens}")),
        ("simulate", "--values"): (run, run.replace("{people}", "{people2}")),
        ("simulate", "--reports"): (run, f"{run} --reports 3000"),
        ("simulate", "--epochs"): (run, f"{run} --epochs 2"),
        ("simulate", "--runs"): (run, run.replace("--runs 2", "--runs 3")),
        ("simulate", "--seed"): (run, run.replace("--seed 1", "--seed 2")),
        ("simulate", "--confidence"): (run, f"{run} --confidence 0.5"),
        ("simulate", "--percentile"): (number, f"{number} --percentile 30"),
        ("simulate", "--candidates"): (text, f"{text} --candidates {{more}}"),
        ("simulate", "--test"): (
            "simulate left --catalog {model} --values {train} --runs 1 --seed 1 --test {train}",
            "simulate left --catalog {model} --values {train} --runs 1 --seed 1 --test {test}",
        ),
    }


def _of_privacy() -> dict[tuple[str, str], Case]:
    """What reports say of a person, alone and together."""
    amplify = "privacy amplify --epsilon 1 --reports 300"
    crowd, central = (
        f"privacy crowd --reports 300 --values 4 {of}"
        for of in ("--local-epsilon 2", "--central 1")
    )
    compose = "privacy compose --sigma 2 --delta 1e-5"
    sampled = f"{compose} --times 3"
    cases = {
        ("privacy amplify", "--epsilon"): (amplify, amplify.replace("epsilon 1", "epsilon 2")),
        ("privacy amplify", "--reports"): (amplify, amplify.replace("300", "400")),
        ("privacy crowd", "--reports"): (crowd, crowd.replace("300", "400")),
        ("privacy crowd", "--values"): (crowd, crowd.replace("values 4", "values 8")),
        ("privacy crowd", "--local-epsilon"): (crowd, crowd.replace("epsilon 2", "epsilon 1")),
        ("privacy crowd", "--central"): (central, central.replace("central 1", "central 0.5")),
        ("privacy crowd", "--max-local"): (central, f"{central} --max-local 1"),
        ("privacy compose", "--epsilon"): (compose, f"{compose} --epsilon 1"),
        ("privacy compose", "--sigma"): (compose, compose.replace("sigma 2", "sigma 3")),
        ("privacy compose", "--delta"): (compose, compose.replace("1e-5", "1e-6")),
        ("privacy compose", "--times"): (compose, sampled),
        ("privacy compose", "--sampling"): (sampled, f"{sampled} --sampling 0.1"),
        ("privacy compose", "--history"): (
            "privacy compose --history {history} --delta 1e-5",
            "privacy compose --history {history2} --delta 1e-5",
        ),
        ("privacy card", "--delta"): ("privacy card {crowd}", "privacy card {crowd} --delta 1e-5"),
        ("privacy card", "catalog"): ("privacy card {crowd}", "privacy card {catalog}"),
    }
    for option, value in (("--delta", "1e-6"), ("--total-variation", "0.3")):
        cases["privacy amplify", option] = (amplify, f"{amplify} {option} {value}")
    for option, value in (
        ("--honest", "0.5"),
        ("--dummies", "100"),
        ("--dummies-each", "0.5"),
        ("--epochs", "3"),
        ("--delta", "1e-6"),
    ):
        cases["privacy crowd", option] = (crowd, f"{crowd} {option} {value}")
    hashed = crowd.replace("values 4", "values 64")
    cases["privacy crowd", "--hashes"] = (hashed, f"{hashed} --hashes 4")
    return cases


CASES = _of_house() | _of_plan() | _of_files() | _of_privacy()
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
        "listed": STRINGS[0],
        "more": "\n".join(STRINGS),
        "people": "light,3000\ndark,1500\nsystem,500\n",
        "people2": "light,1000\ndark,3500\nsystem,500\n",
        "strings": "often.example,3000\n",
        "numbers": "1,2000\n5,1000\n",
        "ages": "1\n" * 90 + "7\n" * 10,
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
    return {name: str(folder / name) for name in texts} | {"demo": str(DEMO)}


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
def answers() -> dict[str, tuple[Any, Any]]:
    """Both answers to each question that was asked twice: many cases begin with one question."""
    return {}


def _differ(
    option: str, case: Case, answer: Callable[[str], Any], answers: dict[str, tuple[Any, Any]]
) -> None:
    """The same question has the same answer twice, and another with the option."""
    name = option.strip("-").replace("-", "_")
    before, after = case
    if before not in answers:
        answers[before] = answer(before), answer(before)
    first, again, changed = (_figures(each, name) for each in (*answers[before], answer(after)))
    assert first == again, f"{before} answers by chance: what differs shows nothing"
    assert first != changed, f"{after} is answered as if {option} were not there"


@pytest.mark.parametrize(("question", "option"), sorted(CASES))
def test_an_option_changes_an_answer(
    request: pytest.FixtureRequest,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    answers: dict[str, tuple[Any, Any]],
    *,
    question: str,
    option: str,
) -> None:
    program = question.partition(" ")[0]
    where = {
        "plan": "--format json",
        "privacy": "--format json" if question == "privacy card" else "--json",
        "simulate": "--json",
        "rappor": "",
    }.get(program)
    if where is None:
        running = request.getfixturevalue("own")
        where = f"--format json --url {running.page}"
        files = {**files, "earlier": str(running.today - 5)}

    def answer(words: str) -> Any:
        assert main(shlex.split(f"{words.format_map(files)} {where}")) == 0, words
        printed = capsys.readouterr().out
        return json.loads(printed) if "json" in where else printed

    _differ(option, CASES[question, option], answer, answers)


def _parameters() -> dict[tuple[str, str, str], Address]:
    """Of each method, path and parameter: the metric, then the question before and after."""
    addresses: dict[tuple[str, str, str], Address] = {
        ("get", "/v1/metrics", "first"): ("", "", "first=1"),
        ("get", "/v1/metrics", "number"): ("", "", "number=1"),
        ("get", "/v1/marks", "metric"): ("", "", "metric=theme"),
        ("get", "/v1/models", "confidence"): ("", "", "confidence=0.5"),
        ("get", "/v1/models/{model}", "confidence"): ("churn", "", "confidence=0.5"),
        ("get", "/v1/experiments/{experiment}", "confidence"): ("menu", "", "confidence=0.5"),
    }
    for method, metric, tier in (("get", "theme", "0.5"), ("post", "visited", "1")):
        find = {"find": TEXTS[metric]}
        for question, name, alone, parameters in (
            ("estimates", metric, tier, {"anytime": "true", **PAGED, **find}),
            ("top", metric, tier, {"number": "1"}),
            ("compare", metric, tier, {**PAGED, **find}),
            ("trend", metric, tier, {"value": TEXTS[metric], "number": "1"}),
            ("breakdown", "homepage", "1", {"by": "version"}),
            ("commands", metric, tier, {"anytime": "true", "origin": "https://other.example"}),
            ("export", metric, tier, {"anytime": "true"}),
            ("cross", "pairs", "2", {}),
            ("figures", "checkout", "1", {}),
        ):
            if method == "post" and question in {"export", "cross", "figures"}:
                continue
            path = f"/v1/metrics/{{metric}}/{question}"
            base = "list=short" if (method, question) == ("get", "breakdown") else ""
            for parameter, value in {**parameters, "last": "9d", "confidence": "0.5"}.items():
                addresses[method, path, parameter] = (name, base, f"{base}&{parameter}={value}")
            addresses[method, path, "epochs"] = (name, base, f"{base}&epochs=yesterday")
            days = (
                "epochs={first}..{middle}&to_epochs={later}..{last}"
                if question == "compare"
                else "epochs=all"
            )
            addresses[method, path, "tier"] = (
                name,
                f"{base}&{days}",
                f"{base}&{days}&tier={alone}",
            )
            strings = "visited" if name == "theme" else name
            addresses[method, path, "list"] = (strings, "list=short", "list=long")
        path = "/v1/metrics/{metric}/compare"
        fixed = "epochs={earlier}&to_epochs={after}"
        addresses |= {
            (method, path, "last"): (
                metric,
                "epochs=newest&to_epochs={earlier}",
                "last=3d&to_epochs={earlier}",
            ),
            (method, path, "epochs"): (metric, "", "epochs={earlier}"),
            (method, path, "to_epochs"): (metric, "epochs={earlier}", fixed),
            (method, path, "to_last"): (metric, "epochs={earlier}", "epochs={earlier}&to_last=3d"),
        }
    for question in ("estimates", "compare", "trend", "export"):
        path = f"/v1/metrics/{{metric}}/{question}"
        addresses["get", path, "percentile"] = ("took", "", "percentile=30")
    for question in ("estimates", "export"):
        path = f"/v1/metrics/{{metric}}/{question}"
        addresses["get", path, "below"] = ("took", "percentile=50", "percentile=50&below=3")
    addresses["get", "/v1/metrics/{metric}/estimates", "likely"] = ("words", "", "likely=0.5")
    cross, figures = (f"/v1/metrics/{{metric}}/{question}" for question in ("cross", "figures"))
    return addresses | {
        ("get", figures, "by"): ("used", "", "by=os"),
        ("get", figures, "cohorts"): ("comeback", "", "cohorts=true"),
        ("get", cross, "rows"): ("triples", "", "rows=new"),
        ("get", cross, "columns"): ("triples", "rows=theme", "rows=theme&columns=new"),
        ("get", cross, "by"): (
            "triples",
            "rows=theme&columns=country",
            "rows=theme&columns=country&by=new",
        ),
    }


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
    own: House, answers: dict[str, tuple[Any, Any]], method: str, path: str, parameter: str
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
    _differ(parameter, case, answer, answers)


@pytest.mark.parametrize(("method", "path", "parameter"), sorted(REFUSED))
def test_a_parameter_that_goes_with_no_metric_is_refused(
    own: House, method: str, path: str, parameter: str
) -> None:
    name, question = REFUSED[method, path, parameter]
    query_url = f"{own.page}{path.format(metric=name)}?{question}"
    response = web.get(query_url) if method == "get" else web.post(query_url, json=BODY)
    assert response.status_code == 400
    assert parameter in response.text or "every look" in response.text
