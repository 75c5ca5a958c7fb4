"""client/typescript: the known answers, and a report from Node that an aggregator counts."""

import json
import re
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from hubbub.cli.main import main
from hubbub.errors import HubbubError
from hubbub.installation.child_process import free_port
from hubbub.mechanisms import REGISTRY
from tests.proofs.vectors.judge import judge, requests
from tests.support import asking
from tests.support.catalogs import catalog_toml, metric_toml, model_toml
from tests.support.development_server import Developing, developing
from tests.support.node import PACKAGE, ROOT, build, install, needs_node, run
from tests.support.programs import run_program
from tests.support.relay_process import Relay
from tests.support.waiting import eventually

# So large that a lie comes once in five million reports: what is counted is what was said.
CATALOG = catalog_toml(
    metric_toml(
        "theme", mechanism="grr", epsilon=16.0, values=["light", "dark", "system"], min_batch=1000
    )
)
SETS = (
    metric_toml(
        "plugins",
        mechanism="auto",
        epsilon=16.0,
        kind="set",
        values=["git", "vim", "lint"],
        most=2,
        min_batch=1000,
    )
    + metric_toml(
        "scores",
        kind="vector",
        coordinates=3,
        mechanism="vector.codes",
        epsilon=6.0,
        min_batch=1000,
    )
    + metric_toml(
        "back",
        kind="retention",
        weeks=3,
        epoch="week",
        mechanism="grr",
        epsilon=1.0,
        min_batch=1000,
    )
    + model_toml(
        "churn",
        epoch="day",
        min_batch=1000,
        epsilon=4.0,
        begins=date(2026, 12, 1),
        positive="left",
        negative="stayed",
    )
)

IMPORT = """
const before = Object.getOwnPropertyNames(globalThis).length;
const [page, node, testing] = await Promise.all(
  ["hubbub-client", "hubbub-client/node", "hubbub-client/testing"].map((name) => import(name)),
);
const whole = [page.open, node.open, testing.memoryClient, testing.capture].every(Boolean);
const same = before === Object.getOwnPropertyNames(globalThis).length;
console.log(whole && same ? "nothing new" : "something new");
"""
TSC = (
    "--noEmit",
    "--strict",
    "--module",
    "nodenext",
    "--target",
    "es2022",
    "--lib",
    "es2022,dom,dom.iterable",
)
RIGHT = """
import { open, type Outcome } from "hubbub-client";
import { learn, report } from "./metrics.js";
const client = await open({ bundle: "/app.hubbub", holdSeconds: null });
const said: Outcome = client.report("theme", { part: "dark", age: 41 });
report(client, "theme", "dark");
report(client, "plugins", ["git", "vim"]);
report(client, "plugins", new Set(["lint"] as const));
report(client, "scores", [0.5, -1, 2]);
report(client, "scores", Float64Array.of(0.5, -1, 2));
report(client, "back");
learn(client, "churn", { hours: 12.5, plan: "paid" }, "stayed");
client.learn("churn", [12.5, "paid"], true);
export { said };
"""
WRONG = """import { open } from "hubbub-client"; import { learn, report } from "./metrics.js";
const client = await open({ bundle: "/app.hubbub" });
client.report("theme", null);
report(client, "theme");
await open({ bundles: "/app.hubbub" });
report(client, "theme", "blue");
report(client, "colour", "dark");
report(client, "plugins", "git");
report(client, "plugins", ["git", "emacs"]);
report(client, "scores", "1, 2, 3");
report(client, "back", 1);
report(client, "churn", 1);
learn(client, "churn", { hours: 12.5, plan: "Paid" }, "left");
learn(client, "churn", { hours: 12.5 }, "left");
learn(client, "churn", { hours: 12.5, plan: "paid" }, "maybe");
client.learn("churn", { hours: null }, 1);
"""

PAGES = {"client-typescript.md": 5, "learn.md": 1}  # and how many examples they have at least

pytestmark = needs_node


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    install()
    build()


@pytest.mark.thorough
def test_eslint_prettier_and_publint_find_nothing() -> None:
    run("npm", "run", "--silent", "lint")


def test_the_typescript_client_agrees_with_the_known_answers() -> None:
    assert re.search(r" pass [1-9][0-9]*$", run("npm", "test"), re.MULTILINE)


@pytest.mark.parametrize("kem", ["x-wing", pytest.param("x25519", marks=pytest.mark.thorough)])
def test_reports_from_node_are_counted_by_themselves_and_through_a_relay(
    tmp_path: Path, kem: str
) -> None:
    with developing(tmp_path, f'{CATALOG}kem = "{kem}"\n') as up:
        [door] = re.findall(r"over HTTP to +(\S+)", up.said)
        words = ("node", "dist/examples/report.js", str(up.bundle), door, str(tmp_path / "device"))
        assert run(*words, "theme", "dark") == "queued\nnothing waits\n"
        assert run(*words, "theme", "dark") == "already_reported\nnothing waits\n"
        relay = Relay(up.folder / ".hubbub" / "tls", door, free_port())
        with relay.running():
            arguments = (*words[:4], str(tmp_path / "other"), "theme", "dark", relay.url)
            assert run(*arguments) == "queued\nnothing waits\n"
        result = eventually(lambda: _of_both(up), although=(HubbubError,))
    assert result
    assert {value.value: round(value.estimate) for value in result.values} == {
        "light": 0,
        "dark": 2,
        "system": 0,
    }


