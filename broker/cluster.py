"""Describe one cluster at one moment: its brokers, topics and partitions.

Constraints, checked when a view is made: brokers stand in ascending order of id,
without duplicates; every column has one row a partition; every replica, leader and
ISR member is a broker of the view; ids are 0 or more, and -1 pads a short row.

What a dump does not say is None, never an invented zero.

Example: one topic "t" of two partitions on brokers 1 and 2, no ISR known:

    >>> view = ClusterView.build(
    ...     name="demo",
    ...     source="inline",
    ...     format="example",
    ...     topics=(TopicView("t", partition_count=2),),
    ...     partitions=PartitionTable(topic_index=[0, 0], partition_ids=[0, 1], replicas=[[1, 2], [2, 1]]),
    ... )
    >>> [broker.id for broker in view.brokers]
    [1, 2]
    >>> view.partitions.count, view.partitions.replica_count
    (2, 4)
    >>> view.partitions.isr is None
    True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.broker_rows import broker_rows
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.java.string_hash import java_string_key
from broker.liveness import Liveness, liveness
from broker.wholeness import FILTERED, Wholeness, missing_of
from broker.wording import listed as listed_names

Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

PAD: Final = -1
"""Fills the rows of a replica matrix that are shorter than the widest one."""

SIZE_UNKNOWN: Final = -1


@attrs.frozen(kw_only=True)
class BrokerView:
    """Describe one registered broker; `rack` is None when the broker has no rack or its rack is unknown.

    `cordoned` says that all its log directories are cordoned, so that Kafka 4.3 places no new replica on it (KIP-1066).
    `in_controlled_shutdown` says that it is about to stop: it leads nothing, is in no ISR, and gets no new replica.
    `stated` is what a registration or the user states of it, None where nothing does; it counts before all other
    evidence.
    """

    id: BrokerId
    rack: str | None = None
    fenced: bool = False
    host: str | None = None
    cordoned: bool = False
    in_controlled_shutdown: bool = False
    stated: Liveness | None = None

    @property
    def is_active(self) -> bool:
        """Return whether the broker may lead and join an ISR: it is neither fenced nor in controlled shutdown."""
        return self.registered in (None, Liveness.ALIVE)

    @property
    def registered(self) -> Liveness | None:
        """Return what is stated of the broker; None if only the partitions can show whether it is alive."""
        if self.stated is not None:
            return self.stated
        if self.fenced:
            return Liveness.FENCED
        return Liveness.STOPPING if self.in_controlled_shutdown else None


BROKER_FLAGS: Final = tuple(field.name for field in attrs.fields(BrokerView) if field.type in (bool, "bool"))
"""The flags of a broker, `fenced` first; certificates, data sources, tables, pages and comparisons loop over them.

To add a flag, add its field above as the last one, fill it in log/metadata/image.py and view.py or in the reader of
the dump that carries it (formats/snapshot.py in placement), and add its column to BROKERS, as the last one, and to the
lists of flags in spark_analysis/tables/schemas.txt; if it decides placement, read it in placement/placers/usable.py
(Kafka's placers) or placement/planning/given.py (plans).
"""


@attrs.frozen(kw_only=True)
class LogDirView:
    """Describe one log directory of a broker; `error` is None where the directory answers.

    `size_bytes` counts its current and its future replicas; a future replica is on its way from another directory.
    `replicas` names the current ones by topic and partition.
    """

    broker_id: BrokerId
    path: str
    error: str | None = None
    replica_count: int
    future_replica_count: int
    size_bytes: int
    replicas: frozenset[tuple[str, int]] = frozenset()


class SettingsShown(Enum):
    """Name the settings of its topics that a dump shows.

    `OWN` are those set on the topic itself, as the metadata log keeps them; `EFFECTIVE` are all that are not Kafka's
    defaults, brokers' files included, as kafka-topics prints them (TopicCommand.TopicDescription.printDescription:
    entries whose `isDefault` is false).
    """

    NONE = "none"
    OWN = "own"
    EFFECTIVE = "effective"


class MinIsrSource(Enum):
    """List where a topic's min.insync.replicas may come from, the first that has it wins."""

    TOPIC = "topic"
    BROKER_DEFAULT = "broker default"
    CLUSTER_DEFAULT = "cluster default"
    GIVEN = "given"
    KAFKA_DEFAULT = "Kafka's default"
    UNKNOWN = "unknown"


@attrs.frozen
class TopicView:
    """Describe one topic; `partition_count` is the count declared in the dump, `configs` the settings listed there.

    `stated_source` is where `min_insync_replicas` comes from, None if from the topic itself.
    """

    name: str
    partition_count: int | None = None
    replication_factor: int | None = None
    min_insync_replicas: int | None = None
    topic_id: str | None = None
    configs: tuple[tuple[str, str], ...] = ()
    stated_source: MinIsrSource | None = None

    @property
    def min_isr_source(self) -> MinIsrSource:
        """Return where `min_insync_replicas` comes from."""
        if self.min_insync_replicas is None:
            return MinIsrSource.UNKNOWN
        return self.stated_source or MinIsrSource.TOPIC


