"""Read `kafka-log-dirs --describe`: the size of every replica, in the log directory that holds it.

What it decides: which bytes are a replica's. A future replica (a copy on its way to another directory of the same
broker) occupies its directory, but the broker serves the current copy, so it alone is the replica's size.

Constraints: a topic name may contain "-", so a partition's name is split at its last "-". Brokers that are away are not
asked by the tool; their replicas are missing here, and nothing is invented for them.

Source: Kafka 4.3.1 tools/LogDirsCommand.
"""

from __future__ import annotations

from typing import Any, Final

from broker.cluster import LogDirView
from broker.ids import BrokerId
from broker.units import SIZE_BYTES_MAX
from placement.formats.checks import PARTITION_ID_MAX, fault_of_number, fault_of_topic_name
from placement.formats.documents import brief, folded, plain
from placement.formats.parsed import RowCounts

FORMAT: Final = "kafka-log-dirs"
PATH_LENGTH_MAX: Final = 4096  # Linux's PATH_MAX.

ReplicaSizes = dict[tuple[str, int], dict[int, int]]
"""Bytes by (topic, partition), then by broker."""


def is_log_dirs(value: dict[str, Any]) -> bool:
    """Return whether an object lists brokers with their log directories."""
    brokers = folded(value).get("brokers")
    return isinstance(brokers, list) and any("logdirs" in folded(item) for item in brokers)


def read_log_dirs(value: dict[str, Any], row_counts: RowCounts) -> tuple[ReplicaSizes, tuple[LogDirView, ...]]:
    """Return the size of each replica, and the directories in the order of brokers and paths.

    A row is a replica in a directory; those that cannot be used are rejected in `row_counts`.
    """
    sizes: ReplicaSizes = {}
    found: dict[tuple[int, str], LogDirView] = {}
    for place, raw in enumerate(folded(value)["brokers"]):
        item = folded(raw)
        fault = fault_of_number(item.get("broker"), "broker")
        if fault is None and not isinstance(item.get("logdirs"), list):
            fault = "a broker has a list of logDirs"
        if fault:
            row_counts.reject(f"brokers[{place}]: {fault}", brief(raw))
            continue
        for number, directory in enumerate(item["logdirs"]):
            where = f"brokers[{place}].logDirs[{number}]"
            _read_directory(where, item["broker"], directory, row_counts, sizes, found)
    return sizes, tuple(found[key] for key in sorted(found))


def _read_directory(
    where: str,
    broker: int,
    raw: Any,
    row_counts: RowCounts,
    sizes: ReplicaSizes,
    found: dict[tuple[int, str], LogDirView],
) -> None:
    item = folded(raw)
    path = plain(item.get("logdir"), PATH_LENGTH_MAX)
    listed = item.get("partitions")
    fault = None
    if path is None:
        fault = "logDir is no text"
    elif not isinstance(listed, list):
        fault = "a log directory has a list of partitions"
    elif (broker, path) in found:
        fault = f"broker {broker} already listed this directory"
    if fault or path is None or not isinstance(listed, list):
        row_counts.reject(f"{where}: {fault}", brief(raw))
        return
    counts, size_bytes = [0, 0], 0
    for number, entry in enumerate(listed):
        fault, replica = _replica(folded(entry))
        if replica is not None:
            fault = _keep(replica, broker, sizes)
        if fault or replica is None:
            row_counts.reject(f"{where}.partitions[{number}]: {fault}", brief(entry))
            continue
        counts[replica[3]] += 1
        size_bytes += replica[2]
        row_counts.rows_analysed += 1
    found[broker, path] = LogDirView(
        broker_id=BrokerId(broker),
        path=path,
        error=plain(item.get("error")),
        replica_count=counts[False],
        future_replica_count=counts[True],
        size_bytes=size_bytes,
    )


def _replica(item: dict[str, Any]) -> tuple[str | None, tuple[str, int, int, bool] | None]:
    """Return topic, partition, bytes and whether it is a future replica, or why the entry cannot be used."""
    name = item.get("partition")
    if not isinstance(name, str):
        return "partition is no text", None
    topic, _, number = name.rpartition("-")
    fault = fault_of_topic_name(topic)
    if fault:
        return fault, None
    if not (number.isascii() and number.isdecimal() and len(number) <= 10 and int(number) <= PARTITION_ID_MAX):
        return f"a partition's name ends with its number, 0 to {PARTITION_ID_MAX}", None
    fault = fault_of_number(item.get("size"), "size", high=SIZE_BYTES_MAX)
    if fault:
        return fault, None
    return None, (topic, int(number), item["size"], item.get("isfuture") is True)


def _keep(replica: tuple[str, int, int, bool], broker: int, sizes: ReplicaSizes) -> str | None:
    """Hold the size of a current replica; return why it cannot be held, or None."""
    topic, partition, size_bytes, is_future = replica
    if is_future:
        return None
    by_broker = sizes.setdefault((topic, partition), {})
    if broker in by_broker:
        return f"broker {broker} already listed this replica in another directory"
    by_broker[broker] = size_bytes
    return None
