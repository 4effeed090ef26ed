"""The operations of an OpenAPI document (3.0 or 3.1), as data from which a project's tools.py makes tools.

Nothing of a document becomes source code, and nothing that it refers to is fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any, Literal
from urllib.parse import urljoin
from urllib.request import urlopen

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from arq_graph.agent.json_schema import find_definition
from arq_graph.agent.regular_file import MAX_TEXT_BYTES, read_limited
from arq_graph.agent.yaml_file import Document, read_text
from arq_graph.errors import SpecError, describe_first_error

_MAX_DESCRIPTION = 1_000
_MAX_REFERENCES = 50
_METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
_OVERWRITTEN = ("self", "config", "run_manager")  # LangChain passes these to a tool's function itself
_IGNORED_HEADERS = ("accept", "content-type", "authorization")  # by the OpenAPI specification


class _Media(BaseModel):
    json_schema: dict[str, Any] | bool = Field({}, alias="schema")


class _Parameter(_Media):
    name: str
    place: Literal["path", "query", "header", "cookie"] = Field(alias="in")
    required: bool = False
    description: str = ""
    style: str | None = None
    explode: bool | None = None


class _Body(BaseModel):
    content: dict[str, _Media]
    required: bool = False


class _ObjectSchema(BaseModel):
    properties: dict[str, Any] = {}
    required: list[str] = []


class _KeyScheme(BaseModel):
    place: Literal["query", "header", "cookie"] = Field(alias="in")
    name: str


class _Server(BaseModel):
    url: str
    variables: dict[str, dict[str, Any]] = {}


class _Level(BaseModel):
    """An operation; or its path, or the whole document, which may hold parameters and servers for it."""

    operation_id: str = Field("", alias="operationId")
    summary: str = ""
    description: str = ""
    parameters: list[Any] = []
    body: Any = Field(None, alias="requestBody")
    servers: list[_Server] = []
    security: list[dict[str, Any]] | None = None


def read_operations(source: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read the operations of an OpenAPI document, in JSON or YAML, from a path or an http(s) address.

    Returns:
        By tool name, what tools.py needs to know of each operation; and a sentence for each that can't be a tool.

    Raises:
        SpecError: The document can't be read, isn't OpenAPI 3.0 or 3.1, is too large, or has no usable operation.
    """
    reader = _Reader(source)
    operations: dict[str, dict[str, Any]] = {}
    omitted: list[str] = []
    size = 0
    for path, method, operation, path_item in reader.list_operations():
        try:
            name, details = reader.read_operation(path, method, operation, path_item)
        except ValueError as error:
            problem = describe_first_error(error) if isinstance(error, ValidationError) else str(error)
            omitted.append(f"{method.upper()} {path}: {problem}")
            continue
        operations[make_name(name, operations)] = details
        size += len(json.dumps(details))
        if size > MAX_TEXT_BYTES:
            raise SpecError("has too many schemas for one agent; remove some of its paths", file=source)
    if not operations:
        reasons = "; ".join(omitted[:3]) or "`paths` is empty"
        raise SpecError(f"has no operation that can be a tool: {reasons}", file=source)
    return operations, omitted


