"""The files of deploy/compose, and their services as processes of this machine."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from hubbub.installation.child_process import Child, free_port
from tests.support.programs import run_program
from tests.support.servers import answering, installed_redis
from tests.support.waiting import eventually

ROOT: Final = Path(__file__).parents[2]
COMPOSE: Final = ROOT / "deploy" / "compose"


class Machine:
    """What the compose file says, as processes of this machine."""

    def __init__(self, document: dict[str, Any], installed: Path, home: Path) -> None:
        self.home = home
        self._document, self._installed = document, installed
        ports = {port: free_port() for port in (*range(7070, 7078), 7090, 7094)}
        services = document["services"]
        self.ports = {(name, inner): outer for name in services for inner, outer in ports.items()}
        self.ports |= {(name, 6379): free_port() for name in services if name.startswith("redis")}
        self.children: dict[str, Child] = {}
        home.mkdir()

    def root(self, name: str) -> Path:
        return self.home / name

    def start(self, name: str) -> None:
        service = self._document["services"][name]
        root = self.root(name)
        if not root.exists():
            for kind in ("configs", "secrets"):
                for used in service[kind]:
                    place = root / used["target"].lstrip("/")
                    place.parent.mkdir(parents=True, exist_ok=True)
                    source = self._installed / self._document[kind][used["source"]]["file"]
                    place.write_text(self.here(name, source.read_text()))
                    place.chmod(source.stat().st_mode)
            for volume in service.get("volumes", []):
                source, target = volume.split(":")[:2]
                place = root / target.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(self._installed / source)
        if name.startswith("redis"):
            command = ["sh", *service["entrypoint"][1:], "/etc/redis/redis.conf"]
        else:
            command = [sys.executable, "-m", f"hubbub.{name}", *service["command"]]
        environment = {"PATH": f"{Path(installed_redis()).parent}:/usr/bin:/bin"}
        for file in service.get("env_file", []):
            for line in (self._installed / file).read_text().splitlines():
                key, _, value = line.partition("=")
                environment[key] = self.here(name, value)
        self.children[name] = Child(
            name,
            [self.here(name, word) for word in command],
            environment,
            self.home / f"{name}.log",
        )

    def until_redis_answers(self, name: str) -> None:
        answering(self.children[name], self.ports[name, 6379], tls=True)

    def here(self, name: str, text: str) -> str:
        """Paths and addresses of a container, on this machine; variables have their defaults."""
        text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
        for place in ("/etc/hubbub", "/etc/redis", "/etc/prometheus"):
            text = text.replace(place, f"{self.root(name)}{place}")
        for (host, inner), outer in self.ports.items():
            text = re.sub(rf"(?<![\w.-]){host}:{inner}\b", f"127.0.0.1:{outer}", text)
            if host == name:
                text = text.replace(f"0.0.0.0:{inner}", f"127.0.0.1:{outer}")
                text = text.replace(f"tls-port {inner}", f"tls-port {outer}")
        data = self.root(name) / "data"
        return text.replace("appendonly yes", f'dir "{data}"\nappendonly yes')


def until_probed(machine: Machine, name: str, inner: int) -> None:
    """By the health check of its image."""
    text = (ROOT / "deploy" / "Containerfile").read_text()
    [command] = [
        json.loads(check)
        for check in re.findall(r'CMD (\["/opt/hubbub/bin/python", "-m", .*\])', text)
        if f'"127.0.0.1:{inner}"' in check
    ]
    command = [sys.executable, *command[1:]]
    command = [
        str(machine.root(name) / word.lstrip("/")) if word.startswith("/etc/") else word
        for word in command
    ]
    place = command.index(f"127.0.0.1:{inner}")
    command[place] = f"127.0.0.1:{machine.ports[name, inner]}"

    def listens() -> bool:
        machine.children[name].check()
        socket.create_connection(("127.0.0.1", machine.ports[name, inner])).close()
        return True

    # A probe costs as much as the start of a service.
    eventually(listens, although=(OSError,))
    eventually(lambda: run_program(*command).returncode == 0)


def extended(party: str, whole: dict[str, Any]) -> dict[str, Any]:
    """A party's file, with what its services have of the whole one's."""
    document: dict[str, Any] = yaml.safe_load((COMPOSE / f"{party}.yaml").read_text())
    for name, service in document["services"].items():
        if "extends" not in service:
            continue
        base = whole["services"][service.pop("extends")["service"]]
        ports = [*base.get("ports", []), *service.get("ports", [])]
        document["services"][name] = {**base, **service, "ports": ports}
    return document


def refuse_lacking(file: dict[str, Any], folder: Path) -> None:
    """Asserts that a party's services name nothing that the file or its folder lacks."""
    for kind in ("configs", "secrets"):
        for entry in file[kind].values():
            assert (folder / entry["file"]).exists(), entry
        for service in file["services"].values():
            assert {entry["source"] for entry in service[kind]} <= file[kind].keys()
    for service in file["services"].values():
        assert set(service["networks"]) <= file["networks"].keys()
        assert set(service.get("depends_on", {})) <= file["services"].keys()
        for name in (*service.get("env_file", []), *service.get("volumes", [])):
            assert (folder / name.split(":")[0]).exists(), name


def check_schema(file: Path) -> None:
    """Raises CalledProcessError unless it is a file of Compose."""
    checker = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema"]
    subprocess.run([*checker, "vendor.compose-spec", str(file)], check=True)
