"""The start of a client: finds its state, or a replacement in memory, and its transport."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub.bundles import Bundle, read_bundle
from hubbub.client.files import NOWHERE, is_too_long, resolved_folder
from hubbub.client.lazy_log import warn
from hubbub.client.settings import BUNDLE_VARIABLE, Account, Settings, variables
from hubbub.client.state.contract import State
from hubbub.client.state.database import FILE_NAME, Damaged
from hubbub.client.state.folder import FolderState
from hubbub.client.state.memory import MemoryState
from hubbub.client.state.state_witness import Witnesses
from hubbub.client.transport.contract import Transport
from hubbub.client.transport.transport_by_address import relay_to, transport_to
from hubbub.client.trust import Pin, Trust, Vouched, folder_of, is_one, lock_store, possible_paths
from hubbub.errors import BadParameter, BundleRefused, HubbubError, StateUnusable

if TYPE_CHECKING:
    from hubbub.client.transport.issuer_connection import AskIssuer

_LAUNCHERS: Final = frozenset(
    {
        "celery",
        "daphne",
        "dramatiq",
        "flask",
        "gunicorn",
        "huey_consumer",
        "hypercorn",
        "granian",
        "rq",
        "uvicorn",
        "uwsgi",
        "waitress-serve",
        "mod_wsgi-express",
        "django-admin",
        "manage",
        "pytest",
        "py.test",
        "python",
        "pdb",
        "debugpy",
        "colab_kernel_launcher",
        "ipykernel_launcher",
        "ipython",
        "jupyter",
        "streamlit",
    }
)
"""Programs that run somebody's app, and `python` itself: two operators' apps have the name."""

WRONG_FILE: Final = "the operator's bundle, for the aggregator; ship app.hubbub"


def state_home() -> Path:
    """Returns this user's folder of state folders, one per operator; NOWHERE without a home."""
    try:
        import platformdirs  # noqa: PLC0415 of apps that name no folder

        folder = platformdirs.user_state_path("hubbub")
    except RuntimeError:  # neither HOME nor a user entry, as in a container with a numeric user
        return NOWHERE
    return NOWHERE if is_too_long(folder) else folder


def opened(
    path: str | os.PathLike[str] | None,
    arguments: Mapping[str, Any],
    operator: bytes | None,
    *,
    insecure: bool,
) -> tuple[Settings, Bundle, Transport]:
    """Reads the settings, starts the log that they name, and opens the bundle.

    PRIVACY: an invalid variable disables a client that is not strict: it may have been meant to.

    Raises:
        BadParameter: an invalid argument; or an invalid variable, if strict or without a bundle.
        BundleRefused: as read_bundle(); or strict, the bundle is the operator's.
    """
    environment = variables()
    fault: BadParameter | None = None
    is_variable = path is None and bool(environment.get(BUNDLE_VARIABLE, "").strip())
    while True:
        try:
            settings = _read_settings(environment, path, arguments)
            bundle = _bundle_at(settings.bundle, operator, fault, is_variable=is_variable)
            transport = transport_of(bundle, settings, insecure=insecure)
        except BadParameter as error:
            subject, _, problem = str(error).partition(" ")
            name = subject.removeprefix("HUBBUB_").lower()
            variable = f"HUBBUB_{name.upper()}"
            argument = path if name == "bundle" else arguments.get(name)
            if argument is not None or variable not in environment:
                raise
            fault = fault or BadParameter(f"{variable} {problem}")
            del environment[variable]
            if name in {"state_dir", "app"}:
                # PRIVACY: an opt-out in another folder would be lost; without any, the log says so.
                arguments = {**arguments, "state_dir": NOWHERE}
        else:
            break
    if bundle.is_operators:
        problem = f"{settings.bundle}: {WRONG_FILE}"
        if settings.is_strict(development=bundle.development):
            raise BundleRefused(problem)
        warn("%s", problem)
    if fault:
        if settings.is_strict(development=bundle.development):
            raise fault
        warn("nothing is reported: %s", fault)
        settings = replace(settings, disabled=True)
    return settings, bundle, transport


def _bundle_at(
    file: Path, operator: bytes | None, fault: BadParameter | None, *, is_variable: bool
) -> Bundle:
    """Returns the bundle. If a variable names a refused one, raises `fault`, or names the variable.

    `fault` is the error of an invalid variable, which may be the reason that no bundle is there.
    """
    try:
        return read_bundle(file, operator=operator)
    except BundleRefused as error:
        if not is_variable:
            raise
        raise fault or BundleRefused(f"{BUNDLE_VARIABLE}: {error}") from error


def _read_settings(
    environment: Mapping[str, str],
    path: str | os.PathLike[str] | None,
    arguments: Mapping[str, Any],
) -> Settings:
    """Reads the settings, and starts the log that they name. Raises BadParameter."""
    settings = Settings.read(environment, bundle=path, **arguments)
    if settings.log:
        from hubbub.client.stderr_log import log_to_stderr  # noqa: PLC0415 of apps without a log

        log_to_stderr(settings.log)
    return settings


def transport_of(bundle: Bundle, settings: Settings, *, insecure: bool) -> Transport:
    """Returns the transport to the shuffler of the settings or bundle. Raises BadParameter."""
    address = settings.shuffler or bundle.shuffler
    if settings.relay is None:
        return transport_to(
            address, roots=bundle.roots, insecure=insecure, transport=settings.transport
        )
    return relay_to(settings.relay, gateway=bundle.gateway, shuffler=address, roots=bundle.roots)


