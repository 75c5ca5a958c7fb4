"""What the documents say is so: their code runs, their files and tests exist."""

import argparse
import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from math import exp, sqrt
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import read_with_promises
from hubbub.catalog.values.value_kind_registry import KINDS
from hubbub.cli.commands.up import demo_catalog
from hubbub.cli.main import main, whole_parser
from hubbub.errors.message_words import at_most
from hubbub.installation.local_run import LocalRun, Ports
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.commands import Capture, document_of
from tests.support.law_terms import total_counts
from tests.support.programs import run_program
from tests.support.source_trees import nodes

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROMISING = ["threat-model.md", "promises.md", "proofs.md", "review.md"]
BLOCKS = [
    pytest.param(
        match[1],
        id=f"{path.relative_to(ROOT)}:{path.read_text()[: match.start()].count(chr(10)) + 1}",
    )
    for path in DOCUMENTS
    for match in re.finditer(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRun]:
    home = tmp_path_factory.mktemp("docs") / "home"
    with LocalRun(home, demo_catalog(), Ports.free()) as running:
        yield running


SERVICES = {"shuffler", "aggregator", "relay", "issuer"}


def _python(folder: Path, *arguments: str) -> str:
    done = run_program(
        sys.executable,
        *arguments,
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("code", BLOCKS)
def test_code_in_a_document_runs(code: str, run: LocalRun, tmp_path: Path) -> None:
    (tmp_path / "app.hubbub").write_bytes(run.bundle_path.read_bytes())
    _python(tmp_path, "-c", code)


def test_the_example_reports_and_is_acknowledged(run: LocalRun, tmp_path: Path) -> None:
    before = total_counts(run.endpoints)["acknowledged"]
    example = str(ROOT / "examples" / "settings_survey.py")
    printed = _python(tmp_path, example, str(run.bundle_path), str(tmp_path / "device"))
    assert printed == "education: queued\nhomepage: queued\nstill waiting: 0\n"
    again = _python(tmp_path, example, str(run.bundle_path), str(tmp_path / "device"))
    assert "education: already_reported" in again
    after = total_counts(run.endpoints)["acknowledged"]
    assert after == before + 2


def test_the_readmes_catalog_is_one() -> None:
    match = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert match
    assert set(catalog_of(match[1]).metrics) == {"theme"}


@pytest.mark.thorough
def test_every_catalog_in_a_document_is_valid(tmp_path: Path) -> None:
    path, catalog_count = tmp_path / "metrics.toml", 0
    (tmp_path / "plugins.txt").write_text("vim\nemacs\nspell-check\n")
    for document in DOCUMENTS:
        for block in re.findall(r"```toml.*?\n(.*?)```", document.read_text(), re.DOTALL):
            tomllib.loads(block)
            if re.search(r"\[(metrics|models)\.", block) and "description = " in block:
                address = (
                    "" if "shuffler = " in block else 'shuffler = "shuffler.example.org:443"\n'
                )
                path.write_text(address + block)
                assert read_with_promises(path).metrics, document
                catalog_count += 1
    assert catalog_count >= 5


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PROMISING, "attacks.md"])
def test_every_test_that_a_page_of_promises_names_is_there(page: str) -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / page).read_text())
    assert len(named) > (25 if page in PROMISING[:3] else 10)
    for name in named:
        assert f"def {name}(" in tests, name


def test_no_threat_is_without_a_test_that_shows_its_defence() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    table = text.partition("| threat | defence | test |\n|---|---|---|\n")[2].partition("\n\n")[0]
    rows = table.splitlines()
    assert len(rows) > 50
    for row in rows:
        assert re.search(r"`test_\w+`", row), row
        assert "not yet" not in row.lower(), row


def _table(page: str, heading: str) -> list[str]:
    """The first cells of the table under a heading, but for that of its head."""
    text = (ROOT / "docs" / page).read_text()
    part = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [row[1] for row in re.finditer(r"^\| (.*?) \| ", part, re.MULTILINE)][1:]


@pytest.mark.parametrize(
    ("page", "heading", "table_heading"),
    [
        ("client.md", "What happens when", "The client: what happens when"),
        (
            "operate/services.md",
            "What is promised, and when",
            "The services: what is promised, and when",
        ),
        ("operate/services.md", "Limits", "The services: limits"),
    ],
)
def test_no_promise_is_without_its_test(page: str, heading: str, table_heading: str) -> None:
    promised = _table(page, heading)
    assert len(promised) > 5
    beginnings = [row.removesuffix(" ...") for row in _table("promises.md", table_heading)]
    assert [
        row[: len(begin)] for row, begin in zip(promised, beginnings, strict=True)
    ] == beginnings
    assert all(sum(row.startswith(begin) for row in promised) == 1 for begin in beginnings)


