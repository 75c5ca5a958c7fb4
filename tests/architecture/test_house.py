"""The house stands as drawn: folders, floors, names, sizes."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import hubbub.errors
from hubbub.errors.message_words import OF_DEVICES
from hubbub.mechanisms import REGISTRY
from tests.support.source_trees import nodes

ROOT = Path(__file__).parents[2]
ROOTS = ("proto", "client", "shuffler", "aggregator", "deploy")
TRACKED = [
    ROOT / line
    for line in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    if (ROOT / line).is_file()
]
SOURCES = [
    path
    for path in TRACKED
    if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in ROOTS and "_pb2" not in path.name
]
LONGEST_FUNCTION = 60  # lines: a screen


def _offenders(nodes_in: Callable[[Path], Iterator[ast.AST]]) -> list[str]:
    """Where a rule is broken; one test looks at all files, since cases of a file each cost more."""
    return [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {ast.unparse(node)[:80]}"
        for path in SOURCES
        for node in nodes_in(path)
    ]


def test_hubbub_is_a_namespace_over_the_source_roots() -> None:
    for root in ROOTS:
        assert not (ROOT / root / "hubbub" / "__init__.py").exists()
        for package in (ROOT / root / "hubbub").iterdir():
            # What a renamed package leaves behind is compiled alone.
            if package.is_dir() and {entry.name for entry in package.iterdir()} - {"__pycache__"}:
                assert (package / "__init__.py").exists(), package
                assert (package / "py.typed").exists(), package


MECHANISMS = {mechanism.__name__ for mechanism in REGISTRY.values()}
OF_MECHANISMS = ("client/hubbub/mechanisms/", "aggregator/hubbub/analysis/families/")
# The bare install reads these, without numpy and so without families.
BARE = ("aggregator/hubbub/authoring/", "aggregator/hubbub/privacy/epsilon_words_and_advice.py")


def test_only_families_look_at_the_class_of_a_mechanism() -> None:
    """Which class, and on the aggregator's side and in commands which family."""
    assert _offenders(_asks_for_a_mechanism) == []


def _asks_for_a_mechanism(path: Path) -> Iterator[ast.AST]:
    name = str(path.relative_to(ROOT))
    if name.startswith(OF_MECHANISMS):
        return
    for node in nodes(path.read_text()):
        classes: ast.AST | None = None
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                classes = kinds
            case ast.MatchClass(cls=kind):
                classes = kind
            case ast.Compare() | ast.MatchValue() if name.startswith(
                ("aggregator/", "deploy/")
            ) and not name.startswith(BARE):
                below = ast.walk(node)
                if any(isinstance(part, ast.Attribute) and part.attr == "FAMILY" for part in below):
                    yield node
        parts = ast.walk(classes) if classes else ()
        if any(isinstance(part, ast.Name) and part.id in MECHANISMS for part in parts):
            yield node


def test_only_kinds_look_at_the_kind_of_a_metric() -> None:
    """No branch on a metric's `kind`, nor on the `kind` of its table, outside the kinds' files."""
    assert _offenders(_asks_for_a_kind) == []


def _asks_for_a_kind(path: Path) -> Iterator[ast.AST]:
    if "client/hubbub/catalog/values/" in str(path) or path.stem == "model_table":  # a model's
        return
    for node in nodes(path.read_text()):
        match node:
            case ast.Compare(left=left, comparators=others):
                names_in_use = [left, *others]
            case ast.Match(subject=subject):
                names_in_use = [subject]
            case ast.Subscript(slice=key):
                names_in_use = [key]
            case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
                names_in_use = [key]
            case _:
                continue
        if any(_is_kind_of_metric(part) for part in names_in_use):
            yield node


