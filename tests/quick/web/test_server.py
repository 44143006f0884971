"""The server of pages: on loopback, read-only, and only by the names of this machine."""

from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest

from harness.model import UsageError
from harness.web.server import Answer, Query, Server, is_own


def answers(path: str, query: Query) -> Answer | None:
    if path == "/pieces":
        return Answer(iter((b"one ", b"two")), "text/plain")
    known = path.startswith("/here")
    return Answer(f"{path} {dict(query)}".encode(errors="surrogateescape"), "text/plain") if known else None


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answers) as server:
        yield server


def asked(server: Server, path: str, method: str = "GET", host: str | None = None) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response, text


def test_a_page_gets_its_path_and_its_query(server: Server) -> None:
    response, text = asked(server, "/here%20now?engine=spark")
    assert (response.status, text) == (200, "/here now {'engine': 'spark'}")
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_a_name_that_is_no_text_keeps_its_bytes(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("GET", "/here/%FF")
    assert connection.getresponse().read() == b"/here/\xff {}"
    connection.close()


def test_an_answer_in_pieces_ends_when_they_end(server: Server) -> None:
    assert asked(server, "/pieces")[1] == "one two"


def test_a_head_has_no_body(server: Server) -> None:
    response, text = asked(server, "/here", "HEAD")
    assert (response.status, text) == (200, "")


def test_an_unknown_page_is_404(server: Server) -> None:
    assert asked(server, "/elsewhere")[0].status == 404


def test_half_an_address_is_refused(server: Server) -> None:
    assert asked(server, "http://[/here", host="127.0.0.1")[0].status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server: Server, method: str) -> None:
    assert asked(server, "/here", method)[0].status == 501


def test_a_foreign_name_for_this_machine_is_refused(server: Server) -> None:
    response, text = asked(server, "/here", host="example.com")
    assert (response.status, "127.0.0.1" in text) == (403, True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost:1234"])
def test_names_of_loopback_are_own(host: str) -> None:
    assert is_own(host)


@pytest.mark.parametrize("host", ["", "localhost.example.com", "127.0.0.1.nip.io:80", "[::1]:80", ":80"])
def test_other_names_are_not(host: str) -> None:
    assert not is_own(host)


def test_a_port_that_is_taken_is_said(server: Server) -> None:
    with pytest.raises(UsageError, match=f"port {server.port} .*in use"):
        Server(answers, server.port)
