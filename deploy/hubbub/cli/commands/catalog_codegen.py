"""`hubbub catalog codegen`: the metrics as a module, so that type checkers know values."""

from pathlib import Path
from typing import Final

from hubbub.authoring.code_modules import FIRST_LINES, python_module, typescript_module
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter
from hubbub.errors.grammar import several
from hubbub.programs.atomic_write import refuse_unwritable
from hubbub.programs.command_line import command
from hubbub.programs.options import Exclusive, argument, option, options
from hubbub.programs.text_files import unreadable

_MODULE: Final = Exclusive(required=True)


@options
class CodegenOptions:
    catalog: Path = argument("the catalog (%(default)s)", default=Path("metrics.toml"))
    python: Path | None = option("file for the Python module", metavar="FILE", exclusive=_MODULE)
    typescript: Path = option(
        "file for the TypeScript module", default=Path(), metavar="FILE", exclusive=_MODULE
    )
    check: bool = option(
        "write nothing, and fail if the file differs from the module that would be written"
    )


@command(
    "catalog codegen",
    text="write the metrics as a module, for type checkers",
    description="""
Writes a Python module with an object for each metric. An app reports with
`metrics.theme.report("dark")` and gets its arm from `metrics.arm_new_menu(client)`; mypy and
pyright find wrong names and values. With --typescript it writes a module for pages and Node:
`report(client, "theme", "dark")` and `arm(client, "new_menu")`. With --check it writes
nothing, and the exit code shows whether the file fits the catalog: use it in a test.
""",
)
def _codegen(options: CodegenOptions) -> None:
    catalog = read_aloud(options.catalog)
    name, path, module = "--typescript", options.typescript, typescript_module
    if options.python:
        name, path, module = "--python", options.python, python_module
    module_text = "\n".join(module(catalog))
    try:
        there = path.read_text("utf-8") if path.exists() else None
        if there is not None and not there.startswith(FIRST_LINES[name]):
            raise BadParameter(f"{path}: was not made by codegen; give another file, or move it")
        if options.check and there != module_text:
            raise BadParameter(
                f"{path}: does not match {options.catalog}; run: hubbub catalog codegen "
                f"{options.catalog} {name} {path}"
            )
    except (OSError, UnicodeDecodeError) as error:
        raise BadParameter(f"{path}: {unreadable(error)}; name another file") from error
    if not options.check:
        with refuse_unwritable(f"{name} {path}", BadParameter):
            path.write_text(module_text, "utf-8")
    done = "up to date" if options.check else "written"
    say(f"{path}: {several(len(catalog.metrics), 'metric')}, {done}")
