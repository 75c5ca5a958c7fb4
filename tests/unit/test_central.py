"""Central promises in the catalog: worked out, checked, dumped, loaded, told to the shuffler."""

import json
import re
import tomllib
from dataclasses import replace
from functools import cache
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from scipy.stats import binom

from docs.reference.catalog_schema import catalog_schema
from hubbub.authoring import read_with_promises
from hubbub.authoring.crowds.accountant import devices_at_least, expected_dummies, named_dummies
from hubbub.bundles import Bundle, read_bundle
from hubbub.catalog import Metric
from hubbub.catalog.crowds.crowd import Crowd
from hubbub.catalog.crowds.noise_dummies import MAX_SEALED, count_noise, value_noise
from hubbub.cli.main import main
from hubbub.cli.terminal import output
from hubbub.errors import BadParameter, BundleRefused, CatalogInvalid
from hubbub.keys.operator_key import read_operator_key
from hubbub.mechanisms import Totals, build
from hubbub.privacy.card import metric_card
from hubbub.privacy.crowd_guarantees import central_of, crowds_of
from hubbub.privacy.exact_accountant import what_decides
from hubbub.privacy.fewest_dummies import best_dummies
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.shuffled_histogram import central_epsilon, largest_local
from hubbub.signing.metric_changes import refuse_changes
from hubbub.signing.sign_bundle import sign_bundle, stream_table
from hubbub.simulation.rehearsal import as_window
from tests.conftest import CATALOG
from tests.support.bundles import DAY, crowd_text, make_signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml, promised_catalog_of
from tests.support.commands import Capture, document_of, output_of, refusal_of
from tests.support.crowds import crowd_in, crowd_of, with_crowd

# To plan a crowd takes a quarter of a second, of whichever test comes first.
pytestmark = pytest.mark.slow

HEAD = 'shuffler = "127.0.0.1:1"\n'
THEME = crowd_text(30_000)
ALONE = THEME.replace("central_epsilon = 1.0\ncrowd = 30000", "epsilon = 1.0\nmin_batch = 100")
ALONE = ALONE.replace('"auto"', '"grr"')
NUMBER = 'domain = "number"\nlow = 0\nhigh = 9'
PARTS = 'parts = { a = ["r", "s", "t"], b = ["u", "v", "w"], c = ["x", "y"], d = [true, false] }'
VALUES = 'values = ["light", "dark", "system", "contrast"]'
NOISE = "dummies_scale = 2.02\ndummies_shift = 61\n"


def _read(folder: Path, text: str) -> Metric:
    whole = HEAD * ("shuffler =" not in text) + text
    (folder / "metrics.toml").write_text(whole)
    return _metric(whole)


@cache  # many tests begin with the same text, and its promise takes long
def _metric(text: str) -> Metric:
    return promised_catalog_of(text).metrics["theme"]


def _in_bundle(folder: Path, metric: Metric) -> Bundle:
    """A bundle that a metric alone is in."""
    folder.mkdir(exist_ok=True)
    signed = make_signed(folder, HEAD + ALONE, start=0)
    return replace(signed.bundle, metrics={"theme": metric}, history={"theme": metric.digest()})


@pytest.mark.parametrize(("reports", "honest"), [(1, 1.0), (1000, 0.0019)])
def test_the_only_honest_person_of_a_crowd_has_the_local_epsilon(
    reports: int, honest: float
) -> None:
    alone = crowd_of(reports, 4, 1.0, honest=honest)
    assert alone.others == 0
    assert central_epsilon(alone, 1e-9) == pytest.approx(1.0, rel=1e-3)
    assert crowd_of(1000, 4, 1.0, honest=0.8).others == 799


