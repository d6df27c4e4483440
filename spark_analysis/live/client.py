"""Send requests that change nothing through confluent-kafka's AdminClient, and say why one failed.

Constraints: Metadata, DescribeCluster, DescribeConfigs, ListGroups, DescribeGroups, OffsetFetch and ListOffsets are all
that is sent, about topics and groups that the cluster named itself. The library is imported when a cluster is asked. No
message holds a password.

Source: confluent-kafka 2.16, librdkafka 2.16.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from broker.errors import InputError, MissingExtraError
from spark_analysis.live.properties import ClientProperties

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

T = TypeVar("T")
BATCH: Final = 500  # Topics, groups or partitions a request.
_TEXT_MAX: Final = 300  # Characters of what the library says.
_GRACE_SECONDS: Final = 2.0  # For the library to report that a request timed out.
_NOT_AUTHENTICATED: Final = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM")
_REFUSALS: Final = (*_NOT_AUTHENTICATED, "_SSL")
_NOT_AUTHORIZED: Final = ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")
_FIRST_TRY_S: Final = 1.0  # How long the library is let alone before it is asked whether a broker refused the client.


@attrs.define
class Asker:
    """Hold the client of one cluster, and a note on each request that failed."""

    servers: str
    properties: ClientProperties
    admin: AdminClient
    notes: list[str] = attrs.field(factory=list)
    events: list[Any] = attrs.field(factory=list)
    is_refused: bool = False
    """Whether a request failed because the client may not send it."""

    @classmethod
    def of(cls, servers: str, properties: ClientProperties) -> Asker:
        """Return a client; raise UsageError without the library, or for an option that it refuses."""
        try:
            from confluent_kafka import KafkaException
            from confluent_kafka.admin import AdminClient
        except ImportError:
            raise MissingExtraError("asking a live cluster", "confluent-kafka", "live") from None
        events: list[Any] = []
        quiet = logging.getLogger("brokerside.librdkafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        timeouts = {"socket.timeout.ms": str(max(properties.timeout_ms, 10)), "error_cb": events.append}
        options: dict[str, Any] = {"client.id": "brokerside", **properties.options, **timeouts}
        try:
            admin = AdminClient(options | {"bootstrap.servers": servers}, logger=quiet)
        except (KafkaException, ValueError, TypeError) as error:
            raise InputError(_redacted(f"the client refuses an option: {error}", properties), source=servers) from None
        return cls(servers, properties, admin, events=events)

    @property
    def timeout_s(self) -> float:
        """Return how many seconds one request may take."""
        return self.properties.timeout_ms / 1000

    def metadata(self) -> Any:
        """Return the brokers, topics and partitions of the cluster; raise InputError if no broker answers."""
        from confluent_kafka import KafkaException

        left_s, try_s = self.timeout_s, _FIRST_TRY_S
        while True:  # Each try takes twice the time of the one before.
            try:
                return self.admin.list_topics(timeout=min(try_s, left_s))
            except KafkaException as error:
                self.admin.poll(0)
                left_s -= try_s
                try_s *= 2
                if left_s <= 0 or any(each.name() in _NOT_AUTHENTICATED for each in self.events):
                    raise InputError(self._unanswered(error.args[0]), source=self.servers) from None

    def one(self, request: str, ask: Callable[[float], Any]) -> Any:
        """Return the answer to a request, None with a note if it failed."""
        return dict(self.each(request, {"": lambda: ask(self.timeout_s)})).get("")

    def each(self, request: str, asked: Mapping[T, Callable[[], Any]]) -> Iterator[tuple[T, Any]]:
        """Yield the answers to one request about several subjects, asked at once; failures are one note a reason."""
        futures = dict(self.answers(request, asked))
        wait_s = self.timeout_s + _GRACE_SECONDS
        yield from self.answers(request, {subject: partial(each.result, wait_s) for subject, each in futures.items()})

    def answers(self, request: str, asked: Mapping[T, Callable[[], Any]]) -> Iterator[tuple[T, Any]]:
        """Yield the result of each call; failed calls become one note per reason."""
        failed: dict[str, list[T]] = {}
        for subject, ask in asked.items():
            try:
                found = ask()
            except Exception as error:  # A library has its own and Python's; the rest of the cluster is still read.
                self._note_refusal(error)
                failed.setdefault(self.reason(error), []).append(subject)
            else:
                yield subject, found
        for reason, subjects in failed.items():
            self.note(request, reason, subjects, len(asked))

    def many(self, request: str, subjects: Sequence[T], ask: Callable[[list[T]], Mapping[Any, Any]]) -> dict[Any, Any]:
        """Return the answers by subject to requests about many, a batch at a time."""
        found: dict[Any, Any] = {}
        for start in range(0, len(subjects), BATCH):
            some = list(subjects[start : start + BATCH])
            try:
                futures = ask(some)
            except Exception as error:  # As above.
                self._note_refusal(error)
                self.note(request, self.reason(error), some, len(subjects))
                continue
            found |= dict(self.each(request, {key: partial(_itself, each) for key, each in futures.items()}))
        return found

    def note(self, request: str, reason: str, subjects: Sequence[object], total: int) -> None:
        """Note what a request did not give."""
        about, of = [str(each) for each in subjects if each != ""], ""
        if about:
            of = f" for {about[0]}" if total == 1 else f" for {len(about)} of {total}, such as {about[0]},"
        self.notes.append(f"{request}{of} was not answered: {reason}")

    def _note_refusal(self, error: Exception) -> None:
        found: Any = next(iter(error.args), None)
        self.is_refused |= hasattr(found, "name") and found.name() in _NOT_AUTHORIZED

    def _unanswered(self, error: Any) -> str:
        refused = next((each for each in self.events if each.name() in _REFUSALS), None)
        if refused is not None or error.name() in _REFUSALS:
            return f"the cluster refuses the client: {self._text(refused or error)}"
        said = self._text(next((each for each in self.events if each.name() != "_ALL_BROKERS_DOWN"), error))
        return f"no broker answered within {self.timeout_s:g} s: {said}"

    def reason(self, error: Any) -> str:
        """Return why a request failed, in words without secrets."""
        found = next(iter(getattr(error, "args", ())), error)  # The library lists errors bare, and raises them wrapped.
        if isinstance(error, TimeoutError):
            return f"nothing came within {self.timeout_s:g} s"
        is_told = isinstance(found, str) or hasattr(found, "str")
        return self._text(found if is_told else f"{type(error).__name__} {error}")

    def _text(self, error: Any) -> str:
        text = error.str() if hasattr(error, "str") else str(error)
        return _redacted(" ".join(text.split()), self.properties)[:_TEXT_MAX]


def _itself(future: Any) -> Any:
    return future


def _redacted(text: str, properties: ClientProperties) -> str:
    for secret in properties.secrets:
        text = text.replace(secret, "[hidden]")
    return text
