"""Makes the known answers of the wire anew: `python -m tests.proofs.vectors.wire.make`.

A change in what was known is a wire break. Sealing draws a new ephemeral key at every run, so
sealing.json and sealing_x_wing.json differ each time; what they prove is that the report opens.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.bundles import Bundle, Notice, OpeningKeyPublic, open_bundle
from hubbub.bundles.bundle import Runs
from hubbub.bundles.opening_keys import DEVELOPMENT_IDS
from hubbub.bundles.signatures import sign_lines
from hubbub.bundles.transparency_log import NoteKey, leaf_hash
from hubbub.catalog import EPOCH_SECONDS, Crowd, Metric, epoch_at, epoch_start
from hubbub.catalog.limits_and_budgets import Caps
from hubbub.catalog.values.list_versions import digests_of
from hubbub.client.client import Client
from hubbub.client.delivery.sealing_into_outbox import dummy_payloads
from hubbub.client.reporter import Reporter
from hubbub.client.state.memory import MemoryState
from hubbub.client.state.secret import DeviceMemo
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.client.transport.contract import SealedReport
from hubbub.client.transport.messages import answer_in, request_of, token_request_of
from hubbub.mechanisms import KeyedBits, build
from hubbub.oblivious.binary_http import Request, Response, write_request, write_response
from hubbub.oblivious.key_config import key_config
from hubbub.sealing.hpke import (
    SEED_BYTES,
    PublicKey,
    seal,
    seal_info,
    x_wing_public,
    x_wing_public_bytes,
)
from hubbub.signing.log.log_files import (
    append,
    consistency_proof,
    inclusion_proof,
    prove_bundle,
    tree_root,
)
from hubbub.signing.sign_bundle import sign_bundle, sign_notice
from hubbub.tokens.token import Minted, token_info
from hubbub.wire.v1.services_pb2 import (
    IssuedTokens,
    Reason,
    Refusal,
    SubmitResponse,
    TokenResponse,
)
from tests.proofs.vectors.wire import learning
from tests.support.catalogs import catalog_of, catalog_toml, metric_toml
from tests.support.client_parts import drawn_reports

HERE = Path(__file__).parent
PROVENANCE = "tests/proofs/vectors/wire/make.py, hubbub 0.2.0"
# Known to everybody: what they sign and open is worth nothing.
SIGNING = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)
OPENING = X25519PrivateKey.from_private_bytes(bytes([3]) * 32)
LOGGING = Ed25519PrivateKey.from_private_bytes(bytes([5]) * 32)
LOG_NAME = "log.example.org/app"
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
LEAVES.append("606162636465666768696a6b6c6d6e6f")
TRAILING = (
    "0140c8001d5468697320636f6e74656e7420636f6e7461696e732043524c462e0d0a0d07747261696c6572047465"
    "7874"
)
CRLF = b"This content contains CRLF.\r\n"
RFC_PUBLIC = "31e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e798155"
RFC_CONFIG = f"010020{RFC_PUBLIC}00080001000100010003"
RUNS = Runs(shuffler="Example Foundation, Oslo", aggregator="Example Ltd, Dublin")
DAY = 86_400
START = 20_000 * DAY


def _metric(name: str, description: str, reports: int = 9, **fields: Any) -> str:
    fixed = {"owner": "nobody", "description": description, "reports_per_epoch": reports}
    return metric_toml(name, **{"mechanism": "grr", "epsilon": 1.0, **fixed, **fields})


CATALOG = _metric("theme", "The theme in use", 1, values=["light", "dark", "日本"])
SECRET = b"a device's secret of known bytes"
COINS = b"known answers need known coins!!"
LIFE = "".join(
    (
        "[caps]\nepsilon_per_day = 90.0\n",
        _metric(
            "theme",
            "The theme in use",
            2,
            lifetime_epsilon=5.0,
            values=["light", "dark", "other"],
            other=True,
            tiers=[0.25, 0.5],
        ),
        _metric(
            "language",
            "A value that stays",
            1,
            lifetime_epsilon=5.0,
            values=["de", "en", "ja"],
            mechanism="long.grr",
            permanent_epsilon=2.0,
        ),
        _metric(
            "domain",
            "Strings",
            3,
            domain="string",
            mechanism="rappor",
            epsilon=4.0,
            bits=32,
            hashes=2,
            cohorts=8,
            f=0.25,
            p=0.35,
            q=0.65,
        ),
        _metric(
            "hours",
            "A number that stays",
            kind="number",
            low=0,
            high=24,
            buckets=12,
            sampled=3,
            mechanism="buckets",
            epsilon=2.0,
        ),
        _metric(
            "startup",
            "A number in ranges",
            epoch="hour",
            kind="count",
            edges=[0, 10, 100, 1000],
            outside="refuse",
            mechanism="unary.oue",
        ),
        _metric(
            "both",
            "Parts",
            mechanism="pairs",
            parts={
                "theme": ["light", "dark"],
                "age": {"edges": [0, 18, 65, 120], "kind": "count"},
                "on": [True, False],
            },
        ),
        _metric(
            "asked", "Asked of a part of all", 1, values=[True, False], mechanism="rr", sampling=0.5
        ),
        _metric("over", "Asked no more", 1, expires=date(2024, 1, 1), values=["a", "b"]),
    )
)
STEPS: list[tuple[str, Any]] = [
    *(("report", ["theme", value]) for value in ("dark", "blue", "light", 7)),
    *(("report", ["language", value]) for value in ("de", "de")),
    *(("report", ["domain", value]) for value in ("example.org", "example.org", "日本", "x")),
    *(("report", ["hours", value]) for value in (7.5, 7.6, -3, 24, "7")),
    *(("report", ["startup", value]) for value in (0, 99, 1000, 1001, 0.5)),
    ("report", ["both", {"theme": "dark", "age": 41, "on": True}]),
    ("report", ["both", {"theme": "dark", "age": 400, "on": False}]),
    ("report", ["both", {"theme": "dark", "on": True}]),
    ("report", ["over", "a"]),
    ("report", ["nothing", 1]),
    ("flush", None),
    ("prefer", [0.3, None]),
    ("clock", DAY + 7),
    ("report", ["theme", "dark"]),
    ("report", ["language", "de"]),
    ("prefer", [None, None]),
    ("report", ["language", "en"]),
    ("clock", 2 * DAY),
    ("report", ["language", "de"]),
    ("flush", None),
    *(
        (step, arguments)
        for day in range(3, 9)
        for step, arguments in (
            ("clock", day * DAY),
            ("report", ["asked", True]),
            ("report", ["language", "ja"]),
            ("report", ["theme", "dark"]),
        )
    ),
    ("flush", None),
    ("disable", False),
    ("report", ["asked", True]),
    ("enable", None),
    ("clock", 9 * DAY),
    ("report", ["hours", 3]),
    ("clock", 28 * DAY),
    ("report", ["hours", 3]),
    ("clock", 9 * DAY + 60),
    ("report", ["hours", 7.9]),
    ("flush", None),
    ("disable", True),
]
ABC = ["a", "b", "c"]
STAYING: dict[str, Any] = {"mechanism": "long.grr", "permanent_epsilon": 2.0}
SYSTEMS = {"os": ["linux", "macos"]}
ASKING = "".join(
    (
        _metric(
            "seldom",
            "On one day of each period",
            1,
            values=ABC,
            tiers=[0.5],
            period="4d",
            report_on="one day",
        ),
        _metric(
            "monthly",
            "On one day of each month",
            1,
            values=ABC,
            period="month",
            report_on="one day",
            **STAYING,
        ),
        _metric(
            "apart",
            "Told apart in the clear",
            values=ABC,
            tiers=[0.5],
            breakdown={**SYSTEMS, "version": {"2": ["2.*", "two [!x-z]"], "old": "[01].?"}},
        ),
        _metric("grown", "A list that has grown", values=[*ABC, "d"], tiers=[0.5], **STAYING),
        _metric(
            "both", "A list that has grown, told apart", values=ABC, tiers=[0.5], breakdown=SYSTEMS
        ),
        _metric(
            "silence",
            "What is said where there is nothing to say",
            1,
            lifetime_epsilon=3.0,
            values=["a", "b"],
            default="none",
            tiers=[0.5],
        ),
        _metric(
            "count",
            "A number of which there may be none",
            1,
            epoch="hour",
            kind="count",
            low=0,
            high=8,
            buckets=8,
            default=0,
            mechanism="wave",
        ),
    )
)
COVERED = "".join(
    (
        _metric(
            "silence",
            "What is said where there is nothing to say",
            1,
            lifetime_epsilon=4.0,
            values=["a", "b"],
            default="none",
            tiers=[0.25, 0.5],
        ),
        _metric(
            "part",
            "Of some devices alone",
            1,
            values=["a", "b"],
            default="a",
            mechanism="unary.oue",
            sampling=0.5,
        ),
        _metric(
            "seldom",
            "On one day of each period",
            1,
            values=ABC,
            default="c",
            period="1w",
            report_on="one day",
        ),
    )
)
PAST_KINDS: dict[str, dict[str, Any]] = {
    "checkout": {"mechanism": "subset", "kind": "funnel", "steps": ["visit", "cart", "paid"]},
    "crashes": {
        "mechanism": "vector.codes",
        "rate": {"of": "crashed", "per": "started", "most": 3},
        "words": 8,
        "books": 4,
    },
    "use": {"kind": "activity", "tiers": [0.5], "breakdown": SYSTEMS},
    "back": {"kind": "retention", "weeks": 2},
}
OF_THE_PAST = "".join(
    _metric(name, f"What devices did: {name}", 1, epoch=epoch, **PAST_KINDS[name])
    for name, epoch in (("checkout", "day"), ("crashes", "week"), ("use", "day"), ("back", "week"))
)
NEW_MENU = "[experiments.new_menu]\narms = { control = 1, new = 1 }\n"
PAST_IN_ARMS = NEW_MENU + "".join(
    _metric(name, f"What devices did: {name}", 1, experiment="new_menu", **PAST_KINDS[name])
    for name in ("checkout", "crashes")
)
DISCOVERING = "".join(
    (
        _metric(
            "plugin",
            "A list, and what nobody listed",
            2,
            values=["git", "vim", "lint", "other"],
            other=True,
            discover=0.4,
            sampling=0.75,
        ),
        _metric(
            "search",
            "Strings, on one day of each period",
            1,
            domain="string",
            discover=0.5,
            mechanism="hcms",
            hashes=4,
            width=64,
            epsilon=2.0,
            period="2d",
            report_on="one day",
        ),
    )
)
IN_CROWD: dict[str, Any] = {"min_batch": 1000, "lifetime_epsilon": 500.0}
CROWDED = "".join(
    _metric(name, f"In a crowd, {name}", 1, epoch=epoch, epsilon=epsilon, values=ABC, **IN_CROWD)
    for name, epoch, epsilon in (
        ("weekly", "day", 0.25),
        ("monthly", "hour", 2.0),
        ("each", "day", 0.5),
        ("capped", "day", 3.0),
    )
)
# For how many days together, and for life, in nats.
PROMISED = {
    "weekly": ("7d", 2.6),
    "monthly": ("month", 1.5),
    "each": ("", 2.6),
    "capped": ("", None),
}
CROWD_CAPS = Caps(
    central_epsilon_per_year=2.0, central_delta_per_year=1e-6, central_mu={"capped": 0.2}
)
OF_VECTORS: dict[str, Any] = {"kind": "vector", "mechanism": "vector.codes"}
VECTORS = "".join(
    (
        _metric(
            "scores",
            "Scores that belong together",
            lifetime_epsilon=20.0,
            coordinates=["speed", "ease", "looks"],
            max_length=2.5,
            epsilon=2.0,
            tiers=[0.5],
            breakdown=SYSTEMS,
            **OF_VECTORS,
        ),
        _metric(
            "embedding",
            "A page's, by its 24 numbers",
            2,
            epoch="hour",
            coordinates=24,
            words=100,
            books=77,
            epsilon=4.29,
            **OF_VECTORS,
        ),
        _metric("together", "In a crowd", 1, coordinates=2, epsilon=3.0, **IN_CROWD, **OF_VECTORS),
    )
)
EXPERIMENT_CATALOG = "".join(
    (
        NEW_MENU,
        "[experiments.colours]\narms = { grey = 5, red = 3, green-2 = 2 }\n",
        _metric(
            "saved",
            "Whether a file was saved",
            kind="boolean",
            mechanism="rr",
            tiers=[0.5],
            experiment="new_menu",
            breakdown=SYSTEMS,
        ),
        _metric("liked", "How well it is liked", values=ABC, experiment="colours"),
    )
)
SAID_OF_VECTORS: list[Any] = [
    [1, 2, 0.5],
    [0.1, -0.2, 0.3],
    [0, 0, 0],
    [30, -40, 1e-9],
    [5e-324, 0, -1e-323],
    [1e308, -1.7e308, 1e308],
    [2.5, 0, 0],
    [2.4999999, 1e-5, -1e-5],
    [0.7, 0.7],
    [1, 2, 3, 4],
    [1, 2, "3"],
    [1, None, 2],
    [True, 0, 0],
    "1,2,3",
    7,
    {"speed": 1},
    None,
]
GROWN = {"grown": (2, 3), "both": (2,)}
PUBLIC = {"os": "macos", "version": "two b"}
METRIC_NAMES = ("seldom", "monthly", "apart", "grown", "both", "silence", "count")
MOMENTS = (0, 3599.999, 3600, 86_399, 86_400, 604_799.5, 604_800, 1_700_000_000, 4_294_967_296)


def bundle() -> dict[str, Any]:
    """A signed bundle, what a device reads in it, and files that a device must refuse.

    development: one of an installation whose numbers protect nobody.
    """
    plain = _plain(CATALOG)
    [key] = plain.keys
    signed = sign_bundle(plain, SIGNING).decode()
    head, body = signed.splitlines()
    development_key = replace(key, id=DEVELOPMENT_IDS + 1)
    development = sign_bundle(
        replace(plain, keys=(development_key,), development=True), SIGNING
    ).decode()
    marked = development.splitlines()[1].replace(f'"id":{development_key.id},', f'"id":{key.id},')
    return {
        "provenance": PROVENANCE,
        "operator": SIGNING.public_key().public_bytes_raw().hex(),
        "signed": signed,
        "shuffler": plain.shuffler,
        "keys": [{"id": key.id, "start": key.start, "end": key.end, "public": key.public.hex()}],
        "values": {name: list(metric.values or ()) for name, metric in plain.metrics.items()},
        "development": development,
        "refused": {
            "of development, with keys of production": sign_lines(
                "bundle", marked.encode(), SIGNING
            ).decode(),
            "another operator's": sign_bundle(plain, STRANGER).decode(),
            "body altered": signed.replace("localhost", "elsewhere"),
            "a space more": f"{head}\n{body} \n",
            "a line more": f"{head}\n{body}\n{body}\n",
            "head alone": f"{head}\n",
            "empty": "",
        },
    }


def ledger() -> dict[str, Any]:
    """A device's life as steps, each with what came of it, and what was spent in the end.

    Its permanent coins follow from the secret, all others from the coins' key. The clock stands
    still but for steps that set it.
    """
    return _life(_plain(LIFE), STEPS)


def asking() -> dict[str, Any]:
    """Lives of devices that are asked seldom, apart, of lists that grew, or that say a default, of
    one that looks for strings on some days, of one that is asked in crowds, some of which promise
    for many days together, of one that is asked for vectors, and of one that models learn from.

    public: what the app says in the clear. Every flush tells what waited then or was sent by it,
    and was not there before: stream, epoch and payload, empty of a filler.
    """
    days: list[tuple[str, Any]] = [
        step
        for day in range(1, 12)
        for step in (
            ("clock", day * DAY + 60),
            ("flush", None),
            *(
                ("report", [name, day % 9 if name == "count" else "ab"[day % 2]])
                for name in METRIC_NAMES
                if (day + len(name)) % 3
            ),
            *([("prefer", [0.6, None])] if day == 4 else []),
            *([("prefer", [None, None])] if day == 6 else []),
            *([("flush", None), ("disable", False)] if day == 8 else []),
            *([("enable", None)] if day == 9 else []),
            ("flush", None),
        )
    ]
    looking: list[tuple[str, Any]] = [
        step
        for day in range(1, 15)
        for step in (
            ("clock", day * DAY + 60),
            *(("report", ["plugin", value]) for value in ("git", "emacs", "vim")),
            *(("report", ["search", value]) for value in ("日本" * day, "x" * 4097)),
            ("flush", None),
        )
    ]
    in_crowds: list[tuple[str, Any]] = [
        step
        for day in range(1, 28)
        for step in (
            ("clock", day * DAY + 60),
            *(("report", [name, "ab"[day % 2]]) for name in PROMISED),
            *([("clock", day * DAY + 3660), ("report", ["monthly", "a"])] if day % 4 else []),
            ("flush", None),
        )
    ]
    of_vectors: list[tuple[str, Any]] = [
        *(("report", ["scores", value]) for value in SAID_OF_VECTORS),
        ("flush", None),
        ("clock", DAY + 60),
        ("prefer", [0.6, None]),
        *(("report", ["scores", value]) for value in SAID_OF_VECTORS[:4]),
        ("prefer", [None, None]),
        *(
            step
            for hour in range(6)
            for step in (
                ("clock", DAY + 3600 * hour + 60),
                ("report", ["embedding", [(at * at % 7 - hour) / 9 for at in range(24)]]),
                ("report", ["embedding", [(at % 5 - 2) * 0.07 for at in range(24 + hour % 2)]]),
            )
        ),
        *(("report", ["together", [0.6, x]]) for x in (-0.8, 0.1)),
        ("flush", None),
    ]
    plain, covered = _plain(ASKING), _plain(COVERED, cover=True)
    names = dict(plain.metrics)
    for name, grown in GROWN.items():
        names[name] = replace(names[name], grown=grown)
    history = dict(plain.history)
    for metric in names.values():
        history |= digests_of(metric)
    apart = replace(plain, metrics=names, history=history)
    in_covered = [
        (step, arguments)
        for step, arguments in days
        if step != "report" or arguments[0] in covered.metrics
    ]
    return {
        "provenance": PROVENANCE,
        "apart": _life(apart, days, PUBLIC),
        "unlisted": _life(apart, days[:5], {**PUBLIC, "os": "plan9"}),
        "covered": _life(covered, in_covered),
        "discovering": _life(_plain(DISCOVERING), looking, {}),
        "crowded": _life(_crowded(), in_crowds),
        "vectors": _life(_of_vectors(), of_vectors, PUBLIC),
        "past": _life(_plain(OF_THE_PAST), _past_steps(), PUBLIC),
        "past_in_arms": _life(
            _plain(PAST_IN_ARMS),
            [
                ("report", ["checkout", "visit"]),
                ("report", ["checkout", "cart"]),
                ("report", ["crashes", "started"]),
                ("flush", None),
                ("clock", DAY + 60),
                ("flush", None),
            ],
        ),
        "learning": _life(_of_models(), learning.taught(SIGNING, STRANGER)),
        "in_arms": _life(
            _plain(EXPERIMENT_CATALOG),
            [("report", ["saved", True]), ("report", ["liked", "b"])],
            PUBLIC,
        ),
    }


def experiments() -> dict[str, Any]:
    """The arms of devices, by their secrets; and once a notice has stopped one arm of each.

    arms, after: by secret, of new_menu and of colours.
    """
    signed = sign_bundle(_plain(EXPERIMENT_CATALOG), SIGNING)
    stop = sign_notice(
        Notice(
            number=START,
            until=START + 30 * DAY,
            steps={"new_menu.control": ((START, 0.0),), "colours.red": ((START, 0.0),)},
            operator=SIGNING.public_key().public_bytes_raw(),
        ),
        SIGNING,
    )
    secrets = [hashlib.sha256(bytes([number])).digest() for number in range(40)]
    return {
        "provenance": PROVENANCE,
        "signed": signed.decode(),
        "notice": stop.decode(),
        "moment": START + 100,
        "arms": {secret.hex(): _arms(signed, secret, b"") for secret in secrets},
        "after": {secret.hex(): _arms(signed, secret, stop) for secret in secrets},
    }


def _arms(signed: bytes, secret: bytes, stop: bytes) -> list[str]:
    state = MemoryState(secret)
    if stop:
        state.keep_notice(stop, lambda _former: True)
    reporter = Reporter(
        open_bundle(signed, "known"), state, KeyedBits(COINS), lambda: START + 100.0
    )
    return [reporter.arm("new_menu"), reporter.arm("colours")]


def _crowded() -> Bundle:
    plain = _plain(CROWDED)
    names = {}
    for name, (period, most) in PROMISED.items():
        metric = plain.metrics[name]
        names[name] = replace(
            metric,
            crowd=Crowd(epsilon=1.0, reports=metric.min_batch, period=period),
            limits=replace(metric.limits, lifetime_central_epsilon=most),
            caps=CROWD_CAPS,
        )
    return replace(_with_metrics(plain, names), caps=CROWD_CAPS)


def _of_vectors() -> Bundle:
    plain = _plain(VECTORS)
    metric = plain.metrics["together"]
    crowd = replace(metric, crowd=Crowd(epsilon=1.0, reports=metric.min_batch))
    return _with_metrics(plain, {**plain.metrics, crowd.name: crowd})


def _past_steps() -> list[tuple[str, Any]]:
    """Days of use with more and less steps, weeks without any, and a no that forgets events."""
    steps: list[tuple[str, Any]] = []
    for day in (0, 1, 2, 3, 6, 7, 14, 20, 21):
        furthest = day % 4
        steps += [
            ("clock", day * DAY + 60),
            *(("report", ["checkout", step]) for step in ("visit", "paid", "cart")[:furthest]),
            *(("report", ["crashes", event]) for event in ("crashed", "started")[day % 2 :] * 2),
            ("report", ["use"]),
            ("flush", None),
            ("report", ["back"]),
            ("report", ["use"]),
            *([("flush", None), ("disable", False), ("enable", None)] if day == 6 else []),
            *([("flush", None), ("prefer", [0.6, None])] if day == 14 else []),
            ("flush", None),
        ]
    return steps


def _of_models() -> Bundle:
    plain = _plain(learning.CATALOG)
    return _with_metrics(plain, learning.in_crowds(plain.metrics))


def _life(
    bundle: Bundle, script: Sequence[tuple[str, Any]], public: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What comes of steps."""
    signed = sign_bundle(bundle, SIGNING)
    clock, shuffler = FakeClock(START + 100), FakeShuffler()
    client = Client(
        open_bundle(signed, "known"),
        MemoryState(SECRET),
        shuffler,
        hold_seconds=None,
        strict=False,
        coins=KeyedBits(COINS),
        clock=clock,
        public=public,
    )
    steps = []
    offset = 0
    for step in script:
        fields: dict[str, Any] = dict(zip(("step", "with"), step, strict=True))
        before = len(drawn_reports(client))
        match step:
            case "clock", int(seconds):
                clock.set(START + seconds)
            case (("report" | "learn"), [str(name), *given]):
                tell: Any = client.report if step[0] == "report" else client.learn
                fields["outcome"] = tell(name, *given).value
                drawn = drawn_reports(client)[before:]
                fields["payload"] = drawn[0][1].payload.hex() if drawn else None
                fields["stream"] = drawn[0][1].stream if drawn else None
            case "models", str(models):
                shuffler.models = models.encode()
            case "prefer", [most, local]:
                client.prefer(most, max_local=local)
            case "disable", bool(forget):
                client.disable(forget=forget)
            case "enable", None:
                client.enable()
            case "flush", None:
                client.flush()
                records = client.ledger().payloads
                fields["kept"] = [
                    [record.stream.name, record.epoch, record.payload.hex()]
                    for record in records[offset:]
                    if record.stream
                ]
                offset = len(records)
        steps.append(fields)
        if step[0] == "disable" and step[1]:
            break  # the secret after it is a new one
    ledger_view = client.ledger()
    spent = {metric.name: metric.spent for metric in ledger_view.metrics}
    central = {
        metric.name: metric.central
        for metric in ledger_view.metrics
        if metric.central_epsilon is not None
    }
    crowds = (
        {} if ledger_view.crowds_in_year is None else {"crowds_in_year": ledger_view.crowds_in_year}
    )
    return {
        "provenance": PROVENANCE,
        "signed": signed.decode(),
        "secret": SECRET.hex(),
        "coins": COINS.hex(),
        "start": START + 100,
        **({} if public is None else {"public": dict(public)}),
        "steps": steps,
        "spent": spent,
        **({"central": central} if central else {}),
        **crowds,
    }


