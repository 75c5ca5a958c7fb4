"""`hubbub rappor decode` as people type it: the original tools' files, whole and malformed."""

import csv
import gzip
import subprocess
from pathlib import Path

import pytest

from hubbub.cli.commands.rappor import read_collection, read_map
from hubbub.errors import BadParameter
from tests.system.conftest import Hubbub

pytestmark = pytest.mark.thorough

REFERENCE = Path(__file__).parents[1] / "data" / "rappor"
PARAMS = "k,h,m,p,q,f\n4,2,2,0.25,0.75,0.5\n"
COUNTS = "100,50,40,30,60\n90,50,40,30,60\n"
MAP = "a,1,2,5,6\nb,3,4,7,7\n"


@pytest.fixture
def decode(hubbub: Hubbub) -> Hubbub:
    """The command on the files of a folder."""

    def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
        [map_file] = folder.glob("map.csv*")
        files = ("--params", folder / "params.csv", "--counts", folder / "counts.csv")
        return hubbub("rappor", "decode", *map(str, files), "--map", str(map_file), *more)

    return run


def test_an_existing_collection_moves_over(decode: Hubbub, tmp_path: Path) -> None:
    folder, out = REFERENCE / "demo3", tmp_path / "results.csv"
    done = decode(folder, "--out", str(out))
    assert (done.returncode, done.stdout) == (0, "")
    assert "1,000,000 reports, 190 candidates" in done.stderr
    assert "not explained by any candidate: 4.7%" in done.stderr
    rows = list(csv.DictReader(out.read_text().splitlines()))
    reference = next(csv.reader((folder / "reference_decode.csv").read_text().splitlines()))
    assert list(rows[0]) == [*reference, "p_value", "detected"]
    assert len(rows) == 190
    detected = [row for row in rows if row["detected"] == "true"]
    assert rows[: len(detected)] == detected
    assert int(detected[0]["estimate"]) > 40_000
    for row in rows:
        share, low, high = (
            float(row[key]) for key in ("proportion", "prop_low_95", "prop_high_95")
        )
        assert 0 <= low <= high
        assert abs(share - int(row["estimate"]) / 10**6) < 1e-6
        if row["detected"] == "true":
            assert share > 0
            assert low > 0
        else:
            assert low == 0


def test_a_pipe_gets_the_results_alone_and_a_stricter_rate_finds_fewer(decode: Hubbub) -> None:
    loose, strict = (decode(REFERENCE / "demo2", "--fdr", rate) for rate in ("0.2", "0.001"))
    assert loose.stdout.startswith('"string","estimate","std_error","proportion"')
    assert loose.stdout.count(",true\n") > strict.stdout.count(",true\n") > 10


def test_names_that_csv_must_quote_come_back_as_they_were(decode: Hubbub, tmp_path: Path) -> None:
    for name, text in (("params.csv", PARAMS), ("counts.csv", COUNTS)):
        (tmp_path / name).write_text(text)
    (tmp_path / "map.csv").write_text('"a ""b"", c",1,2,5,6\nnaïve,3,4,7,7\n\ntwin,3,4,7,7\n')
    done = decode(tmp_path)
    names = {row["string"] for row in csv.DictReader(done.stdout.splitlines())}
    assert names == {'a "b", c', "naïve", "twin"}
    assert "set the same bits in every cohort" in done.stderr
    assert '"naïve", "twin"' in done.stderr


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_may_end_either_way_and_a_file_may_begin_with_a_mark(
    tmp_path: Path, end: str
) -> None:
    for name, text in (("params.csv", PARAMS), ("counts.csv", COUNTS), ("map.csv", MAP)):
        (tmp_path / name).write_bytes(("\ufeff" + text).replace("\n", end).encode())
    collection = read_collection(tmp_path / "params.csv", tmp_path / "counts.csv")
    names, _ = read_map(tmp_path / "map.csv", collection)
    assert names == ["a", "b"]
    (tmp_path / "counts.csv").write_bytes(COUNTS.replace("90,", "90;").replace("\n", end).encode())
    with pytest.raises(BadParameter, match=r"counts\.csv:2: number 1 is not a whole number"):
        read_collection(tmp_path / "params.csv", tmp_path / "counts.csv")


