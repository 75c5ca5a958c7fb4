"""The file of access: what is wrong in it is said, with the place and the remedy."""

import sys
from pathlib import Path

import pytest

from hubbub.aggregator.access.access_file import files_of, read_access
from hubbub.aggregator.access.callers import access_of
from hubbub.aggregator.access.tokens import Caller, Grant
from hubbub.cli.main import main
from hubbub.errors import AccessRefused, BadParameter, MissingDependency
from tests.support.commands import refusal_of

WHOLE = """
origin = "https://hubbub.example.org"

[oidc]
issuer = "https://id.example.org/realms/company"
client = "hubbub"

[groups."/analysts"]
metrics = ["*"]

[groups.browsers]
role = "publisher"
metrics = ["browser.*"]
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "access.toml"
    path.write_text(text)
    return path


def test_fields_of_the_access_file_are_read_and_missing_ones_have_defaults(tmp_path: Path) -> None:
    access = read_access(_file(tmp_path, WHOLE))
    assert access.groups == {
        "/analysts": Grant("viewer", ("*",)),
        "browsers": Grant("publisher", ("browser.*",)),
    }
    assert access.oidc is not None
    assert (access.oidc.audience, access.oidc.groups_claim) == ("hubbub", "groups")
    assert (access.oidc.session_seconds, access.oidc.title) == (8 * 3600, "id.example.org")
    assert files_of(tmp_path / "access.toml") == [tmp_path / "access.toml"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[oidc]", "[oidc", "cannot be read as TOML"),
        ("[oidc]", "[oicd]", 'did you mean "oidc"'),
        ("issuer =", "isuer =", 'did you mean "issuer"'),
        ("https://id", "http://id", r"\[oidc\] issuer is not https"),
        ("https://hubbub.example.org", "https://hubbub.example.org/x", "origin must be https"),
        ('origin = "https://hubbub.example.org"', "", "origin is missing"),
        ('client = "hubbub"', 'client = ""', "client is empty"),
        ('client = "hubbub"', 'client = "x"\naudience = ""', "audience is empty"),
        ('client = "hubbub"', 'client = "x"\ngroups_claim = ""', "groups_claim is empty"),
        ('client = "hubbub"', 'client = "x"\nauthority = "access.toml"', "no certificates in PEM"),
        ('[groups."/analysts"]', '[groups.""]', "is an empty group name"),
        ('metrics = ["*"]', 'metrics = [""]', "is not a list of texts"),
        ('client = "hubbub"', 'client = "x"\nsession_hours = 0', r"in \[1, 168\]"),
        ('client = "hubbub"', 'client = "x"\nscopes = ["email"]', 'lacks "openid"'),
        ('client = "hubbub"', 'client = "x"\nsecret_file = "none"', "its secret_file.*cannot"),
        (
            'client = "hubbub"',
            'client = "x"\nsession_keys = "access.toml"',
            "a line that is not a key",
        ),
        ('role = "publisher"', 'role = "boss"', "role is not one of viewer, publisher, admin"),
        ('metrics = ["*"]', "", r"\[groups\./analysts\] metrics is missing"),
        ('metrics = ["*"]', 'metrics = "*"', "is not a list of texts"),
        (
            'role = "publisher"',
            'certificates = ["ana"]',
            "certificates no longer exists; delete it: .*keys token",
        ),
    ],
)
def test_mistakes_in_the_access_file_are_named(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(BadParameter, match=message):
        read_access(_file(tmp_path, WHOLE.replace(old, new, 1)))


def test_a_secret_that_is_empty_makes_no_public_client(tmp_path: Path) -> None:
    (tmp_path / "oidc.secret").write_text("\n")
    line = 'client = "hubbub"\nsecret_file = "oidc.secret"'
    with pytest.raises(BadParameter, match="secret_file is an empty file; leave it out"):
        read_access(_file(tmp_path, WHOLE.replace('client = "hubbub"', line)))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--name", ""], "a token's name is 1 to 100"),
        (["--name", "a", "--group", ""], "a group's name is 1 to 100"),
        (["--group", "a"], "are for one token: name it with --name"),
        (["--remove"], "are for one token: name it with --name"),
    ],
)
def test_an_empty_token_is_refused(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a script's variable that is not set: it listed who may ask, or saw "everything"."""
    assert message in refusal_of(capsys, "keys", "token", str(tmp_path / "tokens.json"), *more)
    assert not (tmp_path / "tokens.json").exists()


@pytest.mark.parametrize("text", [WHOLE.partition("[groups")[0], "", "# to come\n", "[groups]\n"])
def test_a_file_without_groups_lets_nobody_in_and_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadParameter, match="no group has access"):
        read_access(_file(tmp_path, text))


def test_files_that_are_named_are_known_before_they_or_it_can_be_used(tmp_path: Path) -> None:
    """So that it is read anew when what was missing is there."""
    path = _file(tmp_path, '[oidc]\nissuer = 3\nsecret_file = "a"\nsession_keys = "b"\n')
    assert files_of(path) == [path, tmp_path / "a", tmp_path / "b"]
    for unusable in ("[oidc", "oidc = 1", "[oidc]\nsecret_file = ['x']\nauthority = ''\n"):
        assert files_of(_file(tmp_path, unusable)) == [path]
    path.unlink()
    assert files_of(path) == [path]


def test_keys_of_sessions_are_made_and_changed(tmp_path: Path) -> None:
    keys = tmp_path / "session.keys"
    for _ in range(3):
        assert main(["keys", "session", str(keys)]) == 0
    more = 'client = "hubbub"\nsession_keys = "session.keys"'
    access = read_access(_file(tmp_path, WHOLE.replace('client = "hubbub"', more)))
    assert access.oidc is not None
    assert len(access.oidc.session_keys) == 2, "the new one and the former"
    assert keys.stat().st_mode & 0o777 == 0o600
    assert files_of(tmp_path / "access.toml") == [tmp_path / "access.toml", keys]


def test_a_missing_extra_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "authlib"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("login", "provider", "claims"):
        monkeypatch.delitem(sys.modules, f"hubbub.aggregator.access.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "authlib", None)
    with pytest.raises(MissingDependency, match=r"PATH\[oidc\]"):
        access_of(None, read_access(_file(tmp_path, WHOLE)))


def test_grants_add_up_and_cover_tiers() -> None:
    caller = Caller(
        name="x", way="token", grants=(Grant("viewer", ("a*",)), Grant("publisher", ("b",)))
    )
    assert (caller.role, caller.sees_all) == ("publisher", False)
    assert [caller.sees(name) for name in ("a", "a/0.5", "b", "c")] == [True, True, True, False]
    with pytest.raises(AccessRefused, match="for this metric"):
        caller.check("publisher", "a")
    caller.check("publisher", "b")
    with pytest.raises(AccessRefused, match="needs the role viewer"):
        Caller(name="y", way="login", grants=()).check("viewer")