def dummies() -> dict[str, Any]:
    """What devices of a crowd send beside their reports.

    Of some devices, from one supply of coins, the payloads: by how many listed values the crowd has
    and how many each device makes on average. signed: a bundle whose theme has them.
    """
    crowds = []
    for categories, each in ((2, 0.02), (4, 2.25), (300, 1.5), (3, 1.0)):
        crowd = SimpleNamespace(
            randomizer=build("grr", epsilon=1.0, categories=categories), made_each=each
        )
        coins = KeyedBits(COINS)
        devices = [
            [dummy_payload.hex() for dummy_payload in dummy_payloads(crowd, coins)]
            for _ in range(20)
        ]
        crowds.append({"values": categories, "each": each, "devices": devices})
    plain = _plain(CATALOG)
    promise = Crowd(epsilon=1.0, reports=1000, dummies_each=2.25)
    theme = replace(plain.metrics["theme"], crowd=promise, min_batch=1000)
    crowded = _with_metrics(plain, {"theme": theme})
    return {
        "provenance": PROVENANCE,
        "key": COINS.hex(),
        "crowds": crowds,
        "signed": sign_bundle(crowded, SIGNING).decode(),
    }


def tokens() -> dict[str, Any]:
    """A token and what it is of, when devices of a secret ask for those of an epoch, and messages.

    rfc: the answer of RFC 9497, A.1.3.3, to two inputs together; the file keeps it as it is.
    """
    nonce, output, sealed = bytes(range(16)), bytes(range(64)), bytes(range(50))
    elements_by_window = {("theme", 20_000): [bytes([7]) * 32, bytes([8]) * 32]}
    elements_by_window["日本", 0] = [bytes([9]) * 32]
    answer = TokenResponse(
        issued=[
            IssuedTokens(evaluated=[bytes([1]) * 32], proof=bytes([2]) * 64),
            IssuedTokens(not_given=True),
            IssuedTokens(),
        ]
    )
    coins = DeviceMemo(SECRET, "tokens")
    return {
        "provenance": f"{PROVENANCE}; RFC 9497",
        "info": token_info("theme", 20_000).hex(),
        "nonce": nonce.hex(),
        "output": output.hex(),
        "sealed": sealed.hex(),
        "token": Minted(nonce, output).token(sealed).hex(),
        "wanted": [
            {"stream": stream, "epoch": epoch, "elements": [element.hex() for element in elements]}
            for (stream, epoch), elements in elements_by_window.items()
        ],
        "request": token_request_of(elements_by_window).hex(),
        "answer": answer.SerializeToString(deterministic=True).hex(),
        "secret": SECRET.hex(),
        "steps of 65536": {
            f"{length}|{epoch}": coins.coins(f"{length}|{epoch}".encode()).below(1 << 16)
            for length in ("hour", "day")
            for epoch in (20_000, 20_001, 480_000)
        },
        "rfc": json.loads((HERE / "tokens.json").read_text())["rfc"],
    }


