"""Runs the demo, looks at its page in a browser, draws true against estimated counts.

Two small files beside this one: page.png and true_and_estimated.png.
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

from matplotlib import pyplot as plt
from playwright.sync_api import sync_playwright

FOLDER: Final = Path(__file__).parent
METRICS: Final = ("education", "occupation", "age_group")
WIDTH, HEIGHT = 1000, 1090


def main() -> int:
    """Make both: 0."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no chromium here: apt-get install chromium", file=sys.stderr)
        return 2
    with _demo() as (address, document):
        _page(chromium, address)
        _true_and_estimated(document)
    for path in sorted(FOLDER.glob("*.png")):
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
        said = iter(process.stdout.readline, "")
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
        page.goto(f"{address}metric?name=education")
        page.wait_for_selector("main[aria-busy=false]")
        page.screenshot(path=FOLDER / "page.png")
        browser.close()


def _true_and_estimated(document: dict[str, Any]) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.5))
    most = 0
    for name in METRICS:
        rows = document["metrics"][name]["values"]
        true = [row["true"] for row in rows]
        middle = [row["estimate"] for row in rows]
        off = [
            # Below zero an estimate is outside its interval.
            [max(0.0, row["estimate"] - row["low"]) for row in rows],
            [max(0.0, row["high"] - row["estimate"]) for row in rows],
        ]
        epsilon = document["metrics"][name]["epsilon"]
        label = f"{name}, epsilon {epsilon:.2g}"
        axes.errorbar(true, middle, yerr=off, fmt="o", markersize=4, capsize=2, label=label)
        most = max(most, *true)
    axes.plot([0, most], [0, most], color="grey", linewidth=1, linestyle="--")
    axes.set_xlabel("people who truly hold a value")
    axes.set_ylabel("estimate, with its 95% interval")
    axes.set_title("30,162 real people, each device lying a little")
    axes.legend()
    figure.tight_layout()
    figure.savefig(FOLDER / "true_and_estimated.png", dpi=90)


if __name__ == "__main__":
    sys.exit(main())
