"""A user's Maven settings and proxy are read as Maven reads them, as far as they concern Maven's central repository."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from harness.install import maven_settings
from harness.install.maven_settings import MavenSettings, Mirror, Proxy
from harness.model import HarnessError


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def settings(tmp_path, text: str, **environment: str) -> MavenSettings:
    path = tmp_path / "settings.xml"
    path.write_text(text)
    return maven_settings.read(path, environment)


def mirror(of: str, name: str, more: str = "") -> str:
    return f"<mirror><id>{name}</id><mirrorOf>{of}</mirrorOf><url>http://{name}/</url>{more}</mirror>"


# ---------------------------------------------------------------- Mirrors


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("central", True),
        ("*", True),
        ("external:*", True),
        ("snapshots, central", True),
        ("*,!central", False),
        ("snapshots", False),
        ("external:http:*", False),
        ("", False),
    ],
)
def test_which_mirrors_stand_for_the_central_repository(pattern, fits):
    assert maven_settings.is_mirror_of_central(pattern) is fits


def test_a_mirror_of_exactly_this_repository_comes_before_those_of_all(tmp_path):
    text = "".join(mirror(of, name) for of, name in [("snapshots", "a"), ("*", "b"), ("external:*", "c")])
    whole = f"<settings><mirrors>{text}</mirrors></settings>"
    assert settings(tmp_path, whole).mirror == Mirror("http://b/")
    whole = f"<settings><mirrors>{text}{mirror('central', 'd')}</mirrors></settings>"
    assert settings(tmp_path, whole).mirror == Mirror("http://d/")


def test_a_blocked_mirror_is_none(tmp_path):
    blocked = mirror("*", "a", "<blocked>true</blocked>")
    assert settings(tmp_path, f"<settings><mirrors>{blocked}</mirrors></settings>").mirror is None


def test_the_account_of_a_mirror_is_that_of_the_server_with_its_id(tmp_path):
    server = "<server><id>{}</id><username>${{env.ME}}</username><password>{}</password></server>"
    text = '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><servers>{}{}</servers><mirrors>{}</mirrors></settings>'
    other, own = server.format("other", "x"), server.format("own", "${env.SECRET}")

    read = settings(tmp_path, text.format(other, own, mirror("*", "own")), ME="me", SECRET="s3cret")
    assert read.mirror == Mirror("http://own/", "me", "s3cret")
    encrypted = server.format("own", "{COQLCE6DU6GtcS5P=}")
    read = settings(tmp_path, text.format(other, encrypted, mirror("*", "own")), ME="me")
    assert read.mirror == Mirror("http://own/"), "only Maven can read that password"


def test_no_settings_and_settings_that_are_none(tmp_path):
    assert maven_settings.read(tmp_path / "none") == MavenSettings()
    assert settings(tmp_path, "<settings/>") == MavenSettings()
    with pytest.raises(HarnessError, match=r"The Maven settings in .*settings\.xml cannot be read: .*Mend that file"):
        settings(tmp_path, "<settings>")


# ---------------------------------------------------------------- Proxies


def test_the_first_active_proxy_counts(tmp_path):
    proxy = "<proxy><active>{}</active><host>{}</host><port>{}</port>{}</proxy>"
    more = "<username>me</username><password>secret</password><nonProxyHosts>localhost|*.corp</nonProxyHosts>"
    text = proxy.format("false", "off", 1, "") + proxy.format("true", "on", 3128, more)
    read = settings(tmp_path, f"<settings><proxies>{text}</proxies></settings>")

    assert read.proxy == Proxy("on", 3128, "me", "secret", "localhost|*.corp")
    assert maven_settings.java_options(read, {}) == [
        "-Dhttp.proxyHost=on",
        "-Dhttp.proxyPort=3128",
        "-Dhttps.proxyHost=on",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.corp",
        "-Dhttp.proxyUser=me",
        "-Dhttp.proxyPassword=secret",
        "-Djdk.http.auth.tunneling.disabledSchemes=",
    ]


def test_what_the_user_says_to_every_java_comes_first():
    read = MavenSettings(proxy=Proxy("on", 3128))
    assert maven_settings.java_options(read, {"JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=other"}) == []
    assert maven_settings.java_options(MavenSettings(), {}) == []


@pytest.mark.parametrize(
    ("name", "address", "proxy"),
    [
        ("HTTPS_PROXY", "http://proxy:3128", Proxy("proxy", 3128)),
        ("https_proxy", "proxy:3128", Proxy("proxy", 3128)),
        ("ALL_PROXY", "http://a%40b:c@proxy", Proxy("proxy", 80, "a@b", "c")),
        ("HTTPS_PROXY", "socks5://proxy:1080", None),
        ("HTTPS_PROXY", "", None),
    ],
)
def test_a_proxy_of_the_environment(monkeypatch, name, address, proxy):
    monkeypatch.setenv(name, address)
    assert maven_settings.proxy_in_environment() == proxy


def test_hosts_without_a_proxy_are_named_as_java_names_them(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost, .corp,")
    read = maven_settings.proxy_in_environment()
    assert read
    assert read.direct == "localhost|*.localhost|corp|*.corp"
    assert maven_settings.direct("*") == "*"


def test_an_address_that_is_none_is_said_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy:port")
    with pytest.raises(HarnessError, match=r"HTTPS_PROXY should be an address such as http://host:3128") as caught:
        maven_settings.proxy_in_environment()
    assert "secret" not in str(caught.value)


# ---------------------------------------------------------------- Realms


@pytest.fixture
def server() -> Iterator[str]:
    """A repository that lets nobody in whom it does not know, but for /open."""

    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200 if self.path == "/open" else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="Our jars", charset="UTF-8"')
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def test_a_mirror_is_asked_for_its_realm(server):
    assert maven_settings.realm_of(Mirror(f"{server}/all", "me", "secret")) == "Our jars"
    assert maven_settings.realm_of(Mirror(f"{server}/open", "me", "secret")) == ""
    assert maven_settings.realm_of(Mirror("http://127.0.0.1:1/none")) == "", "Ivy says why it did not reach it"


def test_a_mirror_that_wants_an_account_and_gets_none_is_named(server):
    with pytest.raises(HarnessError, match=r"The Maven mirror .*/all asks for a user name and a password, and .*\.m2"):
        maven_settings.realm_of(Mirror(f"{server}/all"))
