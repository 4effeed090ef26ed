"""The gate in front of the playground: who may talk to it, and what a browser may do with its page.

The server listens on the loopback interface, which keeps other machines out, but neither the other users of this one
nor the web pages that are open in the same browser. So every request has to pass, in this order:

1. `Host` is one of the server's own names. A page whose name was made to point here (DNS rebinding) has another.
2. The browser says that the request comes from the playground's page, or that somebody opens the address. Requests
   that change something must say so with an `Origin` (against requests that other sites forge).
3. The cookie, which is given for the token in the address that the command printed.
4. The body has at most `MAX_BODY` bytes.

Cookies don't tell ports apart: a browser that opens this page also sends its cookie to every other server on the same
host name. So another user of the machine is kept out only as long as nobody opens a server of theirs in that browser.
"""

from __future__ import annotations

import secrets
from importlib import resources

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 256 * 1024
"""The most bytes of a request's body."""

_HEADERS = {
    # Scripts and styles of this server alone, no markup made of text, no frames, no other addresses.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Gate:
    """Lets requests through to an app, or refuses them.

    `token` is for the address that is printed, and `token_for_once` for the one that a browser is started with, since
    everybody on the machine can read the arguments of a program.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.token_for_once = secrets.token_urlsafe(32)
        self._app = app
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie_name = f"arq_graph_play_{port}"  # cookies don't tell ports apart
        self._cookie = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; other connections than those of HTTP are not accepted."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        respond = self._choose_app(Request(scope))
        await respond(scope, _limit_body(receive), _add_headers(send))

    def _choose_app(self, request: Request) -> ASGIApp:
        """Return the app, or a response in its place."""
        if not self._is_from_own_page(request):
            return _refuse()
        token = request.query_params.get("token")
        if token is not None and request.url.path == "/":
            return self._exchange(token)
        if not _is_equal(request.cookies.get(self._cookie_name, ""), self._cookie):
            return _refuse()
        return self._app

    def _is_from_own_page(self, request: Request) -> bool:
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if host not in self._hosts or origin not in (None, f"http://{host}"):
            return False
        if request.method not in ("GET", "HEAD"):
            return origin is not None
        # Browsers also say it of what needs no `Origin`, such as a script or a picture of another site's page.
        is_opened = request.headers.get("sec-fetch-mode") == "navigate"
        return is_opened or request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")

    def _exchange(self, token: str) -> Response:
        """Give the cookie for the token, and take the token out of the address."""
        if _is_equal(token, self.token_for_once):
            self.token_for_once = secrets.token_urlsafe(32)
        elif not _is_equal(token, self.token):
            return _refuse()
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(self._cookie_name, self._cookie, httponly=True, samesite="strict")
        return response


def _is_equal(secret: str, expected: str) -> bool:
    return secrets.compare_digest(secret.encode(), expected.encode())


def _refuse() -> Response:
    page = resources.files(__package__).joinpath("page", "refused.html").read_text(encoding="utf-8")
    return HTMLResponse(page, status_code=403)


def _limit_body(receive: Receive) -> Receive:
    size = 0

    async def receive_within_limit() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            raise HTTPException(413, f"The request is larger than {MAX_BODY // 1024} kB.")
        return message

    return receive_within_limit


def _add_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return send_with_headers
