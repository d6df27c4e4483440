"""List the tables that jobs write, data sources give and questions answer, each column with type, unit and meaning.

What it decides: a unit of analysis is one cluster as placed by one placer, so `(cluster_id, placer)` is the key
everywhere; a real dump has the placer "dump". A null means that the input does not say; it never stands for zero. In
tables that data sources give to Spark every column may be null, because the row of a fault has its `fault`, its
`source` and what else is known, and nulls elsewhere. Numbers that Kafka writes as -1 for "none" stay -1.

How: schemas.txt has a section for each table: its name, what one row stands for, and a line for each column: name,
type (`?` if it may be null), unit and meaning. A line that begins with `=` takes columns of an earlier table. Arrow
schemas are derived from these, Spark's from Arrow's. The comments travel in the Parquet files to every reader.

Example:
    >>> BROKERS.column_names[:6]
    ('cluster_id', 'placer', 'broker_id', 'rack', 'fenced', 'replica_count')
    >>> BROKERS.arrow_schema().field("replica_count").metadata[b"unit"]
    b'replicas'

Source: `kafka-topics --describe` for the names of states; Kafka's record batch, magic 2; Spark's own source of Kafka
records, for `timestamp_type` and `headers`; placement and log, for what is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from spark_analysis.tables.columns import KEY, Column, Table


def _read(text: str) -> Mapping[str, Table]:
    """Return the tables of schemas.txt by the name of their section."""
    tables = {"KEY": Table("key", "", KEY)}
    for section in text.strip().split("\n\n"):
        (label, name, grain), *rows = (line.split("\t") for line in section.split("\n"))
        columns: list[Column] = []
        for row in rows:
            if len(row) == 1:
                source, _, taken = row[0].removeprefix("= ").partition(": ")
                by_name = {column.name: column for column in tables[source].columns}
                columns += [by_name[each] for each in taken.split(" ")]
            else:
                column, kind, unit, comment = row
                unit = "" if unit == "-" else unit
                columns.append(Column(column, kind.removesuffix("?"), comment, unit, nullable=kind.endswith("?")))
        tables[label.strip("[]")] = Table(name, grain, tuple(columns))
    return tables


_OF: Final = _read(resources.files("spark_analysis.tables").joinpath("schemas.txt").read_text("utf-8"))

CLUSTERS: Final = _OF["CLUSTERS"]
MEASURES: Final = _OF["MEASURES"]
BROKERS: Final = _OF["BROKERS"]
LOG_DIRS: Final = _OF["LOG_DIRS"]
RACKS: Final = _OF["RACKS"]
TOPICS: Final = _OF["TOPICS"]
VIOLATIONS: Final = _OF["VIOLATIONS"]
PARTITIONS: Final = _OF["PARTITIONS"]
REJECTS: Final = _OF["REJECTS"]
INPUTS: Final = _OF["INPUTS"]
CHANGES: Final = _OF["CHANGES"]
PAIRS: Final = _OF["PAIRS"]
FACTS: Final = _OF["FACTS"]
FAILURES: Final = _OF["FAILURES"]

PLANS: Final = _OF["PLANS"]
OUTAGES: Final = _OF["OUTAGES"]
RESTARTS: Final = _OF["RESTARTS"]
RECOVERY: Final = _OF["RECOVERY"]
LOST: Final = OUTAGES.columns[2:5]
"""Columns that say which outage a row is about."""
ADVICE: Final = (PLANS, OUTAGES, RESTARTS, RECOVERY)
"""Tables of what to do next; of a simulated fleet they have no rows."""
WORK: Final = (FACTS, FAILURES)
"""Tables of a run's own, which the driver reads and nobody writes."""
TABLES: Final = (
    CLUSTERS,
    MEASURES,
    BROKERS,
    LOG_DIRS,
    RACKS,
    TOPICS,
    VIOLATIONS,
    PARTITIONS,
    REJECTS,
    INPUTS,
    CHANGES,
    PAIRS,
    *ADVICE,
)

