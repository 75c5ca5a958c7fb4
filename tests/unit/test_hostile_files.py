"""Files that nobody meant well with: each is refused in one line, where it is read."""

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from hubbub.aggregator.access.access_file import read_access
from hubbub.authoring import read_catalog
from hubbub.bundles import open_bundle, read_bundle, signatures
from hubbub.bundles.encoding import read_json
from hubbub.catalog.values.value_kind_registry import numeric_kinds
from hubbub.cli.commands.rappor import read_collection
from hubbub.cli.main import main
from hubbub.cli.terminal.percentile_and_candidate_options import read_candidates
from hubbub.errors import BadParameter, BundleRefused, CatalogInvalid, KeysUnusable
from hubbub.keys.opening_key_files import read_public_keys
from hubbub.programs.text_files import parse_toml
from hubbub.runtime.service_options import read_limits
from hubbub.shuffler.settings import Settings
from hubbub.signing.sign_bundle import sign_bundle
from tests.conftest import CATALOG
from tests.support.bundles import Signed
from tests.support.commands import refusal_of

OPERATOR = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
MORE = b'"version":1,"more":'
Change = Callable[[dict[str, Any]], Any]


def _signed(body: bytes, key: Ed25519PrivateKey = OPERATOR) -> bytes:
    def text(raw: bytes) -> str:
        return base64.b64encode(raw).decode()

    head = {
        "operator": text(key.public_key().public_bytes_raw()),
        "signature": text(key.sign(b"hubbub/1 bundle\n" + body)),
    }
    return json.dumps(head).encode() + b"\n" + body


@pytest.fixture
def body(signed: Signed) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(signed.path.read_bytes().split(b"\n")[1])
    return document


def _theme(**changes: Any) -> Change:
    return lambda body: body["metrics"]["theme"].update(changes)


def _set(**changes: Any) -> Change:
    return lambda body: body.update(changes)


def _key(**changes: Any) -> Change:
    return lambda body: body["keys"][0].update(changes)


def _renamed(name: str) -> Change:
    def change(body: dict[str, Any]) -> None:
        body["history"] = {}
        body["metrics"][name] = body["metrics"].pop("theme")

    return change


BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
CHANGES: dict[str, Change] = {
    **{f"lifetime {n}": _theme(lifetime_epsilon=n) for n in (float("nan"), float("inf"), -1, "5")},
    "lifetime of 400 digits": _theme(lifetime_epsilon=10**400),
    "lifetime below epsilon": _theme(lifetime_epsilon=0.5),
    **{f"reports {n!r}": _theme(reports_per_epoch=n) for n in (0, -1, 1.5, "2", True, 10**9, None)},
    **{f"epsilon {n!r}": _theme(epsilon=n) for n in (0, -1, "1", None, float("nan"), 17, [1])},
    **{f"min_batch {n!r}": _theme(min_batch=n) for n in (0, 1, 9, "20", 1000.5, 10**30)},
    **{f"epoch {n!r}": _theme(epoch=n) for n in ("year", "", None, 1, ["day"], {"day": 1})},
    "values twice": _theme(values=["a", "a"]),
    "values numbers": _theme(values=[1, 2, 3]),
    "values none": _theme(values=None),
    "values a text": _theme(values="abc"),
    "values a table": _theme(values={"a": 1, "b": 2}),
    "values long": _theme(values=["x" * 1025, "b"]),
    "values empty": _theme(values=["", "b"]),
    "mechanism unknown": _theme(mechanism="none"),
    "mechanism a list": _theme(mechanism=["rr"]),
    "expires": _theme(expires="9999-12-31"),
    "expires a number": _theme(expires=20990101),
    "description a number": _theme(description=7),
    "owner a list": _theme(owner=[]),
    "parameters a list": _theme(parameters=[]),
    "parameters texts": _theme(parameters={"f": "0.5"}),
    "parameters epsilon": _theme(parameters={"epsilon": 9.0}),
    "tiers a number": _theme(tiers=0.5),
    "tiers alike": _theme(tiers=[0.5, 0.5000000001]),
    "tiers above": _theme(tiers=[2.0]),
    "sampling": _theme(sampling=2),
    "release": _theme(release={"mechanism": "laplace", "epsilon": "x"}),
    "release unknown": _theme(release={"mechanism": "laplace", "epsilon": 1.0, "more": 1}),
    "choice": _theme(choice={"reports": 5, "best": {}, "runner_up": None}),
    **{f"named {n[:9]!r}": _renamed(n) for n in ("x" * 300, "../../x", "\ud800", "Theme", "a/0.5")},
    "shuffler a number": _set(shuffler=7),
    "shuffler nowhere": _set(shuffler="nowhere"),
    "shuffler port": _set(shuffler="a:99999"),
    "roots a number": _set(roots=7),
    "roots no PEM": _set(roots="hello"),
    "roots no base64": _set(roots=f"{BEGIN}\nhello\n{END}"),
    "history a list": _set(history=[]),
    "history no digest": _set(history={"theme": "x"}),
    "history another digest": _set(history={"theme": "0" * 64}),
    "metrics a list": _set(metrics=[]),
    "metrics texts": _set(metrics={"theme": "x"}),
    "keys a table": _set(keys={}),
    "caps": _set(caps={"epsilon_per_year": -1}),
    "caps unknown": _set(caps={"epsilon_per_decade": 1}),
    "budget": _set(budget={"epsilon_per_year": float("inf"), "purposes": {"a": 1}}),
    "budget shares": _set(budget={"epsilon_per_year": 1, "purposes": {"a": 2}}),
    **{f"serial {n!r}": _set(serial=n) for n in (-1, 1.5, "1", True, 1 << 53, 10**39)},
    "handovers": _set(handovers=[{"old": "", "new": "", "signature": ""}]),
    "handovers a text": _set(handovers="abc"),
    "key id text": _key(id="1"),
    "key id twice": _key(id=2),
    "key id huge": _key(id=1 << 32),
    "key period": _key(start=5, end=5),
    "key times": _key(start="0"),
    "keys overlap": lambda body: body["keys"][0].update(end=body["keys"][1]["end"]),
    "key of zeros": _key(public=base64.b64encode(bytes(32)).decode()),
    "key short": _key(public=base64.b64encode(bytes(31)).decode()),
    "key a number": _key(public=5),
    "version": _set(version=None),
}


