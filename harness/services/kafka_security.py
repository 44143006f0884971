"""Translates the security settings of an external Kafka from one properties file for every client.

The file is one that users already have: Java's client.properties, or the same in librdkafka's spelling. Each setting is
parsed once and then written for three clients (librdkafka, kafka-python, Java), so that the generator, the control
plane and the engine get the same settings. A key that not all three support is refused.
"""

from __future__ import annotations

import base64
import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.model import VARIABLE, KafkaAddress, UsageError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# Key -> our name. Several spellings share a name.
KEYS = {
    "bootstrap.servers": "bootstrap",
    "security.protocol": "protocol",
    "sasl.mechanism": "mechanism",
    "sasl.mechanisms": "mechanism",
    "sasl.username": "username",
    "sasl.password": "password",
    "sasl.jaas.config": "jaas",
    "ssl.ca.location": "ca",
    "ssl.truststore.location": "ca",
    "ssl.truststore.type": "truststore_type",
    "ssl.certificate.location": "certificate",
    "ssl.key.location": "key",
    "ssl.keystore.location": "keystore",
    "ssl.keystore.type": "keystore_type",
    "ssl.key.password": "key_password",
    "ssl.endpoint.identification.algorithm": "endpoint_check",
}
# Keys that only the Java client supports, and their replacements.
ONLY_JAVA = {
    "ssl.truststore.password": "a PEM file of CAs has no password: leave it out",
    "ssl.keystore.password": "give the password of the private key as ssl.key.password",
    "ssl.truststore.certificates": "write the certificates to a file and name it with ssl.ca.location",
    "ssl.keystore.certificate.chain": "write the chain to a file and name it with ssl.certificate.location",
    "ssl.keystore.key": "write the key to a file and name it with ssl.key.location",
}
TO_PEM = (
    "convert it: keytool -importkeystore -srckeystore {file} -destkeystore store.p12 -deststoretype PKCS12, then "
    "openssl pkcs12 -in store.p12 -out store.pem, and name store.pem with the type PEM"
)
LAST_PORT = 65_535
_SERVER = re.compile(r"([^\s:/\[\]@]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
_PBES2 = bytes.fromhex("2a864886f70d01050d")  # its object identifier, 1.2.840.113549.1.5.13


@dataclass(frozen=True)
class Security:
    """The parsed settings."""

    protocol: str
    mechanism: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    check_host: bool = True

    @property
    def tls(self) -> bool:
        return self.protocol.endswith("SSL")

    def librdkafka(self) -> dict[str, str]:
        said = {
            "sasl.mechanisms": self.mechanism,
            "sasl.username": self.username,
            "sasl.password": self.password,
            "ssl.ca.location": self.ca,
            "ssl.certificate.location": self.certificate,
            "ssl.key.location": self.key,
            "ssl.key.password": self.key_password,
            "ssl.endpoint.identification.algorithm": ("https" if self.check_host else "none") if self.tls else "",
        }
        return {"security.protocol": self.protocol} | _without_empty(said)

    def kafka_python(self) -> dict[str, Any]:
        said = {
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.username,
            "sasl_plain_password": self.password,
            "ssl_cafile": self.ca,
            "ssl_certfile": self.certificate,
            "ssl_keyfile": self.key,
            "ssl_password": self.key_password,
        }
        check = {"ssl_check_hostname": self.check_host} if self.tls else {}
        return {"security_protocol": self.protocol} | _without_empty(said) | check

    def java(self) -> dict[str, str]:
        said = {
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": self._jaas() if self.mechanism else "",
            "ssl.truststore.location": self.ca,
            "ssl.truststore.type": "PEM" if self.ca else "",
            "ssl.key.password": self.key_password,
        }
        check = {"ssl.endpoint.identification.algorithm": "https" if self.check_host else ""} if self.tls else {}
        return {"security.protocol": self.protocol} | _without_empty(said) | self._java_identity() | check

    def _java_identity(self) -> dict[str, str]:
        """Java requires chain and key in one file, or as text."""
        if not self.certificate:
            return {}
        if self.certificate == self.key:
            return {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.key}
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(self.certificate).read_text(),
            "ssl.keystore.key": Path(self.key).read_text(),
        }

    def _jaas(self) -> str:
        username, password = (text.replace("\\", "\\\\").replace('"', '\\"') for text in (self.username, self.password))
        return f'{MECHANISMS[self.mechanism]} required username="{username}" password="{password}";'


