"""client/typescript with tokens: from Node and a page, by the real issuer and shuffler."""

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from hubbub.installation.local_run import ACCOUNT_KEY
from tests.interfaces.browser import HANG_MS
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.development_server import developing
from tests.support.node import PACKAGE, build, needs_node
from tests.support.programs import run_program
from tests.system.typescript.pages import counted, door_of, served

CATALOG = catalog_toml(
    metric_toml(
        "theme",
        description="Colour theme",
        mechanism="grr",
        epsilon=4.0,
        values=["light", "dark", "system"],
        min_batch=1000,
        reports_per_epoch=2,
        lifetime_epsilon=1000.0,
    ),
    tokens={"issuer": "http://127.0.0.1:1", "devices": 2},
)
# The issuer is of another origin: the page asks by the account's key, as whoever has one.
PAGE = """
async ([shuffler, account]) => {
  const { open } = await import("/hubbub.js");
  const own = { bundle: "/tokens.hubbub", app: "tokens", holdSeconds: null };
  const client = await open({ ...own, shuffler, account });
  const said = [client.report("theme", "dark"), client.report("theme", "light")];
  const sent = await client.flush(60);
  const { payloads } = await client.ledger();
  (await import("/ledger.js")).defineLedger();
  const shown = document.createElement("hubbub-ledger");
  shown.client = client;
  document.body.append(shown);
  await shown.refresh();
  return [...said, sent, client.dropped, payloads.map((one) => one.fate)];
}
"""

pytestmark = needs_node


@pytest.mark.thorough
def test_devices_of_an_account_send_as_many_reports_as_they_have_tokens(
    browser: Browser, site: Path, tmp_path: Path
) -> None:
    build()
    with developing(tmp_path, CATALOG) as up, served(site) as origin:
        key = (up.folder / ".hubbub" / ACCOUNT_KEY).read_text().strip()
        door = door_of(up)
        shutil.copy(up.bundle, site / "tokens.hubbub")
        context = browser.new_context(ignore_https_errors=True)
        context.set_default_timeout(HANG_MS)
        page = context.new_page()
        page.goto(origin)
        value = page.evaluate(PAGE, [door, key])
        assert value == ["queued", "queued", True, {}, ["sent", "sent"]]
        # Who gives the tokens sees that this account asked: its person is told.
        issuer = json.loads(up.bundle.read_bytes().splitlines()[1])["tokens"]["issuer"]
        expect(page.get_by_text(f"tokens of an account at {issuer}, which")).to_be_visible()
        context.close()

        def node(device: str) -> str:
            words = ["node", "dist/examples/report.js", up.bundle, door, tmp_path / device]
            done = run_program(
                *map(str, words),
                "theme",
                "dark",
                cwd=PACKAGE,
                env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HUBBUB_ACCOUNT": key},
                check=True,
            )
            return done.stdout

        assert node("second") == "queued\nnothing waits\n"
        assert node("second") == "queued\nnothing waits\n"
        # The account is of two devices: a third has no token, and its report waits.
        assert node("third") == "queued\nit waits for the next start\n"
        counted(up, "theme", 4)