def _is_kind_of_metric(node: ast.AST) -> bool:
    """`metric.kind`, `self.metric.kind`, or `table.get("kind")`."""
    match node:
        case ast.Attribute(attr="kind", value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in {"metric", "own_metric", "stream", "part"}
        case ast.Call(
            func=ast.Attribute(attr="get", value=ast.Name(id="table")),
            args=[ast.Constant(value="kind"), *_],
        ):
            return True
    return False


def test_a_module_says_its_purpose_first_and_its_functions_fit_a_screen() -> None:
    for path in SOURCES:
        module, *_ = nodes(path.read_text())
        assert isinstance(module, ast.Module)
        docstring = ast.get_docstring(module)
        assert docstring, path
        assert docstring.splitlines()[0].strip(), path
        assert path.stem not in {"utils", "common", "helpers", "core", "manager", "data", "info"}
    assert _offenders(_functions_longer_than_a_screen) == []


def _functions_longer_than_a_screen(path: Path) -> Iterator[ast.AST]:
    for node in nodes(path.read_text()):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield node


def test_a_mechanisms_docstring_lets_a_reviewer_check_it_alone() -> None:
    parts = ("Idea:", "Guarantee:", "Sends:", "Estimator and variance:", "Source:")
    for mechanism in REGISTRY.values():
        docstring = inspect.getmodule(mechanism).__doc__ or ""
        positions = [docstring.find(part) for part in parts]
        assert -1 not in positions, mechanism
        assert positions == sorted(positions), mechanism


def test_every_package_names_what_is_public() -> None:
    packages = sorted({path.parent.name for path in ROOT.glob("*/hubbub/*/__init__.py")})
    assert len(packages) >= 12
    for package in packages:
        module = importlib.import_module(f"hubbub.{package}")
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{package}.{name}"


def test_the_error_tree_is_drawn_as_it_is() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", hubbub.errors.__doc__ or ""))
    classes = {name for name, value in vars(hubbub.errors).items() if isinstance(value, type)}
    assert drawn | {"HubbubError"} == classes


def test_the_extras_and_the_tree_are_those_of_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    roles = {"cli", "plan", "shuffler", "aggregator", "local", "all"}
    extras = roles | {"oidc", "releases", "plots", "relay", "tables", "tokens"}
    extras |= {"tracing", "notebook"}
    assert set(project["optional-dependencies"]) == extras
    client = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    assert set(client["optional-dependencies"]) == {*OF_DEVICES}
    names = {re.split(r"[<>=\[ ]", name)[0] for name in client["dependencies"]}
    assert names == {"cryptography", "grpcio", "mmh3", "platformdirs"}


def test_the_two_distributions_are_of_one_version_and_licence() -> None:
    """What depends on the other names its version exactly: they are released together."""
    whole, client = (
        tomllib.loads((ROOT / path).read_text())["project"]
        for path in ("pyproject.toml", "client/pyproject.toml")
    )
    same = ("version", "license", "requires-python")
    assert [whole[name] for name in same] == [client[name] for name in same]
    assert whole["dependencies"] == [f"hubbub-client=={client['version']}"]
    for extra in OF_DEVICES:
        requirement = f"hubbub-client[{extra}]=={client['version']}"
        assert whole["optional-dependencies"][extra] == [requirement]
    assert (ROOT / "client" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_only_the_edge_reads_the_environment() -> None:
    """Settings come from one place; the command line hands its own environment to its children.

    Before gRPC is loaded, how much it writes past our log is set there: it has no other place.
    """
    readers = {p.relative_to(ROOT).as_posix() for p in SOURCES if "os.environ" in p.read_text()}
    assert readers == {
        "client/hubbub/client/settings.py",
        "client/hubbub/client/transport/transport_by_address.py",
        "client/hubbub/errors/address_checks.py",  # whether to load urllib, which reads proxies
        "shuffler/hubbub/runtime/__init__.py",
        "shuffler/hubbub/runtime/process.py",
        "shuffler/hubbub/runtime/service_options.py",
        "deploy/hubbub/installation/embedded_redis.py",
        "deploy/hubbub/installation/local_run.py",
        "deploy/hubbub/cli/terminal/query_options.py",  # a token has no option, which others see
    }


def test_committed_files_name_only_this_project() -> None:
    machine = re.compile(
        rb"/(wor[k]|roo[t]|hom[e]/\w+)/|(pypi|pythonhosted|npmjs|debian)\.(org|com)/"
    )
    for path in TRACKED:
        if path.suffix != ".gz" and "demo_data" not in path.parts:
            match = machine.search(path.read_bytes())
            assert match is None, path


def test_locks_name_a_hash_for_everything_and_no_place() -> None:
    for name in ("dev.lock", "client.lock"):
        text = (ROOT / "locks" / name).read_text()
        assert "://" not in text
        pinned = re.findall(r"^[\w.\[\]-]+==", text, re.MULTILINE)
        assert len(pinned) > 5
        for block in re.split(r"\n(?=\S)", text.strip()):
            assert "--hash=sha256:" in block


def test_every_module_can_be_imported() -> None:
    for root in ROOTS:
        path = str(ROOT / root / "hubbub")
        for module in pkgutil.walk_packages([path], prefix="hubbub."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def test_the_client_brings_no_server_along() -> None:
    code = (
        "import sys, hubbub.client;"
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'redis', 'rich', 'scipy')"
        " or m.split('.')[1:2] in (['runtime'], ['analysis'], ['authoring'], ['cli'])])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_without_an_extra_loads_no_package_of_one() -> None:
    code = (
        "import sys; from hubbub.cli.command_table import COMMANDS, load\n"
        "for name, entry in COMMANDS.items():\n"
        "    entry.extra or load(name)\n"
        "print({'numpy', 'scipy', 'redis', 'rich', 'pyarrow', 'fastapi'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_nothing_tells_a_person_to_install_hubbub_from_an_index() -> None:
    """The names there are not ours: who registers one would run their program on our users."""
    installs = re.compile(
        r"\b(pip3?|pipx|uvx?|npm|pnpm|yarn|npx|bunx?|conda|poetry|pdm)\s+"
        r"((tool|add|i|ci|install|run|exec|x|dlx|inject)\s+)*(-\S+\s+)*"
        r"""[\\"'`]*(@\w+/)?hubbub(?![-\w./]*\.(whl|tgz|tar\.gz))"""
    )
    assert installs.search("pip install 'hubbub[cli]'")
    assert installs.search("npm i --save hubbub")
    for path in TRACKED:
        if path.suffix != ".gz" and "demo_data" not in path.parts and path != Path(__file__):
            match = installs.search(path.read_text("utf-8", errors="replace"))
            assert match is None, (path, match)


MOST_POSITIONAL_FIELDS = 4


def test_many_fields_are_filled_by_name_and_no_call_unpacks_a_literal() -> None:
    """Neighbouring fields are often of one type: a swap is silent where they have no names."""
    assert _offenders(_unnamed_fields) == []


def test_dataclasses_that_devices_load_share_their_methods() -> None:
    """`dataclass` compiles six functions for each class, at the start of every app."""
    assert _offenders(_own_methods) == []


def _own_methods(path: Path) -> Iterator[ast.AST]:
    for node in nodes(path.read_text()) if path.is_relative_to(ROOT / "client") else ():
        if isinstance(node, ast.ClassDef):
            made_by = [ast.unparse(decorator) for decorator in node.decorator_list]
            if "dataclass(frozen=True, slots=True)" in made_by:
                yield node


def _unnamed_fields(path: Path) -> Iterator[ast.AST]:
    for node in nodes(path.read_text()):
        if isinstance(node, ast.ClassDef):
            made_by = [ast.unparse(decorator) for decorator in node.decorator_list]
            if not any(text.startswith(("dataclass", "frozen")) for text in made_by):
                continue
            fields = [
                part
                for part in node.body
                if isinstance(part, ast.AnnAssign)
                and "ClassVar" not in ast.unparse(part.annotation)
                and "init=False" not in ast.unparse(part.value or part.annotation)
            ]
            is_by_name = any("kw_only=True" in text for text in made_by)
            if not is_by_name and len(fields) > MOST_POSITIONAL_FIELDS:
                yield node
        if isinstance(node, ast.Call):
            unpacked = [part.value for part in node.args if isinstance(part, ast.Starred)]
            if any(isinstance(value, ast.Tuple | ast.List) for value in unpacked):
                yield node
