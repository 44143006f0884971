"""Turn errors of Kafka, Redis and their clients into one sentence with advice. Classes are matched by name, so that no
client has to be imported. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.util.texts import shown

LONGEST = 300
PREFIX = re.compile(r"^[A-Z]{3,}(?=\s)")  # the error code that begins a reply of Redis
MANUAL = "docs/test/own-kafka-and-redis.md"
# Advice by the error code of Redis. REDIS_CLASSES maps the client's exception classes to these codes.
REDIS: Mapping[str, str] = {
    "NOPERM": f"grant it with ACL SETUSER, {MANUAL} has the command to copy; a user who may only write keys that begin "
    "with some text needs --redis-prefix",
    "NOAUTH": "put user and password into the address",
    "WRONGPASS": "check user and password in the address",
    "READONLY": "this server is a replica, so name the primary",
    "MASTERDOWN": "this server is a replica that has lost its primary, so name the primary",
    "OOM": "raise maxmemory, or name another server",
    "MISCONF": "the server can't save its data to disk, so check its log",
    "NOREPLICAS": "start the replicas that min-replicas-to-write requires",
    "LOADING": "wait until the server has read its data from disk",
    "CLUSTERDOWN": "a cluster is not supported, so name a server without cluster mode",
    "MOVED": "a cluster is not supported, so name a server without cluster mode",
    "CROSSSLOT": "a cluster is not supported, so name a server without cluster mode",
}
REDIS_CLASSES: Mapping[str, str] = {
    "NoPermissionError": "NOPERM",
    "AuthenticationWrongNumberOfArgsError": "NOAUTH",
    "AuthenticationError": "WRONGPASS",
    "AuthorizationError": "NOPERM",
    "ExternalAuthProviderError": "WRONGPASS",
    "ReadOnlyError": "READONLY",
    "MasterDownError": "MASTERDOWN",
    "OutOfMemoryError": "OOM",
    "BusyLoadingError": "LOADING",
    "ClusterCrossSlotError": "CROSSSLOT",
    "ClusterDownError": "CLUSTERDOWN",
    "MovedError": "MOVED",
    "AskError": "MOVED",
    "TryAgainError": "MOVED",
    "RedisClusterException": "MOVED",
    "ClusterError": "MOVED",
}
_AUTHORIZE = f"grant the right to this user, {MANUAL} has the commands to copy"
_LOGIN = "check user, password and sasl.mechanism in the file of --kafka-config"
_REACH = "check that the server runs, that the address is right, and check its log"
KAFKA: Mapping[str, str] = {
    "AUTHORIZATION_FAILED": _AUTHORIZE,
    "SASL_AUTHENTICATION_FAILED": _LOGIN,
    "_AUTHENTICATION": _LOGIN,
    "UNSUPPORTED_SASL_MECHANISM": _LOGIN,
    "_SSL": "check ssl.ca.location in the file of --kafka-config",
    "NOT_ENOUGH_REPLICAS": "start the missing brokers, or lower min.insync.replicas",
    "MSG_SIZE_TOO_LARGE": "raise message.max.bytes of the broker",
    "RECORD_TOO_LARGE": "raise message.max.bytes of the broker",
    "THROTTLING_QUOTA_EXCEEDED": "raise the quota of this user",
    "POLICY_VIOLATION": "ask the administrator of that Kafka what its policy allows",
}


def sentence(error: BaseException) -> str:
    """Describe an error of these clients in one sentence; return "" for any other error."""
    roots = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if "redis" in roots:
        return f"Redis refused a command: {of_redis(error)}."
    if roots & {"kafka", "confluent_kafka", "cimpl"}:
        return f"Kafka refused a request: {of_kafka(error)}."
    return ""


def answer_of_redis(error: BaseException) -> str:
    """Return the error code of Redis, or "" if the error is not a reply of the server. The client may replace the code
    by an exception class."""
    if (found := PREFIX.match(str(error))) and found[0] in REDIS:
        return found[0]
    return next((word for kind in type(error).__mro__ if (word := REDIS_CLASSES.get(kind.__name__))), "")


def of_redis(error: BaseException) -> str:
    """Return the server's message and advice."""
    name = answer_of_redis(error)
    words = f"{name or type(error).__name__}: {_own_words(error).removeprefix(name).strip()}"
    return f"{words}. To try: {REDIS.get(name, _REACH)}"


def of_kafka(error: BaseException) -> str:
    """Return name and number of the Kafka protocol error, the message and advice."""
    name, number, words = _named(error)
    how = next((how for key, how in KAFKA.items() if key in name), _REACH)
    code = f", error {number}" if number is not None and number > 0 else ""
    return f"{name}{code}: {words}. To try: {how}"


def _named(error: BaseException) -> tuple[str, int | None, str]:
    inner = error.args[0] if error.args else None
    if callable(getattr(inner, "name", None)) and callable(getattr(inner, "code", None)):  # confluent_kafka
        return str(inner.name()), int(inner.code()), _short(str(inner.str()))  # type: ignore[union-attr]
    name, number = getattr(error, "message", None), getattr(error, "errno", None)  # kafka-python
    if isinstance(name, str) and isinstance(number, int):
        return name, number, _short(" ".join(map(str, error.args)) or type(error).__name__)
    return type(error).__name__, None, _own_words(error)


def _own_words(error: BaseException) -> str:
    return _short(str(error)) or "no further message"


def _short(text: str) -> str:
    return shown(" ".join(text.split()).rstrip("."), LONGEST)