def issuer_of(bundle: Bundle, settings: Settings, account: Account | None) -> "AskIssuer | None":
    """Returns the function that asks the bundle's issuer, if any. Raises BadParameter."""
    if bundle.tokens is None and account is not None:
        problem = "account is given, but the bundle's reports need no tokens; leave it out"
        if settings.is_strict(development=bundle.development):
            raise BadParameter(problem)
        warn("%s", problem)
    account = account or settings.account
    if settings.disabled or bundle.tokens is None:
        return None
    from hubbub.client.delivery.token_store import asking  # noqa: PLC0415 of few bundles

    return asking(bundle, account)


def program_name() -> str:
    """Returns this program's name, which no bundle influences. A launcher's includes its folder."""
    main = sys.modules.get("__main__")
    spec, path = getattr(main, "__spec__", None), Path(getattr(main, "__file__", None) or "python")
    name = str(spec.name).removesuffix(".__main__") if spec else path.stem
    if getattr(sys, "frozen", False):
        name = Path(sys.executable).stem
    elif name == "__main__":  # a folder or a zip file that Python runs: python app.pyz
        name = path.parent.stem
    if name in _LAUNCHERS:
        with contextlib.suppress(OSError):  # of a working directory that is gone
            name = f"{name} in {Path.cwd()}"
    return name.encode(errors="backslashreplace").decode()


def state_of(
    bundle: Bundle,
    settings: Settings,
    operator: bytes | None,
    clock: Callable[[], float] = time.time,
) -> State:
    """The device's state on disk, or in memory with a warning if the folder cannot be used.

    `operator` is the operator that the app names explicitly, if any. Raises BundleRefused if the
    app trusts another operator, the bundle takes more than was promised, or a newer bundle was used
    before.
    """
    if settings.disabled:
        return MemoryState()
    state_dir = settings.state_dir and resolved_folder(settings.state_dir)
    home = NOWHERE if state_dir else resolved_folder(state_home())
    key = "" if state_dir else settings.app or program_name()
    with lock_store(*possible_paths(home, state_dir)) as file:
        try:
            trust = file.read()
        except StateUnusable as error:
            if operator is None:
                raise BundleRefused(f"the trusted operator cannot be read: {error}") from error
            trust = Trust()
        before = trust.data()
        launcher = key.partition(" in ")[0]
        if (
            not settings.app
            and key not in trust.pins
            and launcher in trust.pins
            and key != launcher
        ):
            # The name of version 0.2 and before is assigned to the first app that starts.
            trust.pins[key] = trust.pins.pop(launcher)
        try:
            pin, former = trust.admit(
                key, bundle, operator, _folders_without_app(trust, key, home, state_dir)
            )
        except BundleRefused as error:
            raise BundleRefused(f"{settings.bundle}: {error}") from None
        state = _state_in(state_dir or home / pin.folder, bundle, clock)
        try:
            if former:
                _take_over(state, [] if state_dir else [home / name for name in former])
            if file.is_behind or trust.data() != before:
                file.write(trust)
        except StateUnusable as error:
            if former:
                state.close()
                raise BundleRefused(
                    "another operator signed this bundle; the former operator's consent and spent "
                    f"budget cannot be moved: {error}"
                ) from error
            warn("the trusted operator cannot be stored: %s", error)
    return state


def _folders_without_app(
    trust: Trust, app: str, home: Path, state_dir: Path | None
) -> list[Vouched]:
    """Returns the folders without a known app: of version 0.1, or whose file of trust was lost."""
    if app in trust.pins:
        return []
    from hubbub.client.state_inspection import read_vouched  # noqa: PLC0415 of an app that is not known

    if state_dir:
        voucher = read_vouched(state_dir)
        if voucher:  # only this app can have used its own folder
            name = folder_of(voucher.operator)
            trust.pins[app] = Pin(operator=voucher.operator, folder=name)
            trust.promises.setdefault(name, dict(voucher.promises))
        return []
    claimed = {pin.folder for pin in trust.pins.values()}
    # PRIVACY: a copy of a state folder is not one, since it may record less than the folder.
    folders = {path.parent for path in home.glob(f"*/{FILE_NAME}")}
    folders |= {
        path.with_suffix("")
        for path in home.glob("*.witness")
        if not path.name.startswith("damaged.")
    }
    vouchers = []
    for folder in sorted(folders):
        if is_one(folder.name) and folder.name not in claimed:
            moments = Witnesses(folder).read_all()  # if the state is lost, they name its metrics
            names = frozenset(name for moment in moments for name in moment.accounts)
            vouchers.append(read_vouched(folder) or Vouched(folder.name, b"", names, {}))
    return vouchers


def _take_over(state: State, folders: list[Path]) -> None:
    """Merges consent and spending of `folders`; without any discards what waits."""
    if not isinstance(state, FolderState):
        raise StateUnusable(
            "the consent cannot be stored without a folder; give a writable state_dir"
        )
    for folder in folders:
        former = FolderState(folder)
        try:
            state.inherit(former.device_state())
        finally:
            former.close()
    if not folders:
        state.part()


def _state_in(folder: Path, bundle: Bundle, clock: Callable[[], float]) -> State:
    """Returns the state in the folder; otherwise one in memory."""
    try:
        try:
            return _open_state(folder, bundle, clock)
        except Damaged:  # the file was renamed: with a new one
            return _open_state(folder, bundle, clock)
    except StateUnusable as error:
        warn("continuing in memory: %s", error)
        # PRIVACY: its limits hold across restarts, by a witness elsewhere, or nothing leaves.
        return MemoryState(witnesses=Witnesses(folder), clock=clock)


def _open_state(folder: Path, bundle: Bundle, clock: Callable[[], float]) -> FolderState:
    state = FolderState(folder, clock=clock)
    try:
        state.remember(bundle.operator, bundle.signed)
        state.device_state()
    except HubbubError:
        state.close()
        raise
    return state
