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

from docs.reference.tables import cell

ROOT: Final = Path(__file__).parents[2]
FILES: Final = ("hubbub/wire/v1/report.proto", "hubbub/wire/v1/services.proto")
_HEAD = """# The wire

Made by `make reference` from the `.proto` files; change it there.

Messages and services between the roles, over gRPC.
A device sends [SubmitRequest](#submitrequest) with [SealedReport](#sealedreport)s to the shuffler; the shuffler sends [Batch](#batch)es to the aggregator.
A field's number is before its name. A number is never reused or given a new meaning; a shuffler refuses unknown fields.

"""
# Where a descriptor keeps what is in it, by the numbers of descriptor.proto.
_MESSAGE, _ENUM, _SERVICE, _INSIDE = 4, 5, 6, 2

Comments = Mapping[tuple[int, ...], str]


def page() -> str:
    """The whole page, as Markdown."""
    services, messages = [_HEAD], ["## Messages\n\n"]
    for file in _file_descriptors():
        comments = {
            tuple(location.path): location.leading_comments or location.trailing_comments
            for location in file.source_code_info.location
        }
        services += [
            _service(service, (_SERVICE, number), comments)
            for number, service in enumerate(file.service)
        ]
        messages += [
            _message(message, (_MESSAGE, number), comments)
            for number, message in enumerate(file.message_type)
        ]
        messages += [
            _enum(values, (_ENUM, number), comments) for number, values in enumerate(file.enum_type)
        ]
    return "".join([*services, *messages]).rstrip() + "\n"


def _file_descriptors() -> Sequence[FileDescriptorProto]:
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "all"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", *FILES]
        subprocess.run(
            [*command, "--include_source_info", f"--descriptor_set_out={written}"], check=True
        )
        return FileDescriptorSet.FromString(written.read_bytes()).file


def _entry(name: str, path: tuple[int, ...], comments: Comments) -> str:
    """A line of a list: a name, and its comment if there is one."""
    comment = cell(comments.get(path, ""))
    return f"- {name}: {comment}\n" if comment else f"- {name}\n"


def _section(title: str, comment: str, entries: Sequence[str]) -> str:
    text = f"{cell(comment)}\n\n" if comment else ""
    fields = "".join(entries) or "No fields.\n"
    return f"{title}\n\n{text}{fields}\n"


def _service(service: ServiceDescriptorProto, path: tuple[int, ...], comments: Comments) -> str:
    entries = [
        _entry(
            f"`{method.name}` takes {_type_link(method.input_type)}, "
            f"returns {_type_link(method.output_type)}",
            (*path, _INSIDE, number),
            comments,
        )
        for number, method in enumerate(service.method)
    ]
    return _section(f"## Service {service.name}", comments.get(path, ""), entries)


def _message(message: DescriptorProto, path: tuple[int, ...], comments: Comments) -> str:
    maps = {f".hubbub.wire.v1.{message.name}.{entry.name}": entry for entry in message.nested_type}
    entries = [
        _entry(
            f"{field.number} `{field.name}` ({_type(field, maps)})",
            (*path, _INSIDE, number),
            comments,
        )
        for number, field in enumerate(message.field)
    ]
    return _section(f"### {message.name}", comments.get(path, ""), entries)


def _enum(values: EnumDescriptorProto, path: tuple[int, ...], comments: Comments) -> str:
    entries = [
        _entry(f"{value.number} `{value.name}`", (*path, _INSIDE, number), comments)
        for number, value in enumerate(values.value)
    ]
    return _section(f"### {values.name}", comments.get(path, ""), entries)


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
    short = name.rpartition(".")[2]
    return f"[{short}](#{short.lower()})"
