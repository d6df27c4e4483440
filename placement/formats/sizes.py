"""Read the sizes of replicas from a separate file, because no dump of a cluster's placement contains them.

A partition without any size stays unknown, and with it the bytes of the cluster. A future replica occupies its
directory, but the current copy alone is the replica's size. Brokers that are away are not asked by kafka-log-dirs.

Source: Kafka 4.3.1 tools/LogDirsCommand; kafka-kit kafkazk PartitionMeta; Cruise Control PartitionLoadState (MiB).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
import numpy as np

from broker.cluster import PAD, SIZE_UNKNOWN, BoolArray, ClusterView, Int32Array, Int64Array, LogDirView, PartitionTable
from broker.errors import InputError
from broker.ids import BrokerId
from broker.partition_faults import PARTITION_ID_MAX, fault_of_number, fault_of_topic_name
from broker.row_flags import members
from broker.units import MIB, SIZE_BYTES_MAX
from broker.wording import first_of
from placement.formats.documents import brief, collect, find_documents, folded, plain
from placement.formats.parsed import ParsedDump, RowCounts, first_few
from placement.formats.text import utf8_chunks

LOG_DIRS: Final = "kafka-log-dirs"
PARTITION_META: Final = "topicmappr-partitionmeta"
PARTITION_LOAD: Final = "cruise-control-partition-load"
SIZE_FORMATS: Final = (LOG_DIRS, PARTITION_META, PARTITION_LOAD)
PATH_LENGTH_MAX: Final = 4096  # Linux's PATH_MAX.
EVERY_BROKER: Final = -1  # Stands for the broker where a file gives one size a partition.


ReplicaSizes = dict[tuple[str, int], dict[int, int]]
"""Bytes by (topic, partition), then by broker."""


@attrs.frozen(eq=False)
class Sizes:
    """Hold the sizes of one file: bytes by partition and broker, log directories, and the account of its rows."""

    account: ParsedDump
    by_partition: ReplicaSizes
    log_dirs: tuple[LogDirView, ...] = ()

    def apply(self, view: ClusterView) -> ClusterView:
        """Return `view` with these sizes, the log directories, and notes on the replicas without a size of their own.

        Raises InputError when the file has no size of any partition of the view.
        """
        table = view.partitions
        measured = self._measured(view, table)
        held = table.replicas >= 0
        largest = measured.max(axis=1, initial=SIZE_UNKNOWN)
        if not (largest >= 0).any():
            raise InputError(f"has no size of any partition of cluster {view.name}", source=self.account.source)
        taken = held & (measured == SIZE_UNKNOWN) & (largest >= 0)[:, None]
        filled = np.where(taken, largest[:, None], measured)
        dead = sorted({each.broker_id for each in self.log_dirs if each.error is not None})
        lost = held & (measured == SIZE_UNKNOWN) & np.isin(table.replicas, dead)
        partitions = attrs.evolve(
            table, size_bytes=largest, replica_size_bytes=filled, offline=_with_offline(table, lost)
        )
        notes = [*view.notes, *self._notes(view, taken, int(np.count_nonzero(largest < 0)))]
        brokers, counts = np.unique(table.replicas[taken], return_counts=True)
        return attrs.evolve(
            view,
            partitions=partitions,
            log_dirs=self.log_dirs,
            sizes_taken=tuple(zip(map(BrokerId, brokers.tolist()), counts.tolist(), strict=True)),
            notes=tuple(notes),
        )

    def measures(self, view: ClusterView) -> bool:
        """Return whether any partition of the view has a size here."""
        return bool((self._measured(view, view.partitions) >= 0).any())

    def _measured(self, view: ClusterView, table: PartitionTable) -> Int64Array:
        """Return the size of each replica, int64[P, W], as the file gives it; -1 where it does not."""
        sizes = np.full(table.replicas.shape, SIZE_UNKNOWN, dtype=np.int64)
        topics, ids = table.topic_index.tolist(), table.partition_ids.tolist()
        for row, replicas in enumerate(table.replicas.tolist()):
            by_broker = self.by_partition.get((view.topics[topics[row]].name, ids[row]))
            if by_broker is None:
                continue
            everywhere = by_broker.get(EVERY_BROKER, SIZE_UNKNOWN)
            for place, broker in enumerate(replicas):
                if broker >= 0:
                    sizes[row, place] = by_broker.get(broker, everywhere)
        return sizes

    def _notes(self, view: ClusterView, taken: Any, unknown_count: int) -> Iterator[str]:
        source = self.account.source
        if unknown_count:
            yield (
                f"{unknown_count} of {view.partitions.count} partitions have no size in {source}, so the bytes of the "
                "cluster are not known"
            )
        if taken.any():
            brokers = sorted(set(view.partitions.replicas[taken].tolist()))
            yield (
                f"{source} lists no size of {int(np.count_nonzero(taken))} replicas (on brokers "
                f"{first_of(brokers, 20)}); the largest of the "
                "partition's other replicas is taken"
            )
        yield from self._strays(view)
        offline = [
            f"broker {each.broker_id}: log directory {each.path} answers with {each.error}"
            for each in self.log_dirs
            if each.error
        ]
        yield from first_few(offline)

    def _strays(self, view: ClusterView) -> Iterator[str]:
        """Yield a note on replicas that stand on a disk and in no partition's list of replicas."""
        if not view.partitions_complete:
            return
        table = view.partitions
        topics, ids = table.topic_index.tolist(), table.partition_ids.tolist()
        placed = {
            (view.topics[topics[row]].name, ids[row]): set(replicas)
            for row, replicas in enumerate(table.replicas.tolist())
        }
        strays = [
            f"{topic}-{partition} on broker {broker}"
            for (topic, partition), by_broker in sorted(self.by_partition.items())
            for broker in sorted(by_broker)
            if broker != EVERY_BROKER and broker not in placed.get((topic, partition), ())
        ]
        if strays:
            shown = first_of(strays, 5)
            yield f"{len(strays)} replicas in {self.account.source} belong to no partition of the cluster: {shown}"


