"""The operations of an OpenAPI document (3.0 or 3.1), as data from which a project's tools.py makes tools.

Nothing of a document becomes source code, and nothing that it refers to is fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Literal
from urllib.parse import urljoin
from urllib.request import urlopen

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from arq_graph.agent.json_schema import find_definition
from arq_graph.agent.regular_file import MAX_TEXT_BYTES, read_limited
from arq_graph.agent.yaml_file import Document, read_text
from arq_graph.errors import SpecError, describe_first_error

_Schema = dict[str, Any] | bool

_MAX_DESCRIPTION = 1_000
_MAX_REFERENCES = 50
_METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
_OVERWRITTEN = ("self", "config", "run_manager")  # LangChain passes these to a tool's function itself
_IGNORED_HEADERS = ("accept", "content-type", "authorization")  # by the OpenAPI specification


class _Media(BaseModel):
    json_schema: _Schema = Field({}, alias="schema")


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


class _Server(BaseModel):
    url: str
    variables: dict[str, dict[str, Any]] = {}


class _PathItem(BaseModel):
    parameters: list[Any] = []
    servers: list[_Server] = []


class _Operation(_PathItem):
    operation_id: str = Field("", alias="operationId")
    summary: str = ""
    description: str = ""
    body: Any = Field(None, alias="requestBody")


def read_operations(source: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Read the operations of an OpenAPI document.

    Args:
        source: A path or an http(s) address; the document is JSON or YAML.

    Returns:
        By tool name, what tools.py needs to know of each operation; and a sentence for each that can't be a tool.

    Raises:
        SpecError: The document can't be read, isn't OpenAPI 3.0 or 3.1, is too large, or has no usable operation.
    """
    document = _OpenApiDocument(source)
    operations: dict[str, dict[str, Any]] = {}
    omitted: list[str] = []
    size = 0
    for path, method, raw_operation, path_item in document.list_operations():
        try:
            name, operation = document.read_operation(path, method, raw_operation, path_item)
        except ValueError as error:
            problem = describe_first_error(error) if isinstance(error, ValidationError) else str(error)
            omitted.append(f"{method.upper()} {path}: {problem}")
            continue
        operations[make_name(name, operations)] = operation
        size += len(json.dumps(operation))
        if size > MAX_TEXT_BYTES:
            raise SpecError("has too many schemas for one agent; remove some of its paths", file=source)
    if not operations:
        reason = f": {omitted[0]}" if omitted else ""
        raise SpecError(f"has no operation that can be a tool{reason}", file=source)
    return operations, omitted


def _load(source: str) -> Any:
    if source.startswith(("http://", "https://")):
        try:
            with urlopen(source, timeout=30) as stream:
                text = read_limited(stream, MAX_TEXT_BYTES).decode("utf-8-sig")
        except (OSError, ValueError) as error:
            raise SpecError(f"can't be downloaded: {error}; name a file instead", file=source) from None
    else:
        text = read_text(source, file_kind="OpenAPI document")
    try:
        return from_json(text)
    except ValueError:
        document = Document(text, source)
        document.require_valid()
        return document.values


