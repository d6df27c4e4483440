"""Name the settings of Kafka that the catalog leaves out, and why.

What it decides: whether a name that the catalog does not know is a setting that no model here reads.

Example:

    >>> reason_of("ssl.keystore.location")
    'security'
    >>> reason_of("log.retention.m") is None
    True

Source: the released ConfigDefs of 3.9.2 to 4.3.1: each setting that they define is in the catalog, or named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker.config.setting import Scope

_BROKER: Final = (
    (
        "security",
        (
            *("sasl.*", "ssl.*", "security.*", "delegation.token.*", "password.encoder.*", "authorizer.class.name"),
            *("principal.builder.class", "connections.max.reauth.ms", "connection.failed.authentication.delay.ms"),
        ),
    ),
    (
        "listeners and connections to other servers",
        (
            *("listeners", "advertised.listeners", "early.start.listeners", "listener.security.protocol.map"),
            *("control.plane.listener.name", "controller.listener.names", "inter.broker.listener.name"),
            *("socket.connection.setup.timeout.*", "max.connections.per.ip.overrides", "controller.socket.timeout.ms"),
        ),
    ),
    (
        "metrics and classes that users bring",
        (
            *("metrics.*", "metric.reporters", "kafka.metrics.*", "telemetry.*", "auto.include.jmx.reporter"),
            *("create.topic.policy.*", "alter.config.policy.*", "client.quota.callback.class", "config.providers"),
        ),
    ),
    (
        "the identity and the directories of a server",
        (
            *("node.id", "broker.id", "broker.id.generation.enable", "reserved.broker.max.id", "process.roles"),
            *("log.dir", "log.dirs", "metadata.log.dir", "server.max.startup.time.ms", "unstable.*"),
            *("controller.quorum.voters", "controller.quorum.bootstrap.servers", "controller.quorum.auto.join.enable"),
        ),
    ),
    ("ZooKeeper", ("zookeeper.*",)),
    ("remote storage", ("remote.*", "follower.fetch.last.tiered.offset.enable")),
    ("the move of a group from one protocol to the other", ("group.consumer.migration.policy",)),
    ("quotas of clients", ("quota.window.*", "controller.quota.window.*", "alter.log.dirs.replication.quota.*")),
    ("Kafka's own tests and log lines", ("internal.metadata.*", "controller.performance.*")),
)
_TOPIC: Final = (
    ("reassignments", ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")),
)

LEFT_OUT: Final[Mapping[Scope, tuple[tuple[str, tuple[str, ...]], ...]]] = MappingProxyType(
    {Scope.BROKER: _BROKER, Scope.TOPIC: _TOPIC, Scope.GROUP: ()}
)
"""What is left out of each scope: the subject, and the names, where `.*` stands for any ending."""


def reason_of(name: str, scope: Scope | None = None) -> str | None:
    """Return the subject that the setting `name` belongs to if the catalog leaves that out, None otherwise."""
    for each in Scope if scope is None else (scope,):
        for reason, patterns in LEFT_OUT[each]:
            if any(_matches(name, pattern) for pattern in patterns):
                return reason
    return None


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or (pattern.endswith(".*") and name.startswith(pattern[:-1]))