def epochs() -> dict[str, Any]:
    """Moments in seconds since 1970-01-01 UTC, and the epoch that holds each."""
    return {
        "provenance": PROVENANCE,
        "epochs": [
            {
                "seconds": moment,
                "length": length,
                "epoch": epoch_at(moment, length),
                "start": epoch_start(epoch_at(moment, length), length),
            }
            for length in EPOCH_SECONDS
            for moment in MOMENTS
        ],
    }


def sealing() -> dict[str, Any]:
    """A sealed report, the key that opens it, and what it is bound to."""
    public = OPENING.public_key()
    return _sealing(OPENING.private_bytes_raw(), public.public_bytes_raw(), public)


def sealing_x_wing() -> dict[str, Any]:
    """The same of a metric that is sealed by X-Wing; its private key is a seed."""
    seed = bytes([4]) * SEED_BYTES
    public = x_wing_public_bytes(seed)
    return _sealing(seed, public, x_wing_public(public))


def _sealing(private: bytes, public: bytes, key: PublicKey) -> dict[str, Any]:
    payload, info = bytes.fromhex("5a00"), seal_info("theme", 20_000)
    return {
        "provenance": PROVENANCE,
        "private": private.hex(),
        "public": public.hex(),
        "stream": "theme",
        "epoch": 20_000,
        "info": info.hex(),
        "payload": payload.hex(),
        "sealed": seal(payload, key, info).hex(),
    }


