"""The audit passes on what is shipped, and catches faults that are planted on purpose."""

import random
from collections.abc import Callable
from itertools import count
from math import log
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import beta

import hubbub.mechanisms.random_bits as bits_module
from hubbub.catalog import Metric
from hubbub.cli.main import main
from hubbub.client.state.secret import DeviceMemo
from hubbub.errors import ProofFailed
from hubbub.mechanisms import BitSource, KeyedBits, Memo, Probability, SystemBits, build
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.privacy.proofs.audit import (
    NOT_WALKED,
    Check,
    audit_coins,
    audit_metric,
    audit_proofs,
    prove_coins,
)
from hubbub.privacy.proofs.enumeration import SMALL
from tests.conftest import CATALOG
from tests.support.catalogs import catalog_of, metric_toml
from tests.support.commands import document_of, refusal_of

pytestmark = pytest.mark.slow

MORE = metric_toml(
    "daily",
    mechanism="long.grr",
    epsilon=1.0,
    permanent_epsilon=2.0,
    values=["a", "b", "c"],
    min_batch=50,
    lifetime_epsilon=40.0,
)


@pytest.fixture
def metrics() -> dict[str, Metric]:
    return catalog_of(CATALOG + MORE).metrics


def _audit(
    metric: Metric,
    source: BitSource | None = None,
    devices: Callable[[str], Memo] | None = None,
    people: int = 6000,
) -> list[Check]:
    """With coins from fixed keys, so that a test does the same every time."""
    numbers = count(1)
    memo_of = devices or (lambda name: DeviceMemo(next(numbers).to_bytes(32, "big"), name))
    steps = audit_metric(metric, source or KeyedBits(b"seed" * 8), memo_of, people, 1e-6)
    return [step for step in steps if step]


def _failed(checks: list[Check]) -> set[str]:
    return {check.kind for check in checks if not check.passed}


def test_honest_metrics_pass_and_the_attack_comes_near_the_claim(
    metrics: dict[str, Metric],
) -> None:
    """An attack that works comes near, less so from few people's many reports."""
    for name in ("theme", "daily"):
        checks = _audit(metrics[name])
        assert _failed(checks) == set()
        for check in checks:
            if check.claim is not None:
                assert check.lower is not None
                assert check.lower > 0.5 * check.claim, check


def test_a_doubled_epsilon_is_caught(metrics: dict[str, Metric]) -> None:
    """By the enumeration where there is one, and by the attack where only payloads are seen."""
    for name in ("theme", "daily"):
        metric = metrics[name]
        bolder = build(metric.mechanism, **{**metric.arguments, "epsilon": 1.9})
        honest = metric.randomizer

        class Bold:
            def __getattr__(
                self, attribute: str, bolder: Any = bolder, honest: Any = honest
            ) -> Any:
                draws = attribute.startswith("randomize")
                return getattr(bolder if draws else honest, attribute)

            def randomize_again(self, *arguments: Any, bolder: Any = bolder) -> bytes:
                return bytes(bolder.randomize_again(*arguments))

            def permanent_key(self, *arguments: Any, honest: Any = honest) -> bytes:
                return bytes(honest.permanent_key(*arguments))

            def permanent_loss(self, honest: Any = honest) -> float:
                return float(honest.permanent_loss())

        object.__setattr__(
            metric, "randomizer", Bold() if metric.memoized else _Plain(bolder, honest)
        )
        failed = _failed(_audit(metric))
        assert "one report" in failed
        assert "own parameters" in failed


class _Plain:
    """Draws as the bolder mechanism does, and claims what the honest one claims."""

    def __init__(self, bolder: Any, honest: Any) -> None:
        self.randomize = bolder.randomize
        self._honest = honest

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._honest, attribute)


_ANEW = count(1)


class Forgets:
    """A device's memory that draws its permanent coins anew each time."""

    def coins(self, _purpose: bytes, /) -> BitSource:
        return KeyedBits(next(_ANEW).to_bytes(32, "big"))


@pytest.mark.thorough
def test_the_audit_detects_a_permanent_response_that_is_drawn_again(
    metrics: dict[str, Metric],
) -> None:
    checks = _audit(metrics["daily"], devices=lambda _name: Forgets(), people=12_000)
    assert _failed(checks) == {"30 reports of one value", "a device's memory"}
    alike = _audit(metrics["daily"], devices=lambda name: DeviceMemo(b"k" * 32, name), people=2000)
    assert "a device's memory" in _failed(alike)


class Repeats:
    """A source whose coins come twice: what a generator does that a fork shares."""

    def __init__(self) -> None:
        self._real = KeyedBits(b"real" * 8)
        self._last: dict[Any, Any] = {}

    def _twice(self, *arguments: Any) -> Any:
        if arguments in self._last:
            return self._last.pop(arguments)
        self._last[arguments] = answer = getattr(self._real, arguments[0])(*arguments[1:])
        return answer

    def chance(self, probability: Probability, /) -> bool:
        return bool(self._twice("chance", probability))

    def below(self, limit: int, /) -> int:
        return int(self._twice("below", limit))

    def mask(self, probability: Probability, width: int, /) -> int:
        return int(self._twice("mask", probability, width))