def test_an_operator_signs_no_roots_that_are_not_certificates(signed: Signed) -> None:
    roots = f"{BEGIN}\naGVsbG8=\n{END}"
    with pytest.raises(BadParameter, match="roots does not contain certificates in PEM"):
        sign_bundle(replace(signed.bundle, roots=roots), OPERATOR)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_bundle_is_refused_for_the_same_faults_as_a_catalog(
    body: dict[str, Any], change: Change
) -> None:
    open_bundle(_signed(json.dumps(body).encode()), "app.hubbub")
    change(body)
    with pytest.raises(BundleRefused) as caught:
        open_bundle(_signed(json.dumps(body).encode()), "app.hubbub")
    text = str(caught.value)
    assert text.startswith("app.hubbub: signed, but not readable by this version: ")
    assert text.isprintable()
    assert len(text) < 500


@pytest.mark.parametrize(
    "alter",
    [
        lambda text: text.replace(b'"version":1', b'"version":1,"version":1', 1),
        lambda text: text.replace(b'"metrics":{', b'"metrics":{"theme":{},', 1),
        lambda text: text.replace(b'"version":1', MORE + b"[" * 10**5 + b"]" * 10**5),
        lambda text: text.replace(b'"version":1', MORE + b"[" * 40 + b"]" * 40),
        lambda text: text.replace(b'"version":1', b'"version":' + b"1" * 5000),
        lambda text: text.replace(b'"version":1', b'"version":1,"more":1e999'),
        lambda text: text.replace(b"Colour", b"\xff\xfe"),
        lambda text: text.decode().encode("utf-16").replace(b"\n", b""),
        lambda _: b"[]",
        lambda _: b"null",
    ],
)  # fmt: skip
def test_json_is_read_once_and_strictly(body: dict[str, Any], alter: Any) -> None:
    text = json.dumps(body, separators=(",", ":")).encode()
    with pytest.raises(BundleRefused) as caught:
        open_bundle(_signed(alter(text)), "app.hubbub")
    assert str(caught.value).isprintable()


def test_valid_json_reads_back_unchanged() -> None:
    thing = {"a": [1, 2.5, None, True, "ü\U0001f600"], "b": {"c": -(10**30)}}
    assert read_json(json.dumps(thing).encode()) == thing


def test_no_point_of_small_order_is_a_key(signed: Signed) -> None:
    private = X25519PrivateKey.generate()
    for raw in map(bytes.fromhex, signatures._OPENING):
        for top in (0, 0x80):
            weak = raw[:-1] + bytes([raw[-1] | top])
            with pytest.raises(ValueError, match="computing shared key"):
                private.exchange(X25519PublicKey.from_public_bytes(weak))
            with pytest.raises(BadParameter, match="small order"):
                replace(signed.bundle.keys[0], public=weak)
    for raw in map(bytes.fromhex, signatures._SIGNING):
        with pytest.raises(BadParameter, match="small order"):
            signatures.refuse_weak_signing_key(raw[:-1] + bytes([raw[-1] | 0x80]))
    # R = A and S = 0 "sign" anything by a point of order one.
    point = base64.b64encode(b"\1" + bytes(31)).decode()
    forged = {"operator": point, "signature": base64.b64encode(b"\1" + bytes(63)).decode()}
    with pytest.raises(BundleRefused, match="not a bundle"):
        open_bundle(json.dumps(forged).encode() + b"\n{}", "app.hubbub")


