"""`arq-graph init --from`: tools that call an API, from its OpenAPI document."""

import json
from typing import Any

import httpx
import pytest
import yaml

from arq_graph import Agent

ORDER = {
    "type": "object",
    "required": ["id", "item"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "item": {"type": "string", "nullable": True},
        "self": {"type": "string"},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Order"}},
    },
}
ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
STATUS = {"name": "filter[status]", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}
COLOR = {"name": "X-Color", "in": "header", "style": "simple", "explode": True, "schema": {"type": "object"}}
SESSION = {"name": "session", "in": "cookie", "schema": {"type": "string"}}
TRACE = {"name": "X-Trace", "in": "header", "schema": {"type": "boolean"}}


def make_body(schema: Any, kind: str = "application/json") -> dict[str, Any]:
    return {"required": True, "content": {kind: {"schema": schema}}}


SETTINGS = make_body({"properties": {"theme": {"type": "string"}}}, "application/merge-patch+json")
NOTES = {"content": {**make_body({}, "text/json")["content"], **make_body({"type": "array"})["content"]}}
SHOP: dict[str, Any] = {
    "openapi": "3.0.3",
    "servers": [{"url": "https://{region}.example.com/v1/", "variables": {"region": {"default": "eu"}}}],
    "paths": {
        "/orders/{id}": {
            "parameters": [ID],
            "get": {"operationId": "getOrder", "summary": "Look up an order."},
            "delete": {"summary": "Cancel an order."},
        },
        "/orders": {
            "get": {
                "operationId": "getOrder",
                "parameters": [STATUS, {"$ref": "#/components/parameters/Trace"}],
            },
            "post": {
                "operationId": "créer!",
                "requestBody": make_body({"$ref": "#/components/schemas/Order"}),
                "security": [{"InQuery": []}],
            },
            "put": {
                "operationId": "replace",
                "requestBody": make_body({"type": "array", "items": ORDER}),
                "security": [{"InHeader": []}],
            },
            "patch": {"requestBody": make_body({}, "multipart/form-data")},
        },
        "/colors/{id}": {
            "get": {"operationId": "paint", "parameters": [STATUS, COLOR, SESSION, TRACE]},
            "parameters": [ID],
            "head": {"parameters": [{**ID, "style": "matrix"}]},
        },
        "/settings": {"patch": {"operationId": "change", "requestBody": SETTINGS}},
        "/notes": {"put": {"operationId": "annotate", "requestBody": NOTES}},
    },
    "security": [{"Bearer": []}],
    "components": {
        "schemas": {"Order": ORDER},
        "parameters": {"Trace": TRACE},
        "securitySchemes": {
            "Bearer": {"type": "http", "scheme": "bearer"},
            "InQuery": {"type": "apiKey", "in": "query", "name": "token"},
            "InHeader": {"type": "apiKey", "in": "header", "name": "X-Shop-Key"},
        },
    },
}


@pytest.fixture
def make_agent(cli, folder):
    """Make a project of a document, and return its agent."""

    def make(document: Any, name: str = "shop") -> Agent:
        (folder / "api.json").write_text(json.dumps(document))
        result = cli("init", name, "--from", "api.json")
        assert result.code == 0, result.words
        return Agent.from_yaml(folder / name / "agent.yaml")

    return make


@pytest.fixture
def shop(make_agent, monkeypatch):
    """The tools of the shop's API, and the requests that it got."""
    tools: Any = make_agent(SHOP).toolbox
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if request.url.path.endswith("missing"):
            return httpx.Response(404, text="no such order")
        return httpx.Response(200, json={"status": "late"})

    call: Any = tools["getOrder"].func
    client = httpx.Client(transport=httpx.MockTransport(answer))
    monkeypatch.setitem(call.__globals__, "client", client)
    monkeypatch.setenv("API_KEY", "secret")
    return tools, requests


def test_each_operation_is_a_tool_and_what_changes_something_is_asked_first(make_agent):
    agent = make_agent(SHOP)
    changing = ["delete_orders_id", "cr_er", "replace", "change", "annotate"]
    assert list(agent.confirm) == changing
    assert agent.toolbox.keys() == {"getOrder", "getOrder_2", "paint", *changing}
    assert agent.toolbox["getOrder"].description == "Look up an order."


