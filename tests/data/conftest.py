"""A web server."""

import http.server
import threading

import pytest


class WebServer(http.server.ThreadingHTTPServer):
    """Serves ``files`` (path to bytes).

    Attributes:
        cuts: number of transfers, from now, that break off in the middle.
        requests: path of every request.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.requests, self.cuts = {}, [], 0

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        content = self.server.files.get(self.path.lstrip("/"))
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if self.server.cuts else content)
        self.server.cuts = max(0, self.server.cuts - 1)
        return None

    def log_message(self, *_args):
        pass


@pytest.fixture
def web():
    server = WebServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
