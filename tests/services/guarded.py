"""Servers as others run them: a Kafka with logins, TLS and ACLs, a Redis with users, TLS, a replica, too little memory.

Made on the spot, with certificates of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import redis
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    UserScramCredentialUpsertion,
)
from kafka.protocol.admin import AlterClientQuotasRequest, IncrementalAlterConfigsRequest

from harness.services import kafka
from harness.services.addresses import free_ports
from harness.services.kafka import EmbeddedKafka

PASSWORD = "wonder-land"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PREFIX = "streamgauge-"
BROKER, SET, UNSET = 4, 0, 1  # numbers of Kafka's protocol
TOPIC, GROUP, TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
# What docs/test/own-kafka-and-redis.md grants.
RIGHTS = (
    *((TOPIC, each) for each in ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "WRITE", "READ", "DELETE")),
    *((GROUP, each) for each in ("READ", "DESCRIBE", "DELETE")),
    *((TRANSACTION, each) for each in ("WRITE", "DESCRIBE")),
)


class GuardedKafka(EmbeddedKafka):
    """A broker whose port `door` wants TLS and SCRAM, and asks an authorizer. By its plain port everything is allowed:
    that is the administrator's."""

    def __init__(self, folder: Path, jars: Path, java: Path) -> None:
        super().__init__(folder, jars, java, heap="512m")
        (self.door,) = free_ports(1)
        self.folder = folder
        certificates(folder)

    def properties(self, broker_port: int, controller_port: int) -> dict[str, str]:
        plain = super().properties(broker_port, controller_port)
        return plain | {
            "listeners": f"{plain['listeners']},GUARDED://127.0.0.1:{self.door}",
            "advertised.listeners": f"{plain['advertised.listeners']},GUARDED://127.0.0.1:{self.door}",
            "listener.security.protocol.map": f"{plain['listener.security.protocol.map']},GUARDED:SASL_SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.guarded.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "server.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.door}"

    def user(self, name: str, without: tuple[tuple[ResourceType, str], ...] = ()) -> Path:
        """A user with all rights but these; returns its file for --kafka-config."""
        with kafka._admin(self.address, "users") as admin:
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, "SCRAM-SHA-256", PASSWORD)])
            admin.create_acls([_acl(name, *right) for right in RIGHTS if right not in without])
        file = self.folder / f"{name}.properties"
        file.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n"
            f"sasl.username={name}\nsasl.password=${{env:TEST_PASSWORD}}\nssl.ca.location={self.folder}/ca.crt\n"
        )
        return file

    def allow(self, name: str, *rights: tuple[ResourceType, str]) -> None:
        with kafka._admin(self.address, "rights") as admin:
            admin.create_acls([_acl(name, *right) for right in rights])

    def deny(self, name: str, *rights: tuple[ResourceType, str]) -> None:
        """Take rights away from a user."""
        with kafka._admin(self.address, "rights") as admin:
            admin.create_acls([_acl(name, *right, ACLPermissionType.DENY) for right in rights])

    def limit(self, name: str, **quotas: float) -> None:
        """Quotas of a user, such as producer_byte_rate."""
        request, part = AlterClientQuotasRequest, AlterClientQuotasRequest.EntryData
        entity = [part.EntityData(entity_type="user", entity_name=name)]
        ops = [part.OpData(key=key, value=value, remove=False) for key, value in quotas.items()]
        with kafka._admin(self.address, "quotas") as admin:
            entries = [part(entity=entity, ops=ops)]
            admin._manager.run(admin._send_request_to_controller, request(entries=entries, validate_only=False))

    @contextmanager
    def set(self, **settings: str) -> Iterator[None]:
        """Settings of the whole cluster while inside, with underscores for points."""
        self._alter({key.replace("_", "."): value for key, value in settings.items()}, SET)
        yield
        self._alter({key.replace("_", "."): None for key in settings}, UNSET)

    def _alter(self, settings: Mapping[str, str | None], kind: int) -> None:
        """Of no broker by number: both clients refuse that."""
        part = IncrementalAlterConfigsRequest.AlterConfigsResource
        configs = [
            part.AlterableConfig(name=key, config_operation=kind, value=value) for key, value in settings.items()
        ]
        resource = part(resource_type=BROKER, resource_name="", configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        with kafka._admin(self.address, "settings") as admin:
            answer = admin._manager.run(admin._send_request_to_controller, request)
        assert not answer.responses[0].error_code, answer


def _acl(user: str, what: ResourceType, operation: str, kind: ACLPermissionType = ACLPermissionType.ALLOW) -> ACL:
    pattern = ResourcePattern(what, PREFIX, ACLResourcePatternType.PREFIXED)
    return ACL(f"User:{user}", "*", ACLOperation[operation], kind, pattern)


def certificates(folder: Path) -> None:
    """An authority, a server that it vouches for, and an authority that vouches for nobody here."""
    folder.mkdir(parents=True, exist_ok=True)
    for authority in ("ca", "stranger"):
        _openssl(
            folder,
            f"req -x509 -newkey rsa:2048 -nodes -keyout {authority}.key -out {authority}.crt -days 2 -subj /CN=any",
        )
    _openssl(folder, "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=server")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    _openssl(
        folder, "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.crt"
    )
    (folder / "server.pem").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())


def _openssl(folder: Path, arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments.split()], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# What docs/test/own-kafka-and-redis.md grants.
REDIS_RIGHTS = "~* -@all +@read +@write +@transaction +@connection +@scripting -@dangerous +select +info"


def redis_user(admin: redis.Redis, *rules: str, name: str = "alice") -> None:
    """A user with all rights that are documented, and these rules on top."""
    admin.execute_command("ACL", "SETUSER", name, "reset", "on", f">{PASSWORD}", *REDIS_RIGHTS.split(), *rules)