def test_the_largest_local_epsilon_that_keeps_the_promise_is_found(tmp_path: Path) -> None:
    metric = _read(tmp_path, THEME)
    assert (metric.mechanism, metric.min_batch, metric.mix) == ("grr", 30_000, "epoch")
    assert 0.99 <= central_of(metric, 30_000).epsilon <= 1.0
    rolling = _read(tmp_path, THEME + "rolling = true\n")
    assert (rolling.mix, rolling.epsilon) == ("rolling", metric.epsilon)
    assert _read(tmp_path, THEME + "honest = 1.0\n").epsilon > metric.epsilon
    assert _read(tmp_path, THEME + "max_local_epsilon = 2\n").epsilon == 2
    lower = _read(tmp_path, THEME + "epsilon = 3.0\n")
    assert lower.epsilon == 3.0
    assert central_of(lower, 30_000).epsilon < 0.5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("crowd = 30000", "crowd = 3000000"),
        ("crowd = 30000", "crowd = 30000\nmax_local_epsilon = 20"),
        ("crowd = 30000\n", ""),
        ("central_epsilon = 1.0", "central_epsilon = 0"),
    ],
)
def test_a_wrong_promise_gives_one_error_only(tmp_path: Path, old: str, new: str) -> None:
    for kind in ('values = ["light", "dark"]', 'domain = "number"\nlow = 0\nhigh = 10'):
        text = re.sub("values = .*", kind, THEME).replace(old, new)
        with pytest.raises(CatalogInvalid) as caught:
            _read(tmp_path, text)
        assert len(str(caught.value).splitlines()) == 1, caught.value


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("crowd = 30000\n", "", r'"crowd": is missing; .*a whole number .*, beside central_eps'),
        ("central_epsilon = 1.0\n", "", r'"central_epsilon": is missing; .*\(a number of nats'),
        ('"auto"', '"unary.oue"', r'only listed values with grr; .*write mechanism = "auto"'),
        ("crowd = 30000", "crowd = 9", r'field "crowd": must be a whole number'),
        (VALUES, NUMBER + "\ncount_epsilon = 0.5", r'"count_epsilon": is only for listed values'),
        (
            "crowd = 30000",
            "crowd = 1000000\ncount_epsilon = 0.5",
            r'field "count_epsilon": has the crowd wait for more than 1,000,000; write',
        ),
        (
            VALUES,
            f'domain = "string"\n{NOISE}',
            r'field "dummies_scale": are only for listed values, noise dummies also for',
        ),
        (VALUES, f'{NUMBER}\ndummies = "devices"', r'"dummies": are only for listed values'),
        (VALUES, f"{NUMBER}\ndummies = 400", r'field "dummies": are only for listed values'),
        ("reports_per_epoch = 1", "reports_per_epoch = 2", r"reports_per_epoch must be 1"),
    ],
)
def test_fields_that_a_promise_excludes_are_refused_with_a_remedy(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(CatalogInvalid, match=message):
        _read(tmp_path, THEME.replace(old, new))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("epsilon = 7.5", r"reveals more than central_epsilon 1 in a crowd of 30,000"),
        ("epsilon = 7.5", r"write 6\.\d+ at most, .* gather a crowd of 1\d\d,\d{3}"),
        ("honest = 0.0", r'field "honest": must be a share in \(0, 1\]'),
        ("rolling = 1", r'field "rolling": must be true or false'),
        ("min_batch = 100", r"must be the crowd, 30,000; leave it out"),
        ("tiers = [0.5]", r"each would need its own crowd"),
        ("dummies = -1", r'field "dummies": must be a whole number'),
        ('dummies = "people"', r'must be a whole number in .*, "auto", "devices" or "noise"'),
        ('dummies = "noize"', r'or "noise"; did you mean "noise"\?'),
        ("dummies = 9\ndummies_each = 0.1", r"by devices, dummies by the shuffler"),
        (
            'dummies = "devices"\nrolling = true',
            r'"dummies": of devices may leave in another crowd',
        ),
        (
            "dummies_each = 0.1\nrolling = true",
            r'field "dummies_each": of devices may leave in another crowd .* leave "rolling" out',
        ),
        ("count_epsilon = 0.01", r'field "count_epsilon": must be a number of'),
        (
            "count_epsilon = 0.5\nrolling = true",
            r'field "count_epsilon": cannot be combined with rolling: a crowd that leaves',
        ),
        (
            "count_epsilon = 0.5\ndummies_each = 0.1",
            r'field "count_epsilon": cannot be combined with dummies of devices: one more',
        ),
        ('dummies = "noise"\nrolling = true', r"are drawn once per epoch"),
        ("dummies_scale = 2.02", r'field "dummies_shift": must be written'),
        ("dummies_scale = 0.01\ndummies_shift = 3", r"0.01 is below 0.0625"),
        ("dummies_each = 101", r'field "dummies_each": must be a number of'),
        ("max_local_epsilon = 40", r"max_local_epsilon"),
    ],
)
def test_a_promise_that_cannot_hold_is_refused_with_a_remedy(
    tmp_path: Path, more: str, message: str
) -> None:
    with pytest.raises(CatalogInvalid, match=message):
        _read(tmp_path, f"{THEME}{more}\n")


