"""Draws a picture of boxes and arrows as SVG, so that the site needs no drawing library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import pairwise
from typing import Final

_BOX, _BEND, _HEIGHT, _GAP, _RISE = 112, 10, 34, 18, 44
_MARGIN: Final = 12


@dataclass(frozen=True, slots=True)
class _Picture:
    """kinds: of every box its group. paths: of every arrow the places it goes by, from its foot.

    rows: from the bottom up; a place that is no box is a bend of an arrow that passes there.
    """

    kinds: Mapping[str, str]
    paths: Sequence[Sequence[str]]
    rows: Sequence[list[str]]


def flowchart_svg(mermaid: str) -> str:
    """The SVG of a flowchart from the bottom up: named groups of names, and arrows among them."""
    group, kinds = "", dict[str, str]()
    arrows: list[tuple[str, str]] = []
    for line in mermaid.splitlines()[1:]:
        words = line.split()
        if words[0] == "subgraph":
            group = words[1]
        elif "-->" in words:
            arrows.append((words[0], words[2]))
        elif words[0] != "end":
            kinds[words[0]] = group
    return _svg(_lay_out(kinds, arrows))


def _lay_out(kinds: Mapping[str, str], arrows: Sequence[tuple[str, str]]) -> _Picture:
    """Each box above all that it points to, and near to them."""
    below = {name: [to for source, to in arrows if source == name] for name in kinds}

    def level(name: str) -> int:
        return 1 + max(map(level, below[name]), default=-1)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(level, kinds)))]
    for name in kinds:
        rows[level(name)].append(name)
    paths = []
    for source, to in arrows:
        bends = [f"{source}>{to}@{at}" for at in range(level(source) - 1, level(to), -1)]
        for at, bend in enumerate(bends):
            rows[level(source) - 1 - at].append(bend)
        paths.append([source, *bends, to])
    steps = [step for path in paths for step in pairwise(path)]
    for _ in range(8):  # a few rounds bring neighbours together
        for row in (*rows, *reversed(rows)):
            spot = {place: x for other in rows for place, (x, _) in _spots(other, kinds).items()}
            row.sort(key=partial(_pull, steps=steps, spot=spot))
    return _Picture(kinds, paths, rows)


def _pull(place: str, steps: Sequence[tuple[str, str]], spot: Mapping[str, float]) -> float:
    """The middle of what a place is joined with."""
    near = [spot[b if a == place else a] for a, b in steps if place in (a, b)]
    return sum(near) / max(1, len(near))


def _spots(row: Sequence[str], kinds: Mapping[str, str]) -> dict[str, tuple[float, int]]:
    """Of every place of a row its middle, from the row's own, and its width."""
    widths = [_BOX if place in kinds else _BEND for place in row]
    x = -(sum(widths) + _GAP * (len(row) - 1)) / 2
    found = {}
    for place, width in zip(row, widths, strict=True):
        found[place] = (x + width / 2, width)
        x += width + _GAP
    return found


def _svg(picture: _Picture) -> str:
    half = _MARGIN + max(
        x + width / 2 for row in picture.rows for x, width in _spots(row, picture.kinds).values()
    )
    places = {
        place: (round(half + x), _MARGIN + (len(picture.rows) - 1 - level) * (_HEIGHT + _RISE))
        for level, row in enumerate(picture.rows)
        for place, (x, _) in _spots(row, picture.kinds).items()
    }
    kinds = list(dict.fromkeys(picture.kinds.values()))
    key = len(picture.rows) * (_HEIGHT + _RISE) - _RISE + 2 * _MARGIN + 20
    lines = [
        f'<svg class="diagram" viewBox="0 0 {round(2 * half)} {key + 16}" role="img"',
        'aria-label="Each box stands above those that its arrows point to">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"',
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    lines += [
        f'<path class="arrow" d="{_curve([places[at] for at in path])}" marker-end="url(#tip)"/>'
        for path in picture.paths
    ]
    for name, kind in picture.kinds.items():
        x, y = places[name]
        lines.append(
            f'<g class="kind{kinds.index(kind)}"><rect x="{x - _BOX // 2}" y="{y}" width="{_BOX}" '
            f'height="{_HEIGHT}" rx="6"/>'
            f'<text x="{x}" y="{y + 22}" text-anchor="middle">{escape(name)}</text></g>'
        )
    for place, kind in enumerate(kinds):
        x = _MARGIN + round(place * 2 * (half - _MARGIN) / len(kinds))
        lines.append(
            f'<g class="kind{place}"><rect x="{x}" y="{key - 12}" width="16" height="16" rx="3"/>'
            f'<text x="{x + 22}" y="{key + 1}" font-size="11">{escape(kind)}</text></g>'
        )
    return "\n".join([*lines, "</svg>"])


def _curve(places: Sequence[tuple[int, int]]) -> str:
    """From the foot of the first place to the head of the last, straight down through bends."""
    x, y = places[0]
    text = f"M{x} {y + _HEIGHT}"
    y += _HEIGHT
    for to, (a, b) in enumerate(places[1:], start=2):
        text += f"C{x} {y + _RISE // 2} {a} {b - _RISE // 2} {a} {b}"
        x, y = a, b
        if to < len(places):
            y += _HEIGHT
            text += f"V{y}"
    return text
