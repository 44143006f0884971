"""Reads a user's Maven settings and proxy for Ivy, which reads neither.

From `~/.m2/settings.xml` come the mirror of the central repository, its account, and the first active proxy. Without
such a proxy the usual variables name it: HTTPS_PROXY, ALL_PROXY, NO_PROXY. What JAVA_TOOL_OPTIONS says to every Java
takes precedence. Standard library only, because the launcher uses this before anything is installed.
"""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from harness.model import HarnessError

CENTRAL = "central"
JAVAS_OWN_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
REALM_DEADLINE_S = 20


@dataclass(frozen=True)
class Mirror:
    """A repository in the place of Maven's central one. Encrypted passwords count as none: only Maven can read them."""

    url: str
    username: str = ""
    password: str = ""


@dataclass(frozen=True)
class Proxy:
    """A proxy for HTTP. `direct` lists the hosts that are reached without it, in Java's notation."""

    host: str
    port: int
    username: str = ""
    password: str = ""
    direct: str = ""


@dataclass(frozen=True)
class MavenSettings:
    """The parts of a settings.xml that matter for fetching artifacts."""

    mirror: Mirror | None = None
    proxy: Proxy | None = None


def user_settings() -> Path:
    return Path(os.path.expanduser("~")) / ".m2" / "settings.xml"  # noqa: PTH111 - Path.home() raises without a home


def read(path: Path, environment: Mapping[str, str] = os.environ) -> MavenSettings:
    """Read a settings.xml; a user without one has no settings."""
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except FileNotFoundError:
        return MavenSettings()
    except (OSError, ElementTree.ParseError) as error:
        raise HarnessError(
            f"The Maven settings in {path} cannot be read: {error}. Mend that file, which names the mirror and the "
            "proxy for JVM artifacts, or move it away."
        ) from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # the namespace differs between versions of Maven
    return MavenSettings(_mirror(root, environment), _proxy(root, environment))


def _text(element: ElementTree.Element, name: str, environment: Mapping[str, str]) -> str:
    """Return the text of a child, with `${env.NAME}` and `${user.home}` replaced."""
    text = (element.findtext(name) or "").strip()
    text = re.sub(r"\$\{env\.([^}]+)\}", lambda match: environment.get(match[1], match[0]), text)
    return text.replace("${user.home}", str(user_settings().parent.parent))


def _mirror(root: ElementTree.Element, environment: Mapping[str, str]) -> Mirror | None:
    """Return the mirror that Maven would use: one of exactly this repository, else the first with a pattern for it."""
    mirrors = [each for each in root.iterfind("mirrors/mirror") if each.findtext("blocked", "").strip() != "true"]
    exact = [each for each in mirrors if _text(each, "mirrorOf", environment) == CENTRAL]
    suited = exact or [each for each in mirrors if is_mirror_of_central(_text(each, "mirrorOf", environment))]
    if not suited:
        return None
    url, name = _text(suited[0], "url", environment), _text(suited[0], "id", environment)
    for server in root.iterfind("servers/server"):
        password = _text(server, "password", environment)
        if _text(server, "id", environment) == name and not _is_encrypted(password):
            return Mirror(url, _text(server, "username", environment), password)
    return Mirror(url)


def is_mirror_of_central(pattern: str) -> bool:
    """Evaluate a mirrorOf, such as `*`, `external:*` or `*,!central`."""
    names = {name.strip() for name in pattern.split(",")}
    return f"!{CENTRAL}" not in names and bool(names & {"*", "external:*", CENTRAL})


def _is_encrypted(password: str) -> bool:
    return re.fullmatch(r".*\{.+\}.*", password) is not None and "${" not in password


def _proxy(root: ElementTree.Element, environment: Mapping[str, str]) -> Proxy | None:
    for proxy in root.iterfind("proxies/proxy"):
        if (_text(proxy, "active", environment) or "true") == "true" and _text(proxy, "host", environment):
            port, password = _text(proxy, "port", environment), _text(proxy, "password", environment)
            return Proxy(
                _text(proxy, "host", environment),
                int(port) if port.isdecimal() else 8080,
                _text(proxy, "username", environment),
                "" if _is_encrypted(password) else password,
                _text(proxy, "nonProxyHosts", environment),
            )
    return None


# ---------------------------------------------------------------- Proxies of the environment


def proxy_in_environment() -> Proxy | None:
    """Return the proxy that HTTPS_PROXY or ALL_PROXY names. Lower-case names count too, and before the others."""
    named = urllib.request.getproxies_environment()
    address = named.get("https") or named.get("all") or ""
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if not address or not parts.hostname or not parts.scheme.startswith("http"):
        return None
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise HarnessError(f"HTTPS_PROXY should be an address such as http://host:3128: {error}.") from error
    return Proxy(
        parts.hostname, port, unquote(parts.username or ""), unquote(parts.password or ""), direct(named.get("no", ""))
    )


def direct(no_proxy: str) -> str:
    """Translate NO_PROXY for Java: a name there also stands for all names that end with it."""
    hosts: list[str] = []
    for name in filter(None, (each.strip() for each in no_proxy.split(","))):
        hosts += ["*"] if name == "*" else [name.lstrip("."), f"*.{name.lstrip('.')}"]
    return "|".join(hosts)


def java_options(settings: MavenSettings, environment: Mapping[str, str]) -> list[str]:
    """Return the options with which a Java uses the user's proxy."""
    if any("roxyHost" in environment.get(name, "") for name in JAVAS_OWN_OPTIONS):
        return []
    proxy = settings.proxy or proxy_in_environment()
    if proxy is None:
        return []
    options = [f"-D{scheme}.proxy{what}" for scheme in ("http", "https") for what in _address(proxy)]
    if proxy.direct:
        options.append(f"-Dhttp.nonProxyHosts={proxy.direct}")
    if proxy.username:  # Java sends no password through a tunnel unless it may
        options += [f"-Dhttp.proxyUser={proxy.username}", f"-Dhttp.proxyPassword={proxy.password}"]
        options.append("-Djdk.http.auth.tunneling.disabledSchemes=")
    return options


def _address(proxy: Proxy) -> tuple[str, str]:
    return f"Host={proxy.host}", f"Port={proxy.port}"


# ---------------------------------------------------------------- Accounts of mirrors


def realm_of(mirror: Mirror) -> str:
    """Ask a mirror for the realm of its accounts, which Ivy needs and Maven's settings lack; "" if it asks for none."""
    try:
        with urllib.request.urlopen(urllib.request.Request(mirror.url, method="HEAD"), timeout=REALM_DEADLINE_S):
            return ""
    except urllib.error.HTTPError as answer:
        with answer:
            asked = re.search(r'(?i)\bbasic\b.*?\brealm="([^"]*)"', answer.headers.get("WWW-Authenticate") or "")
    except (OSError, ValueError):  # Ivy itself will fail with a reason
        return ""
    if asked and not mirror.username:
        raise HarnessError(
            f"The Maven mirror {mirror.url} asks for a user name and a password, and {user_settings()} has none that "
            "can be read for it: a server with the mirror's id, and no encrypted password. Add them there."
        )
    return asked[1] if asked else ""
