"""Sum up how long partitions were leaderless or under-replicated, and how often brokers were fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

import attrs

from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId, PartitionId
from broker.min_isr import MIN_ISR
from broker.units import DurationMs, TimeMs
from log.metadata.history import ClusterEventKind, Event, StepEvents
from log.metadata.image import (
    CLUSTER_DEFAULT,
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    BrokerDelta,
    ConfigDelta,
    PartitionDelta,
    PartitionImage,
    Resource,
    TopicDelta,
)
from log.metadata.replay import Replay, Step
from log.metadata.state import MetadataState
from log.metadata.view import min_insync_replicas

LEADERLESS: Final = "leaderless"
UNDER_MIN_ISR: Final = "under min ISR"
UNDER_REPLICATED: Final = "under-replicated"
_COUNTED: Final = (ClusterEventKind.ISR_SHRUNK, ClusterEventKind.UNCLEAN_ELECTION)
TOPICS_SHOWN_MAX: Final = 10
STATES: Final = (LEADERLESS, UNDER_MIN_ISR, UNDER_REPLICATED)
Key = tuple[str, PartitionId]


@attrs.define
class _Since:
    """Since when something is so, and how long it was so before."""

    since: TimeMs | None = None
    total_ms: int = 0
    count: int = 0

    def set(self, is_so: bool, now_ms: TimeMs) -> None:
        if is_so and self.since is None:
            self.since = now_ms
            self.count += 1
        elif not is_so and self.since is not None:
            self.total_ms = self.until(now_ms)
            self.since = None

    def until(self, end_ms: TimeMs) -> DurationMs:
        lasts_ms = 0 if self.since is None else max(0, end_ms - self.since)  # Clocks of controllers may go back.
        return DurationMs(self.total_ms + lasts_ms)


@attrs.frozen
class PartitionTimes:
    """Sum up one partition: its time in each state in ms, and its count of ISR shrinks."""

    topic: str
    partition: PartitionId
    leaderless_ms: DurationMs
    under_min_isr_ms: DurationMs
    under_replicated_ms: DurationMs
    isr_shrink_count: int
    unclean_election_count: int


@attrs.frozen
class BrokerTimes:
    """Sum up one broker: count and duration in ms of its fencings after its first unfencing."""

    broker: BrokerId
    fenced_count: int
    fenced_ms: DurationMs


@attrs.frozen
class Summary:
    """Hold the sums over the whole log; lists are sorted worst first, without entries that are all zero."""

    start_ms: TimeMs
    end_ms: TimeMs
    event_counts: tuple[tuple[ClusterEventKind, int], ...]
    partitions: tuple[PartitionTimes, ...]
    brokers: tuple[BrokerTimes, ...]


class ClusterHistory:
    """Read the events of one metadata log, and sum them up once all events have been read."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._history = StepEvents()
        self._durations = Durations(replay.state)

    def events(self) -> Iterator[Event]:
        """Yield every event in the order of the log; raise the errors of `Replay.steps`."""
        for step in self._replay.steps():
            events = tuple(self._history.events(step))
            self._durations.add(step, events)
            yield from events

    def summary(self, topics: Collection[str] = ()) -> Summary:
        """Return the summary of the events read so far; of these topics alone, without brokers, if any are named.

        Raises UsageError for a topic that never was in the log.
        """
        unknown = sorted(set(topics) - self._durations.topics)
        if unknown:
            raise UsageError(f"the log has no topic {', '.join(map(repr, unknown))}; {_known(self._durations.topics)}")
        return self._durations.summary(frozenset(topics))


