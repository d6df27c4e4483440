"""A client that is not authenticated ends soon; one that is not authorized is known by the library's error codes."""

from __future__ import annotations

from typing import Any, NoReturn

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException

from broker.errors import InputError
from spark_analysis.live.client import Asker
from spark_analysis.live.properties import ClientProperties


@attrs.define
class Unanswered:
    """Stand for a client of the library whom no broker answers; polled, it reports `reported` to `events`."""

    events: list[Any]
    reported: list[int]
    tries: list[float] = attrs.field(factory=list)

    def list_topics(self, timeout: float) -> NoReturn:
        """Fail as the library does after `timeout` seconds."""
        self.tries.append(timeout)
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, _timeout: float) -> None:
        """Report errors."""
        self.events += map(KafkaError, self.reported)


def asker(*reported: int) -> tuple[Asker, list[float]]:
    """Return an asker with a time-out of 10 s, and the times of its tries."""
    events: list[Any] = []
    admin = Unanswered(events, list(reported))
    properties = ClientProperties(options={}, idle=(), timeout_ms=10_000)
    return Asker("there:9092", properties, admin, events=events), admin.tries


def test_a_refused_password_ends_the_first_try_and_silence_the_last() -> None:
    refused, tries = asker(KafkaError._AUTHENTICATION)
    with pytest.raises(InputError, match="the cluster refuses the client: "):
        refused.metadata()
    assert tries == [1]
    silent, tries = asker(KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN)
    with pytest.raises(InputError, match="the cluster refuses the client: "):
        silent.metadata()
    assert tries == [1, 2, 4, 3]


@pytest.mark.parametrize(
    ("code", "is_refused"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, True),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, True),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, True),
        (KafkaError._TIMED_OUT, False),
    ],
)
def test_a_request_that_is_not_authorized_is_known_by_its_code(code: int, is_refused: bool) -> None:
    asking, _ = asker()

    def ask() -> NoReturn:
        raise KafkaException(KafkaError(code, "words of another release"))

    assert dict(asking.answers("DescribeConfigs", {"orders": ask})) == {}
    assert asking.is_refused is is_refused
    assert len(asking.notes) == 1
