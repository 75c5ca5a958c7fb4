"""Gathers the pages of the site: those of docs/, and what they link to elsewhere in the tree."""

import re
import shutil
from collections.abc import Callable
from os.path import normpath, relpath
from pathlib import Path
from typing import Final

from docs.site.diagram import flowchart_svg

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
# What has a place in the navigation though it is no page of docs/.
PROJECT: Final = {
    name: f"project/{name.lower()}"
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
}
# A fence, or a code span: what stands in them is no link.
_CODE: Final = re.compile(
    r"^( *)(```+|~~~+).*?^\1\2[ ]*$|(`+)(?!`).*?(?<!`)\3(?!`)", re.MULTILINE | re.DOTALL
)
_LINK: Final = re.compile(r"(\]\()([^)\s#]*)(#[^)\s]*)?(\))")
_MERMAID: Final = re.compile(r"```mermaid\n(.*?)\n```", re.DOTALL)
_LANGUAGES: Final = {".py": "python", ".toml": "toml", ".json": "json", ".yml": "yaml"}


def gather(folder: Path) -> None:
    """Write every page and picture into a folder of its own, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    pending = {path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md")} | {*PROJECT}
    written: set[str] = set()
    while pending - written:
        for name in sorted(pending - written):
            written.add(name)
            pending |= _write(folder, name)
    for path in DOCS.rglob("*"):
        if path.suffix in {".png", ".svg", ".css"}:
            _write_page(folder / path.relative_to(DOCS), path.read_bytes())


def page_of(name: str) -> str:
    """Where a file of the tree stands in the site, as a page or a picture."""
    if name in PROJECT:
        return PROJECT[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    if name.endswith(".md"):
        return f"source/{name.replace('README.md', 'readme.md')}"
    return f"source/{name}.md"


def _write(folder: Path, name: str) -> set[str]:
    """Write one file as a page; the names of those that it links to."""
    path, linked = ROOT / name, set[str]()
    if path.suffix == ".png":
        return linked
    if path.is_dir():
        text = _listing(name)
    elif path.suffix == ".md":
        text = path.read_text()
    else:
        text = _file_page(path, name)

    def link(found: re.Match[str]) -> str:
        start, target, anchor, end = found.groups(default="")
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        to = normpath((path if path.is_dir() else path.parent).relative_to(ROOT) / target)
        if not (ROOT / to).exists():
            return found[0]  # for the strict build to find
        if (ROOT / to).is_dir() and (ROOT / to / "README.md").exists():
            to = f"{to}/README.md"
        linked.add(to)
        here = str(Path(page_of(name)).parent)
        return f"{start}{relpath(page_of(to), here)}{anchor}{end}"

    text = _MERMAID.sub(lambda found: flowchart_svg(found[1]), text)
    text = _outside_code(text, lambda part: _LINK.sub(link, part))
    if page_of(name).startswith("source/"):
        text = f"---\nsearch:\n  exclude: true\n---\n\n{text}"
    _write_page(folder / page_of(name), text.encode())
    return linked


def _listing(name: str) -> str:
    """The page of a folder: what is in it."""
    files = sorted(path for path in (ROOT / name).iterdir() if path.is_file())
    return f"# {name}\n\n" + "".join(f"- [`{path.name}`]({path.name})\n" for path in files)


def _file_page(path: Path, name: str) -> str:
    """The page of a file that is no page: its text."""
    language = _LANGUAGES.get(path.suffix.replace(".yaml", ".yml"), "text")
    return f"# {path.name}\n\n`{name}`\n\n`````` {language}\n{path.read_text()}\n``````\n"


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for found in _CODE.finditer(text):
        parts += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(text[end:])])


def _write_page(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
