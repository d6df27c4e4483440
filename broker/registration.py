"""Decide the registration state of a broker as the controller sees it, and which process may register an id.

Goals, most important first: two processes never hold one broker id at a time; a silent broker loses its leaderships; a
stopping broker hands them over first. What the tables do not list is refused and changes nothing.

How (KRaft): a broker registers, starts fenced, and reports every 2 s. It is unfenced once it has read the metadata log
up to its own registration; it is fenced when it is silent for 9 s or asks for it. A broker that wants to stop and still
leads goes through controlled shutdown: it may stop when it leads nothing and every active broker has read the metadata
that says so. What a heartbeat says, and what the controller knows when it arrives, make one input (`heartbeat_input`).

The older mode (ZooKeeper, until 3.9): a broker is alive while its ephemeral node is there. There is no fencing: a
broker that lost its connection counts as alive until its session expires.

    >>> broker_step(BrokerState.FENCED, BrokerInput.HEARTBEAT_CAUGHT_UP)
    <BrokerState.UNFENCED: 3>
    >>> broker_step(BrokerState.FENCED, BrokerInput.HEARTBEAT_BEHIND)
    <BrokerState.FENCED: 2>

Source: Kafka 4.0 metadata BrokerHeartbeatManager.calculateNextBrokerState, BrokerControlState and
ClusterControlManager.registerBroker; KIP-631, KIP-841; for ZooKeeper KafkaZkClient.registerBroker and KIP-380.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.errors import RefusedError
from broker.ids import BrokerEpoch, BrokerId
from broker.machines import step


class BrokerState(enum.Enum):
    """List the states of a broker as the KRaft controller sees it, by the names of Kafka's BrokerControlState."""

    UNREGISTERED = enum.auto()
    """Not known, or unregistered by an operator."""

    FENCED = enum.auto()
    """Registered, gets no leadership and stands in no ISR."""

    UNFENCED = enum.auto()
    """Alive: may lead and join ISRs."""

    CONTROLLED_SHUTDOWN = enum.auto()
    """Alive, handing its leaderships over; gets no new ones and joins no ISR."""

    SHUTDOWN_NOW = enum.auto()
    """The controller allowed the broker to stop, and treats the broker as fenced."""


class BrokerInput(enum.Enum):
    """List the events that change a broker's registration."""

    REGISTER_NEW_INCARNATION = enum.auto()
    """A process started anew registers."""

    REGISTER_SAME_INCARNATION = enum.auto()
    """The registered process registers again, to change its registration."""

    HEARTBEAT_BEHIND = enum.auto()
    """It reports and wants to be unfenced, but has not read its own registration yet."""

    HEARTBEAT_CAUGHT_UP = enum.auto()
    """It reports, wants to be unfenced, and has read its own registration."""

    HEARTBEAT_WANTS_FENCE = enum.auto()
    """It asks to be fenced."""

    HEARTBEAT_WANTS_FENCE_AND_SHUTDOWN = enum.auto()
    """It asks to be fenced and to stop at once."""

    HEARTBEAT_WANTS_SHUTDOWN_LEADING = enum.auto()
    """It asks to stop, and leads partitions."""

    HEARTBEAT_WANTS_SHUTDOWN_WAITING = enum.auto()
    """It asks to stop and leads nothing, but some active broker has not read that yet."""

    HEARTBEAT_WANTS_SHUTDOWN_READY = enum.auto()
    """It asks to stop, leads nothing, and every active broker knows."""

    SESSION_EXPIRED = enum.auto()
    """It has been silent for broker.session.timeout.ms."""

    UNREGISTER = enum.auto()
    """An operator removes it."""


_S, _I = BrokerState, BrokerInput

# A broker in SHUTDOWN_NOW is stored as fenced, so the rules for fenced brokers apply to it.
_FENCED_ROWS: Final = {
    _I.REGISTER_NEW_INCARNATION: _S.FENCED,
    _I.HEARTBEAT_BEHIND: _S.FENCED,
    _I.HEARTBEAT_CAUGHT_UP: _S.UNFENCED,
    _I.HEARTBEAT_WANTS_FENCE: _S.FENCED,
    _I.HEARTBEAT_WANTS_FENCE_AND_SHUTDOWN: _S.SHUTDOWN_NOW,
    _I.HEARTBEAT_WANTS_SHUTDOWN_LEADING: _S.SHUTDOWN_NOW,
    _I.HEARTBEAT_WANTS_SHUTDOWN_WAITING: _S.SHUTDOWN_NOW,
    _I.HEARTBEAT_WANTS_SHUTDOWN_READY: _S.SHUTDOWN_NOW,
    _I.REGISTER_SAME_INCARNATION: _S.FENCED,
    _I.UNREGISTER: _S.UNREGISTERED,
}

