"""List the tables that every job writes, each column with its type, unit and meaning.

What it decides: a unit of analysis is one cluster as placed by one placer, so `(cluster_id, placer)` is the key
everywhere; a real dump has the placer "dump". A null means that the input does not say; it never stands for zero.

How: Arrow schemas are derived from these lists, Spark's from Arrow's. The comments travel in the Parquet files to every
reader.

Example:
    >>> BROKERS.column_names
    ('cluster_id', 'placer', 'broker_id', 'rack', 'fenced', 'replica_count', 'leader_count', 'size_bytes', \
'missing_from_isr_count', 'cordoned', 'in_controlled_shutdown')
    >>> BROKERS.arrow_schema().field("replica_count").metadata[b"unit"]
    b'replicas'

Source: `kafka-topics --describe` for the names of states.
"""

from __future__ import annotations

from typing import Final

from spark_analysis.tables.advice_schemas import ADVICE
from spark_analysis.tables.columns import KEY, Column, Table, state
from spark_analysis.tables.limits import VIOLATIONS_MAX


def _brokers(name: str, comment: str) -> Column:
    return Column(name, "ints", comment + "; null when the input does not say", nullable=True)


def _is(name: str, comment: str) -> Column:
    return Column(name, "boolean", comment + "; null when the input does not say", nullable=True)


CLUSTERS: Final = Table(
    "clusters",
    "one row per cluster and placer",
    (
        *KEY,
        Column("cluster", "string", "Name of the cluster"),
        Column("source", "string", "File it was read from, or the recipe's name"),
        Column("format", "string", "Format of the dump, or 'simulated'"),
        Column("shape", "string", "Shape of the recipe", nullable=True),
        Column("broker_count", "int", "Brokers registered, those that hold nothing included", "brokers"),
        Column("fenced_broker_count", "int", "Brokers that are fenced", "brokers"),
        Column("unracked_broker_count", "int", "Brokers without a rack", "brokers"),
        Column("rack_count", "int", "Racks; 0 when no broker's rack is known", "racks"),
        Column("rack_broker_count_min", "int", "Brokers in the smallest rack", "brokers", nullable=True),
        Column("rack_broker_count_max", "int", "Brokers in the largest rack", "brokers", nullable=True),
        Column("topic_count", "int", "Topics", "topics", nullable=True),
        Column("partition_count", "long", "Partitions", "partitions", nullable=True),
        Column("replica_count", "long", "Replicas", "replicas", nullable=True),
        Column("size_bytes", "long", "Bytes of all replicas", "bytes", nullable=True),
        state("leaderless_count", "Partitions without a leader"),
        state("under_min_isr_count", "Partitions whose ISR is smaller than min.insync.replicas, or leaderless"),
        state("at_min_isr_count", "Partitions whose ISR is exactly min.insync.replicas"),
        state("under_replicated_count", "Partitions with a replica out of sync"),
        state("not_preferred_leader_count", "Partitions led by another than their first replica"),
        state("fewer_racks_count", "Partitions on fewer racks than min(factor, racks)"),
        Column(
            "violation_count", "long", "Broken constraints in all; the table lists the first of each kind", "violations"
        ),
        Column("rank", "int", "1 is the cluster to look at first"),
        Column(
            "out_of_sync_brokers",
            "ints",
            "Brokers that explain the under-replicated partitions: those missing from most ISRs, as few as explain "
            "nine tenths; null when the input does not say",
            "brokers",
            nullable=True,
        ),
        Column(
            "out_of_sync_explained_count",
            "long",
            "Under-replicated partitions that miss nobody but these brokers; null when the input does not say",
            "partitions",
            nullable=True,
        ),
        Column(
            "previous_cluster_id",
            "long",
            "Number of the same cluster at the moment before, of successive dumps; null for the first and for others",
            nullable=True,
        ),
    ),
)

MEASURES: Final = Table(
    "measures",
    "one row per cluster, placer, scope (broker, rack, topic) and quantity (replicas, leaders, bytes)",
    (
        *KEY,
        Column("scope", "string", "What the quantity is spread over: broker, rack or topic"),
        Column("quantity", "string", "What is spread: replicas, leaders or bytes"),
        Column("group_count", "int", "Brokers, racks or topics, those with nothing included, fenced brokers not"),
        Column("total", "long", "Sum over the groups", "replicas, leaders or bytes"),
        Column("min", "long", "Smallest share"),
        Column("mean", "double", "Total divided by groups"),
        Column("max", "long", "Largest share"),
        Column("max_group", "string", "The group that has the largest share, the first of equals"),
        Column("max_over_mean", "double", "Largest share divided by the mean; 1 when there is nothing"),
        Column("stdev", "double", "Population standard deviation of the shares"),
        Column("cv", "double", "Standard deviation divided by the mean; 0 when there is nothing"),
        Column("gini", "double", "Gini coefficient of the shares, 0 (equal) to 1 - 1/groups"),
        Column(
            "moves",
            "long",
            "Replicas, leaders or bytes that have to move, no fewer, until the spread is the best that can be reached",
            nullable=True,
        ),
        Column("moves_share", "double", "Moves divided by the total", "0..1", nullable=True),
        Column(
            "best_max_over_mean", "double", "max_over_mean of the best spread that can be reached; a bound for bytes"
        ),
        Column("best_stdev", "double", "stdev of the best spread"),
        Column("best_cv", "double", "cv of the best spread"),
        Column("best_gini", "double", "gini of the best spread"),
        Column(
            "moves_exact",
            "boolean",
            "Whether that many moves are enough under the rack rule; otherwise at least so many are needed",
            nullable=True,
        ),
    ),
)

