"""Say which request a member's fetcher must send for each of its partitions, and when.

What it decides: whom it asks for what: a leader for records, from the end of what has arrived; any broker for the
leader where none is known, after an error, and after an answer that did not come.

Constraints: it knows what was delivered to the member and where the consumer stands, not the fetcher.

Source: ours, as `replication.groups.fetching`; a poll each second, another look for a leader after 200 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER
from log.batches.in_buffer import batches_in
from replication.groups.connection_messages import FetchNext
from replication.roles.messages import ConsumerFetch, ConsumerFetchResponse, MetadataRequest, MetadataResponse
from replication.roles.outbox import Outbox
from tests.replication.mutants.member_world import LAYOUT, OPTIONS

POLL_MS: Final = 1_000
RETRY_MS: Final = 200
AHEAD_MAX: Final = 500


@attrs.define
class _Partition:
    """Hold what has arrived of a partition, what is to be asked next, and when."""

    start: int
    end: int
    due_ms: int
    leader: int = NO_LEADER
    """Who is asked next for records; no leader where that is asked for."""
    asked: int = NO_LEADER
    number: int = -1
    """The newest request."""
    is_open: bool = False
    """Whether nothing is known of what has arrived, until records are asked for."""

    @property
    def is_far(self) -> bool:
        """Return whether so much has arrived that no more is asked for."""
        return self.end - self.start >= AHEAD_MAX and not self.is_open

    def asking(self, receiver: int, sent: Any, now_ms: int) -> Iterator[str]:
        """Take a request; yield in what it is wrong."""
        is_of_records = isinstance(sent, ConsumerFetch)
        if not self.is_open:
            if self.due_ms != now_ms or self.is_far:
                yield f"it asks {sent}, of {self}"
            if (receiver if is_of_records else NO_LEADER) != self.leader or (is_of_records and sent.offset != self.end):
                yield f"it sends {sent} to {receiver}, and {self} is known"
        elif is_of_records:
            self.end, self.is_open = int(sent.offset), False
        self.asked, self.leader, self.number = receiver if is_of_records else NO_LEADER, NO_LEADER, sent.number
        self.due_ms = now_ms + OPTIONS.role_settings.answer_ms_max


class Fetches:
    """Judge the fetches of one process."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}

    def judged(self, message: Any, out: Outbox, client: Any, now_ms: int, went_on_ms: int) -> Iterator[str]:
        """Yield what the fetcher sends that it must not, or does not send that it must."""
        sent = [(int(to.node), each) for to, each in out.sent if isinstance(each, ConsumerFetch | MetadataRequest)]
        positions = {} if client is None else _positions(client)
        goes_on = went_on_ms == now_ms
        if goes_on:
            # What came meanwhile is taken all at once: who asks is believed once.
            self._partitions = {
                each: _Partition(position, position, now_ms, is_open=True) for each, position in positions.items()
            }
        else:
            self._answered(message, now_ms)
            self._follow(positions, now_ms)
        for receiver, each in sent:
            known = self._partitions.get(each.partition)
            if known is None and goes_on:
                continue  # It was owned for a moment.
            if known is None:
                yield f"it asks {each}, and owns {sorted(self._partitions)}"
                return
            yield from known.asking(receiver, each, now_ms)
        for partition, known in self._partitions.items():
            if known.due_ms < now_ms and not known.is_open:
                yield f"of {partition} it should have asked at {known.due_ms}: {known}"

    def _answered(self, message: Any, now_ms: int) -> None:
        """Note what the answer to the newest request says, or that time is up and the fetcher is far ahead."""
        known = self._partitions.get(getattr(message, "partition", -1))
        if known is None:
            return
        if isinstance(message, FetchNext) and known.due_ms == now_ms and known.is_far:
            known.due_ms = now_ms + POLL_MS
        if not isinstance(message, MetadataResponse | ConsumerFetchResponse) or known.number != message.number:
            return
        known.number = -1
        if isinstance(message, MetadataResponse):
            known.leader = message.leader
            known.due_ms = now_ms + (RETRY_MS if message.leader == NO_LEADER else POLL_MS if known.is_far else 0)
            return
        known.due_ms = now_ms + POLL_MS
        if message.error is ErrorCode.NONE:
            known.leader = known.asked
            known.end = max([known.end, *(each.last_offset + 1 for each in batches_in(message.records))])
        elif message.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            known.end = max(known.end, message.start_offset)

    def _follow(self, positions: dict[int, int], now_ms: int) -> None:
        """Note what the consumer owns, and where it stands; what it owns anew is asked for at once."""
        self._partitions = {each: known for each, known in self._partitions.items() if each in positions}
        for each, position in positions.items():
            known = self._partitions.get(each)
            if known is None or not (known.is_open or known.start <= position <= known.end):
                self._partitions[each] = _Partition(position, position, now_ms)
            else:
                known.start = position


def _positions(client: Any) -> dict[int, int]:
    return {LAYOUT.number_of(each.partition): int(each.offset) for each in client.subscriptions.commits()}