def test_every_command_of_the_readme_exists(capsys: Capture) -> None:
    text = (ROOT / "README.md").read_text()
    typed = r"^ {4}(?:\S+=\S+ )?hubbub (\w+(?: (?:new|rotate|tls|check|build))?)"
    commands = set(re.findall(typed, text, re.MULTILINE))
    assert commands >= {"up", "status", "query", "keys new", "keys tls", "catalog build"}
    # Programs of their own, in the place of ours.
    services = commands & SERVICES
    for command in services:
        assert "usage: hubbub" in _python(ROOT, "-m", "hubbub.cli", command, "--help")
    for command in commands - services:
        with pytest.raises(SystemExit, match=r"\A0\Z"):
            main([*command.split(), "--help"])
        assert "usage: hubbub" in capsys.readouterr().out


def _typed() -> Iterator[tuple[str, list[str]]]:
    """Every command that a document types, as a shell would split it: where, and its words."""
    for path in DOCUMENTS:
        text = path.read_text().replace("\\\n", " ")
        blocks = [*re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)]
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            blocks += block.splitlines()
        if path.name == "query.md":  # its table names the command of each question
            blocks += re.findall(r"^\|.*?`(hubbub [^`]+)`", text, re.MULTILINE)
        for line in blocks:
            words = line.partition(" > ")[0]
            if re.match(r"(?:[A-Z_]+=\S+ )*hubbub [a-z]", words) and "[OPTIONS]" not in words:
                # What a shell puts in place of a day: any is as good here.
                typed = shlex.split(words.replace("$(date -u +%F)", "2026-01-31"), comments=True)
                yield str(path.relative_to(ROOT)), typed[typed.index("hubbub") + 1 :]


TYPED = [
    pytest.param(words, id=f"{where}: {' '.join(words)}")
    for where, words in _typed()
    if words[0] not in SERVICES and "reference/command-line" not in where
]


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    return whole_parser()


@pytest.mark.parametrize("words", TYPED)
def test_every_command_that_a_document_types_is_understood(
    words: list[str], parser: argparse.ArgumentParser
) -> None:
    parser.parse_args(words)


def test_the_production_commands_of_the_readme_run_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """One after the other, in a folder with the README's catalog alone."""
    match = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert match
    (tmp_path / "metrics.toml").write_text(match[1])
    (tmp_path / "deploy").mkdir()
    monkeypatch.chdir(tmp_path)
    first = {"init", "keys", "catalog", "plan", "privacy"}
    run = [words for where, words in _typed() if where == "README.md" and words[0] in first]
    assert len(run) >= 10
    for words in sorted(run, key=lambda words: words[0] == "catalog" and words[1] == "check"):
        assert main(words) == 0, (words, capsys.readouterr())
    for name in ("app.hubbub", "operator.hubbub", "streams.json", "deploy/compose/app.hubbub"):
        assert (tmp_path / name).exists(), name