class _Said(dict[str, str]):
    """The file's settings by our names, with the user's spelling of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.spelled: dict[str, str] = {}

    def key(self, name: str, usual: str) -> str:
        return self.spelled.get(name, usual)


def _is_server(text: str) -> bool:
    found = _SERVER.fullmatch(text)
    return found is not None and 1 <= int(found[2]) <= LAST_PORT


def external(bootstrap: str, file: Path | None) -> KafkaAddress:
    """Return the address of an external Kafka: --kafka or the file of --kafka-config may name the servers."""
    said = _read(file) if file else _Said()
    servers = bootstrap or said.pop("bootstrap", "")
    if not servers:
        raise UsageError(f"{file} names no servers: add bootstrap.servers=HOST:PORT to it, or give --kafka HOST:PORT.")
    said.pop("bootstrap", "")
    if wrong := [server for server in servers.split(",") if not _is_server(server)]:
        raise UsageError(
            f"The Kafka server {wrong[0]!r} is not HOST:PORT, with a port from 1 to {LAST_PORT}. Several are "
            "HOST:PORT,HOST:PORT, no blanks."
        )
    if file is None:
        return KafkaAddress(servers, external=True)
    security = _understand(said, file)
    return KafkaAddress(
        servers,
        external=True,
        librdkafka=security.librdkafka(),
        kafka_python=security.kafka_python(),
        java=security.java(),
    )


def expand(text: str, where: str, encode: Callable[[str], str] = str) -> str:
    """Replace every `${env:NAME}` by that variable of the environment."""

    def value_of(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise UsageError(
                f"{where} uses ${{env:{match[1]}}}, but the environment variable {match[1]} is not set. Set it."
            )
        return encode(os.environ[match[1]])

    return VARIABLE.sub(value_of, text)


def parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Parse a Java properties file: comments, continued lines, escapes, `=`, `:` or a blank between."""
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\\s=:])*)\s*[=:]?\s*(.*)", line)
        assert match
        yield _unescape(match[1]), _unescape(match[2])


def _logical_lines(text: str) -> Iterator[str]:
    """Drop comments; join a line that ends in an unescaped backslash with the next one."""
    begun = ""
    for line in text.split("\n"):
        stripped = line.lstrip(" \t\f")
        if not begun and (not stripped or stripped[0] in "#!"):
            continue
        begun += stripped
        if (len(begun) - len(begun.rstrip("\\"))) % 2:
            begun = begun[:-1]
        else:
            yield begun
            begun = ""
    if begun:
        yield begun