class Durations:
    """Sum up the states of partitions and brokers while a log is replayed."""

    def __init__(self, state: MetadataState) -> None:
        self._state = state
        self._partitions: dict[Key, dict[str, _Since]] = {}
        self._counts: Counter[tuple[ClusterEventKind, str | None, PartitionId | None]] = Counter()
        """Events by what happened to which partition."""
        self._fenced: dict[BrokerId, _Since] = {}
        self._events: Counter[tuple[ClusterEventKind, str | None]] = Counter()
        """Events by kind and topic."""
        self.topics: set[str] = set()
        """The names of all topics that the log has had, deleted ones too."""
        self._start_ms: TimeMs | None = None
        self._end_ms = TimeMs(0)

    def add(self, step: Step, events: tuple[Event, ...]) -> None:
        """Add one step of the replay and its events."""
        if self._start_ms is None:
            self._start_ms = step.time_ms
        self._end_ms = TimeMs(max(self._end_ms, step.time_ms))
        for event in events:
            self._events[event.what, event.topic] += 1
            if event.what in _COUNTED:
                self._counts[event.what, event.topic, event.partition] += 1
        for delta in step.deltas:
            if isinstance(delta, PartitionDelta):
                self._partition(delta, step.time_ms)
            elif isinstance(delta, TopicDelta):
                self.topics.add(delta.name)
            elif isinstance(delta, BrokerDelta):
                self._broker(delta, step)
            elif isinstance(delta, ConfigDelta) and delta.name == MIN_ISR:
                self._setting(delta, step.time_ms)

    def summary(self, topics: frozenset[str] = frozenset()) -> Summary:
        """Return the sums up to the last step."""
        events: Counter[ClusterEventKind] = Counter()
        for (kind, topic), count in self._events.items():
            if not topics or topic in topics:
                events[kind] += count
        kept = ((key, found) for key, found in self._partitions.items() if not topics or key[0] in topics)
        partitions = [self._times(key, found) for key, found in kept]
        fenced = {} if topics else self._fenced
        brokers = [BrokerTimes(broker, each.count, each.until(self._end_ms)) for broker, each in fenced.items()]
        worst = (each for each in partitions if each.under_replicated_ms or each.leaderless_ms or each.under_min_isr_ms)
        return Summary(
            start_ms=TimeMs(0) if self._start_ms is None else self._start_ms,
            end_ms=self._end_ms,
            event_counts=tuple((kind, events[kind]) for kind in ClusterEventKind if events[kind]),
            partitions=tuple(sorted(worst, key=_badness)),
            brokers=tuple(
                sorted((each for each in brokers if each.fenced_count), key=lambda each: (-each.fenced_ms, each.broker))
            ),
        )

    def _times(self, key: Key, found: dict[str, _Since]) -> PartitionTimes:
        topic, partition = key
        return PartitionTimes(
            topic=topic,
            partition=partition,
            leaderless_ms=found[LEADERLESS].until(self._end_ms),
            under_min_isr_ms=found[UNDER_MIN_ISR].until(self._end_ms),
            under_replicated_ms=found[UNDER_REPLICATED].until(self._end_ms),
            isr_shrink_count=self._counts[ClusterEventKind.ISR_SHRUNK, topic, partition],
            unclean_election_count=self._counts[ClusterEventKind.UNCLEAN_ELECTION, topic, partition],
        )

    def _partition(self, delta: PartitionDelta, now_ms: TimeMs) -> None:
        self._look((delta.topic, delta.partition), delta.after, self._min_isr(delta.topic), now_ms)

    def _look(self, key: Key, partition: PartitionImage | None, min_isr: int, now_ms: TimeMs) -> None:
        found = self._partitions.setdefault(key, {state: _Since() for state in STATES})
        states = {} if partition is None else _states(partition, min_isr)
        for state, since in found.items():
            since.set(states.get(state, False), now_ms)

    def _broker(self, delta: BrokerDelta, step: Step) -> None:
        broker = delta.after or delta.before
        assert broker is not None
        is_fenced = delta.after is not None and delta.after.fenced
        is_known = broker.id in self._fenced or step.from_snapshot
        if is_known or not is_fenced:
            self._fenced.setdefault(broker.id, _Since()).set(is_fenced, step.time_ms)

    def _setting(self, delta: ConfigDelta, now_ms: TimeMs) -> None:
        if delta.resource.type == RESOURCE_TOPIC:
            topics = [delta.resource.name]
        elif delta.resource == Resource(RESOURCE_BROKER, CLUSTER_DEFAULT):
            topics = sorted({topic for topic, _ in self._partitions})
        else:
            return
        for topic in topics:
            min_isr = self._min_isr(topic)
            for number, partition in self._state.partitions(topic).items():
                self._look((topic, number), partition, min_isr, now_ms)

    def _min_isr(self, topic: str) -> int:
        count = min_insync_replicas(self._state.configs, topic).count
        assert count is not None
        return count


def _known(topics: Collection[str]) -> str:
    """Return a few of the names of topics, for an error."""
    shown = ", ".join(sorted(topics)[:TOPICS_SHOWN_MAX])
    more = len(topics) - TOPICS_SHOWN_MAX
    return f"it has had {shown}{f' and {more:,} more' if more > 0 else ''}" if topics else "it has had none"


def _states(partition: PartitionImage, min_isr: int) -> dict[str, bool]:
    leaderless = partition.leader == NO_LEADER
    return {
        LEADERLESS: leaderless,
        UNDER_MIN_ISR: leaderless or len(partition.isr) < min_isr,
        UNDER_REPLICATED: len(partition.isr) < len(partition.replicas) - len(partition.adding),
    }


def _badness(each: PartitionTimes) -> tuple[int, int, int, str, int]:
    return (-each.leaderless_ms, -each.under_min_isr_ms, -each.under_replicated_ms, each.topic, each.partition)
