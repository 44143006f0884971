"""--kafka-config against a real broker that asks for passwords and certificates, from all clients it is meant for."""

from __future__ import annotations

import gc
import logging
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Place
from kafka.admin import UserScramCredentialUpsertion

from generators.schedule import Schedule
from harness.load.workers import WorkersLoad
from harness.model import HarnessError, KafkaAddress
from harness.services import kafka, kafka_admin
from harness.services.addresses import free_ports
from harness.services.kafka import EmbeddedKafka
from harness.services.kafka_security import external
from harness.util.clock import Clock
from tests.services.test_load import SPEC, TAPE, sent
from tests.services.test_load_workers import worker

if not shutil.which("openssl"):
    pytest.skip(
        "NOT TESTED: TLS and passwords, as there is no openssl to make certificates with", allow_module_level=True
    )

PASSWORD = 'won"der\\land'
ESCAPED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class SecuredKafka(EmbeddedKafka):
    """A broker with more doors: PASSWORD (SASL), BOTH (SASL and TLS), CERTIFICATE (TLS, both sides)."""

    def __init__(self, folder: Path, jars: Path, java: Path, certificates: Path) -> None:
        super().__init__(folder, jars, java, heap="512m")
        self.certificates = certificates
        self.doors = dict(zip(("PASSWORD", "BOTH", "CERTIFICATE"), free_ports(3), strict=True))

    def properties(self, broker_port: int, controller_port: int) -> dict[str, str]:
        plain = super().properties(broker_port, controller_port)
        doors = "".join(f",{name}://127.0.0.1:{port}" for name, port in self.doors.items())
        return plain | {
            "listeners": plain["listeners"] + doors,
            "advertised.listeners": plain["advertised.listeners"] + doors,
            "listener.security.protocol.map": plain["listener.security.protocol.map"]
            + ",PASSWORD:SASL_PLAINTEXT,BOTH:SASL_SSL,CERTIFICATE:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            **{
                f"listener.name.{door}.plain.sasl.jaas.config": _in_a_file(
                    f'{PLAIN} required username="x" password="x" user_alice="{ESCAPED}";'
                )
                for door in ("password", "both")
            },
            **{
                f"listener.name.{door}.scram-sha-{bits}.sasl.jaas.config": f"{SCRAM} required;"
                for door in ("password", "both")
                for bits in (256, 512)
            },
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates / "ca.crt"),
            "listener.name.certificate.ssl.client.auth": "required",
        }


