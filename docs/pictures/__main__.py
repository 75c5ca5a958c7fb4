"""Runs the demo, looks at its page in a browser, and draws one question asked in both ways.

Files beside this one: page.png, both_ways.json and both_ways.svg.
"""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import sync_playwright

from docs.pictures import both_ways

FOLDER: Final = Path(__file__).parent
WIDTH, HEIGHT = 1000, 1090


def main() -> int:
    """Make both: 0."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no chromium here: apt-get install chromium", file=sys.stderr)
        return 2
    with _demo() as (address, document):
        _page(chromium, address)
        both_ways.write(document)
    for path in sorted((*FOLDER.glob("*.png"), both_ways.NUMBERS, both_ways.PICTURE)):
        print(f"{path.relative_to(Path.cwd())}: {path.stat().st_size:,} bytes")
    return 0


@contextmanager
def _demo() -> Iterator[tuple[str, dict[str, Any]]]:
    """Its page's address, and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "demo.json"
        command = [sys.executable, "-m", "hubbub.cli", "demo", "--json", str(written)]
        command += ["--keep", str(Path(folder) / "kept")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if process.stdout is None:
            raise AssertionError("a pipe was asked for")
        said = (print(line, end="") or line for line in iter(process.stdout.readline, ""))
        address = next(line for line in said if line.startswith("Look at it: ")).split()[3]
        try:
            yield address, json.loads(written.read_text())
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def _page(chromium: str, address: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{address}metric?name={both_ways.CROWD}&beside={both_ways.ALONE}")
        page.wait_for_selector("main[aria-busy=false]")
        page.screenshot(path=FOLDER / "page.png")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