def test_an_invalid_path_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "a\0b", tmp_path, Path("/dev/zero")):
        with pytest.raises(BundleRefused) as caught:
            read_bundle(path)
        assert str(caught.value).isprintable()
    with pytest.raises(CatalogInvalid, match="is not a path"):
        read_catalog(tmp_path / "a\0b")


# metrics.toml


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 1.0", f"epsilon = {'9' * 5000}"),
        ("epsilon = 1.0", f"epsilon = {'9' * 400}"),
        ('epoch = "day"', 'epoch = ["day"]'),
        ('epoch = "day"', "epoch = { day = 1 }"),
        ('mechanism = "unary.oue"', 'mechanism = ["rr"]'),
        ('mechanism = "unary.oue"', "mechanism = {}"),
        ("lifetime_epsilon = 50.0", "lifetime_epsilon = inf"),
        ("lifetime_epsilon = 50.0", "lifetime_epsilon = nan"),
        ("lifetime_epsilon = 50.0", f"lifetime_epsilon = {'9' * 400}"),
        ("expires = 2099-06-30", "expires = 9999-12-31"),
        ("expires = 2099-06-30", "expires = 9999-99-99"),
        ("min_batch = 20", f"min_batch = {'9' * 400}"),
        ("min_batch = 20", "min_batch = 20\nsampling = nan"),
        ("min_batch = 20", f"min_batch = 20\nsampling = {'9' * 400}"),
        ("min_batch = 20", f"min_batch = 20\ntiers = [{'9' * 400}]"),
        ("min_batch = 20", "min_batch = 20\nrelease = { mechanism = [], epsilon = 1 }"),
        ("min_batch = 20", 'min_batch = 20\nrelease = { mechanism = "laplace", epsilon = nan }'),
        ("bits = 16", f"bits = {'9' * 400}"),
        ("f = 0.25", "f = nan"),
        ("f = 0.25", "f = inf"),
        ("[metrics.theme]", f"[caps]\nepsilon_per_year = {'9' * 400}\n[metrics.theme]"),
        ("[metrics.theme]", "[caps]\nepsilon_per_year = inf\n[metrics.theme]"),
        ("[metrics.theme]", f"[budget]\nepsilon_per_year = {'9' * 400}\n[metrics.theme]"),
        ("[metrics.theme]", "[budget]\nepsilon_per_year = 1\npurposes = 7\n[metrics.theme]"),
        ('values = ["light", "dark", "system"]', 'values_file = "a\\u0000b"'),
        ('values = ["light", "dark", "system"]', 'values_file = "."'),
        ('values = ["light", "dark", "system"]', 'values_file = "broken.gz"'),
        ('values = ["light", "dark", "system"]', 'values_file = "short.gz"'),
        ('values = ["light", "dark", "system"]', 'values_file = "none.gz"'),
        ('values = ["light", "dark", "system"]', f'values_file = "{"x" * 5000}"'),
        ('"127.0.0.1:1"', '"127.0.0.1:77777"'),
        ("[metrics.theme]", '[metrics."a\\u001b[31m\\nb"]'),
        ('owner = "desktop@example.org"', "own\u202eer = 1"),
    ],
)  # fmt: skip
def test_a_catalog_is_refused_in_lines_and_never_with_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    packed = gzip.compress(b"a\nb\n" * 99)
    (tmp_path / "broken.gz").write_bytes(packed[:10] + b"\xff\xff" + packed[12:])
    (tmp_path / "short.gz").write_bytes(packed[:-9])
    (tmp_path / "none.gz").write_bytes(b"none")
    assert old in CATALOG
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG.replace(old, new, 1))
    for command in (["catalog", "check"], ["privacy", "card"]):
        errors = refusal_of(capsys, *command, str(path))
        assert errors.startswith("hubbub: ")
        assert all(line.isprintable() and "metrics.toml" in line for line in errors.splitlines())


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="nothing here never ends")
def test_a_file_of_values_that_never_ends_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.programs.text_files._MAX_BYTES", 1 << 16)
    path = tmp_path / "metrics.toml"
    listed = 'values = ["light", "dark", "system"]'
    path.write_text(CATALOG.replace(listed, 'values_file = "/dev/zero"', 1))
    assert "a line has more than" in refusal_of(capsys, "catalog", "check", str(path))


