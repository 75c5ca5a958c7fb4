"""A real browser, Debian's chromium, driven by Playwright; where it lacks, tests say so."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.waiting import HANG_SECONDS

HANG_MS = HANG_SECONDS * 1000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# The first replaces what Playwright disables: its list, and two popups of the address bar, of which
# each is a page for every window, and which together take .35 processor seconds.
OPTIONS = [
    (
        "--disable-features=AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,"
        "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,"
        "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,OptimizationHints,"
        "NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,WebUIOmniboxPopup,"
        "WebUIOmniboxAimPopup"
    ),
    "--disable-gpu",
    "--disable-quic",
]


@contextmanager
def chromium(*options: str) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        expect.set_options(timeout=HANG_MS)
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*OPTIONS, *options], timeout=HANG_MS
        )
        yield browser
        browser.close()


def new_context(browser: Browser, *, width: int = 1200, dark: bool = False) -> BrowserContext:
    """What has its own cookies and storage."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(HANG_MS)
    return context


class Watched:
    """A page whose errors are remembered: scripts', the policy's, and of requests that failed.

    In a context that other pages had before, it clears the storage that outlives it. In a browser
    it has a context, and so a process, of its own.
    """

    def __init__(
        self,
        parent: Browser | BrowserContext,
        *,
        width: int = 1200,
        dark: bool = False,
        clean: bool = True,
    ) -> None:
        self._is_shared = isinstance(parent, BrowserContext)
        if isinstance(parent, Browser):
            parent = new_context(parent, width=width, dark=dark)
        self._context = parent
        self.page: Page = self._context.new_page()
        self.errors: list[str] = []
        self._clean = clean
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._record_message)

    def _record_message(self, message: object) -> None:
        kind, text = getattr(message, "type"), getattr(message, "text")  # noqa: B009 untyped there
        if kind in {"error", "warning"}:
            self.errors.append(text)

    def open(self, address: str) -> Page:
        self.page.goto(address)
        self.settled()
        return self.page

    def settled(self) -> None:
        self.page.wait_for_selector("main[aria-busy=false]")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_shared:
            self.page.evaluate("() => { try { localStorage.clear(); } catch {} }")
            self.page.close()
        else:
            self._context.close()
        if self._clean and error[0] is None:
            assert not self.errors, self.errors