_LOAD: Final = (
    Column("replica_count", "long", "Replicas held", "replicas", nullable=True),
    Column("leader_count", "long", "Partitions led", "partitions", nullable=True),
    Column("size_bytes", "long", "Bytes held", "bytes", nullable=True),
)

BROKERS: Final = Table(
    "brokers",
    "one row per cluster, placer and broker, brokers that hold nothing included",
    (
        *KEY,
        Column("broker_id", "int", "Kafka's broker.id or node.id"),
        Column("rack", "string", "broker.rack", nullable=True),
        Column("fenced", "boolean", "Registered but not allowed to lead"),
        *_LOAD,
        Column(
            "missing_from_isr_count",
            "long",
            "Partitions that it has a replica of and from whose ISR it is missing",
            "partitions",
            nullable=True,
        ),
        Column("cordoned", "boolean", "All its log directories are cordoned: it gets no new replicas (KIP-1066)"),
        Column("in_controlled_shutdown", "boolean", "About to stop: it leads nothing and is in no ISR"),
    ),
)

LOG_DIRS: Final = Table(
    "log_dirs",
    "one row per cluster, placer, broker and log directory, where a file of sizes lists directories",
    (
        *KEY,
        Column("broker_id", "int", "Broker"),
        Column("log_dir", "string", "Path of the log directory"),
        Column("error", "string", "Error with which the directory answers; null where it is usable", nullable=True),
        Column("replica_count", "long", "Replicas held", "replicas"),
        Column("future_replica_count", "long", "Replicas on their way from another directory", "replicas"),
        Column("size_bytes", "long", "Bytes of both", "bytes"),
    ),
)

RACKS: Final = Table(
    "racks",
    "one row per cluster, placer and rack; brokers without a rack stand under a null rack",
    (
        *KEY,
        Column("rack", "string", "broker.rack; null gathers brokers that have none", nullable=True),
        Column("broker_count", "int", "Brokers in the rack", "brokers"),
        *_LOAD,
        *(
            Column(
                f"{name}_best_{end}",
                "long",
                f"{end.capitalize()} {word} of a live broker, at best",
                unit,
                nullable=True,
            )
            for name, word, unit in (
                ("replica_count", "replicas", "replicas"),
                ("leader_count", "leaders", "partitions"),
                ("size_bytes", "bytes (a bound)", "bytes"),
            )
            for end in ("min", "max")
        ),
    ),
)

TOPICS: Final = Table(
    "topics",
    "one row per cluster, placer and topic",
    (
        *KEY,
        Column("topic", "string", "Topic name"),
        Column("partition_count", "int", "Partitions seen", "partitions"),
        Column("replication_factor", "int", "Replicas of its widest partition", "replicas"),
        Column("min_insync_replicas", "int", "min.insync.replicas", "replicas", nullable=True),
        Column("replica_count", "long", "Replicas", "replicas"),
        Column("size_bytes", "long", "Bytes of all replicas", "bytes", nullable=True),
        Column("broker_count", "int", "Brokers that hold at least one of its replicas", "brokers"),
        Column("replica_max", "int", "Most of its replicas on one live broker", "replicas"),
        Column("replica_best_max", "int", "The same, at best", "replicas"),
        Column("replica_moves", "long", "Replicas to move until its spread is the best", "replicas"),
        Column("replica_moves_exact", "boolean", "Whether so many are enough; else a lower bound"),
        Column("leader_max", "int", "Most of its leaders on one live broker", "partitions", nullable=True),
        Column("leader_best_max", "int", "The same, at best", "partitions", nullable=True),
        Column("leader_moves", "long", "Leaders to move until their spread is the best", "partitions", nullable=True),
        Column("leader_moves_exact", "boolean", "Whether so many are enough; else a lower bound", nullable=True),
    ),
)

