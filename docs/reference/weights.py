"""What each extra weighs: installed with the versions of the lock, and counted.

`make weights` writes docs/reference/extras.md; it needs the package index, and some minutes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from docs.reference.tables import table
from hubbub.errors.message_words import OF_DEVICES

ROOT: Final = Path(__file__).parents[2]
CLIENT: Final = (ROOT / "client").as_uri()
PAGE: Final = ROOT / "docs" / "reference" / "extras.md"
EXTRAS: Final = {
    "client": "an app",
    "": "`hubbub ledger`, `catalog new`, `catalog check`, `catalog codegen`; questions: `hubbub query`, `status`, `export`",
    "cli": "keys, bundles, `hubbub init`",
    "plan": "`hubbub plan`, `privacy`, `audit`, `simulate`; catalogs with `central_epsilon`",
    "relay": "an app that sends through a relay",
    "tokens": "an app whose reports go with tokens",
    "shuffler": "`hubbub shuffler`, `hubbub relay`, `hubbub issuer`",
    "aggregator": "`hubbub aggregator`",
    "aggregator,cli": "beside it `hubbub forget`, `backup`, `restore`",
    "aggregator,releases": "an aggregator of a catalog with a `release`",
    "aggregator,oidc": "an aggregator whose people log in at a provider",
    "aggregator,tables": "an aggregator that writes Parquet",
    "local": "`hubbub up`, `hubbub demo`",
    "notebook": "an analyst's notebook, with data frames and plots",
    "all": "everything but the notebook's",
}
_HEAD: Final = """# What each extra weighs

Made by `make weights`, which installs each by itself with the versions of `locks/dev.lock` and counts; measured with Python {python} on {platform}.

In a checkout, `pip install ./client` installs what a device needs; `pip install ./client '.[EXTRA]'` what other work needs.
With wheels: `pip install ./hubbub_client-VERSION-py3-none-any.whl './hubbub-VERSION-py3-none-any.whl[EXTRA]'`.
Always name both: no package index has them, and packages of those names there are somebody else's.
A command that lacks something names the smallest extra that has it.
Sizes are on disk, compiled, in megabytes, with hubbub itself.

"""


def page() -> str:
    """The page, measured now."""
    rows = []
    for extra, purpose in EXTRAS.items():
        packages, size_bytes = _measure_extra(extra)
        name = install_name(extra)
        rows.append((f"`{name}`", purpose, str(packages), f"{size_bytes / 1e6:.0f}"))
        sys.stderr.write(f"{name}: {rows[-1][3]} MB\n")
    version, platform = sys.version_info, sys.platform
    head = _HEAD.format(python=f"{version.major}.{version.minor}", platform=platform)
    return head + table(("install", "for", "packages", "MB"), rows).rstrip() + "\n"


def install_name(extra: str) -> str:
    """The distribution that has an extra, as requirements name both."""
    if extra in ("", "client"):
        return "hubbub-client" if extra else "hubbub"
    return f"{'hubbub-client' if extra in OF_DEVICES else 'hubbub'}[{extra}]"


def _measure_extra(extra: str) -> tuple[int, int]:
    """How many packages an extra installs, and how many bytes they take."""
    with tempfile.TemporaryDirectory() as folder:
        uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet"]
        wanted = [f"{install_name(extra)} @ {ROOT.as_uri()}", f"hubbub-client @ {CLIENT}"]
        if install_name(extra).startswith("hubbub-client"):
            wanted = [f"{install_name(extra)} @ {CLIENT}"]
        lock = str(ROOT / "locks" / "dev.lock")
        into = ["--target", folder, "--compile-bytecode", "--constraint", lock]
        subprocess.run([*uv, *into, "--python", sys.executable, *wanted], check=True)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        packages = len(list(Path(folder).glob("*.dist-info")))
        return packages, sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
