"""`/docs`: the OpenAPI document as a page of plain HTML, without scripts or external resources."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from hubbub.aggregator.web.problems import HEAD

_METHODS: Final = ("get", "post", "put", "delete")
_PROBLEM: Final = "application/problem+json"
_TOP: Final = """<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<a class="brand" href="/"><img src="/static/favicon.svg" alt="" width="24" height="24">hubbub</a>
<nav aria-label="Pages"><a href="/">Metrics</a><a href="/pipeline">Pipeline</a></nav>
</header>
<main id="main" tabindex="-1">
<h1>HTTP/JSON</h1>
<p class="lead">All requests of this address. For programs: \
<a href="/openapi.json">/openapi.json</a>.</p>
"""


def api_page(document: Mapping[str, Any]) -> str:
    """The HTML page of an OpenAPI document."""
    parts = [HEAD.format(heading="HTTP/JSON"), _TOP]
    for path, methods in document["paths"].items():
        parts += [_operation(path, name, methods[name]) for name in _METHODS if name in methods]
    parts.append("<h2>Refusals</h2>\n<p>Each is a problem (RFC 9457), with its remedy.</p>\n")
    refusals = {
        (status, answer["description"])
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, answer in operation["responses"].items()
        if _PROBLEM in answer.get("content", {})
    }
    parts.append(_table("Refusals", ("status", "meaning"), sorted(refusals)))
    parts.append("<h2>Shapes</h2>\n")
    schemas = document["components"]["schemas"]
    parts += [_shape(name, schemas[name]) for name in sorted(schemas)]
    parts.append("</main>\n</body>\n</html>\n")
    return "".join(parts)


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    rows = [
        (
            parameter["name"],
            parameter["in"],
            _type(parameter["schema"]),
            "needed" if parameter.get("required") else _default(parameter["schema"]),
            parameter.get("description", ""),
        )
        for parameter in operation.get("parameters", ())
    ]
    body = ""
    if "requestBody" in operation:
        [content] = operation["requestBody"]["content"].values()
        body = f"<p>Takes {escape(_type(content['schema']))}.</p>\n"
    answers = [
        (status, answer["description"], ", ".join(_answer_rows(answer)))
        for status, answer in operation["responses"].items()
        if _PROBLEM not in answer.get("content", {})
    ]
    name = f"{method.upper()} {path}"
    return (
        f"<h2><code>{escape(name)}</code></h2>\n"
        f"{_text(operation.get('description', ''))}{body}"
        + _table(f"Parameters of {name}", ("parameter", "in", "type", "default", "meaning"), rows)
        + _table(f"Answers of {name}", ("status", "meaning", "answer"), answers)
    )


def _answer_rows(response: Mapping[str, Any]) -> Iterator[str]:
    for kind, content in response.get("content", {}).items():
        schema = content.get("schema") or {}
        yield _type(schema) if kind.endswith("json") and schema else kind


def _shape(name: str, shape: Mapping[str, Any]) -> str:
    needed = set(shape.get("required", ()))
    rows = [
        (
            field,
            _type(schema),
            "" if field in needed else _default(schema) or "may lack",
            schema.get("description", ""),
        )
        for field, schema in shape.get("properties", {}).items()
    ]
    fields = _table(f"Fields of {name}", ("field", "type", "default", "meaning"), rows)
    description = _text(shape.get("description", ""))
    return f'<h3 id="{escape(name)}">{escape(name)}</h3>\n{description}{fields}'


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default in (None, "") else str(default).lower()


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _text(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>\n" for part in text.split("\n\n") if part.strip())


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    heads = "".join(f'<th scope="col">{title}</th>' for title in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="words">\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{lines}</tbody>\n</table></div>\n"
    )
