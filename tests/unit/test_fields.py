"""A field of the catalog is said once, and all that lists fields follows."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import docs.reference.catalog
import docs.reference.catalog_schema
from docs.reference.catalog import PAGE, page
from docs.reference.catalog_schema import catalog_schema
from hubbub.authoring import Catalog, read_catalog
from hubbub.authoring.auto_mechanism import own_fields
from hubbub.authoring.metrics_toml import metric_table
from hubbub.bundles import signed_bundle
from hubbub.catalog import Budget, Metric, Release
from hubbub.catalog.limits_and_budgets import Caps, Limits
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.client import Outcome
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.errors import CatalogInvalid, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import CatalogField, fields_of, setting
from hubbub.fields.frozen import frozen
from hubbub.mechanisms import REGISTRY
from hubbub.privacy.card import Fact, facts, metric_card
from tests.conftest import CATALOG
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_of
from tests.support.commands import Capture, output_of
from tests.support.devices import idle_client


def _every_field() -> Iterator[CatalogField]:
    for section in (Catalog, Metric, Limits, Release, Caps, Budget):
        yield from fields_of(section)
    for mechanism in (AUTO, *REGISTRY):
        yield from own_fields(mechanism)


@pytest.mark.parametrize("field", [*_every_field()], ids=lambda field: field.name)
def test_a_field_says_what_it_means_and_its_example_may_stand(field: CatalogField) -> None:
    assert field.entry.meaning.endswith(".")
    assert field.entry.kind.words()
    ways = [field.entry, *field.entry.others.values()]
    if field.entry.written and field.name != "metrics":
        for says in ways:
            assert says.kind.problem(tomllib.loads(f"it = {says.example}")["it"]) == ""


def test_the_reference_is_what_the_fields_say() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m docs.reference.catalog"


@frozen(kw_only=True)
class WithTeam(Metric):
    """A metric with one field more: this entry is all that is written for it."""

    team: str = setting(
        kinds.text("names a team"),
        "Which team looks at it.",
        '"shell"',
        label="read by",
        default="",
    )


@pytest.fixture
def _with_team(monkeypatch: pytest.MonkeyPatch) -> None:
    references = docs.reference.catalog_schema, docs.reference.catalog
    for module in (metric_table, signed_bundle, *references):
        monkeypatch.setattr(module, "Metric", WithTeam)


@pytest.mark.usefixtures("_with_team")
def test_one_declaration_reads_checks_and_signs_a_new_field(tmp_path: Path) -> None:
    text = CATALOG.replace("bits = 16", 'bits = 16\nteam = " shell "')
    signed = make_signed(tmp_path, text, start=20_000 * DAY)
    body = json.loads(signed.path.read_bytes().split(b"\n")[1])["metrics"]
    assert body["homepage"]["team"] == "shell"
    assert "team" not in body["theme"], "or every bundle would change"
    homepage = signed.bundle.metric("homepage")
    assert isinstance(homepage, WithTeam)
    assert homepage.team == "shell"
    with pytest.raises(
        CatalogInvalid, match=r'"team": must be a text of at most 10,000 characters that'
    ):
        catalog_of(CATALOG.replace("bits = 16", "bits = 16\nteam = 7"))


@pytest.mark.usefixtures("_with_team")
def test_one_declaration_adds_a_field_to_schema_reference_card_and_answers(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG.replace("bits = 16", 'bits = 16\nteam = "shell"'))
    homepage, theme = (read_catalog(path).metrics[name] for name in ("homepage", "theme"))
    says = catalog_schema()["$defs"]["metric"]["properties"]["team"]
    assert (says["description"], says["type"]) == ("Which team looks at it.", "string")
    item = '- `team = "shell"` (a text that names a team): Which team looks at it.'
    assert item in page().splitlines()
    team = Fact("team", "read by", "shell")
    assert team in facts(homepage)
    assert team in metric_card(homepage).facts
    assert "team" not in {fact.field for fact in facts(theme)}
    assert "| read by |" in output_of(capsys, "privacy", "card", str(path), "--format", "markdown")


def test_without_a_declaration_the_field_does_not_exist() -> None:
    with pytest.raises(CatalogInvalid, match=r'"team": is not known with mechanism = "rappor"'):
        catalog_of(CATALOG.replace("bits = 16", 'bits = 16\nteam = "shell"'))
    assert "team" not in catalog_schema()["$defs"]["metric"]["properties"]


def test_facts_show_the_catalog_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG.replace("min_batch = 20", "min_batch = 1000", 1))
    assert facts(read_catalog(path).metrics["theme"]) == [
        Fact("owner", "asked by", "desktop@example.org"),
        Fact("expires", "until", "2099-06-30"),
        Fact("epoch", "counted by the", "day"),
        Fact("min_batch", "minimum batch", "1,000"),
    ]


# true and false


def test_a_boolean_is_reported_as_it_is(tmp_path: Path) -> None:
    text = CATALOG.replace('values = ["no", "yes"]', "values = [true, false]")
    bundle = make_signed(tmp_path, text, start=20_000 * DAY).bundle
    shuffler = FakeShuffler()
    client = idle_client(bundle, transport=shuffler, strict=False, clock=FakeClock(20_000.5 * DAY))
    assert client.report("crashed", True) is Outcome.QUEUED  # noqa: FBT003 a value
    assert client.report("theme", True) is Outcome.NOT_A_VALUE  # noqa: FBT003 as above


@pytest.mark.parametrize(
    ("values_text", "values"),
    [("[true, false]", ("true", "false")), ("[false, true]", ("false", "true"))],
)
def test_true_and_false_may_be_listed_and_reported(
    tmp_path: Path, values_text: str, values: tuple[str, str]
) -> None:
    text = CATALOG.replace('values = ["no", "yes"]', f"values = {values_text}")
    crashed = make_signed(tmp_path, text, start=20_000 * DAY).bundle.metric("crashed")
    assert crashed.values == values
    assert crashed.code(True) == crashed.code("true") == values.index("true")  # noqa: FBT003 a value
    assert crashed.code(False) == crashed.code("false") == values.index("false")  # noqa: FBT003 as above


@pytest.mark.parametrize(
    "values_text", ["[true]", "[true, true]", '[true, "no"]', "[true, false, 1]"]
)
def test_true_and_false_are_listed_together_and_alone(values_text: str) -> None:
    with pytest.raises(CatalogInvalid, match=r'"values": must be a list of texts, none empty; or'):
        catalog_of(CATALOG.replace('values = ["no", "yes"]', f"values = {values_text}"))


def test_a_boolean_is_no_value_unless_listed(tmp_path: Path) -> None:
    bundle = make_signed(tmp_path, CATALOG, start=20_000 * DAY).bundle
    for name in ("crashed", "theme", "homepage"):
        with pytest.raises(ValueOutOfDomain):
            bundle.metric(name).code(True)  # noqa: FBT003 a value