def test_dummies_allow_a_larger_local_epsilon_and_are_in_the_stream_table(
    tmp_path: Path,
) -> None:
    plain, padded = _read(tmp_path, THEME), _read(tmp_path, THEME + "dummies = 200\n")
    assert padded.epsilon > plain.epsilon + 0.5
    assert padded.digest() != plain.digest()
    rolling = 'dummies = "auto"\nrolling = true\n'
    chosen = _read(tmp_path, THEME.replace("30000", "300") + rolling)
    assert crowd_in(chosen).dummies == 200, "whose numbers would be seen more than once"
    with pytest.raises(BadParameter, match=r"dummies: is \"auto\" only in metrics.toml"):
        with_crowd(chosen, dummies="auto")
    promise = central_of(padded, 30_000)
    assert 0.99 <= promise.epsilon <= 1.0
    assert "adds 200 dummies to it" in promise.assumption
    without = central_of(padded, 30_000, dummies=0)
    assert without.epsilon > 1.1, "which is what a shuffler that makes none leaves"
    assert "dummies" not in without.assumption
    assert "public" not in stream_table(make_signed(tmp_path, HEAD + ALONE, start=0).bundle)
    table = json.loads(stream_table(_in_bundle(tmp_path / "padded", padded)))
    stream = table["streams"]["theme"]
    assert (stream["dummies"], stream["values"], stream["mix"]) == (200, 4, "epoch")
    assert all(len(key["public"]) == 44 for key in table["keys"])


@pytest.mark.parametrize("word", [pytest.param("noise", marks=pytest.mark.thorough), "auto"])
def test_noise_dummies_are_chosen_and_the_shuffler_gets_their_law(
    tmp_path: Path, word: str
) -> None:
    noisy = _read(tmp_path, THEME + f'dummies = "{word}"\n')
    crowd = crowd_in(noisy)
    assert (crowd.dummies, crowd.dummies_scale, crowd.dummies_shift) == (0, 2.02, 61)
    assert noisy.epsilon == 8, "as large as may be"
    written = _read(tmp_path, THEME + NOISE)
    assert written.digest() == noisy.digest() != _read(tmp_path, THEME).digest()
    promise = central_of(noisy, 30_000)
    assert 0.98 <= promise.epsilon <= 1.0
    assert "adds a secret number of dummies to each value" in promise.assumption
    without = central_of(noisy, 30_000, dummies=0)
    assert without.epsilon > 1.1, "which is what a shuffler that makes none leaves"
    month = composed_epsilon(crowds_of(noisy, 30), 1e-8)
    assert 10 < month < 30, "the law's ends say nothing in a month either"
    stream = json.loads(stream_table(_in_bundle(tmp_path, noisy)))["streams"]["theme"]
    odds, shift = stream["value_noise"]
    assert odds == pytest.approx(2**32 * exp(1 / 2.02), rel=1e-9)
    assert (shift, stream["values"], stream["min_batch"]) == (61, 4, 30_000)


def test_noise_dummies_of_a_mean_name_each_of_its_steps(tmp_path: Path) -> None:
    text = THEME.replace(VALUES, NUMBER)
    noisy = _read(tmp_path, text + 'dummies = "auto"\n')
    steps = int(noisy.parameters["steps"])
    crowd = crowd_in(noisy)
    assert (noisy.mechanism, noisy.epsilon, crowd.dummies) == ("mean.piecewise", 8, 0)
    assert noisy.randomizer.layout.size == steps + 1
    noise, promise = value_noise(noisy), central_of(noisy, 30_000)
    assert 0.98 <= promise.epsilon <= 1.0
    assert noise
    assert noise.of_sum, "of which the mean has its error"
    assert named_dummies(noisy) == (steps + 1) * crowd.dummies_shift + 2 * noise.ends
    plain = _read(tmp_path, text)
    middle = noisy.randomizer.variance(15_000, 30_000) + noise.of_sum.variance / steps**2
    assert middle < 0.4 * plain.randomizer.variance(15_000, 30_000)
    stream = json.loads(stream_table(_in_bundle(tmp_path, noisy)))["streams"]["theme"]
    assert stream["sum_noise"] == [noise.of_sum.odds, noise.of_sum.reach]
    law_fields = "dummies_scale = 5.05\ndummies_shift = 147\ndummies_sum_scale = "
    alike = _read(tmp_path, text + f"{law_fields}{crowd.dummies_sum_scale}\n")
    assert alike.digest() == noisy.digest()
    with pytest.raises(CatalogInvalid, match="is only for noise dummies of a mean"):
        _read(tmp_path, THEME + f"{law_fields}30\n")
    with pytest.raises(CatalogInvalid, match="500 is for 256 steps, but the proof"):
        _read(tmp_path, text + f"{law_fields}500\n")
    with pytest.raises(CatalogInvalid, match=r"dummies_sum_scale 0.01 is below 0.0625"):
        _read(tmp_path, text + f"{law_fields}0.01\n")
    many = text.replace('"auto"', '"mean.piecewise"\nsteps = 60')
    with pytest.raises(CatalogInvalid, match="seal more than 500,000 of them an epoch; use fewer"):
        _read(tmp_path, many + "dummies_scale = 1000\ndummies_shift = 20000\n")


