"""`hubbub privacy`, as a reviewer types it."""

import re
from html.parser import HTMLParser
from operator import ge
from pathlib import Path
from typing import Any

import pytest

from hubbub.cli.main import main
from hubbub.errors import BadParameter
from hubbub.privacy.amplification import amplified
from hubbub.privacy.card import max_belief_change, meaning
from hubbub.privacy.epsilon_words_and_advice import verdict
from tests.conftest import CATALOG
from tests.support.catalogs import metric_toml
from tests.support.commands import Capture, document_of, output_of, refusal_of

MORE = metric_toml(
    "weekly",
    description="<b>What</b> | asked weekly",
    epoch="week",
    mechanism="long.grr",
    epsilon=1.0,
    permanent_epsilon=2.5,
    values=["a", "b", "c"],
    min_batch=5000,
    tiers=[0.25, 0.5],
    sampling=0.5,
    reports_per_epoch=2,
    lifetime_epsilon=40.0,
)


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    (tmp_path / "metrics.toml").write_text(CATALOG + MORE)
    return str(tmp_path / "metrics.toml")


def _card(catalog: str, capsys: Capture) -> dict[str, Any]:
    document: dict[str, Any] = document_of(capsys, "privacy", "card", catalog, "--format", "json")
    return document


def test_the_card_shows_the_loss_of_each_metric_and_of_all(catalog: str, capsys: Capture) -> None:
    card = _card(catalog, capsys)
    metrics = {metric["name"]: metric for metric in card["metrics"]}
    assert list(metrics) == ["theme", "crashed", "editor", "homepage", "weekly"]
    weekly = metrics["weekly"]
    assert weekly["per_report"] == pytest.approx(1.0)
    assert weekly["per_epoch"] == pytest.approx(2.0)
    assert weekly["unchanged"] == pytest.approx(2.5)
    assert weekly["tiers"] == [0.25, 0.5]
    assert (weekly["sampling"], metrics["theme"]["sampling"]) == (0.5, 1.0)
    assert weekly["sampled"] == pytest.approx(0.6201, abs=1e-4)  # ln(1 + (e - 1) / 2)
    assert "takes part with a chance of 0.5" in weekly["sentence"]
    assert weekly["shuffled"]["reports"] == 5000
    assert weekly["shuffled"]["epsilon_central"] < amplified(1.0, 5000).epsilon
    assert metrics["theme"]["unchanged"] is None
    # A day may hold a week's two reports; 31 days touch six weeks, a year 54.
    Path(catalog).write_text(CATALOG)
    without = _card(catalog, capsys)
    assert card["together"]["day"] - without["together"]["day"] == pytest.approx(2)
    assert card["together"]["month"] - without["together"]["month"] == pytest.approx(12)
    assert card["together"]["year"] - without["together"]["year"] == pytest.approx(40)
    assert card["unchanged"]["month"] - without["unchanged"]["month"] == pytest.approx(2.5)
    for span in ("day", "month", "year"):
        assert card["unchanged"][span] <= card["together"][span]
    year = sum(metric["lifetime_epsilon"] for metric in card["metrics"])
    assert card["together"]["year"] <= year


def test_the_card_is_a_table_markdown_or_a_page(catalog: str, capsys: Capture) -> None:
    outputs = {}
    for kind in ("table", "markdown", "html"):
        outputs[kind] = output_of(capsys, "privacy", "card", catalog, "--format", kind)
    for text in outputs.values():
        assert "permanent_epsilon" not in text
        assert "For life the device stops at 40 nats." in text.replace("\\", "")
    assert "| weekly |" in outputs["markdown"]
    assert "\\<b\\>What\\</b\\> \\| asked" in outputs["markdown"]
    assert "&lt;b&gt;What&lt;/b&gt;" in outputs["html"]
    opened: list[str] = []

    class Balanced(HTMLParser):
        def handle_starttag(self, tag: str, _attrs: object) -> None:
            if tag != "meta":
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Balanced().feed(outputs["html"])
    assert not opened


