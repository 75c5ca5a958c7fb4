"""The reviewer's page, of the demo's catalog."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hubbub.cli.commands.demo import PEOPLE
from hubbub.cli.demo_questions import demo_questions
from hubbub.cli.terminal.rendered_document import review_markdown
from hubbub.privacy.leaflet_and_reviewer_claims import claims

_FOLDER: Final = ".hubbub-demo"
_FOOT: Final = """\
## What this page is

This page is the output of

    hubbub privacy review .hubbub-demo/metrics.toml

The same command makes a page of your catalog.
Commands that begin with `python -m pytest` or `lint-imports` need [the repository](../CONTRIBUTING.md). `hubbub status` needs a running installation. `hubbub ledger` needs the state of an app that has reported.

For the people who answer, this command writes a page without nats, to print:

    hubbub privacy leaflet metrics.toml > leaflet.html

The [threat model](threat-model.md#threat-model) lists what hubbub does not protect against. The [proof index](proofs.md) lists the mathematical claims, and [promises](promises.md) the other promises.
"""


def page() -> str:
    """The whole page, as Markdown."""
    with TemporaryDirectory() as folder:
        asked = demo_questions(Path(folder), PEOPLE)
    path = f"{_FOLDER}/metrics.toml"
    made = review_markdown(claims(asked, path, _FOLDER), path)
    return (
        made.replace(
            f"# A reviewer's afternoon: {path}\n",
            "# A reviewer's afternoon\n\nMade by `make reference` from the demo's catalog; change "
            f"it there.\nFirst run `hubbub demo --keep`, and leave the demo running. The commands below "
            f"read its folder `{_FOLDER}`, with the catalog and one device's "
            "state.\n`hubbub audit` takes about a minute of a processor.\n",
        )
        + "\n"
        + _FOOT
    )
