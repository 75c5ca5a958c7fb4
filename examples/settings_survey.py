"""A small app that reports two of its settings: python settings_survey.py BUNDLE STATE_DIR."""

import sys

from hubbub.client import Client


def main(bundle: str, state_dir: str) -> None:
    """Report, and say what became of it."""
    with Client.from_bundle(bundle, state_dir=state_dir) as client:
        print("education:", client.report("education", "Bachelors").value)
        print("homepage:", client.report("homepage", "example.org").value)
    print("still waiting:", client.waiting)


if __name__ == "__main__":
    main(*sys.argv[1:])