CLUSTER_PARTITIONS: Final = _OF["CLUSTER_PARTITIONS"]
CLUSTER_BROKERS: Final = _OF["CLUSTER_BROKERS"]
CLUSTER_CLUSTERS: Final = _OF["CLUSTER_CLUSTERS"]
CLUSTER_REJECTS: Final = REJECTS
CLUSTER_INPUTS: Final = INPUTS
SOURCE, FAULT = CLUSTER_PARTITIONS.columns[-2:]
CLUSTER_TABLES: Final = (CLUSTER_PARTITIONS, CLUSTER_BROKERS, CLUSTER_CLUSTERS, REJECTS, INPUTS)
"""Tables of the data source kafka_cluster, the default first."""
METADATA_PARTITIONS: Final = _OF["METADATA_PARTITIONS"]
METADATA_BROKERS: Final = _OF["METADATA_BROKERS"]
METADATA_CLUSTERS: Final = _OF["METADATA_CLUSTERS"]
METADATA_EVENTS: Final = _OF["METADATA_EVENTS"]
METADATA_TABLES: Final = (METADATA_PARTITIONS, METADATA_BROKERS, METADATA_CLUSTERS, METADATA_EVENTS, REJECTS, INPUTS)
"""Tables of the data source kafka_metadata, the default first."""
FLEET_PARTITIONS: Final = _OF["FLEET_PARTITIONS"]
FLEET_BROKERS: Final = _OF["FLEET_BROKERS"]
FLEET_CLUSTERS: Final = _OF["FLEET_CLUSTERS"]
FLEET_TABLES: Final = (FLEET_PARTITIONS, FLEET_BROKERS, FLEET_CLUSTERS)
"""Tables of the data source kafka_fleet, the default first."""
LOG_RECORDS: Final = _OF["LOG_RECORDS"]
LOG_BATCHES: Final = _OF["LOG_BATCHES"]
LOG_DAMAGE: Final = _OF["LOG_DAMAGE"]
LOG_SEGMENTS: Final = _OF["LOG_SEGMENTS"]
LOG_TABLES: Final = (LOG_RECORDS, LOG_BATCHES, LOG_DAMAGE, LOG_SEGMENTS)
"""Tables of the data source kafka_log, the default first."""
DESCRIBED_MEMBERS: Final = _OF["DESCRIBED_MEMBERS"]
DESCRIBED_OFFSETS: Final = _OF["DESCRIBED_OFFSETS"]
DESCRIBED_STATES: Final = _OF["DESCRIBED_STATES"]
GROUP_TABLES: Final = (DESCRIBED_MEMBERS, DESCRIBED_OFFSETS, DESCRIBED_STATES, REJECTS, INPUTS)
"""Tables of the data source kafka_groups, the default first."""

CODECS: Final = _OF["CODECS"]
KEYS: Final = _OF["KEYS"]
COMPACTION: Final = _OF["COMPACTION"]
HELD: Final = _OF["HELD"]
MEMBERS: Final = _OF["MEMBERS"]
OFFSETS: Final = _OF["OFFSETS"]
ASSIGNMENTS: Final = _OF["ASSIGNMENTS"]
BALANCE: Final = _OF["BALANCE"]
MOVES: Final = _OF["MOVES"]
LAG: Final = _OF["LAG"]
GROUP_TRAFFIC: Final = _OF["GROUP_TRAFFIC"]
READERS: Final = _OF["READERS"]
TRAFFIC_CHANGES: Final = _OF["TRAFFIC_CHANGES"]
FILE_BATCHES: Final = _OF["FILE_BATCHES"]
FILE_RECORDS: Final = _OF["FILE_RECORDS"]
FILE_DAMAGES: Final = _OF["FILE_DAMAGES"]
HIT: Final = _OF["HIT"]
MOVED: Final = _OF["MOVED"]
