"""A member's fetcher stays with the leader that answers, passes over what has expired, and is only so far ahead."""

from __future__ import annotations

from typing import TypeVar

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.groups.client.client import SubscriptionState
from replication.groups.connections import FetchNext
from replication.groups.fetching import FETCHED_COUNT_MAX, Fetcher
from replication.roles.messages import ConsumerFetch, ConsumerFetchResponse, MetadataRequest, MetadataResponse
from replication.roles.outbox import Outbox
from replication.simulation.clients import POLL_MS
from tests.replication.groups.builders import LAYOUT, OPTIONS, t

NOW = TimeMs(0)
Message = TypeVar("Message", bound=object)


class Talk:
    """A fetcher whose consumer owns partition 0 from offset 5 on; broker 2 leads."""

    def __init__(self) -> None:
        self.fetcher = Fetcher(OPTIONS, LAYOUT, SplitMix64(1))
        self.out = Outbox()
        self.reader = SubscriptionState(self.fetcher)
        self.reader.assign(frozenset({t(0)}))
        self.reader.seek(t(0), Offset(5))
        self.fetcher.follow(self.reader, self.out)
        asked = self.sent(MetadataRequest)
        self.fetcher.on_leader(MetadataResponse(0, asked.number, BrokerId(2), LeaderEpoch(0)), self.out)

    def sent(self, kind: type[Message]) -> Message:
        """Return the one message sent since the last look."""
        sent, self.out.sent = self.out.sent, []
        ((_, message),) = sent
        assert isinstance(message, kind), message
        return message

    def after(self, answer: ConsumerFetchResponse) -> None:
        """Take an answer, and let the time until the next request pass."""
        self.out.woken = []
        self.fetcher.on_consumed(answer, self.out)
        (due,) = [message for _, message in self.out.woken if isinstance(message, FetchNext)]
        self.fetcher.on_due(due, self.out)

    @property
    def end(self) -> Offset:
        return self.fetcher.end_offset(t(0), NOW)


def answer(fetch: ConsumerFetch, error: ErrorCode, records: bytes = b"", start: int = 0) -> ConsumerFetchResponse:
    return ConsumerFetchResponse(0, fetch.number, error, records, Offset(start), Offset(20))


def test_the_leader_that_answers_is_asked_again_from_the_next_offset_on() -> None:
    talk = Talk()
    fetch = talk.sent(ConsumerFetch)
    assert fetch.offset == 5
    records = build_batch(BatchSpec(base_offset=Offset(5)), [Record(Offset(n), NOW, b"k", b"v") for n in (5, 6)])
    talk.after(answer(fetch, ErrorCode.NONE, records))
    assert (talk.end, talk.sent(ConsumerFetch).offset) == (7, 7)


def test_what_has_expired_is_passed_over() -> None:
    talk = Talk()
    talk.after(answer(talk.sent(ConsumerFetch), ErrorCode.OFFSET_OUT_OF_RANGE, start=9))
    assert talk.end == 9
    talk.sent(MetadataRequest)


def test_after_any_other_error_the_leader_is_looked_for() -> None:
    talk = Talk()
    talk.after(answer(talk.sent(ConsumerFetch), ErrorCode.NOT_LEADER_OR_FOLLOWER, start=9))
    assert talk.end == 5
    talk.sent(MetadataRequest)


def test_without_an_answer_in_time_the_leader_is_looked_for() -> None:
    talk = Talk()
    talk.sent(ConsumerFetch)
    delay_ms, due = talk.out.woken[-1]
    assert isinstance(due, FetchNext)
    assert delay_ms == OPTIONS.role_settings.answer_ms_max
    talk.fetcher.on_due(due, talk.out)
    talk.sent(MetadataRequest)


def test_the_answer_to_a_former_request_is_not_taken() -> None:
    talk = Talk()
    fetch = talk.sent(ConsumerFetch)
    talk.fetcher.on_consumed(
        ConsumerFetchResponse(0, fetch.number - 1, ErrorCode.OFFSET_OUT_OF_RANGE, b"", Offset(9), Offset(20)), talk.out
    )
    assert talk.end == 5


def test_a_fetcher_that_is_far_ahead_waits_until_its_consumer_has_read() -> None:
    talk = Talk()
    offsets = range(5, 5 + FETCHED_COUNT_MAX)
    records = build_batch(BatchSpec(base_offset=Offset(5)), [Record(Offset(n), NOW, b"k", b"v") for n in offsets])
    talk.after(answer(talk.sent(ConsumerFetch), ErrorCode.NONE, records))
    assert (talk.end, talk.out.sent) == (offsets.stop, [])
    _, (delay_ms, due) = talk.out.woken
    assert isinstance(due, FetchNext)
    assert delay_ms == POLL_MS
    talk.reader.read(1, NOW)
    talk.fetcher.follow(talk.reader, talk.out)
    talk.fetcher.on_due(due, talk.out)
    assert talk.sent(ConsumerFetch).offset == offsets.stop


def test_what_comes_of_a_partition_that_was_given_up_is_dropped() -> None:
    """A leader's answer, and where the leader is, may be on their way as the consumer gives the partition up."""
    talk = Talk()
    fetch = talk.sent(ConsumerFetch)
    talk.reader.assign(frozenset())
    talk.fetcher.follow(talk.reader, talk.out)
    talk.fetcher.on_consumed(answer(fetch, ErrorCode.OFFSET_OUT_OF_RANGE, start=9), talk.out)
    talk.fetcher.on_leader(MetadataResponse(0, fetch.number, BrokerId(1), LeaderEpoch(0)), talk.out)
    talk.fetcher.on_due(FetchNext(0, fetch.number), talk.out)
    assert talk.out.sent == []


def test_nothing_that_a_former_process_asked_for_reaches_the_next_one() -> None:
    talk = Talk()
    fetch = talk.sent(ConsumerFetch)
    talk.fetcher.forget()
    talk.fetcher.on_due(FetchNext(0, fetch.number), talk.out)
    assert talk.out.sent == []
    talk.fetcher.follow(talk.reader, talk.out)
    talk.fetcher.on_consumed(answer(fetch, ErrorCode.OFFSET_OUT_OF_RANGE, start=9), talk.out)
    talk.sent(MetadataRequest)
    assert talk.end == 5