def test_files_of_commands_are_read_to_the_end_or_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"a\nb\n" * 99)
    broken = {
        "broken.gz": packed[:10] + b"\xff\xff" + packed[12:],
        "short.gz": packed[:-9],
        "none.gz": b"none",
        "binary.txt": b"\xff\xfe",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadParameter, match=name):
            read_candidates(tmp_path / name)
    for path in (tmp_path, tmp_path / "a\0b", tmp_path / "absent"):
        with pytest.raises(BadParameter):
            read_candidates(path)
    deep = tmp_path / "deep.json"
    for content in (b"[" * 10**5, b'[{"epsilon": 1e999}]', b"7", b'[{"epsilon": "x"}]', b"\xff"):
        deep.write_bytes(content)
        arguments = ["privacy", "compose", "--delta", "1e-6", "--history", str(deep)]
        assert main(arguments) == 2
    (tmp_path / "opening.pub.json").write_text(
        json.dumps(
            [{"id": 1, "start": 0, "end": 1, "public": base64.b64encode(bytes(32)).decode()}]
        )
    )
    with pytest.raises(KeysUnusable):
        read_public_keys(tmp_path)


@pytest.mark.parametrize(
    ("params", "counts"),
    [
        ("2,1,1,1e-99999999,0.75,0.5", "9,1,1"),
        ("2,1,1,0.25,0.75," + "0" * 5000, "9,1,1"),
        ("2,1,1,0.25,1/" + "9" * 100, "9,1,1"),
        ("2,1,2,0.25,0.75,0.5", f"{1 << 62},0,0\n{1 << 62},0,0"),
        ("2,1,2,0.25,0.75,0.5", f"{10**12},0,0\n1,0,0"),
        ("2,1,1,0.25,0.75,0.5", f"{'9' * 5000},0,0"),
    ],
)
def test_numbers_of_rappor_are_within_what_can_be_reckoned(
    tmp_path: Path, params: str, counts: str
) -> None:
    (tmp_path / "params.csv").write_text(f"k,h,m,p,q,f\n{params}\n")
    (tmp_path / "counts.csv").write_text(counts + "\n")
    with pytest.raises(BadParameter, match=r"(params|counts)\.csv"):
        read_collection(tmp_path / "params.csv", tmp_path / "counts.csv")


@pytest.mark.parametrize("part", ["a", '"a b"', "'a.b'"])
@pytest.mark.parametrize("line", ["{} = 1", "[{}]", "x = {{ {} = 1 }}"])
def test_a_key_of_too_many_parts_is_refused_by_every_reader_of_toml(
    tmp_path: Path, part: str, line: str
) -> None:
    path = tmp_path / "hostile.toml"
    path.write_text("# before\n" + line.format(" . ".join([part] * 300)) + "\n")
    refused = "line 2: more than 256 parts joined by dots; shorten the key"
    with pytest.raises(CatalogInvalid, match=refused):
        read_catalog(path)
    with pytest.raises(BadParameter, match=refused):
        read_access(path)
    with pytest.raises(BadParameter, match=refused):
        read_limits(path, ["peer_rate"], Settings)


def test_deep_tables_and_arrays_are_refused_by_every_reader_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "hostile.toml"
    for text in ("x = " + "[" * 9000 + "]" * 9000, "x = " + "{a = " * 9000 + "1" + "}" * 9000):
        path.write_text(text)
        with pytest.raises(CatalogInvalid, match="nested too deeply"):
            read_catalog(path)
        with pytest.raises(BadParameter, match="nested too deeply"):
            read_access(path)
        with pytest.raises(BadParameter, match="nested too deeply"):
            read_limits(path, ["peer_rate"], Settings)


def test_long_host_names_and_long_lines_are_read_as_toml() -> None:
    host = ".".join(["a"] * 127)
    line = "a" * 1_000_000
    assert parse_toml(f'host = "{host}"\n{line} = 1') == {"host": host, line: 1}


def test_no_number_of_toml_is_a_negative_zero() -> None:
    document = parse_toml("edges = [-0.0, 1.5]\nlow = { at = -0e3 }\nbelow = -0.5")
    assert str(document) == "{'edges': [0.0, 1.5], 'low': {'at': 0.0}, 'below': -0.5}"
    labelled = numeric_kinds()["number"].labels((-5.0, -0.0, 3.0, 4.0), "", clamps=True)
    assert labelled == ("below 0", "0 to 3", "3 or more")
