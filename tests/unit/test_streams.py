"""The stream table: what the shuffler refuses, and that it knows nothing else."""

import json
from pathlib import Path

import pytest

from hubbub.errors import BadParameter
from hubbub.shuffler.stream_table import StreamTable, read_stream_table
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import Reason
from tests.conftest import CatalogFiles

DAY = 86_400
EPOCH = 20_000
NOW = EPOCH * DAY + 100.0


@pytest.fixture
def table(tmp_path: Path) -> StreamTable:
    path = tmp_path / "streams.json"
    stream = {"sealed_bytes": 49, "min_batch": 20, "epoch_seconds": DAY, "grace_seconds": DAY}
    keys = [
        {"id": 1, "start": 0, "end": EPOCH * DAY},
        {"id": 2, "start": EPOCH * DAY, "end": (EPOCH + 9) * DAY},
    ]
    path.write_text(json.dumps({"version": 1, "streams": {"theme": stream}, "keys": keys}))
    return read_stream_table(path)


def _report(**changes: object) -> SealedReport:
    fields = {"stream": "theme", "epoch": EPOCH, "key_id": 2, "sealed": bytes(49), **changes}
    return SealedReport(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"stream": "colour"}, Reason.REASON_UNKNOWN_STREAM),
        ({"sealed": bytes(48)}, Reason.REASON_WRONG_LENGTH),
        ({"sealed": bytes(50)}, Reason.REASON_WRONG_LENGTH),
        ({"key_id": 1}, Reason.REASON_WRONG_KEY),
        ({"key_id": 77}, Reason.REASON_WRONG_KEY),
        ({"epoch": EPOCH + 1}, Reason.REASON_NOT_YET),
        ({"epoch": EPOCH - 1, "key_id": 1}, None),
        ({"epoch": EPOCH - 2, "key_id": 1}, Reason.REASON_EXPIRED),
        ({"epoch": EPOCH + 500}, Reason.REASON_WRONG_KEY),
    ],
)
def test_a_report_is_accepted_or_refused_with_a_reason(
    table: StreamTable, changes: dict[str, object], reason: "Reason.ValueType | None"
) -> None:
    assert table.refusal(_report(**changes), NOW) == reason


def test_a_device_clock_may_be_ten_minutes_ahead(table: StreamTable) -> None:
    tomorrow = _report(epoch=EPOCH + 1)
    assert table.refusal(tomorrow, (EPOCH + 1) * DAY - 599) is None
    assert table.refusal(tomorrow, (EPOCH + 1) * DAY - 601) == Reason.REASON_NOT_YET


def test_the_table_of_a_catalog_names_no_mechanism(catalog_files: CatalogFiles) -> None:
    text = catalog_files.streams.read_text()
    for secret in ("rappor", "oue", "epsilon", "light", "dark", "public"):
        assert secret not in text
    assert set(read_stream_table(catalog_files.streams).streams) == set(
        catalog_files.bundle.streams
    )


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"streams": {"a": {}}, "keys": []}', "\x00"])
def test_an_invalid_stream_table_is_refused_with_the_remedy(tmp_path: Path, content: str) -> None:
    path = tmp_path / "streams.json"
    path.write_text(content)
    with pytest.raises(BadParameter, match="make it with: hubbub catalog build"):
        read_stream_table(path)
    with pytest.raises(BadParameter, match="cannot be read"):
        read_stream_table(tmp_path / "absent.json")


def test_a_report_is_finally_refused_only_if_every_possible_time_refuses_it(
    table: StreamTable,
) -> None:
    today, long_after = _report(), (EPOCH + 99) * DAY
    assert table.refusal(today, NOW, long_after) is None
    assert table.refusal(today, NOW - 99 * DAY, NOW) is None
    assert table.refusal(today, long_after, long_after) == Reason.REASON_EXPIRED
    early = NOW - 99 * DAY
    assert table.refusal(today, early, early) == Reason.REASON_NOT_YET


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("min_batch", 1),
        ("min_batch", 9),
        ("min_batch", 10.5),
        ("min_batch", 10**9),
        ("min_batch", True),
        ("min_batch", "20"),
        ("min_batch", float("inf")),
        ("sealed_bytes", 0),
        ("sealed_bytes", 1 << 40),
        ("epoch_seconds", -DAY),
        ("grace_seconds", 0),
        ("grace_seconds", None),
    ],
)
def test_a_stream_that_would_not_hide_its_reports_is_refused_with_its_name(
    tmp_path: Path, field: str, value: object
) -> None:
    path = tmp_path / "streams.json"
    stream = {"sealed_bytes": 49, "min_batch": 20, "epoch_seconds": DAY, "grace_seconds": DAY}
    changed = {"the\nme": {**stream, field: value}}
    path.write_text(json.dumps({"version": 1, "streams": changed, "keys": []}))
    with pytest.raises(BadParameter, match=rf"stream 'the\\nme': {field} .* whole number in"):
        read_stream_table(path)


@pytest.mark.parametrize(
    "key",
    [
        {"id": 1, "start": 5, "end": 5},
        {"id": -1, "start": 0, "end": 5},
        {"id": 2**32, "start": 0, "end": 5},
        {"id": 1, "start": 0.5, "end": 5},
    ],
)
def test_a_key_without_a_period_is_refused(tmp_path: Path, key: dict[str, object]) -> None:
    path = tmp_path / "streams.json"
    path.write_text(json.dumps({"version": 1, "streams": {}, "keys": [key]}))
    with pytest.raises(BadParameter, match="not a stream table"):
        read_stream_table(path)