def test_the_card_gives_a_verdict_a_picture_and_advice_once(catalog: str, capsys: Capture) -> None:
    document = _card(catalog, capsys)
    assert document["verdicts"]["year"] == "hides nothing"
    verdicts = {metric["name"]: metric["verdict"] for metric in document["metrics"]}
    assert (verdicts["theme"], verdicts["crashed"]) == ("strong", "fair")
    [advised] = document["advice"]
    largest = max(document["metrics"], key=lambda metric: metric["lifetime_epsilon"])
    assert f"Most of a year is {largest['name']}" in advised
    out = output_of(capsys, "privacy", "card", catalog)
    assert "Verdict: all answers in a day," in out
    meanings = [x.partition(": ")[2] for x in out.splitlines() if x.startswith("One answer to ")]
    assert len(set(meanings)) == len(meanings) > 1
    assert "One answer:" not in out
    assert "almost 100%" in out


def test_the_card_marks_metrics_with_another_delta(tmp_path: Path, capsys: Capture) -> None:
    crowd = 'mechanism = "grr"\ncentral_epsilon = 1.0\ndelta = 1e-6\ncrowd = 5000'
    template = MORE[: MORE.index("permanent_epsilon")].replace('"week"', '"day"')
    path = tmp_path / "metrics.toml"
    path.write_text(
        'shuffler = "127.0.0.1:1"\n'
        + template.replace('mechanism = "long.grr"\nepsilon = 1.0', crowd)
        + 'values = ["a", "b"]\nlimits = { reports_per_epoch = 1, lifetime_epsilon = 90.0 }\n'
    )
    output = " ".join(output_of(capsys, "privacy", "card", str(path)).split())
    assert "only, at delta 1e-08 (weekly 1e-06), in" in output


def test_every_word_for_a_certainty_ends_at_its_limit() -> None:
    verdicts = [verdict(epsilon) for epsilon in (0.1, 1.09, 1.1, 2.2, 4.6, 7.7)]
    assert verdicts == ["strong", "strong", "fair", "weak", "poor", "hides nothing"]


def test_the_sentences_are_bayes_rule() -> None:
    """The largest move of a belief, looked for over all beliefs."""
    from math import exp

    for epsilon in (0.1, 1.0, 3.0):
        odds = exp(epsilon)
        moves = [
            prior * odds / (prior * odds + 1 - prior) - prior
            for prior in (place / 10_000 for place in range(10_001))
        ]
        assert max(moves) == pytest.approx(max_belief_change(epsilon), abs=1e-7)
        shown = [float(number) for number in re.findall(r"\d+\.?\d*", meaning(epsilon))]
        bounds = [odds, 50, 50, 100 * odds / (1 + odds), 100 * max_belief_change(epsilon)]
        assert all(map(ge, shown, bounds)), "rounded to the safe side"
        assert shown == pytest.approx(bounds, rel=5e-3)
    assert "which hides nothing" in meaning(30.0)
    assert "at most" not in meaning(30.0), "more than a million is no bound"


def test_the_promise_of_a_crowd_is_computed_for_given_numbers(capsys: Capture) -> None:
    arguments = ["privacy", "amplify", "--epsilon", "1", "--reports", "100000", "--delta", "1e-6"]
    document = document_of(capsys, *arguments, "--json")
    assert document["epsilon_central"] == amplified(1.0, 100_000, 1e-6).epsilon
    assert document["epsilon_central"] < document["closed_form"]
    assert (document["method"], document["reports"]) == ("numerical", 100_000)
    assert "honest" in document["assumption"]
    assert "epsilon 0.01243" in output_of(capsys, *arguments)
    assert "reports 0 is outside" in refusal_of(capsys, *arguments[:5], "0")


def test_an_option_out_of_range_is_named(capsys: Capture) -> None:
    for words, options in (
        ("privacy crowd --values 4 --reports 9", "--epochs --reports --dummies --delta"),
        ("privacy compose --epsilon 1 --delta 1e-8", "--delta --times --sampling"),
    ):
        for option in options.split():
            assert f"{option} -1 is outside " in refusal_of(capsys, *words.split(), option, "-1")


def test_max_local_is_refused_beside_a_given_local_epsilon(capsys: Capture) -> None:
    arguments = ["privacy", "crowd", "--reports", "100", "--values", "4", "--local-epsilon", "3"]
    assert "--max-local needs --central" in refusal_of(capsys, *arguments, "--max-local", "2")