def _int32(value: Any) -> Int32Array:
    return np.ascontiguousarray(value, dtype=np.int32)


def _optional_int32(value: Any) -> Int32Array | None:
    return None if value is None else _int32(value)


def _optional_int64(value: Any) -> Int64Array | None:
    return None if value is None else np.ascontiguousarray(value, dtype=np.int64)


def distinct_ids(column: Int32Array) -> Int32Array:
    """Return the distinct ids of 0 or more in `column`, ascending. Ids are mostly small, so that flags beat sorting."""
    largest = int(column.max(initial=PAD))
    if largest >= 1 << 20:
        ids = np.unique(column)
        return _int32(ids[ids >= 0])
    flags = np.zeros(largest + 1, dtype=np.bool_)
    flags[column[column >= 0]] = True
    return _int32(np.flatnonzero(flags))


@attrs.frozen(kw_only=True, eq=False)
class PartitionTable:
    """Hold the partitions of a cluster as columns; row i of every column belongs to the same partition.

    Shapes: `topic_index`, `partition_ids`, `leader` int32[P]; `replicas` int32[P, W],
    preferred leader first, -1 pads; `isr`, `elr`, `last_known_elr`, `offline`, `observers`,
    `adding`, `removing` int32[P, any width], -1 pads; `size_bytes` int64[P], the bytes of
    one replica, -1 where unknown; `replica_size_bytes` int64[P, W], the bytes of each replica
    where they are known one by one, and `size_bytes` is then the largest. A column that the dump
    does not have is None. `leader` is
    -1 where the partition has none, and -2 where this row of the dump does not say.
    """

    topic_index: Int32Array = attrs.field(converter=_int32)
    partition_ids: Int32Array = attrs.field(converter=_int32)
    replicas: Int32Array = attrs.field(converter=_int32)
    leader: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    isr: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    elr: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    last_known_elr: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    offline: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    observers: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    adding: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    removing: Int32Array | None = attrs.field(default=None, converter=_optional_int32)
    size_bytes: Int64Array | None = attrs.field(default=None, converter=_optional_int64)
    replica_size_bytes: Int64Array | None = attrs.field(default=None, converter=_optional_int64)

    def __attrs_post_init__(self) -> None:
        count = self.topic_index.shape[0]
        for attribute in attrs.fields(type(self)):
            column = getattr(self, attribute.name)
            if column is None or attribute.name == "replica_size_bytes":
                continue
            matrix = attribute.name in MATRIX_COLUMNS
            if column.ndim != (2 if matrix else 1) or column.shape[0] != count:
                raise UsageError(
                    f"column {attribute.name} has shape {column.shape}; {count} partitions need ({count}, any width)"
                    if matrix
                    else f"column {attribute.name} has shape {column.shape}; {count} partitions need ({count},)"
                )
        sizes = self.replica_size_bytes
        if sizes is not None and sizes.shape != self.replicas.shape:
            raise UsageError(f"column replica_size_bytes has shape {sizes.shape}; replicas has {self.replicas.shape}")

    @property
    def count(self) -> int:
        """Return the number of partitions."""
        return int(self.topic_index.shape[0])

    @property
    def replica_count(self) -> int:
        """Return the number of replicas of all partitions; padding does not count."""
        return int(np.count_nonzero(self.replicas >= 0))

    def broker_ids(self) -> Int32Array:
        """Return every broker id that occurs in any column, ascending, without duplicates."""
        columns = [self.leader] + [getattr(self, name) for name in MATRIX_COLUMNS]
        seen = [distinct_ids(column) for column in columns if column is not None]
        return _int32(np.unique(np.concatenate(seen)))

    @classmethod
    def empty(cls) -> PartitionTable:
        """Return a table without partitions."""
        return cls(topic_index=[], partition_ids=[], replicas=np.empty((0, 0), dtype=np.int32))


MATRIX_COLUMNS: Final = ("replicas", "isr", "elr", "last_known_elr", "offline", "observers", "adding", "removing")


@attrs.frozen(kw_only=True, eq=False)
class BrokerTotals:
    """Hold counts per broker, read from a dump that does not list every partition; row i is `brokers[i]`."""

    replica_count: Int64Array | None = attrs.field(default=None, converter=_optional_int64)
    leader_count: Int64Array | None = attrs.field(default=None, converter=_optional_int64)
    size_bytes: Int64Array | None = attrs.field(default=None, converter=_optional_int64)