@pytest.mark.parametrize(
    "kind", ['kind = "count"', 'kind = "duration"\nunit = "s"', 'kind = "size"\nunit = "kB"']
)
def test_dummies_of_counts_durations_and_sizes_have_the_sum_of_a_mean(
    tmp_path: Path, kind: str
) -> None:
    of_mean, other = (
        value_noise(_read(tmp_path, THEME.replace(VALUES, number) + 'dummies = "noise"\n'))
        for number in (NUMBER, f"{kind}\nlow = 0\nhigh = 9")
    )
    assert of_mean
    assert of_mean.of_sum
    assert of_mean == other


def test_dummies_that_fix_a_sum_are_sealed_too(tmp_path: Path) -> None:
    """Of 17 steps: 499,120 dummies of the steps, and 893 that fix their sum."""
    text = THEME.replace(VALUES, NUMBER).replace('"auto"', '"mean.piecewise"\nsteps = 16')
    law = "dummies_scale = 5.05\ndummies_sum_scale = 26.93\ndummies_shift = "
    noise = value_noise(_read(tmp_path, f"{text}{law}14679\n"))
    assert noise
    assert noise.sealed == MAX_SEALED - 21
    with pytest.raises(CatalogInvalid, match="seal more than 500,000 of them an epoch; use fewer"):
        _read(tmp_path, f"{text}{law}14680\n")


@pytest.mark.thorough
@pytest.mark.parametrize("more", ['dummies = "auto"', NOISE])
def test_noise_dummies_of_parts_name_each_cell_of_all_parts(tmp_path: Path, more: str) -> None:
    """With "auto" since the exact errors of tables of two are smaller."""
    text = THEME.replace(VALUES, PARTS)
    noisy = _read(tmp_path, f"{text}{more}\n")
    assert (noisy.mechanism, noisy.parameters, noisy.epsilon) == ("pairs", {"ways": 4}, 8)
    scale, shift = crowd_in(noisy).dummies_scale, crowd_in(noisy).dummies_shift
    assert shift > 50
    assert named_dummies(noisy) == shift * noisy.randomizer.layout.size
    promise = central_of(noisy, 30_000)
    assert 0.9 <= promise.epsilon <= 1.0
    assert "adds a secret number of dummies to each value" in promise.assumption
    law = f"dummies_scale = {scale}\ndummies_shift = {shift}\n"
    assert _read(tmp_path, f"{text}ways = 4\n{law}").digest() == noisy.digest()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('ways = 2\ndummies = "noise"', "one cell of the table of all parts; write ways = 4"),
        (f"ways = 3\n{NOISE}", "all parts; write ways = 4"),
        ("dummies = 200", "noise dummies also for means and parts; leave them out"),
        ('dummies = "devices"', "noise dummies also for means and parts; leave them out"),
        pytest.param(
            'dummies = "noise"\nrolling = true',
            "cannot be combined with rolling",
            marks=pytest.mark.thorough,
        ),
        (
            f"{NOISE}epsilon = 2.5",
            "with 36 cells and a local epsilon of 2.5 a report names several; raise max_local",
        ),
        ("dummies_scale = 99\ndummies_shift = 9000", "more than 500,000 of them an epoch"),
    ],
)
def test_noise_dummies_that_do_not_go_with_parts_are_refused(
    tmp_path: Path, more: str, message: str
) -> None:
    with pytest.raises(CatalogInvalid) as refused:
        _read(tmp_path, f"{THEME.replace(VALUES, PARTS)}{more}\n")
    assert message in str(refused.value)


