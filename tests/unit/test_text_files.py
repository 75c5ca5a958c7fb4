"""Text files as editors and systems of all kinds write them: taken as meant, or refused by line."""

import codecs
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.aggregator.access.access_file import read_access
from hubbub.authoring.metrics_toml.catalog_file import read_catalog
from hubbub.cli.commands.backup import _secret
from hubbub.cli.commands.rappor import read_collection
from hubbub.cli.terminal.percentile_and_candidate_options import read_candidates
from hubbub.errors import HubbubError
from hubbub.issuer.accounts import add_account
from hubbub.programs.text_files import csv_rows, lines_of, read_list, read_text
from hubbub.runtime.service_options import read_limits
from hubbub.shuffler.settings import Settings
from tests.conftest import CATALOG

MARK = codecs.BOM_UTF8
READERS: dict[str, tuple[Callable[[Path], object], bytes]] = {
    "a catalog": (lambda path: sorted(read_catalog(path).metrics), CATALOG.encode()),
    "candidates": (read_candidates, b"first\nsecond\n\nthird\n"),
    "a CSV file": (lambda path: [row for _, row in csv_rows(path)], b"value,count\nfirst,3\n"),
    "limits": (
        lambda path: read_limits(path, ["peer_rate"], Settings),
        b"peer_rate=1\n",
    ),
    "a passphrase": (_secret, b"six words that nobody guesses\n"),
    "access": (
        lambda path: read_access(path).groups,
        b'[groups."all"]\nmetrics = ["*"]\n',
    ),
    "accounts": (lambda path: add_account(path, "new", vouches=False) and 1, b"old " + b"a" * 64),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_mark_and_other_line_ends_change_nothing(tmp_path: Path, kind: str) -> None:
    reader, raw = READERS[kind]
    texts = {
        "plain": raw,
        "marked": MARK + raw,
        "crlf": MARK + raw.replace(b"\n", b"\r\n"),
        "cr": raw.replace(b"\n", b"\r"),
        "unended": raw.removesuffix(b"\n"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    first, *others = [reader(tmp_path / name) for name in texts]
    assert first
    assert others == [first] * len(others)


@pytest.mark.parametrize("kind", READERS)
def test_another_encoding_is_refused_by_file_and_line(tmp_path: Path, kind: str) -> None:
    reader, raw = READERS[kind]
    lines = raw.count(b"\n") + 1
    for name, text, words in [
        ("utf-16", raw.decode().encode("utf-16"), "line 1: is UTF-16 or UTF-32; save it as UTF-8"),
        ("utf-32", codecs.BOM_UTF32_BE + raw, "line 1: is UTF-16 or UTF-32; save it as UTF-8"),
        ("latin-1", raw + b"\r\n\xe9", f"line {lines + 1}: byte 1 is not UTF-8; save it as UTF-8"),
        ("nul", raw + b"\n\0", f"line {lines + 1}: contains a NUL; save it as UTF-8"),
        ("joined", raw + b"\n" + MARK, f"line {lines + 1}: begins with a byte order mark; remove"),
    ]:
        (tmp_path / name).write_bytes(text)
        with pytest.raises(HubbubError) as refused:
            reader(tmp_path / name)
        assert f"{tmp_path / name}: " in str(refused.value)
        assert words in str(refused.value)


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1e"])
def test_unusual_line_ends_are_refused_in_a_list(tmp_path: Path, end: str) -> None:
    (tmp_path / "list").write_text(f"first\nsecond{end}third\n")
    with pytest.raises(ValueError, match="list: line 2: contains a character that some"):
        read_list(tmp_path / "list")
    # A catalog may hold them in its texts, and its lines are counted as TOML counts them.
    (tmp_path / "metrics.toml").write_text(
        CATALOG.replace("epsilon = 1.0", "epsilon = 99").replace("end of", "end\u2028of")
    )
    with pytest.raises(HubbubError, match=r'metrics.toml:10: metric "theme", field "epsilon"'):
        read_catalog(tmp_path / "metrics.toml")


def test_blanks_around_a_string_are_no_other_string_in_silence(tmp_path: Path) -> None:
    for text in ("first\n second\n", "first\nsecond \n", "first\nsecond\u00a0\n"):
        (tmp_path / "list").write_text(text)
        with pytest.raises(HubbubError, match="list: line 2: begins or ends with a blank; remove"):
            read_candidates(tmp_path / "list")
    (tmp_path / "list").write_text("\n  \nfirst one\n\t\nsecond\n")
    assert read_candidates(tmp_path / "list") == ["first one", "second"]


def test_gzip_is_read_as_it_comes_and_a_damaged_one_refused(tmp_path: Path) -> None:
    packed = gzip.compress(MARK + b"first\r\nsecond")
    (tmp_path / "list.gz").write_bytes(packed)
    assert read_text(tmp_path / "list.gz") == "first\nsecond\n"
    for raw in (packed[:-9], b"first"):
        (tmp_path / "list.gz").write_bytes(raw)
        with pytest.raises(ValueError, match=r"list.gz: cannot be read: "):
            list(lines_of(tmp_path / "list.gz"))


@pytest.mark.parametrize(
    "heading", ["reports,bit 1,bit 2,bit 3,bit 4", '"cohort","1","2","3","4"', "n,1,2,3,4"]
)
def test_a_heading_in_a_file_of_counts_is_refused_as_a_heading(
    tmp_path: Path, heading: str
) -> None:
    (tmp_path / "params.csv").write_text("k,h,m,p,q,f\n4,1,1,0.25,0.75,0.5\n")
    (tmp_path / "counts.csv").write_text(f"{heading}\n10,5,5,5,5\n")
    first = heading.split(",", maxsplit=1)[0].strip('"')
    with pytest.raises(HubbubError, match=f"counts.csv:1: a heading, with '{first}' .* remove"):
        read_collection(tmp_path / "params.csv", tmp_path / "counts.csv")
