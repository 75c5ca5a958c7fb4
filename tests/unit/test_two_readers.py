"""Python and TypeScript read one signed text alike: what each takes, and promises by it."""

import json
import re
from pathlib import Path
from typing import Any

from tests.conftest import CatalogFiles
from tests.support.node import install, needs_node, run
from tests.support.readers import disagreements, each_field, signed, slots, some
from tests.support.typescript_fields import PATH, fields_file

WIRE = Path(__file__).parents[1] / "proofs" / "vectors" / "wire"
INPUTS = 700
OF_EACH_KIND = 60
# A whole number of a mechanism's that is written with a fraction or an exponent: JavaScript sees
# none, Python refuses it. Both would randomize alike.
SPELLED = re.compile(r'"parameters": \{[^}]*: (6\.0|1\.0|1e1|1e6)[,}]|"grown": \[[^]]*(1\.0|1e1)')


def bodies(catalog_files: CatalogFiles) -> list[dict[str, Any]]:
    """Bundles' bodies that both take, which say different things of a metric."""
    body = json.loads(catalog_files.path.read_bytes().split(b"\n")[1])
    theme = body["metrics"]["theme"]
    listed = {**theme, "mechanism": "grr"}
    crowd = {**listed, "central_epsilon": 0.5, "crowd": 100, "min_batch": 100}
    metrics = {
        "theme": {**theme, "tiers": [0.25, 0.5], "sampling": 0.5},
        "crashed": body["metrics"]["crashed"],
        "crowd": {**crowd, "delta": 1e-7, "honest": 0.8, "lifetime_central_epsilon": 50.0},
        "dummies": {**crowd, "dummies": 10, "max_local_epsilon": 4.0},
        "noise": {**crowd, "dummies_scale": 2.02, "dummies_shift": 36},
        "period": {**theme, "period": "30d", "report_on": "one day"},
        "breakdown": {**theme, "breakdown": [["os", [["linux", ["linux"]], ["mac", ["mac*"]]]]]},
    }
    caps = {"epsilon_per_day": 8.0, "central_epsilon_per_year": 30.0}
    rest = {"keys": body["keys"][:2], "caps": caps, "serial": 5, "history": {"gone": "0" * 64}}
    return [{**body, **rest, "metrics": {name: metric}} for name, metric in metrics.items()]


def notices() -> list[dict[str, Any]]:
    """Notices' bodies that both take."""
    steps = {"theme": [[5, 0.5], [9, 0]]}
    return [{"version": 1, "number": 3, "until": 1 << 33, "sampling": steps}]


def of_each_kind() -> list[dict[str, Any]]:
    """Bodies of one metric each: one of every shape that the known answers of the wire have."""
    documents = [json.loads(path.read_text()) for path in sorted(WIRE.glob("*.json"))]
    texts = (holder[place] for document in documents for holder, place in slots(document))
    shapes: dict[Any, dict[str, Any]] = {}
    for text in texts:
        if not (isinstance(text, str) and text.startswith('{"hubbub bundle"') and "\n{" in text):
            continue
        body = json.loads(text.split("\n")[1])
        for name, metric in body["metrics"].items():
            rest = {"metrics": {name: metric}, "keys": body["keys"][:1], "history": {}}
            shapes.setdefault((metric["mechanism"], *sorted(metric)), {**body, **rest})
    return [*shapes.values()]


def mutants_of_each_kind(count: int, seed: int) -> list[tuple[str, str]]:
    """Some of these with one field of their metric changed, signed anew; and those unchanged."""
    documents = [("bundle", signed("bundle", json.dumps(body))) for body in of_each_kind()]
    for body in of_each_kind():
        every = [("bundle", text) for text in each_field({"metrics": body["metrics"]})]
        for _, text in some(every, count, seed):
            whole = json.dumps({**body, "metrics": "\1"})
            changed = whole.replace('"metrics": "\\u0001"', text[1:-1])
            if not SPELLED.search(changed):
                documents.append(("bundle", signed("bundle", changed)))
    return documents


def mutants(catalog_files: CatalogFiles, count: int, seed: int) -> list[tuple[str, str]]:
    """Some of all bundles and notices with one field changed, signed anew; and those unchanged."""
    documents = [("bundle", json.dumps(body)) for body in bodies(catalog_files)]
    documents += [("notice", json.dumps(body)) for body in notices()]
    every = [
        (kind, changed) for kind, text in documents for changed in each_field(json.loads(text))
    ]
    return [(kind, signed(kind, text)) for kind, text in [*documents, *some(every, count, seed)]]


@needs_node
def test_both_sdks_take_and_promise_the_same_by_any_signed_text(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    install()
    run("npx", "tsc")
    documents = mutants(catalog_files, INPUTS, seed=1) + mutants_of_each_kind(OF_EACH_KIND, seed=1)
    differences = disagreements(documents, tmp_path)
    assert not differences, f"{len(differences)} of {len(documents)}:\n" + "\n\n".join(
        differences[:3]
    )


def test_the_ranges_that_typescript_checks_are_those_of_the_catalog() -> None:
    assert "".join(PATH.read_text().split()) == "".join(fields_file().split())