VIOLATIONS: Final = Table(
    "violations",
    f"one row per broken constraint; at most the first {VIOLATIONS_MAX} per cluster, placer and constraint, "
    "the counts are whole, and the table of partitions has all of them",
    (
        *KEY,
        Column("constraint", "string", "Name of the constraint or state that is broken"),
        Column("topic", "string", "Topic", nullable=True),
        Column("partition", "int", "Partition", nullable=True),
        Column("brokers", "ints", "Brokers concerned"),
        Column("racks", "strings", "Their racks, in the same order; an empty string where unknown"),
        Column("detail", "string", "What is broken, in words"),
    ),
)

PARTITIONS: Final = Table(
    "partitions",
    "one row per cluster, placer and partition that a dump lists; of a simulated fleet only where asked for",
    (
        *KEY,
        Column("cluster", "string", "Name of the cluster"),
        Column("topic", "string", "Topic"),
        Column("partition", "int", "Partition"),
        Column(
            "leader",
            "int",
            "Broker that leads it, -1 without a leader; null when the input does not say",
            nullable=True,
        ),
        Column("replicas", "ints", "Brokers with a replica, the preferred leader first"),
        Column("racks", "strings", "Their racks, in the same order; an empty string where unknown"),
        _brokers("isr", "Brokers in sync"),
        _brokers("missing_from_isr", "Replicas missing from the ISR, without those being added and observers"),
        _brokers("elr", "Eligible leader replicas"),
        _brokers("offline", "Replicas that are offline"),
        _brokers("adding", "Replicas that a reassignment adds"),
        _brokers("removing", "Replicas that a reassignment removes"),
        Column("min_insync_replicas", "int", "min.insync.replicas of its topic", "replicas", nullable=True),
        Column("size_bytes", "long", "Bytes of all its replicas", "bytes", nullable=True),
        _is("leaderless", "It has no leader"),
        _is("under_min_isr", "Its ISR is smaller than min.insync.replicas, or it has no leader"),
        _is("at_min_isr", "Its ISR is exactly min.insync.replicas"),
        _is("under_replicated", "A replica is out of sync"),
        _is("not_preferred_leader", "Another than its first replica leads it"),
        _is("fewer_racks", "It is on fewer racks than min(factor, racks)"),
        Column("broken", "strings", "Names of all constraints and states that it breaks, as in violations"),
    ),
)

REJECTS: Final = Table(
    "rejects",
    "one row per entry of an input that could not be used",
    (
        Column("source", "string", "File"),
        Column("line", "long", "Line, from 1; null where the format has no lines", nullable=True),
        Column("reason", "string", "Why it was put aside"),
        Column("value", "string", "The value found, at most 200 characters"),
    ),
)

INPUTS: Final = Table(
    "inputs",
    "one row per input file or recipe: rows_in = rows_analysed + rows_rejected",
    (
        Column("source", "string", "File or recipe"),
        Column("format", "string", "Format recognised"),
        Column("cluster_count", "long", "Clusters it gave", "clusters"),
        Column("rows_in", "long", "Entries seen", "rows"),
        Column("rows_analysed", "long", "Entries used", "rows"),
        Column("rows_rejected", "long", "Entries put aside, each in the table of rejects", "rows"),
        Column("lines_passed_over", "long", "Lines that describe nothing: blank, headings of other tools", "lines"),
        Column("notes", "strings", "What else is to be known of this input"),
        Column("fault", "string", "Why nothing of the input could be used; null where something was", nullable=True),
    ),
)

CHANGES: Final = Table(
    "changes",
    "one row per partition that changed between two successive dumps of one cluster",
    (
        Column("from_cluster", "string", "Earlier dump"),
        Column("to_cluster", "string", "Later dump"),
        Column("topic", "string", "Topic"),
        Column("partition", "int", "Partition"),
        Column(
            "change",
            "string",
            "leader lost, leader elected, unclean election, ISR shrunk, ISR grown, replicas changed, …",
        ),
        Column("detail", "string", "Before and after, in words"),
    ),
)

PAIRS: Final = Table(
    "pairs",
    "one row per cluster, placer and pair of brokers (broker_id < other_broker_id) of the clusters shown in full",
    (
        *KEY,
        Column("broker_id", "int", "One broker"),
        Column("other_broker_id", "int", "Another broker"),
        Column("shared_count", "long", "Partitions that have a replica on both", "partitions"),
    ),
)

FACTS: Final = Table(
    "facts",
    "one row per cluster and placer: the table of clusters, not ranked yet, and what ranks compare last",
    (
        *(column for column in CLUSTERS.columns if column.name != "rank"),
        Column("uneven", "double", "Shares of replicas and of leaders to move until brokers are even, added", "0..2"),
    ),
)

WORK: Final = (FACTS,)
"""Tables of a run's own, gone when it ends."""

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
