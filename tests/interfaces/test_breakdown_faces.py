"""A metric told apart by what is public: the same from every face, and as the page draws it."""

from typing import Any

import matplotlib as mpl
import pytest
from playwright.sync_api import expect

import hubbub.notebook
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import House
from tests.support import web
from tests.support.commands import Capture, document_of, output_of


def _response(home: House, **parameters: str) -> dict[str, Any]:
    path = f"{home.page}/v1/metrics/crashed/breakdown"
    response: dict[str, Any] = web.get(path, params=parameters).json()
    return response


def test_a_breakdown_is_the_same_from_every_face(home: House, capsys: Capture) -> None:
    by_http = _response(home, by="version", epochs="all")
    notebook: Any = hubbub.notebook.connect(home.page).breakdown("crashed", "version", epochs="all")
    assert notebook.document == by_http
    words = ["breakdown", "crashed", "--by", "version", "--epochs", "all", "--url", home.page]
    capsys.readouterr()
    assert document_of(capsys, *words, "--format", "json") == by_http
    assert "beyond chance" in output_of(capsys, *words)
    mpl.use("agg")
    axes = notebook.plot()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["2: no", "2: yes", "old: no", "old: yes"]


def test_breakdowns_are_near_the_truth_and_differences_are_found(home: House) -> None:
    breakdown = _response(home, by="version", epochs="all")
    rows = {(row["part"], row["value"]): row for row in breakdown["values"]}
    for part, true in (("2", 0.1), ("old", 0.3)):
        row = rows[part, "yes"]
        # Of one person in ten thousand millions of such questions.
        assert abs(row["share"] - true) < 6.5 * row["stderr"] / row["reports"]
        assert row["low"] < row["share"] < row["high"]
        assert row["stands_out"]
        assert row["difference_low"] < row["difference"] < row["difference_high"]
    by_os = _response(home, by="os")
    assert not any(row["stands_out"] for row in by_os["values"])


def test_small_parts_are_named_and_not_answered(home: House) -> None:
    breakdown = _response(home)
    assert breakdown["by"] == "os"
    answered = {part["part"]: part["answered"] for part in breakdown["parts"]}
    assert answered == {"linux": True, "macos": True, "haiku": False, "unlisted": False}
    assert {row["part"] for row in breakdown["values"]} == {"linux", "macos"}
    alone = web.get(f"{home.page}/v1/metrics/crashed@os=haiku/estimates")
    assert (alone.status_code, alone.json()["title"]) == (409, "BatchTooSmall")


def test_parts_add_up_to_the_whole_exactly(home: House) -> None:
    """All cells are of one mechanism, so their totals add as whole numbers do."""

    def values_of(name: str) -> dict[str, Any]:
        response: dict[str, Any] = web.get(f"{home.page}/v1/metrics/{name}/estimates").json()
        return {value["value"]: value for value in response["values"]} | {
            "reports": response["reports"]
        }

    pair, each = (
        values_of("crashed@os=linux+macos"),
        [values_of(f"crashed@os={o}") for o in ("linux", "macos")],
    )
    assert pair["reports"] == sum(part["reports"] for part in each)
    for value in ("no", "yes"):
        assert pair[value]["estimate"] == pytest.approx(
            sum(part[value]["estimate"] for part in each)
        )
        assert pair[value]["stderr"] == pytest.approx(
            sum(part[value]["stderr"] ** 2 for part in each) ** 0.5
        )


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("theme/breakdown", 400, "has no breakdown"),
        ("crashed/breakdown?by=colour", 400, "public fields: os, version"),
        ("crashed@os=beos/estimates", 404, "os (linux, macos, haiku)"),
        ("crashed@/estimates", 404, "each public field is named once"),
        ("crashed@os=linux,os=macos/estimates", 404, "each public field is named once"),
        ("theme@os=linux/estimates", 404, "has no breakdown"),
    ],
)
def test_an_unknown_public_value_is_refused_with_the_existing_ones(
    home: House, path: str, status: int, message: str
) -> None:
    answer = web.get(f"{home.page}/v1/metrics/{path}")
    assert (answer.status_code, message in answer.json()["detail"]) == (status, True)


@pytest.mark.thorough
def test_an_unknown_field_in_an_address_is_refused(unchecked: Watched, home: House) -> None:
    page = unchecked.open(f"{home.page}/metric?name=crashed&epochs=all&by=colour")
    expect(page.locator("#broken")).to_contain_text("public fields: os, version")
    page.select_option("#breaking [name=by]", "os")
    expect(page.locator("#broken")).to_contain_text("without an answer: haiku")


def test_the_page_draws_every_part_and_changes_with_its_field(
    watched: Watched, home: House
) -> None:
    page = watched.open(f"{home.page}/metric?name=crashed&epochs=all&by=version")
    whiskers = page.locator("#broken svg path.whisker")
    expect(whiskers).to_have_count(4)
    ends = whiskers.evaluate_all("paths => paths.map(p => [+p.dataset.low, +p.dataset.high])")
    breakdown = _response(home, by="version", epochs="all")
    assert ends == [[row["low"], row["high"]] for row in breakdown["values"]]
    assert "differ from all others beyond chance" in page.inner_text("#broken")
    page.select_option("#breaking [name=by]", "os")
    expect(page.locator("#broken")).to_contain_text("without an answer: haiku")
    assert "by=os" in page.url
    part = watched.open(f"{home.page}/metric?name=crashed@os=linux")
    expect(part.locator("#answer")).to_contain_text("report")
    assert not watched.open(f"{home.page}/metric?name=theme").is_visible("#breakdown")
