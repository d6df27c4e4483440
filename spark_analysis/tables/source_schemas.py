"""List the tables that data sources give to Spark, each column with its type, unit and meaning.

What it decides: the columns of `spark.read.format("kafka_cluster")` and of its siblings. They hold what an input says,
and no judgement: names and meanings are those of schemas.py, so that every analysis takes both.

Constraints: a null means that the input does not say. In Spark every column may be null, because the row of a fault has
its `fault`, its `source` and what else is known, and nulls elsewhere.

Example:
    >>> CLUSTER_PARTITIONS.column_names[:6]
    ('cluster', 'topic', 'partition', 'leader', 'replicas', 'isr')

Source: schemas.py, for the columns that both have.
"""

from __future__ import annotations

from typing import Final

from spark_analysis.tables import schemas
from spark_analysis.tables.columns import KEY, Column, Table


def _taken(table: Table, *names: str) -> tuple[Column, ...]:
    by_name = {column.name: column for column in table.columns}
    return tuple(by_name[name] for name in names)


def _brokers(name: str, comment: str) -> Column:
    return Column(name, "ints", f"{comment}; null when the input does not say", nullable=True)


SOURCE: Final = Column("source", "string", "File that the row was read from")
FAULT: Final = Column(
    "fault", "string", "What is wrong with an input or an entry of it, and where; null in a good row", nullable=True
)
MOMENT: Final = (
    Column("offset", "long", "Last offset of the metadata log that the row includes"),
    Column("time_ms", "long", "Time of the record at that offset", "ms since 1970"),
    Column("moment", "string", "What changed since the moment before, in words", nullable=True),
)

_PARTITION: Final = (
    *_taken(schemas.PARTITIONS, "cluster", "topic", "partition", "leader", "replicas", "isr", "racks"),
    *_taken(schemas.PARTITIONS, "elr"),
    _brokers("last_known_elr", "Replicas that were the last known eligible leaders"),
    _brokers("observers", "Replicas that never join the ISR by themselves (Confluent's observers)"),
    *_taken(schemas.PARTITIONS, "offline", "adding", "removing", "min_insync_replicas", "size_bytes"),
    Column(
        "replica_size_bytes",
        "longs",
        "Bytes of each replica, in the order of the replicas; null when the input does not say",
        "bytes",
        nullable=True,
    ),
)
_BROKER: Final = (
    *_taken(schemas.CLUSTERS, "cluster"),
    *_taken(schemas.BROKERS, "broker_id", "rack", "fenced"),
    *_taken(schemas.BROKERS, "cordoned", "in_controlled_shutdown"),
    Column("host", "string", "Name of its host", nullable=True),
    *_taken(schemas.BROKERS, "replica_count", "leader_count", "size_bytes"),
)
_CLUSTER: Final = (
    *_taken(schemas.CLUSTERS, "cluster", "format", "broker_count", "fenced_broker_count", "rack_count", "topic_count"),
    *_taken(schemas.CLUSTERS, "partition_count", "replica_count", "size_bytes"),
    Column("partitions_complete", "boolean", "Whether the input lists every partition of the cluster"),
    Column("notes", "strings", "What else is to be known of this cluster"),
)

CLUSTER_PARTITIONS: Final = Table(
    "partitions",
    "one row per partition that an input lists, and one per input or entry that cannot be used",
    (*_PARTITION, SOURCE, FAULT),
)
CLUSTER_BROKERS: Final = Table(
    "brokers",
    "one row per cluster and broker, brokers that hold nothing included, and one per input that cannot be used",
    (*_BROKER, SOURCE, FAULT),
)
CLUSTER_CLUSTERS: Final = Table(
    "clusters", "one row per cluster, and one per input that cannot be used", (*_CLUSTER, SOURCE, FAULT)
)
CLUSTER_REJECTS: Final = schemas.REJECTS
CLUSTER_INPUTS: Final = schemas.INPUTS

CLUSTER_TABLES: Final = (CLUSTER_PARTITIONS, CLUSTER_BROKERS, CLUSTER_CLUSTERS, CLUSTER_REJECTS, CLUSTER_INPUTS)
"""Tables of the data source kafka_cluster, the default first."""

METADATA_PARTITIONS: Final = Table(
    "partitions",
    "one row per moment and partition of a metadata log, and one per log or record that cannot be used",
    (_PARTITION[0], *MOMENT, *_PARTITION[1:], SOURCE, FAULT),
)
METADATA_BROKERS: Final = Table(
    "brokers",
    "one row per moment and broker, and one per log that cannot be used",
    (_BROKER[0], *MOMENT, *_BROKER[1:], SOURCE, FAULT),
)
METADATA_CLUSTERS: Final = Table(
    "clusters",
    "one row per moment, and one per log that cannot be used",
    (_CLUSTER[0], *MOMENT, *_CLUSTER[1:], SOURCE, FAULT),
)
METADATA_EVENTS: Final = Table(
    "events",
    "one row per event, as brokerside log history prints them, and one per log or record that cannot be used",
    (
        _PARTITION[0],
        Column("offset", "long", "Offset of the record"),
        Column("time_ms", "long", "Time of the record", "ms since 1970"),
        Column("what", "string", "Kind of event: leader elected, unclean election, ISR shrunk, broker fenced, …"),
        Column("subject", "string", "Partition, topic, broker or resource concerned"),
        Column("detail", "string", "Before and after, in words"),
        Column("topic", "string", "Topic, where it concerns one", nullable=True),
        Column("partition", "int", "Partition, where it concerns one", nullable=True),
        Column("broker", "int", "Broker, where it concerns one", nullable=True),
        Column("duration_ms", "long", "How long what ends here has lasted", "ms", nullable=True),
        Column("duration_ms_min", "long", "The same, at least, if a log begins with a snapshot", "ms", nullable=True),
        SOURCE,
        FAULT,
    ),
)
METADATA_TABLES: Final = (
    METADATA_PARTITIONS,
    METADATA_BROKERS,
    METADATA_CLUSTERS,
    METADATA_EVENTS,
    CLUSTER_REJECTS,
    CLUSTER_INPUTS,
)
"""Tables of the data source kafka_metadata, the default first."""

_SIMULATED: Final = (*KEY, *_taken(schemas.CLUSTERS, "shape"))
FLEET_PARTITIONS: Final = Table(
    "partitions", "one row per simulated cluster, placer and partition", (*_SIMULATED, *_PARTITION, SOURCE)
)
FLEET_BROKERS: Final = Table(
    "brokers", "one row per simulated cluster, placer and broker", (*_SIMULATED, *_BROKER, SOURCE)
)
FLEET_CLUSTERS: Final = Table("clusters", "one row per simulated cluster and placer", (*_SIMULATED, *_CLUSTER, SOURCE))
FLEET_TABLES: Final = (FLEET_PARTITIONS, FLEET_BROKERS, FLEET_CLUSTERS)
"""Tables of the data source kafka_fleet, the default first."""