@pytest.mark.thorough
def test_parts_have_no_dummies_if_reports_of_two_parts_are_better(tmp_path: Path) -> None:
    """Of many parts a table of two is a sum of so many cells that their noise is larger."""
    parts = ", ".join(f'{name} = ["y", "n"]' for name in "abcdefgh")
    text = THEME.replace(VALUES, f"parts = {{ {parts} }}").replace("30000", "10")
    metric = _read(tmp_path, text + 'dummies = "auto"\n')
    assert (metric.parameters, crowd_in(metric).dummies_shift) == ({}, 0)


def test_a_rehearsed_epoch_with_secret_numbers_has_the_shufflers_minimum(
    tmp_path: Path,
) -> None:
    """Of fewer reports than the crowd never, of as many where no fewer dummies are drawn."""
    metric, chance = _read(tmp_path, THEME + NOISE), np.random.default_rng(4)
    hidden = with_crowd(metric, count_epsilon=1.0)
    enough = 30_000 + count_noise(hidden).most  # type: ignore[union-attr]  # it has one

    def epochs_until_refused(metric: Metric, reports: int) -> int:
        totals = Totals(cells=[reports - 3, 1, 1, 1], reports=reports)
        windows = [as_window(metric, totals, chance) for _ in range(200)]
        for window in filter(None, windows):
            assert window.cells.sum() == window.counted + window.dummies
            assert window.dummies == expected_dummies(metric)
        return sum(window is not None for window in windows)

    assert epochs_until_refused(metric, 29_999) == 0
    assert 60 < epochs_until_refused(metric, 30_000) < 160
    assert epochs_until_refused(metric, 30_500) == 200
    assert epochs_until_refused(hidden, 29_999) == 0
    assert epochs_until_refused(hidden, enough + 500) == 200


def test_dummies_of_devices_are_chosen_and_waited_for(tmp_path: Path) -> None:
    plain, padded = _read(tmp_path, THEME), _read(tmp_path, THEME + 'dummies = "devices"\n')
    crowd = crowd_in(padded)
    assert (crowd.dummies, crowd.dummies_each) == (0, 0.00333)
    assert padded.epsilon > plain.epsilon + 0.4
    for dummies_line in ("", 'dummies = "devices"\n'):
        explicit = _read(tmp_path, THEME + dummies_line + "dummies_each = 0.00333\n")
        assert explicit.digest() == padded.digest()
    with pytest.raises(BadParameter, match=r"dummies: is \"devices\" only in metrics.toml"):
        with_crowd(padded, dummies="devices")
    promise = central_of(padded, 30_000)
    assert 0.98 <= promise.epsilon <= 1.0
    assert (
        "if devices add 0.00333 dummies each to the crowd, the shuffler is honest, releases"
        in promise.assumption
    )
    stream = json.loads(stream_table(_in_bundle(tmp_path, padded)))["streams"]["theme"]
    assert stream.keys() == {"sealed_bytes", "min_batch", "epoch_seconds", "grace_seconds", "mix"}
    waits = stream["min_batch"]
    # Of 29,999 devices so many come with a chance below any delta; of 30,000 and a few they do.
    assert binom.sf(waits - 29_999 - 1, 29_999, 0.00333) < 1e-15
    assert waits < 30_000 * 1.00333 + 200
    assert 29_700 < devices_at_least(30_000, 0.00333) < 30_000


def test_a_hidden_number_raises_the_minimum_and_the_card_shows_its_epsilon(
    tmp_path: Path,
) -> None:
    plain, hidden = _read(tmp_path, THEME), _read(tmp_path, THEME + "count_epsilon = 0.5\n")
    assert hidden.epsilon == plain.epsilon
    assert hidden.digest() != plain.digest()
    table = json.loads(stream_table(_in_bundle(tmp_path, hidden)))
    stream, noise = table["streams"]["theme"], count_noise(hidden)
    assert noise is not None
    assert stream["noise"] == [noise.odds, noise.reach]
    assert stream["min_batch"] == 30_000 + noise.most
    assert (stream["values"], stream["mix"]) == (4, "epoch")
    assert "dummies" not in stream
    assert all(len(key["public"]) == 44 for key in table["keys"])
    sentence = metric_card(hidden).sentence
    assert "reveals epsilon 0.5 at delta 1e-08 about whether one person reported" in sentence
    assert f"the shuffler adds 0 to {noise.most} dummies" in sentence
    assert "Together with the reports that is 1.5 at delta 2e-08" in sentence
    assert "whether one person reported" not in metric_card(plain).sentence
    at_least = central_of(hidden, 31_000)
    assert at_least.reports <= 31_000 - noise.reach, "as few as there may be"