def submission() -> dict[str, Any]:
    """Reports as the bytes of a SubmitRequest, and SubmitResponses as one result a report."""
    reports = [
        SealedReport(stream="theme", epoch=20_000, key_id=1, sealed=bytes(range(50))),
        SealedReport(stream="日本", epoch=0, key_id=0, sealed=b""),
    ]
    answers: list[list[tuple[int, int]]] = [
        [],
        *([(0, int(number))] for number in Reason.values()),
        [(1, int(Reason.REASON_EXPIRED)), (2, int(Reason.REASON_EXPIRED))],
        [(1, 77), (0, 100_000)],
    ]
    responses = [
        SubmitResponse(refused=[Refusal(index=i, reason=Reason.ValueType(r)) for i, r in answer])
        for answer in answers
    ]
    responses.append(SubmitResponse(notice=b"two lines of JSON, which notice.json has"))
    outcomes = [answer_in(response.SerializeToString(), len(reports)) for response in responses]
    return {
        "provenance": PROVENANCE,
        "reports": [
            {
                "stream": report.stream,
                "epoch": report.epoch,
                "key_id": report.key_id,
                "sealed": report.sealed.hex(),
            }
            for report in reports
        ],
        "request": request_of(reports).hex(),
        "answers": [
            {
                "response": response.SerializeToString(deterministic=True).hex(),
                "results": list(answer.results),
                "notice": answer.notice.hex(),
            }
            for response, answer in zip(responses, outcomes, strict=True)
        ],
    }


