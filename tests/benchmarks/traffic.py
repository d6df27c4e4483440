"""Measure what 10,000 consumer groups fetch across zones: in this process, and as DataFrames on Spark.

`python -m tests.benchmarks.traffic` draws 100 clusters of 30 brokers in three zones, 60 topics of 24 partitions with
two replicas, and 100 groups of 6 members on 3 topics in each. `model` asks all seven assignments of each group with the
least, and the changes of each cluster; `spark` is `traffic.groups` of the same on local[2], CPU of the JVM and its
workers, after a warm-up on one cluster. Three rounds each; the medians are printed.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from broker.releases import NEWEST
from placement.traffic import Consumers, GroupPlan, ZonedPartitions, sample_groups
from placement.traffic.consumers import NOW
from placement.traffic.crossing import NOTHING, PRICE_PER_GIB, even_shares
from placement.traffic.group_traffic import group_traffic
from placement.traffic.least import least_fetched
from placement.traffic.savings import add_readers, changes_of, no_readers
from spark_analysis.answers.group_rows import GroupsAsked, traffic_rows
from spark_analysis.questions import traffic
from spark_analysis.questions.groups import ASSIGNORS
from spark_analysis.session.spark_session import spark_session
from tests.benchmarks.process_tree import tree_cpu_seconds

CLUSTER_COUNT: Final = 100
BROKER_COUNT: Final = 30
TOPIC_COUNT: Final = 60
PARTITION_COUNT: Final = 24
PLAN: Final = GroupPlan(100, 6, 3)
ROUNDS: Final = 3
MEMBERS: Final = "cluster string, group string, member_id string, topics array<string>, rack string, held array<string>"


def cluster(seed: int) -> ClusterView:
    """Return a cluster with two replicas anywhere in different zones."""
    rng = np.random.default_rng(seed)
    count = TOPIC_COUNT * PARTITION_COUNT
    first = rng.integers(0, BROKER_COUNT, count)
    second = (first + np.where(rng.random(count) < 0.5, 1, 2) + 3 * rng.integers(0, 9, count)) % BROKER_COUNT
    return ClusterView.build(
        name=f"cluster-{seed:03d}",
        source="drawn",
        format="drawn",
        brokers=tuple(BrokerView(id=BrokerId(one), rack="abc"[one % 3]) for one in range(BROKER_COUNT)),
        topics=tuple(TopicView(f"topic-{one:02d}") for one in range(TOPIC_COUNT)),
        partitions=PartitionTable(
            topic_index=np.repeat(np.arange(TOPIC_COUNT), PARTITION_COUNT),
            partition_ids=np.tile(np.arange(PARTITION_COUNT), TOPIC_COUNT),
            replicas=np.stack([first, second], axis=1),
            leader=first,
            size_bytes=rng.integers(1, 1 << 30, count),
        ),
    )


def by_model(views: list[ClusterView]) -> int:
    """Return the bytes that cross zones now, after asking everything of every group and cluster."""
    asked, total = GroupsAsked(ASSIGNORS, NEWEST, PRICE_PER_GIB), 0
    for number, view in enumerate(views):
        partitions = ZonedPartitions.of(view)
        drawn = sample_groups(partitions, PLAN, seed=number)
        groups = [Consumers.of(name, members, partitions) for name, members in drawn]
        rows = list(traffic_rows(partitions, groups, asked))
        assert len(rows) == len(ASSIGNORS) * PLAN.group_count
        readers, least = no_readers(partitions), NOTHING
        for consumers in groups:
            found = group_traffic(partitions, consumers, "range")
            add_readers(readers, consumers.rows, found.reader_zones, found.is_read)
            least = least.plus(least_fetched(partitions, consumers))
        changes = changes_of(partitions, even_shares(3), {NOW: readers}, least=least)
        total += int(next(changes).total.crossing_bytes or 0) + len(list(changes))
    return total


def frames(spark: SparkSession, views: list[ClusterView]) -> tuple[DataFrame, DataFrame]:
    """Return the members and the partitions of the clusters as DataFrames."""
    nothing: list[str] = []
    members = [
        (view.name, name, one.id, list(one.topics), one.rack, nothing)
        for number, view in enumerate(views)
        for name, some in sample_groups(ZonedPartitions.of(view), PLAN, seed=number)
        for one in some
    ]
    tables = list(partition_tables(views))
    return spark.createDataFrame(members, MEMBERS), spark.createDataFrame(pa.concat_tables(tables))


def partition_tables(views: list[ClusterView]) -> Iterator[pa.Table]:
    """Yield the partitions of each cluster as Arrow tables."""
    for view in views:
        table, count = view.partitions, view.partitions.count
        racks = [["abc"[one % 3] for one in row] for row in table.replicas.tolist()]
        assert table.size_bytes is not None
        yield pa.table(
            {
                "cluster": [view.name] * count,
                "topic": [view.topics[one].name for one in table.topic_index.tolist()],
                "partition": pa.array(table.partition_ids),
                "leader": pa.array(np.asarray(table.leader)),
                "replicas": table.replicas.tolist(),
                "racks": racks,
                "size_bytes": pa.array(2 * table.size_bytes),
            }
        )


def timed(work: Callable[[], object], seconds: Callable[[], float]) -> float:
    """Return the CPU seconds of one round."""
    start = seconds()
    work()
    return seconds() - start


def group_costs(round_count: int) -> tuple[float, float]:
    """Return the median CPU seconds of the model and of Spark."""
    views = [cluster(seed) for seed in range(CLUSTER_COUNT)]
    by_model(views[:1])
    model = [timed(lambda: by_model(views), time.process_time) for _ in range(round_count)]
    with spark_session(app_name="traffic", master="local[2]") as spark:
        few, all_of_them = frames(spark, views[:1]), frames(spark, views)

        def ask(given: tuple[DataFrame, DataFrame]) -> int:
            return traffic.groups(*given).where("fault is null").count()

        assert ask(few) == len(ASSIGNORS) * PLAN.group_count
        rounds = [timed(lambda: ask(all_of_them), lambda: tree_cpu_seconds(os.getpid())) for _ in range(round_count)]
    return statistics.median(model), statistics.median(rounds)


def main() -> None:
    """Print the median CPU seconds of the model and of Spark."""
    for name, seconds in zip(("model", "spark"), group_costs(ROUNDS), strict=True):
        print(f"{name}: {PLAN.group_count * CLUSTER_COUNT} groups in {seconds:.1f} CPU s")


if __name__ == "__main__":
    main()
