"""Define the exceptions of Kafka's assignors as refusals that carry Java's class and message.

Most of them are not Kafka's intention: a group without members divides by zero, a member that holds a partition that
does not exist makes the sticky assignor lose count. They are answers all the same. Source: java.lang, Java 17.
"""

from __future__ import annotations

from broker.errors import RefusedError


class PartitionAssignorError(RefusedError):
    """Report that a server-side assignor failed: a subscribed topic does not exist, or partitions were left over."""

    kafka_class = "org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException"


class NullPointerError(RefusedError):
    """Report a lookup of a member that Kafka's sticky assignor has set aside."""

    kafka_class = "java.lang.NullPointerException"


class IllegalStateError(RefusedError):
    """Report that Kafka's sticky assignor finds inconsistent counts."""

    kafka_class = "java.lang.IllegalStateException"


class DivisionByZeroError(RefusedError):
    """Report that Kafka's sticky assignor divides by the number of members, which is zero."""

    kafka_class = "java.lang.ArithmeticException"


class EmptyGroupError(RefusedError):
    """Report that Kafka's round-robin assignor cannot iterate an empty list of members."""

    kafka_class = "java.lang.IllegalArgumentException"


class PartitionIndexError(RefusedError):
    """Report that Kafka's uniform assignor meets a partition beyond the end of its topic."""

    kafka_class = "java.lang.ArrayIndexOutOfBoundsException"


class EndlessBalancingError(RefusedError):
    """Report that Kafka's sticky assignor would move partitions in a cycle and never return; Kafka throws nothing."""

    kafka_class = "none"
