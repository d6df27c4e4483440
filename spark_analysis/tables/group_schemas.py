"""List the tables of consumer groups: members as they are given, and what is answered of each group.

Example:
    >>> MEMBERS.column_names[:4]
    ('cluster', 'group', 'member_id', 'topics')

Source: placement/consumer and placement/traffic, for what is counted.
"""

from __future__ import annotations

from typing import Final

from spark_analysis.tables.columns import Column, Table
from spark_analysis.tables.source_schemas import CLUSTER_INPUTS, CLUSTER_REJECTS, FAULT, SOURCE

_COUNT: Final = "partitions"
_BYTES: Final = "bytes"
_CLUSTER: Final = Column("cluster", "string", "Cluster of the group")
_GROUP: Final = Column("group", "string", "Consumer group")
_ASSIGNOR: Final = Column("assignor", "string", "Kafka's name of the assignor, or 'now' for what members hold")
_TOPIC: Final = (Column("topic", "string", "Topic"), Column("partition", "int", "Partition"))


def _known(name: str, comment: str, unit: str, kind: str = "long") -> Column:
    return Column(name, kind, f"{comment}; null where it is not known", unit, nullable=True)


MEMBERS: Final = Table(
    "members",
    "one row per member of a group",
    (
        _CLUSTER,
        _GROUP,
        Column("member_id", "string", "Member id"),
        Column("topics", "strings", "Topics that it subscribes to"),
        Column("rack", "string", "Its zone (client.rack); null or empty for none", nullable=True),
        Column("instance_id", "string", "group.instance.id of a static member", nullable=True),
        Column(
            "held",
            "strings",
            "Partitions that it holds now, each as TOPIC-PARTITION; empty for none, null where it is not known",
            nullable=True,
        ),
        FAULT,
    ),
)
OFFSETS: Final = Table(
    "offsets",
    "one row per group and partition",
    (
        _CLUSTER,
        _GROUP,
        *_TOPIC,
        Column("current_offset", "long", "Committed offset; null without one", nullable=True),
        Column("log_end_offset", "long", "End offset of the partition; null if not known", nullable=True),
        FAULT,
    ),
)
_CLIENT: Final = (
    Column("client_id", "string", "Client id of the member", nullable=True),
    Column("host", "string", "Host or address of the member", nullable=True),
)
DESCRIBED_MEMBERS: Final = Table(
    "members",
    "one row per member of a group, and one per input or entry that cannot be used",
    (
        *MEMBERS.columns[:-1],
        *_CLIENT,
        Column("assignor", "string", "Assignor of the group; null where no input says it", nullable=True),
        SOURCE,
        FAULT,
    ),
)
DESCRIBED_OFFSETS: Final = Table(
    "offsets",
    "one row per group and partition, and one per input or entry that cannot be used",
    (
        *OFFSETS.columns[:-1],
        Column("lag", "long", "Lag as printed; null if not known", "records", nullable=True),
        Column("member_id", "string", "Member that holds the partition; null for none", nullable=True),
        *_CLIENT,
        SOURCE,
        FAULT,
    ),
)
DESCRIBED_STATES: Final = Table(
    "states",
    "one row per group, and one per input or entry that cannot be used",
    (
        _CLUSTER,
        _GROUP,
        Column("state", "string", "State of the group: Stable, Empty, …"),
        Column("assignor", "string", "Assignor of the group; null without one", nullable=True),
        Column("coordinator", "string", "Address and id of its coordinator, as printed"),
        Column("member_count", "long", "Members", "members"),
        Column("group_epoch", "long", "Epoch of the group (KIP-848); null without", nullable=True),
        Column("target_epoch", "long", "Epoch of its target assignment; null without", nullable=True),
        SOURCE,
        FAULT,
    ),
)
GROUP_TABLES: Final = (DESCRIBED_MEMBERS, DESCRIBED_OFFSETS, DESCRIBED_STATES, CLUSTER_REJECTS, CLUSTER_INPUTS)
"""Tables of the data source kafka_groups, the default first."""
ASSIGNMENTS: Final = Table(
    "assignments",
    "one row per group and partition that a member gets",
    (_GROUP, Column("member_id", "string", "Member that gets it"), *_TOPIC),
)
BALANCE: Final = Table(
    "balance",
    "one row per group and assignor",
    (
        _GROUP,
        _ASSIGNOR,
        Column("member_count", "long", "Members", "members"),
        Column("partition_count", "long", "Partitions of the topics that it subscribes to", _COUNT),
        Column("assigned_count", "long", "Partitions that a member gets", _COUNT),
        Column("size_min", "long", "Fewest partitions of a member", _COUNT),
        Column("size_max", "long", "Most partitions of a member", _COUNT),
        _known("best_size_min", "Fewest partitions of a member at the most even sizes", _COUNT),
        _known("best_size_max", "Most partitions of a member at the most even sizes", _COUNT),
        _known("moved_count", "Partitions that get another member than holds them now", _COUNT),
        Column("matched_count", "long", "Partitions with a replica in their member's rack", _COUNT),
        Column("racked_count", "long", "Partitions of which the racks and the member's rack are known", _COUNT),
    ),
)
MOVES: Final = Table(
    "moves",
    "one row per group and partition that gets another member",
    (
        _GROUP,
        *_TOPIC,
        Column("before", "string", "Member that holds it now; null for nobody", nullable=True),
        Column("after", "string", "Member that gets it; null for nobody", nullable=True),
        Column("why", "string", "Reason: new, left, unsubscribed, disputed, chosen, withheld, no_reader, gone"),
    ),
)
LAG: Final = Table(
    "lag",
    "one row per group",
    (
        _GROUP,
        Column("partition_count", "long", "Partitions with an offset", _COUNT),
        Column("lag", "long", "Records between committed and end offsets, summed", "records", nullable=True),
        Column("lag_max", "long", "Most of one partition", "records", nullable=True),
        Column("lagging_count", "long", "Partitions with any lag", _COUNT),
        Column("unknown_count", "long", "Partitions whose committed or end offset is not known", _COUNT),
        Column("rejected_count", "long", "Rows that could not be used", "rows"),
        FAULT,
    ),
)
GROUP_TRAFFIC: Final = Table(
    "group_traffic",
    "one row per group and assignor",
    (
        _GROUP,
        _ASSIGNOR,
        Column("fetched_count", "long", "Partitions that are fetched", _COUNT),
        Column("unknown_count", "long", "Of these, with a member or leader without a zone", _COUNT),
        _known("fetched_bytes", "Bytes that are fetched", _BYTES),
        Column("crossing_count", "long", "Fetches across zones if all fetch from leaders", _COUNT),
        _known("crossing_bytes", "Bytes across zones if all fetch from leaders", _BYTES),
        Column("closest_count", "long", "Fetches across zones from the closest replica (KIP-392)", _COUNT),
        _known("closest_bytes", "Bytes across zones from the closest replica", _BYTES),
        _known("least_count", "Fewest fetches across zones of any assignment", _COUNT),
        _known("least_bytes", "Least bytes across zones of any assignment", _BYTES),
        _known("least_even_count", "The same of assignments as even as possible", _COUNT),
        _known("least_even_bytes", "The same of assignments as even as possible", _BYTES),
        _known("moved_count", "Partitions that get another member than holds them now", _COUNT),
        _known("cost", "Price of the bytes that cross from leaders", "USD", "double"),
        _known("closest_cost", "Price of the bytes that cross from the closest replica", "USD", "double"),
    ),
)
READERS: Final = Table(
    "readers",
    "one row per assignor, partition and zone that it is read from, and one per task with the least of its groups",
    (
        _ASSIGNOR,
        Column("topic", "string", "Topic; null in the row of the least", nullable=True),
        Column("partition", "int", "Partition; null in the row of the least", nullable=True),
        Column(
            "zone", "string", "Zone of the members; empty for a rack that no broker has, null for none", nullable=True
        ),
        Column("reader_count", "long", "Groups that read it from there", "groups"),
        Column("crossing_count", "double", "Of the least: fetches that cross", "fetches", nullable=True),
        Column("unknown_count", "double", "Of the least: fetches without a zone", "fetches", nullable=True),
        Column("fetched_bytes", "double", "Of the least: bytes fetched", _BYTES, nullable=True),
        Column("crossing_bytes", "double", "Of the least: bytes that cross", _BYTES, nullable=True),
        FAULT,
    ),
)


def _flow(name: str) -> tuple[Column, ...]:
    return (
        Column(f"{name}_count", "double", f"Sends or fetches of {name} across zones; expected values", "fetches"),
        _known(f"{name}_bytes", f"Bytes of {name} across zones", _BYTES, "double"),
    )


CHANGES: Final = Table(
    "changes_of_traffic",
    "one row per cluster and change: now, closest replica, an assignor, leaders, least",
    (
        Column("change", "string", "What is changed: now for nothing; least is each flow's own least"),
        *_flow("produce"),
        *_flow("replicate"),
        *_flow("consume"),
        Column("unknown_count", "double", "Sends or fetches an end of which has no zone", "fetches"),
        _known("crossing_bytes", "Bytes of the three flows across zones", _BYTES, "double"),
        _known("saved_bytes", "Bytes fewer than now", _BYTES, "double"),
        _known("cost", "Price of the bytes that cross", "USD", "double"),
        _known("saved_cost", "Price of the bytes saved", "USD", "double"),
        Column("moved_leader_count", "long", "Leaders that move", _COUNT),
        Column("leader_count_max", "long", "Most leaders of one broker afterwards", _COUNT),
    ),
)