def test_the_queries_of_the_readme_are_answered_or_wait_for_their_crowd(
    run: LocalRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    """Every such line, of an installation that few have reported to."""
    (tmp_path / ".hubbub").symlink_to(run.home)
    (tmp_path / "domains.txt").write_text("a.example\n")
    monkeypatch.chdir(tmp_path)
    asks = {"query", "top", "trend", "status", "metrics"}
    lines = [words for where, words in _typed() if where == "README.md" and words[0] in asks]
    assert len(lines) >= 5
    for words in lines:
        if main(words):
            assert re.search(r"its minimum batch|no epoch", capsys.readouterr().err), words


COMPUTED = re.compile(r"(-?[\d,]*\.?\d+(?:e-?\d+)?)(%?)<!--= (.*?) -->", re.DOTALL)


def _names() -> dict[str, Any]:
    """What the expressions of docs/privacy.md may use."""
    from hubbub.catalog import Release
    from hubbub.mechanisms import Totals, build
    from hubbub.privacy.amplification import amplified, closed_form, sampled
    from hubbub.privacy.card import max_belief_change, max_posterior
    from hubbub.privacy.central_releases import release
    from hubbub.privacy.composition import Event, compose
    from hubbub.privacy.metric_draft import MetricDraft
    from hubbub.privacy.planner import plan

    def laplace_noise(epsilon: float, local: float, values: int) -> float:
        mechanism = build("unary.oue", epsilon=local, categories=values)
        totals = Totals(cells=[4000] * values, reports=9000)
        policy = Release("laplace", epsilon)
        labels = [str(value) for value in range(values)]
        product = release(
            [(mechanism, totals)], labels, "count", "0", policy=policy, reports_each=1
        )
        return product[0].noise or 0.0

    def local_error(values: int, epsilon: float, reports: int) -> float:
        mechanism = build("unary.oue", epsilon=epsilon, categories=values)
        return sqrt(mechanism.variance(reports / values, reports))

    def rappor(**settings: float) -> Any:
        return build("rappor", bits=32, cohorts=8, **settings)

    return {
        "exp": exp,
        "amplified": amplified,
        "closed_form": closed_form,
        "plan": plan,
        "max_posterior": max_posterior,
        "max_belief_change": max_belief_change,
        "rappor": rappor,
        "Event": Event,
        "compose": compose,
        "sampled": sampled,
        "MetricDraft": MetricDraft,
        "laplace_noise": laplace_noise,
        "local_error": local_error,
    }


def test_every_number_of_the_privacy_page_is_computed() -> None:
    page = (ROOT / "docs" / "privacy.md").read_text()
    matches = COMPUTED.findall(page)
    assert len(matches) > 25
    for printed, percent, expression in matches:
        value = eval(expression, _names())  # noqa: S307 our own document
        value = value * 100 if percent else value
        digits = len(printed.partition(".")[2])
        if expression.startswith(("plan", "laplace_noise", "local_error")):
            assert printed.replace(",", "") == f"{value:.{digits}f}", expression
        else:
            assert printed == at_most(value, f".{digits}f"), expression
    # What has a decimal point and is not computed is a setting: it is in the text of commands.
    prose = re.sub(r"^( {4}.*|\| 0\.\d+ .*)$", "", COMPUTED.sub("", page), flags=re.MULTILINE)
    settings = {"0.1", "0.25", "0.5", "0.75"}
    assert set(re.findall(r"(?<![\d.])\d*\.\d+", prose)) <= settings


def test_the_mechanisms_page_has_every_mechanism() -> None:
    from hubbub.mechanisms import REGISTRY

    page = (ROOT / "docs" / "mechanisms.md").read_text()
    for name in REGISTRY:
        assert f"`{name}`" in page


def test_the_answer_that_is_read_word_by_word_has_every_column_and_each_is_read() -> None:
    from hubbub.mechanisms import build
    from hubbub.privacy.amplification import amplified
    from hubbub.query_results.answer_table import COLUMNS

    page = (ROOT / "docs" / "read-an-answer.md").read_text()
    [example] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    titles = [column.title.format(level="95%") for column in COLUMNS["estimates"]]
    assert example.splitlines()[2].split() == " ".join(titles).split()
    for title in titles:
        assert f"\n**{title}** " in page, title
    for label in re.findall(
        r"^(of those who reported|shuffled|not final)[,:]", example, re.MULTILINE
    ):
        assert f"\n**{label}**" in page, label
    [(epsilon, delta, crowd)] = re.findall(
        r"epsilon (\S+) at delta (\S+)\. For one report among (\S+) of", example
    )
    mechanism = build("unary.oue", epsilon=1.0, categories=16)
    reports, variation = int(crowd.replace(",", "")), mechanism.total_variation()
    amplified_loss = amplified(mechanism.privacy_loss(), reports, float(delta), variation)
    assert f"{amplified_loss.epsilon:.3f}" == epsilon


def _messages(path: Path) -> Iterator[str]:
    """The texts of a module, whatever they are put together from; what differs is a gap."""
    for node in nodes(path.read_text()):
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            )
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"%(?:\.\d)?[sdf]", "…", node.value).replace("%%", "%")


def test_the_table_of_the_client_has_every_kind_of_values() -> None:
    page = (ROOT / "docs/client.md").read_text()
    for kind in KINDS.keys() - {"rate"}:
        assert f'| `kind = "{kind}"`' in page, kind
    assert "| `rate = {" in page


def test_the_documents_stay_within_their_number_of_words() -> None:
    words = sum(len(path.read_text().split()) for path in DOCUMENTS)
    assert words <= 90_000, f"{words} words; say a thing once before you add one"
    assert len((ROOT / "README.md").read_text().split()) <= 1200