def test_development_shows_every_number(tmp_path: Path) -> None:
    hidden = with_crowd(_read(tmp_path, THEME), count_epsilon=0.5)
    assert count_noise(replace(hidden, development=True)) is None


def test_auto_takes_the_fewest_useful_dummies() -> None:
    """Beside a finer search; none where devices lie more than the promise needs."""
    assert best_dummies(crowd_of(1_000_000, 16, 8.0, honest=0.9), 1.0, 1e-8) == 0
    few = crowd_of(300, 256, 8.0, honest=0.9)
    dummy_count = best_dummies(few, 1.0, 1e-8)

    def variance(dummies: int) -> float:
        crowd = replace(few, dummies=dummies)
        crowd = replace(crowd, epsilon_local=largest_local(crowd, 1.0, 1e-8))
        return crowd.stderr(0.0) ** 2 + crowd.stderr(0.1) ** 2

    least = min(map(variance, range(0, 1001, 50)))
    assert variance(dummy_count) <= 1.07 * least
    assert variance(dummy_count // 2) > 1.05 * variance(dummy_count)


def test_incomplete_fields_of_a_promise_are_refused(tmp_path: Path) -> None:
    assert _read(tmp_path, ALONE).central is None
    assert _read(tmp_path, ALONE + "delta = 1e-8\n").crowd is None, "which is the default"
    for more, message in (
        ("rolling = true\n", "is only for a central promise; write central_epsilon"),
        ("count_epsilon = 0.5\n", "a pool that leaves in parts reveals the arrival"),
    ):
        with pytest.raises(CatalogInvalid, match=message):
            _read(tmp_path, ALONE + more)


def test_a_promise_is_refused_without_numpy_and_scipy() -> None:
    with pytest.raises(
        CatalogInvalid, match=r"numpy and scipy, .*pip install CLIENT 'PATH\[plan\]'"
    ):
        catalog_of(HEAD + THEME)


def test_a_bundle_always_contains_the_whole_promise(tmp_path: Path) -> None:
    metric = _read(tmp_path, THEME)
    text = HEAD + ALONE.replace("[metrics.theme]", "[metrics.other]")
    signed = make_signed(tmp_path, text, start=20_000 * DAY)
    bundle = replace(signed.bundle, metrics={"theme": metric}, history={"theme": metric.digest()})
    path = tmp_path / "crowd.hubbub"
    path.write_bytes(sign_bundle(bundle, read_operator_key(signed.keys)))
    assert read_bundle(path).metrics == {"theme": metric}
    streams = json.loads(stream_table(bundle))["streams"]
    assert (streams["theme"]["mix"], streams["theme"]["min_batch"]) == ("epoch", 30_000)
    assert "mix" not in json.loads(stream_table(signed.bundle))["streams"]["other"]
    smaller = replace(metric, crowd=replace(crowd_in(metric), reports=20_000), min_batch=20_000)
    with pytest.raises(BundleRefused, match="crowd changed under an old name"):
        refuse_changes({"theme": smaller}, bundle)
    with pytest.raises(BadParameter, match="min_batch: equals the crowd"):
        with_crowd(metric, reports=20_000)


def test_the_schema_takes_what_the_reader_takes() -> None:
    schema = Draft202012Validator(catalog_schema())
    whole = tomllib.loads(HEAD + THEME.replace("2099-01-01", '"2099-01-01"'))
    assert not list(schema.iter_errors(whole))
    del whole["metrics"]["theme"]["central_epsilon"]
    assert list(schema.iter_errors(whole))


def test_the_check_names_settings_that_add_needless_noise_with_a_remedy() -> None:
    promise = Crowd(epsilon=1.0, reports=30_000, delta=1e-8, honest=0.9, max_local_epsilon=4.0)
    assert "a report may reveal 4 at most; with a larger max_local" in what_decides(
        promise, 4.0, 0.5, 4
    )
    assert what_decides(promise, 3.0, 0.3, 4).endswith(
        "needs, since epsilon is 3; with a larger one, or none, errors are smaller"
    )
    assert what_decides(promise, 3.0, 0.3, 4, coarse=True) == "", "a tree has none between"
    strict = replace(promise, epsilon=0.001, epochs=30)
    assert what_decides(strict, 0.011, 0.00097, 4) == "", "for its three digits alone"


def test_a_promise_that_no_epsilon_keeps_is_refused(capsys: Capture) -> None:
    assert main(["plan", "central", "--values", "4", "--reports", "1000", "--epsilon", "1e-5"]) == 2
    assert "--epsilon 1e-05 is outside [0.000976562, 16]" in capsys.readouterr().err


def test_the_page_on_crowds_says_what_its_catalog_and_its_command_say(
    tmp_path: Path, capsys: Capture
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "crowd.md").read_text("utf-8")
    text, of_parts = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    catalog_path = tmp_path / "parts.toml"
    catalog_path.write_text(f'shuffler = "127.0.0.1:1"\n{of_parts}')
    assert read_with_promises(catalog_path).metrics["profile"].parameters == {"ways": 3}
    metric = _read(tmp_path, text)
    assert f"keeps the promise, here {metric.epsilon:g}." in page
    out = output_of(capsys, "catalog", "check", str(tmp_path / "metrics.toml"))
    assert "releases the crowd whole" in out
    assert "devices randomize more" not in out
    _read(tmp_path, text.replace("30000", "1000000"))
    assert main(["catalog", "check", str(tmp_path / "metrics.toml")]) == 0
    assert "more than a central epsilon of 1 needs, since a report may" in capsys.readouterr().out
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d,]+) \|$", page, re.MULTILINE
    )
    assert len(rows) == 4
    for row in rows:
        reports, values, local, error, alone = (float(cell.replace(",", "")) for cell in row)
        options = ["--reports", f"{reports:.0f}", "--values", f"{values:.0f}", "--central", "1"]
        document = document_of(capsys, "privacy", "crowd", *options, "--json")
        assert document["epsilon_central"] <= 1
        assert round(document["epsilon_local"], 2) == pytest.approx(local, abs=0.011)
        assert round(document["stderr_rare"], 1) == pytest.approx(error, abs=0.051)
        today = build("unary.oue", epsilon=1.0, categories=2)
        assert sqrt(today.variance(0, int(reports))) == pytest.approx(alone, rel=0.005)


