"""Builds the site of the documentation, and shows it: `python -m docs.site [--port N]`."""

import argparse
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from docs.site.gather import gather

ROOT: Final = Path(__file__).parents[2]
BUILT: Final = ROOT / "build" / "docs"
CONFIGURATION: Final = Path(__file__).parent / "zensical.toml"


def main() -> int:
    """Build it, and serve it unless only that was asked: 0, or 1 if a page is wrong."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=main.__doc__)
    parser.add_argument("--build", action="store_true", help="build it and end")
    parser.add_argument("--out", type=Path, default=BUILT, help="folder (build/docs)")
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1 (a free one)")
    given = parser.parse_args()
    if not build(given.out):
        return 1
    if not given.build:
        _serve(given.out / "html", given.port)
    return 0


def build(out: Path) -> bool:
    """Build the site into a folder, html/ in it. False, with what is wrong on stderr."""
    gather(out / "pages")
    wrong = rendered(out)
    if wrong:
        print(f"{wrong}\nThese are the pages in {out / 'pages'}: mend theirs.", file=sys.stderr)
    return not wrong


def rendered(out: Path) -> str:
    """Turn pages/ of a folder into html/ beside it: what is wrong with them, else nothing."""
    (out / "zensical.toml").write_text(CONFIGURATION.read_text().replace("@ROOT@", ROOT.as_posix()))
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    done = subprocess.run(
        [*command, "--config-file", str(out / "zensical.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    lines = said.partition("Traceback")[0].splitlines() + said.splitlines()[-1:]
    return "\n".join(lines) if done.returncode else ""


def _serve(folder: Path, port: int) -> None:
    """Show a folder on this machine alone until Ctrl-C."""
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/ until Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    sys.exit(main())
