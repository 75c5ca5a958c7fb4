"""The other files of deploy/: container file, units, alerts; each by its own checker."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub.aggregator.settings import parse as parse_aggregator
from hubbub.issuer.settings import parse as parse_issuer
from hubbub.shuffler.settings import parse as parse_shuffler
from tests.support.clean_environment import CALLER

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"


def _ran(*command: str, **more: Any) -> str:
    """What it printed; it must end well."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_container_file_is_in_order() -> None:
    hadolint = str(Path(sys.executable).with_name("hadolint"))
    _ran(hadolint, "--failure-threshold", "info", str(DEPLOY / "Containerfile"))
    text = (DEPLOY / "Containerfile").read_text()
    targets = re.findall(r"^FROM base AS (shuffler|aggregator|tools)$", text, re.MULTILINE)
    assert targets == ["shuffler", "aggregator", "tools"]
    assert text.count("USER 10001:10001") == len(targets)


def test_people_can_log_in_at_the_image_of_an_aggregator() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock_text = (ROOT / "locks" / "aggregator.lock").read_text()
    for needed in project["optional-dependencies"]["oidc"]:
        name = re.split(r"[<>=]", needed)[0]
        assert re.search(rf"^{name}==", lock_text, re.MULTILINE), name


def test_image_builds_have_no_date() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    of = {name: base for base, name in re.findall(r"^FROM (\S+) AS (\S+)$", text, re.MULTILINE)}
    builders = {name for name, base in of.items() if base == "building"}
    assert builders == {
        "wheel",
        *(f"{service}-installed" for service in ("shuffler", "aggregator", "tools")),
    }
    assert "RUN " not in text.partition("FROM building AS wheel")[0]
    assert "RUN " not in text.partition("FROM base AS shuffler\n")[2]
    [building] = re.findall(r"FROM base AS building\n(.*?)\n\n", text, re.DOTALL)
    assert "SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} PYTHONHASHSEED=0" in building


@pytest.mark.thorough
def test_the_image_of_a_shuffler_holds_what_it_needs_and_no_more(tmp_path: Path) -> None:
    """The commands of the container file, here, on what `.dockerignore` lets in."""
    source = tmp_path / "src"
    let_in = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    tracked = _ran("git", "ls-files", "--", *let_in, cwd=ROOT).split()
    for name in tracked:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    builder, image = tmp_path / "builder", tmp_path / "opt" / "hubbub"
    for folder in (builder, image):
        _ran(sys.executable, "-m", "venv", "--without-pip", str(folder))
    # pip installs the same in ten times the time.
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--python"]
    build, python = str(builder / "bin" / "python"), str(image / "bin" / "python")
    locks = source / "locks"
    _ran(*uv, build, "--require-hashes", "-r", str(locks / "build.lock"), env=CALLER)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", build]
    wheel = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path / "dist")]
    _ran(*pip, *wheel, str(source / "client"), str(source), env=CALLER)
    _ran(*uv, python, "--require-hashes", "-r", str(locks / "shuffler.lock"), env=CALLER)
    built = sorted(str(path) for path in (tmp_path / "dist").glob("*.whl"))
    assert len(built) == 2
    _ran(*uv, python, "--no-deps", *built, env=CALLER)
    assert "--streams" in _ran(python, "-m", "hubbub.shuffler", "--help", env={})
    assert "HOST:PORT" in _ran(python, "-m", "hubbub.runtime.probe", "--help", env={})
    absent = (
        "import importlib.util as u; print([n for n in ('numpy','scipy','pip') if u.find_spec(n)])"
    )
    assert _ran(python, "-c", absent, env={}).strip() == "[]"


def test_units_are_understood_and_give_arguments_that_services_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", "redis://redis.example.org/0")
    parse = {"shuffler": parse_shuffler, "aggregator": parse_aggregator, "issuer": parse_issuer}
    more = {"issuer": ["--accounts", "/etc/hubbub/issuer/accounts"]}
    for role, parsed in parse.items():
        text = (DEPLOY / "systemd" / f"hubbub-{role}.service").read_text()
        [started] = re.findall(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.MULTILINE)
        words = started.replace("\\\n", " ").replace("%d", str(tmp_path)).split()
        assert words[1:3] == ["-m", f"hubbub.{role}"]
        assert words.pop() == "$HUBBUB_ARGUMENTS"
        parsed([*words[3:], *more.get(role, [])])
        (tmp_path / f"hubbub-{role}.service").write_text(
            text.replace("/opt/hubbub/bin/python", os.path.realpath(sys.executable))
        )
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze: install systemd")
    units = [str(tmp_path / f"hubbub-{role}.service") for role in parse]
    assert _ran("systemd-analyze", "verify", *units).strip() == ""
    for unit in units:
        output = _ran("systemd-analyze", "security", "--offline=true", unit)
        [exposure] = re.findall(r"Overall exposure level for \S+: ([\d.]+)", output)
        assert float(exposure) < 2.5, output