class _OpenApiDocument:
    def __init__(self, source: str) -> None:
        self._source = source
        self._values = _load(source)
        version = self._values.get("openapi") if isinstance(self._values, dict) else None
        if not str(version).startswith(("3.0", "3.1")):
            message = "must be an OpenAPI document of version 3.0 or 3.1; convert another (Swagger 2.0) first"
            raise SpecError(f"{message}. Its `openapi` is {version!r:.40}", file=source)

    def list_operations(self) -> list[tuple[str, str, Any, Any]]:
        """Return the path, method and content of each operation, and what its path says for all of them."""
        operations: list[tuple[str, str, Any, Any]] = []
        paths = self._values.get("paths")
        for path, item in paths.items() if isinstance(paths, dict) else ():
            path_item = self.follow(item)
            for method in _METHODS:
                if isinstance(path_item, dict) and method in path_item:
                    operations.append((path, method, path_item[method], path_item))
        return operations

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
            value = find_definition(self._values, reference)
            if value is None:
                raise SpecError(f"refers to {reference!r:.100}, which it doesn't have", file=self._source)
        raise SpecError("has a reference that leads to itself", file=self._source)

    def read_operation(
        self, path: str, method: str, raw_operation: Any, raw_item: Any
    ) -> tuple[str, dict[str, Any]]:
        """Return the name of an operation, and what tools.py needs to know of it."""
        operation = _Operation.model_validate(raw_operation)
        path_item = _PathItem.model_validate(raw_item)
        arguments = _Arguments(self)
        for parameter in self._list_parameters(path, path_item.parameters + operation.parameters):
            arguments.add_parameter(parameter)
        if operation.body is not None:
            arguments.add_body(_Body.model_validate(self.follow(operation.body)))
        signature = f"{method.upper()} {path}"
        texts = filter(None, (operation.summary.strip(), operation.description.strip()))
        return operation.operation_id or f"{method}_{path}", {
            "method": method,
            "server": self._choose_server(operation.servers or path_item.servers),
            "path": path,
            "description": "\n\n".join(texts)[:_MAX_DESCRIPTION] or signature,
            "arguments": arguments.targets,
            "schema": arguments.make_schema(),
        }

    def _choose_server(self, servers: list[_Server]) -> str:
        """Return the address of the first server; "" if the document has only a path, and is a file."""
        listed = servers or _PathItem.model_validate({"servers": self._values.get("servers", [])}).servers
        server = next(iter(listed), _Server(url="/"))
        url = server.url
        for name, variable in server.variables.items():
            url = url.replace(f"{{{name}}}", str(variable.get("default")))
        url = urljoin(self._source, url)
        return url.rstrip("/") if url.startswith(("http://", "https://")) else ""

    def _list_parameters(self, path: str, raw_parameters: list[Any]) -> list[_Parameter]:
        """Return the parameters of an operation, of which the last of a name counts; undeclared ones are text."""
        parameters: dict[tuple[str, str], _Parameter] = {}
        for raw_parameter in raw_parameters:
            parameter = _Parameter.model_validate(self.follow(raw_parameter))
            if parameter.place != "header" or parameter.name.lower() not in _IGNORED_HEADERS:
                parameters[parameter.place, parameter.name] = parameter
        for name in re.findall(r"{([^{}]+)}", path):
            text = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            parameters.setdefault(("path", name), _Parameter.model_validate(text))
        return list(parameters.values())


class _Arguments:
    """The arguments of an operation's tool; `targets` says where the request has each of them."""

    def __init__(self, document: _OpenApiDocument) -> None:
        self._document = document
        self._definition_names: dict[str, str] = {}  # by reference
        self._schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        self.targets: dict[str, dict[str, Any]] = {}

    def add_parameter(self, parameter: _Parameter) -> None:
        style = parameter.model_dump(include={"style", "explode"}, exclude_none=True)
        target = {"in": parameter.place, "name": parameter.name, **style}
        schema = parameter.json_schema
        if parameter.description and isinstance(schema, dict):
            schema = {"description": parameter.description[:_MAX_DESCRIPTION], **schema}
        self._add(parameter.name, schema, target, parameter.required)

    def add_body(self, body: _Body) -> None:
        """Add each property of an object as an argument, or any other body as one argument."""
        schemas = [media.json_schema for kind, media in body.content.items() if re.search(r"json\b", kind)]
        if not schemas:
            raise ValueError(f"its body isn't JSON but {', '.join(body.content)}")
        schema = self._document.follow(schemas[0])
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or not schema.keys().isdisjoint(("allOf", "anyOf", "oneOf")):
            self._add("body", schemas[0], {"in": "body"}, body.required)
            return
        for name, part in properties.items():
            if not (isinstance(part, dict) and part.get("readOnly") is True):
                is_required = body.required and name in schema.get("required", ())
                self._add(name, part, {"in": "body", "name": name}, is_required)

    def _add(self, name: str, schema: _Schema, target: dict[str, Any], is_required: bool) -> None:
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
                definitions[name] = self._copy(self._document.follow({"$ref": reference}))
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
                copied["enum"] = [*value["enum"], None]
        return copied


def make_name(text: str, taken: Collection[str]) -> str:
    """Return an identifier of ASCII letters, digits and underscores that isn't taken yet."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:56]
    if not stem[:1].isalpha():
        stem = f"value_{stem}".strip("_")
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name