def _of_both(up: Developing) -> Any:
    answer = asking.estimate(up.endpoints, "theme")
    return answer if answer.reports == 2 else None


def test_an_altered_bundle_reports_nothing(tmp_path: Path) -> None:
    document = json.loads((ROOT / "tests/proofs/vectors/wire/bundle.json").read_text("utf-8"))
    path = tmp_path / "theme.hubbub"
    path.write_text(document["refused"]["body altered"])
    words = ("node", "dist/examples/report.js", path, "https://[::1]:1", tmp_path, "theme", "dark")
    done = run_program(*[str(word) for word in words], cwd=PACKAGE)
    assert done.returncode
    assert f"BundleRefused: {path}: the bundle is refused: it was altered" in done.stderr
    assert "dark" not in done.stderr


def test_the_judge_of_any_sdk_finds_it_right_and_a_wrong_one_wrong() -> None:
    right, none = judge(["node", str(PACKAGE / "dist/tests/vector_judge.js")])
    assert right == {"right": len(list(requests()))}
    assert none == []
    liar = "import sys; [print('[]') for _ in sys.stdin]"
    judgement, mistakes = judge([sys.executable, "-c", liar])
    assert judgement["wrong"] == len(mistakes) >= len(REGISTRY)
    silent, _ = judge([sys.executable, "-c", liar.replace("[]", "null")])
    assert silent == {"not given": len(list(requests()))}


@pytest.mark.thorough
def test_the_packed_package_installs_and_does_nothing_when_it_is_imported(tmp_path: Path) -> None:
    packed = json.loads(run("npm", "pack", "--json", "--pack-destination", str(tmp_path)))[0]
    names = {file["path"] for file in packed["files"]}
    assert not [name for name in names if not re.match(r"dist/src/|README|package.json", name)]
    (tmp_path / "package.json").write_text('{"type": "module"}')
    install = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefer-offline")
    run(*install, str(tmp_path / packed["filename"]), folder=tmp_path)
    (tmp_path / "import.mjs").write_text(IMPORT)
    assert run("node", "import.mjs", folder=tmp_path) == "nothing new\n"
    (tmp_path / "metrics.toml").write_text(CATALOG + SETS)
    module = str(tmp_path / "metrics.ts")
    assert main(["catalog", "codegen", str(tmp_path / "metrics.toml"), "--typescript", module]) == 0
    (tmp_path / "right.ts").write_text(RIGHT)
    (tmp_path / "wrong.ts").write_text(WRONG)
    check = [str(PACKAGE / "node_modules/.bin/tsc"), *TSC]
    done = run_program(*check, "right.ts", "wrong.ts", cwd=tmp_path)
    mistakes = re.findall(r"^(\S+)\((\d+),", done.stdout, re.MULTILINE)
    assert mistakes == [("wrong.ts", f"{line}") for line in range(3, 17)]


@pytest.mark.parametrize(
    "page", ["client-typescript.md", pytest.param("learn.md", marks=pytest.mark.thorough)]
)
def test_the_examples_of_its_pages_are_typescript(tmp_path: Path, page: str) -> None:
    """Each is a module; of what the page has before it, the client and a bundle are told."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "hubbub-client").symlink_to(PACKAGE)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "metrics.toml").write_text(CATALOG)
    module = str(tmp_path / "metrics.ts")
    assert main(["catalog", "codegen", str(tmp_path / "metrics.toml"), "--typescript", module]) == 0
    blocks = re.findall(r"```ts\n(.*?)```", (ROOT / "docs" / page).read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= PAGES[page]
    for number, block in enumerate(blocks):
        declarations = (
            "declare const bundle: Uint8Array<ArrayBuffer>;\n" if "bundle)" in block else ""
        )
        if "const client" not in block:
            declarations += 'declare const client: import("hubbub-client").Client;\n'
        (tmp_path / f"block_{number}.ts").write_text(declarations + block)
    names = [f"block_{number}.ts" for number in range(len(blocks))]
    run(str(PACKAGE / "node_modules/.bin/tsc"), *TSC, *names, folder=tmp_path)


def test_the_npm_package_has_the_version_of_the_python_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = json.loads((PACKAGE / "package.json").read_text())
    assert package["version"].replace("-dev.", ".dev") == project["version"]


def test_the_npm_lock_has_hashes_and_no_addresses() -> None:
    text = (PACKAGE / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert text.count('"integrity"') >= 2