def test_the_project_of_an_api_runs_offline_as_it_is(make_agent, cli, folder, monkeypatch):
    make_agent(SHOP)
    monkeypatch.chdir(folder / "shop")
    assert cli("milestones", "check", "milestones.yaml", "--agent", "agent.yaml").code == 0
    assert cli("evaluate", "suite.yaml", "--min-success", "0.6").code == 0


def test_a_call_is_the_request_that_the_document_describes(shop):
    tools, requests = shop
    assert tools["getOrder"].invoke({"id": "a/../b?x"}) == {"status": "late"}
    tools["getOrder_2"].invoke({"filter_status": ["late", "lost"], "X_Trace": True})
    tools["cr_er"].invoke({"item": None, "self_2": "me"})
    tools["replace"].invoke({"body": [{"item": "tent"}]})
    assert [(request.method, str(request.url)) for request in requests] == [
        ("GET", "https://eu.example.com/v1/orders/a%2F..%2Fb%3Fx"),
        ("GET", "https://eu.example.com/v1/orders?filter%5Bstatus%5D=late&filter%5Bstatus%5D=lost"),
        ("POST", "https://eu.example.com/v1/orders?token=secret"),
        ("PUT", "https://eu.example.com/v1/orders"),
    ]
    assert requests[1].headers["X-Trace"] == "true"
    assert [json.loads(request.content) for request in requests[2:]] == [
        {"item": None, "self": "me"},
        [{"item": "tent"}],
    ]
    keys = [(request.headers.get("Authorization"), request.headers.get("X-Shop-Key")) for request in requests]
    assert keys == [("Bearer secret", None), ("Bearer secret", None), (None, None), (None, "secret")]


def test_a_body_has_the_media_type_of_the_document_and_a_required_one_is_always_sent(shop):
    tools, requests = shop
    tools["change"].invoke({"theme": None})
    tools["change"].invoke({})
    tools["annotate"].invoke({"body": ["fragile"]})
    tools["annotate"].invoke({})
    bodies = [(request.headers.get("Content-Type"), request.content) for request in requests]
    assert bodies == [
        ("application/merge-patch+json", b'{"theme": null}'),
        ("application/merge-patch+json", b"{}"),
        ("application/json", b'["fragile"]'),
        (None, b""),
    ]


def test_a_header_and_a_cookie_hold_just_the_argument_and_nothing_if_it_is_null(shop):
    tools, requests = shop
    tools["paint"].invoke({"id": "7", "X_Color": {"R": 1, "G": 2}, "session": "x; admin=1"})
    tools["paint"].invoke(
        {"id": "7", "filter_status": None, "X_Color": None, "X_Trace": None, "session": None}
    )
    assert requests[0].headers["X-Color"] == "R=1,G=2"
    assert requests[0].headers["Cookie"] == "session=x%3B%20admin%3D1"
    assert str(requests[1].url) == "https://eu.example.com/v1/colors/7"
    assert requests[1].headers.keys().isdisjoint(("x-color", "x-trace", "cookie"))


def test_a_failed_call_tells_the_model_why(shop):
    tools, requests = shop
    assert tools["getOrder"].invoke({"id": "missing"}) == "The API answers 404: no such order"
    assert tools["getOrder"].invoke({"id": ".."}) == "id can't be '..'."
    assert len(requests) == 1


def test_an_operation_that_cannot_be_called_is_left_out_with_a_warning(cli, folder):
    (folder / "api.yaml").write_text(yaml.safe_dump(SHOP))
    result = cli("init", "shop", "--from", "api.yaml")
    assert "left out: PATCH /orders: its body isn't JSON but multipart/form-data" in result.words
    assert "HEAD /colors/{id}: its parameter id has the style matrix, which isn't supported" in result.words


HOSTILE = [
    '"""\nimport os; os.abort()\n"""',
    "'); raise SystemExit #",
    "{{ 1 }} {% x %} ${HOME} XX_NAME_XX %s {0}",
    "tools:\n- os:system",
    "*alias &anchor !!python/object/apply:os.abort []",
    "\x00\x1b[31m\u2028",
    "__class__.__init__",
    "x" * 100_000,
]