def test_a_useless_crowd_is_refused_with_a_sufficient_size(capsys: Capture) -> None:
    arguments = ["privacy", "crowd", "--values", "16", "--central", "0.5", "--reports"]
    output = output_of(capsys, *arguments, "5")
    assert "so small a crowd adds almost nothing" in output
    needed = output.rpartition("; ")[2].partition(" reports would")[0].replace(",", "")
    assert document_of(capsys, *arguments, needed, "--json")["epsilon_local"] >= 0.99
    assert output_of(capsys, *arguments, "5", "--max-local", "0.5").endswith("of a single report\n")
    assert main([*arguments, "300", "--max-local", "0.4"]) == 0
    assert "since a report may reveal 0.4 at most" in capsys.readouterr().out, "which is no crowd's"
    assert main([*arguments, "300", "--hashes", "2", "--dummies", "9"]) == 2
    assert "--hashes 2 needs 3 or more --values" in capsys.readouterr().err


def test_events_are_composed(tmp_path: Path, capsys: Capture) -> None:
    arguments = ["privacy", "compose", "--delta", "1e-5"]
    document = document_of(capsys, *arguments, "--epsilon", "0.1", "--times", "100", "--json")
    assert document["basic"] == pytest.approx(10)
    assert document["best"] == document["pld"]
    history = tmp_path / "history.json"
    history.write_text('[{"epsilon": 0.5, "times": 4}, {"sigma": 12}]')
    out = output_of(capsys, *arguments, "--history", str(history))
    assert "5 events together" in out
    assert "no bound" in out
    history.write_text('[{"epsilon": 0.5, "delta": 0.1}]')
    assert document_of(capsys, *arguments, "--history", str(history), "--json")["best"] is None
    for wrong in ("[{}]", '[{"epsilon": -1}]', "{", '[{"colour": 1}]', "7", "[3]"):
        history.write_text(wrong)
        refusal = refusal_of(capsys, *arguments, "--history", str(history))
        assert refusal.startswith(f"hubbub: --history {history}: entry 1")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("[caps]\nepsilon_per_day = 3\n", "above the cap of 3"),
        ("[caps]\nepsilon_per_year = 10.0\n", "about one person in a year"),
        ("[caps]\nepsilon_per_day = 0\n", "must be a number of nats above 0"),
        ("[caps]\nepsilon_per_hour = 9\n", "is not known in [caps]"),
        ("caps = 3\n", "must be a table of epsilon_per_day"),
    ],
)
def test_caps_are_kept_by_the_catalog_check(
    more: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "metrics.toml"
    first, rest = CATALOG.split("\n[metrics.theme]")
    path.write_text(f"{first}\n{more}[metrics.theme]{rest}")
    err = refusal_of(capsys, "catalog", "check", str(path))
    assert message in err
    if "epsilon" in more:
        line = path.read_text().splitlines().index(more.splitlines()[1]) + 1
        assert f"metrics.toml:{line}: field" in err


def test_fulfilled_caps_are_shown(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + "\n[caps]\nepsilon_per_day = 50\n")
    assert main(["catalog", "check", str(path)]) == 0
    capsys.readouterr()
    assert _card(str(path), capsys)["caps"] == {"day": 50.0, "month": None, "year": None}
    with pytest.raises(BadParameter):
        amplified(-1.0, 5)


@pytest.mark.parametrize(
    "typed",
    [
        "privacy crowd --reports 30000 --values 16 --central 0.001 --dummies noise",
        pytest.param(
            "plan central --reports 30000 --values 16 --epsilon 0.001 --dummies noise",
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "plan central --reports 30000 --mean 0 1 --epsilon 0.001 --dummies noise",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_promise_that_no_noise_dummies_keep_is_refused_with_its_epsilon(
    typed: str, capsys: Capture
) -> None:
    assert "cannot keep a central epsilon as small as 0.001 here" in refusal_of(
        capsys, *typed.split()
    )


@pytest.mark.thorough
def test_automatic_dummies_are_uniform_if_no_noise_keeps_the_promise(
    capsys: Capture,
) -> None:
    words = "plan central --reports 100 --values 4 --epsilon 0.001 --dummies auto --format json"
    assert '"dummies_scale": 0.0' in output_of(capsys, *words.split())
