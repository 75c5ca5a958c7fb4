"""`discover`: a share of the devices feeds a prefix tree, the others count what is listed."""

from collections import Counter
from math import sqrt
from pathlib import Path

import pytest

from hubbub.aggregator.query.estimating import AnswerPlan
from hubbub.aggregator.query.metric_answer import notes
from hubbub.analysis.answer import Answer
from hubbub.bundles import Bundle
from hubbub.catalog import Metric
from hubbub.client import Client, MemoryState, Outcome, SystemClock
from hubbub.client.testing import FakeShuffler
from hubbub.errors import BundleRefused, CatalogInvalid, ValueOutOfDomain
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.crowd_guarantees import amplified_of, shuffled_of
from hubbub.privacy.leaflet_and_reviewer_claims import leaflet
from hubbub.signing.metric_changes import continued_metrics, refuse_changes
from hubbub.signing.sign_bundle import stream_table
from tests.conftest import CATALOG
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.commands import Capture, output_of, refusal_of

FIRST = 20_010  # a day on which a period of 30 begins
PLUGIN = metric_toml(
    "plugin",
    description="A plugin that is in use",
    mechanism="grr",
    epsilon=2.0,
    values=["git", "vim"],
    other=True,
    discover=0.25,
    min_batch=20,
)


def _metric(text: str = PLUGIN) -> Metric:
    return catalog_of(catalog_toml(text)).metrics["plugin"]


def _bundle(metric: Metric, before: Bundle | None = None) -> Bundle:
    before = before or Bundle(metrics={}, keys=(), shuffler="127.0.0.1:1", roots=None, history={})
    metrics = continued_metrics({"plugin": metric}, before)
    history = refuse_changes(metrics, before)
    return Bundle(metrics=metrics, keys=(), shuffler="127.0.0.1:1", roots=None, history=history)


def test_the_tree_is_a_stream_of_the_metric_at_its_epsilon() -> None:
    bundle = _bundle(_metric())
    assert list(bundle.streams) == ["plugin", "plugin/tree"]
    finder = bundle.metric("plugin/tree")
    assert finder.randomizer == PrefixTree(epsilon=2.0)
    assert finder.base_name == "plugin"
    assert finder.code("never listed") == "never listed"
    assert finder.sampling == 0.25
    assert bundle.metrics["plugin"].report_loss >= finder.report_loss
    assert '"plugin/tree"' in stream_table(bundle)
    nothing = Answer(kind="values", reports=200, confidence=0.95, values=())
    assert "request more epochs" in notes(AnswerPlan.of(finder), nothing)[-1]


@pytest.mark.slow
def test_shuffle_amplification_of_a_stream_uses_its_own_loss() -> None:
    """The metric's own figure counts the larger loss of both, since a device has one role."""
    rare = PLUGIN.replace("grr", "unary.oue").replace("epsilon = 2.0", "epsilon = 1.0")
    for text in (PLUGIN, rare):
        for stream in _bundle(_metric(text)).streams.values():
            assert stream.randomizer_loss == stream.randomizer.privacy_loss() <= stream.report_loss
            assert shuffled_of(stream, 5000) == amplified_of(stream.randomizer, 5000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("other = true\n", ""), "write other = true"),
        (("0.25", "0.95"), "write discover = 0.2"),
        (("other = true", "other = true\ntiers = [1.0]"), "tiers"),
        (("other = true", 'other = true\nbreakdown = { os = ["linux"] }'), "breakdown"),
        (("other = true", 'other = true\ndefault = "git"'), "default"),
        (('"grr"', '"long.grr"\npermanent_epsilon = 4.0'), "repeats one permanent answer"),
        (
            ('values = ["git", "vim"]\nother = true', 'domain = "string"\nbits = 64'),
            "tree takes neither listed values",
        ),
    ],
)
def test_a_metric_that_cannot_discover_strings_is_refused_with_a_remedy(
    change: tuple[str, str], message: str
) -> None:
    text = PLUGIN.replace(*change)
    if "bits" in text:
        text = text.replace("grr", "tree")
    with pytest.raises(CatalogInvalid) as caught:
        _metric(text)
    assert message in str(caught.value)


def test_the_share_of_discover_may_change_but_not_begin() -> None:
    before = _bundle(_metric())
    _bundle(_metric(PLUGIN.replace("0.25", "0.1")), before)
    with pytest.raises(BundleRefused, match="discover changed under an old name"):
        _bundle(_metric(PLUGIN.replace("discover = 0.25\n", "")), before)
    plain = _bundle(_metric(PLUGIN.replace("discover = 0.25\n", "")))
    with pytest.raises(BundleRefused, match="discover changed under an old name"):
        _bundle(_metric(), plain)
    longer = _bundle(_metric(PLUGIN.replace('"vim"', '"vim", "spell"')), before)
    assert list(longer.streams)[-1] == "plugin/tree"  # one tree, however the list grows