def _read(file: Path) -> _Said:
    """Return the settings by our names. Values are expanded; JAAS is expanded later, after parsing."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"The file of --kafka-config, {file}, cannot be read: {reason}.") from None
    said = _Said()
    for key, raw in parse_properties(text):
        name = _name_of(key, file)
        value = raw.strip() if name == "jaas" else expand(raw.strip(), f"{key} in {file}")
        if said.get(name, value) != value:
            raise UsageError(
                f"{file} sets {said.spelled[name]} and {key}, which are the same setting, to different values. "
                f"Leave one of them out."
            )
        said[name], said.spelled[name] = value, key
    return said


def _name_of(key: str, file: Path) -> str:
    if key in KEYS:
        return KEYS[key]
    if key in ONLY_JAVA:
        raise UsageError(f"{file}: {key} works only in Java clients, but all clients need it: {ONLY_JAVA[key]}.")
    near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.0)[0]
    raise UsageError(
        f"{file}: {key} is not a setting that every client supports. The nearest supported one is {near}. "
        f"Allowed are {', '.join(KEYS)}."
    )


def _understand(said: _Said, file: Path) -> Security:
    protocol = _one_of(said.get("protocol", "PLAINTEXT"), PROTOCOLS, "security.protocol", file)
    _refuse_what_is_not_used(said, protocol, file)
    certificate, key = _identity(said, file)
    login = _login(said, file) if protocol.startswith("SASL") else {}
    check = _one_of(
        said.get("endpoint_check") or "none", ("https", "none"), "ssl.endpoint.identification.algorithm", file
    )
    return Security(
        protocol,
        ca=_pem(said.get("ca", ""), said.get("truststore_type", ""), said.key("ca", "ssl.ca.location"), file),
        certificate=certificate,
        key=key,
        key_password=said.get("key_password", ""),
        check_host="endpoint_check" not in said or check == "https",
        **login,
    )


def _refuse_what_is_not_used(said: _Said, protocol: str, file: Path) -> None:
    """A password that is set but not sent is a mistake, and perhaps a dangerous one."""
    spelled = said.spelled.values()
    unused = [key for key in spelled if key.startswith("ssl.") and "SSL" not in protocol]
    unused += [key for key in spelled if key.startswith("sasl.") and "SASL" not in protocol]
    if unused:
        raise UsageError(
            f"{file} sets {unused[0]}, but with security.protocol={protocol} it is not used. "
            f"Set security.protocol to one of {', '.join(PROTOCOLS)} that uses it, or leave it out."
        )


def _login(said: _Said, file: Path) -> dict[str, str]:
    module, jaas = _parse_jaas(said.get("jaas", ""), file)
    username, password = (said.get(name) or jaas.get(name, "") for name in ("username", "password"))
    mechanism = said.get("mechanism") or ("PLAIN" if module == MECHANISMS["PLAIN"] else "")
    mechanism = _one_of(mechanism, tuple(MECHANISMS), said.key("mechanism", "sasl.mechanism"), file)
    if module and module != MECHANISMS[mechanism]:
        raise UsageError(f"{file}: sasl.jaas.config names {module}, but {mechanism} needs {MECHANISMS[mechanism]}.")
    if not username or not password:
        where = "username and password in sasl.jaas.config" if module else "sasl.username and sasl.password"
        raise UsageError(f"{file}: {mechanism} needs a user and a password: set {where}.")
    return {"mechanism": mechanism, "username": username, "password": password}


def _parse_jaas(text: str, file: Path) -> tuple[str, dict[str, str]]:
    if not text:
        return "", {}
    match = re.fullmatch(r"([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", text, re.DOTALL)
    if not match:
        raise UsageError(f'{file}: sasl.jaas.config should read: MODULE required username="..." password="...";')
    pairs = re.findall(r"""(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""", match[2])
    plain = {name: re.sub(r"\\(.)", r"\1", raw[1:-1]) if raw[0] in "\"'" else raw for name, raw in pairs}
    return match[1], {name: expand(value, f"sasl.jaas.config in {file}") for name, value in plain.items()}


def _identity(said: _Said, file: Path) -> tuple[str, str]:
    """Return the client's certificate and private key: two PEM files, or one that holds both."""
    both = _pem(said.get("keystore", ""), said.get("keystore_type", ""), "ssl.keystore.location", file)
    certificate = _pem(said.get("certificate", "") or both, "PEM", "ssl.certificate.location", file)
    key = _pem(said.get("key", "") or both, "PEM", "ssl.key.location", file)
    if bool(certificate) != bool(key):
        raise UsageError(f"{file}: a client certificate needs both ssl.certificate.location and ssl.key.location.")
    if key:
        _refuse_key_that_java_cannot_read(key, file)
    return certificate, key


def _refuse_key_that_java_cannot_read(key: str, file: Path) -> None:
    """Java reads PKCS#8 only, and no key encrypted with PBES2, the default of openssl."""
    text = Path(key).read_text(errors="replace")
    match = re.search(r"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----\s*([^-]*)-----END", text)
    if not match:
        raise UsageError(
            f"{file}: {key} holds no private key as PKCS#8: openssl pkcs8 -topk8 -nodes -in {key} makes one."
        )
    if match[1] and _PBES2 in base64.b64decode(match[2]):
        raise UsageError(
            f"{file}: {key} is encrypted with PBES2, which Kafka's Java client can't read. `openssl pkcs8 -topk8 "
            f"-v1 PBE-SHA1-3DES -in {key}` encrypts it in a way that it can."
        )


def _pem(location: str, kind: str, key: str, file: Path) -> str:
    """Return the absolute path of a readable PEM file; "" stays ""."""
    if not location:
        return ""
    try:
        is_pem = b"-----BEGIN " in Path(location).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {key} is {location}, which cannot be read: {error.strerror}.") from None
    if not is_pem or kind not in ("", "PEM"):
        what = "of type " + kind if kind not in ("", "PEM") else "not a PEM file"
        raise UsageError(
            f"{file}: {key}, {location}, is {what}, but only PEM works in every client: {TO_PEM.format(file=location)}."
        )
    return str(Path(location).absolute())


def _one_of(value: str, allowed: tuple[str, ...], key: str, file: Path) -> str:
    """The error does not quote the value: a value at the wrong key may be a password."""
    found = {each.lower(): each for each in allowed}.get(value.lower())
    if found is None:
        raise UsageError(
            f"{file}: {key} must be one of {', '.join(allowed)}, and is {'something else' if value else 'not set'}."
        )
    return found


def _unescape(text: str) -> str:
    special = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
    plain = re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else special.get(match[2], match[2]),
        text,
    )
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # Java writes surrogate pairs


def _without_empty(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if value}