def notice() -> dict[str, Any]:
    """A signed notice, what it asks of the bundle's theme, and files that a device must refuse."""
    public = SIGNING.public_key().public_bytes_raw()
    steps = ((START + 1, 0.25), (START + 5 * DAY, 0.5), (START + 6 * DAY + 1, 0.0))
    first_notice = Notice(
        number=START + 7 * DAY,
        until=START + 30 * DAY,
        steps={"theme": steps, "unknown": steps},
        operator=public,
    )
    lowered = replace(first_notice, number=first_notice.number + 1, steps={"theme": steps[:2]})
    signed = sign_notice(first_notice, SIGNING).decode()
    theme = _plain(CATALOG).metrics["theme"]
    other = STRANGER.public_key().public_bytes_raw()
    return {
        "provenance": PROVENANCE,
        "operator": public.hex(),
        "notice": signed,
        "number": first_notice.number,
        "until": first_notice.until,
        "sampling": [
            [epoch, first_notice.sampling(theme, epoch)] for epoch in range(19_999, 20_032)
        ],
        # It takes the place of the other one.
        "lowered": sign_notice(lowered, SIGNING).decode(),
        "lowered sampling": [
            [epoch, lowered.sampling(theme, epoch)] for epoch in range(19_999, 20_032)
        ],
        "refused": {
            "altered": signed.replace("0.25", "0.75"),
            "another operator's": sign_notice(
                replace(first_notice, operator=other), STRANGER
            ).decode(),
            "no notice": "{}",
        },
    }