def test_the_leaflet_says_that_some_devices_report_unlisted_strings() -> None:
    sentences = leaflet(catalog_of(catalog_toml(PLUGIN))).sentences
    [sentence] = [text for text in sentences if "on no list" in text]
    assert "A plugin that is in use" in sentence


def _streams(bundle: Bundle, state: MemoryState, days: range, value: str) -> list[str]:
    """In which streams a device says it, which is started anew each day; nothing is said twice."""
    streams: list[str] = []
    for day in days:
        shuffler = FakeShuffler()
        clock = SystemClock(lambda: float((FIRST + day) * DAY))  # noqa: B023 of this day alone
        with Client(bundle, state, shuffler, hold_seconds=None, clock=clock) as client:
            if client.report("plugin", value) is Outcome.QUEUED:
                assert client.report("plugin", value) is Outcome.ALREADY_REPORTED
            client.flush()
            (own,) = (metric for metric in client.ledger().metrics if metric.name == "plugin")
            assert own.spent <= own.epsilon * (len(streams) + 1) + 1e-9
        streams += [report.stream for call in shuffler.submissions for report in call]
    return streams


@pytest.mark.slow
def test_a_devices_secret_alone_decides_whether_it_feeds_the_tree(tmp_path: Path) -> None:
    """Six standard errors of a quarter of 400 devices: a false alarm of 2e-9 a value."""
    signed = make_signed(tmp_path, CATALOG + PLUGIN, start=20_000 * DAY)
    for value in ("git", "never listed"):
        counts = Counter[str]()
        for _ in range(200):
            state = MemoryState()
            again = MemoryState(state.device_state().secret)
            drawn = _streams(signed.bundle, state, range(2), value)
            assert drawn == _streams(signed.bundle, again, range(2), "vim")
            counts.update(drawn)
        assert counts.keys() == {"plugin", "plugin/tree"}
        assert abs(counts["plugin/tree"] - 100) < 6 * sqrt(400 * 0.25 * 0.75)


@pytest.mark.slow
def test_a_period_has_one_draw(tmp_path: Path) -> None:
    period = 'discover = 0.5\nperiod = "30d"\nreport_on = "one day"'
    text = CATALOG + PLUGIN.replace("discover = 0.25", period)
    signed = make_signed(tmp_path, text, start=20_000 * DAY)
    streams = {tuple(_streams(signed.bundle, MemoryState(), range(30), "git")) for _ in range(24)}
    assert streams == {("plugin",), ("plugin/tree",)}  # but for one in 8 million


def test_a_value_that_is_no_text_is_refused_by_every_device(tmp_path: Path) -> None:
    signed = make_signed(tmp_path, CATALOG + PLUGIN, start=20_000 * DAY)
    clock = SystemClock(lambda: float(FIRST * DAY))
    for _ in range(8):
        client = Client(signed.bundle, MemoryState(), FakeShuffler(), clock=clock)
        for value, wrong in (
            ("\ud800", "value is not encodable as UTF-8"),
            ("x" * 70_000, "value is longer than"),
            (7, "the value is not a string"),
        ):
            with pytest.raises(ValueOutOfDomain) as error:
                client.report("plugin", value)
            assert str(error.value).startswith(f'metric "plugin": {wrong}')
            assert "git" not in str(error.value)
        client.close()


def test_the_check_names_the_reports_that_the_tree_waits_for(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(catalog_toml(PLUGIN))
    output = " ".join(output_of(capsys, "catalog", "check", str(path)).split())
    assert "0.25 of its devices feed plugin/tree" in output
    assert "20 reports, about 80 of all" in output


def test_a_list_that_is_there_is_not_overwritten(tmp_path: Path, capsys: Capture) -> None:
    listed = tmp_path / "plugins.txt"
    listed.write_text("git\n")
    errors = refusal_of(capsys, "discover", "plugin", "--as-candidates", str(listed))
    assert f"{listed}: exists and may be" in errors
    assert "add --append" in errors
    assert listed.read_text() == "git\n"


@pytest.mark.parametrize(
    ("likely", "message"),
    [
        ("plugin", "not a number; write the metric first: hubbub discover plugin --likely"),
        ("plugin/2.0", "write the metric first: hubbub discover plugin/2.0 --likely"),
        ("50%", "'50%' is not a number; write 0.5"),
    ],
)
def test_a_metric_after_likely_is_refused_with_the_right_order(
    likely: str, message: str, capsys: Capture
) -> None:
    assert message in refusal_of(capsys, "discover", "--likely", likely)
