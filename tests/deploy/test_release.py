"""A release is the same bytes whoever makes it, says what is in it, and what is installed of it."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from hubbub.programs.installed_hashes import _installed_package, digest_of

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
LOCKS = ("client.lock", "shuffler.lock", "aggregator-all.lock", "tools.lock")


def _released(folder: Path, **environment: str) -> dict[str, bytes]:
    subprocess.run(
        [sys.executable, "-m", "deploy.release", str(folder)],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return _released(tmp_path_factory.mktemp("release"), PYTHONHASHSEED="1", TZ="UTC")


@pytest.fixture
def site(release: dict[str, bytes], tmp_path: Path) -> Path:
    """A folder where both wheels are installed."""
    wheels = [name for name in release if name.endswith(".whl")]
    assert len(wheels) == 2
    for name in wheels:
        (tmp_path / name).write_bytes(release[name])
        with zipfile.ZipFile(tmp_path / name) as wheel:
            wheel.extractall(tmp_path / "site")  # noqa: S202 ours
    return tmp_path / "site"


def test_a_release_built_twice_has_the_same_bytes(
    release: dict[str, bytes], tmp_path: Path
) -> None:
    """Under another umask, in another zone and with other hashes of strings."""
    former = os.umask(0o077)
    try:
        again = _released(tmp_path / "again", PYTHONHASHSEED="2", TZ="Pacific/Auckland")
    finally:
        os.umask(former)
    assert sorted(again) == sorted(release)
    kinds = sorted(re.sub(r"-0\.\d.*?(?=-py3|\.tar|\.tgz)", "", name) for name in release)
    assert kinds == [
        "first_publication.md",
        "hubbub-client.tgz",
        "hubbub-py3-none-any.whl",
        "hubbub.tar.gz",
        "hubbub_client-py3-none-any.whl",
        "hubbub_client.tar.gz",
        "provenance.json",
        "sbom.cdx.json",
    ]
    for name, content in release.items():
        assert content == again[name], name


def test_the_bill_of_materials_has_everything_that_the_locks_name(
    release: dict[str, bytes],
) -> None:
    bom = json.loads(release["sbom.cdx.json"])
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    named = {
        (component["name"], component["version"]): component for component in bom["components"]
    }
    assert (
        len(named)
        == len(bom["components"])
        == len({component["bom-ref"] for component in named.values()})
    )
    for lock in LOCKS:
        text = (ROOT / "locks" / lock).read_text()
        pinned = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
        assert pinned
        for name, version in pinned:
            assert named[name, version]["purl"] == f"pkg:pypi/{name}@{version}"
            assert named[name, version]["hashes"]
    [sealing] = [
        component for component in bom["components"] if component["name"] == "@panva/hpke-noble"
    ]
    assert sealing["purl"].startswith("pkg:npm/%40panva/hpke-noble@")
    assert not any(component["name"] == "eslint" for component in bom["components"]), (
        "of development alone"
    )


def test_the_checklist_has_the_digest_of_all_that_is_published(release: dict[str, bytes]) -> None:
    checklist = release["first_publication.md"].decode()
    assert "{" not in checklist
    for name, content in release.items():
        if name.endswith((".whl", ".gz", ".tgz", "sbom.cdx.json")):
            assert f"{hashlib.sha256(content).hexdigest()}  {name}" in checklist


def test_a_device_installs_at_most_two_megabytes_and_no_server(release: dict[str, bytes]) -> None:
    [name] = [name for name in release if name.startswith("hubbub_client-") and ".whl" in name]
    with zipfile.ZipFile(io.BytesIO(release[name])) as wheel:
        packages = {path.split("/")[1] for path in wheel.namelist() if path.count("/") > 1}
        assert sum(entry.file_size for entry in wheel.infolist()) < 2_000_000
    assert packages - {"licenses"} == {
        path.parent.name for path in (ROOT / "client" / "hubbub").glob("*/__init__.py")
    }


def test_the_wheel_of_the_source_distribution_is_the_wheel(
    release: dict[str, bytes], tmp_path: Path
) -> None:
    [name] = [name for name in release if re.match(r"hubbub_client-.*gz", name)]
    with tarfile.open(fileobj=io.BytesIO(release[name])) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    assert sorted(zipfile.ZipFile(wheel).namelist()) == sorted(
        zipfile.ZipFile(io.BytesIO(release[wheel.name])).namelist()
    )


def test_the_statement_has_the_digest_of_every_file_and_lock(release: dict[str, bytes]) -> None:
    statement = json.loads(release["provenance.json"])
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    for name, content in release.items():
        if name != "provenance.json":
            assert digests.pop(name) == hashlib.sha256(content).hexdigest()
    assert list(digests) == ["content of hubbub/ as installed"]
    built = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert re.fullmatch(r"[0-9a-f]{40}", built[0]["digest"]["gitCommit"])
    locks = {f"locks/{path.name}": path for path in (ROOT / "locks").glob("*.lock")}
    assert {dependency["name"] for dependency in built[1:]} == locks.keys()


def test_one_changed_byte_of_an_installed_release_is_detected(
    release: dict[str, bytes], site: Path
) -> None:
    subject = json.loads(release["provenance.json"])["subject"]
    [content] = [s for s in subject if s["name"] == "content of hubbub/ as installed"]
    [client] = site.glob("hubbub_client-*.dist-info")
    installations = [
        _installed_package(PathDistribution(info)) for info in site.glob("*.dist-info")
    ]
    assert sum(installation.files for installation in installations) > 300
    assert [installation.changed for installation in installations] == [(), ()]
    assert digest_of(installations) == content["digest"]["sha256"]
    grr = site / "hubbub" / "mechanisms" / "grr.py"
    grr.write_text(grr.read_text().replace("at_most", "at_least", 1))
    (site / "hubbub" / "mechanisms" / "rr.py").unlink()
    changed = _installed_package(PathDistribution(client)).changed
    assert changed == ("hubbub/mechanisms/grr.py", "hubbub/mechanisms/rr.py")


def test_verify_names_the_changed_files_and_fails(site: Path) -> None:
    (site / "hubbub" / "mechanisms" / "grr.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "hubbub.cli", "--verify", "--version"],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.search(r"^hubbub \S+, content sha256:[0-9a-f]{64}$", done.stdout, re.MULTILINE)
    assert "hubbub/mechanisms/grr.py differs from the installation record" in done.stdout
    assert "hubbub/mechanisms/rr.py" not in done.stdout
