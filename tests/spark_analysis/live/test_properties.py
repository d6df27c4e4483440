"""The properties file of Kafka's tools becomes options of the library; secrets are not shown."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.errors import InputError, UsageError
from spark_analysis.live.client import Asker, _redacted
from spark_analysis.live.cluster import LiveCluster, take_snapshot
from spark_analysis.live.properties import ClientProperties, translated
from spark_analysis.live.replicas import replicas_of

LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="al\\"ice" password=\'s3cret\';'


def test_names_are_mapped_and_a_login_is_taken_apart() -> None:
    found = translated(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": LOGIN,
            "ssl.truststore.location": "/ca.pem",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": "/me.pem",
            "ssl.keystore.type": "pem",
            "ssl.endpoint.identification.algorithm": "",
            "ssl.truststore.certificates": "-----BEGIN",
            "request.timeout.ms": "4000",
            "zookeeper.connect": "x",
            "linger.ms": "1",
        },
        source="a.properties",
    )
    assert found.options == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": 'al"ice',
        "sasl.password": "s3cret",
        "ssl.ca.location": "/ca.pem",
        "ssl.ca.pem": "-----BEGIN",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert (found.idle, found.timeout_ms, found.secrets) == (("linger.ms", "zookeeper.connect"), 4000, ("s3cret",))
    assert "s3cret" not in repr(found)
    assert _redacted("wrong s3cret", found) == "wrong [hidden]"


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (
            {"security.protocol": "TLS"},
            "a: security.protocol cannot be used; allowed are PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL (found 'TLS')",
        ),
        (
            {"sasl.mechanism": "GSSAPI"},
            "a: sasl.mechanism cannot be used; allowed are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 (found 'GSSAPI')",
        ),
        (
            {"ssl.truststore.location": "/t.jks", "ssl.truststore.password": "s3cret"},
            "a: ssl.truststore.location of ssl.truststore.type JKS cannot be read; "
            "convert it to PEM and name that type",
        ),
        (
            {"sasl.jaas.config": "com.sun.Krb5LoginModule required password=s3cret;"},
            "a: sasl.jaas.config is not PlainLoginModule or ScramLoginModule required with username and password",
        ),
        (
            {"request.timeout.ms": "soon"},
            "a: request.timeout.ms cannot be used; allowed are 1 to 300000 (found 'soon')",
        ),
    ],
)
def test_what_cannot_be_honoured_is_a_sentence_without_secrets(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        translated(properties, source="a")
    assert str(caught.value) == sentence


def test_without_the_library_the_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("confluent_kafka"):
            raise ImportError(name)
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"needs confluent-kafka: pip install 'brokerside\[live\]'$"):
        take_snapshot(LiveCluster("127.0.0.1:1"))


def test_an_option_that_the_library_refuses_is_said_without_the_password(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_text("security.protocol=SSL\nssl.keystore.key=s3cret\nssl.cipher.suites=none-such\n")
    with pytest.raises(InputError) as caught:
        Asker.of("h:1", LiveCluster("h:1", str(path)).properties())
    assert "s3cret" not in str(caught.value)
    assert str(caught.value).startswith("h:1: the client refuses an option: ")


@pytest.mark.parametrize(
    ("absent", "options", "note"),
    [
        ("kafka", {}, "are asked with kafka-python: pip install"),
        ("", {"ssl.ca.pem": "-----BEGIN"}, "were not asked: kafka-python does not take what ssl.ca.pem stands for"),
        ("", {}, "was not answered: "),
    ],
)
def test_sizes_that_cannot_be_asked_are_a_note(
    absent: str, options: dict[str, str], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if absent:
        monkeypatch.setitem(sys.modules, absent, None)
    asker = Asker("127.0.0.1:1", ClientProperties(options, timeout_ms=200), None)
    assert replicas_of(asker, ["orders"], [1]) == (None, {})
    (said,) = asker.notes
    assert note in said
