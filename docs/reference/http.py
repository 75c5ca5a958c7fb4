"""The reference of HTTP/JSON, from the OpenAPI document that the aggregator serves."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx2

from docs.reference.tables import cell, table
from hubbub.aggregator.access.callers import Access
from hubbub.aggregator.web.app import make_app
from hubbub.runtime import Limiter

_HEAD = """# HTTP/JSON

Made by `make reference` from the document that the aggregator serves at `/openapi.json`; change it in the code.

How to ask, tokens and TLS: [asking hubbub](../query.md#httpjson).

"""
_REFUSALS = """## Refusals

Every one is a [Problem](#problem), with its remedy in `detail`.

"""
_PROBLEM: Final = "application/problem+json"
_METHODS: Final = ("get", "post", "put", "delete")


def page() -> str:
    """The whole page, as Markdown."""
    document = asyncio.run(_document())
    parts = [_HEAD]
    for path, methods in document["paths"].items():
        parts += [_operation(path, one, methods[one]) for one in _METHODS if one in methods]
    parts += [_REFUSALS, table(("status", "meaning"), sorted(_refusals(document).items()))]
    parts.append("## Shapes\n\n")
    schemas = document["components"]["schemas"]
    parts += [_schema(name, schemas[name]) for name in sorted(schemas)]
    return "".join(parts).rstrip() + "\n"


async def _document() -> Any:
    """The document, asked of an application that nothing stands behind."""
    nothing: Any = None
    app: Any = make_app(nothing, nothing, Access(), Limiter(0, 1))
    here = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(
        transport=here, base_url="http://127.0.0.1", timeout=None
    ) as asked:
        answer = await asked.get("/openapi.json")
        return answer.raise_for_status().json()


def _refusals(document: Mapping[str, Any]) -> dict[str, str]:
    return {
        status: cell(said["description"])
        for methods in document["paths"].values()
        for told in methods.values()
        for status, said in told["responses"].items()
        if _PROBLEM in said.get("content", {})
    }


def _operation(path: str, method: str, told: Mapping[str, Any]) -> str:
    rows = [
        (
            f"`{one['name']}`",
            one["in"],
            _type(one["schema"]),
            "needed" if one.get("required") else _default(one["schema"]),
            cell(one.get("description", "")),
        )
        for one in told.get("parameters", ())
    ]
    body = ""
    if "requestBody" in told:
        [content] = told["requestBody"]["content"].values()
        body = f"Takes {_type(content['schema'])}.\n\n"
    answers = [
        (status, cell(said["description"]), ", ".join(_answered(said)))
        for status, said in told["responses"].items()
        if _PROBLEM not in said.get("content", {})
    ]
    return (
        f"## {method.upper()} {path}\n\n{cell(told.get('description', ''))}\n\n{body}"
        + table(("parameter", "in", "type", "default", "meaning"), rows)
        + table(("status", "meaning", "answer"), answers)
    )


def _answered(response: Mapping[str, Any]) -> Iterator[str]:
    for kind, content in response.get("content", {}).items():
        schema = content.get("schema") or {}
        yield _type(schema) if kind.endswith("json") and schema else f"`{kind}`"


def _schema(name: str, told: Mapping[str, Any]) -> str:
    needed = set(told.get("required", ()))
    rows = [
        (
            f"`{field}`",
            _type(schema),
            "" if field in needed else _default(schema) or "may lack",
            cell(schema.get("description", "")),
        )
        for field, schema in told.get("properties", {}).items()
    ]
    said = f"{cell(told['description'])}\n\n" if told.get("description") else ""
    return f"### {name}\n\n{said}{table(('field', 'type', 'default', 'meaning'), rows)}"


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "") else f"`{default}`"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if chosen := schema.get("enum") or [one for one in (schema.get("const"),) if one]:
        return ", ".join(f"`{one}`" for one in chosen)
    return _plain(schema)


def _plain(schema: Mapping[str, Any]) -> str:
    kind = str(schema.get("type", "anything"))
    more = schema.get("items") or schema.get("additionalProperties")
    if isinstance(more, dict) and more:
        return f"{kind} of {_type(more)}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{kind} in [{low:.15g}, {high:.15g}]"
    return f"{kind} from {low:.15g} on" if low is not None else kind
