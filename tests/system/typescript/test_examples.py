"""The examples of client/typescript run as they stand: a page, React, a server, Electron's main."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.development_server import Developing
from tests.support.node import PACKAGE, build, needs_node, run
from tests.support.programs import run_program
from tests.system.typescript.pages import counted

# What the main process has of Electron, which a machine without a screen cannot install.
ELECTRON = """
import { EventEmitter } from "node:events";
export const said = [];
const heard = new Map();
export const ipcMain = { handle: (channel, own) => heard.set(channel, own) };
export const ask = (...told) => heard.get("report")({}, ...told);
export const app = Object.assign(new EventEmitter(), {
  getAppPath: () => process.env.APP,
  getPath: () => process.env.APP,
  whenReady: () => Promise.resolve(),
  quit() {
    let waits = false;
    app.emit("before-quit", { preventDefault: () => (waits = true) });
    said.push(waits ? "waits" : "ends");
  },
});
export class BrowserWindow {
  constructor(options) {
    said.push(options.webPreferences.preload.split("/").at(-1));
  }
  loadFile() {
    return Promise.resolve();
  }
}
"""
ASK = """
import { app, ask, said } from "electron";
await import("./main.js");
said.push(ask("electron", "dark"));
try { ask("nothing", "dark"); } catch (error) { said.push(error.name); } // strict, of development
app.quit();
while (said.at(-1) !== "ends") await new Promise((resolve) => setTimeout(resolve, 20));
console.log(said.join(" "));
"""
REACT = """
<!doctype html><html lang=en><title>React</title><div id=place></div>
<script type=module>
import { show } from "./react.js";
const shuffler = new URLSearchParams(location.search).get("door");
show(document.querySelector("#place"), { bundle: "app.hubbub", shuffler });
</script>
"""

pytestmark = needs_node


@pytest.fixture(scope="module", autouse=True)
def _built(site: Path) -> None:
    assert site.exists()
    build()


@contextmanager
def _running(*words: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        ["node", *words], cwd=PACKAGE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.mark.thorough
def test_the_page_reports_to_a_running_hubbub(browser: Browser, up: Developing, door: str) -> None:
    words = ("dist/examples/page/serve.js", str(up.folder / ".hubbub"), door, "0")
    with _running(*words) as server, browser.new_context() as device:
        assert server.stdout is not None
        [address] = re.findall(r"http://\S+", server.stdout.readline())
        page = device.new_page()
        page.goto(address)
        expect(page.get_by_role("switch")).to_be_checked()
        page.get_by_label("Theme").select_option("dark")
        expect(page.locator("#said")).to_have_text("queued")
        # It goes by itself: nobody flushes, and nobody tells the ledger.
        page.get_by_text("The last payloads").click()
        expect(page.get_by_role("listitem")).to_contain_text(["sent"])
        counted(up, "theme", 1)
        page.get_by_label("Theme").select_option("light")
        expect(page.locator("#said")).to_have_text("already_reported")


@pytest.mark.thorough
def test_an_app_of_react_reports_and_shows_the_ledger(
    browser: Browser, site: Path, origin: str, door: str
) -> None:
    run(
        "node_modules/.bin/esbuild",
        "examples/react/app.tsx",
        f"--outfile={site / 'react.js'}",
        "--bundle",
        "--format=esm",
        "--target=es2022",
        '--define:process.env.NODE_ENV="production"',
        "--log-level=warning",
    )
    (site / "react.html").write_text(REACT)
    with browser.new_context() as device:
        page = device.new_page()
        page.goto(f"{origin}react.html?door={door}")
        expect(page.get_by_role("switch")).to_be_checked()
        page.get_by_label("Theme").select_option("dark")
        expect(page.locator("output")).to_have_text("queued")
        page.get_by_role("switch").click()
        expect(page.locator("hubbub-ledger").get_by_role("status")).to_have_text("Nothing is sent.")
        page.get_by_label("Theme").select_option("light")
        expect(page.locator("output")).to_have_text("disabled")


def test_a_server_reports_once_for_all_visitors_and_restarts(
    up: Developing, door: str, tmp_path: Path
) -> None:
    words = (str(up.bundle), door, str(tmp_path / "device"), "dark")
    for outcome in ("queued", "already_reported"):
        with _running("dist/examples/server.js", *words) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == f"{outcome}\n"
            assert server.stdout.readline() == "ready\n"
            server.send_signal(signal.SIGTERM)
            assert server.stdout.read() == "nothing waits\n"


def test_the_main_process_of_electron_reports_for_its_windows_and_waits_at_exit(
    up: Developing, door: str, tmp_path: Path
) -> None:
    for name in ("main.js", "preload.cjs"):
        shutil.copy(PACKAGE / "dist/examples/electron" / name, tmp_path)
    packages = tmp_path / "node_modules"
    (packages / "electron").mkdir(parents=True)
    (packages / "electron/index.mjs").write_text(ELECTRON)
    (packages / "electron/package.json").write_text('{"main": "index.mjs"}')
    (packages / "hubbub-client").symlink_to(PACKAGE)
    shutil.copy(up.bundle, tmp_path)
    (tmp_path / "ask.mjs").write_text(ASK)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    done = run_program(
        "node", "ask.mjs", cwd=tmp_path, env={**os.environ, "APP": str(tmp_path), "SHUFFLER": door}
    )
    assert done.stdout == "preload.cjs queued UnknownMetric waits ends\n", done.stderr
    counted(up, "electron", 1)
