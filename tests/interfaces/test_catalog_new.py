"""`hubbub catalog new` writes metrics that pass the check, and changes nothing that is there."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docs.reference.catalog_schema import catalog_schema
from hubbub.authoring import Catalog, read_catalog
from hubbub.cli.main import main
from hubbub.cli.terminal.catalog_reading import read_aloud
from tests.support.commands import output_of

DESCRIBED = "--description 'Asked \"so\"' --owner a@example.org"
DESCRIPTION_OPTIONS = shlex.split(DESCRIBED)


@pytest.fixture
def new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(name: str, *options: str) -> tuple[int, str]:
        words = ["catalog", "new", name, "--catalog", str(tmp_path / "metrics.toml"), *options]
        try:
            code = main(words)
        except SystemExit as ended:  # of the parser
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def test_metrics_are_written_with_their_meanings(
    new: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    assert new("theme", *DESCRIPTION_OPTIONS, "--values", "light, dark")[0] == 0
    first = (tmp_path / "metrics.toml").read_text()
    assert first.startswith("#:schema ./metrics.schema.json\n")
    assert "# Largest privacy loss of one report, in nats.\nepsilon = 1.0\n" in first
    assert json.loads((tmp_path / "metrics.schema.json").read_text()) == json.loads(
        json.dumps(catalog_schema())
    )
    assert new("on.time", *DESCRIPTION_OPTIONS, "--values", "true,false", "--epoch", "week")[0] == 0
    assert new("wait", *DESCRIPTION_OPTIONS, "--range", "-0.5", "1234567", "--unit", "ms")[0] == 0
    assert (tmp_path / "metrics.toml").read_text().startswith(first)
    metrics = read_catalog(tmp_path / "metrics.toml").metrics
    assert metrics["theme"].values == ("light", "dark")
    assert metrics["theme"].description == 'Asked "so"'
    assert metrics["on.time"].values == ("false", "true")
    assert metrics["wait"].parameters == {"low": -0.5, "high": 1_234_567.0}
    assert metrics["wait"].unit == "ms"


def test_catalog_new_chooses_buckets_by_its_options(
    new: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    sixty = (*DESCRIPTION_OPTIONS, "--range", "0", "60", "--epsilon", "2")
    for name, reports in (("few", "1000"), ("many", "1000000")):
        assert new(name, *sixty, "--percentiles", "--reports", reports)[0] == 0
    assert new("own", *sixty, "--percentiles", "p50,99")[0] == 0
    assert new("cut", *DESCRIPTION_OPTIONS, "--edges", "0,1,9", "--percentiles", "90")[0] == 0
    assert new("single", *sixty, "--buckets", "12")[0] == 0
    metrics = read_catalog(tmp_path / "metrics.toml").metrics
    mechanisms = {name: metric.mechanism for name, metric in metrics.items()}
    by_edges = {"single": "grr", "cut": "rr"}
    assert mechanisms == {"few": "wave", "many": "haar", "own": "haar", **by_edges}
    assert [metrics[name].percentiles for name in ("few", "own", "cut")] == [(), (50, 99), (90,)]
    assert metrics["many"].parameters == {"low": 0.0, "high": 60.0, "buckets": 64}
    assert metrics["single"].edges == tuple(range(0, 61, 5))
    assert new("nothing", *sixty, "--buckets", "0")[0] == 2
    for low, high in (("0", "1e308"), ("-1e308", "1e308"), ("0", "5e-324")):
        for more in (["--percentiles"], ("--buckets", "20"), ()):
            code, text = new("far", *DESCRIPTION_OPTIONS, "--range", low, high, *more)
            assert (code, "more than floats can square" in text) == (2, True), text
    for options, problem in (
        (("--boolean", "--percentiles"), "--percentiles: only with --edges and --range;"),
        (("--edges", "0,1,9", "--percentiles"), "--percentiles with --edges needs numbers"),
        ((*sixty[-5:], "--percentiles", "99,50"), "--percentiles: must be a list of ascending"),
    ):
        code, text = new("none", *DESCRIPTION_OPTIONS, *options)
        assert (code, problem in text) == (2, True), text


def test_catalog_new_writes_kinds_that_the_check_accepts(
    new: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    assert new("seen", *DESCRIPTION_OPTIONS, "--boolean")[0] == 0
    assert new("tabs", *DESCRIPTION_OPTIONS, "--kind", "count", "--edges", "0,1,5,10")[0] == 0
    assert (
        new("crashes", *DESCRIPTION_OPTIONS, "--rate", "crashed", "started", "--most", "50")[0] == 0
    )
    steps = ("--edges", "1:1000:3", "--unit", "ms", "--refuse")
    assert new("wait", *DESCRIPTION_OPTIONS, "--kind", "duration", *steps)[0] == 0
    assert new("editor", *DESCRIPTION_OPTIONS, "--values", "vi,emacs", "--other")[0] == 0
    assert new("warmer", *DESCRIPTION_OPTIONS, "--edges", "-10,0,1e1", "--unit", "K")[0] == 0
    assert new("colder", *DESCRIPTION_OPTIONS, "--range", "-1e3", "-.5")[0] == 0
    for name in ("saved", "liked"):
        assert new(name, *DESCRIPTION_OPTIONS, "--boolean", "--experiment", "menu")[0] == 0
    arms = ("--experiment", "colours", "--arms", "old=3,new=1,newer=1")
    assert new("kept", *DESCRIPTION_OPTIONS, "--boolean", *arms)[0] == 0
    code, error = new(
        "again", *DESCRIPTION_OPTIONS, "--boolean", "--experiment", "menu", "--arms", "a=1,b=1"
    )
    assert code == 2
    assert 'the catalog already has experiment "menu" with arms' in error
    metrics = read_catalog(tmp_path / "metrics.toml").metrics
    experiments = [metrics[name].experiment for name in ("saved", "liked", "kept")]
    assert [own_arms.arms for own_arms in experiments if own_arms] == [
        *[{"control": 1, "new": 1}] * 2,
        {"old": 3, "new": 1, "newer": 1},
    ]
    assert metrics["warmer"].values == ("below 0 K", "0 K or more")
    assert metrics["colder"].parameters == {"low": -1000.0, "high": -0.5}
    assert metrics["crashes"].parameters["max_length"] == pytest.approx(50 * 2**0.5)
    assert metrics["seen"].values == ("false", "true")
    assert metrics["tabs"].values == ("0", "1 to 4", "5 or more")
    assert metrics["wait"].values == ("1 to 10 ms", "10 to 100 ms", "100 to 1000 ms")
    assert metrics["editor"].values == ("vi", "emacs", "other")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (f"theme {DESCRIBED} --values a,b", "already has a metric"),
        (f"Theme {DESCRIBED} --values a,b", "choose another"),
        (f"other {DESCRIBED} --values a,a", "lists a value twice"),
        (f"other {DESCRIBED} --steps a,a", "remove one; write --steps visit,cart,paid\n"),
        (f"other {DESCRIBED} --steps '[\"a\"],b'", "; write --steps visit,cart,paid\n"),
        (f"other {DESCRIBED} --rate a {{b}}", "; write --rate crashed started --most 20\n"),
        (f"other {DESCRIBED} --rate a a", "rename one; write --rate crashed started --most 20\n"),
        (f"other {DESCRIBED} --edges 0:100:4", "within 1e100; above 0 also LOW:HIGH:PARTS\n"),
        (
            f"other {DESCRIBED} --boolean --experiment m --arms control=1",
            "hubbub: --arms: has 1 of 2 to 10 arms; write --arms control=1,new=1\n",
        ),
        (f"other {DESCRIBED} --boolean --arms control=1,new=1", "--arms goes with --experiment"),
        (
            f"other {DESCRIBED} --boolean --reports 9",
            "waits for 10: choose a longer --epoch with more --reports, or give --min-batch\n",
        ),
        (f"other {DESCRIBED} --boolean --most 20", "--most goes with --rate"),
        (f"other {DESCRIBED} --values light", "hubbub: --values has only one value; write two"),
        (f"other {DESCRIBED} --boolean --most 5", "--most goes with --rate"),
        (f"other {DESCRIBED} --rate a b --most 0", "hubbub: --rate: most must be"),
        (f"other {DESCRIBED} --steps visit", "hubbub: --steps has only one value; write two"),
        (f"other {DESCRIBED} --steps a,,b", "--steps has an empty value; write two or more"),
        (f"other {DESCRIBED} --values ''", "hubbub: --values has an empty value; write two"),
        (f"other {DESCRIBED} --retention 0", "whole number in [1, 52]; write --retention 8\n"),
        (
            f"other {DESCRIBED} --boolean --unit ms --other --refuse",
            "--unit, --refuse: only with --edges and --range; --other: only with --values; leave",
        ),
        (
            f"other {DESCRIBED} --values a,b --kind duration --unit ms",
            "--kind duration, --unit: only with --edges and --range; leave out",
        ),
        (f"other {DESCRIBED} --range 1 5 --other", "--other: only with --values; leave"),
        (f"other {DESCRIBED} --edges 1,1", "hubbub: --edges: must be a list of 3 to 257"),
        (f"other {DESCRIBED} --range 1 5 --epsilon 99", "hubbub: --epsilon 99 is outside"),
        (f"other {DESCRIBED} --values a,b --expires 2020-01-01", "2020-01-01 is past"),
        (f"other {DESCRIBED} --values a,b --epsilon x", "--epsilon: 'x' is not a number"),
        (f"other {DESCRIBED} --values a,b --reports inf", "--reports: 'inf' is not a whole number"),
        (f"other {DESCRIBED} --range nan 5", "--range: must be a number"),
        (f"other {DESCRIBED} --range 0 inf", "--range: must be a number and a larger number"),
        (f"other {DESCRIBED} --range 5 -5", "--range: must be a number and a larger number"),
        (
            f"other {DESCRIBED} --values a,b --epsilon nan",
            "hubbub: --epsilon nan is outside [0.000976562, 16]\n",
        ),
        (f"other {DESCRIBED} --values a,b --expires soon", "write YYYY-MM-DD"),
        (f"other {DESCRIBED} --values a,b --shuffler a:1", "leave it out"),
        (
            f"other {DESCRIBED}",
            "--boolean, --values A,B, --edges LOW:HIGH:PARTS or --range LOW HIGH",
        ),
        (f"other {DESCRIBED}", 'mechanism = "tree": docs/discover.md'),
        ("other --values a,b", "--description is needed"),
        (f"other {DESCRIBED} --boolean --experiment M", "--experiment: must match"),
        (f"other {DESCRIBED} --boolean --arms a=1,b=1", "--arms goes with --experiment"),
        (
            f"other {DESCRIBED} --boolean --experiment m --arms a,b",
            "--arms: write names with weights, whole numbers from 0 on, as control=1,new=1",
        ),
        (f"other {DESCRIBED} --boolean --experiment m --arms a=0,b=0", "sums to 0"),
        (f"other {DESCRIBED} --boolean --experiment m --arms a=1,a=2", "--arms names an arm twice"),
    ],
)
def test_catalog_new_writes_nothing_that_the_check_would_refuse(
    new: Callable[..., tuple[int, str]], tmp_path: Path, options: str, message: str
) -> None:
    assert new("theme", *DESCRIPTION_OPTIONS, "--values", "light,dark")[0] == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, printed = new(*shlex.split(options))
    assert code == 2
    assert message in printed
    assert ".metrics.toml." not in printed
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_address_of_a_shuffler_is_refused_in_the_form_of_the_command_line(
    new: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    options = (*DESCRIPTION_OPTIONS, "--boolean", "--shuffler", "here")
    code, printed = new("theme", *options)
    assert (code, "; write --shuffler shuffler.example.org:" in printed) == (2, True)
    assert printed.startswith("hubbub: --shuffler: must be")
    assert not [*tmp_path.iterdir()]


def test_an_error_of_the_file_keeps_its_line(
    new: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    catalog = tmp_path / "metrics.toml"
    catalog.write_text('shuffler = "here"\n[experiments.m]\narms = { control = 1 }\n')
    code, printed = new("theme", *DESCRIPTION_OPTIONS, "--boolean", "--experiment", "m")
    assert code == 2
    assert f'{catalog}:1: field "shuffler"' in printed
    assert f'{catalog}:3: experiment "m", field "arms"' in printed


def test_on_a_terminal_catalog_new_asks_for_missing_options(
    new: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: Iterator[str] = iter(["What it is", "", "a@example.org", "yes,no"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    assert new("asked")[0] == 0
    metric = read_catalog(tmp_path / "metrics.toml").metrics["asked"]
    assert (metric.description, metric.owner) == ("What it is", "a@example.org")
    assert metric.values == ("yes", "no")
    assert next(answers, None) is None


def test_an_ended_input_at_the_unit_question_omits_the_unit(
    new: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_input(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", end_input)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    assert new("wait", *DESCRIPTION_OPTIONS, "--range", "0", "5")[0] == 0
    assert not read_catalog(tmp_path / "metrics.toml").metrics["wait"].unit


def test_each_missing_setting_is_listed_on_a_line(new: Callable[..., tuple[int, str]]) -> None:
    code, printed = new("theme", "--owner", "a@example.org")
    assert code == 2
    first, *lines = printed.splitlines()
    assert first == "hubbub: there is no terminal to ask on, so these options are needed:"
    assert [line.split(" is ")[0].strip() for line in lines] == [
        "--description",
        "one of --boolean, --values A,B, --edges LOW:HIGH:PARTS or --range LOW HIGH",
    ]


def test_a_rate_that_is_answered_no_better_than_a_guess_has_a_warning(
    new: Callable[..., tuple[int, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rate = (*DESCRIPTION_OPTIONS, "--rate", "crashed", "started")
    warning = (
        "warning: crashes: with 10,000 reports a rate of 20% at 5 started a device has an interval "
        "of +-29%: raise epsilon, lower most, or expect 81,716 reports for +-10%"
    )
    code, text = new("crashes", *rate)
    assert (code, warning in " ".join(text.split())) == (0, True), text
    assert "warning" not in new("more", *rate, "--epsilon", "2", "--reports", "110000")[1]
    shown = output_of(capsys, "catalog", "check", str(tmp_path / "metrics.toml"))
    shown = " ".join(shown.split())
    assert warning in shown
    assert "1 warning" in shown


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (("--activity",), ""),
        (("--retention", "52"), ""),
        (
            ("--boolean", "--experiment", "menu", "--arms", "old=19,new=1"),
            "500 expected reports of arm new in an epoch never leave the shuffler, which waits for",
        ),
    ],
)
def test_warnings_of_the_check_are_given_at_once_and_none_of_a_default(
    new: Callable[..., tuple[int, str]], options: tuple[str, ...], warning: str
) -> None:
    code, printed = new("it", *DESCRIPTION_OPTIONS, *options)
    _, _, warnings = " ".join(printed.split()).partition("warning: ")
    assert (code, warnings[: 4 + len(warning)]) == (0, warning and f"it: {warning}"), printed


def test_check_warns_of_expected_reports_that_never_leave(
    new: Callable[..., tuple[int, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, reports in (("rare", "999"), ("often", "1000")):
        options = (*DESCRIPTION_OPTIONS, "--boolean", "--reports", reports, "--min-batch", "1000")
        assert new(name, *options)[0] == 0
    printed = output_of(capsys, "catalog", "check", str(tmp_path / "metrics.toml"))
    assert "warning: rare: 999 expected reports in an epoch never leave the shuffler" in printed
    assert "warning: often" not in printed


@pytest.mark.parametrize("existing", [True, False])
def test_a_metric_that_is_added_meanwhile_is_not_lost(
    new: Callable[..., tuple[int, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    existing: bool,
) -> None:
    path, boolean = tmp_path / "metrics.toml", (*DESCRIPTION_OPTIONS, "--boolean")
    if existing:
        assert new("first", *boolean)[0] == 0

    def read_while_another_command_writes(path: Path, text: str) -> Catalog:
        monkeypatch.undo()
        assert new("other", *boolean)[0] == 0
        return read_aloud(path, text)

    monkeypatch.setattr(
        "hubbub.cli.commands.catalog_new_metric.read_aloud", read_while_another_command_writes
    )
    code, text = new("theme", *boolean)
    assert code == 2
    assert "something else changed it meanwhile, so nothing was written; repeat" in text
    assert new("theme", *boolean)[0] == 0
    assert read_catalog(path).metrics.keys() >= {"other", "theme"}
