"""Writes the pages of the reference anew: `make reference`."""

from docs.reference.pages import DOCS, PAGES

for name, page in PAGES.items():
    (DOCS / name).write_text(page(), encoding="utf-8")