def test_services_that_strangers_reach_have_one_memory_limit_and_restart() -> None:
    """A flood then ends the service and not its neighbours; what it acknowledged is in Redis."""
    chart = yaml.safe_load((DEPLOY / "helm" / "hubbub" / "values.yaml").read_text())
    files = {"shuffler": "compose.yaml", "issuer": "issuer.yaml", "relay": "relay.yaml"}
    for role, file in files.items():
        limit = chart[role]["resources"]["limits"]["memory"]
        service = yaml.safe_load((DEPLOY / "compose" / file).read_text())["services"][role]
        assert service["restart"] == "unless-stopped"
        assert service["mem_limit"] == limit.lower().removesuffix("i"), role
        unit = DEPLOY / "systemd" / f"hubbub-{role}.service"
        if unit.exists():
            assert f"\nMemoryMax={limit.removesuffix('i')}\n" in unit.read_text()
            assert "\nRestart=always\n" in unit.read_text()


def _alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def _series(name: str, values: str, **labels: str) -> dict[str, str]:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{name}{{{inside}}}", "values": values}


QUIET = [
    _series("up", "1x60", job="hubbub-shuffler", instance="a"),
    _series("hubbub_store_up", "1x60", job="hubbub-shuffler", instance="a"),
    _series("hubbub_batches_total", "0+5x60", outcome="delivered", job="hubbub-shuffler"),
    _series("hubbub_batches_total", "0+1x60", outcome="delivery_failed", job="hubbub-shuffler"),
    _series("hubbub_pool_reports", "100x60", job="hubbub-shuffler"),
    _series("hubbub_pool_reports_limit", "2000000x60", job="hubbub-shuffler"),
    _series("hubbub_grpc_connections", "300x60", job="hubbub-shuffler", instance="a"),
    _series("hubbub_grpc_connections_limit", "16384x60", job="hubbub-shuffler", instance="a"),
    _series("hubbub_throttled_calls_total", "0+9x60", reason="peer_limit"),
    _series("hubbub_throttled_calls_total", "0+9x60", reason="too_slow"),
    _series("hubbub_redis_memory_ratio", "0.1x60", job="hubbub-shuffler"),
    _series("hubbub_redis_memory_ratio", "0.1x60", job="hubbub-aggregator"),
    _series("hubbub_clock_apart_seconds", "0.2x60", job="hubbub-aggregator"),
    _series("hubbub_unreadable_totals", "0x60", job="hubbub-aggregator"),
    _series("hubbub_opening_key_days_left", "200x60"),
    _series("hubbub_certificate_days_left", "200x60", job="hubbub-shuffler", file="ca.pem"),
    _series("hubbub_reloads_total", "0+1x60", job="hubbub-shuffler", outcome="taken"),
    _series("hubbub_reloads_total", "1x60", job="hubbub-shuffler", outcome="refused"),
    _series("hubbub_alert", "0x60", metric="theme", when="change", date="2026-11-22"),
    *(
        _series("hubbub_reports", values, stream="theme", epoch="7", state=term, instance=instance)
        # Two shufflers tell the same, and while reports come in the terms never agree.
        for term, values, instance in (
            ("acknowledged", "0+1000x60", "a"),
            ("acknowledged", "0+1000x60", "b"),
            ("pooled", "50x60", "a"),
            ("counted", "0+900x60", "c"),
            ("rejected:expired", "0+1x60", "c"),
        )
    ),
    _series("hubbub_stage_seconds_bucket", "0+10x60", stage="commit", le="0.1"),
    _series("hubbub_stage_seconds_bucket", "0+10x60", stage="commit", le="+Inf"),
]
# What each needs beside, or instead of, what is quiet.
SICK: dict[str, list[dict[str, str]]] = {
    "HubbubServiceDown": [_series("up", "0x60", job="hubbub-aggregator", instance="z")],
    "HubbubStoreDown": [_series("hubbub_store_up", "0x60", job="hubbub-aggregator")],
    "HubbubDeliveryWaits": [
        _series("hubbub_batches_total", "7x60", outcome="delivered", job="hubbub-shuffler")
    ],
    "HubbubReportsPileUp": [_series("hubbub_pool_reports", "1500000x60", job="hubbub-shuffler")],
    "HubbubTurnsDevicesAway": [
        _series("hubbub_throttled_calls_total", "0+3x60", reason="store_full")
    ],
    "HubbubTurnsDevicesAway, whose calls do not end": [
        _series("hubbub_throttled_calls_total", "0+90x60", reason="gave_way")
    ],
    "HubbubConnectionsRunOut": [
        _series("hubbub_grpc_connections", "16000x60", job="hubbub-shuffler", instance="a")
    ],
    "HubbubRedisNearlyFull": [
        _series("hubbub_redis_memory_ratio", "0.75x60", job="hubbub-aggregator")
    ],
    "HubbubRedisWillBeFull": [
        # A day's epoch begun an hour ago, of which a third more comes than there is room for.
        _series("hubbub_redis_memory_ratio", "0+0.0009x60", job="hubbub-aggregator")
    ],
    "HubbubWindowFull": [
        _series("hubbub_batches_total", "0+1x60", outcome="window_full", job="hubbub-aggregator")
    ],
    "HubbubClocksDiffer": [
        _series("hubbub_clock_apart_seconds", "7200x60", job="hubbub-aggregator")
    ],
    "HubbubTotalsUnreadable": [
        _series("hubbub_unreadable_totals", "1x60", job="hubbub-aggregator")
    ],
    "HubbubKeysRunOut": [_series("hubbub_opening_key_days_left", "20x60")],
    "HubbubCertificatesRunOut": [
        _series("hubbub_certificate_days_left", "29x60", job="hubbub-redis", file="redis.pem")
    ],
    "HubbubReloadRefused": [
        _series("hubbub_reloads_total", "1+1x60", job="hubbub-aggregator", outcome="refused")
    ],
    "HubbubManyRejected": [
        _series(
            "hubbub_reports",
            "0+90x60",
            stream="theme",
            epoch="7",
            state="rejected:wrong_key",
            instance="c",
        )
    ],
    "HubbubSlowCommits": [
        _series("hubbub_stage_seconds_bucket", "0+90x60", stage="commit", le="5"),
        _series("hubbub_stage_seconds_bucket", "0+90x60", stage="commit", le="+Inf"),
    ],
    "HubbubAnswerAlert": [
        _series("hubbub_alert", "1x60", metric="theme", when="change", date="2026-11-22")
    ],
    "HubbubLawBroken": [
        _series("hubbub_reports", "1000x60", stream="page", epoch="7", state="acknowledged"),
        _series("hubbub_reports", "990x60", stream="page", epoch="7", state="counted"),
    ],
}


