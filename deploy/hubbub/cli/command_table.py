"""The commands there are: the module of each, what it is for, and what must be installed for it."""

from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from hubbub.errors import MissingDependency
from hubbub.errors.installing import install_with


class Command(NamedTuple):
    """One command.

    module: of hubbub.cli.commands; several commands may share one. extra: the smallest that has
    all it imports, as pip names it; "" for what the bare install has.
    """

    module: str
    purpose: str
    extra: str = ""


COMMANDS: Final = {
    "demo": Command("demo", "30,162 real people's answers, from SDK to estimates", "local"),
    "init": Command(
        "init",
        "keys, certificates, passwords and settings for an installation",
        "cli",
    ),
    "up": Command("up", "run everything on this machine, until Ctrl-C", "local"),
    "catalog": Command(
        "catalog",
        "write and check metrics.toml, build what is shipped, help editors",
    ),
    "keys": Command("keys", "make keys and certificates", "cli"),
    "log": Command("log", "the transparency log of bundles: audit one, as whoever wishes"),
    "notice": Command("notice", "ask fewer devices, or stop a metric, without an app's release"),
    "plan": Command(
        "plan",
        "which mechanism, how many reports, which epsilon; fake reports; how many machines",
        "plan",
    ),
    "simulate": Command(
        "simulate",
        "a rehearsal: what would be answered of values that you know",
        "plan",
    ),
    "privacy": Command("privacy", "what a catalog reveals; amplify; compose", "plan"),
    "audit": Command("audit", "prove the installed mechanisms, attack a catalog's metrics", "plan"),
    "query": Command("query", "estimates of one metric, with their intervals"),
    "discover": Command(
        "discover", "strings that nobody listed: which are frequent, and how frequent"
    ),
    "top": Command("query", "the most frequent values, and how sure their order is"),
    "compare": Command("query", "what differs between two ranges of epochs"),
    "trend": Command("query", "the most frequent values, epoch by epoch"),
    "cross": Command("cross", "how two parts of an answer go together"),
    "breakdown": Command("breakdown", "a metric by what is public of devices, as OS"),
    "model": Command("model", "what a model has learned; sign its state for devices", "cli"),
    "export": Command("export", "a metric as a file: CSV, Parquet or JSON"),
    "candidates": Command("candidates", "lists of strings to look for, saved by name"),
    "mark": Command("mark", "days on which something happened, shown on every trend"),
    "metrics": Command("status", "the metrics there are, and what is held of each"),
    "status": Command("status", "the conservation law: where every report is"),
    "forget": Command("forget", "delete a metric's totals of before a day", "aggregator,cli"),
    "backup": Command(
        "backup",
        "copy both Redis as they are at one moment, and all files, encrypted",
        "aggregator,cli",
    ),
    "verify": Command(
        "backup",
        "check a backup: checksums, and whether Redis reads it",
        "aggregator,cli",
    ),
    "restore": Command("backup", "make an installation again from a backup", "aggregator,cli"),
    "watch": Command(
        "status",
        "as it comes, until Ctrl-C: reports in development, else the law; or a metric",
    ),
    "release": Command(
        "release",
        "numbers for outside, with central noise, paid from a yearly budget",
        "plan",
    ),
    "load": Command(
        "load",
        "many devices at once: what an installation bears, and how fast it answers",
        "cli",
    ),
    "rappor": Command("rappor", "decode collections of the original RAPPOR tools", "plan"),
    "ledger": Command("ledger", "what left this device, and what it could mean"),
    "completion": Command("completion", "complete hubbub's commands in your shell", "cli"),
}


def load(command: str) -> ModuleType:
    """The module of a command, imported.

    Raises:
        MissingDependency: it imports what is not installed here.
    """
    return load_module(COMMANDS[command].module, f"hubbub {command}", COMMANDS[command].extra)


def load_module(module: str, command: str, extra: str) -> ModuleType:
    """A module of hubbub.cli.commands, which this command needs, and this extra has.

    Raises:
        MissingDependency: as `load`.
    """
    try:
        return import_module(f"hubbub.cli.commands.{module}")
    except ModuleNotFoundError as error:
        missing = (error.name or "hubbub").partition(".")[0]
        if missing == "hubbub":
            raise
        raise MissingDependency(
            f"{command} needs {missing}, which is not installed here: {install_with(extra)}"
        ) from error
