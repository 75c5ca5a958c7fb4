"""`python -m hubbub.cli` is `hubbub`."""

import sys

from hubbub.cli import run

if __name__ == "__main__":
    sys.exit(run())