def log() -> dict[str, Any]:
    """Bundles of a log as it grew, those that no device may take, and those that one may not take
    after another. shipped: each is taken after any before it. after: the one that was shipped last
    before, by its place among those shipped.
    """
    with _Log() as main_log, _Log() as fork:
        shipped = [main_log.ship(serial) for serial in (1, 2, 3, 4)]
        fork.ship(1)
        fork.ship(7)
        of_a_fork = fork.ship(8)
        fork.ship(9)
        of_a_longer_fork = fork.ship(10)
        of_another = fork.ship(11, key=STRANGER)
    head, body, proof = shipped[2].splitlines()
    plain = _sign(5, None)
    return {
        "provenance": PROVENANCE,
        "operator": SIGNING.public_key().public_bytes_raw().hex(),
        "name": LOG_NAME,
        "runs": {"shuffler": RUNS.shuffler, "aggregator": RUNS.aggregator},
        "shipped": shipped,
        "refused": {
            "no proof": f"{head}\n{body}\n",
            "another bundle's proof": "\n".join([*shipped[1].splitlines()[:2], proof, ""]),
            "another place": shipped[2].replace('"index":2', '"index":1'),
            "no such place": shipped[2].replace('"index":2', '"index":99'),
            "a checkpoint altered": shipped[2].replace(f"{LOG_NAME}\\n3", f"{LOG_NAME}\\n4"),
            "a checkpoint of another's": "\n".join([head, body, of_another.splitlines()[2], ""]),
            "half a proof": f"{head}\n{body}\n{proof[: len(proof) // 2]}\n",
            "a proof, and no log": plain + proof + "\n",
            "a line more": shipped[2] + proof + "\n",
        },
        "refused after": [
            {"why": "older", "after": 3, "signed": shipped[1]},
            {"why": "forked", "after": 2, "signed": of_a_fork},
            {"why": "forked", "after": 3, "signed": of_a_longer_fork},
            {"why": "another log", "after": 1, "signed": of_another},
            {"why": "no log", "after": 1, "signed": plain},
        ],
        "trees": _trees(),
    }


