"""mechanism = "auto": what is chosen, why, and that the bundle tells."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import auto_mechanism, read_catalog
from hubbub.authoring.auto_mechanism import choose
from hubbub.bundles import read_bundle
from hubbub.catalog.metric import Metric
from hubbub.cli.main import main
from hubbub.errors import BadParameter, CatalogInvalid
from hubbub.mechanisms import build
from hubbub.signing.metric_changes import continued_metric
from tests.support.bundles import make_signed
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of


def _text(more: str, epsilon: float = 1.0) -> str:
    return catalog_toml(metric_toml("asked", more, mechanism="auto", epsilon=epsilon))


def _catalog(folder: Path, more: str, epsilon: float = 1.0) -> Path:
    path = folder / "metrics.toml"
    path.write_text(_text(more, epsilon))
    return path


@pytest.mark.parametrize(
    ("epsilon", "categories", "options", "best"),
    [
        (1.0, 2, {}, "rr"),
        (3.0, 10, {}, "grr"),  # d < 3e + 2
        (1.0, 18, {}, "subset"),  # 3 bytes, and 10% less variance than one index
        (1.0, 1000, {}, "projective"),  # as good as 125 bytes, in 2
        (1.0, 1 << 20, {}, "projective"),
        (1.0, 18, {"max_payload_bytes": 1}, "projective"),
        (1.0, 1 << 20, {"max_cells": (1 << 21) + 1}, "hadamard"),
        (1.0, 18, {"permanent_epsilon": 3.0}, "long.hash"),  # 6% less variance, in a byte
        (1.0, 1000, {"permanent_epsilon": 3.0}, "long.unary"),  # 64 functions hash it too roughly
        (4.0, 5, {"permanent_epsilon": 8.0}, "long.grr"),
        (0.5, None, {"low": 0, "high": 10}, "mean.one_bit"),
        (0.7, None, {"low": 0, "high": 10}, "mean.table"),
        (4.0, None, {"low": 0, "high": 10}, "mean.table"),
    ],
)
def test_the_best_is_chosen(
    epsilon: float, categories: int | None, options: dict[str, Any], best: str
) -> None:
    choice = choose(epsilon, categories, {"reports": 100_000, **options})
    assert choice.best.mechanism == best
    assert choice.runner_up is None or choice.best.stderr**2 <= 1.05 * choice.runner_up.stderr**2


@pytest.mark.parametrize(
    ("more", "mechanism"),
    [
        ('domain = "string"', "tree"),
        ('domain = "string"\nreports = 9\nbits = 48', "tree"),
        ('domain = "string"\ncandidates = "known.txt"', "hcms"),
        ('kind = "set"\nvalues = ["a", "b"]\nmost = 1', "privset"),
        ('parts = { a = ["x", "y"], b = ["x", "y"] }', "pairs"),
    ],
)
def test_auto_is_the_only_suitable_mechanism(tmp_path: Path, more: str, mechanism: str) -> None:
    (tmp_path / "known.txt").write_text("vim\nemacs\n")
    [metric] = read_catalog(_catalog(tmp_path, more)).metrics.values()
    assert metric.mechanism == mechanism
    text = f"chosen for 9 reports: {mechanism} (" if "reports = 9" in more else "None"
    assert str(metric.choice).startswith(text)


@pytest.mark.parametrize(
    ("epsilon", "more", "mechanism"),
    [
        (1.0, "reports = 2000\nbuckets = 64", "wave"),
        (1.0, "reports = 300_000\nbuckets = 64", "haar"),
        (0.5, "reports = 100_000\nbuckets = 32", "haar"),
        (2.0, "reports = 1_000_000\nbuckets = 16", "wave"),
        (4.0, "reports = 1_000_000\nbuckets = 64", "wave"),
        (4.0, "reports = 10_000_000\nbuckets = 1024", "haar"),
        (2.0, "percentiles = [50]\nreports = 3000\nbuckets = 64", "wave"),
        (2.0, "percentiles = [99]\nreports = 3000\nbuckets = 64", "haar"),
        (1.0, "central_epsilon = 1.0\ncrowd = 500_000\nbuckets = 16", "wave"),
    ],
)
def test_auto_chooses_haar_for_percentiles_of_many_reports_or_near_an_end(
    epsilon: float, more: str, mechanism: str
) -> None:
    text = _text(f"kind = 'duration'\nunit = 's'\nlow = 0\nhigh = 60\n{more}", epsilon)
    if "crowd" in more:
        text = text.replace("min_batch = 100\n", "").replace(f"epsilon = {epsilon}\n", "", 1)
    metric = promised_catalog_of(text).metrics["asked"]
    size = int(more.partition("buckets = ")[2])
    assert metric.mechanism == mechanism
    assert (metric.choice is None) == ("crowd" in more)
    assert metric.parameters == {"low": 0, "high": 60, "buckets": size}


def test_auto_chooses_between_wave_and_haar_within_the_limits(tmp_path: Path) -> None:
    number = "kind = 'number'\nlow = 0\nhigh = 60\nreports = 300_000\nbuckets = 64"
    free, limited = (
        read_catalog(_catalog(tmp_path, f"{number}\n{limit}")).metrics["asked"]
        for limit in ("", "max_cells = 100")
    )
    assert (free.mechanism, limited.mechanism) == ("haar", "wave")
    haar, wave = (
        f"{name} (standard error {error}, 1 byte a report)"
        for name, error in (("haar", "2,077"), ("wave", "3,615"))
    )
    assert str(free.choice) == f"chosen for 300,000 reports: {haar}; next {wave}"
    assert str(limited.choice) == f"chosen for 300,000 reports: {wave}"


def test_wave_and_haar_stay_as_signed_for_any_expected_reports(
    tmp_path: Path,
) -> None:
    def metric_of(reports: int) -> Metric:
        number = f"reports = {reports}\nkind = 'number'\nlow = 0\nhigh = 60\nbuckets = 64"
        return read_catalog(_catalog(tmp_path, number)).metrics["asked"]

    few, many = metric_of(2000), metric_of(300_000)
    assert (few.mechanism, many.mechanism) == ("wave", "haar")
    assert continued_metric(many, few) == few
    # Signed by a version that recorded no choice for percentiles.
    former = replace(few, choice=None)
    assert continued_metric(many, former) == former
    # A mechanism that the catalog names is never replaced.
    named = replace(many, choice=None)
    assert continued_metric(named, few) == named


def test_the_figures_are_the_mechanisms_own() -> None:
    choice = choose(1.0, 18, {"reports": 90_000})
    for option in (choice.best, choice.runner_up):
        assert option is not None
        mechanism = build(option.mechanism, epsilon=1.0, categories=18)
        # Linear in what holds the value: the mean over all values, whatever the answers are.
        shares = [0.5, 0.3, 0.2] + [0.0] * 15
        errors = [mechanism.variance(90_000 * share, 90_000) for share in shares]
        assert abs(option.stderr**2 / (sum(errors) / 18) - 1) < 1e-9
        assert option.payload_bytes == mechanism.layout.payload_bytes
        assert option.cells == mechanism.layout.size


def test_the_bundle_contains_the_choice_and_the_runner_up(tmp_path: Path) -> None:
    listed = 'reports = 5000\nvalues = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]'
    signed = make_signed(tmp_path, _text(listed), start=1_800_000_000)
    metric = read_catalog(signed.path.with_name("metrics.toml")).metrics["asked"]
    assert metric.choice is not None
    assert metric.mechanism == metric.choice.best.mechanism
    shipped = signed.bundle.metric("asked")
    assert shipped.choice == metric.choice
    assert shipped.mechanism == metric.mechanism
    message_text = str(shipped.choice)
    assert message_text.startswith(f"chosen for 5,000 reports: {metric.mechanism} (standard error ")
    assert "; next " in message_text
    number = "reports = 5000\ndomain = 'number'\nlow = 0\nhigh = 24.5"
    mean = read_catalog(_catalog(tmp_path, number, 4.0)).metrics["asked"]
    assert mean.mechanism == "mean.table"
    assert mean.randomizer == build("mean.table", epsilon=4.0, low=0, high=24.5)


def test_a_mean_that_was_signed_keeps_its_mechanism(tmp_path: Path) -> None:
    """A version that knows a better mechanism signs the same question on as it was."""

    def metric_of(high: float, epsilon: float = 4.0) -> Metric:
        number = f"reports = 5000\ndomain = 'number'\nlow = 0\nhigh = {high}"
        return read_catalog(_catalog(tmp_path, number, epsilon)).metrics["asked"]

    metric = metric_of(24.5)
    assert metric.choice
    assert metric.choice.runner_up
    assert metric.choice.runner_up.mechanism == "mean.piecewise"
    choice = replace(metric.choice, best=metric.choice.runner_up, runner_up=metric.choice.best)
    before = replace(metric, mechanism="mean.piecewise", choice=choice)
    assert continued_metric(metric, before) == before
    for other in (metric_of(25.0), metric_of(24.5, 3.0)):  # a new question, which needs a new name
        assert continued_metric(other, before) == other


@pytest.mark.slow
def test_a_build_names_the_mechanism_that_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = "reports = 5000\ndomain = 'number'\nlow = 0\nhigh = 24.5"
    build_it = ["catalog", "build", str(_catalog(tmp_path, number, 4.0))]
    build_it += ["--keys", str(tmp_path / "keys"), "--out", str(tmp_path / "app.hubbub")]
    build_it += ["--streams", str(tmp_path / "streams.json")]
    assert main(["keys", "new", str(tmp_path / "keys")]) == 0
    with monkeypatch.context() as before:
        before.setattr(auto_mechanism, "names_of", lambda *_: ("mean.one_bit", "mean.piecewise"))
        assert main(build_it) == 0
    assert "keeps" not in capsys.readouterr().out
    check_it = ["catalog", "check", build_it[2]]
    assert main(check_it) == 0
    assert "chosen for 5,000 reports: mean.table" in capsys.readouterr().out
    kept = "asked: keeps mean.piecewise, as signed before; under a new name auto chooses mean.table"
    last = ("--previous", str(tmp_path / "app.hubbub"))
    assert main([*check_it, *last]) == 0
    output = capsys.readouterr().out
    assert kept in output
    assert "chosen for 5,000 reports: mean.piecewise" in output
    (tmp_path / "values.csv").write_text("12\n" * 1000)
    simulate_it = ["simulate", "asked", "--catalog", build_it[2], "--runs", "2"]
    for command in (
        ["privacy", "card", build_it[2]],
        ["audit", build_it[2], "--no-proofs", "--samples", "1000"],
        ["plan", "attack", build_it[2]],
        [*simulate_it, "--values", str(tmp_path / "values.csv")],
    ):
        assert main([*command, *last]) == 0
        assert kept in capsys.readouterr().err
    assert main(build_it) == 0
    assert kept in capsys.readouterr().out
    signed = read_bundle(tmp_path / "app.hubbub").metric("asked")
    assert signed.randomizer == build("mean.piecewise", epsilon=4.0, low=0, high=24.5)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('values = ["a", "b"]', 'field "reports": is missing; write reports = 100_000'),
        ('values = ["a", "b"]\nreports = 0', '"reports": must be a whole number in [1, 10,000,0'),
        ('values = ["a", "b"]\nreports = 1.5', '"reports": must be a whole number in [1, 10,000,0'),
        ('values = ["a", "b"]\nreports = 9\nlow = 1', "with auto, a number needs low and high"),
        ("domain = 'number'\nreports = 9\nlow = 1", "correct high"),
        ("domain = 'number'\nreports = 9\nlow = 1\nbuckets = 9", "correct high"),
        ('values = ["a", "b"]\nreports = 9\nbuckets = 2', "correct buckets"),
        (
            'values = ["a", "b"]\nreports = 9\npercentiles = [50]',
            'field "percentiles": only numbers with buckets have percentiles',
        ),
        (
            "domain = 'number'\nreports = 9\nlow = 1\nhigh = 9\nbuckets = 9\npercentiles = [0.5]",
            "percentiles in [1, 100), such as [50, 90], not [0.5, 0.9]",
        ),
        (
            "domain = 'number'\nreports = 9\nlow = 1\nhigh = 9\nbuckets = 9\npercentiles = []",
            'field "percentiles": must be a list of ascending percentiles in [1, 100)',
        ),
        (
            "domain = 'number'\nreports = 9\nlow = 1\nhigh = 9\nbuckets = 1025",
            'field "buckets": must be a whole number in [2, 1024]',
        ),
        (
            'kind = "number"\nreports = 9\nlow = 1\nhigh = 9\nbuckets = 999\nmax_payload_bytes = 1',
            'field "max_payload_bytes": wave needs 2; raise it, or lower buckets',
        ),
        ("domain = 'text'\nreports = 9", 'auto is over numbers; write domain = "number"'),
        ('values = ["a", "b"]\nreports = 9\nmax_cells = 1', "raise max_payload_bytes or max_cells"),
        (
            'values = ["a", "b"]\nreports = 9\nhashes = 1',
            'field "hashes": is not known with mechanism = "auto", only for ',
        ),
        ('values = ["a", "b"]\nreports = 9\npermanent_epsilon = 0.5', "is not below"),
    ],
)
def test_auto_names_why_no_mechanism_fits(tmp_path: Path, more: str, says: str) -> None:
    with pytest.raises(CatalogInvalid) as caught:
        read_catalog(_catalog(tmp_path, more))
    assert says in str(caught.value)


def test_auto_needs_the_expected_reports() -> None:
    with pytest.raises(BadParameter, match="reports None must be"):
        choose(1.0, 5, {})