def _with_offline(table: PartitionTable, lost: BoolArray) -> Int32Array | None:
    """Return the offline replicas, int32[P, any width], with those that a dead log directory of their broker held."""
    if not lost.any():
        return table.offline
    before = np.full((table.count, 0), PAD, dtype=np.int32) if table.offline is None else table.offline
    return np.hstack((before, np.where(lost & ~members(table.replicas, before), table.replicas, PAD)))


def read_sizes(chunks: Iterable[bytes], *, source: str) -> Sizes:
    """Return the sizes in the bytes of one file, recognised by its content.

    Raises InputError for a file of no known format of sizes, or in which nothing can be used.
    """
    found = find_documents(collect(utf8_chunks(chunks), source=source), source=source)
    found = found.known(lambda value: sizes_format(value) is not None)
    if not found.documents:
        raise InputError(f"holds no JSON object; sizes are read from {', '.join(SIZE_FORMATS)}", source=source)
    if len(found.documents) > 1:
        raise InputError("a second document after the sizes", source=source, line=found.documents[1].line)
    value = found.documents[0].value
    format_name = sizes_format(value)
    if format_name is None:
        what = f"a JSON object without sizes; sizes are read from {', '.join(SIZE_FORMATS)}"
        raise InputError(what, source=source, line=found.documents[0].line, value=brief(value))
    row_counts = found.row_counts(source, format_name)
    directories: tuple[LogDirView, ...] = ()
    if format_name == LOG_DIRS:
        by_partition, directories = _read_log_dirs(value, row_counts)
    elif format_name == PARTITION_LOAD:
        by_partition = _partition_load(value, row_counts)
    else:
        by_partition = _partition_meta(value, row_counts)
    return Sizes(row_counts.dump(()), by_partition, directories)


def sizes_of_log_dirs(value: dict[str, Any], *, source: str) -> Sizes | None:
    """Return the sizes in the object that kafka-log-dirs prints; None for another object, or without any row."""
    if not _is_log_dirs(value):
        return None
    row_counts = RowCounts(source, LOG_DIRS)
    by_partition, directories = _read_log_dirs(value, row_counts)
    return Sizes(row_counts.dump(()), by_partition, directories) if row_counts.rows_analysed else None


