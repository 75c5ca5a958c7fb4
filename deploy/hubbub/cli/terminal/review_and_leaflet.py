"""Renders the reviewer's page as Markdown, and the leaflet for people as a page to print."""

from collections.abc import Sequence
from html import escape

from hubbub.cli.terminal.rendered_document import html_page
from hubbub.privacy.leaflet import Leaflet
from hubbub.privacy.review import Claim


def review_markdown(claims: Sequence[Claim], path: str) -> str:
    """The reviewer's page: each claim with its command, proofs, trust and assumptions."""
    parts = [
        f"# A reviewer's afternoon: {path}\n",
        "Ten claims, and a command that shows each, here and on your machine.",
        "The names are those of proofs and tests: each fails where its claim does not hold.\n",
    ]
    for number, claim in enumerate(claims, 1):
        parts += [
            f"## {number}. {claim.says.rstrip('.')}\n",
            f"    {claim.command}\n",
            f"- Shown by {', '.join(f'`{name}`' for name in claim.shown)}.",
            f"- Rests on: {claim.rests_on}",
            f"- Assumed: {claim.assumed}\n",
        ]
    return "\n".join(parts)


def leaflet_html(leaflet: Leaflet) -> str:
    """A self-contained A4 page that explains the metrics without nats."""
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in (row.asks, row.often, row.verdict))
        + f'<td class="figure">{row.right} in 100</td>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in (row.until, row.owner))
        + "</tr>"
        for row in leaflet.questions
    )
    end = (
        f"<p>And {leaflet.unlisted} more questions; none of them reveals more.</p>"
        if leaflet.unlisted
        else ""
    )
    year = f"is right at most {leaflet.year_right} times in 100"
    if leaflet.year_right >= 100:  # noqa: PLR2004 certainty
        year = "might know the truth"
    least = min(question.right for question in leaflet.questions)
    paragraphs = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in leaflet.sentences)
    title = "What this app asks, and what it cannot learn"
    body = (
        f"<h1>{title}</h1>\n"
        f'<div class="verdict"><strong>{escape(leaflet.year)}</strong>: for all your answers '
        f"in a year. Whoever could link all your answers {year}.</div>\n"
        f"{paragraphs}\n<table>\n<thead><tr>"
        "<th>What is asked</th>"
        '<th>How often</th><th>One answer is</th><th class="figure">Right at most</th>'
        f"<th>Until</th><th>Asked by</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n{end}\n"
        f"<p>“{least} in 100” means: someone who does not know which of two things is "
        f"true of you, and sees the answer, is right at most {least} times in 100. A guess is "
        "right 50 times, certainty 100 times.</p>"
    )
    return html_page(title, "leaflet.css", body)