def test_the_promise_of_a_crowd_is_explained_with_and_without_trust(capsys: Capture) -> None:
    arguments = ["privacy", "crowd", "--reports", "100000", "--local-epsilon", "7"]
    shuffled, together = output_of(capsys, *arguments, "--values", "16").strip().splitlines()[-2:]
    assert "to someone who sees the shuffled reports (except with probability 1e-08)" in shuffled
    assert "19.32 percentage points" in shuffled
    assert "if the shuffler and the aggregator work together against them" in together
    assert "a factor of 1,097" in together
    assert "--values 1 is outside [2, 16777216]" in refusal_of(capsys, *arguments, "--values", "1")


def test_a_plan_shows_the_errors_of_a_crowd_of_reports_alone_and_of_a_curator(
    capsys: Capture, tmp_path: Path
) -> None:
    arguments = ["plan", "central", "--values", "16", "--reports", "30000", "--epsilon", "1"]
    rows = document_of(capsys, *arguments, "--format", "json")["rows"]
    crowds = [row for row in rows if row["way"] == "crowd"]
    errors = [row["stderr_rare"] for row in crowds]
    assert errors == sorted(errors, reverse=True)
    assert 0.999 <= crowds[-1]["epsilon_central"] <= 1
    [alone] = [row for row in rows if row["way"].startswith("alone")]
    [curator] = [row for row in rows if row["way"].startswith("trusted")]
    assert alone["stderr_rare"] > 30 * errors[-1]
    assert curator["stderr_rare"] == pytest.approx(2 * 2**0.5)
    catalog = tmp_path / "crowd.toml"
    theme = metric_toml("theme", mechanism="grr", epsilon=1.0, values=["light", "dark"])
    catalog.write_text(catalog_toml(theme))
    advice = output_of(capsys, *arguments[:2], str(catalog), "--metric", "theme", *arguments[4:])
    assert f"in {catalog}: central_epsilon = 1, crowd = 30000" in advice
    with pytest.raises(SystemExit, match="2"):
        main([*arguments[:4], *arguments[6:]])
    assert "the following arguments are required: --reports" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--mean", "0", "100"], ["--ranges", "16", "0", "100"]])
