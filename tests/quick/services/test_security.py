"""One properties file, three clients: each told the same, nobody told a secret that it should not show."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import UsageError
from harness.services import kafka_security

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
PRIVATE = "-----BEGIN PRIVATE KEY-----\nxyzw\n-----END PRIVATE KEY-----\n"
LOCKED = PRIVATE.replace("PRIVATE", "ENCRYPTED PRIVATE").replace(
    "xyzw", base64.b64encode(b"1" + kafka_security._PBES2).decode()
)
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="wonder\\\\"land";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def address(tmp_path):
    def read(text: str, bootstrap: str = "host:9092"):
        file = tmp_path / "client.properties"
        file.write_text(text)
        return kafka_security.external(bootstrap, file)

    return read


@pytest.fixture
def files(tmp_path):
    for name, text in (
        ("ca.pem", PEM),
        ("cert.pem", PEM),
        ("key.pem", PRIVATE),
        ("both.pem", PRIVATE + PEM),
        ("old.pem", PRIVATE.replace("PRIVATE", "RSA PRIVATE")),
        ("locked.pem", LOCKED),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed")
    return tmp_path


def test_without_a_file_there_is_nothing_to_say():
    address = kafka_security.external("host:9092", None)
    assert (address.bootstrap, address.external, address.librdkafka) == ("host:9092", True, {})


def test_java_spelling_with_tls_and_plain(address, files):
    seen = address(
        f"# the cluster\nsecurity.protocol=SASL_SSL\nsasl.mechanism : PLAIN\nsasl.jaas.config={JAAS}\n"
        f"ssl.truststore.location={files}/ca.pem\nssl.truststore.type=PEM\n"
    )
    assert seen.librdkafka == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": 'wonder"land',
        "ssl.ca.location": f"{files}/ca.pem",
        "ssl.endpoint.identification.algorithm": "https",
    }
    assert seen.kafka_python == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'wonder"land',
        "ssl_cafile": f"{files}/ca.pem",
        "ssl_check_hostname": True,
    }
    assert seen.java == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS.replace("\\\\", "\\"),
        "ssl.truststore.location": f"{files}/ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "https",
    }


def test_librdkafka_spelling_says_the_same(address):
    one = address(
        "security.protocol=sasl_plaintext\nsasl.mechanisms=SCRAM-SHA-512\nsasl.username=alice\nsasl.password=pass word"
    )
    other = address(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={SCRAM} required \\\n   username=alice \\\n   password='pass word';\n"
    )
    assert one == other
    assert one.java["sasl.jaas.config"] == f'{SCRAM} required username="alice" password="pass word";'


def test_a_client_certificate_in_two_files_or_in_one(address, files):
    two = address(
        f"security.protocol=SSL\nssl.certificate.location={files}/cert.pem\nssl.key.location={files}/key.pem\n"
        "ssl.key.password=secret\nssl.endpoint.identification.algorithm=\n"
    )
    one = address(f"security.protocol=SSL\nssl.keystore.location={files}/both.pem\nssl.keystore.type=PEM\n")
    assert two.java["ssl.keystore.key"] == PRIVATE
    assert two.java["ssl.keystore.certificate.chain"] == PEM
    assert two.java["ssl.endpoint.identification.algorithm"] == ""
    assert two.librdkafka["ssl.endpoint.identification.algorithm"] == "none"
    assert two.kafka_python["ssl_check_hostname"] is False
    assert two.kafka_python["ssl_password"] == two.librdkafka["ssl.key.password"] == "secret"
    assert one.java["ssl.keystore.location"] == one.kafka_python["ssl_keyfile"] == f"{files}/both.pem"


def test_values_come_from_the_environment(address, monkeypatch):
    monkeypatch.setenv("PASS", 'a"b\\c${env:PASS}')
    for line in (
        "sasl.username=alice\nsasl.password=${env:PASS}",
        f'sasl.jaas.config={SCRAM} required username=alice password="${{env:PASS}}";',
    ):
        seen = address(f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n{line}")
        assert seen.librdkafka["sasl.password"] == 'a"b\\c${env:PASS}'
        assert seen.java["sasl.jaas.config"].endswith('password="a\\"b\\\\c${env:PASS}";')


def test_the_file_may_name_the_servers_and_the_flag_wins(address):
    assert address("bootstrap.servers=file:1", bootstrap="").bootstrap == "file:1"
    assert address("bootstrap.servers=file:1", bootstrap="flag:2").bootstrap == "flag:2"


@pytest.mark.parametrize(
    "servers",
    ["host", "host:port", "host:1,,host:2", "host:1, host:2", "redis://host:1", "::1:1", "host:0", "host:99999"],
)
def test_servers_are_hosts_with_ports(servers):
    with pytest.raises(UsageError, match="is not HOST:PORT"):
        kafka_security.external(servers, None)
    assert kafka_security.external("host:1,[::1]:2", None).bootstrap == "host:1,[::1]:2"


LOGIN = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=alice\nsasl.password=secret\n"


CERTIFIED = "security.protocol=SSL\nssl.certificate.location={files}/cert.pem\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "sasl.passwort=secret",
            r"sasl\.passwort is not a setting .* nearest supported one is sasl\.password\. Allowed are ",
        ),
        ("acks=all", r"acks is not a setting"),
        ("security.protocol=secret", "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\nsasl.password=secret",
            "sasl.mechanism must be one of PLAIN",
        ),
        ("security.protocol=SASL_SSL\nsasl.username=a\nsasl.password=secret", "sasl.mechanism .* is not set"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=a", "needs a user and a password"),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={SCRAM} required username=a;",
            "set username and password in sasl.jaas.config",
        ),
        ("sasl.username=a\nsasl.password=secret", "sets sasl.username, but with security.protocol=PLAINTEXT"),
        (LOGIN + "sasl.mechanisms=SCRAM-SHA-256", "sasl.mechanism and sasl.mechanisms, which are the same setting"),
        (LOGIN + "sasl.jaas.config=secret", "sasl.jaas.config should read"),
        (LOGIN + f"sasl.jaas.config={SCRAM} required username=a password=secret;", "but PLAIN needs"),
        (LOGIN + "ssl.truststore.location={files}/store.jks", "keytool -importkeystore"),
        (LOGIN + "ssl.truststore.location={files}/ca.pem\nssl.truststore.type=JKS", "is of type JKS"),
        (LOGIN + "ssl.truststore.password=secret", "only in Java"),
        (LOGIN + "ssl.ca.location={files}/none.pem", "cannot be read: No such file"),
        (LOGIN + "ssl.certificate.location={files}/cert.pem", "needs both"),
        (CERTIFIED + "ssl.key.location={files}/old.pem", r"holds no private key as PKCS#8: openssl pkcs8"),
        (CERTIFIED + "ssl.key.location={files}/locked.pem", r"PBES2.*openssl pkcs8"),
        (LOGIN + "ssl.key.password=${env:NOT_THERE}", "variable NOT_THERE is not set"),
    ],
)
def test_what_cannot_be_handed_on_is_refused_without_its_secret(address, files, text, told):
    with pytest.raises(UsageError, match=told) as caught:
        address(text.replace("{files}", str(files)))
    assert "secret" not in str(caught.value)


def test_a_missing_file_and_missing_servers(address, tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        kafka_security.external("host:1", tmp_path / "none")
    with pytest.raises(UsageError, match="names no servers"):
        address("", bootstrap="")


def test_the_understood_settings_do_not_show_their_secrets():
    assert "secret" not in repr(
        kafka_security.Security("SSL", username="secret", password="secret", key_password="secret")
    )


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_any_properties_survive_being_written_as_java_does(properties):
    def escaped(text: str) -> str:
        return "".join(f"\\u{unit:04x}" for unit in _utf16(text))

    lines = [f"{escaped(key)}={escaped(value)}" for key, value in properties.items()]
    assert dict(kafka_security.parse_properties("\n".join(lines))) == properties


def _utf16(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def test_continued_lines_comments_and_blanks():
    text = "! comment\n  # comment \\\na = 1 \\\n    2\nb:x\\\\\nc\nd\\ e f=g\n"
    assert list(kafka_security.parse_properties(text)) == [("a", "1 2"), ("b", "x\\"), ("c", ""), ("d e", "f=g")]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("security.protocol=SSL\nssl.ca.location=/none.pem\n", "ssl.ca.location"),
        ("security.protocol=SSL\nssl.truststore.location=/none.pem\n", "ssl.truststore.location"),
        ("security.protocol=SASL_SSL\nsasl.mechanisms=DIGEST\n", "sasl.mechanisms"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=DIGEST\n", "sasl.mechanism"),
        ("security.protocol=PLAINTEXT\nsasl.mechanisms=PLAIN\n", "sasl.mechanisms"),
    ],
)
def test_a_key_is_named_as_its_user_wrote_it(tmp_path, text, key):
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(UsageError, match=rf"[ :]{key}[ ,]"):
        kafka_security.external("host:1", file)
