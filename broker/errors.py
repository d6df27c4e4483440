"""Three families of errors, by whose fault it is.

`UsageError` is the caller's or the input's: a wrong argument, a file that says
nonsense. `RefusedError` is the model saying no, as a Kafka broker would: too few
brokers, not the leader. `CorruptDataError` is damaged bytes. Each carries fields
beside its text, and `definite` tells whether the operation certainly did not happen.

Refusals that Kafka makes too carry Kafka's message and, in `kafka_class`, the
Java class that Kafka throws, so that both can be compared to the letter.

Example:

    >>> raise InvalidReplicationFactorError("Replication factor: 3 larger than available brokers: 2.")
    Traceback (most recent call last):
        ...
    broker.errors.InvalidReplicationFactorError: Replication factor: 3 larger than available brokers: 2.
    >>> InvalidReplicationFactorError("no").definite, InvalidReplicationFactorError.kafka_class
    (True, 'org.apache.kafka.common.errors.InvalidReplicationFactorException')
    >>> shorten("x" * 100, 10)
    'xxxxxxxxx…'

Source: org.apache.kafka.common.errors and org.apache.kafka.server.common, 4.0.
"""

from __future__ import annotations

from typing import ClassVar


class BrokersideError(Exception):
    """Base of every error that this library raises on purpose."""

    definite: ClassVar[bool] = True


class UsageError(BrokersideError):
    """The caller passed something that is never allowed."""


class InputError(UsageError):
    """A file or text of the user's cannot be used: what is wrong, where, and which value."""

    def __init__(self, what: str, *, source: str = "", line: int | None = None, value: str | None = None) -> None:
        self.what = what
        self.source = source
        self.line = line
        self.value = value
        place = source if line is None else f"{source}:{line}" if source else f"line {line}"
        shown = "" if value is None else f" (found {shorten(value)!r})"
        super().__init__(f"{place}: {what}{shown}" if place else f"{what}{shown}")


class NothingUsableError(InputError):
    """A recognised input holds nothing that can be used."""


class RefusedError(BrokersideError):
    """The model refuses, as Kafka would; the state is as before."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.errors.ApiException"


class InvalidPartitionsError(RefusedError):
    """The number of partitions cannot be had."""

    kafka_class = "org.apache.kafka.common.errors.InvalidPartitionsException"


class InvalidReplicationFactorError(RefusedError):
    """The replication factor cannot be had from these brokers."""

    kafka_class = "org.apache.kafka.common.errors.InvalidReplicationFactorException"


class InvalidReplicaAssignmentError(RefusedError):
    """A manual assignment breaks a rule of the controller."""

    kafka_class = "org.apache.kafka.common.errors.InvalidReplicaAssignmentException"


class AdminOperationError(RefusedError):
    """The older admin tools refuse: only some brokers have a rack."""

    kafka_class = "org.apache.kafka.server.common.AdminOperationException"


class IllegalCapacityError(RefusedError):
    """Java refuses a list of negative size: what Kafka's striped placer runs into on a negative count."""

    kafka_class = "java.lang.IllegalArgumentException"


class IndexOutOfBoundsError(RefusedError):
    """Java points outside a list: what Kafka's classic placer runs into when a start index overflows."""

    kafka_class = "java.lang.IndexOutOfBoundsException"


class DivisionByZeroError(RefusedError):
    """Java divides by zero: what Kafka's producer runs into for a topic without partitions."""

    kafka_class = "java.lang.ArithmeticException"


class InvalidRequestError(RefusedError):
    """A request asks for two things that exclude each other."""

    kafka_class = "org.apache.kafka.common.errors.InvalidRequestException"


class CorruptDataError(BrokersideError):
    """Bytes that cannot be what they claim to be; `position` is the byte offset in `source`."""

    def __init__(self, what: str, *, source: str = "", position: int | None = None) -> None:
        self.what = what
        self.source = source
        self.position = position
        place = " ".join(part for part in (source, "" if position is None else f"at byte {position}") if part)
        super().__init__(f"{place}: {what}" if place else what)


def shorten(text: str, length_max: int = 80) -> str:
    """Return `text` cut to `length_max` characters, the cut marked with an ellipsis."""
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
