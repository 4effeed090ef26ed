"""An HTTP server on this machine, for stubs of what is asked by POST."""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, dict[str, Any]], tuple[int, bytes | Iterable[bytes], Mapping[str, str]]]
"""What a path and a body are answered with: status, body, further headers.

An empty body loses the connection; one in pieces is sent piece by piece.
"""


class Loopback(ThreadingHTTPServer):
    """Has an address from when it is made, and answers between `start` and `stop`."""

    daemon_threads = True
    request_queue_size = 256  # the default of 5 loses connections of a big wave

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away, and connections to a stub that is closed, are no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Loopback

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        status, data, headers = self.server.answer(self.path, body)
        if not isinstance(data, bytes):
            self._send_pieces(status, data, headers)
            return
        self.close_connection = not data
        if data:
            self.send_response(status)
            kind = "text/event-stream" if data.startswith((b"event:", b"data:")) else "application/json"
            kind = "text/html" if data.startswith(b"<") else kind
            for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    def _send_pieces(self, status: int, pieces: Iterable[bytes], headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Stubs keep what they were asked."""