BROKER_TRANSITIONS: Final[Mapping[tuple[BrokerState, BrokerInput], BrokerState]] = MappingProxyType(
    {
        (_S.UNREGISTERED, _I.REGISTER_NEW_INCARNATION): _S.FENCED,
        **{(_S.FENCED, event): following for event, following in _FENCED_ROWS.items()},
        **{(_S.SHUTDOWN_NOW, event): following for event, following in _FENCED_ROWS.items()},
        (_S.UNFENCED, _I.REGISTER_SAME_INCARNATION): _S.UNFENCED,
        (_S.UNFENCED, _I.HEARTBEAT_BEHIND): _S.UNFENCED,
        (_S.UNFENCED, _I.HEARTBEAT_CAUGHT_UP): _S.UNFENCED,
        (_S.UNFENCED, _I.HEARTBEAT_WANTS_FENCE): _S.FENCED,
        (_S.UNFENCED, _I.HEARTBEAT_WANTS_FENCE_AND_SHUTDOWN): _S.SHUTDOWN_NOW,
        (_S.UNFENCED, _I.HEARTBEAT_WANTS_SHUTDOWN_LEADING): _S.CONTROLLED_SHUTDOWN,
        # Who leads nothing stops at once: only brokers that handed something over wait for the others.
        (_S.UNFENCED, _I.HEARTBEAT_WANTS_SHUTDOWN_WAITING): _S.SHUTDOWN_NOW,
        (_S.UNFENCED, _I.HEARTBEAT_WANTS_SHUTDOWN_READY): _S.SHUTDOWN_NOW,
        (_S.UNFENCED, _I.SESSION_EXPIRED): _S.FENCED,
        (_S.UNFENCED, _I.UNREGISTER): _S.UNREGISTERED,
        (_S.CONTROLLED_SHUTDOWN, _I.REGISTER_SAME_INCARNATION): _S.CONTROLLED_SHUTDOWN,
        (_S.CONTROLLED_SHUTDOWN, _I.HEARTBEAT_WANTS_SHUTDOWN_LEADING): _S.CONTROLLED_SHUTDOWN,
        (_S.CONTROLLED_SHUTDOWN, _I.HEARTBEAT_WANTS_SHUTDOWN_WAITING): _S.CONTROLLED_SHUTDOWN,
        (_S.CONTROLLED_SHUTDOWN, _I.HEARTBEAT_WANTS_SHUTDOWN_READY): _S.SHUTDOWN_NOW,
        (_S.CONTROLLED_SHUTDOWN, _I.SESSION_EXPIRED): _S.FENCED,
        (_S.CONTROLLED_SHUTDOWN, _I.UNREGISTER): _S.UNREGISTERED,
    }
)


class ZookeeperState(enum.Enum):
    """List the states of a broker's node in ZooKeeper's /brokers/ids."""

    ABSENT = enum.auto()
    """No node: the controller moves its leaderships away."""

    ALIVE = enum.auto()
    """Its ephemeral node is there and its connection stands."""

    DISCONNECTED = enum.auto()
    """The connection is lost, the session not yet: to the controller it is alive."""

    SHUTTING_DOWN = enum.auto()
    """Alive, handing its leaderships over at its own request."""


class ZookeeperInput(enum.Enum):
    """List the events that change a broker's ephemeral node."""

    CREATE_NODE = enum.auto()
    """A process creates the node; refused while one is there. Its transaction id is the broker epoch."""

    CONNECTION_LOST = enum.auto()
    """The process cannot reach ZooKeeper."""

    RECONNECTED = enum.auto()
    """It reaches it again within the session."""

    SESSION_EXPIRED = enum.auto()
    """ZooKeeper ends the session and deletes the node."""

    WANTS_SHUTDOWN = enum.auto()
    """It asks the controller for a controlled shutdown."""

    SESSION_CLOSED = enum.auto()
    """It stops and closes its session, which deletes the node."""


_Z, _E = ZookeeperState, ZookeeperInput

ZOOKEEPER_TRANSITIONS: Final[Mapping[tuple[ZookeeperState, ZookeeperInput], ZookeeperState]] = MappingProxyType(
    {
        (_Z.ABSENT, _E.CREATE_NODE): _Z.ALIVE,
        (_Z.ALIVE, _E.CONNECTION_LOST): _Z.DISCONNECTED,
        (_Z.ALIVE, _E.SESSION_EXPIRED): _Z.ABSENT,
        (_Z.ALIVE, _E.WANTS_SHUTDOWN): _Z.SHUTTING_DOWN,
        (_Z.ALIVE, _E.SESSION_CLOSED): _Z.ABSENT,
        (_Z.DISCONNECTED, _E.RECONNECTED): _Z.ALIVE,
        (_Z.DISCONNECTED, _E.SESSION_EXPIRED): _Z.ABSENT,
        (_Z.SHUTTING_DOWN, _E.WANTS_SHUTDOWN): _Z.SHUTTING_DOWN,
        (_Z.SHUTTING_DOWN, _E.SESSION_EXPIRED): _Z.ABSENT,
        (_Z.SHUTTING_DOWN, _E.SESSION_CLOSED): _Z.ABSENT,
    }
)


