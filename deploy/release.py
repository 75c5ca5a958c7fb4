"""Makes a release: `python -m deploy.release FOLDER`, the same bytes wherever and whenever it runs.

Of the commit that is checked out: wheel, source distribution, npm tarball, bill of materials
(CycloneDX) and a statement of provenance (in-toto, SLSA), with the digests of all of it.
"""

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hubbub.cli.integrity import content_digest

ROOT: Final = Path(__file__).parents[1]
# What a service or an app is installed from; each names versions and hashes.
LOCKS: Final = ("client.lock", "shuffler.lock", "aggregator-all.lock", "tools.lock")
_PINNED: Final = re.compile(
    r"^([A-Za-z0-9._-]+)==([^\s;]+)(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL
)


def release(out: Path, root: Path = ROOT) -> dict[str, str]:
    """Make all of it in a folder: SHA-256 by file name. root: of a git checkout."""
    out.mkdir(parents=True, exist_ok=True)
    commit, seconds = _git(root, "log", "-1", "--format=%H %ct").decode().split()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "hubbub"
        packed = _git(root, "archive", commit)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extraction_filter = lambda member, _: member  # ours; none before Python 3.11.4
            archive.extractall(source)  # noqa: S202
        build = ["env", f"SOURCE_DATE_EPOCH={seconds}", "TZ=UTC"]
        _run([*build, sys.executable, "-m", "hatchling", "build", "-d", str(out.resolve())], source)
    bom = json.dumps(bill_of_materials(root, commit), indent=1) + "\n"
    (out / "sbom.cdx.json").write_text(bom, encoding="utf-8")
    digests = {p.name: _sha256(p.read_bytes()) for p in sorted(out.iterdir()) if p.is_file()}
    digests.pop("provenance.json", None)
    [wheel] = out.glob("*.whl")
    statement = _provenance(root, commit, digests, _wheel_content(wheel))
    text = json.dumps(statement, indent=1) + "\n"
    (out / "provenance.json").write_text(text, encoding="utf-8")
    return {**digests, "provenance.json": _sha256(text.encode())}


def bill_of_materials(root: Path, commit: str) -> dict[str, Any]:
    """CycloneDX 1.6 of what the locks name, once each, with the hashes that installing checks."""
    found: dict[tuple[str, str], set[str]] = {}
    for lock in LOCKS:
        for name, version, hashes in _pinned((root / "locks" / lock).read_text("utf-8")):
            found.setdefault((name, version), set()).update(hashes)
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "hashes": [{"alg": "SHA-256", "content": one} for one in sorted(hashes)],
        }
        for (name, version), hashes in sorted(found.items())
    ]
    npm = json.loads((root / "client/typescript/package-lock.json").read_text("utf-8"))
    for path, one in sorted(npm["packages"].items()):
        if path and not one.get("dev"):
            name = path.rpartition("node_modules/")[2]
            purl = f"pkg:npm/{name.replace('@', '%40')}@{one['version']}"
            sha512 = base64.b64decode(one["integrity"].removeprefix("sha512-")).hex()
            components.append(
                {
                    "type": "library",
                    "bom-ref": purl,
                    "name": name,
                    "version": one["version"],
                    "purl": purl,
                    "hashes": [{"alg": "SHA-512", "content": sha512}],
                }
            )
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


def _provenance(root: Path, commit: str, digests: dict[str, str], content: str) -> dict[str, Any]:
    """Of what the files were made, and how to make them again: an unsigned in-toto statement."""
    locks = {f"locks/{p.name}": p.read_bytes() for p in sorted((root / "locks").glob("*.lock"))}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            *({"name": name, "digest": {"sha256": one}} for name, one in digests.items()),
            {"name": "content of hubbub/ as installed", "digest": {"sha256": content}},
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "python -m deploy.release FOLDER",
                "externalParameters": {"version": _version(root)},
                "resolvedDependencies": [
                    {"uri": "git", "digest": {"gitCommit": commit}},
                    *(
                        {"name": name, "digest": {"sha256": _sha256(raw)}}
                        for name, raw in locks.items()
                    ),
                ],
            },
            "runDetails": {"builder": {"id": "whoever runs it: the bytes are the same"}},
        },
    }


def _pinned(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for name, version, rest in _PINNED.findall(text):
        yield name, version, re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)


def _wheel_content(wheel: Path) -> str:
    """As `hubbub --version --verify` says it of what is installed from this wheel."""
    with zipfile.ZipFile(wheel) as packed:
        [record] = [name for name in packed.namelist() if name.endswith(".dist-info/RECORD")]
        rows = csv.reader(io.StringIO(packed.read(record).decode()))
        return content_digest(
            {
                path: told.removeprefix("sha256=")
                for path, told, _ in rows
                if path.startswith("hubbub/")
            }
        )


def _version(root: Path) -> str:
    [found] = re.findall(r'^version = "(.+)"$', (root / "pyproject.toml").read_text(), re.MULTILINE)
    return str(found)


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
