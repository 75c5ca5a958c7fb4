"""Documents of paragraphs and tables, for a terminal, as Markdown, or as a page to print."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

from hubbub.cli.terminal.output import explain, say, table
from hubbub.privacy.leaflet_and_reviewer_claims import Claim, Leaflet


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first columns are text, the others figures."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


@dataclass(slots=True)
class Document:
    """A title, followed by paragraphs and tables in order."""

    title: str
    blocks: list[str | Table] = field(default_factory=list)

    def write(self, form: str) -> None:
        """Prints the document as "table", "markdown" or "html"."""
        if form != "table":
            say((self.markdown() if form == "markdown" else self.html()).rstrip())
            return
        explain(self.title)
        for block in self.blocks:
            if isinstance(block, Table):
                table(block.title, block.header, block.rows, text_columns=block.text_columns)
            else:
                explain(block)

    def markdown(self) -> str:
        """The document as Markdown."""
        parts = [f"# {self.title}"]
        for block in self.blocks:
            if isinstance(block, str):
                parts.append(_plain_line(block))
                continue
            right = len(block.header) - block.text_columns
            lines = [
                "| " + " | ".join(map(_plain_line, block.header)) + " |",
                "|" + "---|" * block.text_columns + "---:|" * right,
                *("| " + " | ".join(map(_plain_line, row)) + " |" for row in block.rows),
            ]
            parts.append(f"**{_plain_line(block.title)}**\n\n" + "\n".join(lines))
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """The document as a self-contained web page."""
        parts = [f"<h1>{escape(self.title)}</h1>"]
        for block in self.blocks:
            if isinstance(block, str):
                parts.append(f"<p>{escape(block)}</p>")
                continue
            head = _cells("th", block.header, block.text_columns)
            body = "\n".join(_cells("td", row, block.text_columns) for row in block.rows)
            parts.append(
                f'<h2>{escape(block.title)}</h2>\n<div class="wide"><table>\n'
                f"<thead>{head}</thead>\n<tbody>{body}</tbody>\n</table></div>"
            )
        return html_page(self.title, "document.css", "\n".join(parts))


def html_page(title: str, style: str, body: str) -> str:
    """A self-contained web page; `style` is the name of a file of CSS beside this one."""
    css = (files("hubbub.cli.terminal") / style).read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{css}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _cells(kind: str, row: Sequence[str], text_columns: int) -> str:
    marked = (
        f"<{kind}{'' if place < text_columns else ' class=figure'}>{escape(cell)}</{kind}>"
        for place, cell in enumerate(row)
    )
    return f"<tr>{''.join(marked)}</tr>"


def _plain_line(text: str) -> str:
    """The text in one line, with markup escaped."""
    markdown = "".join(f"\\{c}" if c in "\\`*_{}[]<>#|" else c for c in text)
    return " ".join(markdown.split())


def review_markdown(claims: Sequence[Claim], path: str) -> str:
    """The reviewer's page: each claim with its command, proofs, trust and assumptions."""
    parts = [
        f"# A reviewer's afternoon: {path}\n",
        "Ten claims, each with a command that shows it on your machine.",
        "The names are proofs and tests, which fail if the claim is false.\n",
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
        + "".join(f"<td>{escape(cell)}</td>" for cell in (row.asks, row.frequency, row.verdict))
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
