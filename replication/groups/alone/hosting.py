"""Host one group on three brokers, one of which coordinates, and store its records.

What it decides: who answers a request: the group's service, or the broker itself with an error where the coordinator is
elsewhere.

Constraints: an append is stored after `STORE_MS`, on all replicas; it is lost if the coordinator dies before.

Source: KafkaApis and GroupCoordinatorService (which errors a broker gives that does not coordinate), 4.0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from broker.entropy import RandomSource
from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.service import Append, GroupEntry, GroupService, Output, Reply, Request, Response, ServiceOptions
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.alone.stored_records import StoredRecords
from replication.groups.common.coordinator import refusal

BROKER_COUNT: Final = 3
STORE_MS: Final = DurationMs(3)
"""The time that replicating an append takes: long enough for a coordinator to die meanwhile."""


class Outside(Protocol):
    """Define what brokers use of their surroundings: clock, network and observers."""

    def later(self, delay_ms: DurationMs, action: Callable[[TimeMs], None]) -> None:
        """Call `action` with the time, in ms, after a delay."""
        ...

    def tell(self, ticket: Ticket, response: Response) -> None:
        """Deliver a response to the process that sent the request."""
        ...

    def appended(self, entries: tuple[GroupEntry, ...]) -> None:
        """Observe the entries that the coordinator asks to store."""
        ...

    def stored(self, entries: tuple[GroupEntry, ...]) -> None:
        """Observe stored entries, before the coordinator learns that they are stored."""
        ...


class Hosting:
    """Run one group's coordinator on one of three brokers."""

    def __init__(self, options: ServiceOptions, entropy: RandomSource, outside: Outside) -> None:
        self.coordinator = BrokerId(0)
        self.service: GroupService | None = GroupService("group", options, entropy)
        """The group's coordinator; None while no broker coordinates."""
        self.records = StoredRecords()
        self._options = options
        self._entropy = entropy
        self._outside = outside
        self._storing_count = 0

    @property
    def is_storing(self) -> bool:
        """Return whether entries are on their way into the records."""
        return self._storing_count > 0

    def handle(self, broker: BrokerId, ticket: Ticket, request: Request, now_ms: TimeMs) -> bool:
        """Take a request that reached `broker`; return False when no coordinator runs there."""
        if broker != self.coordinator:
            self._outside.tell(ticket, refusal(request, ticket, ErrorCode.NOT_COORDINATOR))
        elif self.service is None:
            return False
        else:
            self._do(self.service.handle(ticket, request, now_ms))
        return True

    def advance(self, now_ms: TimeMs) -> None:
        """Run the coordinator's timers that are due by `now_ms`."""
        if self.service is not None:
            self._do(self.service.advance(now_ms))

    def next_ms(self) -> TimeMs | None:
        """Return the time of the coordinator's next timer; None for none."""
        return None if self.service is None else self.service.next_ms()

    def die(self) -> None:
        """Stop the coordinator, and lose the entries that it had not stored yet."""
        self.service = None

    def take_over(self, now_ms: TimeMs) -> None:
        """Start a coordinator on the next broker, after that broker has read the stored records."""
        self.coordinator = BrokerId((self.coordinator + 1) % BROKER_COUNT)
        self.service = self.reader(now_ms)

    def reader(self, now_ms: TimeMs) -> GroupService:
        """Return a coordinator that has read the stored records."""
        service = GroupService("group", self._options, self._entropy)
        service.load(self.records.entries(), now_ms)
        return service

    def finish(self, service: GroupService, append: Append, now_ms: TimeMs) -> None:
        """Store an append, if the coordinator that asked for it still runs."""
        self._storing_count -= 1
        if service is self.service:
            self.records.append(append.entries)
            self._outside.stored(append.entries)
            self._do(service.stored(append.token, ErrorCode.NONE, now_ms))

    def _do(self, outputs: tuple[Output, ...]) -> None:
        service = self.service
        assert service is not None
        for output in outputs:
            if isinstance(output, Reply):
                self._outside.tell(output.ticket, output.response)
            else:
                self._outside.appended(output.entries)
                self._storing_count += 1
                self._outside.later(STORE_MS, partial(self.finish, service, output))
