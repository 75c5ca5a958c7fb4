"""A short document of paragraphs and tables, for a terminal, as Markdown or as a web page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

from hubbub.cli.terminal.output import explain, say, table


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
