"""Define three families of errors: misuse by the caller, a refusal by the model, and corrupt data.

Source: org.apache.kafka.common.errors and org.apache.kafka.server.common, 4.3.1.
"""

from __future__ import annotations

from typing import Any, ClassVar


class BrokersideError(Exception):
    """Base class of all errors raised deliberately by this library; its instances can be pickled."""

    definite: ClassVar[bool] = True

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[BrokersideError], arguments: tuple[Any, ...], fields: dict[str, Any]) -> BrokersideError:
    """Return a copy of an error without calling its constructor, whose arguments differ by class."""
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(fields)
    return error


class UsageError(BrokersideError):
    """The caller passed something that is never allowed."""


class MissingExtraError(UsageError, ImportError):
    """A library of one of brokerside's extras is not installed."""

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(f"{what} needs {library}: pip install 'brokerside[{extra}]'")


class InputError(UsageError):
    """A file or text given by the user cannot be used; the error names the place and the value."""

    def __init__(self, what: str, *, source: str = "", line: int | None = None, value: str | None = None) -> None:
        self.what = what
        self.source = source
        self.line = line
        self.value = value
        place = source if line is None else f"{source}:{line}" if source else f"line {line}"
        # A byte that is no text is written as an escape before it comes here, whose backslash stays one.
        shown = "" if value is None else " (found " + repr(shorten(value)).replace("\\\\", "\\") + ")"
        super().__init__(f"{place}: {what}{shown}" if place else f"{what}{shown}")


class NothingUsableError(InputError):
    """An input has a known format but contains nothing that can be used."""


class RefusedError(BrokersideError):
    """The model refuses an operation, as Kafka would; its state is unchanged."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.errors.ApiException"


class InvalidPartitionsError(RefusedError):
    """The requested number of partitions is not possible."""

    kafka_class = "org.apache.kafka.common.errors.InvalidPartitionsException"


class InvalidReplicationFactorError(RefusedError):
    """The requested replication factor is not possible with these brokers."""

    kafka_class = "org.apache.kafka.common.errors.InvalidReplicationFactorException"


class InvalidReplicaAssignmentError(RefusedError):
    """A manual assignment breaks a rule of the controller."""

    kafka_class = "org.apache.kafka.common.errors.InvalidReplicaAssignmentException"


class AdminOperationError(RefusedError):
    """The older admin tools refuse, because only some of the brokers have a rack."""

    kafka_class = "org.apache.kafka.server.common.AdminOperationException"


class IllegalCapacityError(RefusedError):
    """Java refuses a list of negative size; Kafka's striped placer throws this for a negative partition count."""

    kafka_class = "java.lang.IllegalArgumentException"


class IndexOutOfBoundsError(RefusedError):
    """Java indexes outside a list; Kafka's classic placer throws this when a start index overflows."""

    kafka_class = "java.lang.IndexOutOfBoundsException"


class DivisionByZeroError(RefusedError):
    """Java divides by zero; Kafka's producer throws this for a topic without partitions."""

    kafka_class = "java.lang.ArithmeticException"


class InvalidTopicError(RefusedError):
    """A topic cannot have this name, or not beside the topics that there are."""

    kafka_class = "org.apache.kafka.common.errors.InvalidTopicException"


class PolicyViolationError(RefusedError):
    """A request is larger than the controller takes."""

    kafka_class = "org.apache.kafka.common.errors.PolicyViolationException"


class InvalidRequestError(RefusedError):
    """A request asks for two things that exclude each other."""

    kafka_class = "org.apache.kafka.common.errors.InvalidRequestException"


class CorruptDataError(BrokersideError):
    """Bytes are malformed; `position` is the byte offset in `source`."""

    def __init__(self, what: str, *, source: str = "", position: int | None = None) -> None:
        self.what = what
        self.source = source
        self.position = position
        place = " ".join(part for part in (source, "" if position is None else f"at byte {position}") if part)
        super().__init__(f"{place}: {what}" if place else what)


def shorten(text: str, length_max: int = 80) -> str:
    """Return `text` cut to `length_max` characters; end a cut text with an ellipsis."""
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
