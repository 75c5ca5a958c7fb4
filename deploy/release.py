"""Makes a release: `python -m deploy.release FOLDER`, the same bytes wherever and whenever it runs.

Of the commit that is checked out: wheels and source distributions of hubbub-client and hubbub, the
npm tarball, a bill of materials (CycloneDX), a checklist for the first publication, and a statement
of provenance (in-toto, SLSA) with the digests of all of it.
"""

import base64
import csv
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

from hubbub.programs.installed_hashes import content_digest

ROOT: Final = Path(__file__).parents[1]
# Files from which a service or an app is installed; each has versions and hashes.
LOCKS: Final = ("client.lock", "shuffler.lock", "aggregator-all.lock", "tools.lock")
_CHECKLIST: Final = "first_publication.md"
_PROVENANCE: Final = "provenance.json"
_PINNED: Final = re.compile(r"(?ms)^([A-Za-z0-9._-]+)==([^\s;]+)(.*?)(?=^\S|\Z)")


def release(out: Path, root: Path = ROOT) -> dict[str, str]:
    """Makes a release in a folder; returns SHA-256 by file name. `root` is a git checkout."""
    out.mkdir(parents=True, exist_ok=True)
    commit, seconds = _git(root, "log", "-1", "--format=%H %ct").decode().split()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "hubbub"
        packed = _git(root, "archive", commit)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extraction_filter = lambda member, _: member  # ours; none before Python 3.11.4
            archive.extractall(source)  # noqa: S202
        build = ["env", f"SOURCE_DATE_EPOCH={seconds}", "TZ=UTC", sys.executable, "-m"]
        for part in (source / "client", source):
            _run([*build, "hatchling", "build", "-d", str(out.resolve())], part)
        _pack_npm(root, source / "client" / "typescript", out)
    bom = json.dumps(bill_of_materials(root, commit), indent=1) + "\n"
    (out / "sbom.cdx.json").write_text(bom, encoding="utf-8")
    digests = {p.name: _sha256(p.read_bytes()) for p in sorted(out.iterdir()) if p.is_file()}
    for later in (_PROVENANCE, _CHECKLIST):
        digests.pop(later, None)
    template = (root / "deploy" / "packaging" / _CHECKLIST).read_text("utf-8")
    lines = "\n".join(f"    {digest}  {name}" for name, digest in digests.items())
    checklist = template.format(version=_version(root), commit=commit, digests=lines)
    (out / _CHECKLIST).write_text(checklist, encoding="utf-8")
    digests[_CHECKLIST] = _sha256(checklist.encode())
    # What `hubbub --version --verify` prints once these are installed.
    hashes: dict[str, str] = {}
    for wheel in sorted(out.glob("*.whl")):
        with zipfile.ZipFile(wheel) as contents:
            [record] = [name for name in contents.namelist() if name.endswith(".dist-info/RECORD")]
            rows = csv.reader(io.StringIO(contents.read(record).decode()))
            hashes |= {
                path: recorded.removeprefix("sha256=")
                for path, recorded, _ in rows
                if path.startswith("hubbub/")
            }
    statement = _provenance(root, commit, digests, content_digest(hashes))
    text = json.dumps(statement, indent=1) + "\n"
    (out / _PROVENANCE).write_text(text, encoding="utf-8")
    return {**digests, _PROVENANCE: _sha256(text.encode())}


def _pack_npm(root: Path, source: Path, out: Path) -> None:
    """The tarball that `npm pack` makes, with its files in order and each with the same mode."""
    modules = root / "client" / "typescript" / "node_modules"
    if not modules.exists():
        raise SystemExit(f"{modules} is missing: run make typescript")
    (source / "node_modules").symlink_to(modules.resolve())
    for unpacked in ("examples", "tests"):  # they take longer to compile than what is packed
        shutil.rmtree(source / unpacked)
    _run(["npm", "run", "--silent", "build"], source)
    _run(["npm", "pack", "--silent"], source)
    [packed] = source.glob("*.tgz")
    tarball = io.BytesIO()
    with (
        tarfile.open(packed) as files,
        gzip.GzipFile(filename="", mode="wb", fileobj=tarball, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as ordered,
    ):
        for entry in sorted(files.getmembers(), key=lambda entry: entry.name):
            tar_entry = tarfile.TarInfo(entry.name)
            tar_entry.size, tar_entry.mode, tar_entry.mtime = entry.size, 0o644, int(entry.mtime)
            ordered.addfile(tar_entry, files.extractfile(entry))
    (out / packed.name).write_bytes(tarball.getvalue())


def bill_of_materials(root: Path, commit: str) -> dict[str, Any]:
    """A CycloneDX 1.6 document of the locked dependencies, once each, with their hashes."""
    hashes_by_package: dict[tuple[str, str], set[str]] = {}
    for lock in LOCKS:
        for name, version, hash_text in _PINNED.findall((root / "locks" / lock).read_text("utf-8")):
            hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", hash_text)
            hashes_by_package.setdefault((name, version), set()).update(hashes)
    components = [
        _component("pypi", name, version, "SHA-256", sorted(hashes))
        for (name, version), hashes in sorted(hashes_by_package.items())
    ]
    npm = json.loads((root / "client/typescript/package-lock.json").read_text("utf-8"))
    for path, package in sorted(npm["packages"].items()):
        if path and not package.get("dev"):
            name, version = path.rpartition("node_modules/")[2], package["version"]
            sha512 = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
            components.append(_component("npm", name, version, "SHA-512", [sha512]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "hubbub",
                "name": "hubbub",
                "version": _version(root),
                "properties": [{"name": "commit", "value": commit}],
            }
        },
        "components": components,
    }


def _component(
    registry: str, name: str, version: str, algorithm: str, digests: list[str]
) -> dict[str, Any]:
    purl = f"pkg:{registry}/{name.replace('@', '%40')}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": algorithm, "content": digest} for digest in digests],
    }


def _provenance(root: Path, commit: str, files: dict[str, str], all_digest: str) -> dict[str, Any]:
    """An unsigned in-toto statement: what the files were made of, and how to make them again."""
    paths = sorted((root / "locks").glob("*.lock"))
    locks = {f"locks/{path.name}": _sha256(path.read_bytes()) for path in paths}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            *({"name": name, "digest": {"sha256": digest}} for name, digest in files.items()),
            {"name": "content of hubbub/ as installed", "digest": {"sha256": all_digest}},
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "python -m deploy.release FOLDER",
                "externalParameters": {"version": _version(root)},
                "resolvedDependencies": [
                    {"uri": "git", "digest": {"gitCommit": commit}},
                    *({"name": name, "digest": {"sha256": locks[name]}} for name in locks),
                ],
            },
            "runDetails": {"builder": {"id": "whoever runs it: the bytes are the same"}},
        },
    }


def _version(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _git(root: Path, *words: str) -> bytes:
    git = ["git", "-C", str(root), *words]
    return subprocess.run(git, capture_output=True, check=True).stdout  # noqa: S603 our own words


def _run(words: list[str], folder: Path) -> None:
    done = subprocess.run(  # noqa: S603 our own words
        words, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 the folder
        raise SystemExit("usage: python -m deploy.release FOLDER")
    lines = [f"{digest}  {name}\n" for name, digest in release(Path(sys.argv[1])).items()]
    sys.stdout.write("".join(lines))