class DuplicateBrokerRegistrationError(RefusedError):
    """Another process holds the broker id, and its session has not ended."""

    kafka_class = "org.apache.kafka.common.errors.DuplicateBrokerRegistrationException"

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        super().__init__("Another broker is registered with that broker id.")


NOTHING_READ: Final = -1
"""The metadata offset of a broker that has applied no record yet."""


@attrs.frozen(kw_only=True)
class Heartbeat:
    """Hold the fields of BrokerHeartbeat that the controller decides by.

    `metadata_offset` is the offset of the last metadata record that the broker has applied, `NOTHING_READ` for none.
    """

    metadata_offset: int
    want_fence: bool = False
    want_shutdown: bool = False


@attrs.frozen(kw_only=True)
class Registration:
    """Describe one registered broker; `epoch` is the registration record's offset in the metadata log."""

    broker_id: BrokerId
    incarnation_id: str
    epoch: BrokerEpoch
    state: BrokerState = BrokerState.FENCED


def broker_step(state: BrokerState, event: BrokerInput) -> BrokerState:
    """Return the next KRaft state; raise UsageError if the table has no row."""
    return step(BROKER_TRANSITIONS, state, event, what="broker")


def zookeeper_step(state: ZookeeperState, event: ZookeeperInput) -> ZookeeperState:
    """Return the next ZooKeeper state; raise UsageError if the table has no row."""
    return step(ZOOKEEPER_TRANSITIONS, state, event, what="broker node")


def heartbeat_input(
    heartbeat: Heartbeat, *, registration_offset: int, leads: bool, shutdown_seen_by_all: bool
) -> BrokerInput:
    """Return the state machine's input for a heartbeat.

    `leads` says whether the broker leads a partition now; `shutdown_seen_by_all` whether every active broker
    has read the metadata up to the offset at which the controlled shutdown began.
    """
    if heartbeat.want_shutdown:
        if heartbeat.want_fence:
            return BrokerInput.HEARTBEAT_WANTS_FENCE_AND_SHUTDOWN
        if leads:
            return BrokerInput.HEARTBEAT_WANTS_SHUTDOWN_LEADING
        if not shutdown_seen_by_all:
            return BrokerInput.HEARTBEAT_WANTS_SHUTDOWN_WAITING
        return BrokerInput.HEARTBEAT_WANTS_SHUTDOWN_READY
    if heartbeat.want_fence:
        return BrokerInput.HEARTBEAT_WANTS_FENCE
    caught_up = heartbeat.metadata_offset >= registration_offset
    return BrokerInput.HEARTBEAT_CAUGHT_UP if caught_up else BrokerInput.HEARTBEAT_BEHIND


def register(
    existing: Registration | None, *, broker_id: BrokerId, incarnation_id: str, record_offset: int, session_valid: bool
) -> Registration:
    """Return the registration after a process registers the id with a record at `record_offset`.

    `session_valid` says whether a heartbeat of `existing` came within its session; before 4.0 a fenced broker has none.
    Raises DuplicateBrokerRegistrationError when another incarnation's session still stands.
    """
    epoch = BrokerEpoch(record_offset)
    if existing is None:
        state = broker_step(BrokerState.UNREGISTERED, BrokerInput.REGISTER_NEW_INCARNATION)
        return Registration(broker_id=broker_id, incarnation_id=incarnation_id, epoch=epoch, state=state)
    assert existing.broker_id == broker_id, (existing.broker_id, broker_id)
    if existing.incarnation_id == incarnation_id:
        return attrs.evolve(existing, state=broker_step(existing.state, BrokerInput.REGISTER_SAME_INCARNATION))
    if session_valid:
        raise DuplicateBrokerRegistrationError(broker_id)
    state = existing.state
    if state in SESSION_STATES:
        state = broker_step(state, BrokerInput.SESSION_EXPIRED)
    state = broker_step(state, BrokerInput.REGISTER_NEW_INCARNATION)
    return Registration(broker_id=broker_id, incarnation_id=incarnation_id, epoch=epoch, state=state)


SESSION_STATES: Final = frozenset({BrokerState.UNFENCED, BrokerState.CONTROLLED_SHUTDOWN})
"""The states in which a broker has a session that can be valid or expire."""