def _trees() -> dict[str, Any]:
    """Every proof of trees of the leaves that the reference implementation of RFC 6962 has."""
    leaves = [leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES]
    sizes = range(1, len(leaves) + 1)
    return {
        "leaves": LEAVES,
        "roots": [tree_root(leaves[:size]).hex() for size in sizes],
        "inclusion": [
            [at, size, [node.hex() for node in inclusion_proof(leaves[:size], at)]]
            for size in sizes
            for at in range(size)
        ],
        "consistency": [
            [before, size, [node.hex() for node in consistency_proof(leaves[:size], before)]]
            for size in sizes
            for before in range(1, size + 1)
        ],
    }


def oblivious() -> dict[str, Any]:
    """A submission through a relay: RFC 9458's own request and answer, and messages of ours.

    private, public: of the gateway's key, whose `config` bundles have. request: binary HTTP of a
    POST of `content`, filled up to `step` bytes. responses: binary HTTP, and what each says.
    """
    request = Request(
        method=b"POST",
        scheme=b"https",
        authority=b"reports.example.org:443",
        path=b"/v1/reports",
        headers=((b"content-type", b"application/protobuf"),),
        content=bytes(range(200)),
    )
    responses = [
        Response(200, ((b"content-type", b"application/protobuf"),), b"\x0a\x00"),
        Response(503, ((b"a", b"b"), (b"retry-after", b"7")), bytes(300)),
    ]
    public = OPENING.public_key().public_bytes_raw()
    return {
        "provenance": f"{PROVENANCE}; RFC 9458, appendix A; RFC 9292, section 5",
        "private": OPENING.private_bytes_raw().hex(),
        "config": key_config(public).hex(),
        "public": public.hex(),
        "authority": request.authority.decode(),
        "content": request.content.hex(),
        "step": 1024,
        "request": write_request(request, padded_to=1024).hex(),
        "responses": [
            {
                "response": write_response(response).hex(),
                "status": response.status,
                "headers": {name.decode(): value.decode() for name, value in response.headers},
                "content": response.content.hex(),
            }
            for response in responses
        ]
        + [{"response": TRAILING, "status": 200, "headers": {}, "content": CRLF.hex()}],
        "rfc": {"config": RFC_CONFIG, "public": RFC_PUBLIC},
    }