def sizes_format(value: dict[str, Any]) -> str | None:
    """Return the format of sizes that this JSON object has, or None."""
    if _is_log_dirs(value):
        return LOG_DIRS
    records = folded(value).get("records")
    if isinstance(records, list) and any({"topic", "partition", "disk"} <= folded(item).keys() for item in records):
        return PARTITION_LOAD
    first = next(iter(value.values()), None)
    inner = next(iter(first.values()), None) if isinstance(first, dict) else None
    return PARTITION_META if isinstance(inner, dict) and "size" in folded(inner) else None


def _partition_load(value: dict[str, Any], row_counts: RowCounts) -> ReplicaSizes:
    sizes: ReplicaSizes = {}
    for number, raw in enumerate(folded(value)["records"]):
        item = folded(raw)
        size = item.get("disk")
        scaled = size * MIB if isinstance(size, int | float) and not isinstance(size, bool) else size
        _add(f"records[{number}]", raw, (item.get("topic"), item.get("partition"), scaled), sizes, row_counts)
    return sizes


def _partition_meta(value: dict[str, Any], row_counts: RowCounts) -> ReplicaSizes:
    sizes: ReplicaSizes = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            row_counts.reject(f"{topic}: a topic is an object of partitions", brief(partitions))
            continue
        for name, raw in partitions.items():
            number = int(name) if name.isascii() and name.isdecimal() and len(name) <= 10 else None
            _add(f"{topic}.{name}", raw, (topic, number, folded(raw).get("size")), sizes, row_counts)
    return sizes


def _add(where: str, raw: Any, row: tuple[Any, Any, Any], sizes: ReplicaSizes, row_counts: RowCounts) -> None:
    """Hold one size of a whole partition, or reject the row."""
    topic, partition, size = row
    fault = fault_of_topic_name(topic) or fault_of_number(partition, "partition", high=PARTITION_ID_MAX)
    if isinstance(size, float) and 0 <= size <= SIZE_BYTES_MAX:
        size = round(size)
    fault = fault or fault_of_number(size, "size", high=SIZE_BYTES_MAX)
    if fault is None and (topic, partition) in sizes:
        fault = "the partition already has a size"
    if fault:
        row_counts.reject(f"{where}: {fault}", brief(raw))
        return
    sizes[topic, partition] = {EVERY_BROKER: size}
    row_counts.rows_analysed += 1


def _is_log_dirs(value: dict[str, Any]) -> bool:
    """Return whether an object lists brokers with their log directories."""
    brokers = folded(value).get("brokers")
    return isinstance(brokers, list) and any("logdirs" in folded(item) for item in brokers)


def _read_log_dirs(value: dict[str, Any], row_counts: RowCounts) -> tuple[ReplicaSizes, tuple[LogDirView, ...]]:
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
    path, listed = plain(item.get("logdir"), PATH_LENGTH_MAX), item.get("partitions")
    if path is None:
        row_counts.reject(f"{where}: logDir is no text", brief(raw))
    elif not isinstance(listed, list):
        row_counts.reject(f"{where}: a log directory has a list of partitions", brief(raw))
    elif (broker, path) in found:
        row_counts.reject(f"{where}: broker {broker} already listed this directory", brief(raw))
    else:
        counts, size_bytes, current = [0, 0], 0, set()
        for number, entry in enumerate(listed):
            fault, replica = _replica(folded(entry))
            if replica is not None:
                fault = _keep(replica, broker, sizes)
            if fault or replica is None:
                row_counts.reject(f"{where}.partitions[{number}]: {fault}", brief(entry))
                continue
            counts[replica[3]] += 1
            if not replica[3]:
                current.add(replica[:2])
            size_bytes += replica[2]
            row_counts.rows_analysed += 1
        error = plain(item.get("error"))
        found[broker, path] = LogDirView(
            broker_id=BrokerId(broker),
            path=path,
            error=error,
            replica_count=counts[False],
            future_replica_count=counts[True],
            size_bytes=size_bytes,
            replicas=frozenset(current),
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
