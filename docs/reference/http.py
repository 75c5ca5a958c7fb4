"""The reference of HTTP/JSON, from the OpenAPI document that the aggregator serves."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import httpx2

from docs.reference.tables import cell, table
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.query.answer_types import Envelope
from hubbub.aggregator.settings import HttpSettings
from hubbub.aggregator.web.app import make_app
from hubbub.runtime.rpc.rate_limiter import Limiter

_OVERVIEW = """# HTTP/JSON

Made by `make reference` from the document that the aggregator serves at `/openapi.json`; change it in the code.

## Overview

The aggregator serves this API and the web page at `--http-listen`; `hubbub up` prints its address.
If the service requires a token, send `Authorization: Bearer TOKEN`; [the operator](../operate/services.md#http-and-the-web-page) issues tokens.

    curl -H "Authorization: Bearer $HUBBUB_TOKEN" "https://HOST:7076/v1/metrics/theme/estimates?last=7d"

[Questions](../query.md#questions) lists what to ask, and by which path.

- **Paths**: `{metric}` and `{model}` are names of the catalog; `{name}` is the name of a list or a mark.
- **Epochs**: `last` or `epochs` selects them; without both, the answer covers the newest epoch. `final` in the answer is true if all of its epochs are closed.
- **Strings**: a metric over strings is estimated for the candidates of its catalog, of `list`, or of the body of a POST.
- **Pages**: `first` and `number` select rows; a `Link` header leads to the next page. `order` sorts, `find` filters by name.
- **Answers** about a metric share the fields ENVELOPE. `kind` is values, ranges, mean or vector; `lists` are the sources of the strings (catalog, saved lists, given); `whose` is `reporters` (intervals cover the randomization noise, not who chose to report) or `population`.
- **Caching**: an answer has an `ETag`; `If-None-Match` with it returns 304 while nothing has changed.
- **Unknown parameters** are refused with 400, which names the parameters of the path.
- **Errors** are [problems](#problem) (RFC 9457) with the remedy in `detail`: see [Refusals](#refusals).

"""
_SHARED_HEAD = """## Shared parameters

These query parameters mean the same on every path that lists them as shared. `TYPE?` may be null.

"""
_REFUSALS = """## Refusals

Each is a [Problem](#problem), with its remedy in `detail`.

"""
_SHAPES = """## Shapes

Optional fields may be missing. `TYPE[]` is an array, and `TYPE?` may be null. A field without a type is a string.

"""
_PROBLEM: Final = "application/problem+json"
_METHODS: Final = ("get", "post", "put", "delete")
_TYPE_AND_NULL: Final = 2  # How many alternatives a type has that may be null.
_ENVELOPE: Final = tuple(field.name for field in fields(Envelope))
_FEWEST_PATHS: Final = 3  # A parameter that so many operations take in the same way is shared.


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation, in words."""

    name: str
    place: str
    kind: str
    default: str
    meaning: str


def page() -> str:
    """The whole page, as Markdown."""
    document = asyncio.run(_document())
    operations = [
        operation
        for methods in document["paths"].values()
        for method, operation in methods.items()
        if method in _METHODS
    ]
    counts = Counter(
        parameter
        for operation in operations
        for parameter in _parameters(operation)
        if parameter.place == "query"
    )
    shared = [parameter for parameter, count in counts.items() if count >= _FEWEST_PATHS]
    overview = _OVERVIEW.replace("ENVELOPE", ", ".join(f"`{name}`" for name in _ENVELOPE))
    parts = [overview, _SHARED_HEAD, _list(shared), "## Paths\n\n"]
    parts += [_path(path, methods, shared) for path, methods in document["paths"].items()]
    parts += [_REFUSALS, table(("status", "meaning"), sorted(_refusals(document).items()))]
    parts.append(_SHAPES)
    schemas = document["components"]["schemas"]
    parts += [_schema(name, schemas[name]) for name in sorted(schemas)]
    return "".join(parts).rstrip() + "\n"


async def _document() -> Any:
    """The OpenAPI document, from an application without a store."""
    nothing: Any = None
    app: Any = make_app(nothing, nothing, Access(), Limiter(0, 1), HttpSettings())
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", timeout=None
    ) as client:
        response = await client.get("/openapi.json")
        return response.raise_for_status().json()


def _refusals(document: Mapping[str, Any]) -> dict[str, str]:
    return {
        status: cell(response["description"])
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if _PROBLEM in response.get("content", {})
    }


def _parameters(operation: Mapping[str, Any]) -> list[Parameter]:
    return [
        Parameter(
            parameter["name"],
            parameter["in"],
            _type(parameter["schema"]),
            "required" if parameter.get("required") else _default(parameter["schema"]),
            cell(parameter.get("description", "")),
        )
        for parameter in operation.get("parameters", ())
    ]


def _path(path: str, methods: Mapping[str, Any], shared: Sequence[Parameter]) -> str:
    """A path with its operations; methods that differ in their body alone are described once."""
    headings: dict[str, list[str]] = {}
    for method in _METHODS:
        if method in methods:
            description = _operation(methods[method], shared)
            headings.setdefault(description, []).append(_request(method, methods[method]))
    parts = [f"**{' or '.join(requests)}**: {text}" for text, requests in headings.items()]
    return f"### {path}\n\n{''.join(parts)}"


def _request(method: str, operation: Mapping[str, Any]) -> str:
    if "requestBody" not in operation:
        return method.upper()
    [content] = operation["requestBody"]["content"].values()
    return f"{method.upper()} {_type(content['schema'])}"


def _operation(operation: Mapping[str, Any], shared: Sequence[Parameter]) -> str:
    parameters = _parameters(operation)
    answers = [
        answer
        for response in operation["responses"].values()
        if _PROBLEM not in response.get("content", {})
        for answer in _answers(response)
    ]
    answer = f" ({' or '.join(answers)})" if answers else ""
    names = [f"`{parameter.name}`" for parameter in parameters if parameter in shared]
    path_parameters = [
        parameter
        for parameter in parameters
        if parameter not in shared and parameter.place != "path"
    ]
    return (
        f"{cell(operation.get('description', '')).rstrip('.')}{answer}.\n\n"
        + (f"Shared: {', '.join(names)}.\n\n" if names else "")
        + _list(path_parameters)
    )


def _list(parameters: Sequence[Parameter]) -> str:
    lines = []
    for parameter in parameters:
        default = f", {parameter.default}" if parameter.default else ""
        meaning = f": {parameter.meaning}" if parameter.meaning else ""
        lines.append(f"- `{parameter.name}` ({parameter.kind}{default}){meaning}\n")
    return "".join(lines) + ("\n" if lines else "")


def _answers(response: Mapping[str, Any]) -> Iterator[str]:
    for kind, content in response.get("content", {}).items():
        schema = content.get("schema") or {}
        yield _type(schema) if kind.endswith("json") and schema else f"`{kind}`"


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    plain: dict[str, list[str]] = {}
    described = []
    properties = schema.get("properties", {})
    is_answer = set(_ENVELOPE) <= set(properties)
    for field, field_schema in properties.items():
        if is_answer and field in _ENVELOPE and "$ref" not in str(field_schema):
            continue
        default = "" if field in required else _default(field_schema)
        optional = "" if field in required or default else "optional "
        kind = f"{optional}{_type(field_schema)}" + (f", {default}" if default else "")
        if field_schema.get("description"):
            described.append(f"- `{field}` ({kind}): {cell(field_schema['description'])}\n")
        else:
            plain.setdefault(kind, []).append(f"`{field}`")
    kinds = "; ".join(
        ", ".join(names) + ("" if kind == "string" else f" ({kind})")
        for kind, names in plain.items()
    )
    summary, _, arguments = schema.get("description", "").partition("\n\nArgs:\n")
    text = summary + re.sub(r"^    (\w[\w, ]*): ", r" `\1`: ", arguments, flags=re.MULTILINE)
    meaning = f"{cell(text)}\n\n" if text else ""
    return (
        f"### {name}\n\n{meaning}"
        + (f"{'Further fields' if is_answer else 'Fields'}: {kinds}.\n\n" if kinds else "")
        + "".join(described)
        + ("\n" if described else "")
    )


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "") else f"default `{default}`"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        types = [_type(option) for option in schema["anyOf"]]
        short = len(types) == _TYPE_AND_NULL and types[1] == "null" and " " not in types[0]
        return f"{types[0]}?" if short else " or ".join(types)
    if choices := schema.get("enum") or [value for value in (schema.get("const"),) if value]:
        return _choices(choices)
    return _type_text(schema)


def _choices(choices: Sequence[object]) -> str:
    """The values of an enumeration; those that may have a minus before them are listed once."""
    signed = [value for value in choices if f"-{value}" in choices]
    others = [value for value in choices if value not in signed and str(value)[1:] not in signed]
    lists = [", ".join(f"`{value}`" for value in values) for values in (others, signed) if values]
    return "; or, also with `-` before it, ".join(lists) if signed else lists[0]


def _type_text(schema: Mapping[str, Any]) -> str:
    kind = str(schema.get("type", "anything"))
    more = schema.get("items") or schema.get("additionalProperties")
    if isinstance(more, dict) and more:
        item = _type(more)
        return f"{item}[]" if kind == "array" and " " not in item else f"{kind} of {item}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{kind} in [{low:.15g}, {high:.15g}]"
    return f"{kind} from {low:.15g} on" if low is not None else kind
