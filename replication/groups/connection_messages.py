"""Define the messages between group members and the coordinators on brokers, and their timers.

Constraints: `session` counts a client's starts, so that a response to a former process is not taken for the present
one's. A response names its broker.

Source: ours; the probe stands for TCP's detection of broken connections.
"""

from __future__ import annotations

import enum

import attrs

from broker.group.classic import Ticket
from broker.ids import BrokerId
from replication.groups.client.messages import Request, Response, Send
from replication.groups.common.events import Event
from replication.roles.messages import HostedMessage, NodeId


@attrs.frozen
class GroupRequest(HostedMessage):
    """Carry a client's request; the broker may forget its responses to tickets below `floor`."""

    client: NodeId
    session: int
    ticket: Ticket
    floor: Ticket
    group_id: str
    request: Request


@attrs.frozen
class GroupResponse(HostedMessage):
    """Carry the response to a request."""

    broker: BrokerId
    session: int
    ticket: Ticket
    response: Response


@attrs.frozen
class RequestProbe(HostedMessage):
    """Ask a broker whether these requests are still under way."""

    session: int
    tickets: tuple[Ticket, ...]


@attrs.frozen
class ProbeResult(HostedMessage):
    """Answer a probe: the broker works on `waiting`; other requests, or their responses, are lost."""

    broker: BrokerId
    session: int
    tickets: tuple[Ticket, ...]
    waiting: frozenset[Ticket]


@attrs.frozen
class ShardRead(HostedMessage):
    """Tell a broker that a shard has read its partition of `__consumer_offsets`; `number` tells shards apart."""

    partition: int
    number: int


@attrs.frozen
class ShardDue(HostedMessage):
    """Tell a broker that a coordinator has work to do now."""

    partition: int
    number: int


@attrs.frozen
class MemberDue(HostedMessage):
    """Tell a member that its consumer has work to do, if `number` is still the newest."""

    number: int


@attrs.frozen
class ProbeDue(HostedMessage):
    """Tell a member to probe the requests that are under way."""

    session: int


class Due(enum.Enum):
    """Name what is due at a member's process beside the events of its plan."""

    FREEZE_ENDS = enum.auto()
    RESTART = enum.auto()


@attrs.frozen
class EventDue(HostedMessage):
    """Tell a member that an event happens now."""

    what: Event | Due


@attrs.frozen
class HeldCommitDue(HostedMessage):
    """Tell a member to send a commit that was held back."""

    session: int
    send: Send


@attrs.frozen
class FetchNext(HostedMessage):
    """Tell a member to fetch a partition, if `number` is still the newest request for it."""

    partition: int
    number: int
