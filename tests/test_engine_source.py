"""Fetching a log or a metrics page: odd encodings, a server that answers, refuses or is not there."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kvlab.engine_source import SourceError, read_source


class _Page(BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/metrics"
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b"vllm:num_requests_running 1\n" if found else b"no")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with HTTPServer(("127.0.0.1", 0), _Page) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_page_over_http(server):
    assert read_source(f"{server}/metrics") == "vllm:num_requests_running 1\n"
    with pytest.raises(SourceError, match="answered 404"):
        read_source(f"{server}/other")


def test_nobody_there(server):
    port = int(server.rsplit(":", 1)[1])
    with pytest.raises(SourceError, match="does not answer"):
        read_source(f"http://127.0.0.1:{port}x/metrics")
    with HTTPServer(("127.0.0.1", 0), _Page) as closed:
        free = closed.server_port
    with pytest.raises(SourceError, match="does not answer"):
        read_source(f"http://127.0.0.1:{free}/metrics")


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://192.0.2.1/log", "://x"])
def test_only_http_is_fetched(url):
    with pytest.raises(SourceError, match="Only http and https"):
        read_source(url)


def test_a_url_that_is_none():
    with pytest.raises(SourceError, match="is not a URL"):
        read_source("http://[broken")


def test_files_in_several_encodings(tmp_path):
    file = tmp_path / "log"
    for content in (b"caf\xc3\xa9", b"\xef\xbb\xbfcaf\xc3\xa9", "café".encode("utf-16")):
        file.write_bytes(content)
        assert read_source(str(file)) == "café"
    file.write_bytes(b"\xff\x00\xf0 GPU")
    assert read_source(str(file)).endswith(" GPU")


def test_no_such_file(tmp_path):
    with pytest.raises(SourceError, match="There is no file"):
        read_source(str(tmp_path / "none.log"))
    with pytest.raises(SourceError, match="is a folder"):
        read_source(str(tmp_path))
    with pytest.raises(SourceError, match="cannot be read"):
        read_source("a\x00b")
