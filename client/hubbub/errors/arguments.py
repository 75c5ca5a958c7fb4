"""Numbers on a command line: what is none is told in words, whatever command it is of."""

import argparse


def tell_numbers_in_words(parser: argparse.ArgumentParser) -> None:
    """Have a parser say what is no number, and what to write, for type=float and type=int."""
    parser.register("type", float, number)
    parser.register("type", int, _whole_number)


def number(written: str) -> float:
    """As float() reads it. Raises ArgumentTypeError, in words, for what is no number."""
    try:
        return float(written)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{written[:40]!a} is no number; write {_meant(written) or 'one like 0.5'}"
        ) from None


def _whole_number(written: str) -> int:
    try:
        return int(written)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{written[:40]!a} is no whole number; write one like 100, in digits alone"
        ) from None


def _meant(written: str) -> str:
    """What "95%" and "0,95" are."""
    try:
        if written.endswith("%"):
            return f"{float(written[:-1]) / 100:g}"
        return f"{float(written.replace(',', '.')):g}"
    except ValueError:
        return ""