@attrs.frozen(kw_only=True, eq=False)
class ClusterView:
    """Describe one cluster at one moment: brokers, topics, partitions, and totals per broker if the dump has them.

    `partitions_complete` is False when the dump lists only some partitions by its form (Cruise Control's
    problem lists, a filtered describe); measures over brokers then come from `totals`.
    `missing` says what a dump that claims to list every partition leaves out; `wholeness` answers for both.
    `is_partial_accepted` says that what is listed is to be taken as the whole (--partial).
    `offline_dirs` are paths by broker that a dump lists as offline, without their replicas; `sizes_taken` counts by
    broker the replicas whose size is that of the partition's largest other replica. `racks_given` are the racks of a
    file beside the dump, whose other brokers are no part of the cluster; `racks_missing` is why it gave none.
    `facts` are named values that the dump states of itself, shown but not computed with.
    `settings_shown` says what the `configs` of its topics are.
    """

    name: str
    source: str
    format: str
    brokers: tuple[BrokerView, ...]
    topics: Sequence[TopicView] = ()
    partitions: PartitionTable = attrs.field(factory=PartitionTable.empty)
    totals: BrokerTotals | None = None
    partitions_complete: bool = True
    missing: tuple[str, ...] = ()
    is_partial_accepted: bool = False
    settings_shown: SettingsShown = SettingsShown.NONE
    log_dirs: tuple[LogDirView, ...] = ()
    offline_dirs: tuple[tuple[BrokerId, str], ...] = ()
    sizes_taken: tuple[tuple[BrokerId, int], ...] = ()
    racks_given: tuple[tuple[BrokerId, str | None], ...] = ()
    racks_missing: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        ids = [broker.id for broker in self.brokers]
        if any(second <= first for first, second in pairwise(ids)):
            raise UsageError(f"brokers of {self.name} are not in ascending order of id, once each")
        unknown = sorted(set(self.partitions.broker_ids().tolist()) - set(ids))
        if unknown:
            raise UsageError(f"partitions of {self.name} stand on brokers {unknown[:5]} that the view does not list")
        topic_index = self.partitions.topic_index
        if topic_index.size and not 0 <= int(topic_index.min()) <= int(topic_index.max()) < len(self.topics):
            raise UsageError(f"a partition of {self.name} points at a topic outside 0..{len(self.topics) - 1}")

    @classmethod
    def build(
        cls,
        *,
        name: str,
        source: str,
        format: str,  # noqa: A002 - the field's word, and the attribute's name.
        partitions: PartitionTable,
        brokers: Iterable[BrokerView] = (),
        **rest: Any,
    ) -> ClusterView:
        """Return a view of `brokers`, all other brokers in the partitions' rows, and the input's gaps."""
        listed = {broker.id: broker for broker in brokers}
        for seen in partitions.broker_ids().tolist():
            listed.setdefault(BrokerId(seen), BrokerView(id=BrokerId(seen)))
        ordered = tuple(listed[key] for key in sorted(listed))
        view = cls(name=name, source=source, format=format, brokers=ordered, partitions=partitions, **rest)
        return attrs.evolve(
            view,
            missing=missing_of(
                [topic.name for topic in view.topics],
                [(topic.partition_count, topic.replication_factor) for topic in view.topics],
                partitions.topic_index,
                partitions.partition_ids,
                partitions.replicas,
                partitions.adding,
            ),
        )

    @property
    def wholeness(self) -> Wholeness:
        """Return whether the dump lists every partition of the cluster, and why not; see broker/wholeness.py."""
        filtered = () if self.partitions_complete else (FILTERED,)
        return Wholeness(self.missing or filtered, self.is_partial_accepted)

    def as_partial(self) -> ClusterView:
        """Return this view with the partitions listed taken as the whole; why they are not is kept."""
        missing = self.wholeness.reasons
        return attrs.evolve(self, partitions_complete=True, missing=missing, is_partial_accepted=True)

    def with_stated(self, stated: Mapping[BrokerId, Liveness]) -> ClusterView:
        """Return this view with the user's statements about brokers; raise UsageError for an unknown broker."""
        unknown = sorted(stated.keys() - {broker.id for broker in self.brokers})
        if unknown:
            known = listed_names([str(broker.id) for broker in self.brokers[:10]], len(self.brokers))
            raise UsageError(f"broker {unknown[0]} is not in cluster {self.name}; its brokers are {known}")
        brokers = (attrs.evolve(one, stated=stated.get(one.id, one.stated)) for one in self.brokers)
        return attrs.evolve(self, brokers=tuple(brokers))

    @cached_property
    def broker_ids(self) -> Int32Array:
        """Return the ids of the B brokers, ascending, as int32[B]."""
        return _int32([broker.id for broker in self.brokers])

    def flag(self, name: str) -> BoolArray:
        """Return the flag `name`, one of BROKER_FLAGS, of each broker as bool[B]."""
        return np.array([getattr(broker, name) for broker in self.brokers], dtype=np.bool_)

    @cached_property
    def replica_rows(self) -> Int32Array:
        """Return the replicas as indexes into `brokers`, int32[P, W] padded with -1; do not change it."""
        return broker_rows(self.broker_ids, self.partitions.replicas).astype(np.int32)

    @cached_property
    def liveness(self) -> tuple[Liveness, ...]:
        """Return the liveness of each broker, in the order of `brokers`."""
        table = self.partitions

        def rows(column: Int32Array | None) -> Int64Array | None:
            return None if column is None else broker_rows(self.broker_ids, column)

        leader = rows(table.leader)
        if leader is not None and table.leader is not None:
            leader = np.where(table.leader < PAD, table.leader, leader)
        besides = [each for each in (rows(table.observers), rows(table.adding)) if each is not None]
        return liveness(
            [broker.registered for broker in self.brokers],
            self.replica_rows.astype(np.int64),
            leader=leader,
            isr=rows(table.isr),
            offline=rows(table.offline),
            exempt=besides,
            electable=[each for each in (rows(table.elr), rows(table.last_known_elr)) if each is not None],
        )

    @cached_property
    def alive(self) -> BoolArray:
        """Return which brokers are alive, bool[B] in the order of `brokers`; see broker/liveness.py."""
        return np.array([each is Liveness.ALIVE for each in self.liveness], dtype=np.bool_)

    @cached_property
    def down(self) -> dict[BrokerId, Liveness]:
        """Return the brokers that are not alive, and why, ascending by id."""
        pairs = zip(self.brokers, self.liveness, strict=True)
        return {broker.id: found for broker, found in pairs if found is not Liveness.ALIVE}

    @cached_property
    def seen_down(self) -> dict[BrokerId, Liveness]:
        """Return the brokers that the partitions, or the user, show to be down, and how, ascending by id."""
        return {number: found for number, found in self.down.items() if found.is_inferred}

    @property
    def racks(self) -> tuple[str, ...]:
        """Return the racks of all brokers, without duplicates, in Java's string order."""
        return tuple(sorted({b.rack for b in self.brokers if b.rack is not None}, key=java_string_key))

    @cached_property
    def rack_places(self) -> Int64Array:
        """Return the place of each broker's rack in `racks`, int64[B]; -1 without one."""
        place = {rack: index for index, rack in enumerate(self.racks)}
        return np.array([-1 if each.rack is None else place[each.rack] for each in self.brokers], dtype=np.int64)

    def with_racks(self, racks: Sequence[tuple[BrokerId, str | None]], *, missing: str | None = None) -> ClusterView:
        """Return this view with the racks in `racks`; those of other brokers are kept for `with_empty`.

        `missing` is why a file of racks gave none.
        """
        given = dict(racks)
        brokers = (attrs.evolve(one, rack=given[one.id]) if one.id in given else one for one in self.brokers)
        return attrs.evolve(self, brokers=tuple(brokers), racks_given=tuple(racks), racks_missing=missing)

    @property
    def unlisted(self) -> tuple[BrokerId, ...]:
        """Return the brokers that were given a rack and are not in the view, ascending."""
        known = {broker.id for broker in self.brokers}
        return tuple(sorted(number for number, _ in self.racks_given if number not in known))

    def with_empty(self, added: Mapping[BrokerId, str | None]) -> ClusterView:
        """Return this view with brokers that hold nothing, on the rack given or the one that `with_racks` kept."""
        racks, known = dict(self.racks_given), {broker.id: broker for broker in self.brokers}
        for number, rack in added.items():
            known.setdefault(number, BrokerView(id=number, rack=racks.get(number) if rack is None else rack))
        ordered = tuple(known[key] for key in sorted(known))
        return attrs.evolve(self, brokers=ordered, totals=self._totals_for(ordered))

    @property
    def dead_dirs(self) -> tuple[tuple[BrokerId, str], ...]:
        """Return the log directories that are offline, as brokers and paths."""
        failed = ((each.broker_id, each.path) for each in self.log_dirs if each.error is not None)
        return (*failed, *self.offline_dirs)

    def _totals_for(self, brokers: tuple[BrokerView, ...]) -> BrokerTotals | None:
        if self.totals is None:
            return None
        place = {broker.id: row for row, broker in enumerate(brokers)}
        rows = [place[broker.id] for broker in self.brokers]

        def spread(column: Int64Array | None) -> Int64Array | None:
            if column is None:
                return None
            wider = np.zeros(len(brokers), dtype=np.int64)
            wider[rows] = column
            return wider

        totals = self.totals
        return BrokerTotals(
            replica_count=spread(totals.replica_count),
            leader_count=spread(totals.leader_count),
            size_bytes=spread(totals.size_bytes),
        )
