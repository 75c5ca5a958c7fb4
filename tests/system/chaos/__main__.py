"""The chaos by hand: python -m tests.system.chaos --seconds 60 --seed 1 [--cluster | --tokens]."""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from hubbub.errors import HubbubError
from tests.system.chaos.chaos_with_tokens import GuardedHouse
from tests.system.chaos.clustered import run_clustered
from tests.system.chaos.faults import KILLS_A_SECOND, Faults
from tests.system.chaos.house import House
from tests.system.chaos.verdict import drain, judge, redis_bytes

MB = 1 << 20


def run_on_cluster(seed: int) -> dict[str, object]:
    """One run on a Redis Cluster that fails over, grows and restarts."""
    with tempfile.TemporaryDirectory(prefix="hubbub-cluster-") as folder:
        result = run_clustered(Path(folder) / "house", seed, tell)
    tell("")
    return result


def run(
    seconds: float,
    seed: int,
    kills_a_second: float = KILLS_A_SECOND,
    *,
    min_kills: int = 0,
    min_reports: int = 0,
    tokens: bool = False,
) -> dict[str, object]:
    """One run: what went wrong on purpose, what was sent and counted, and what is wrong."""
    with (
        tempfile.TemporaryDirectory(prefix="hubbub-chaos-") as folder,
        (GuardedHouse if tokens else House)(Path(folder) / "house") as house,
    ):
        faults = Faults(house, seed, kills_a_second)
        faults.run(seconds, tell, min_kills)
        house.until_acknowledged(min_reports)
        began = time.monotonic()
        records = drain(house, tell)
        drained = time.monotonic() - began
        verdict = judge(house, records)
        wrong, spent = house.judge_tokens()
        after = redis_bytes(house)
        largest: dict[str, list[int]] = {}
        for part in house.parts:
            byte_counts = part.bytes_seen
            halves = [
                max(byte_counts[: len(byte_counts) // 2]) // MB,
                max(byte_counts[len(byte_counts) // 2 :]) // MB,
            ]
            old = largest.setdefault(part.kind, [0, 0])
            largest[part.kind] = [max(a, b) for a, b in zip(old, halves, strict=True)]
    tell("")
    return {
        "seed": seed,
        "seconds": seconds,
        "kills": faults.kills,
        "faults": dict(sorted(faults.done.items())),
        "restarts": house.restarts,
        "sent": verdict.sent,
        "fates": dict(verdict.fates),
        "law": verdict.terms,
        "counted_in_crowds": verdict.in_crowds,
        "dummies": verdict.dummies,
        "dummies_of_devices": verdict.made,
        "drained_in_seconds": round(drained, 1),
        "largest_mb_first_and_second_half": largest,
        "redis_mb_after": [round(used / MB, 1) for used in after],
        **spent,
        "wrong": verdict.wrong + wrong,
    }


def tell(line: str) -> None:
    """Progress, on a terminal alone."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1, help="with the seeds that follow")
    parser.add_argument("--kills-a-second", type=float, default=KILLS_A_SECOND)
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="on a Redis Cluster, with what befalls one; as long as that takes",
    )
    parser.add_argument(
        "--tokens",
        action="store_true",
        help="of streams that need tokens, with an issuer and a thief of tokens",
    )
    args = parser.parse_args()
    wrong = 0
    for seed in range(args.seed, args.seed + args.runs):
        try:
            if args.cluster:
                result = run_on_cluster(seed)
            else:
                result = run(args.seconds, seed, args.kills_a_second, tokens=args.tokens)
        except (AssertionError, HubbubError) as error:
            result = {"seed": seed, "wrong": [str(error)]}
        wrong += bool(result["wrong"])
        print(json.dumps(result), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
