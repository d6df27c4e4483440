"""Describe a served cluster that is like a real one, without its records: to rehearse what is planned for it.

What it decides: what of a `ClusterView` is served. Brokers keep their ids and racks, topics their replicas, leaders and
settings. As the logs are empty, every live replica is in sync, and a move that is under way has ended. Brokers that are
not alive are down, and the controller has fenced them; `Kafka.restart` starts them.

Left out: settings that Kafka 4.4 does not have, sizes, quotas, consumer groups.

Source: ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import attrs

from broker.cluster import PAD, ClusterView, TopicView
from broker.config import Scope
from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from broker.wording import brokers_listed, counted, first_of
from replication.simulation.options import BROKER_COUNT_MAX, BROKER_ID_MAX
from replication.testing import configs_api
from replication.testing.cluster_spec import (
    OFFSETS_PARTITION_COUNT,
    ClusterSpec,
    TopicSpec,
    checked_count,
    checked_topics,
)
from replication.testing.topics import OFFSETS_TOPIC, PARTITION_COUNT_MAX

_MIN_ISR: Final = "min.insync.replicas"
_NAMED_MAX: Final = 5
_SHOWN_MAX: Final = 60
_WAY: Final = "`(view,) = read_dump([path.read_bytes()], source='prod').clusters` makes one of a dump"
_DECIDED: Final = {"brokers", "broker_ids", "down", "racks", "factor"}
Rows = list[int]


@attrs.frozen
class Likeness:
    """Hold the description of the cluster to serve, and sentences on what differs from the real one."""

    spec: ClusterSpec
    notes: tuple[str, ...]


def spec_like(
    view: ClusterView, only: Collection[str] = (), topics: Mapping[str, int | TopicSpec] | None = None, **fields: Any
) -> Likeness:
    """Return the description of a cluster that is like `view`, of the topics whose names match a pattern in `only`.

    `topics` are served beside, `fields` are the other fields of `ClusterSpec`. Raises UsageError for a cluster that is
    too large to be served, has no live broker, or lists some partitions of a topic only.
    """
    if not isinstance(view, ClusterView):
        given = repr(view)[:_SHOWN_MAX] if isinstance(view, str | bytes | Path) else f"of type {type(view).__name__}"
        raise UsageError(f"like is {given}; wanted is a ClusterView, as {_WAY}")
    if own := sorted(_DECIDED & fields.keys()):
        raise UsageError(f"{own[0]} is decided by the cluster that is served like; leave it out")
    rows = {name: rows for name, rows in _rows_by_topic(view).items() if _is_chosen(name, only)}
    _check(view, rows, only)
    if twice := sorted(checked_topics(topics or {}).keys() & rows):
        raise UsageError(f"topic {twice[0]!r} is in {view.name} already; give it once")
    down = frozenset(view.down)
    alive_count = len(view.brokers) - len(down)
    chosen = [topic for topic in view.topics if topic.name in rows]
    asked = fields.pop("min_insync_replicas", 0)
    factor = min(3, alive_count)
    checked_count("min_insync_replicas", asked, 0, factor)
    default = asked or _default_min_isr(chosen)
    left_out: list[str] = []
    served = {each.name: _topic_spec(view, rows[each.name], _settings(each, default, left_out)) for each in chosen}
    spec = ClusterSpec(
        brokers=len(view.brokers),
        broker_ids=tuple(broker.id for broker in view.brokers),
        down=down,
        racks=tuple(broker.rack or None for broker in view.brokers),
        topics={**(topics or {}), **served},
        factor=factor,
        min_insync_replicas=min(default, factor),
        **fields,
    )
    return Likeness(spec, tuple(_notes(view, list(chain(*rows.values())), left_out)))


def _is_chosen(name: str, only: Collection[str]) -> bool:
    return not only or any(fnmatchcase(name, pattern) for pattern in only)


def _rows_by_topic(view: ClusterView) -> dict[str, Rows]:
    """Return the rows of each topic's partitions in the order of their numbers."""
    table, found = view.partitions, defaultdict[str, Rows](list)
    places = sorted(zip(table.topic_index.tolist(), table.partition_ids.tolist(), count()))
    for topic, _, row in places:
        found[view.topics[topic].name].append(row)
    return found