class _Log:
    """A log in a folder that is gone with it."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def ship(self, serial: int, key: Ed25519PrivateKey = LOGGING) -> str:
        """The next bundle, with its proof; those of a key are a log of their own."""
        public = key.public_key().public_bytes_raw()
        signed = _sign(serial, NoteKey(LOG_NAME, public))
        folder = Path(self._folder.name) / public.hex()
        grown = append(folder, LOG_NAME, key, [("bundle", signed.encode())])
        return signed + prove_bundle(grown).dump().decode() + "\n"


def _sign(serial: int, key: NoteKey | None) -> str:
    bundle = replace(_plain(CATALOG), serial=serial, log=key, runs=RUNS)
    return sign_bundle(bundle, SIGNING).decode()


def _plain(catalog: str, **settings: Any) -> Bundle:
    reader = catalog_of(catalog_toml(catalog, shuffler="localhost:7000", **settings))
    key = OpeningKeyPublic(
        id=1, start=START, end=START + 28 * DAY, public=OPENING.public_key().public_bytes_raw()
    )
    bundle = Bundle(
        metrics={},
        keys=(key,),
        shuffler=reader.shuffler,
        roots=None,
        history={},
        caps=reader.caps,
        cover=reader.cover,
    )
    return _with_metrics(bundle, reader.metrics)


def _with_metrics(bundle: Bundle, metrics: Mapping[str, Metric]) -> Bundle:
    history = {name: metric.digest() for name, metric in metrics.items()}
    return replace(bundle, metrics=metrics, history=history)


if __name__ == "__main__":
    for make in (
        bundle,
        ledger,
        asking,
        experiments,
        dummies,
        epochs,
        sealing,
        sealing_x_wing,
        submission,
        tokens,
        notice,
        log,
        oblivious,
    ):
        text = json.dumps(make(), indent=1, ensure_ascii=False) + "\n"
        (HERE / f"{make.__name__}.json").write_text(text, encoding="utf-8")
