"""A browser that Playwright does not drive: one tab at a time, by the commands of WebDriver."""

import json
from abc import ABC, abstractmethod
from typing import Any, Final

from tests.interfaces.browser import HANG_MS

# What a session begins with. The door's certificate is of an authority that `hubbub up` made.
WISHES: Final = {
    "acceptInsecureCerts": True,
    "timeouts": {"script": int(HANG_MS), "pageLoad": int(HANG_MS)},
}


class Tab(ABC):
    """The tab that is in front, and what opens others."""

    @abstractmethod
    def ask(self, command: str, **arguments: Any) -> Any:
        """What a command, as WebDriver's standard names it, comes to."""

    def goto(self, address: str) -> None:
        """Open a page, and wait until it is loaded."""
        self.ask("Navigate", url=address)

    def evaluate(self, function: str, *arguments: Any) -> Any:
        """What a function of JavaScript, or its promise, comes to in the page."""
        script = f"return window.eval({json.dumps(f'({function})')})(...arguments)"
        return self.ask("ExecuteScript", script=script, args=list(arguments))

    @property
    def name(self) -> str:
        """What the tab in front is called."""
        return str(self.ask("GetWindowHandle"))

    def another(self) -> str:
        """Open one more, which is in front from here on, and tell its name."""
        name = str(self.ask("NewWindow", type="tab")["handle"])
        self.front(name)
        return name

    def front(self, name: str) -> None:
        """Go on in the tab of this name."""
        self.ask("SwitchToWindow", handle=name)

    def close(self) -> None:
        """Close the tab in front; another one has to come there."""
        self.ask("CloseWindow")