def _load(source: str) -> Any:
    if source.startswith(("http://", "https://")):
        try:
            with urlopen(source, timeout=30) as stream:
                text = read_limited(stream, MAX_TEXT_BYTES).decode("utf-8-sig")
        except (OSError, ValueError) as error:
            raise SpecError(
                f"can't be downloaded: {str(error).strip('<>')}; name a file instead", file=source
            ) from None
    else:
        text = read_text(source, file_kind="OpenAPI document")
    try:
        return from_json(text)
    except ValueError:
        document = Document(text, source)
        document.require_valid()
        return document.values


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._document = _load(source)
        version = self._document.get("openapi") if isinstance(self._document, dict) else None
        if not str(version).startswith(("3.0", "3.1")):
            message = (
                f"must be an OpenAPI document of version 3.0 or 3.1, but its `openapi` is {version!r:.40}"
            )
            raise SpecError(f"{message}; convert it first", file=source)

    def list_operations(self) -> Iterator[tuple[str, str, Any, Any]]:
        paths = self._document.get("paths")
        for path, item in paths.items() if isinstance(paths, dict) else ():
            path_item = self.follow(item)
            for method in _METHODS:
                if isinstance(path_item, dict) and method in path_item:
                    yield path, method, path_item[method], path_item

    def follow(self, value: Any) -> Any:
        """Return what a reference leads to, or the value itself if it isn't one."""
        for _ in range(_MAX_REFERENCES):
            reference = value.get("$ref") if isinstance(value, dict) else None
            if not isinstance(reference, str):
                return value
            if not reference.startswith("#"):
                message = (
                    "which isn't fetched; bundle all parts into one file first, as `redocly bundle` does"
                )
                raise SpecError(f"refers to {reference!r:.100}, {message}", file=self._source)
            value = find_definition(self._document, reference)
            if value is None:
                raise SpecError(f"refers to {reference!r:.100}, which it doesn't have", file=self._source)
        raise SpecError("has a reference that leads to itself", file=self._source)

    def read_operation(
        self, path: str, method: str, raw_operation: Any, path_item: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the name of an operation, and what tools.py needs to know of it."""
        levels = [_Level.model_validate(level) for level in (raw_operation, path_item, self._document)]
        operation, for_path, _ = levels
        arguments = _Arguments(self)
        for parameter in self._list_parameters(path, for_path.parameters + operation.parameters):
            arguments.add_parameter(parameter)
        if operation.body is not None:
            arguments.add_body(_Body.model_validate(self.follow(operation.body)))
        signature = f"{method.upper()} {path}"
        texts = filter(None, (operation.summary.strip(), operation.description.strip()))
        return operation.operation_id or f"{method}_{path}", {
            "method": method,
            "server": self._find_address([server for level in levels for server in level.servers]),
            "path": path,
            "key": self._find_key([level.security for level in levels]),
            "description": "\n\n".join(texts)[:_MAX_DESCRIPTION] or signature,
            "body": arguments.body,
            "arguments": arguments.targets,
            "schema": arguments.make_schema(),
        }

    def _find_address(self, servers: list[_Server]) -> str:
        """Return the first server's address; "" if the document, a file, doesn't have it."""
        server = next(iter(servers), _Server(url="/"))
        url = server.url
        for name, variable in server.variables.items():
            url = url.replace(f"{{{name}}}", str(variable.get("default")))
        url = urljoin(self._source, url)
        return url if url.startswith(("http://", "https://")) else ""

    def _find_key(self, levels: list[list[dict[str, Any]] | None]) -> dict[str, str]:
        """Return where a request has the key, and what is before it there: a bearer token by default."""
        requirements = next(filter(None, levels), [])
        for name in chain.from_iterable(requirements):
            scheme = self.follow(find_definition(self._document, f"#/components/securitySchemes/{name}"))
            if isinstance(scheme, dict) and scheme.get("type") == "apiKey":
                key = _KeyScheme.model_validate(scheme)
                return {"in": key.place, "name": key.name, "prefix": ""}
        return {"in": "header", "name": "Authorization", "prefix": "Bearer "}

    def _list_parameters(self, path: str, raw_parameters: list[Any]) -> list[_Parameter]:
        """Return an operation's parameters, of which the last of a name counts; undeclared ones are text."""
        parameters: dict[tuple[str, str], _Parameter] = {}
        for name in re.findall(r"{([^{}]+)}", path):
            text = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            parameters["path", name] = _Parameter.model_validate(text)
        for raw_parameter in raw_parameters:
            parameter = _Parameter.model_validate(self.follow(raw_parameter))
            if parameter.place != "header" or parameter.name.lower() not in _IGNORED_HEADERS:
                parameters[parameter.place, parameter.name] = parameter
        return list(parameters.values())


class _Arguments:
    """The arguments of an operation's tool; `targets` says where the request has each of them."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._definition_names: dict[str, str] = {}  # by reference
        self._schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        self.targets: dict[str, dict[str, Any]] = {}
        self.body: dict[str, Any] = {"type": "", "required": False}

    def add_parameter(self, parameter: _Parameter) -> None:
        if parameter.style in ("matrix", "label"):
            problem = f"has the style {parameter.style}, which isn't supported"
            raise ValueError(f"its parameter {parameter.name:.50} {problem}")
        style = parameter.model_dump(include={"style", "explode"}, exclude_none=True)
        target = {"in": parameter.place, "name": parameter.name, **style}
        schema = parameter.json_schema
        if parameter.description and isinstance(schema, dict):
            schema = {"description": parameter.description[:_MAX_DESCRIPTION], **schema}
        self._add(parameter.name, schema, target, parameter.required)

    def add_body(self, body: _Body) -> None:
        """Add each property of an object as an argument, or any other body as one argument."""
        kinds = [kind for kind in body.content if re.search(r"json\b", kind)]
        if not kinds:
            raise ValueError(f"its body isn't JSON but {', '.join(body.content)}")
        kinds.sort(key=lambda kind: kind.partition(";")[0] != "application/json")
        self.body = {"type": kinds[0], "required": body.required}
        raw_schema = body.content[kinds[0]].json_schema
        schema = self._reader.follow(raw_schema)
        fields = _ObjectSchema()
        if isinstance(schema, dict) and schema.keys().isdisjoint(("allOf", "anyOf", "oneOf")):
            fields = _ObjectSchema.model_validate(schema)
        if not fields.properties:
            self._add("body", raw_schema, {"in": "body"}, body.required)
            return
        for name, part in fields.properties.items():
            if not (isinstance(part, dict) and part.get("readOnly") is True):
                is_required = body.required and name in fields.required
                self._add(name, part, {"in": "body", "name": name}, is_required)

    def _add(self, name: str, schema: Any, target: dict[str, Any], is_required: bool) -> None:
        argument = make_name(name, [*_OVERWRITTEN, *self.targets])
        self.targets[argument] = target
        self._schema["properties"][argument] = self._copy(schema)
        if is_required:
            self._schema["required"].append(argument)

    def make_schema(self) -> dict[str, Any]:
        """Return the schema of all arguments, with every definition that they refer to."""
        definitions: dict[str, Any] = {}
        while len(definitions) < len(self._definition_names):
            for reference, name in list(self._definition_names.items())[len(definitions) :]:
                definitions[name] = self._copy(self._reader.follow({"$ref": reference}))
        return self._schema | {"$defs": definitions}

    def _copy(self, value: Any) -> Any:
        """Copy a schema; its references then lead to `$defs`, and `nullable` (3.0) is a type."""
        if isinstance(value, list):
            return list(map(self._copy, value))
        if not isinstance(value, dict):
            return value
        copied = {key: self._copy(part) for key, part in value.items()}
        reference = value.get("$ref")
        if isinstance(reference, str):
            name = make_name(reference.rpartition("/")[2], self._definition_names.values())
            copied["$ref"] = f"#/$defs/{self._definition_names.setdefault(reference, name)}"
        if value.get("nullable") is True and isinstance(value.get("type"), str):
            copied["type"] = [value["type"], "null"]
            if isinstance(value.get("enum"), list):
                copied["enum"].append(None)
        return copied


def make_name(text: str, used_names: Collection[str]) -> str:
    """Return an identifier of ASCII letters, digits and underscores that isn't used yet."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:56]
    if not stem[:1].isalpha():
        stem = f"value_{stem}".strip("_")
    name, number = stem, 1
    while name in used_names:
        number += 1
        name = f"{stem}_{number}"
    return name
