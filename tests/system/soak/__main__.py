"""The soak by hand: python -m tests.system.soak --seconds 600 --seed 1."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hubbub.authoring import read_catalog
from hubbub.conservation import Window
from hubbub.errors import HubbubError
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.shuffler.stream_table import read_stream_table
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.waiting import HANG_SECONDS
from tests.system.soak import devices, strangers
from tests.system.soak.verdict import counted, percentile, refusals, told_refusals

TARGET_SECONDS = 2.0
# Devices begin a little earlier and end a little later than the strangers.
SHOULDER_SECONDS = 2.0
MB = 1 << 20
# Over its second half nothing may be larger than over the first, but for so much.
MAX_GROWTH = 1.25
MAX_GROWTH_MB = 48
CATALOG = catalog_toml(
    *(
        metric_toml(
            name,
            mechanism=mechanism,
            values=values,
            epsilon=1.0,
            epoch="week",
            min_batch=10,
            reports_per_epoch=1000,
            lifetime_epsilon=1e9,
        )
        for name, mechanism, values in (
            ("theme", "unary.oue", ["light", "dark", "system"]),
            ("flag", "rr", ["no", "yes"]),
        )
    )
)
FLOODED = "theme"
PARTS = ("quiet", "loud")  # of the strangers


class House(LocalRun):
    """As `hubbub up` runs it, but limits by address are as shipped: here each has its own."""

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        named = [
            place for place, argument in enumerate(arguments) if argument.startswith("--peer-")
        ]
        skip_places = {place for at in named for place in (at, at + 1)}
        rest = [argument for place, argument in enumerate(arguments) if place not in skip_places]
        super()._service(role, *rest, redis_url=redis_url)


def run(seconds: float, seed: int) -> dict[str, Any]:
    """One run: what was sent, refused, counted, how long it took, and what is wrong."""
    with tempfile.TemporaryDirectory(prefix="hubbub-soak-") as folder:
        home = Path(folder)
        (home / "metrics.toml").write_text(CATALOG)
        ports = Ports.free()
        catalog = read_catalog(home / "metrics.toml")
        with House(home / "house", catalog, ports) as house:
            honest, others, sizes, page = _live(house, ports, home, seconds, seed)
            metric_count = told_refusals(home / "house" / "tls", ports.shuffler_metrics)
            house.check()
            terms, wrong = counted(house, honest["sent"], tell)
    tell("")
    if honest["missing"]:
        wrong.append(f"{honest['missing']} reports of honest devices were not acknowledged")
    if unanswered := page.pop("not 200", []):
        wrong.append(f"the page did not answer {len(unanswered)} times: {unanswered[0]}")
    refused = refusals(others)
    if refused > metric_count:
        wrong.append(f"strangers were refused {refused} times, the metrics tell of {metric_count}")
    slow = percentile(honest["seconds"], 0.99)
    return {
        "seed": seed,
        "seconds": seconds,
        "sent": sum(honest["sent"].values()),
        "acknowledged_p50": round(percentile(honest["seconds"], 0.5), 3),
        "acknowledged_p99": round(slow, 3),
        "acknowledged_max": round(percentile(honest["seconds"], 1), 3),
        "target_p99": TARGET_SECONDS,
        "page_p99": round(percentile(sorted(page["seconds"]), 0.99), 3),
        "in_time": slow < TARGET_SECONDS,
        "strangers": others,
        "refused": refused,
        "refused_told": metric_count,
        "law": terms,
        "largest_mb_first_and_second_half": sizes,
        "grew": [
            name
            for name, (first, second) in sizes.items()
            if second > first * MAX_GROWTH + MAX_GROWTH_MB
        ],
        "wrong": wrong,
    }


def _live(
    house: LocalRun, ports: Ports, home: Path, seconds: float, seed: int
) -> tuple[dict[str, Any], dict[str, int], dict[str, list[int]], dict[str, list[Any]]]:
    """Devices and strangers for so long: what each has to tell, and how large services were.

    And of the page, which somebody looks at all the while: how long it took, and what it said if
    not what it should.
    """
    table = read_stream_table(house.home / "streams.json")
    stream = table.streams[FLOODED]
    window = Window(FLOODED, int(time.time()) // stream.epoch_seconds)
    settings = {
        "device_port": ports.shuffler,
        "page_port": ports.page,
        "seconds": seconds,
        "seed": seed,
        "stream": FLOODED,
        "epoch": window.epoch,
        "key_id": table.key_id(window),
        "sealed_bytes": stream.sealed_bytes,
        "roots": (house.home / "tls" / "ca.pem").read_text(),
    }
    spans = [str(house.bundle_path), str(home), str(ports.shuffler)]
    spans += [str(seconds + 2 * SHOULDER_SECONDS), str(seed)]
    device_process = _start(devices.__file__, spans, home / "devices.log")
    time.sleep(SHOULDER_SECONDS)
    others = [
        _start(strangers.__file__, [json.dumps({**settings, "part": part})], home / f"{part}.log")
        for part in PARTS
    ]
    sizes: dict[str, list[int]] = {}
    page: dict[str, list[Any]] = {"seconds": [], "not 200": []}
    try:
        began = time.monotonic()
        deadline = began + seconds + 2 * HANG_SECONDS
        while any(process.poll() is None for process in (device_process, *others)):
            passed = time.monotonic() - began
            tell(f"{max(0.0, seconds - passed):.0f} s left")
            assert time.monotonic() < deadline, "devices or strangers do not end"
            _measure(house, sizes, half=int(passed > seconds / 2))
            _look(f"{house.endpoints.page}health", page)
            time.sleep(1)
    finally:
        for process in (device_process, *others):
            if process.poll() is None:
                process.kill()
            process.wait()
    met = sum((Counter(_last_line(home / f"{part}.log")) for part in PARTS), Counter[str]())
    return _last_line(home / "devices.log"), dict(sorted(met.items())), sizes, page


def _start(program: str, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, program, *arguments], env=environment, stdout=output, stderr=output
        )


def _last_line(log: Path) -> Any:
    text = log.read_text()
    try:
        return json.loads(text.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise AssertionError(f"{log.name}: {text[-3000:]}") from error


def _look(url: str, page: dict[str, list[Any]]) -> None:
    began = time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=HANG_SECONDS) as answer:  # noqa: S310 our own page
            answer.read()
    except OSError as error:
        page["not 200"].append(str(error))
    page["seconds"].append(time.monotonic() - began)


def _measure(house: LocalRun, sizes: dict[str, list[int]], half: int) -> None:
    """How large each service is, with the processes that it has started, in MB."""
    for child in house.children:
        pid = child.process.pid
        try:
            below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pages = sum(
                int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
                for process_id in (pid, *below)
            )
        except OSError:
            continue
        largest = sizes.setdefault(child.name, [0, 0])
        largest[half] = max(largest[half], pages * os.sysconf("SC_PAGE_SIZE") // MB)


def tell(line: str) -> None:
    """Progress, on a terminal alone."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    result: Mapping[str, Any]
    try:
        result = run(args.seconds, args.seed)
    except (AssertionError, HubbubError) as error:
        result = {"seed": args.seed, "wrong": [str(error)], "grew": [], "in_time": False}
    print(json.dumps(result, indent=1), flush=True)
    return 1 if result["wrong"] or result["grew"] or not result["in_time"] else 0


if __name__ == "__main__":
    sys.exit(main())