def _check(view: ClusterView, rows: dict[str, Rows], only: Collection[str]) -> None:
    for pattern in only:
        if not any(fnmatchcase(topic.name, pattern) for topic in view.topics):
            raise UsageError(f"no topic of {view.name} is named {pattern!r}")
    if not any(view.alive):
        raise UsageError(f"no broker of {view.name} is alive")
    largest = max(broker.id for broker in view.brokers)
    if len(view.brokers) > BROKER_COUNT_MAX or largest > BROKER_ID_MAX:
        what = f"{counted(len(view.brokers), 'broker')}, the largest id is {largest}"
        raise UsageError(f"{view.name} has {what}; served are {BROKER_COUNT_MAX} with ids up to {BROKER_ID_MAX:,}")
    partition_count = sum(map(len, rows.values()))
    beside = 0 if OFFSETS_TOPIC in rows else OFFSETS_PARTITION_COUNT
    if partition_count + beside > PARTITION_COUNT_MAX:
        what = f"{view.name} has {partition_count:,} partitions; at most {PARTITION_COUNT_MAX - beside:,} are served"
        raise UsageError(f"{what}: choose topics, such as --only 'orders*,payments'")
    for name, of_topic in rows.items():
        numbers = view.partitions.partition_ids[of_topic].tolist()
        if numbers != list(range(len(numbers))):
            raise UsageError(f"topic {name!r} of {view.name} lists partitions {first_of(numbers, _NAMED_MAX)} only")


def _default_min_isr(topics: Collection[TopicView]) -> int:
    """Return the min.insync.replicas of most topics that have none of their own; Kafka's default if none shows it."""
    found = [topic.min_insync_replicas for topic in topics if _MIN_ISR not in dict(topic.configs)]
    common = Counter(each for each in found if each is not None).most_common(1)
    return common[0][0] if common else 1


def _settings(topic: TopicView, default: int, left_out: list[str]) -> dict[str, str]:
    """Return a topic's settings; names of those that are not Kafka's, or have no value of theirs, go to `left_out`."""
    given = {}
    for name, value in topic.configs:
        error, _ = configs_api.check(Scope.TOPIC, {name: value})
        if error is ErrorCode.NONE:
            given[name] = value
        else:
            left_out.append(f"{name}={value} of {topic.name}")
    if topic.min_insync_replicas not in (None, default):
        given.setdefault(_MIN_ISR, str(topic.min_insync_replicas))
    return given


def _topic_spec(view: ClusterView, rows: Rows, configs: dict[str, str]) -> TopicSpec:
    table = view.partitions
    going = _lists(table.removing, rows)
    replicas = [
        tuple(each for each in row if each not in gone)
        for row, gone in zip(_lists(table.replicas, rows), going, strict=True)
    ]
    shown = [] if table.leader is None else table.leader[rows].tolist()
    # -2: the dump does not say. A replica that a move removes may lead.
    leaders = tuple(
        BrokerId(each if each in row else NO_LEADER) for each, row in zip(shown, replicas, strict=bool(shown))
    )
    return TopicSpec(tuple(replicas), leaders, configs)


def _lists(matrix: Any, rows: Rows) -> list[tuple[BrokerId, ...]]:
    if matrix is None:
        return [()] * len(rows)
    return [tuple(BrokerId(each) for each in row if each != PAD) for row in matrix[rows].tolist()]


def _notes(view: ClusterView, rows: Rows, left_out: list[str]) -> Iterator[str]:
    """Yield what of the cluster is not as in the real one."""
    table = view.partitions
    if view.down:
        words = [f"{broker} ({why.value})" for broker, why in view.down.items()]
        yield f"{brokers_listed(words, _NAMED_MAX)}: down here, too"
    if table.isr is not None:
        alive = set(view.broker_ids[view.alive].tolist())
        pairs = zip(_lists(table.replicas, rows), _lists(table.isr, rows), strict=True)
        late = sum(len((set(replicas) & alive).difference(isr)) for replicas, isr in pairs)
        if late:
            yield f"{counted(late, 'live replica')} out of sync: in sync here, as there is nothing to copy"
    if table.leader is not None and (unled := table.leader[rows].tolist().count(NO_LEADER)):
        yield f"{counted(unled, 'partition')} without a leader: led here by a live replica, if there is one"
    moving = sum(map(bool, _lists(table.removing, rows))) + sum(map(bool, _lists(table.adding, rows)))
    if moving:
        yield "moves of partitions that were under way have ended here, as there is nothing to copy"
    if left_out:
        named = first_of(left_out, _NAMED_MAX)
        yield f"{counted(len(left_out), 'setting')} that Kafka 4.4 does not take left out: {named}"
