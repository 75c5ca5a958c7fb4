"""A device whose tokens a thief shares: python robbed_device.py BUNDLE STATE_DIR SHUFFLER.

It also keeps which token each acknowledged report went with.
"""

import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hubbub.bundles import read_bundle
from hubbub.client import Client, FolderState, SealedReport, Submitted, Transport, transport_to
from hubbub.client.delivery.token_store import TokenStore, asking
from hubbub.client.state import payload_queries
from hubbub.client.state.contract import OutboxReport
from hubbub.tokens.token import Minted, nonce_of

REPORTS = 25
"""That a device makes of each stream."""
THEFTS = 10
"""Of one device's tokens of a stream, at most."""
TOKENS = 40
"""That it has of each: enough for both, and for what is lost on the way."""
REPORTS_A_SECOND = 40
_AHEAD_SECONDS = 0.4  # of which the thief is ahead, so that either may be first

payload_queries.HISTORY = 10**9  # type: ignore[attr-defined]  # the verdict looks at every payload


def add_line(path: Path, entry: Mapping[str, Any]) -> None:
    """Keep it, whoever is killed next."""
    with path.open("a", encoding="ascii") as file:
        file.write(json.dumps(entry) + "\n")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """What was kept; a last line that a kill cut off is none."""
    whole = path.read_text(encoding="ascii").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in whole if line.endswith("}")]


def acknowledged(report: SealedReport) -> dict[str, str]:
    """What is kept of a report that was taken: its token's nonce, and which it was."""
    digest = hashlib.sha256(report.sealed).hexdigest()
    return {"nonce": nonce_of(report.token).hex(), "report": digest}


class Witnessed:
    """A transport that keeps which token went with what was taken."""

    def __init__(self, onward: Transport, path: Path) -> None:
        self._onward, self._path = onward, path

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        answer = self._onward.submit(reports, timeout_seconds)
        for report, why in zip(reports, answer.results, strict=True):
            if why is None:
                add_line(self._path, acknowledged(report))
        return answer

    def close(self) -> None:
        self._onward.close()


def rob(tokens: TokenStore, loot: Path) -> None:
    """Let a thief have every token before it is spent."""
    give = tokens.give

    def tokens_for(reports: Sequence[OutboxReport]) -> Mapping[int, Minted]:
        tokens = give(reports)
        for report in reports:
            if minted := tokens.get(report.id):
                token = {"nonce": minted.nonce.hex(), "output": minted.output.hex()}
                add_line(loot, {"stream": report.stream, "epoch": report.epoch, **token})
        time.sleep(random.uniform(0, _AHEAD_SECONDS))
        return tokens

    tokens.give = tokens_for  # type: ignore[method-assign]


def open_client(bundle_path: Path, folder: Path, shuffler: str) -> Client:
    bundle = read_bundle(bundle_path)
    account = folder.with_suffix(".account").read_text(encoding="ascii")
    transport = Witnessed(
        transport_to(shuffler, roots=bundle.roots), folder.with_suffix(".acknowledged")
    )
    client = Client(
        bundle,
        FolderState(folder),
        transport,
        hold_seconds=0.1,
        strict=False,
        ask_issuer=asking(bundle, account),
    )
    assert client._sender.tokens
    rob(client._sender.tokens, folder.with_suffix(".loot"))
    return client


def main() -> None:
    bundle_path, folder, shuffler = sys.argv[1:]
    client = open_client(Path(bundle_path), Path(folder), shuffler)
    metrics = list(read_bundle(Path(bundle_path)).metrics.values())
    reported = Path(folder).with_suffix(".reported")
    counts = Counter(record["stream"] for record in lines_of(reported))
    while True:
        metric = random.choice(metrics)
        if counts[metric.name] < REPORTS:
            add_line(reported, {"stream": metric.name})
            client.report(metric.name, random.choice(metric.values or []))
            counts[metric.name] += 1
        time.sleep(random.uniform(0, 2 / REPORTS_A_SECOND))


if __name__ == "__main__":
    main()
