"""metrics.toml: what is refused, and that every refusal says where and what to do."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.authoring import read_catalog
from hubbub.errors import BadParameter, CatalogInvalid, ValueOutOfDomain
from tests.conftest import CATALOG
from tests.support.bundles import Signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml

VALUES = 'values = ["light", "dark", "system"]'
ONE_LINE = "Colour theme in use at the end of the day"
WRONG = [
    ("epsilon = 1.0", "epsilon = 20", "theme", "epsilon", r"in \[0.0009765625, 16.0\]"),
    ("epsilon = 1.0", "epsilon = nan", "theme", "epsilon", "must be a number"),
    ("epsilon = 1.0", "epsilon = true", "theme", "epsilon", "must be a number"),
    ("epsilon = 1.0", "", "theme", "epsilon", "is missing; write epsilon = 1.0 .a number of nats"),
    ("min_batch = 20", "", "theme", "min_batch", "is missing; write min_batch = 1000 .a whole"),
    (", lifetime_epsilon = 50.0", "", "theme", "limits", "lacks lifetime_epsilon; must hold"),
    ('"unary.oue"', '"olh"', "theme", "mechanism", "must be one of auto, rr, grr"),
    ('"unary.oue"', '"rr"', "theme", "mechanism", "use grr"),
    ('"unary.oue"', "7", "theme", "mechanism", "must be one of auto, rr, grr"),
    ("expires = 2099-06-30", "expires = 2099-06-30T00:00:00", "theme", "expires", "write YYYY"),
    ("expires = 2099-06-30", 'expires = "soon"', "theme", "expires", "write YYYY-MM-DD"),
    ('"desktop@example.org"', '" "', "theme", "owner", "names the responsible person"),
    ('epoch = "day"', 'epoch = "year"', "theme", "epoch", "one of hour, day, week, 28d, month"),
    ("min_batch = 20", "min_batch = 9", "theme", "min_batch", r"in \[10, 1000000\]"),
    ("min_batch = 20", "min_batch = 20.5", "theme", "min_batch", "whole number"),
    (VALUES, "", "theme", "values", "needs its values"),
    ('"dark", "system"', '"light"', "theme", "values", "a value twice"),
    ('"dark", "system"', "7", "theme", "values", "list of texts"),
    ('"dark", "system"', '""', "theme", "values", "none empty"),
    ('"dark", "system"', '" "', "theme", "values", "a text of blanks only"),
    ('"light", "dark", "system"', '"alone"', "theme", "values", "write two or more values"),
    ('"light", "dark", "system"', " ", "theme", "values", "write two or more values"),
    ('"light", "dark", "system"', f'"{"x" * 1025}"', "theme", "values", "longer than 1024"),
    (VALUES, 'domain = "string"', "theme", "values", "needs its"),
    (VALUES, 'values_file = "no"', "theme", "values_file", "fix the file"),
    (VALUES, "values_file = 7", "theme", "values_file", "the path"),
    ('domain = "string"', 'values = ["a", "b"]', "homepage", "domain", "over strings"),
    ("bits = 16\n", "", "homepage", "bits", "is missing; write bits = 128 .* for rappor"),
    ("bits = 16", 'bits = "many"', "homepage", "bits", "a number, without quotes"),
    ("cohorts = 2", "cohorts = 0", "homepage", "cohorts", r"a whole number in \[1, 65536\]"),
    ("q = 0.8", "q = 0.99", "homepage", "epsilon", "raise epsilon, or randomize more"),
    ("q = 0.8", "q = 0.1", "homepage", "p", "break 0 <= p < q"),
    ("reports_per_epoch = 3", "reports_per_epoch = 0", "crashed", "limits", "reports_per_epoch"),
    ("lifetime_epsilon = 10.0", "lifetime_epsilon = 1", "crashed", "limits", "not below epsilon"),
    ("lifetime_epsilon = 10.0", "forever = 1", "crashed", "limits", "must hold"),
    ("min_batch = 20", "min_batch = 20\ncolour = 3", "theme", "colour", "is not known with"),
    ("tiers = [0.5, 1.0]", "tiers = [1.0, 0.5]", "crashed", "tiers", "must ascend"),
    ("tiers = [0.5, 1.0]", "tiers = [0.5, 0.5]", "crashed", "tiers", "must ascend"),
    ("tiers = [0.5, 1.0]", "tiers = [0.5, 2.0]", "crashed", "tiers", "below epsilon"),
    ("tiers = [0.5, 1.0]", "tiers = [0.0]", "crashed", "tiers", "must ascend from 0.0009765625"),
    ("tiers = [0.5, 1.0]", 'tiers = ["low"]', "crashed", "tiers", "write tiers ="),
    ("tiers = [0.5, 1.0]", "tiers = 0.5", "crashed", "tiers", "write tiers ="),
    ("bits = 16", "bits = 16\ntiers = [0.5]", "homepage", "tiers", "leave them out"),
    ("[metrics.theme]", "[metrics.Theme]", "Theme", "name", "rename the metric"),
    ("[metrics.theme]", "[metrics.'a|b']", "a|b", "name", "rename the metric"),
]
NUMBER = 'mechanism = "mean.piecewise"\ndomain = "number"\nlow = 0\nhigh = 100'
LISTED = 'mechanism = "grr"\nvalues = ["a", "b"]'


def _problems(text: str) -> str:
    with pytest.raises(CatalogInvalid) as caught:
        catalog_of(text)
    return str(caught.value)


@pytest.mark.parametrize(("old", "new", "metric", "field", "remedy"), WRONG)
def test_a_wrong_field_is_named_with_file_line_metric_and_remedy(
    old: str, new: str, metric: str, field: str, remedy: str
) -> None:
    assert old in CATALOG
    text = CATALOG.replace(old, new, 1)
    problem = _problems(text)
    pattern = (
        rf'metrics\.toml:(\d+): metric "{metric.replace("|", "[|]")}", field "{field}": .*{remedy}'
    )
    match = re.search(pattern, problem)
    assert match, problem
    line = text.splitlines()[int(match[1]) - 1]
    assert field in line or metric in line


@pytest.mark.parametrize(
    ("wrong", "more", "problem"),
    [
        ("[metric.tools]", "low = 1", 'field "metric": is not known here; did you mean "metrics"?'),
        ("[metrics.theme.tools]", "", 'metric "theme", field "tools": is not known with'),
        ("low = 9", "high = 1", 'metric "took", field "low": low 9 and high 1 are not a range'),
        ("low = 1", "", 'metric "took", field "high": with auto, a number needs low and high'),
        ("low = 1", "edges = [1, 2, 3]", 'metric "took", field "low": with auto, a number needs'),
    ],
)
def test_an_error_names_the_line_to_change(wrong: str, more: str, problem: str) -> None:
    """It named the mechanism, or the first line of the file."""
    number = metric_toml("took", mechanism="auto", kind="number", reports=9, epsilon=1.0)
    text = f"{CATALOG}{number if wrong.startswith('low') else ''}\n{wrong}\n{more}\n"
    header = "[metrics.took]" if "high" in problem.partition(":")[0] else wrong
    line = text.splitlines().index(header) + 1
    assert f"metrics.toml:{line}: {problem}" in _problems(text)


def test_all_problems_of_a_catalog_are_named_at_once() -> None:
    text = CATALOG.replace("min_batch = 20", "min_batch = 1")
    assert _problems(text).count("min_batch") == 4


@pytest.mark.parametrize("mechanism", ["", 'mechanism = "olh"\n', "mechanism = [1]\n"])
def test_a_wrong_mechanism_hides_no_other_fault(mechanism: str) -> None:
    text = (
        CATALOG.replace('mechanism = "unary.oue"\n', mechanism)
        .replace('"light", "dark"', '"dark", "dark"')
        .replace("epsilon = 1.0", "epsilon = 99\nhashes = 0\nvalue = 1", 1)
        .replace("expires = 2099-06-30", 'expires = "soon"', 1)
    )
    problems = _problems(text).splitlines()
    fields = [
        field_match[1] for line in problems if (field_match := re.search('field "(\\w+)"', line))
    ]
    assert sorted(fields) == ["epsilon", "expires", "hashes", "mechanism", "value", "values"]
    assert all('metric "theme"' in line for line in problems)


def test_a_mechanism_that_cannot_be_built_is_named_beside_other_faults() -> None:
    text = CATALOG.replace("q = 0.8", "q = 0.99").replace("min_batch = 20", "min_batch = 1")
    problems = _problems(text)
    assert problems.count("min_batch") == 4
    assert "raise epsilon, or randomize more" in problems
    assert len(problems.splitlines()) == 5


def test_a_wrong_metric_name_hides_no_other_fault() -> None:
    text = CATALOG.replace("[metrics.theme]", "[metrics.Theme]").replace(
        "min_batch = 20", "min_batch = 1", 1
    )
    problems = _problems(text).splitlines()
    assert len(problems) == 2
    assert "rename the metric" in problems[0]
    assert "min_batch" in problems[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'field "shuffler": is missing; write shuffler = "shuffler.example.org:'),
        ('shuffler = "a:1"', "add a \\[metrics.NAME\\] table"),
        (CATALOG.replace('"127.0.0.1:1"', '"nowhere"', 1), 'must be "HOST:PORT"'),
        ("colour = 1\n" + CATALOG, 'field "colour": is not known here'),
        ("shufler = 1\n" + CATALOG, 'is not known here; did you mean "shuffler"?'),
        (
            CATALOG.replace("min_batch", "minbatch", 1),
            r'oue"; did you mean "min_batch"\? docs/reference/catalog.md has every field\n',
        ),
        (
            CATALOG.replace("min_batch", "quux", 1),
            "known with mechanism = .unary.oue.; docs/reference/catalog.md has every field\n",
        ),
        (CATALOG + "\n[caps]\nepsilon_per_week = 9\n", 'in .caps.; did you mean "epsilon_per_'),
        (
            CATALOG.replace("owner", "ownr", 1),
            'is not known with mechanism = "unary.oue"; did you mean "owner"?',
        ),
        (CATALOG + "\n[metrics.theme]\n", r"\d: \[metrics.theme\] is there twice; rename or de"),
        ("keep = 1\nkeep = 2", "not TOML: line 2: keep is there twice; rename or delete one"),
        ('a = 1\na = """x\nSECRET"""', "line 3: what ends here is there twice; rename or delete"),
        ("shuffler = ", "not TOML"),
        ("keep = 1\nepsilon = 2,0", "not TOML: line 2: write a decimal point, as 2.0"),
        ("edges = [1,2 3]", "not TOML: Unclosed array"),
        ('owner = "a = 1,2', "not TOML: Illegal character"),
        ("owner = \u201cme\u201d", 'not TOML: line 1: write straight quotes, "'),
        ('shuffler = "a:1"\nmetrics = 3', "add a \\[metrics.NAME\\] table"),
        ('shuffler = "a:1"\nmetrics.a = 3', "must be a table"),
    ],
)
def test_a_wrong_document_is_refused(text: str, problem: str) -> None:
    assert re.search(problem, _problems(text))


@pytest.mark.parametrize(
    ("fields", "when", "problem"),
    [
        (LISTED, "share of z above .1", "'z' is not one .* as a, b"),
        (LISTED, "share of a above 10", "a share is; write 0.1 for 10%$"),
        ('mechanism = "grr"\nkind = "count"\nedges = [0, 5, 9]', "mean above 5", 'write "p50'),
        (NUMBER, "share of a above .1", "numbers have no shares"),
        (NUMBER, "mean below 250", "a mean is from 0 to 100, so 'mean below 250' is always true"),
        (NUMBER, "mean above nan", "its number is outside the numbers"),
        (NUMBER, "p95 above 5", "only numbers with buckets have percentiles"),
        (
            'mechanism = "grr"\nkind = "count"\nedges = [0, 5, 10]',
            "p95 above 50",
            "a percentile is from 0 to 10",
        ),
    ],
)
def test_an_impossible_or_constant_alert_is_named_with_its_field(
    fields: str, when: str, problem: str
) -> None:
    text = catalog_toml(metric_toml("a", fields, epsilon=1.0, alert={"when": when}))
    line = text.splitlines().index(f'alert = {{ when = "{when}" }}') + 1
    assert re.search(f':{line}: metric "a", field "alert": .*{problem}', _problems(text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogInvalid, match=r"absent\.toml: cannot be read: No such file"):
        read_catalog(tmp_path / "absent.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogInvalid, match="line 1: is UTF-16 or UTF-32; save it as UTF-8"):
        read_catalog(binary)


def test_values_may_come_from_a_file_plain_or_packed(tmp_path: Path) -> None:
    (tmp_path / "themes.txt").write_text("light\ndark\nsystem\n")
    (tmp_path / "themes.txt.gz").write_bytes(gzip.compress(b"light\ndark\nsystem\n"))
    plain = CATALOG.replace(VALUES, 'values_file = "themes.txt"')
    for text in (plain, plain.replace("themes.txt", "themes.txt.gz")):
        path = tmp_path / "metrics.toml"
        path.write_text(text)
        assert read_catalog(path).metrics["theme"].values == ("light", "dark", "system")


def test_a_metric_codes_its_values_and_shows_none_it_refuses() -> None:
    metrics = catalog_of(CATALOG).metrics
    assert metrics["theme"].code("dark") == 1
    assert metrics["homepage"].code("a.example") == "a.example"
    for name, value in (("theme", "secret-77"), ("theme", 1), ("theme", ["x"]), ("homepage", 7)):
        with pytest.raises(ValueOutOfDomain) as caught:
            metrics[name].code(value)
        assert str(value) not in str(caught.value).replace("its 3 values", "")


def test_a_minimum_batch_must_fit_one_message(signed: Signed) -> None:
    homepage = signed.bundle.metric("homepage")
    with pytest.raises(BadParameter, match=r"are 64\.8 MiB, above 64; lower min_batch"):
        replace(homepage, min_batch=1_000_000)
    assert replace(homepage, min_batch=700_000).min_batch == 700_000


def test_a_description_of_several_lines_is_shown_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    several_lines = 'description = """Theme\n  in\n\tuse """'
    path.write_text(CATALOG.replace(f'description = "{ONE_LINE}"', several_lines))
    assert read_catalog(path).metrics["theme"].description == "Theme in use"