def test_every_message_of_the_troubleshooting_page_is_one() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    quoted = re.findall(r"^\| `(.*?)` \|", page, re.MULTILINE)
    assert len(quoted) > 30
    folders = ("client", "shuffler", "aggregator", "deploy")
    texts = [
        text
        for folder in folders
        for path in (ROOT / folder / "hubbub").rglob("*.py")
        for text in _messages(path)
    ]
    for message in quoted:
        assert any(message in text for text in texts), message


def test_the_proof_index_names_every_proof_and_mechanisms_that_have_it() -> None:
    from hubbub.mechanisms import REGISTRY, Memoized, build
    from hubbub.privacy.proofs.enumeration import PROOFS

    page = (ROOT / "docs" / "proofs.md").read_text()
    part = page.partition("## One report\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| .* \| `(\w+)` \| (.*) \|$", part, re.MULTILINE)
    assert [name for name, _ in rows] == [proof.__name__ for proof in PROOFS]
    memoized = {
        name for name in REGISTRY if isinstance(build(name, **REGISTRY[name].SMALL[0]), Memoized)
    }
    for name, mechanisms in rows:
        permanent = name.startswith("permanent_")
        assert mechanisms == "all" or (permanent and set(_codes(mechanisms)) == memoized), name
    for row in re.findall(r"^\|.*\| (.*) \|$", page, re.MULTILINE):
        assert set(_codes(row)) <= {*REGISTRY, *(proof.__name__ for proof in PROOFS)}, row


def _codes(cell: str) -> list[str]:
    return re.findall(r"`(.*?)`", cell)


def test_every_file_that_a_recipe_names_is_there() -> None:
    for page in sorted((ROOT / "docs" / "contribute").glob("*.md")):
        for name in re.findall(r"`([\w./]+/[\w./]*\.(?:py|proto|md|toml|yml))`", page.read_text()):
            if "NAME" not in name:
                matches = [
                    *ROOT.glob(name),
                    *ROOT.glob(f"*/hubbub/{name}"),
                    *ROOT.glob(f"*/hubbub/*/{name}"),
                ]
                assert matches, f"{page.name}: {name}"


def test_every_document_that_is_named_anywhere_is_there() -> None:
    """In messages, help, alerts, comments, units: nobody is sent to a page that has moved."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        path = ROOT / name
        if not path.is_file() or path.suffix in {".gz", ".png", ".lock"} or "corpus" in path.parts:
            continue
        for page in re.findall(r"\bdocs/[\w./-]+\.md\b", path.read_text("utf-8", "replace")):
            assert (ROOT / page).exists(), f"{name}: {page}"


@pytest.mark.thorough
def test_every_figure_of_the_page_of_questions_is_planned(capsys: Capture) -> None:
    page = (ROOT / "docs" / "questions.md").read_text()
    row = r"\| (\d+) \| ([\d,]+)(?: of each arm| a week| a day)? \| `hubbub (plan [^`]+)` \|"
    rows = re.findall(row, page)
    assert len(rows) == page.count("`hubbub plan --") > 5
    for epsilon, reports, words in rows:
        planned = document_of(capsys, *words.split(), "--format", "json")["rows"][0]
        assert f"--epsilon {epsilon} " in words
        assert float(f"{planned['reports']:.2g}") == float(reports.replace(",", "")), words


def test_every_row_of_the_page_of_questions_is_a_metric() -> None:
    """As written beside the fields that all metrics have; `the same` continues the row before."""
    page = (ROOT / "docs" / "questions.md").read_text()
    table = [line.split(" | ") for line in page.splitlines() if "| `hubbub plan " in line]
    experiment = "[experiments.new_menu]\narms = { control = 1, new = 1 }\n"
    fields: list[str] = []
    for question, written, epsilon, reports, *_ in table:
        before = fields if written.startswith("the same") else []
        fields = [*before, *re.findall("`(.+?)`", written)]
        count = re.match(r"[\d,]+", reports)
        assert fields, question
        assert count, question
        expected = {"mechanism": "auto", "reports": int(count[0].replace(",", ""))}
        metric = metric_toml(
            "asked",
            "\n".join(fields),
            **({} if "mechanism" in written else expected),
            epsilon=float(epsilon),
            epoch="week" if "weeks" in written else "day",
        )
        assert catalog_of(
            catalog_toml(experiment if any("new_menu" in field for field in fields) else "", metric)
        ).metrics["asked"].report_loss <= float(epsilon)
