"""The reviewer's page, of the demo's catalog."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hubbub.cli.demonstration.questions import demo_questions
from hubbub.cli.local.census import PEOPLE
from hubbub.cli.terminal.review_page import review_markdown
from hubbub.privacy.review import claims

_FOOT: Final = """\
## What this page is

It is made from the catalog that `hubbub demo` runs, which `hubbub demo --keep` leaves in `.hubbub-demo/metrics.toml`, by

    hubbub privacy review metrics.toml

which makes the same of yours.
Commands that begin with `python -m pytest` or `lint-imports` want [the repository](../CONTRIBUTING.md), and `hubbub ledger` and `hubbub status` something that runs.

For the people who are asked there is a page of their own, to print, without nats:

    hubbub privacy leaflet metrics.toml > leaflet.html

What is not protected against is said in the [threat model](threat-model.md#threat-model), every claim of mathematics in the [proof index](proofs.md), every promise in [promises](promises.md).
"""


def page() -> str:
    """The whole page, as Markdown."""
    with TemporaryDirectory() as folder:
        asked = demo_questions(Path(folder), PEOPLE)
    made = review_markdown(claims(asked, "metrics.toml"), "metrics.toml")
    return (
        made.replace(
            "# A reviewer's afternoon: metrics.toml\n",
            "# A reviewer's afternoon\n\nMade by `make reference` from the demo's catalog; change "
            "it there.\n`metrics.toml` is that catalog: `hubbub demo --keep` leaves it in "
            "`.hubbub-demo/metrics.toml`.\n`hubbub audit` takes about a minute.\n",
        )
        + "\n"
        + _FOOT
    )
