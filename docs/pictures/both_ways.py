"""Draws both_ways.svg from both_ways.json: one question, asked alone and in a crowd.

The numbers are of a run of the demo (`make pictures`); the same numbers make the same picture.
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
NUMBERS: Final = FOLDER / "both_ways.json"
PICTURE: Final = FOLDER / "both_ways.svg"
ALONE, CROWD = "education_by_work", "education_by_work_crowd"

WIDE, HIGH = 960, 400
TOP, BOTTOM, LEFT, GAP = 96, 46, 56, 40
PANEL: Final = (WIDE - LEFT - GAP - 20) // 2
TICK: Final = 500
HEAD: Final = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img">
<style>
text {{ font: 13px system-ui, sans-serif; fill: #333 }}
.title {{ font-size: 17px; font-weight: 600 }}
.panel {{ font-size: 15px; font-weight: 600 }}
.axis {{ stroke: #ddd }}
.interval {{ stroke: #b9cbea; stroke-width: 1.4 }}
.found {{ stroke: #2d62c9 }}
.true {{ fill: none; stroke: #d1495b; stroke-width: 1.6 }}
</style>
<rect width="{WIDE}" height="{HIGH}" rx="8" fill="#fff"/>
"""


def numbers(document: dict[str, Any]) -> dict[str, Any]:
    """What the picture needs of what the demo wrote: rows by the truth, the largest first."""
    ways = {}
    for name in (ALONE, CROWD):
        metric = document["metrics"][name]
        rows = sorted(metric["values"], key=lambda row: (-row["true"], row["value"]))
        ways[name] = {
            "epsilon": metric["epsilon"],
            "central_epsilon": metric["central_epsilon"],
            "detected": sum(row["detected"] for row in rows),
            "stderr": round(median(row["stderr"] for row in rows), 2),
            "values": [
                [row["true"], *(round(row[key]) for key in ("estimate", "low", "high")), detected]
                for row in rows
                for detected in [int(row["detected"])]
            ],
        }
    return {"reports": document["metrics"][ALONE]["reports"], **ways}


def draw_picture(found: dict[str, Any]) -> str:
    """The picture of such numbers."""
    most = max(row[3] for way in (ALONE, CROWD) for row in found[way]["values"])
    values = len(found[ALONE]["values"])
    title = (
        f"The same {found['reports']:,} people, the same question with {values} answers, "
        "asked in both ways"
    )
    parts = [HEAD, f"<title>{title}</title>\n", _text(LEFT, 32, title, "title")]
    for place, (way, head) in enumerate(
        (
            (ALONE, f"Alone: local epsilon {found[ALONE]['epsilon']:.2g}"),
            (CROWD, f"In a crowd: central epsilon {found[CROWD]['central_epsilon']:.2g}"),
        )
    ):
        left = LEFT + place * (PANEL + GAP)
        said = (
            f"{found[way]['detected']} answers stand out; standard error "
            f"{found[way]['stderr']:.0f} people"
        )
        parts += [_text(left, 62, head, "panel"), _text(left, 82, said)]
        parts += _panel(left, found[way]["values"], most)
    legend = (
        "Every line is an answer's 95% interval, dark where it stands out from zero; "
        "red: how many truly hold it."
    )
    return "".join([*parts, _text(LEFT, HIGH - 14, legend), "</svg>\n"])


def _panel(left: int, rows: list[list[int]], most: int) -> list[str]:
    scale = (HIGH - TOP - BOTTOM) / most
    ground = HIGH - BOTTOM
    parts = []
    for tick in range(0, most, TICK):
        y = ground - tick * scale
        parts.append(f'<path class="axis" d="M{left},{y:.1f}h{PANEL}"/>\n')
        parts.append(_text(left - 8, y + 4, f"{tick:,}", anchor="end"))
    step = PANEL / len(rows)
    line = []
    for place, (true, _estimate, low, high, detected) in enumerate(rows):
        x = left + step * (place + 0.5)
        found = " found" if detected else ""
        parts.append(
            f'<path class="interval{found}" '
            f'd="M{x:.1f},{ground - low * scale:.1f}V{ground - high * scale:.1f}"/>\n'
        )
        line.append(f"{x:.1f},{ground - true * scale:.1f}")
    return [*parts, f'<path class="true" d="M{"L".join(line)}"/>\n']


def _text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{said}</text>\n'


def write(document: dict[str, Any]) -> None:
    """Keep the numbers of a run of the demo, and draw them."""
    found = numbers(document)
    lines = json.dumps(found, separators=(",", ":")).replace("],[", "],\n[")
    NUMBERS.write_text(lines + "\n")
    PICTURE.write_text(draw_picture(found))


if __name__ == "__main__":
    PICTURE.write_text(draw_picture(json.loads(NUMBERS.read_text())))
    sys.exit(0)