def test_every_alert_fires_when_it_should_and_not_otherwise(tmp_path: Path) -> None:
    names = [rule["alert"] for rule in _alerts()]
    assert names == list(dict.fromkeys(name.partition(",")[0] for name in SICK))
    if not shutil.which("promtool"):
        pytest.skip("no promtool: install prometheus")
    _ran("promtool", "check", "rules", str(ALERTS))
    tests = [_case(QUIET, names, None)]
    for name, sick in SICK.items():
        replaced = {series["series"] for series in sick}
        rest = [series for series in QUIET if series["series"] not in replaced]
        tests.append(_case([*rest, *sick], names, name))
    file = tmp_path / "tests.yml"
    document = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(document))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    # It compares whole alerts, texts too; which ones it found beyond "none" is what is asked here.
    fired = re.findall(r"name: (.+),\s+alertname: (\w+), time", done.stdout + done.stderr)
    assert fired == [(name, name.partition(",")[0]) for name in SICK], done.stdout + done.stderr


def _case(series: list[dict[str, str]], names: list[str], expected: str | None) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": series,
        "alert_rule_test": [
            {"eval_time": "55m", "alertname": name, "exp_alerts": []} for name in names
        ],
        "name": expected or "quiet",
    }


def test_the_files_of_an_installation_speak_of_things_that_exist() -> None:
    for rule in _alerts():
        for document in re.findall(r"docs/[\w./-]+\.md", json.dumps(rule)):
            assert (ROOT / document).exists(), document
        base, _, runbook = rule["annotations"]["runbook_url"].rpartition("/")
        assert base == "{{ $externalLabels.runbooks }}"
        assert runbook == f"alerts.md#{rule['alert'].lower()}"
    settings = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text())
    assert settings["global"]["external_labels"].keys() == {"runbooks"}


def test_the_runbook_describes_exactly_the_alerts() -> None:
    page = (ROOT / "docs" / "operate" / "alerts.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [rule["alert"] for rule in _alerts()]


def test_every_panel_says_what_it_means() -> None:
    for name in ("hubbub", "operations"):
        board = json.loads((DEPLOY / "grafana" / f"{name}.json").read_text())
        for panel in board["panels"]:
            if panel["type"] != "row":
                assert len(panel.get("description", "").split()) > 8, panel["title"]