def _collection(tmp_path: Path, params: str = PARAMS, counts: str = COUNTS) -> tuple[Path, Path]:
    paths = tmp_path / "params.csv", tmp_path / "counts.csv"
    for path, text in zip(paths, (params, counts), strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ("", "params.csv:1: not the parameters"),
        ("k,h,m,p,q,f\n", "params.csv:1: not the parameters"),
        ("k,h,m,p,q\n4,2,2,0.25,0.75\n", "params.csv:2: not the parameters"),
        ("k,h,m,p,q,f\n4,2,2,0.25,0.75\n", "params.csv:2: not the parameters"),
        ("k,h,m,p,q,f\n4.5,2,2,0.25,0.75,0.5\n", "params.csv:2: k must be a whole number"),
        ("k,h,m,p,q,f\n4,0,2,0.25,0.75,0.5\n", "params.csv:2: h must be a whole number"),
        ("k,h,m,p,q,f\n4,2,2,nan,0.75,0.5\n", "params.csv:2: p must be a number in"),
        ("k,h,m,p,q,f\n4,2,2,0.25,1.75,0.5\n", "params.csv:2: q must be a number in"),
        ("k,h,m,p,q,f\n4,2,2,0.75,0.75,0.5\n", "params.csv:2: needs p < q"),
        ("k,h,m,p,q,f\n4,2,2,0.25,0.75,1\n", "params.csv:2: needs p < q and f < 1"),
        ("k,h,m,p,q,f\n4,5,2,0.25,0.75,0.5\n", "h at most k"),
    ],
)
def test_malformed_parameters_are_named_with_their_line(
    tmp_path: Path, params: str, says: str
) -> None:
    with pytest.raises(BadParameter) as caught:
        read_collection(*_collection(tmp_path, params=params))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ("", "counts.csv: 0 lines, 2 expected"),
        (COUNTS + COUNTS, "counts.csv: 4 lines, 2 expected"),
        ("100,50,40,30,60\n90,50,40,30\n", "counts.csv:2: 4 numbers, 5 expected"),
        ("100,50,40,30,60\n90,x,40,30,5\n", "counts.csv:2: number 2 is not a whole number"),
        ("100,50,40,30,60\n90,1.5,40,30,5\n", "counts.csv:2: number 2 is not a whole number"),
        ("100,-5,40,30,60\n90,5,40,30,5\n", "counts.csv:1: a number is outside"),
        ("100,101,40,30,60\n90,5,40,30,5\n", "counts.csv:1: a bit is counted 101 times in 100"),
    ],
)
def test_malformed_counts_are_named_with_their_line(tmp_path: Path, counts: str, says: str) -> None:
    with pytest.raises(BadParameter) as caught:
        read_collection(*_collection(tmp_path, counts=counts))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("", "map.csv: contains no candidate"),
        ("a,1,2,5\n", "map.csv:1: 3 positions, 4 expected"),
        (MAP + "c,1,2,5,9\n", "map.csv:3: a number is outside [0, 8]"),
        (MAP + "c,0,2,5,6\n", "map.csv:3: 4 positions, 4 expected in [1, 8]"),
        (MAP + "c,1,2,3,6\n", "map.csv:3: a cohort has more or fewer than 2 positions"),
        (MAP + "\na,1,2,5,7\n", "map.csv:4: repeats the candidate of line 1"),
        (MAP + "c,1,2,5,six\n", "map.csv:3: number 4 is not a whole number"),
        ('"a,1,2,5,6\n' + "x" * 140_000, "map.csv:"),
    ],
)
def test_a_malformed_map_is_named_with_its_line(tmp_path: Path, rows: str, says: str) -> None:
    collection = read_collection(*_collection(tmp_path))
    (tmp_path / "map.csv").write_text(rows)
    with pytest.raises(BadParameter) as caught:
        read_map(tmp_path / "map.csv", collection)
    assert says in str(caught.value)


def test_files_that_cannot_be_read_are_named(decode: Hubbub, tmp_path: Path) -> None:
    collection = read_collection(*_collection(tmp_path))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(MAP.encode())[:-12])
    (tmp_path / "plain.csv.gz").write_text(MAP)
    (tmp_path / "latin.csv").write_bytes("naïve,1,2,5,6\n".encode("latin-1"))
    for name in ("cut.csv.gz", "plain.csv.gz", "latin.csv", "nowhere.csv", "."):
        with pytest.raises(BadParameter, match=r"cannot be read|is not UTF-8; save it"):
            read_map(tmp_path / name, collection)
    done = decode(REFERENCE / "demo1", "--out", str(tmp_path / "no" / "such.csv"))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    done = decode(REFERENCE / "demo1", "--fdr", "nan")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--fdr nan is outside (0, 1)" in done.stderr
