"""What group members and the coordinators on brokers say to each other, and what each says to itself later.

It decides what a connection carries: requests and answers of `replication.groups.alone`, named by tickets; and the
probe by which a client finds out that a connection is broken.

Constraints: `session` counts a client's starts, so that nothing of a former process is taken for the present one's. An
answer names its broker, and reaches the client over whatever connection there is.

Source: ours; what TCP does for Kafka's clients.
"""

from __future__ import annotations

import attrs

from broker.group.classic import Ticket
from broker.ids import BrokerId
from replication.groups.client.messages import Request, Response
from replication.roles.messages import HostedMessage, NodeId


@attrs.frozen
class GroupRequest(HostedMessage):
    """A client's request. Tickets below `floor` are done with: their answers need not be kept."""

    client: NodeId
    session: int
    ticket: Ticket
    floor: Ticket
    group_id: str
    request: Request


@attrs.frozen
class GroupResponse(HostedMessage):
    """The answer to a request."""

    broker: BrokerId
    session: int
    ticket: Ticket
    response: Response


@attrs.frozen
class RequestProbe(HostedMessage):
    """A client asks whether these requests are still under way."""

    session: int
    tickets: tuple[Ticket, ...]


@attrs.frozen
class ProbeResult(HostedMessage):
    """Of `tickets` the broker is at work on `waiting`; the others, or their answers, are lost."""

    broker: BrokerId
    session: int
    tickets: tuple[Ticket, ...]
    waiting: frozenset[Ticket]


@attrs.frozen
class ShardRead(HostedMessage):
    """To itself: the time to read a partition of `__consumer_offsets` is over; `number` counts the shards made."""

    partition: int
    number: int


@attrs.frozen
class ShardDue(HostedMessage):
    """To itself: a coordinator has something to do now."""

    partition: int
    number: int


@attrs.frozen
class MemberDue(HostedMessage):
    """A member to itself: its consumer has something to do, if `number` is still the last."""

    number: int


@attrs.frozen
class ProbeDue(HostedMessage):
    """A member to itself: look after the requests that are under way."""

    session: int


@attrs.frozen
class ActDue(HostedMessage):
    """A member to itself: do the next thing of its plan."""

    place: int


@attrs.frozen
class FetchNext(HostedMessage):
    """A member to itself: fetch a partition, if `number` is still the last question about it."""

    partition: int
    number: int
