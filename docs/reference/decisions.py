"""The index of decisions, from their files."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "docs" / "decisions"
_HEAD = """# Decisions

Made by `make reference` from their files; change it there.

One file per topic; its second line is the decision. All are in force, unless a status is stated.
Measurements are in [docs/research](../research/services.md).

"""

# The numbers that records had until they were merged by topic; commits and issues name them.
_EARLIER: Final = {
    "0201": "0008,0013,0014,0026,0070,0175",
    "0202": "0028,0150,0151,0158",
    "0203": "0027,0073,0086,0126",
    "0204": "0031,0064,0078,0094,0130,0154",
    "0205": "0007,0084,0108",
    "0206": "0123,0156,0157",
    "0207": "0089,0109,0124,0138",
    "0208": "0003,0006,0016,0079,0099",
    "0209": "0040,0103,0107,0112,0118",
    "0210": "0020,0039,0042,0057,0081,0117,0162",
    "0211": "0029,0050,0100,0116",
    "0212": "0004,0010,0011,0012,0036,0041,0097,0121,0146",
    "0213": "0018,0035,0102,0177,0178",
    "0214": "0047,0101,0136",
    "0215": "0021,0045",
    "0216": "0005,0009,0056,0060,0061,0098,0119,0133,0135,0147,0148,0170",
    "0217": "0062,0072,0075,0132,0134,0149",
    "0218": "0140,0159",
    "0219": "0139,0141,0142,0143,0144,0145,0160,0161",
    "0220": "0038,0046,0051,0071,0082,0110,0114",
    "0221": "0015,0065,0087,0096,0127,0129",
    "0222": "0017,0019,0032,0058,0137,0155,0164",
    "0223": "0023,0024,0034,0074,0176",
    "0224": "0033,0054,0085",
    "0225": "0052,0053,0088",
    "0226": "0022,0059,0122,0169,0182",
    "0227": "0090,0125,0128,0131",
    "0228": "0048,0092,0120",
    "0229": "0044,0049,0063",
    "0230": "0030,0055,0152,0153",
    "0231": "0077,0083,0104,0106,0163,0166,0167,0174",
    "0232": "0076,0105,0165",
    "0233": "0002,0037,0113,0115,0183",
    "0234": "0001,0025,0069,0091,0093,0095,0111",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One decision record."""

    path: Path
    number: str
    title: str
    status: str

    @property
    def entry(self) -> str:
        """Line of the index: a link to the record, and its status if it is special."""
        status = f" {self.status}" if self.status else ""
        return f"- [{self.number} {self.title}]({self.path.name}){status}\n"


def page() -> str:
    """The whole page, as Markdown."""
    records = [_record(path) for path in sorted(FOLDER.glob("[0-9]*.md"))]
    earlier = "".join(f"    {number}: {numbers}\n" for number, numbers in _EARLIER.items())
    entries = "".join(record.entry for record in records)
    return f"{_HEAD}{entries}\n## Earlier numbers\n\n{earlier}"


def _record(path: Path) -> Record:
    text = path.read_text()
    heading = re.match(r"# (\d{4})[.:] (.*)\n", text)
    status = re.search(r"^\*Status\.\* (.*)$", text, re.MULTILINE)
    line = re.search(r"^\*In a line\.\* (.*)$", text, re.MULTILINE)
    if not (heading and line):
        raise ValueError(f"{path.name} begins with '# NUMBER. Title', then needs '*In a line.*'")
    return Record(
        path=path,
        number=heading[1],
        title=heading[2],
        status=status[1] if status else "",
    )
