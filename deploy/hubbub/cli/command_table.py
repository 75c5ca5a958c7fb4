"""The table of commands: module, purpose, and required extra of each."""

from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from hubbub.errors import MissingDependency
from hubbub.errors.message_words import install_with


class Entry(NamedTuple):
    """The place and purpose of a command.

    `extra` is the smallest extra of pip with all its imports, "" for the bare install; `module` is
    in hubbub.cli.commands and may hold several commands, "" for that of the command's name;
    `further` are modules of further actions.
    """

    purpose: str
    extra: str = ""
    module: str = ""
    further: tuple[str, ...] = ()


COMMANDS: Final = {
    "demo": Entry(
        "send the answers of 30,162 real people through the whole system, and estimate", "local"
    ),
    "init": Entry("make keys, certificates, passwords and settings for an installation", "cli"),
    "up": Entry("run everything on this machine, until Ctrl-C", "local"),
    "catalog": Entry(
        "write and check metrics.toml, build bundles, write code and schema",
        module="catalog_new_metric",
        further=("catalog",),
    ),
    "keys": Entry("make keys and certificates", "cli"),
    "log": Entry("audit the transparency log of bundles", module="transparency_log"),
    "notice": Entry(
        "lower or stop a metric on all devices, without an app release", module="reduction_notice"
    ),
    "plan": Entry(
        "choose a mechanism, the number of reports or the epsilon; count fake reports and machines",
        "plan",
        further=("plan_central", "plan_model", "plan_attack", "plan_capacity"),
    ),
    "simulate": Entry(
        "rehearse a metric with known values, and compare answers with the truth", "plan"
    ),
    "privacy": Entry(
        "show what a catalog reveals; compute amplification and composition",
        "plan",
        further=("privacy_crowd",),
    ),
    "audit": Entry(
        "prove the installed mechanisms, attack a catalog's metrics", "plan", "privacy_audit"
    ),
    "query": Entry("show the estimates of a metric, with intervals"),
    "discover": Entry("find frequent strings that are on no list"),
    "top": Entry(
        "show the most frequent values, and the confidence of their order", module="query"
    ),
    "compare": Entry("compare two ranges of epochs", module="query"),
    "trend": Entry("show the most frequent values, or percentiles, epoch by epoch", module="query"),
    "cross": Entry(
        "show two parts of an answer as a table, with their association", module="query"
    ),
    "breakdown": Entry("split a metric by a public field of devices, such as OS", module="query"),
    "figures": Entry("show conversions, rates, active devices, or retention", module="query"),
    "experiment": Entry("show the effect of an experiment's arms", module="query"),
    "model": Entry("show a model; sign its state for devices", "cli"),
    "candidates": Entry("save named lists of strings that queries look for"),
    "mark": Entry("mark days on which something happened; every trend shows them"),
    "metrics": Entry("show the metrics, and the stored epochs of each", module="status"),
    "status": Entry("show where every report is (the conservation law)"),
    "doctor": Entry("diagnose a device and its services"),
    "forget": Entry("delete totals of a metric before a day", "aggregator,cli", "forget_totals"),
    "totals": Entry(
        "write and verify files of totals; estimate without Redis", "aggregator,cli,tables"
    ),
    "backup": Entry("copy both Redis at one moment, and all files, encrypted", "aggregator,cli"),
    "verify": Entry(
        "check a backup: checksums, and that Redis reads it", "aggregator,cli", module="backup"
    ),
    "restore": Entry("make an installation from a backup", "aggregator,cli", module="backup"),
    "watch": Entry(
        "follow reports (in development), the conservation law, or a metric", module="status"
    ),
    "release": Entry(
        "publish numbers with central noise, paid from a yearly budget", "plan", "release_numbers"
    ),
    "load": Entry(
        "simulate many devices, and measure the load that an installation sustains", "cli"
    ),
    "rappor": Entry("decode collections of the original RAPPOR tools", "plan"),
    "ledger": Entry("show every report that left this device, and the values it could mean"),
    "completion": Entry("complete hubbub's commands in your shell", "cli"),
}


def load(command: str) -> list[ModuleType]:
    """Imports the modules of a command.

    Raises MissingDependency if it imports what is not installed here.
    """
    entry = COMMANDS[command]
    modules = (entry.module or command, *entry.further)
    return [load_module(module, f"hubbub {command}", entry.extra) for module in modules]


def load_module(module: str, command: str, extra: str) -> ModuleType:
    """Imports a module of hubbub.cli.commands that a command needs; `extra` has its imports.

    Raises MissingDependency as `load`.
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