def test_a_reused_coin_is_caught(metrics: dict[str, Metric]) -> None:
    """One report alone looks right: only beside another it tells."""
    assert _failed(_audit(metrics["theme"], source=Repeats())) == {"a second report"}
    assert not audit_coins(Repeats()).passed


class Floats:
    """Compares a float of few digits: chances below its grid never come true, others too often."""

    def chance(self, probability: Probability, /) -> bool:
        return random.random() < probability.threshold / 2**64

    def below(self, limit: int, /) -> int:
        return int(random.random() * limit)

    def mask(self, probability: Probability, width: int, /) -> int:
        return sum(self.chance(probability) << place for place in range(width))


class Gap(GeneralizedRandomizedResponse):
    """Draws the other value from a float with a grid so coarse that some are never named."""

    def randomize(self, value: int, source: BitSource) -> bytes:
        if source.chance(self.keep):
            return self.layout.encode(value)
        coarse = source.below(4) / 4  # two digits of a float
        other = int(coarse * (self.categories - 1))
        return self.layout.encode(other + (other >= value))


def test_a_float_sampler_with_a_gap_is_caught() -> None:
    """In the source, whose digits are looked at; in a mechanism, whose outcomes are walked."""
    assert not audit_coins(Floats()).passed
    checks = list(audit_proofs([Gap(epsilon=1.0, categories=7)]))
    assert "worst ratio is within the claim" in _failed(checks)
    assert {check.passed for check in audit_proofs([build("grr", epsilon=1.0, categories=7)])} == {
        True
    }


def test_a_float_sampler_with_a_gap_is_caught_in_a_catalog(metrics: dict[str, Metric]) -> None:
    metric = metrics["editor"]
    values = len(metric.values or ())
    gap = Gap(epsilon=1.0, categories=max(values, 7))
    object.__setattr__(metric, "randomizer", gap)
    object.__setattr__(metric, "values", tuple("abcdefg"))
    assert "own parameters" in _failed(_audit(metric))


@pytest.mark.parametrize("digits", [32, 53, 63])
def test_a_coin_source_that_compares_too_few_digits_is_detected(
    digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove_coins(SystemBits())

    class Short(SystemBits):
        def chance(self, probability: Probability, /) -> bool:
            drawn = bits_module._system(64) >> (64 - digits)
            return drawn < probability.threshold >> (64 - digits)

    with pytest.raises(ProofFailed, match="not compared with all 64 digits"):
        prove_coins(Short())
    monkeypatch.setattr(bits_module, "_below", lambda draw, limit: draw(3) % limit)
    with pytest.raises(ProofFailed, match="folded over"):
        prove_coins(SystemBits())


def test_the_bounds_are_clopper_and_pearsons() -> None:
    from hubbub.privacy.proofs.distinguishing_attack import _bound

    low = beta.ppf(0.01, 300, 701)
    high = beta.ppf(0.99, 101, 900)
    assert _bound(300, 100, 1000, 0.01) == pytest.approx(log(low / high))
    assert _bound(0, 5, 100, 0.01) == float("-inf")
    assert _bound(100, 100, 100, 0.01) <= 0


def test_audit_shows_failures_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.cli.commands.privacy_audit.SMALL", SMALL[:3])
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + MORE)
    arguments = ["audit", str(path), "--metric", "daily", "--metric", "theme", "--samples", "2000"]
    document = document_of(capsys, *arguments, "--format", "json")
    assert document["passed"] is True
    assert {check["what"] for check in document["checks"] if check["claim"]} == {"daily", "theme"}
    assert main([*arguments, "--format", "html", "--no-proofs"]) == 0
    assert "<h1>hubbub audit: all checks passed</h1>" in capsys.readouterr().out
    monkeypatch.setattr("hubbub.cli.commands.privacy_audit.SystemBits", Floats)
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "hubbub audit: FAILED" in out
    assert "not compared with all 64 digits" in out
    for wrong, message in (
        (["--samples", "5"], "--samples 5 is outside"),
        (["--metric", "colour"], 'metric "colour" is not in'),
    ):
        assert message in refusal_of(capsys, "audit", str(path), *wrong)
    monkeypatch.chdir(tmp_path / "..")
    assert "leaves nothing to do" in refusal_of(capsys, "audit", "--no-proofs")


def test_the_audit_calls_a_proof_that_did_not_run_not_tried() -> None:
    from hubbub.cli.commands.privacy_audit import _verdict_text

    verdicts = {
        kind: _verdict_text(Check(what="theme", kind=kind, passed=success, detail=""))
        for kind, success in ((NOT_WALKED, True), ("one report", True), ("a second report", False))
    }
    assert list(verdicts.values()) == ["not tried", "passed", "FAILED"]