@pytest.mark.thorough
def test_a_plan_of_numbers_shows_the_same_trade(
    options: list[str], tmp_path: Path, capsys: Capture
) -> None:
    command = ["plan", "central", *options, "--reports", "30000", "--epsilon", "1"]
    rows = document_of(capsys, *command, "--format", "json")["rows"]
    crowds = [row for row in rows if row["way"] == "crowd"]
    errors = [row["stderr"] for row in crowds]
    assert errors == sorted(errors, reverse=True)
    assert all(row["epsilon_central"] <= 1 for row in crowds)
    [alone] = [row for row in rows if row["way"] == "alone"]
    [curator] = [row for row in rows if row["way"].startswith("trusted")]
    assert curator["stderr"] < errors[-1] < alone["stderr"] / 5
    # What the catalog would take is what the plan says.
    text = re.sub(r"(?m)^values = .*$", 'domain = "number"\nlow = 0\nhigh = 100', THEME)
    if options[0] == "--ranges":
        text = text.replace('"auto"', '"wave"\nbuckets = 16', 1)
    metric = _read(tmp_path, text)
    last = crowds[-1]
    assert (metric.mechanism, metric.epsilon) == (last["mechanism"], last["epsilon_local"])
    assert "--dummies go only with listed values" in refusal_of(capsys, *command, "--dummies", "9")
    noisy = main([*command, "--dummies", "noise", "--max-local", "8"])
    output = capsys.readouterr()
    if options[0] == "--mean":
        assert noisy == 0
        assert "crowd, 147 dummies a value, 2,937 in all" in output.out
        assert 'crowd = 30000, dummies = "noise"' in output.out
    else:
        assert noisy == 2
        assert "crowd = 30000" in output_of(capsys, *command)


@pytest.mark.parametrize(
    ("dummies", "values", "message"),
    [
        ("4000", "16", "leave the dummies out: without them the errors are 8."),
        ("4000", "256", "the dummies win for a rare value and one in ten"),
        ("100000", "256", "the dummies win for one in ten: without them"),
        ("auto", "65536", "crowd = 30000, max_local_epsilon = 10, dummies = 20000\n"),
    ],
)
def test_a_plan_compares_errors_with_and_without_dummies(
    dummies: str, values: str, message: str, capsys: Capture
) -> None:
    arguments = ["plan", "central", "--values", values, "--reports", "30000", "--epsilon", "1"]
    out = output_of(capsys, *arguments, "--dummies", dummies)
    assert message in out
    assert dummies == "auto" or f"dummies = {dummies}" in out


def test_the_card_shows_the_loss_of_all_crowds_in_a_day_month_and_year(
    tmp_path: Path, capsys: Capture
) -> None:
    _read(tmp_path, THEME.replace("30000", "300").replace('"day"', '"week"'))
    assert main(["privacy", "card", str(tmp_path / "metrics.toml"), "--format", "json"]) == 0
    card = json.loads(capsys.readouterr().out)
    central, together = card["central"], card["together"]
    assert 0.9 < central["day"] <= 1 < central["month"] < central["year"] < together["year"]
    [metric] = card["metrics"]
    assert "if it does collude, a report reveals epsilon" in metric["shuffled"]["assumption"]
    text = " ".join(card["sentences"])
    assert "To an observer of whole shuffled epochs, all answers of one person in a month" in text


def test_the_leaflet_explains_the_crowd_and_the_check_its_minimum(
    tmp_path: Path, capsys: Capture
) -> None:
    _read(tmp_path, THEME.replace("30000", "300\ncount_epsilon = 0.5"))
    path = str(tmp_path / "metrics.toml")
    output = output_of(capsys, "privacy", "leaflet", path)
    assert (
        "right 74 times in 100 at most, except for one chance in 100,000,000: What theme." in output
    )
    assert main(["catalog", "check", path]) == 0
    message_text = "".join(capsys.readouterr())
    assert "adds 0 to 70 dummies" in message_text
    assert "The shuffler waits for 370 reports and dummies." in message_text


def test_a_slow_account_of_a_crowd_shows_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(output, "_SOON_SECONDS", 0.0)
    path = tmp_path / "metrics.toml"
    path.write_text(HEAD + THEME.replace("30000", "31000"))
    assert main(["catalog", "check", str(path)]) == 0
    assert "computing what crowds hide" in capsys.readouterr().err
    path.write_text(CATALOG)
    assert main(["catalog", "check", str(path)]) == 0
    assert not capsys.readouterr().err
    of = ["--reports", "54321", "--values", "16", "--local-epsilon", "6"]
    assert main(["privacy", "crowd", *of]) == 0
    assert "computing what the crowd hides" in capsys.readouterr().err