def _in_a_file(value: str) -> str:
    """As a value of a properties file, in which a backslash is doubled."""
    return value.replace("\\", "\\\\")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory):
    """An authority, a server and a client that it vouches for, and an authority that vouches for nobody here."""
    folder = tmp_path_factory.mktemp("certificates")
    for authority in ("ca", "stranger"):
        _openssl(
            folder,
            f"req -x509 -newkey rsa:2048 -nodes -keyout {authority}.key -out {authority}.crt -days 2 -subj /CN=any",
        )
    for name in ("server", "client"):
        _openssl(folder, f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}")
        (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
        _openssl(
            folder,
            f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san -out {name}.crt",
        )
        (folder / f"{name}.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    _openssl(folder, "pkcs8 -topk8 -in client.key -out locked.key -v1 PBE-SHA1-3DES -passout pass:sesame")
    return folder


def _openssl(folder: Path, arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments.split()], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, jars: Path, java: Path, certificates: Path):
    server = SecuredKafka(tmp_path_factory.mktemp("secured"), jars, java, certificates)
    address = server.start()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        user = UserScramCredentialUpsertion("alice", mechanism, PASSWORD)
        with kafka._admin(address, "users") as admin:
            assert admin.alter_user_scram_credentials([user]) == {"alice": None}
    kafka.create_topic(address, "guarded", 1)
    yield server
    server.stop()


def doors(folder: Path) -> dict[str, tuple[str, str]]:
    """Name -> the door it is for, and what the user's file says."""
    jaas = _in_a_file(f'{PLAIN} required username="alice" password="{ESCAPED}";')
    login = "sasl.username=alice\nsasl.password=${env:TEST_PASSWORD}\n"
    ca = f"ssl.ca.location={folder}/ca.crt\n"
    return {
        "plain, Java's spelling": (
            "PASSWORD",
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n",
        ),
        "scram 256, librdkafka's spelling": (
            "PASSWORD",
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=SCRAM-SHA-256\n{login}",
        ),
        "scram 512 and TLS": ("BOTH", f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n{login}{ca}"),
        "plain and TLS, Java's spelling": (
            "BOTH",
            f"security.protocol=SASL_SSL\nsasl.jaas.config={jaas}\nssl.truststore.type=PEM\n"
            f"ssl.truststore.location={folder}/ca.crt\nssl.endpoint.identification.algorithm=\n",
        ),
        "certificate in one file": (
            "CERTIFICATE",
            f"security.protocol=SSL\n{ca}ssl.keystore.type=PEM\nssl.keystore.location={folder}/client.pem\n",
        ),
        "certificate in two files, key locked": (
            "CERTIFICATE",
            f"security.protocol=SSL\n{ca}ssl.certificate.location={folder}/client.crt\n"
            f"ssl.key.location={folder}/locked.key\nssl.key.password=sesame\n",
        ),
    }


@pytest.fixture
def address_of(broker, certificates, tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)

    def read(door: str, text: str) -> KafkaAddress:
        file = tmp_path / "client.properties"
        file.write_text(text)
        return external(f"127.0.0.1:{broker.doors[door]}", file)

    return read


@pytest.mark.parametrize("name", doors(Path()))
def test_all_python_clients_get_through(address_of, certificates, name):
    address = address_of(*doors(certificates)[name])
    before = kafka.end_offsets(address, "guarded")[0]
    settings = {"bootstrap.servers": address.bootstrap, **address.librdkafka}
    producer = Producer(settings)
    producer.produce("guarded", b"from confluent", partition=0)
    assert producer.flush(20) == 0
    with KafkaProducer(bootstrap_servers=address.bootstrap, **address.kafka_python) as other:
        other.send("guarded", b"from kafka-python", partition=0).get(20)
    sent = [b"from confluent", b"from kafka-python"]
    assert kafka.end_offsets(address, "guarded") == {0: before + 2}
    assert read_with_confluent(settings, before) == sent
    assert read_with_kafka_python(address, before) == sent


@pytest.fixture
def run(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", ["confluent", "kafka-python"])
def test_load_workers_get_through(client, broker, address_of, certificates, run, tmp_path):
    """Each by a file of its own. No password is in the run."""
    kafka.create_topic(broker.address, client, TAPE.partitions)
    load = WorkersLoad(replace(SPEC, client=client, workers=2), client, run, tmp_path / "private")
    (tmp_path / "private").mkdir()
    sent(load, address_of(*doors(certificates)["scram 512 and TLS"]), Clock())

    assert load.certify().acknowledged == Schedule(TAPE).total
    assert not [path for path in (run / "logs").iterdir() if PASSWORD in path.read_text()]


@pytest.mark.timeout(300)
def test_a_load_worker_that_has_no_file_of_its_own_says_so(broker, address_of, certificates, run, tmp_path):
    master = f"127.0.0.1:{free_ports(1)[0]}"
    load = WorkersLoad(replace(SPEC, workers=1, bind=master), "guarded", run, tmp_path)
    with worker(master) as elsewhere:
        load.gather()
        load.tell(address_of(*doors(certificates)["scram 512 and TLS"]))
        try:
            with pytest.raises(HarnessError, match="needs settings of the client: start the worker with --kafka-conf"):
                load.wait_ready()
        finally:
            load.stop()
        assert "start the worker with --kafka-config FILE" in elsewhere.communicate(timeout=100)[0]


def read_with_confluent(settings: Mapping[str, str], start: int) -> list[bytes | None]:
    consumer = Consumer({**settings, "group.id": "test"})
    consumer.assign([TopicPartition("guarded", 0, start)])
    messages = consumer.consume(2, timeout=20)
    consumer.close()
    return [message.value() for message in messages]


def read_with_kafka_python(address: KafkaAddress, start: int) -> list[bytes]:
    with KafkaConsumer(
        bootstrap_servers=address.bootstrap, consumer_timeout_ms=20_000, **address.kafka_python
    ) as consumer:
        consumer.assign([Place("guarded", 0)])
        consumer.seek(Place("guarded", 0), start)
        return [next(consumer).value for _ in range(2)]


def test_java_gets_through_every_door(address_of, certificates, jars, java, tmp_path):
    """What an engine is told, asked by Java itself."""
    if (
        "jdk.compiler"
        not in subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    ):
        pytest.skip("NOT TESTED: the settings for Java, as this Java cannot run a source file")
    files = []
    for number, (door, text) in enumerate(doors(certificates).values()):
        address = address_of(door, text)
        files.append(tmp_path / f"{number}.properties")
        told = {"bootstrap.servers": address.bootstrap, **address.java}
        files[-1].write_text("".join(f"{key}={_one_line(value)}\n" for key, value in told.items()))
    source = Path(__file__).with_name("Ask.java")
    command = [str(java), "-cp", f"{jars}/*", str(source), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    listed = [line.strip("[]").split(", ") for line in done.stdout.splitlines()]  # other tests have topics there, too
    assert ["guarded" in topics for topics in listed] == [True] * len(files), done.stderr[-3000:]


def _one_line(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


WRONG_PASSWORD = "sasl.mechanism=PLAIN\nsasl.username=alice\nsasl.password=wrong-secret\n"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # kafka-python forgets a socket whose handshake failed
@pytest.mark.parametrize(
    ("door", "text", "why"),
    [
        (
            "PASSWORD",
            f"security.protocol=SASL_PLAINTEXT\n{WRONG_PASSWORD}",
            "(Invalid username or password|disconnected)",
        ),
        ("BOTH", f"security.protocol=SASL_SSL\n{WRONG_PASSWORD}ssl.ca.location={{}}/stranger.crt", "verify failed"),
    ],
)
def test_why_it_failed_is_told_without_the_secret(address_of, certificates, monkeypatch, door, text, why):
    monkeypatch.setattr(kafka_admin, "REQUEST_TIMEOUT_MS", 3000)
    monkeypatch.setattr(logging.getLogger("kafka"), "propagate", False)  # captured records would keep the sockets
    address = address_of(door, text.replace("{}", str(certificates)))
    with pytest.raises(HarnessError, match=rf"Kafka at 127\.0\.0\.1:\d+ could not be reached .*{why}") as caught:
        kafka.topic_ids(address)
    assert "wrong-secret" not in str(caught.value)
    del caught
    gc.collect()  # while the warning is expected
