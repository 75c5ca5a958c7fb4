"""Python and TypeScript read one signed text alike: what each takes, and promises by it."""

import json
from pathlib import Path
from typing import Any

from tests.conftest import CatalogFiles
from tests.support.node import install, needs_node, run
from tests.support.readers import disagreements, each_field, signed, some
from tests.support.typescript_fields import PATH, fields_file

INPUTS = 700


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
    documents = mutants(catalog_files, INPUTS, seed=1)
    differences = disagreements(documents, tmp_path)
    assert not differences, f"{len(differences)} of {len(documents)}:\n" + "\n\n".join(
        differences[:3]
    )


def test_the_ranges_that_typescript_checks_are_those_of_the_catalog() -> None:
    assert "".join(PATH.read_text().split()) == "".join(fields_file().split())
