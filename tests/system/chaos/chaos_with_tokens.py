"""The chaos with tokens: an issuer beside everything, and a thief who spends what devices have.

A token takes one report, whoever sends it; what a device had acknowledged is counted, and what it
lost a token for it sends with another.
"""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from hubbub.bundles.tokens import Tokens
from hubbub.client import Client
from hubbub.client.state.contract import SENT as TAKEN
from hubbub.installation.child_process import free_port
from hubbub.issuer.accounts import add_account
from hubbub.keys.issuer_and_gateway_keys import make_token_key
from hubbub.programs.issuer_key_file import TOKEN_KEY
from tests.support.catalogs import metric_toml
from tests.support.waiting import eventually
from tests.system.chaos import robbed_device, thief
from tests.system.chaos.house import DEVICES, ROLLING, WHOLE, House
from tests.system.chaos.robbed_device import lines_of

_ROOT = Path(__file__).parents[3]
_KINDS = {"flag": ["no", "yes"], "theme": ["light", "dark", "system"]}


class GuardedHouse(House):
    """A house of four streams whose reports need tokens, an account to each device."""

    CATALOG = 'shuffler = "127.0.0.1:1"\n' + "".join(
        metric_toml(
            f"{name}{copy}",
            epoch="week",
            mechanism="grr",
            epsilon=1.0,
            values=values,
            min_batch=10,
            reports_per_epoch=robbed_device.TOKENS,
            lifetime_epsilon=1e9,
        )
        for name, values in _KINDS.items()
        for copy in ((0, WHOLE) if name == "theme" else (0, ROLLING))
    )
    MORE_KILLED: ClassVar[Mapping[str, int]] = {"issuer": 4, "thief": 2}

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._listen = f"127.0.0.1:{free_port()}"
        self.tokens = Tokens(f"http://{self._listen}", 1)

    def open_device(self, number: int) -> Client:
        front = self.fronts[number % len(self.fronts)]
        return robbed_device.open_client(self.home / "app.hubbub", self.state_of(number), front)

    def settle(self, records: dict[tuple[str, str, int], Counter[bytes]]) -> None:
        """The thief's go in, too, until it knows of each what became of it."""
        self.stop("thief")
        member = thief.open_thief(self.home / "app.hubbub", self.home, self.fronts[0])
        member.steal()  # what is left, in vain
        eventually(member.send)
        fates = {line["nonce"]: line["why"] for line in lines_of(self.home / thief.ANSWERED)}
        for line in lines_of(self.home / thief.SENT):
            if fates[line["nonce"]] is None:
                entry = records.setdefault((TAKEN, line["stream"], line["epoch"]), Counter())
                entry[bytes.fromhex(line["payload"])] += 1

    def judge_tokens(self) -> tuple[list[str], dict[str, int]]:
        """What is wrong with them; and how often who was first with one."""
        answers = lines_of(self.home / thief.ANSWERED)
        thefts = [answer for answer in answers if answer["why"] is None]
        acknowledged = [
            record for path in self.home.glob("*.acknowledged") for record in lines_of(path)
        ]
        reports: dict[str, set[str]] = {}
        for record in (*thefts, *acknowledged):
            reports.setdefault(record["nonce"], set()).add(record["report"])
        wrong = [
            f"token {nonce} took {len(those)} reports"
            for nonce, those in reports.items()
            if len(those) > 1
        ]
        refused = Counter(str(answer["why"]) for answer in answers if answer["why"] is not None)
        if unknown := refused.keys() - {"refused_token_spent"}:
            wrong.append(f"the thief was refused by {sorted(unknown)}")
        return wrong, {
            "tokens_spent": len(reports),
            "stolen": len(thefts),
            "in_vain": refused.total(),
        }

    def _build(self) -> None:
        make_token_key(self.home / "keys")
        for number in range(DEVICES):
            account = add_account(self.home / "accounts", f"device{number}", vouches=False)
            self.state_of(number).with_suffix(".account").write_text(account, encoding="ascii")
        super()._build()

    def _start_redis(self) -> tuple[str, str]:
        pool, totals = super()._start_redis()
        arguments = ["--streams", str(self.home / "streams.json"), "--peer-rate", "0"]
        arguments += ["--accounts", str(self.home / "accounts"), "--listen", self._listen]
        arguments += ["--metrics-listen", f"127.0.0.1:{free_port()}", "--insecure", *self._key()]
        environment = {**os.environ, "HUBBUB_REDIS_URL": pool}
        self._part("issuer-0", "issuer", "hubbub.issuer", arguments, environment)
        return pool, totals

    def _service(self, role: str, number: int, arguments: list[str], redis_url: str) -> None:
        more = self._key() if role == "shuffler" else []
        super()._service(role, number, [*arguments, *more], redis_url)

    def _device(self, number: int, shuffler: str) -> None:
        bundle = str(self.home / "app.hubbub")
        arguments = [bundle, str(self.state_of(number)), shuffler]
        self._part(
            f"device-{number}", "device", robbed_device.__file__, arguments, dict(os.environ)
        )
        if number == DEVICES - 1:
            own = [bundle, str(self.home), self.fronts[-1]]
            environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
            self._part("thief", "thief", thief.__name__, own, environment)

    def _key(self) -> list[str]:
        return ["--token-key", str(self.home / "keys" / TOKEN_KEY)]
