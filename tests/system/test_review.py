"""The reviewer's page and the leaflet: made of a catalog, true of it, and no longer than a page."""

import re
import shlex
from html import unescape
from pathlib import Path

import pytest

from hubbub.authoring import read_with_promises
from hubbub.cli.main import main, whole_parser
from hubbub.installation.keys_and_bundles import DEMO_DEVICE
from hubbub.privacy.card import card, max_posterior
from hubbub.privacy.leaflet_and_reviewer_claims import claims, leaflet
from hubbub.privacy.proofs.enumeration import PROOFS
from tests.conftest import CATALOG
from tests.interfaces.browser import chromium
from tests.support.commands import Capture, output_of

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "deploy" / "hubbub" / "cli" / "demo_data" / "metrics.toml"
NATS = re.compile(r"\b(nats?|epsilon|delta|mechanism|shuffl\w*|rappor|grr|oue)\b", re.IGNORECASE)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.toml"
    sealed = CATALOG.replace("[metrics.theme]", '[metrics.theme]\ndefault = "none"\nkem = "x-wing"')
    path.write_text(sealed)
    return path


def test_ten_claims_each_with_a_command_that_is_one_and_tests_that_are_there(catalog: Path) -> None:
    review_claims = claims(read_with_promises(catalog), "metrics.toml")
    assert len(review_claims) == 10
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    proofs = {proof.__name__ for proof in PROOFS}
    parser = whole_parser()
    for claim in review_claims:
        assert claim.shown
        assert claim.rests_on
        assert claim.assumed
        for name in claim.shown:
            assert name in proofs or f"def {name}(" in tests, name
        program, *words = shlex.split(claim.command)
        if program == "hubbub":
            parser.parse_args(words)
        for path in words:
            assert "/" not in path or (ROOT / path).is_file(), path


def test_the_figures_are_the_cards(catalog: Path) -> None:
    privacy_card = card(read_with_promises(catalog))
    text = " ".join(claim.says for claim in claims(read_with_promises(catalog), "metrics.toml"))
    assert f"at most {max(metric.per_report for metric in privacy_card.metrics):.4g} nats" in text
    assert f"{privacy_card.together['year']:.4g} nats" in text
    assert "20 at a time or more" in text
    assert "For theme the shuffler cannot see whether a device had something to report" in text
    assert "a quantum computer cannot open recorded reports of theme." in text
    plain = claims(read_with_promises(DEMO), "metrics.toml")[-1].says
    assert plain == (
        "The shuffler can see for every metric here whether a device reported; a quantum computer "
        "could open recorded reports of every metric here."
    )


def test_commands_about_the_demo_name_its_folder_and_others_do_not(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG)
    assert "\n    hubbub ledger\n" in output_of(capsys, "privacy", "review", str(path))
    (tmp_path / DEMO_DEVICE).mkdir()
    page = output_of(capsys, "privacy", "review", str(path))
    assert f"    hubbub ledger --state-dir {shlex.quote(str(tmp_path))}/{DEMO_DEVICE}\n" in page
    assert f"    hubbub status --home {shlex.quote(str(tmp_path))}\n" in page


@pytest.mark.parametrize(
    ("file", "epsilon", "warnings"),
    [
        (DEMO, 2.0, 0),
        (DEMO, 9.0, 1),
        pytest.param(DEMO.with_name("both_ways.toml"), 2.0, 0, marks=pytest.mark.thorough),
    ],
)
def test_a_check_warns_of_single_reports_that_hide_little_unless_a_crowd_hides_them(
    tmp_path: Path, capsys: Capture, file: Path, epsilon: float, warnings: int
) -> None:
    catalog = file.read_text().replace("epsilon = 2.0\nvalues", f"epsilon = {epsilon}\nvalues")
    shuffler = "" if "shuffler =" in catalog else 'shuffler = "127.0.0.1:1"\n'
    path = tmp_path / "metrics.toml"
    path.write_text(shuffler + catalog.replace("lifetime_epsilon = 2.0", "lifetime_epsilon = 9.0"))
    strings = "top_domains.txt.gz"
    (tmp_path / strings).write_bytes(DEMO.with_name(strings).read_bytes())
    assert main(["catalog", "check", str(path)]) == 0
    output = "".join(capsys.readouterr())
    assert output.count("warning: ") == warnings
    assert ("no problem found" in output) is (warnings == 0)
    assert "all reports of one person in a year reveal at most" in output


def test_fakes_are_limited_by_accounts_where_reports_need_tokens(catalog: Path) -> None:
    def assumed() -> str:
        review_claims = claims(read_with_promises(catalog), "metrics.toml")
        return next(claim.assumed for claim in review_claims if "fake reports" in claim.says)

    assert "the limit is per address" in assumed()
    catalog.write_text(
        f'tokens = {{ issuer = "https://issuer.example.org" }}\n{catalog.read_text()}'
    )
    assert "accounts" in assumed()


def test_the_page_fits_an_afternoon(catalog: Path, capsys: Capture) -> None:
    output = output_of(capsys, "privacy", "review", str(catalog))
    assert re.findall(r"^## (\d+)\. ", output, re.MULTILINE) == [str(n) for n in range(1, 11)]
    assert len(re.findall(r"^    (\S.*)$", output, re.MULTILINE)) == 10
    assert len(output.splitlines()) <= 90
    assert f"hubbub privacy card {shlex.quote(str(catalog))}" in output


def test_the_leaflet_has_no_nats_and_understates_no_risk(catalog: Path, capsys: Capture) -> None:
    page = output_of(capsys, "privacy", "leaflet", str(catalog))
    text = unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL))
    assert not NATS.search(text)
    source = read_with_promises(catalog)
    sheet = leaflet(source)
    assert [question.right for question in sheet.questions] == sorted(
        (question.right for question in sheet.questions), reverse=True
    )
    for question in sheet.questions:
        [metric] = [m for m in source.metrics.values() if m.description == question.asks]
        assert (
            question.right / 100 >= max_posterior(metric.report_loss) > (question.right - 1) / 100
        )
        assert question.asks in text
        assert question.owner in text
    assert "silence reveals nothing, for: Colour theme in use" in text


def test_html_in_an_operators_description_is_shown_as_text(catalog: Path, capsys: Capture) -> None:
    hostile = catalog.read_text().replace("Home page", "<script>alert(1)</script>")
    catalog.write_text(hostile)
    assert "<script" not in output_of(capsys, "privacy", "leaflet", str(catalog))


def test_the_leaflet_is_one_page_of_paper(tmp_path: Path, capsys: Capture) -> None:
    """Of fourteen questions with long words, too."""
    metric = CATALOG[CATALOG.index("[metrics.theme]") : CATALOG.index("[metrics.crashed]")]
    long = "Which of the colour themes was in use for most of the day, at home or away"
    many = "".join(
        metric.replace("metrics.theme", f"metrics.theme_{n}").replace(
            "Colour theme in use at the end of the day", f"{long} ({n})"
        )
        for n in range(14)
    )
    path = tmp_path / "metrics.toml"
    path.write_text('shuffler = "127.0.0.1:1"\n' + many)
    page = output_of(capsys, "privacy", "leaflet", str(path))
    assert "And 4 more questions; none of them reveals more." in page
    with chromium() as browser:
        view = browser.new_page()
        view.set_content(page)
        paper = view.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1
