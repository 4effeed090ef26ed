"""Who may talk to the playground, and what a browser may do with its page."""

from typing import Any

from arq_graph.play.gate import MAX_BODY
from tests.play.conftest import ADDRESS


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(start: Any) -> None:
    playground = start(opens=False)
    answer = playground.open()
    assert str(answer.url) == f"{ADDRESS}/"
    assert answer.status_code == 200
    [exchange] = answer.history
    assert exchange.status_code == 303
    cookie = exchange.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert playground.token.lower() not in cookie


def test_the_address_that_a_browser_is_started_with_works_once(start: Any) -> None:
    playground = start(opens=False)
    once = {"token": playground.token_for_once}
    assert playground.client.get("/", params=once).status_code == 200
    playground.client.cookies.clear()
    assert playground.client.get("/", params=once).status_code == 403


def test_another_visitor_is_told_where_the_address_is(start: Any) -> None:
    playground = start(opens=False)
    for query in ("", "?token=", "?token=wrong", "?token=ä"):
        answer = playground.client.get(f"/{query}")
        assert answer.status_code == 403
        assert "the whole address that <code>arq-graph play</code> printed" in answer.text
    for path in ("/events", "/play.js", "/calls/1"):
        assert playground.client.get(path).status_code == 403


def test_a_name_that_was_made_to_point_here_is_refused(playground: Any) -> None:
    for host in ("evil.example", "evil.example:8123", "127.0.0.1:9999", "127.0.0.1", "[::1]:8123"):
        headers = {"Host": host}
        assert playground.client.get("/events", headers=headers).status_code == 403
        token = {"token": playground.token}
        assert playground.client.get("/", params=token, headers=headers).status_code == 403


def test_a_page_of_another_site_changes_nothing(playground: Any) -> None:
    for origin in ("http://evil.example", "http://127.0.0.1:9999", "null", "https://127.0.0.1:8123"):
        assert playground.post("/restart", Origin=origin).status_code == 403
        assert playground.client.get("/events", headers={"Origin": origin}).status_code == 403
    assert playground.client.post("/restart", json={}).status_code == 403  # a browser says where it is from


def test_a_page_of_another_port_embeds_nothing(playground: Any) -> None:
    for site in ("same-site", "cross-site"):
        assert playground.client.get("/play.js", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert playground.client.get("/play.js", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_body_that_is_too_large_is_refused(playground: Any) -> None:
    assert playground.post("/colleague", {"text": "a" * MAX_BODY}).status_code == 413


def test_a_browser_runs_no_other_script_and_stores_nothing(playground: Any) -> None:
    for path in ("/", "/play.js", "/events", "/nothing"):
        headers = playground.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


def test_no_other_file_is_served(playground: Any) -> None:
    for path in ("/../agent.yaml", "/%2e%2e/gate.py", "/page/../gate.py", "/gate.py", "//etc/passwd"):
        assert playground.client.get(path).status_code == 404
