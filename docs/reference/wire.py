"""The reference of the wire, from the .proto files and their comments."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

from docs.reference.tables import cell, table

ROOT: Final = Path(__file__).parents[2]
FILES: Final = ("hubbub/wire/v1/report.proto", "hubbub/wire/v1/services.proto")
_HEAD = """# The wire

Made by `make reference` from the `.proto` files; change it there.

Messages and services between the roles, over gRPC.
A field number is never reused or given a new meaning; a shuffler refuses fields that it does not know.

"""
# Where a descriptor keeps what is in it, by the numbers of descriptor.proto.
_MESSAGE, _ENUM, _SERVICE, _INSIDE = 4, 5, 6, 2

Comments = Mapping[tuple[int, ...], str]


def page() -> str:
    """The whole page, as Markdown."""
    services, messages = [_HEAD], ["## Messages\n\n"]
    for file in _described():
        told = {
            tuple(at.path): at.leading_comments or at.trailing_comments
            for at in file.source_code_info.location
        }
        services += [_service(one, (_SERVICE, at), told) for at, one in enumerate(file.service)]
        messages += [
            _message(one, (_MESSAGE, at), told) for at, one in enumerate(file.message_type)
        ]
        messages += [_enum(one, (_ENUM, at), told) for at, one in enumerate(file.enum_type)]
    return "".join([*services, *messages]).rstrip() + "\n"


def _described() -> Sequence[FileDescriptorProto]:
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "all"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", *FILES]
        subprocess.run(
            [*command, "--include_source_info", f"--descriptor_set_out={written}"], check=True
        )
        return FileDescriptorSet.FromString(written.read_bytes()).file


def _said(at: tuple[int, ...], told: Comments) -> str:
    return cell(told.get(at, ""))


def _paragraph(at: tuple[int, ...], told: Comments) -> str:
    return f"{_said(at, told)}\n\n" if told.get(at) else ""


def _service(one: ServiceDescriptorProto, at: tuple[int, ...], told: Comments) -> str:
    rows = [
        (
            f"`{method.name}`",
            _type_link(method.input_type),
            _type_link(method.output_type),
            _said((*at, _INSIDE, number), told),
        )
        for number, method in enumerate(one.method)
    ]
    head = ("method", "request", "answer", "meaning")
    return f"## Service {one.name}\n\n{_paragraph(at, told)}{table(head, rows)}"


def _message(one: DescriptorProto, at: tuple[int, ...], told: Comments) -> str:
    entries = {f".hubbub.wire.v1.{one.name}.{entry.name}": entry for entry in one.nested_type}
    rows = [
        (
            str(field.number),
            f"`{field.name}`",
            _type(field, entries),
            _said((*at, _INSIDE, number), told),
        )
        for number, field in enumerate(one.field)
    ]
    fields = table(("number", "field", "type", "meaning"), rows) or "No fields.\n\n"
    return f"### {one.name}\n\n{_paragraph(at, told)}{fields}"


def _enum(one: EnumDescriptorProto, at: tuple[int, ...], told: Comments) -> str:
    rows = [
        (str(value.number), f"`{value.name}`", _said((*at, _INSIDE, number), told))
        for number, value in enumerate(one.value)
    ]
    return f"### {one.name}\n\n{_paragraph(at, told)}{table(('number', 'value', 'meaning'), rows)}"


def _type(field: FieldDescriptorProto, entries: Mapping[str, DescriptorProto]) -> str:
    if field.type_name in entries:
        key, value = entries[field.type_name].field
        return f"map of {_type(key, {})} to {_type(value, {})}"
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    shown = _type_link(field.type_name) if field.type_name else kind
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {shown}"
    return f"optional {shown}" if field.proto3_optional else shown


def _type_link(name: str) -> str:
    own = name.rpartition(".")[2]
    return f"[{own}](#{own.lower()})"
