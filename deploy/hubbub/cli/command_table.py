"""The table of commands: module, purpose, and required extra of each."""

from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from hubbub.errors import MissingDependency
from hubbub.errors.installing import install_with


class Entry(NamedTuple):
    """The place and purpose of a command.

    `module` is in hubbub.cli.commands and may hold several commands; `extra` is the smallest extra
    of pip with all its imports, "" for the bare install; `further` are modules of further actions.
    """

    module: str
    purpose: str
    extra: str = ""
    further: tuple[str, ...] = ()


COMMANDS: Final = {
    "demo": Entry(
        "demo",
        ("send the answers of 30,162 real people through the whole system, and estimate"),
        "local",
    ),
    "init": Entry(
        "init", ("make keys, certificates, passwords and settings for an installation"), "cli"
    ),
    "up": Entry("up", "run everything on this machine, until Ctrl-C", "local"),
    "catalog": Entry(
        "catalog_new",
        "write and check metrics.toml, build bundles, write code and schema",
        further=("catalog",),
    ),
    "keys": Entry("keys", "make keys and certificates", "cli"),
    "log": Entry("log", "audit the transparency log of bundles"),
    "notice": Entry("notice", "lower or stop a metric on all devices, without an app release"),
    "plan": Entry(
        "plan",
        "choose a mechanism, the number of reports or the epsilon; count fake reports and machines",
        "plan",
        further=("plan_central", "plan_model", "plan_attack", "plan_capacity"),
    ),
    "simulate": Entry(
        "simulate",
        ("rehearse a metric with known values, and compare answers with the truth"),
        "plan",
    ),
    "privacy": Entry(
        "privacy",
        "show what a catalog reveals; compute amplification and composition",
        "plan",
        further=("privacy_crowd",),
    ),
    "audit": Entry("audit", "prove the installed mechanisms, attack a catalog's metrics", "plan"),
    "query": Entry("query", "show the estimates of a metric, with intervals"),
    "discover": Entry("discover", "find frequent strings that are on no list"),
    "top": Entry("query", "show the most frequent values, and the confidence of their order"),
    "compare": Entry("query", "compare two ranges of epochs"),
    "trend": Entry("query", "show the most frequent values, epoch by epoch"),
    "cross": Entry("query", "show two parts of an answer as a table, with their association"),
    "breakdown": Entry("query", "split a metric by a public field of devices, such as OS"),
    "figures": Entry("query", "show conversions, rates, active devices, or retention"),
    "experiment": Entry("query", "show the effect of an experiment's arms"),
    "model": Entry("model", "show a model; sign its state for devices", "cli"),
    "export": Entry("query", "write a metric to a file: CSV, Parquet or JSON"),
    "candidates": Entry("candidates", "save named lists of strings that queries look for"),
    "mark": Entry("mark", "mark days on which something happened; every trend shows them"),
    "metrics": Entry("status", "show the metrics, and the stored epochs of each"),
    "status": Entry("status", "show where every report is (the conservation law)"),
    "doctor": Entry("doctor", "diagnose a device and its services"),
    "forget": Entry("forget", "delete totals of a metric before a day", "aggregator,cli"),
    "totals": Entry(
        "totals",
        ("write and verify files of totals; estimate without Redis"),
        "aggregator,cli,tables",
    ),
    "backup": Entry(
        "backup",
        "copy both Redis at one moment, and all files, encrypted",
        "aggregator,cli",
    ),
    "verify": Entry(
        "backup", "check a backup: checksums, and that Redis reads it", "aggregator,cli"
    ),
    "restore": Entry("backup", "make an installation from a backup", "aggregator,cli"),
    "watch": Entry("status", "follow reports (in development), the conservation law, or a metric"),
    "release": Entry(
        "release", "publish numbers with central noise, paid from a yearly budget", "plan"
    ),
    "load": Entry(
        "load", "simulate many devices, and measure the load that an installation sustains", "cli"
    ),
    "rappor": Entry("rappor", "decode collections of the original RAPPOR tools", "plan"),
    "ledger": Entry(
        "ledger", ("show every report that left this device, and the values it could mean")
    ),
    "completion": Entry("completion", "complete hubbub's commands in your shell", "cli"),
}


def load(command: str) -> list[ModuleType]:
    """Imports the modules of a command.

    Raises:
        MissingDependency: it imports what is not installed here.
    """
    entry = COMMANDS[command]
    modules = (entry.module, *entry.further)
    return [load_module(module, f"hubbub {command}", entry.extra) for module in modules]


def load_module(module: str, command: str, extra: str) -> ModuleType:
    """Imports a module of hubbub.cli.commands that a command needs; `extra` has its imports.

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
