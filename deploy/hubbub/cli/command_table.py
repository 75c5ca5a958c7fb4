"""The commands there are: the module of each, what it is for, and what must be installed for it."""

from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from hubbub.errors import MissingDependency
from hubbub.errors.installing import install_with


class Entry(NamedTuple):
    """Where a command is, and what it is for.

    module: of hubbub.cli.commands; several commands may share one. extra: the smallest that has
    all it imports, as pip names it; "" for what the bare install has. more: modules of further
    actions of this command.
    """

    module: str
    purpose: str
    extra: str = ""
    more: tuple[str, ...] = ()


COMMANDS: Final = {
    "demo": Entry(
        "demo", "Send the answers of 30,162 real people from the SDK to the estimates", "local"
    ),
    "init": Entry("init", "keys, certificates, passwords and settings for an installation", "cli"),
    "up": Entry("up", "run everything on this machine, until Ctrl-C", "local"),
    "catalog": Entry(
        "catalog_new",
        "write and check metrics.toml, build what is shipped, help editors",
        more=("catalog", "catalog_codegen"),
    ),
    "keys": Entry("keys", "make keys and certificates", "cli", more=("tokens",)),
    "log": Entry("log", "audit the transparency log of bundles, as anyone may"),
    "notice": Entry("notice", "ask fewer devices, or stop a metric, without a release of the app"),
    "plan": Entry(
        "plan",
        "choose a mechanism, the number of reports or the epsilon; count fake reports and machines",
        "plan",
        more=("plan_central", "plan_model", "plan_attack", "plan_capacity"),
    ),
    "simulate": Entry(
        "simulate", "a rehearsal: what would be answered of values that you know", "plan"
    ),
    "privacy": Entry(
        "privacy",
        "show what a catalog reveals; compute amplification and composition",
        "plan",
        more=("privacy_crowd",),
    ),
    "audit": Entry("audit", "prove the installed mechanisms, attack a catalog's metrics", "plan"),
    "query": Entry("query", "show the estimates of a metric, with intervals"),
    "discover": Entry(
        "discover", "strings that nobody listed: which are frequent, and how frequent"
    ),
    "top": Entry("query", "show the most frequent values, and how sure their order is"),
    "compare": Entry("query", "what differs between two ranges of epochs"),
    "trend": Entry("query", "show the most frequent values, epoch by epoch"),
    "cross": Entry("cross", "how two parts of an answer go together"),
    "breakdown": Entry("breakdown", "a metric by what is public of devices, as OS"),
    "experiment": Entry("experiment", "what the arms of an experiment change, at every look"),
    "model": Entry("model", "what a model has learned; sign its state for devices", "cli"),
    "export": Entry("export", "a metric as a file: CSV, Parquet or JSON"),
    "candidates": Entry("candidates", "save lists of strings to look for"),
    "mark": Entry("mark", "mark days on which something happened; every trend shows them"),
    "metrics": Entry("status", "show the metrics, and the stored epochs of each"),
    "status": Entry("status", "show where every report is (the conservation law)"),
    "doctor": Entry(
        "doctor", "examine a device and its services: reachable, trusted, waiting, refused, ending"
    ),
    "forget": Entry("forget", "delete a metric's totals of before a day", "aggregator,cli"),
    "totals": Entry(
        "totals", "files of totals: write, verify, estimate without Redis", "aggregator,cli,tables"
    ),
    "backup": Entry(
        "backup",
        "copy both Redis as they are at one moment, and all files, encrypted",
        "aggregator,cli",
    ),
    "verify": Entry(
        "backup", "check a backup: checksums, and whether Redis reads it", "aggregator,cli"
    ),
    "restore": Entry("backup", "make an installation again from a backup", "aggregator,cli"),
    "watch": Entry(
        "status", "as it comes, until Ctrl-C: reports in development, else the law; or a metric"
    ),
    "release": Entry(
        "release", "numbers for outside, with central noise, paid from a yearly budget", "plan"
    ),
    "load": Entry(
        "load", "many devices at once: what an installation bears, and how fast it answers", "cli"
    ),
    "rappor": Entry("rappor", "decode collections of the original RAPPOR tools", "plan"),
    "ledger": Entry("ledger", "what left this device, and what it could mean"),
    "completion": Entry("completion", "complete hubbub's commands in your shell", "cli"),
}


def load(command: str) -> list[ModuleType]:
    """The modules of a command, imported.

    Raises:
        MissingDependency: it imports what is not installed here.
    """
    entry = COMMANDS[command]
    modules = (entry.module, *entry.more)
    return [load_module(module, f"hubbub {command}", entry.extra) for module in modules]


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