def test_nothing_that_a_document_says_becomes_code(make_agent, folder):
    paths: dict[str, Any] = {}
    for text in HOSTILE:
        operation: dict[str, Any] = {"operationId": text, "summary": text, "description": text}
        parameter = {
            "name": text,
            "in": "query",
            "description": text,
            "schema": {"enum": [text], "title": text},
        }
        body = make_body({"type": "object", "properties": {text: {"type": "string", "default": text}}})
        paths[f"/{text}"] = {"post": {**operation, "parameters": [parameter], "requestBody": body}}
    agent = make_agent({**SHOP, "paths": paths})
    assert len(agent.toolbox) == len(HOSTILE)
    assert all(name.isidentifier() and name.isascii() for name in agent.toolbox)
    assert agent.confirm.keys() == agent.toolbox.keys()
    make_agent(SHOP, "harmless")
    for file in ("tools.py", "graph.py", "test_agent.py"):
        assert (folder / "shop" / file).read_text() == (folder / "harmless" / file).read_text()


def test_definitions_that_stand_for_billions_of_values_take_no_time(make_agent):
    schemas: dict[str, Any] = {"S12": {"type": "string"}}
    for number in range(12):
        reference = {"$ref": f"#/components/schemas/S{number + 1}"}
        schemas[f"S{number}"] = {"properties": {f"p{index}": reference for index in range(10)}}
    operation = {"requestBody": make_body({"$ref": "#/components/schemas/S0"})}
    document = {"openapi": "3.1.0", "paths": {"/": {"post": operation}}, "components": {"schemas": schemas}}
    assert list(make_agent(document).toolbox) == ["post"]


REMOTE = {"get": {"parameters": [{"$ref": "https://example.com/evil.json#/x"}]}}
WRONG: list[tuple[Any, str]] = [
    ({"swagger": "2.0"}, "must be an OpenAPI document of version 3.0 or 3.1"),
    ([1], "must be an OpenAPI document"),
    ({"openapi": "3.1.0", "paths": []}, "has no operation"),
    ({"openapi": "3.1.0", "paths": {"/a": {"get": 7}}}, "has no operation that can be a tool: GET /a"),
    (
        {"openapi": "3.1.0", "paths": {"/a": REMOTE}},
        "which isn't fetched; bundle all parts into one file first",
    ),
    ({"openapi": "3.1.0", "paths": {"/a": {"$ref": "#/paths/~1a"}}}, "a reference that leads to itself"),
    ({"openapi": "3.1.0", "paths": {"/a": {"$ref": "#/nothing"}}}, "which it doesn't have"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_document_that_cannot_be_used_is_refused_and_nothing_is_written(cli, folder, document, message):
    (folder / "api.json").write_text(json.dumps(document))
    result = cli("init", "shop", "--from", "api.json")
    assert result.code == 1
    assert message in result.words
    assert [path.name for path in folder.iterdir()] == ["api.json"]


JUNK = [
    None,
    True,
    7,
    "",
    "x",
    [1],
    {},
    {"$ref": "#/paths"},
    {"$ref": 7},
    {"enum": 7, "type": "x", "required": 7},
]


def list_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [place]
    items = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for key, item in items:
        places += list_places(item, (*place, key))
    return places


def test_a_document_with_nonsense_anywhere_is_used_or_refused_in_words(cli, folder):
    for number, (*parents, key) in enumerate(list_places(SHOP)[1::9]):
        document = json.loads(json.dumps(SHOP))
        target = document
        for parent in parents:
            target = target[parent]
        target[key] = JUNK[number % len(JUNK)]
        (folder / "api.json").write_text(json.dumps(document))
        result = cli("init", f"shop-{number}", "--from", "api.json")
        assert result.code in (0, 1)
        assert "should not happen" not in result.words


@pytest.mark.slow
def test_three_hundred_operations_make_three_hundred_tools(make_agent):
    paths = {f"/things{number}/{{id}}": {"put": {"requestBody": make_body(ORDER)}} for number in range(300)}
    assert len(make_agent({**SHOP, "paths": paths}).toolbox) == 300
