"""The broker side of a group's life: three brokers, of which one coordinates, and what it stores.

Decides what a request is answered with: by the group's service, or, where the coordinator is elsewhere, loading, or
dead, with the error that says so.

Constraints: what is appended is safe `store_ms` later, as all replicas have it then, or lost with the broker before.

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


class Outside(Protocol):
    """What surrounds the brokers."""

    def later(self, delay_ms: DurationMs, action: Callable[[TimeMs], None]) -> None:
        """Let something happen after a while; it is told the time."""
        ...

    def tell(self, ticket: Ticket, response: Response) -> None:
        """Give an answer."""
        ...

    def appended(self, entries: tuple[GroupEntry, ...]) -> None:
        """Hear what the coordinator has decided to store."""
        ...

    def stored(self, entries: tuple[GroupEntry, ...]) -> None:
        """Hear what is safe, before the coordinator does."""
        ...


class Hosting:
    """One group on its brokers."""

    def __init__(self, options: ServiceOptions, entropy: RandomSource, outside: Outside) -> None:
        self.coordinator = BrokerId(0)
        self.service: GroupService | None = GroupService("group", options, entropy)
        """None while nobody coordinates."""
        self.records = StoredRecords()
        self.store_ms = DurationMs(3)
        self._options = options
        self._entropy = entropy
        self._outside = outside

    def handle(self, broker: BrokerId, ticket: Ticket, request: Request, now_ms: TimeMs) -> bool:
        """Take a request that reached `broker`; False when nobody is there to take it."""
        if broker != self.coordinator:
            self._outside.tell(ticket, refusal(request, ticket, ErrorCode.NOT_COORDINATOR))
        elif self.service is None:
            return False
        else:
            self._do(self.service.handle(ticket, request, now_ms))
        return True

    def advance(self, now_ms: TimeMs) -> None:
        """Do what is due by `now_ms`."""
        if self.service is not None:
            self._do(self.service.advance(now_ms))

    def next_ms(self) -> TimeMs | None:
        """Return when there is something to do next."""
        return None if self.service is None else self.service.next_ms()

    def die(self) -> None:
        """Lose the coordinator, and what it had not yet stored."""
        self.service = None

    def take_over(self, now_ms: TimeMs) -> None:
        """Let the next broker coordinate: it has read all that was stored."""
        self.coordinator = BrokerId((self.coordinator + 1) % BROKER_COUNT)
        self.service = GroupService("group", self._options, self._entropy)
        self.service.load(self.records.entries(), now_ms)

    def finish(self, service: GroupService, append: Append, now_ms: TimeMs) -> None:
        """Make an append safe, if the coordinator that asked for it is still there."""
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
                self._outside.later(self.store_ms, partial(self.finish, service, output))
