"""Translate the properties file of Kafka's tools (--command-config) to the options of librdkafka.

A property of another name there is renamed; a login module's user and password are taken out of sasl.jaas.config. One
without a counterpart is named, and does nothing; one without which the connection would be another, such as a JKS
truststore, is an error. Values are never shown but those of security.protocol, sasl.mechanism and types of stores.

    >>> found = translated({"security.protocol": "SSL", "linger.ms": "5"}, source="admin.properties")
    >>> found.options, found.idle
    ({'security.protocol': 'SSL'}, ('linger.ms',))

Source: Kafka 4.4.0 clients CommonClientConfigs, SslConfigs, SaslConfigs; librdkafka 2.16 CONFIGURATION.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from broker.errors import InputError
from broker.java.numbers import parse_number

TIMEOUT_MS: Final = 10_000
TIMEOUT_MS_MAX: Final = 300_000  # The most that librdkafka waits for one request.
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SAME: Final = frozenset(
    {"security.protocol", "client.id", "ssl.cipher.suites", "ssl.key.password", "reconnect.backoff.ms"}
    | {"reconnect.backoff.max.ms", "socket.connection.setup.timeout.ms", "metadata.max.age.ms", "ssl.keystore.password"}
)
_RENAMED: Final = {
    "sasl.mechanism": "sasl.mechanisms",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_STORES: Final = {
    ("ssl.truststore", "PEM"): ("ssl.ca.location",),
    ("ssl.keystore", "PEM"): ("ssl.certificate.location", "ssl.key.location"),
    ("ssl.keystore", "PKCS12"): ("ssl.keystore.location",),
}
_READ_ELSEWHERE: Final = frozenset(
    {"sasl.jaas.config", "ssl.endpoint.identification.algorithm", "request.timeout.ms", "default.api.timeout.ms"}
    | {f"{store}.{part}" for store in ("ssl.truststore", "ssl.keystore") for part in ("location", "type")}
)
_SECRET: Final = re.compile(r"password|key\.pem")
_LOGIN: Final = re.compile(r"\s*[\w.]*\.(Plain|Scram)LoginModule\s+required\s+(.*?);?\s*", re.DOTALL)
_PAIR: Final = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;\"']+))")


@attrs.frozen
class ClientProperties:
    """Hold the options of the client library, and the properties that have no effect; `options` has secrets."""

    options: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    idle: tuple[str, ...] = ()
    timeout_ms: int = TIMEOUT_MS

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that are never to be printed."""
        return tuple(value for name, value in self.options.items() if value and _SECRET.search(name))


def translated(properties: Mapping[str, str], *, source: str) -> ClientProperties:
    """Return the library's options for the properties of a file; raise InputError for one that cannot be honoured."""
    options = {_RENAMED.get(name, name): value for name, value in properties.items() if name in _SAME | _RENAMED.keys()}
    _check(options, "security.protocol", PROTOCOLS, source)
    _check(options, "sasl.mechanisms", MECHANISMS, source)
    if properties.get("ssl.endpoint.identification.algorithm") == "":
        options["ssl.endpoint.identification.algorithm"] = "none"
    for store in ("ssl.truststore", "ssl.keystore"):
        options |= _store(store, properties, source)
    if "sasl.jaas.config" in properties:
        options |= _login(properties["sasl.jaas.config"], source)
    known = _SAME | _RENAMED.keys() | _READ_ELSEWHERE
    idle = tuple(sorted(name for name in properties if name not in known))
    return ClientProperties(options, idle, _timeout_ms(properties, source))


def _check(options: Mapping[str, str], name: str, allowed: tuple[str, ...], source: str) -> None:
    if name in options and options[name] not in allowed:
        shown = "sasl.mechanism" if name == "sasl.mechanisms" else name
        raise InputError(
            f"{shown} cannot be used; allowed are {', '.join(allowed)}", source=source, value=options[name]
        )


def _store(store: str, properties: Mapping[str, str], source: str) -> dict[str, str]:
    """Return the options for a file of certificates, which Java takes for JKS unless its type is given."""
    path, kind = properties.get(f"{store}.location"), properties.get(f"{store}.type", "JKS").upper()
    if path is None:
        return {}
    names = _STORES.get((store, kind))
    if names is None:
        allowed = " or ".join(known for of, known in _STORES if of == store)
        what = f"{store}.location of {store}.type {kind} cannot be read; convert it to {allowed} and name that type"
        raise InputError(what, source=source)
    return dict.fromkeys(names, path)


def _login(text: str, source: str) -> dict[str, str]:
    module = _LOGIN.fullmatch(text)
    found = {pair[1]: pair[2] or pair[3] or pair[4] or "" for pair in _PAIR.finditer(module[2] if module else "")}
    if not {"username", "password"} <= found.keys():
        what = "sasl.jaas.config is not PlainLoginModule or ScramLoginModule required with username and password"
        raise InputError(what, source=source)
    values = {name: re.sub(r"\\(.)", r"\1", found[name]) for name in ("username", "password")}
    return {f"sasl.{name}": value for name, value in values.items()}


def _timeout_ms(properties: Mapping[str, str], source: str) -> int:
    for name in ("default.api.timeout.ms", "request.timeout.ms"):
        if name in properties:
            found = parse_number(properties[name], bits=32)
            if found is None or not 1 <= found <= TIMEOUT_MS_MAX:
                what = f"{name} cannot be used; allowed are 1 to {TIMEOUT_MS_MAX}"
                raise InputError(what, source=source, value=properties[name])
            return found
    return TIMEOUT_MS
