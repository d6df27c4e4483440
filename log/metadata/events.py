"""Define the kinds of events in a cluster's history, and one event.

What it decides: which changes are events, and the name of each kind.

Constraints: a deleted topic is one event, as is a created one, whose partitions are counted. Values of settings are
shown for topics only: those of brokers, clients and users may be secrets.

Example: an ISR that went from 1, 2, 3 to 1, 2 is
Event(what=ClusterEventKind.ISR_SHRUNK, subject="orders-3", detail="1, 2, 3 → 1, 2; left: 3").

Left out: NoOp records, producer ids, directories of single replicas, and eligible leaders beside the ISR.

Source: ours; `log.metadata.unclean` decides what is an unclean election.
"""

from __future__ import annotations

import enum

from broker.ids import BrokerId, Offset, PartitionId
from broker.units import DurationMs, TimeMs
from broker.values import value


class ClusterEventKind(enum.Enum):
    """List the kinds of events; the value is the text printed for the kind."""

    LEADER_ELECTED = "leader elected"
    """Another broker leads."""
    LEADER_REELECTED = "leader re-elected"
    """The same broker leads in a new epoch."""
    LEADER_LOST = "leader lost"
    """Nobody leads."""
    UNCLEAN_ELECTION = "unclean election"
    """Data may be lost: the controller elected a leader that was neither in sync nor eligible."""
    RECOVERED = "recovered"
    """The leader of an unclean election has said that it has recovered."""
    ISR_SHRUNK = "ISR shrunk"
    """Replicas left, none joined."""
    ISR_GROWN = "ISR grown"
    """Replicas joined, none left."""
    ISR_CHANGED = "ISR changed"
    """Both."""
    REASSIGNMENT_BEGUN = "reassignment begun"
    """Replicas are being added or removed from now on."""
    REASSIGNMENT_CHANGED = "reassignment changed"
    """Others are, before it ended."""
    REASSIGNMENT_ENDED = "reassignment ended"
    """None are any more: done, or cancelled."""
    REPLICAS_CHANGED = "replicas changed"
    """Other replicas, without a reassignment."""
    PARTITION_ADDED = "partition added"
    """To a topic that was there before."""
    TOPIC_CREATED = "topic created"
    """With so many partitions."""
    TOPIC_DELETED = "topic deleted"
    """With all its partitions and settings."""
    BROKER_REGISTERED = "broker registered"
    """For the first time, or as a new process."""
    BROKER_UNREGISTERED = "broker unregistered"
    """For good."""
    BROKER_FENCED = "broker fenced"
    """It may not lead or be in sync."""
    BROKER_UNFENCED = "broker unfenced"
    """It may again, after so long."""
    BROKER_STOPPING = "broker stopping"
    """In controlled shutdown: it gives up what it leads."""
    BROKER_DIRECTORIES = "broker directories changed"
    """Other log directories are online."""
    BROKER_CORDONED = "broker directories cordoned"
    """Other log directories get no new replicas (KIP-1066)."""
    SETTING_CHANGED = "setting changed"
    """Of a topic, a broker, or all brokers."""
    FEATURE_CHANGED = "feature changed"
    """Its level for the whole cluster."""
    CONTROLLER_ELECTED = "controller elected"
    """Who leads the quorum."""
    QUOTA_CHANGED = "quota changed"
    """Of a client or a user."""
    ACCESS_CHANGED = "access changed"
    """A rule, a credential or a token."""


@value
class Event:
    """Describe one event: offset, time, kind, subject, and the state before and after as text."""

    offset: Offset
    time_ms: TimeMs
    what: ClusterEventKind
    subject: str
    detail: str = ""
    topic: str | None = None
    partition: PartitionId | None = None
    broker: BrokerId | None = None
    duration_ms: DurationMs | None = None
    """How long what ends here has lasted: a fencing, a time without leader, a reassignment."""
    duration_ms_min: DurationMs | None = None
    """The same, at least, where the log begins with a snapshot in which it lasted already."""
